//! Robustness: damaged files, full disks, missing permissions and interruptions. Each ends in one clear line and exit code
//! 2, or goes on; nothing is lost.

use crate::skip::{Need, skip};
use crate::tool::{Tool, learnt, text};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const QUICK: [&str; 4] = ["--out", "run", "--set", "system=rules"];

/// A small family in the folder `data`, and how to learn it in all stages.
fn family(tool: &Tool) -> Vec<&'static str> {
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    vec!["run", "data", "--config", "demonstration", "--out", "run"]
}

fn quick(tool: &Tool) {
    tool.done(&[&["run", "--quiet"], &QUICK[..]].concat());
}

#[test]
fn wrong_paths_and_settings_are_named() {
    let tool = Tool::new();
    let message = tool.refused(&["run", "nowhere"]);
    assert!(message.starts_with("ruleguider: nowhere: cannot be read"), "{message}");
    let message = tool.refused(&["evaluate", "nowhere"]);
    assert!(message.contains("nowhere: not a run directory (it has no run.json)"), "{message}");
    let message = tool.refused(&["run", "--set", "rules.treshold=1"]);
    assert!(
        message.ends_with("unknown setting `rules.treshold`; did you mean `rules.threshold`?"),
        "{message}"
    );
    let path = tool.write("mine.toml", "\n[rules]\nseconds = \"ten\"\n");
    let message = tool.refused(&["run", "--config", text(&path)]);
    assert!(message.ends_with("mine.toml:3: `rules.seconds`: expected a number, found \"ten\""), "{message}");
    let message = tool.refused(&["run", "--config", "demonstratio"]);
    assert!(message.ends_with("did you mean `demonstration`?"), "{message}");
    // The folder was not made for nothing.
    assert!(!tool.path("runs").exists());
}

#[test]
fn a_place_that_cannot_be_written_to() {
    let tool = Tool::new();
    tool.write("file", "");
    let message = tool.refused(&["run", "--out", "file/run"]);
    assert!(message.starts_with("ruleguider: file/run: cannot be written"), "{message}");
    tool.write("thesis.tex", "");
    let message = tool.refused(&["run", "--out", "."]);
    assert!(message.contains("holds files but no run; choose an empty or a new folder"), "{message}");
}

#[test]
fn two_runs_in_one_directory() {
    let tool = Tool::new();
    tool.demonstration();
    let lock = std::fs::File::open(tool.path("run/lock")).unwrap();
    lock.try_lock().unwrap();
    let message = tool.refused(&[&["run"], &QUICK[..]].concat());
    assert!(message.contains("run: another run is using this folder"), "{message}");
    // Asking needs no lock.
    tool.done(&["evaluate", "run", "--quiet"]);
}

#[test]
fn a_directory_from_other_data_or_another_version() {
    let tool = Tool::new();
    tool.demonstration();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let message = tool.refused(&[&["run", "data"], &QUICK[..]].concat());
    assert!(message.contains("run: was made from the demonstration graph"), "{message}");
    let manifest = std::fs::read_to_string(tool.path("run/run.json")).unwrap();
    tool.write("run/run.json", &manifest.replace("\"layout\": 1", "\"layout\": 77"));
    for arguments in [&["evaluate", "run"][..], &["run", "--out", "run"]] {
        let message = tool.refused(arguments);
        assert!(message.contains("(layout 77), now it is version"), "{message}");
    }
}

