//! The report in a real browser: no errors on the console, nothing fetched, nothing wider than a phone.
//!
//! Needs Chromium (Debian's package `chromium`; another path in the variable `CHROMIUM`) and says so where there is
//! none. What is asserted of the report is first shown to fail for a page that is broken on purpose.

use crate::served::browser::alone;
use crate::skip::{Need, skip};
use crate::tool::Tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs in the page when it is loaded and leaves what it sees in the page around it.
const WITNESS: &str = "<script>addEventListener('load', () => {
  const wide = [...document.querySelectorAll('body *')].filter(e =>
    !e.closest('.wide') && e.getBoundingClientRect().right > innerWidth + 1);
  const seen = document.createElement('pre');
  seen.textContent = 'SEEN width=' + innerWidth + ' overflow=' + (document.documentElement.scrollWidth > innerWidth)
    + ' outside=' + wide.length + ' fetched=' + performance.getEntriesByType('resource').length
    + ' giant=' + [...document.querySelectorAll('svg text:not(:has(tspan)), svg tspan')].filter(e => e.getBoundingClientRect().height > 24).length
    + ' cut=' + [...document.querySelectorAll('.wide:has(svg.paths)')].filter(e => e.scrollWidth > e.clientWidth + 1).length
    + ' stuck=' + [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0).length
    + ' charts=' + [...document.querySelectorAll('svg')].filter(e => e.getBoundingClientRect().height > 50).length
    + ' END';
  top.document.body.append(seen);
})</script>";

/// The widths of a phone's screen and of a desk's.
const SCREENS: [u32; 2] = [390, 1280];

fn chromium() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("CHROMIUM") {
        return Some(path.into());
    }
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    { all }.find(|path| path.is_file())
}

/// What the browser makes of `page`: the page after loading, and what came to the console.
fn look(chromium: &Path, tool: &Tool, page: &Path) -> (String, Vec<String>) {
    let _alone = alone();
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"])
        .args(["--enable-logging=stderr", "--v=0", "--no-first-run", "--disable-extensions"])
        .arg(format!("--user-data-dir={}", tool.path("browser").display()))
        .arg("--window-size=1400,1000")
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the browser failed: {message}");
    let console = message.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// A figure that the witness left in the page.
fn seen(dom: &str, name: &str) -> String {
    // The last one: the text of the witness itself stands in the page, too.
    let message = dom
        .rsplit("SEEN ")
        .next()
        .filter(|_| dom.contains("<pre>SEEN"))
        .and_then(|rest| rest.split(" END").next());
    let message = message.unwrap_or_else(|| panic!("the page has not been loaded: {dom}"));
    let figures = message.split(' ').filter_map(|figure| figure.split_once('='));
    { figures }.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).expect("a known figure")
}

/// The page with the witness in a frame of that width: a window cannot be as narrow as a phone.
fn on_a_screen(tool: &Tool, page: &str, width: u32) -> PathBuf {
    let witnessed = page.replace("</body>", &format!("{WITNESS}</body>"));
    let quoted = witnessed.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<!doctype html><html><body><iframe style=\"border:0\" width=\"{width}\" height=\"844\" \
         srcdoc=\"{quoted}\"></iframe></body></html>"
    );
    tool.write("screen.html", &frame)
}

/// Complaints about `page` on every screen.
fn complaints(chromium: &Path, tool: &Tool, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for width in SCREENS {
        let (dom, console) = look(chromium, tool, &on_a_screen(tool, page, width));
        found.extend(console);
        assert_eq!(seen(&dom, "width"), width.to_string(), "the page has the width of the screen");
        let figures = ["outside", "fetched", "giant", "cut", "stuck"].map(|figure| (figure, "0"));
        for (figure, good) in figures.into_iter().chain([("overflow", "false")]) {
            let value = seen(&dom, figure);
            if value != good {
                found.push(format!("{figure}={value} at a width of {width}"));
            }
        }
    }
    found
}

#[test]
fn a_report_is_shown_without_errors_on_a_desk_and_on_a_phone() {
    let Some(chromium) = chromium() else {
        return skip(Need::Chromium, "apt-get install chromium");
    };
    let tool = Tool::new();
    let broken = "<!doctype html><html><head><meta name=\"viewport\" content=\"width=device-width\"></head><body>\
        <div style=\"width:2000px\">wide</div><img src=\"http://127.0.0.1:9/nowhere.png\"><script>nothing.at.all()</script>\
        <svg viewBox=\"0 0 100 50\" width=\"1200\"><text y=\"20\">giant</text></svg>\
        <div class=\"wide\" style=\"overflow:auto\"><svg class=\"paths\" width=\"3000\"></svg></div></body></html>";
    let found = complaints(&chromium, &tool, broken).join("\n");
    for complaint in
        ["nothing is not defined", "overflow=true", "fetched=1", "outside=", "giant=1", "cut=1", "stuck=1"]
    {
        assert!(found.contains(complaint), "the check itself does not see `{complaint}`: {found}");
    }
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let mut arguments = vec!["run", "data", "--quiet", "--out", "run", "--config", "demonstration"];
    for set in ["embed.epochs=4", "embed.evaluate_every=2", "walk.epochs=2", "walk.validate_every=1"] {
        arguments.extend(["--set", set]);
    }
    arguments.extend(["--set", "walk.rollouts=4"]);
    tool.done(&arguments);
    tool.done(&["report", "run", "--out", "page"]);
    let page = std::fs::read_to_string(tool.path("page/index.html")).unwrap();
    assert_eq!(complaints(&chromium, &tool, &page), [""; 0]);
    // Paths are drawn, by the script that draws those of `serve`.
    let (dom, _) = look(&chromium, &tool, &tool.path("page/index.html"));
    let (drawn, all) = (dom.matches("<svg class=\"paths").count(), page.matches("data-reason=").count());
    assert!(drawn > 0 && drawn == all, "{drawn} of {all} paths are drawn");
    // The page as it is, without the witness.
    let (dom, console) = look(&chromium, &tool, &tool.path("page/index.html"));
    assert!(console.is_empty(), "{console:?}");
    // First what anybody can read, in this order; tables for those who look for them at the end.
    let order = [
        "What the graph is",
        "How good the answers are",
        "Of 100 facts that were hidden",
        "Answers with their reasons",
        "Rules worth knowing",
        "Learning curves",
        "What to do next",
        "<details",
        "Time and memory by stage",
        "Share of the walker's top answers",
        "Results in figures",
        "Quality of the rules",
    ];
    let places: Vec<usize> =
        order.iter().map(|shown| dom.find(shown).unwrap_or_else(|| panic!("no {shown}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.matches("data-reason=").count() <= 5, "five answers are enough");
    assert!(dom.contains("ruleguider serve ") && dom.contains("how it is used"));
    let (dom, _) = look(&chromium, &tool, &on_a_screen(&tool, &page, SCREENS[0]));
    let charts: usize = seen(&dom, "charts").parse().unwrap();
    assert!(charts >= 5, "the rules and the learning curves are drawn: {charts}");
}
