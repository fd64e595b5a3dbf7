//! The page of `serve` in a real browser. Needs Debian's `chromium` and `chromium-driver`, and says so where there are
//! none.

use crate::served::browser::{Browser, DOWN, ENTER, ESCAPE, TAB};
use crate::served::{Client, ODD, Server, encoded, long};
use crate::skip::{Need, skip};

fn started(arguments: &[&str]) -> Option<(Browser, Server, String)> {
    let Some(browser) = Browser::start() else {
        skip(Need::Chromium, "apt-get install chromium chromium-driver");
        return None;
    };
    let server = Server::start(arguments);
    let home = format!("http://{}/", server.address);
    Some((browser, server, home))
}

#[test]
fn a_question_is_asked_and_explained_by_keyboard_alone() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    browser.go(&home);
    browser.wait("document.querySelector('.cards a')");
    browser.keys("/");
    browser.keys("ilse hag");
    browser.wait("document.querySelector('#subject-options:not([hidden]) [role=option]')");
    assert_eq!(browser.script("return document.activeElement.getAttribute('aria-expanded')"), "true");
    browser.keys(DOWN);
    let chosen = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))";
    browser.wait(&format!("{chosen}.getAttribute('aria-selected') === 'true'"));
    browser.keys(ENTER);
    browser.keys(TAB);
    browser.keys("cousn"); // misspelt
    browser.wait("document.querySelector('#relation-options:not([hidden]) [role=option]')");
    browser.keys(DOWN);
    browser.keys(ENTER);
    assert_eq!(browser.script("return document.getElementById('relation').value"), "cousin_of");
    browser.keys(ENTER);
    browser.wait("document.querySelectorAll('.answer').length > 1");
    let asked = browser.script("return location.search");
    assert!(
        asked.as_str().unwrap().contains("view=ask&subject=Ilse_Hagenthal&relation=cousin_of"),
        "{asked}"
    );
    assert!(browser.text(".group h2").contains(" true"), "rules have counts");
    browser.wait("document.querySelector('svg.paths a')");
    browser.keys("jjk");
    assert_eq!(
        browser.script("return [...document.querySelectorAll('.answer')].indexOf(document.activeElement)"),
        0
    );
    let best = browser.text(".answer .name");
    browser.keys("e");
    browser.wait("document.querySelector('#verdict') && document.querySelector('section.group')");
    assert!(browser.text("h1").contains(&best), "{}", browser.text("h1"));
    assert!(browser.text("#verdict").contains("Predicted at rank 1"), "{}", browser.text("#verdict"));
    assert!(
        browser.text("section.group .note").starts_with("Without it: "),
        "{}",
        browser.text("section.group")
    );
    // All groundings of the first rule.
    browser.click("section.group button");
    browser.wait("[...document.querySelectorAll('.note')].some(note => / path/.test(note.textContent))");
    // All rules.
    let rules = "return document.querySelectorAll('section.group .rule-text').length";
    let first = browser.script(rules);
    browser.click("#more-rules");
    browser.wait(&format!("document.querySelectorAll('section.group .rule-text').length > {first}"));
    browser.back();
    browser.wait("document.querySelector('.answer')");
    assert_eq!(browser.script("return location.search"), asked);
    browser.forward();
    browser.wait("document.querySelector('h1 ~ p a') && !document.querySelector('.answer')");
    browser.keys("?");
    browser.wait("document.getElementById('help').open");
    browser.keys(ESCAPE);
    browser.wait("!document.getElementById('help').open");
    browser.is_content();
}