#[test]
fn damaged_files_are_noticed_and_made_anew() {
    let tool = Tool::new();
    tool.demonstration();
    let whole = learnt(&tool.path("run"));
    for (file, _) in &whole {
        let path = tool.path("run").join(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let message = tool.refused(&["predict", "run", "x", "uncle_of"]);
        assert!(
            message.contains(&format!("{file}: is missing or has changed since it was written")),
            "{message}"
        );
        quick(&tool);
        assert!(learnt(&tool.path("run")) == whole, "{file}");
    }
    for (file, half) in [("run/stages.json", "{\"rules\": {"), ("run/run.json", "{\"lay")] {
        tool.write(file, half);
        quick(&tool);
        assert!(learnt(&tool.path("run")) == whole);
    }
    // Other settings would give other answers.
    let settings = std::fs::read_to_string(tool.path("run/config.toml")).unwrap();
    for changed in [String::new(), settings.replace("top = ", "top = 1")] {
        assert_ne!(changed, settings);
        tool.write("run/config.toml", &changed);
        let message = tool.refused(&["predict", "run", "x", "uncle_of"]);
        assert!(message.contains("config.toml: has changed since it was written; run the same"), "{message}");
    }
    quick(&tool);
    assert_eq!(std::fs::read_to_string(tool.path("run/config.toml")).unwrap(), settings);
    std::fs::remove_file(tool.path("run/config.toml")).unwrap();
    let message = tool.refused(&["evaluate", "run"]);
    assert!(message.contains("config.toml: is missing"), "{message}");
}

#[test]
fn a_run_that_is_being_made_says_so() {
    let tool = Tool::new();
    tool.demonstration();
    let stages = std::fs::read_to_string(tool.path("run/stages.json")).unwrap();
    tool.write("run/stages.json", "{}");
    let message = tool.refused(&["predict", "run", "x", "uncle_of"]);
    assert!(message.contains("run: has no finished stage `rules`"), "{message}");
    let lock = std::fs::File::open(tool.path("run/lock")).unwrap();
    lock.try_lock().unwrap();
    for arguments in [&["predict", "run", "x", "uncle_of"][..], &["evaluate", "run"]] {
        let message = tool.refused(arguments);
        assert!(message.contains("run: is still being made; try again when"), "{message}");
    }
    // One that was finished and is gone through again can be asked all the while.
    tool.write("run/stages.json", &stages);
    tool.done(&["evaluate", "run", "--quiet"]);
}

#[test]
fn a_run_has_its_own_data_wherever_its_source_and_itself_are() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    tool.done(&[&["run", "data", "--quiet"], &QUICK[..]].concat());
    let figures = || tool.json(&["evaluate", "run", "--quiet", "--split", "valid"])["mrr"].clone();
    let before = figures();
    std::fs::remove_dir_all(tool.path("data")).unwrap();
    assert_eq!(figures(), before);
    // Another source in its place is noted, and answers still come.
    tool.done(&["generate", "family", "--people", "61", "--out", "data", "--quiet"]);
    let output = tool.run(&["evaluate", "run", "--split", "valid"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("has changed since this run was made"), "{message}");
    std::fs::rename(tool.path("run"), tool.path("moved")).unwrap();
    tool.done(&["evaluate", "moved", "--quiet"]);
    std::fs::remove_file(tool.path("moved/data.rg")).unwrap();
    let message = tool.refused(&["evaluate", "moved"]);
    assert!(message.contains("has no data file data.rg; run the same `ruleguider run` again"), "{message}");
}

#[test]
fn a_run_json_of_another_program_is_left_alone() {
    let tool = Tool::new();
    std::fs::create_dir(tool.path("run")).unwrap();
    tool.write("run/run.json", "{\"name\": \"of another tool\"}");
    tool.write("run/rules.tsv", "theirs");
    let message = tool.refused(&[&["run"], &QUICK[..]].concat());
    assert!(message.contains("run.json: is damaged, or not a file of a run"), "{message}");
    assert_eq!(std::fs::read_to_string(tool.path("run/rules.tsv")).unwrap(), "theirs");
}

#[test]
fn another_division_of_the_same_file_is_other_data() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let begin = |more: &[&'static str]| [&["run", "data/train.tsv"], &QUICK[..], more].concat();
    tool.done(&[&begin(&[])[..], &["--quiet"]].concat());
    let message = tool.refused(&begin(&["--split", "0.5,0.3,0.2"]));
    assert!(
        message.contains("split 0.8,0.1,0.1 by seed 1") && message.contains("split 0.5,0.3,0.2 by seed 1"),
        "{message}"
    );
    let message = tool.refused(&["mine", "data", "--out", "new_folder/", "--seconds", "600"]);
    assert!(message.contains("new_folder/: cannot be written"), "{message}");
    let message = tool.refused(&["convert", "data", "copy", "--split", "0.5,0.3,0.2"]);
    assert!(message.contains("data: already has splits"), "{message}");
    let message = tool.refused(&["run", "--split", "0.5,0.3,0.2"]);
    assert!(message.contains("need DATA"), "{message}");
    // What a run divides can be had as a folder.
    tool.done(&["convert", "data/train.tsv", "divided", "--split", "0.5,0.3,0.2"]);
    let (of_file, of_folder) =
        (tool.json(&["stats", "data/train.tsv", "--split", "0.5,0.3,0.2"]), tool.json(&["stats", "divided"]));
    assert_eq!(of_file["valid"], of_folder["valid"]);
    assert_eq!(of_file["test_linked"], of_folder["test_linked"]);
    let message = tool.refused(&["convert", "data/train.tsv", "divided.tsv", "--split", "0.5,0.3,0.2"]);
    assert!(message.contains("--split writes a folder"), "{message}");
}

#[test]
fn a_planned_run_goes_on_with_its_plan_on_other_threads() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let on = |threads| {
        tool.json(&["run", "data", "--quiet", "--minutes", "0.05", "--out", "run", "--threads", threads])
    };
    on("1");
    let stages = on("4")["stages"].as_object().unwrap().clone();
    assert!(stages.len() > 3, "{stages:?}");
    assert!(stages.values().all(|stage| stage["skipped"] == true), "{stages:?}");
}

