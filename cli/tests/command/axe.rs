//! axe-core, the accessibility checker, finds nothing on any page.
//!
//! `.ci/run` fetches it into `target/axe.min.js`; another path is given by `RULEGUIDER_AXE`. Without it the tests say that
//! they are skipped.

use crate::judged;
use crate::served::browser::{Browser, ESCAPE, started};
use crate::served::{ASKED, runs};
use crate::skip::{Need, skip};
use serde_json::json;
use std::path::PathBuf;

/// The text of axe-core.
fn axe() -> Option<String> {
    let path = std::env::var_os("RULEGUIDER_AXE").map(PathBuf::from);
    let path = path.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../target/axe.min.js").into());
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        skip(Need::Axe, format_args!("{} is not there; .ci/run fetches it", path.display()));
    }
    text
}

/// What axe finds on the page that is shown, a line a kind.
fn findings(browser: &Browser, axe: &str) -> Vec<String> {
    browser.still();
    browser.script(&format!("{axe}; window.found = null; return 1"));
    browser.script(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => { \
           window.found = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 120)).join(' ; ')}`); \
         }).catch((error) => { window.found = ['axe failed: ' + error]; }); return 1",
    );
    browser.wait("window.found !== null");
    serde_json::from_value(browser.script("return window.found")).expect("lines")
}

const SCREENS: [(u32, &str); 5] =
    [(1280, "light"), (1280, "dark"), (768, "light"), (360, "light"), (360, "dark")];

#[test]
fn axe_finds_nothing_on_any_view() {
    let Some(axe) = axe() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let live = folder.path().join("live.db");
    let live = ["demo", "--live", live.to_str().expect("UTF-8")];
    let served = if cfg!(feature = "live") { &live[..] } else { &live[..1] };
    let Some((browser, server, home)) = started(served) else { return };
    let best = server.json(&format!("/api/v1/demo/predict?{ASKED}"))["answers"][0]["entity"]
        .as_str()
        .expect("an answer")
        .to_owned();
    let views = [
        (String::new(), ".cards a"),
        (format!("?view=ask&{ASKED}"), "svg.paths"),
        (format!("?view=why&{ASKED}&object={best}"), "svg.paths"),
        (format!("?view=between&subject=Ilse_Hagenthal&object={best}"), "main h2"),
        ("?view=entity&id=Ilse_Hagenthal".to_owned(), "details li a"),
        ("?view=around&id=Ilse_Hagenthal".to_owned(), "svg.tree"),
        ("?view=relation&id=cousin_of&missing=25".to_owned(), ".answer"),
        ("?view=list".to_owned(), "#facts"),
        (
            "?view=queue&relation=cousin_of".to_owned(),
            if cfg!(feature = "live") { ".answer" } else { ".notice" },
        ),
        ("?view=reviewed".to_owned(), "main h1"),
        ("?view=ask&subject=nobody&relation=cousin_of".to_owned(), ".notice"),
        ("?view=nonsense".to_owned(), ".notice"),
        ("some/path".to_owned(), "h1"),
    ];
    for (width, theme) in SCREENS {
        browser.screen(width, theme);
        for (query, shown) in &views {
            browser.go(&format!("{home}{query}"));
            browser.wait(&format!("document.querySelector({shown:?})"));
            match query.as_str() {
                "?view=list" => {
                    browser.script(&format!(
                        "document.getElementById('facts').value = {}",
                        json!(format!("Ilse_Hagenthal,cousin_of,{best}\nnobody,cousin_of,{best}"))
                    ));
                    browser.click("#score button.primary");
                    browser.wait("document.querySelector('#save-scored')");
                }
                "?view=entity&id=Ilse_Hagenthal" => {
                    browser.click("button.predicts");
                    browser.wait("document.querySelector('.predicted')");
                }
                _ => {}
            }
            assert_eq!(findings(&browser, &axe), [""; 0], "{query} at {width}, {theme}");
        }
        browser.go(&home);
        browser.wait("document.querySelector('.cards a')");
        browser.keys("?");
        browser.wait("document.getElementById('help').open");
        assert_eq!(findings(&browser, &axe), [""; 0], "help at {width}, {theme}");
        browser.keys(ESCAPE);
        browser.wait("!document.getElementById('help').open");
        browser.keys("/");
        browser.keys("ilse");
        browser.wait("document.querySelector('#search-options:not([hidden]) [role=option]')");
        assert_eq!(findings(&browser, &axe), [""; 0], "search at {width}, {theme}");
    }
    // axe itself sees what is wrong.
    browser.script("document.querySelector('main').append(document.createElement('button'), document.createElement('img'))");
    assert!(findings(&browser, &axe).len() >= 2);
}

#[test]
fn axe_finds_nothing_on_the_report() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start() else {
        return skip(Need::Chromium, "apt-get install chromium chromium-driver");
    };
    let tool = runs();
    tool.done(&["report", "reports", "demo", "--out", "page"]);
    for (width, theme) in SCREENS {
        browser.screen(width, theme);
        browser.go(&format!("file://{}", tool.path("page/index.html").display()));
        browser.script("for (const one of document.querySelectorAll('details')) one.open = true");
        assert_eq!(findings(&browser, &axe), [""; 0], "{width}, {theme}");
    }
}

#[test]
fn axe_finds_nothing_on_the_pages_of_judges() {
    let Some(axe) = axe() else { return };
    let Some(browser) = Browser::start() else {
        return skip(Need::Chromium, "apt-get install chromium chromium-driver");
    };
    judged::prepare("axe.db", 3, &["--seed", "3"]);
    let (server, tokens) = judged::serve("axe.db", 1, 1);
    for (width, theme) in SCREENS {
        browser.screen(width, theme);
        browser.go("about:blank");
        browser.go(&format!("http://{}/#{}", server.address, tokens[0]));
        browser.wait("document.querySelectorAll('.example svg.paths').length === 4");
        assert_eq!(findings(&browser, &axe), [""; 0], "instructions at {width}, {theme}");
        browser.click("#begin");
        browser.wait(
            "document.querySelectorAll('.side svg.paths').length === 2 && document.querySelector('.choices')",
        );
        assert_eq!(findings(&browser, &axe), [""; 0], "an item at {width}, {theme}");
        browser.go("about:blank");
        browser.go(&format!("http://{}/#wrong", server.address));
        browser.wait("document.querySelector('.notice')");
        assert_eq!(findings(&browser, &axe), [""; 0], "a wrong link at {width}, {theme}");
    }
}