#[test]
fn entities_are_followed_and_addresses_shared() {
    let Some((browser, server, home)) = started(&["demo", "odd"]) else { return };
    browser.go(&format!("{home}?run=demo&view=ask&subject=Ilse_Hagenthal&relation=cousin_of&hops=3"));
    browser.click(".answer a.name");
    browser.wait("location.search.includes('view=entity') && document.querySelector('details li a')");
    let (address, title) = (browser.script("return location.href"), browser.text("h1"));
    browser.click("details button");
    browser.wait("document.querySelector('details .sure') || document.querySelector('details .note')");
    browser.is_content();
    drop(browser);
    let other = Browser::start().expect("there was one before");
    other.go(address.as_str().unwrap());
    other.wait("document.querySelector('details li a')");
    assert_eq!(other.text("h1"), title);
    // The other run.
    other.script("const box = document.getElementById('run'); box.value = 'odd'; box.dispatchEvent(new Event('change'))");
    other.wait(
        "[...document.querySelectorAll('.cards a')].some(card => card.textContent.includes('likes/it'))",
    );
    other.is_content();
    drop(server);
    other.go("about:blank");
}

#[test]
fn what_is_misspelt_or_empty_gets_a_message() {
    let Some((browser, _server, home)) = started(&["demo", "odd"]) else { return };
    browser.go(&format!("{home}?run=demo&view=ask&subject=Ilse_Hagentahl&relation=cousin_of"));
    browser.wait("document.querySelector('.notice li a')");
    assert!(browser.text(".notice").contains("does not have an entity `Ilse_Hagentahl`"));
    browser.click(".notice li a");
    browser.wait("document.querySelector('.answer')");
    browser.go(&format!("{home}?run=odd&view=ask&subject=alone&relation=likes%2Fit"));
    browser.wait("document.querySelector('.notice')");
    assert!(browser.text(".notice").contains("Nothing is predicted"), "{}", browser.text(".notice"));
    browser.go(&format!("{home}?run=nowhere&view=entity&id=x"));
    browser.wait("document.querySelector('.notice li a')");
    assert!(browser.text(".notice").contains("no run `nowhere`"));
    browser.is_content();
}

#[test]
fn names_are_text_whatever_is_in_them() {
    let Some((browser, _server, home)) = started(&["odd"]) else { return };
    let long = long();
    for name in [ODD, &*long] {
        let id = encoded(name);
        let relation = encoded("<b>knows</b>");
        browser.go(&format!("{home}?view=entity&id={id}"));
        browser.wait("document.querySelector('details li a')");
        assert_eq!(browser.text("h1"), name);
        browser.go(&format!("{home}?view=ask&subject={id}&relation={relation}"));
        browser.wait("document.querySelector('.answer a.name') && document.querySelector('svg.paths a')");
        browser.click(".answer a.acts");
        browser.wait("document.querySelector('#verdict') && document.querySelector('section.group')");
        browser.go(&format!("{home}?view=relation&id={relation}"));
        browser.click("#find-missing");
        browser.wait("document.querySelector('.answer')");
        for width in [1280, 360] {
            browser.screen(width, "light");
            assert_eq!(
                browser.script("return document.documentElement.scrollWidth > innerWidth"),
                false,
                "{width}"
            );
        }
        let title = browser
            .script("return [document.title, document.querySelectorAll('main script, main b').length]");
        assert!(title[0] != "owned" && title[1] == 0, "{title}");
    }
    // As it is typed, too.
    browser.keys("/");
    browser.keys("a/b \"c\" <scr");
    browser.wait("document.querySelector('#subject-options:not([hidden]) [role=option]')");
    browser.keys(&format!("{DOWN}{ENTER}"));
    assert_eq!(browser.script("return document.getElementById('subject').value"), ODD);
    browser.is_content();
}