#[test]
fn wrong_arguments_get_one_line_too() {
    let tool = Tool::new();
    for (arguments, expected) in [
        (
            &["mine"][..],
            "the following required arguments were not provided: --out <FILE> <DATA>; see ruleguider mine --help",
        ),
        (
            &["evaluat", "run"][..],
            "'evaluat'; a similar subcommand exists: 'evaluate'; see ruleguider --help",
        ),
        (&["run", "--threads", "0"][..], "0 is not in 1..=1024; see ruleguider run --help"),
        (&["--threads", "2", "mine", "data"][..], "ruleguider mine --help"),
        (
            &["run", "--set", "embed.dimension=1000000000000"][..],
            "`embed.dimension`: expected a whole number from 1 to 65536, found 1000000000000",
        ),
    ] {
        let message = tool.refused(arguments);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn killed_at_any_moment_it_goes_on() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let arguments = [&["run", "data", "--quiet"], &QUICK[..]].concat();
    let began = Instant::now();
    tool.done(&arguments);
    let takes = began.elapsed();
    let whole = learnt(&tool.path("run"));
    std::fs::remove_dir_all(tool.path("run")).unwrap();
    // From a moment after the start to after the end, in steps that hit every stage.
    for wait in (0..18).map(|step| takes / 16 * step + Duration::from_millis(2)) {
        let mut child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while began.elapsed() < wait && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for (file, bytes) in learnt_if_any(&tool) {
            let expected = whole.iter().find(|(name, _)| *name == file);
            assert!(expected.is_some_and(|(_, whole)| *whole == bytes), "{file} is not whole after {wait:?}");
        }
    }
    tool.done(&arguments);
    assert!(learnt(&tool.path("run")) == whole);
}

#[test]
fn killed_in_every_stage_it_learns_the_same() {
    let tool = Tool::new();
    let settings = [
        "embed.epochs=12",
        "embed.evaluate_every=4",
        "walk.epochs=3",
        "walk.validate_every=1",
        "walk.rollouts=4",
    ];
    let mut arguments = family(&tool);
    arguments.extend(["--quiet", "--set", "system=blend"]);
    settings.iter().for_each(|set| arguments.extend(["--set", set]));
    tool.done(&arguments);
    let whole = learnt(&tool.path("run"));
    std::fs::remove_dir_all(tool.path("run")).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    // Killed again and again, each time a little after something new has come to the disk.
    for round in 0..60 {
        let mut child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let finished = loop {
            let now = files(&tool.path("run"));
            let new = now.difference(&seen).next().is_some();
            seen.extend(now);
            if let Some(status) = child.try_wait().unwrap() {
                break status.success();
            }
            if new && round > 0 {
                break false;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        if finished {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    tool.done(&arguments);
    let after = learnt(&tool.path("run"));
    for (one, two) in whole.iter().zip(&after) {
        assert!(one == two, "{} is not what an undisturbed run learns", one.0);
    }
    assert_eq!(whole.len(), after.len());
}

#[test]
#[cfg(unix)]
fn a_propagator_that_is_killed_in_training_learns_the_same() {
    let tool = Tool::new();
    let settings = [
        "system=propagator",
        "rules.samples=1000",
        "propagate.layers=3",
        "propagate.width=16",
        "propagate.hold_out=0.1",
        "propagate.epochs=4",
        "propagate.epoch_queries=1600",
        "propagate.validation_queries=40",
    ];
    let mut arguments = vec!["run", "--quiet", "--out", "run"];
    settings.iter().for_each(|set| arguments.extend(["--set", set]));
    tool.done(&arguments);
    let whole = learnt(&tool.path("run"));
    assert!(whole.iter().any(|(name, _)| name.starts_with("propagator")));
    std::fs::remove_dir_all(tool.path("run")).unwrap();
    // Asked to stop, it leaves a checkpoint; killed at several moments after it has gone on, it leaves that one or, where
    // it was quick, a later one, until it has learnt all.
    let checkpoint = || {
        let found = files(&tool.path("run")).into_iter();
        found.filter(|(path, _)| text(path).contains("checkpoints/propagation-")).collect::<Vec<_>>()
    };
    let is_whole = || checkpoint().iter().any(|(_, bytes)| *bytes > 10_000);
    let mut child = start(&tool, &arguments, || !checkpoint().is_empty());
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_whole(), "{:?}", checkpoint());
    for wait in [30, 200, 600, 1200] {
        let mut child = tool.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            break;
        }
        let learnt_all = learnt(&tool.path("run")).iter().any(|(name, _)| name.starts_with("propagator"));
        assert!(is_whole() || learnt_all, "after {wait} ms: {:?}", checkpoint());
    }
    tool.done(&arguments);
    assert!(
        learnt(&tool.path("run")) == whole,
        "a training that was stopped and killed learns something else"
    );
}

/// Every file below a folder, with its size: something new has come when this changes.
fn files(folder: &std::path::Path) -> std::collections::BTreeSet<(std::path::PathBuf, u64)> {
    let mut found = std::collections::BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => {
                    found.insert((entry.path(), metadata.len()));
                }
                // Renamed in between: the next look finds it.
                Err(_) => {}
            }
        }
    }
    found
}

