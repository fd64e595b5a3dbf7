//! What is printed to a terminal of 80 columns: lines fit, and words are whole.

use crate::served::runs;
use crate::skip::{Need, skip};
use std::process::Command;

/// Runs a command at a terminal of 80 columns, and prints what comes there.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
child = subprocess.Popen(sys.argv[1:], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL)
os.close(theirs)
while True:
    try:
        said = os.read(ours, 65536)
    except OSError:  # nobody is there any more
        break
    if not said:
        break
    sys.stdout.buffer.write(said)
sys.exit(child.wait())
"#;

#[cfg(unix)]
#[test]
fn lines_fit_a_terminal_and_words_stay_whole() {
    let tool = runs();
    for arguments in [
        &["predict", "demo", "Ilse_Hagenthal", "cousin_of"][..],
        &["predict", "reports", "G0016 APT29", "performs"],
        &["explain", "demo", "Ilse_Hagenthal", "cousin_of", "Vera_Hagenthal"],
        &["stats", "reports.csv"],
        &["predict", "--help"],
    ] {
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_ruleguider")]);
        command.args(arguments).current_dir(tool.folder.path()).env("NO_COLOR", "1");
        let Ok(run) = command.output() else {
            return skip(Need::System, "there is no python3");
        };
        let shown = String::from_utf8(run.stdout).expect("UTF-8");
        assert!(run.status.success(), "{arguments:?}: {shown}{}", String::from_utf8_lossy(&run.stderr));
        let piped = tool.done(arguments);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(&piped), "{arguments:?}");
        for line in shown.lines() {
            let fits = line.trim_end().chars().count() <= 80 || line.trim().split(' ').count() == 1;
            assert!(fits, "{arguments:?}: {line}");
        }
        // Some line had to be folded, or this says nothing.
        let longest = piped.lines().map(|line| line.chars().count()).max();
        assert!(arguments[0] == "stats" || arguments[1] == "--help" || longest > Some(80), "{arguments:?}");
    }
}