#[test]
fn missing_facts_are_judged_and_saved() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    browser.go(&format!("{home}?view=relation&id=cousin_of"));
    browser.click("#find-missing");
    browser.wait("document.querySelectorAll('.answer').length > 2");
    browser.keys("ja");
    browser.keys("jr");
    browser.wait("document.querySelectorAll('[aria-pressed=true]').length === 2");
    browser.click("#judged-link");
    browser.wait("document.querySelectorAll('ol.list li').length === 2");
    browser.script("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'data:,'; }");
    browser.click("#save-judged");
    browser.wait("window.saved");
    let saved = browser.script("return window.saved");
    let lines: Vec<&str> = saved.as_str().unwrap().lines().collect();
    assert_eq!(lines[0], "head\trelation\ttail\tverdict\tprobability\tscore");
    let best = Client::to(&server.address).get("/api/v1/demo/facts?relation=cousin_of&limit=2").json();
    for (i, verdict) in ["accept", "reject"].into_iter().enumerate() {
        let fact = &best["items"][i];
        let wanted = format!(
            "{}\tcousin_of\t{}\t{verdict}\t",
            fact["head"].as_str().unwrap(),
            fact["tail"].as_str().unwrap()
        );
        assert!(lines[i + 1].starts_with(&wanted), "{lines:?}");
    }
    browser.is_content();
}

#[test]
fn it_fits_a_desk_and_a_phone_by_day_and_by_night() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    let asked = "subject=Ilse_Hagenthal&relation=cousin_of";
    let best = Client::to(&server.address).get(&format!("/api/v1/demo/predict?{asked}")).json();
    let best = encoded(best["answers"][0]["entity"].as_str().unwrap());
    let views = [
        ("home", String::new(), ".cards a"),
        ("answers", format!("?run=demo&view=ask&{asked}"), "svg.paths"),
        ("why", format!("?run=demo&view=why&{asked}&object={best}"), "svg.paths"),
        ("entity", "?run=demo&view=entity&id=Ilse_Hagenthal".to_owned(), "details li a"),
        ("relation", "?run=demo&view=relation&id=cousin_of".to_owned(), "tbody td"),
    ];
    for (width, theme) in [(1280, "light"), (360, "dark"), (360, "light"), (1280, "dark")] {
        browser.screen(width, theme);
        for (name, query, shown) in &views {
            browser.go(&format!("{home}{query}"));
            browser.wait(&format!("document.querySelector({shown:?})"));
            if *name == "relation" {
                browser.click("#find-missing");
                browser.wait("document.querySelector('.answer')");
            }
            let wide = "const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, .skip') && \
                e.getBoundingClientRect().right > innerWidth + 1); \
                return [innerWidth, document.documentElement.scrollWidth > innerWidth, wide.map(e => e.outerHTML.slice(0, 80))]";
            assert_eq!(browser.script(wide), serde_json::json!([width, false, []]), "{name} at {width}");
            // A path is seen whole: beside its neighbours on a desk, downwards on a phone.
            if *name == "why" {
                let cut = "return [...document.querySelectorAll('.wide:has(svg)')].filter(e => e.scrollWidth > e.clientWidth).length";
                assert_eq!(browser.script(cut), 0, "at {width}");
                let down = browser.script("return document.querySelectorAll('svg.down a').length > 0");
                assert_eq!(down, width == 360);
            }
            let dark = browser
                .script("return getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'");
            assert_eq!(dark, theme == "dark", "{name}");
            let seen = browser.script(include_str!("served/accessible.js"));
            assert_eq!(seen, serde_json::json!([]), "{name} at {width}, {theme}");
            browser.picture(&format!("{name}-{width}-{theme}"));
        }
    }
    // The check itself sees what is wrong.
    browser.script(
        "const p = document.createElement('p'), a = document.createElement('a'); p.append('x'); a.href = '?'; \
         p.style.color = '#888'; p.style.backgroundColor = '#999'; document.querySelector('main').append(p, a)",
    );
    let seen = browser.script(include_str!("served/accessible.js")).to_string();
    assert!(seen.contains("contrast 1.") && seen.contains("no name"), "{seen}");
    // The button overrules the system.
    browser.click("#theme");
    browser.wait("document.documentElement.dataset.theme === 'light'");
    browser.is_content();
}