#[test]
fn no_card_is_said() {
    let tool = Tool::new();
    let output = tool.run(&[&["run", "--quiet", "--device", "cuda"], &QUICK[..]].concat());
    if output.status.success() {
        return skip(Need::NoCuda, "there is a CUDA device here");
    }
    let message = tool.refused(&[&["run", "--device", "cuda"], &QUICK[..]].concat());
    assert!(message.to_lowercase().contains("cuda") && message.contains("choose the CPU"), "{message}");
}

fn learnt_if_any(tool: &Tool) -> Vec<(String, Vec<u8>)> {
    if tool.path("run").is_dir() { learnt(&tool.path("run")) } else { Vec::new() }
}

#[test]
fn a_full_disk_is_said_and_survived() {
    let tool = Tool::new();
    std::fs::create_dir(tool.path("small")).unwrap();
    // A file system of 64 KiB in a namespace of its own, then room made on it, then the same command again.
    let program = env!("CARGO_BIN_EXE_ruleguider");
    let script = format!(
        "mount -t tmpfs -o size=64k none small || exit 77\n\
         {program} run --quiet --out small/run --set system=rules; echo \"first $?\"\n\
         ls small/run | grep -c partial; mount -o remount,size=64m small\n\
         {program} run --quiet --json --out small/run --set system=rules > report.json; echo \"second $?\""
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .current_dir(tool.folder.path())
        .output();
    let Ok(output) = output else {
        return skip(Need::System, "there is no `unshare` to make a small disk with");
    };
    let (out, message) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(77) || message.contains("unshare failed") {
        return skip(Need::System, format_args!("a small disk cannot be made here: {message}"));
    }
    assert!(out.contains("first 2\n0\n") && out.contains("second 0"), "{out}{message}");
    assert!(message.contains("No space left on device"), "{message}");
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.expect("kill is everywhere").success());
}

