//! Reviewing on the page: what is asked next and why, by keys, and two people in two browsers.

use crate::live::{Folder, VERDICTS};
use crate::served::ASKED;
use crate::served::browser::{Browser, TAB};
use crate::skip::{Need, skip};

fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        skip(Need::Chromium, "apt-get install chromium chromium-driver");
    }
    browser
}

#[test]
fn what_is_asked_next_says_why_and_is_decided_by_keys() {
    let folder = Folder::new();
    let server = folder.serve();
    let Some(browser) = browser() else { return };
    browser.go(&format!("http://{}/?run=demo", server.address));
    browser.click("#queue-link");
    browser.wait("document.querySelectorAll('ol.list .answer').length > 5");
    let queue = server.json("/api/v1/demo/live/queue?limit=10");
    let names = "return [...document.querySelectorAll('.answer')].map(one => [...one.querySelectorAll('.name a')].map(a => a.textContent))";
    let expected: Vec<[&str; 3]> = queue["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| {
            ["head_label", "relation", "tail_label"].map(|key| item["fact"][key].as_str().expect("a name"))
        })
        .collect();
    assert_eq!(browser.script(names), serde_json::json!(expected));
    let why = browser.text(".answer em");
    assert!(why.starts_with("Asked because it is "), "{why}");
    // A verdict goes on to the next suggestion.
    browser.keys("ja");
    browser.wait("document.querySelector('.answer button.accept').getAttribute('aria-pressed') === 'true' && document.activeElement.querySelector('.place')?.textContent === '2'");
    browser.keys("r");
    browser.wait("document.activeElement.querySelector('.place')?.textContent === '3'");
    browser.keys("u");
    browser.wait("document.activeElement.querySelector('.place')?.textContent === '4'");
    let items = server.json(VERDICTS)["items"].as_array().expect("items").len();
    assert_eq!(items, 3);
    // A note beside one's own verdict, where there is one.
    let fields =
        "return [...document.querySelectorAll('.answer .note-field')].map(one => !one.hidden).slice(0, 5)";
    assert_eq!(browser.script(fields), serde_json::json!([true, true, true, false, false]));
    browser.click(".answer .note-field");
    browser.keys(&format!("see the registry{TAB}"));
    server.until("the note is kept", || {
        let kept = server.json(VERDICTS);
        kept["items"].as_array().expect("items").iter().any(|item| {
            item["verdicts"][0]["note"] == "see the registry" && item["verdicts"][0]["verdict"] == "accept"
        })
    });
    browser.click("#more-queue");
    browser.wait("document.querySelectorAll('.answer').length > 5 && document.querySelectorAll('.answer [aria-pressed=true]').length === 0");
    // One relation alone.
    browser.script("const box = document.getElementById('queue-relation'); box.value = 'cousin_of'; box.dispatchEvent(new Event('change'))");
    browser.wait("location.search.includes('relation=cousin_of') && document.querySelector('.answer')");
    let relations = "return [...new Set([...document.querySelectorAll('.answer .name a:nth-of-type(2)')].map(one => one.textContent))]";
    assert_eq!(browser.script(relations), serde_json::json!(["cousin_of"]));
    browser.is_content();
}

#[test]
fn predicted_facts_are_decided_on_entities_and_neighbourhoods() {
    let folder = Folder::new();
    let server = folder.serve();
    let Some(browser) = browser() else { return };
    let home = format!("http://{}/?run=demo", server.address);
    browser.go(&format!("{home}&view=around&id=Ilse_Hagenthal"));
    browser.wait("document.querySelector('svg.tree .guess')");
    browser.script("document.querySelector('svg.tree .grows.guess').dispatchEvent(new MouseEvent('click', { bubbles: true }))");
    browser.wait("document.querySelector('.fact .verdict')");
    assert!(browser.text(".fact").contains("Predicted with "), "{}", browser.text(".fact"));
    browser.keys("r");
    browser.wait("document.querySelector('.fact button.reject').getAttribute('aria-pressed') === 'true'");
    assert_eq!(server.json(VERDICTS)["items"][0]["outcome"], "rejected");
    browser.go(&format!("{home}&view=entity&id=Ilse_Hagenthal"));
    // A relation of which more is predicted, as the usual question shows.
    browser.wait(
        "[...document.querySelectorAll('summary')].some(one => one.textContent.startsWith('cousin_of'))",
    );
    browser.script(
        "const cousins = [...document.querySelectorAll('details')].find(one => one.textContent.startsWith('cousin_of')); \
         cousins.open = true; cousins.id = 'cousins'",
    );
    browser.click("#cousins button.predicts");
    browser.wait("document.querySelector('#cousins .predicted .verdict')");
    browser.keys("ja");
    browser
        .wait("document.querySelector('.predicted button.accept').getAttribute('aria-pressed') === 'true'");
    server.until("both are kept", || server.json(VERDICTS)["items"].as_array().expect("items").len() == 2);
    browser.is_content();
}

#[test]
fn two_people_in_two_browsers_see_what_the_other_decides() {
    let folder = Folder::new();
    let server = folder.serve();
    let Some(ada) = browser() else { return };
    let ben = ada.beside();
    let pressed = |verdict: &str| {
        format!("document.querySelector('.answer button.{verdict}').getAttribute('aria-pressed') === 'true'")
    };
    for (browser, name) in [(&ada, "ada"), (&ben, "ben")] {
        browser.go(&format!("http://{}/?run=demo&view=reviewed", server.address));
        browser.wait("document.querySelector('#reviewer')");
        browser.script(&format!("const box = document.getElementById('reviewer'); box.value = '{name}'; box.dispatchEvent(new Event('change'))"));
        browser.go(&format!("http://{}/?run=demo&view=ask&{ASKED}", server.address));
        browser.wait("document.querySelector('.answer button.reject')");
    }
    ada.click(".answer button.accept");
    ada.wait(&pressed("accept"));
    ben.wait("document.querySelector('.answer .others').textContent.includes('ada accepts')");
    assert_eq!(ben.script(&format!("return {}", pressed("accept"))), false, "it is not Ben's verdict");
    ben.click(".answer button.reject");
    ben.wait(&pressed("reject"));
    ada.wait("document.querySelector('.answer .others').textContent.includes('ben rejects')");
    let item = server.json(VERDICTS)["items"][0].clone();
    assert_eq!(
        (item["outcome"].as_str(), item["verdicts"].as_array().map(Vec::len)),
        (Some("disputed"), Some(2))
    );
    // Another fact is accepted by both; how far they agree stands above the list.
    for browser in [&ada, &ben] {
        browser.click("ol li:nth-child(2) button.accept");
        browser.wait("document.querySelector('ol li:nth-child(2) button.accept').getAttribute('aria-pressed') === 'true'");
    }
    ben.go(&format!("http://{}/?run=demo&view=reviewed", server.address));
    ben.wait(
        "document.getElementById('agreement').textContent.startsWith('ada and ben agree on 1 of 2 facts')",
    );
    assert!(
        ben.text("#agreement").contains("accepted by probability: 1 of 1 at "),
        "{}",
        ben.text("#agreement")
    );
    ben.go(&format!("http://{}/?run=demo&view=ask&{ASKED}", server.address));
    ben.wait(&pressed("reject"));
    // What one takes back, the other sees gone.
    ben.click(".answer button.reject");
    ada.wait("!document.querySelector('.answer .others').textContent.includes('ben')");
    ada.is_content();
    ben.is_content();
}