/// Starts the program and waits until `begun`.
fn start(tool: &Tool, arguments: &[&str], begun: impl Fn() -> bool) -> std::process::Child {
    let child = tool.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program starts");
    while !begun() {
        let ended = child.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the run ended before it began");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[cfg(unix)]
#[test]
fn interrupted_in_training_it_keeps_a_checkpoint_and_goes_on_to_the_same_numbers() {
    let tool = Tool::new();
    let mut arguments = vec!["run", "--out", "run"];
    for set in ["embed.epochs=4", "embed.evaluate_every=2", "walk.epochs=6", "walk.rollouts=4"] {
        arguments.extend(["--set", set]);
    }
    tool.done(&arguments);
    let whole = learnt(&tool.path("run"));
    std::fs::remove_dir_all(tool.path("run")).unwrap();
    // After its first epoch a training has a checkpoint.
    let in_training = || {
        tool.path("run/pretrained.safetensors").exists()
            && checkpoints(&tool).iter().any(|path| path.display().to_string().contains("/training-"))
    };
    let child = start(&tool, &arguments, in_training);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("stopping after this step; Ctrl-C again stops at once"), "{message}");
    assert!(message.ends_with("run the same command again to resume\n"), "{message}");
    assert_eq!(checkpoints(&tool).len(), 1, "{:?}", checkpoints(&tool));
    tool.done(&arguments);
    assert!(learnt(&tool.path("run")) == whole, "it goes on to other numbers");
}

/// The checkpoints in the run's folder.
fn checkpoints(tool: &Tool) -> Vec<std::path::PathBuf> {
    let all = files(&tool.path("run/checkpoints")).into_iter().map(|(path, _)| path);
    all.filter(|path| path.ends_with("checkpoint.safetensors")).collect()
}

/// Interrupts a training with steps of this length twice; whether it ended before its step did.
#[cfg(unix)]
fn ends_within_a_step(tool: &Tool, dimension: &str) -> bool {
    use std::io::BufRead;
    let dimension_set = format!("embed.dimension={dimension}");
    let mut arguments = vec!["run", "data", "--out", dimension, "--set", "system=embedding"];
    for set in [&dimension_set, "embed.batch=20000", "embed.epochs=1000"] {
        arguments.extend(["--set", set]);
    }
    let mut child = start(tool, &arguments, || tool.path(dimension).join("checkpoints").exists());
    std::thread::sleep(Duration::from_millis(200));
    interrupt(&child);
    let mut message = std::io::BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let stopping =
        message.find(|line| line.as_ref().is_ok_and(|line| line.contains("stopping after this step")));
    assert!(stopping.is_some(), "the first Ctrl-C is not answered");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let rest: Vec<String> = message.map_while(Result::ok).collect();
    !rest.iter().any(|line| line.contains("again to resume"))
}

#[cfg(unix)]
#[test]
fn interrupted_twice_it_stops_at_once() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "9000", "--out", "data", "--quiet"]);
    // A fast machine may end its step between the two interruptions; then the next steps are longer.
    let stopped = ["400", "1200", "3000"].into_iter().find(|dimension| ends_within_a_step(&tool, dimension));
    let run = stopped.expect("it waits for its step");
    // What it left is a run that another may go on with.
    let quick = ["--set", "embed.dimension=8", "--set", "embed.batch=512", "--set", "embed.epochs=1"];
    tool.done(&[&["run", "data", "--out", run, "--quiet", "--set", "system=embedding"], &quick[..]].concat());
}

#[test]
fn a_damaged_checkpoint_is_noticed_and_the_stage_begins_anew() {
    let tool = Tool::new();
    let mut arguments = family(&tool);
    for set in ["embed.epochs=4", "embed.evaluate_every=2", "walk.epochs=4", "walk.rollouts=4"] {
        arguments.extend(["--set", set]);
    }
    tool.done(&arguments);
    let whole = learnt(&tool.path("run"));
    let checkpoint = checkpoints(&tool).pop().expect("the walker leaves its checkpoint for more epochs");
    let bytes = std::fs::read(&checkpoint).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 0x55;
    for damaged in [&bytes[..bytes.len() / 2], &flipped, b""] {
        std::fs::write(&checkpoint, damaged).unwrap();
        std::fs::remove_file(tool.path("run/walker.safetensors")).unwrap();
        let output = tool.run(&arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        assert!(message.contains("checkpoint.safetensors is damaged; starting over"), "{message}");
        assert!(learnt(&tool.path("run")) == whole, "{message}");
    }
    // Weights that are finished are checked when they are used. The embedding only rewarded the walker, which answers alone.
    let cut = |file: &str| {
        let path = tool.path("run").join(file);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
        let message = tool.refused(&["predict", "run", "x", "uncle_of"]);
        std::fs::write(&path, &bytes).unwrap();
        message
    };
    let message = cut("walker.safetensors");
    assert!(
        message.contains("walker.safetensors: is missing or has changed since it was written"),
        "{message}"
    );
    let message = cut("embedding.safetensors");
    assert!(message.contains("does not have an entity `x`"), "{message}");
}

#[cfg(unix)]
#[test]
fn no_permission_to_write() {
    use std::os::unix::fs::PermissionsExt;
    let tool = Tool::new();
    let allow = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(tool.folder.path(), 0o755);
    std::fs::create_dir(tool.path("closed")).unwrap();
    allow(&tool.path("closed"), 0o555);
    let program = env!("CARGO_BIN_EXE_ruleguider");
    let arguments = ["run", "--quiet", "--out", "closed/run", "--set", "system=rules"];
    // To root nothing is closed, so root asks as nobody.
    let root = std::fs::write(tool.path("closed/probe"), "").is_ok();
    let output = match root {
        false => tool.run(&arguments),
        true => {
            std::fs::remove_file(tool.path("closed/probe")).unwrap();
            let mut nobody = Command::new("setpriv");
            nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]).args(arguments);
            match nobody.current_dir(tool.folder.path()).output() {
                Ok(output) if !String::from_utf8_lossy(&output.stderr).starts_with("setpriv") => output,
                _ => return skip(Need::System, "root cannot become nobody here, or nobody cannot run it"),
            }
        }
    };
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message, "ruleguider: closed/run: cannot be written: Permission denied (os error 13)\n");
}

#[test]
fn odd_graphs() {
    let tool = Tool::new();
    let one_relation: String = (0..60).map(|i| format!("a{}\tr\tb{}\n", i % 12, i % 7)).collect();
    let one_fact = format!("{one_relation}a0\ts\tb0\n");
    let a_long_name = format!("{one_relation}{}\tr\tb1\n", "x".repeat(16_000_000));
    for (name, facts) in [("one_relation", one_relation), ("one_fact", one_fact), ("long", a_long_name)] {
        let path = tool.write(&format!("{name}.tsv"), &facts);
        let out = format!("runs/{name}");
        let report = tool.json(&["run", text(&path), "--quiet", "--out", &out, "--set", "system=rules"]);
        assert!(report["queries"].as_u64().unwrap() > 0, "{name}");
        // Every network, in hardly any time: each ends with what it has.
        let out = format!("runs/{name}-all");
        let all = ["--set", "blend.with_walker=true", "--set", "blend.with_propagator=true"];
        let report = tool
            .json(&[&["run", text(&path), "--quiet", "--out", &out, "--minutes", "0.01"], &all[..]].concat());
        for stage in ["embeddings", "propagation", "training"] {
            assert!(
                report["stages"][stage]["figures"]["epochs"].as_u64() > Some(0),
                "{name}, {stage}: {report}"
            );
        }
    }
    let no_tabs = tool.write("line.tsv", &"x".repeat(50_000_000));
    let message = tool.refused(&["run", text(&no_tabs)]);
    assert!(message.contains("line.tsv:1: expected a line of 3") && message.len() < 500, "{}", message.len());
    let path = tool.write("two.tsv", "a\tr\tb\nb\tr\tc\n");
    let message = tool.refused(&["run", text(&path), "--set", "system=rules"]);
    assert!(message.contains("enough facts to hold some out"), "{message}");
}
