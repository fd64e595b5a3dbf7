//! The page of `serve` in a real browser. Needs Debian's `chromium` and `chromium-driver`, and says so where there are
//! none.

use crate::served::browser::{Browser, ENTER, ESCAPE, TAB, started};
use crate::served::{Client, ODD, encoded, long};

#[test]
fn a_question_is_asked_and_explained_by_keyboard_alone() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    browser.go(&home);
    browser.wait("document.querySelector('.cards a')");
    browser.keys("/");
    browser.keys("ilse hag");
    browser.wait("document.querySelector('#search-options:not([hidden]) [role=option]')");
    assert_eq!(browser.script("return document.activeElement.getAttribute('aria-expanded')"), "true");
    // The first suggestion is chosen already.
    let chosen = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))";
    browser.wait(&format!("{chosen}.getAttribute('aria-selected') === 'true'"));
    browser.keys(ENTER);
    browser.wait("document.querySelector('#ask')");
    assert!(
        browser.script("return location.search").as_str().unwrap().contains("view=entity&id=Ilse_Hagenthal")
    );
    browser.script("document.getElementById('relation').focus()");
    browser.keys("cousn"); // misspelt
    browser.wait("document.querySelector('#relation-options:not([hidden]) [role=option]')");
    browser.keys(ENTER);
    browser.wait("document.getElementById('relation').value === 'cousin_of'");
    browser.keys(&format!("{TAB}{TAB}{ENTER}"));
    browser.wait("document.querySelectorAll('.answer').length > 1");
    let asked = browser.script("return location.search");
    assert!(
        asked.as_str().unwrap().contains("view=ask&subject=Ilse_Hagenthal&relation=cousin_of"),
        "{asked}"
    );
    assert!(browser.text(".because").contains(" such cases ("), "rules have counts");
    browser.wait("document.querySelector('svg.paths a')");
    browser.keys("jjk");
    assert_eq!(
        browser.script("return [...document.querySelectorAll('.answer')].indexOf(document.activeElement)"),
        0
    );
    let best = browser.text(".answer .name");
    assert_eq!(browser.script("return document.activeElement.querySelector('.place').textContent"), "1");
    browser.keys("e");
    browser.wait("document.querySelector('#verdict') && document.querySelector('section.group')");
    assert!(browser.text("h1").contains(&best), "{}", browser.text("h1"));
    assert!(browser.text("#verdict").contains("Predicted at rank 1"), "{}", browser.text("#verdict"));
    assert!(
        browser.text("section.group .note").starts_with("Without it: "),
        "{}",
        browser.text("section.group")
    );
    assert!(browser.text("#because").contains("a typical candidate has"), "{}", browser.text("#because"));
    // All groundings of the first rule.
    browser.click("section.group .wide button");
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
    browser.click("button.predicts");
    browser.wait(
        "document.querySelector('details .sure') || document.querySelector('details .note:not([role])')",
    );
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
    assert_eq!(browser.text("h1"), "Not found");
    browser.click(".notice li a");
    browser.wait("document.querySelector('.answer')");
    browser.go(&format!("{home}?run=odd&view=ask&subject=alone&relation=likes%2Fit"));
    browser.wait("document.querySelector('.notice')");
    assert!(browser.text(".notice").contains("Nothing is predicted"), "{}", browser.text(".notice"));
    browser.go(&format!("{home}?run=nowhere&view=entity&id=x"));
    browser.wait("document.querySelector('.notice li a')");
    assert!(browser.text(".notice").contains("no run `nowhere`"));
    // What an address does not say, or says wrongly, is said in words.
    for (query, message) in [
        ("run=demo&view=ask&subject=Ilse_Hagenthal", "does not say which relation is asked for"),
        (
            "run=demo&view=why",
            "which entity is asked about, nor which relation is asked for, nor which answer",
        ),
        ("run=demo&view=nonsense", "no page called “nonsense”"),
    ] {
        browser.go(&format!("{home}?{query}"));
        browser.wait("document.querySelector('.notice a')");
        assert!(browser.text(".notice").contains(message), "{}", browser.text(".notice"));
    }
    browser.go(&format!("{home}?run=demo&view=ask&subject=Ilse_Hagenthal&relation=cousin_of&top=abc&min=x"));
    browser.wait("document.querySelectorAll('.answer').length === 10");
    browser.go(&format!("{home}some/path"));
    browser.wait("document.querySelector('h1')?.textContent === 'No such page'");
    browser.click("main a");
    browser.wait("document.querySelector('.cards a')");
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
        browser.click(".answer a.why");
        browser.wait("document.querySelector('#verdict') && document.querySelector('section.group')");
        browser.go(&format!("{home}?view=relation&id={relation}"));
        browser.click("#find-missing");
        browser.wait("document.querySelector('.answer')");
        for width in [1280, 360] {
            browser.screen(width, "light");
            browser.still();
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
    browser.wait("document.querySelector('#search-options:not([hidden]) [role=option]')");
    browser.keys(ENTER);
    browser.wait("document.querySelector('#ask')");
    assert_eq!(browser.text("h1"), ODD);
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
    browser.click("#reviewed-link");
    browser.wait("document.querySelectorAll('ol.list li').length === 2");
    browser.script("URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return 'data:,'; }");
    browser.click("#save-reviewed");
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

/// What the place of the reader is: how many answers, how far down, where the focus is.
const PLACE: &str = "return [document.querySelectorAll('.answer').length, Math.round(scrollY), \
    document.activeElement.querySelector('.place')?.textContent ?? document.activeElement.id]";

#[test]
fn back_shows_what_was_there_with_its_lists_its_place_and_its_focus() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    browser.go(&format!("{home}?view=relation&id=cousin_of"));
    browser.click("#find-missing");
    browser.wait("document.querySelectorAll('.answer').length === 25");
    browser.click("#more-missing");
    browser.wait("document.querySelectorAll('.answer').length === 50");
    browser.still();
    browser.script("document.querySelectorAll('.answer')[30].focus()");
    browser.still();
    let place = browser.script(PLACE);
    assert!(place[0] == 50 && place[1].as_u64() > Some(500) && place[2] == "31", "{place}");
    browser.keys("e");
    browser.wait("document.querySelector('#verdict')");
    assert_eq!(browser.script("return scrollY"), 0);
    browser.back();
    browser.wait("document.querySelectorAll('.answer').length === 50");
    browser.still();
    assert_eq!(browser.script(PLACE), place);
    // The address alone says as much: it can be loaded again, or sent to somebody.
    let address = browser.script("return location.href");
    assert!(address.as_str().unwrap().contains("missing=50"), "{address}");
    browser.go("about:blank");
    browser.go(address.as_str().unwrap());
    browser.wait("document.querySelectorAll('.answer').length === 50");
    // A long list of answers, scrolled, and a filter that keeps the focus.
    browser.go(&format!("{home}?view=ask&subject=Ilse_Hagenthal&relation=cousin_of&top=50"));
    browser.wait("document.querySelectorAll('.answer svg').length > 2");
    browser.script("document.querySelector('.fold')?.setAttribute('open', '')");
    browser.still();
    browser.script("document.querySelectorAll('.answer')[12].focus()");
    browser.still();
    let place = browser.script(PLACE);
    browser.keys("e");
    browser.wait("document.querySelector('#verdict')");
    browser.back();
    browser.wait("document.querySelectorAll('.answer').length > 12");
    browser.still();
    assert_eq!(browser.script(PLACE), place);
    // The link that was followed has the focus again.
    browser.script("scrollTo(0, 0)");
    browser.click(".answer:nth-child(2) a.why");
    browser.wait("document.querySelector('#verdict')");
    browser.back();
    browser.wait("document.querySelector('.answer')");
    assert_eq!(browser.script("return [document.activeElement.className, document.activeElement.closest('.answer').querySelector('.place').textContent]"), serde_json::json!(["why", "2"]));
    browser.forward();
    browser.wait("document.querySelector('#verdict')");
    browser.back();
    browser.wait("document.querySelector('#filter-hide')");
    browser.script("document.getElementById('filter-hide').focus()");
    browser.keys(" ");
    browser.wait("location.search.includes('hide=1') && document.getElementById('filter-hide').checked");
    browser.wait("document.activeElement.id === 'filter-hide'");
    // Others take the places of those that are hidden.
    let asked = "subject=Ilse_Hagenthal&relation=cousin_of&top=50&held_out=hide";
    let new = server.json(&format!("/api/v1/demo/predict?{asked}"))["answers"].as_array().unwrap().len();
    browser.wait(&format!("document.querySelectorAll('.answer').length === {new}"));
    assert_eq!(browser.script("return document.querySelectorAll('.answer .badge').length"), 0);
    browser.is_content();
}

#[test]
fn two_tabs_agree() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    let address = format!("{home}?view=relation&id=cousin_of&missing=25");
    let pressed = "document.querySelector('.answer button.accept').getAttribute('aria-pressed') === 'true'";
    let stored =
        "return Object.values(JSON.parse(localStorage.getItem('ruleguider:reviewed:demo') ?? '{}')).length";
    browser.go(&address);
    browser.wait("document.querySelectorAll('.answer').length === 25");
    let first = browser.window();
    let second = browser.new_window();
    browser.go(&address);
    browser.wait("document.querySelectorAll('.answer').length === 25");
    browser.turn_to(&first);
    browser.click(".answer button.accept");
    browser.wait(pressed);
    // The other tab shows it without being loaded again, and a click there takes back what is seen there.
    browser.turn_to(&second);
    browser.wait(pressed);
    assert_eq!(browser.script(stored), 1);
    browser.click(".answer button.accept");
    browser.wait(&format!("!({pressed})"));
    assert_eq!(browser.script(stored), 0);
    browser.turn_to(&first);
    browser.wait(&format!("!({pressed})"));
    // A verdict that was given where this tab could not hear of it is not undone by the same verdict here.
    browser.script(
        "const item = document.querySelector('.verdict').dataset.fact, [head, relation, tail] = JSON.parse(item); \
         localStorage.setItem('ruleguider:reviewed:demo', JSON.stringify({[item]: {head, relation, tail, head_label: head, tail_label: tail, verdict: 'accept'}}))",
    );
    browser.click(".answer button.accept");
    browser.wait(pressed);
    assert_eq!(browser.script(stored), 1);
    // Verdicts are given on answers and explanations too, and are the same there.
    browser.keys("e");
    browser.wait("document.querySelector('#verdict button.accept')?.getAttribute('aria-pressed') === 'true'");
    browser.keys("r");
    browser.wait("document.querySelector('#verdict button.reject').getAttribute('aria-pressed') === 'true'");
    browser.back();
    browser.wait("document.querySelector('.answer button.reject')?.getAttribute('aria-pressed') === 'true'");
    browser.close();
    browser.turn_to(&second);
}

#[test]
fn held_out_facts_are_left_out_by_the_server() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    let badges = "return [document.querySelectorAll('.answer').length, document.querySelectorAll('.answer .badge').length]";
    browser.go(&format!("{home}?view=relation&id=cousin_of"));
    browser.click("#find-missing");
    browser.wait("document.querySelectorAll('.answer').length === 25");
    assert_eq!(browser.script(badges), serde_json::json!([25, 0]));
    browser.script("const held = document.getElementById('held'); held.focus(); held.value = 'only'; held.dispatchEvent(new Event('change'))");
    browser.wait("location.search.includes('held=only') && document.querySelector('.answer')");
    let all = server.json("/api/v1/demo/facts?relation=cousin_of&held_out=only");
    let shown = all["total"].as_u64().unwrap().min(25);
    browser.wait(&format!("document.querySelectorAll('.answer').length === {shown}"));
    assert_eq!(browser.script(badges), serde_json::json!([shown, shown]));
    assert_eq!(browser.script("return document.activeElement.id"), "held");
    browser.is_content();
}

#[test]
fn one_box_finds_what_is_misspelt_and_enter_takes_the_first() {
    let Some((browser, _server, home)) = started(&["demo", "odd"]) else { return };
    browser.go(&format!("{home}?run=demo"));
    for (typed, view) in [
        ("Hagentahl Ilse", "view=entity&id=Ilse_Hagenthal"), // in another order, and misspelt
        ("ilsehagenthal", "view=entity&id=Ilse_Hagenthal"),
        ("cousin", "view=relation&id=cousin_of"),
        ("cuosin", "view=relation&id=cousin_of"),
    ] {
        browser.wait("document.querySelector('h1')");
        browser.keys("/");
        // Enter comes before the list does.
        browser.keys(&format!("{typed}{ENTER}"));
        // The box is free again; the address alone may be that of the name before.
        browser.wait(&format!(
            "location.search.includes('{view}') && document.getElementById('search').value === ''"
        ));
    }
    browser.keys("/");
    browser.keys("zzzzqqqq");
    // The page asks when keys pause, so there may have been an answer to the first ones.
    let none = "document.getElementById('search-options').textContent === 'No match for “zzzzqqqq”.'";
    browser.wait(none);
    browser.keys(ENTER);
    browser.wait(none);
    assert_eq!(browser.script("return document.getElementById('search').value"), "zzzzqqqq");
    // Another run begins anew, and the logo stays in it.
    browser.script("const box = document.getElementById('run'); box.value = 'odd'; box.dispatchEvent(new Event('change'))");
    browser.wait("document.querySelector('.lead')");
    assert_eq!(browser.script("return document.getElementById('search').value"), "");
    browser.click("#brand");
    browser.wait("location.search === '?run=odd' && document.querySelector('.lead')");
    browser.is_content();
}

#[test]
fn home_says_what_the_graph_is_and_what_can_be_asked() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    let run = &server.json("/api/v1/runs")["runs"][0];
    browser.go(&home);
    browser.wait("document.querySelector('.wide-cards a')");
    let lead = browser.text(".lead");
    let share = |figure: &str| match run["figures"][figure].as_f64().unwrap() {
        1.0 => 100.0,
        share => (100.0 * share).round().min(99.0),
    };
    assert!(
        lead.contains(&format!("it puts {} first and {} among", share("hits@1"), share("hits@10"))),
        "{lead}"
    );
    let facts = run["facts"].as_u64().unwrap();
    let facts =
        if facts < 1000 { facts.to_string() } else { format!("{},{:03}", facts / 1000, facts % 1000) };
    assert!(lead.starts_with(&format!("{facts} facts about ")), "{lead}");
    assert!(!browser.script("return document.body.innerText").as_str().unwrap().contains("MRR"));
    // Every question has answers, and every relation its page.
    let questions = browser.script("return [...document.querySelectorAll('.wide-cards a')].map(a => a.href)");
    let questions = questions.as_array().unwrap();
    assert_eq!(questions.len(), 3);
    for question in questions {
        browser.go(question.as_str().unwrap());
        browser.wait("document.querySelector('.answer')");
    }
    browser.is_content();
}

#[test]
fn answers_keep_their_order_and_hardly_likely_ones_are_folded() {
    let Some((browser, server, home)) = started(&["demo"]) else { return };
    let asked = "subject=Ilse_Hagenthal&relation=cousin_of";
    browser.go(&format!("{home}?view=ask&{asked}&top=50"));
    browser.wait("document.querySelector('.answer svg')");
    browser.still();
    let places = browser.script(
        "return [...document.querySelectorAll('.answer .place')].map(place => Number(place.textContent))",
    );
    let best = server.json(&format!("/api/v1/demo/predict?{asked}&top=50"));
    let answers = best["answers"].as_array().unwrap();
    let expected: Vec<usize> = (1..=answers.len()).collect();
    assert_eq!(places, serde_json::json!(expected));
    let unlikely = answers.iter().filter(|one| one["probability"].as_f64().unwrap() < 0.01).count();
    assert!(unlikely > 0 && unlikely < answers.len(), "{unlikely} of {}", answers.len());
    assert_eq!(
        browser.script("return document.querySelectorAll('.fold:not([open]) .answer').length"),
        unlikely
    );
    // The reason stands beside its answer.
    let beside = "const answer = document.querySelector('.answer'); \
        return answer.querySelector('.because').getBoundingClientRect().left > answer.querySelector('.who').getBoundingClientRect().right - 1";
    assert_eq!(browser.script(beside), true);
    browser.is_content();
}

#[test]
fn a_question_the_wrong_way_round_says_so() {
    let Some((browser, _server, home)) = started(&["odd"]) else { return };
    // y0 is liked and likes nothing.
    browser.go(&format!("{home}?view=ask&subject=y1&relation=likes%2Fit"));
    browser.wait("document.querySelector('#turned')");
    assert!(browser.text(".notice").contains("y1 always stands after “likes/it”, never before it"));
    browser.click("#turned");
    browser.wait("location.search.includes('inverse=1') && document.querySelector('h1')");
    assert_eq!(browser.script("return document.querySelector('#turned')"), serde_json::Value::Null);
}

#[test]
fn a_neighbourhood_grows_where_it_is_clicked() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    browser.go(&format!("{home}?view=entity&id=Ilse_Hagenthal"));
    browser.click("#around-link");
    browser.wait("document.querySelector('svg.tree')");
    let count = "return document.querySelectorAll('svg.tree .grows').length";
    let first = browser.script(count).as_u64().unwrap();
    assert!(first > 3 && browser.text("svg.tree .hop").contains("fact"), "{first}");
    let dashed = "return getComputedStyle(document.querySelector('svg.tree .guess rect')).strokeDasharray";
    assert_eq!(browser.script(dashed), "4px, 3px");
    let predicted =
        browser.script("return document.querySelector('svg.tree .grows.guess title').textContent");
    assert!(predicted.as_str().unwrap().contains(", predicted with "), "{predicted}");
    // By keyboard.
    browser.script("document.querySelectorAll('svg.tree .grows.entity')[1].focus()");
    browser.keys(ENTER);
    browser.wait(&format!("document.querySelectorAll('svg.tree .grows').length > {first}"));
    assert_eq!(browser.script("return document.activeElement.getAttribute('aria-expanded')"), "true");
    browser.keys(ENTER);
    browser.wait(&format!("document.querySelectorAll('svg.tree .grows').length === {first}"));
    browser.is_content();
}

/// Texts of drawings that reach over the box that they are in.
const OVERFLOWING: &str = "return [...document.querySelectorAll('svg.paths rect')].map(rect => [rect, rect.parentNode.querySelector('text')]) \
    .filter(([rect, text]) => text.getBBox().width > rect.width.baseVal.value - 8).map(([, text]) => text.textContent)";

#[test]
fn drawings_measure_their_text_and_fit_where_they_are() {
    let Some((browser, _server, home)) = started(&["wide"]) else { return };
    for width in [1280, 768, 360] {
        browser.screen(width, "light");
        browser.go(&format!("{home}?view=ask&subject=WWWWWWWWWWWW%200&relation=WIDE"));
        browser.wait("document.querySelector('.answer svg')");
        browser.still();
        assert_eq!(browser.script(OVERFLOWING), serde_json::json!([]), "{width}");
        let cut = "return [...document.querySelectorAll('.wide:has(svg)')].filter(e => e.scrollWidth > e.clientWidth + 1).length";
        assert_eq!(browser.script(cut), 0, "{width}");
        // A name that has room is whole: beside others on a desk, above each other on a phone.
        let cut = browser.script(
            "return [...document.querySelectorAll('svg text')].some(text => text.textContent.includes('…'))",
        );
        assert_eq!(cut, false, "{width}: {}", browser.text("svg"));
        browser.go(&format!("{home}?view=around&id=WWWWWWWWWWWW%200"));
        browser.wait("document.querySelector('svg.tree')");
        browser.still();
        assert_eq!(browser.script(OVERFLOWING), serde_json::json!([]), "{width}");
    }
    browser.is_content();
}

#[test]
fn many_paths_can_be_read_on_a_phone_and_a_page_be_printed() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    browser.screen(360, "light");
    browser.go(&format!("{home}?view=why&subject=Ilse_Hagenthal&relation=cousin_of&object=Vera_Hagenthal"));
    browser.click("section.group .wide button");
    browser.wait("document.querySelectorAll('.ways li').length > 1");
    browser.still();
    assert_eq!(browser.script("return document.documentElement.scrollWidth > innerWidth"), false);
    let (light, dark) = ("rgb(255, 255, 255)", "rgb(15, 19, 24)");
    let paper = "return getComputedStyle(document.body).backgroundColor";
    browser.screen(1280, "dark");
    assert_eq!(browser.script(paper), dark);
    browser.print_media();
    assert_eq!(browser.script(paper), light);
    let seen = "return [...document.querySelectorAll('header, button, #status')].filter(one => one.getClientRects().length > 0).length";
    assert_eq!(browser.script(seen), 0);
    browser.is_content();
}

#[test]
fn a_chosen_theme_has_the_colours_of_the_systems() {
    let Some((browser, _server, home)) = started(&["demo"]) else { return };
    let colours = "const style = getComputedStyle(document.querySelector('main a')), body = getComputedStyle(document.body); \
        return [style.color, body.color, body.backgroundColor, getComputedStyle(document.querySelector('.note')).color]";
    let mut seen = Vec::new();
    for theme in ["light", "dark"] {
        browser.screen(1280, theme);
        browser.go(&home);
        browser.wait("document.querySelector('.cards a')");
        let system = browser.script(colours);
        browser.click("#theme");
        browser.screen(1280, if theme == "light" { "light" } else { "dark" });
        let other = if theme == "light" { "dark" } else { "light" };
        browser.wait(&format!("document.documentElement.dataset.theme === '{other}'"));
        seen.push((theme, system, browser.script(colours)));
        browser.script(
            "localStorage.removeItem('ruleguider:theme'); delete document.documentElement.dataset.theme",
        );
    }
    assert_eq!(seen[0].1, seen[1].2, "light by the system and by choice");
    assert_eq!(seen[1].1, seen[0].2, "dark by the system and by choice");
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
        ("around", "?run=demo&view=around&id=Ilse_Hagenthal".to_owned(), "svg.tree"),
        ("reviewed", "?run=demo&view=reviewed".to_owned(), ".notice"),
        ("why", format!("?run=demo&view=why&{asked}&object={best}"), "svg.paths"),
        ("between", format!("?run=demo&view=between&subject=Ilse_Hagenthal&object={best}"), "main h2"),
        ("list", "?run=demo&view=list".to_owned(), "#facts"),
        ("entity", "?run=demo&view=entity&id=Ilse_Hagenthal".to_owned(), "details li a"),
        ("relation", "?run=demo&view=relation&id=cousin_of".to_owned(), "tbody td"),
    ];
    let mut pictures = Vec::new();
    let screens = [1280, 768, 360].into_iter().flat_map(|width| [(width, "light"), (width, "dark")]);
    for (width, theme) in screens {
        browser.screen(width, theme);
        for (name, query, shown) in &views {
            browser.go(&format!("{home}{query}"));
            browser.wait(&format!("document.querySelector({shown:?})"));
            if *name == "list" {
                let facts = format!("Ilse_Hagenthal,cousin_of,{best}\\nIlse Hagentahl,cousin_of,{best}");
                browser.script(&format!("document.getElementById('facts').value = '{facts}'"));
                browser.click("#score button.primary");
                browser.wait("document.querySelector('#save-scored') && document.querySelector('tr.wrong')");
            }
            if *name == "relation" {
                browser.click("#find-missing");
                browser.wait("document.querySelector('.answer')");
            }
            browser.still();
            let wide = "const wide = [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, .skip') && \
                e.getBoundingClientRect().right > innerWidth + 1); \
                return [innerWidth, document.documentElement.scrollWidth > innerWidth, wide.map(e => e.outerHTML.slice(0, 80))]";
            assert_eq!(browser.script(wide), serde_json::json!([width, false, []]), "{name} at {width}");
            // A path is seen whole: beside its neighbours on a desk, downwards on a phone.
            if *name == "why" {
                let cut = "return [...document.querySelectorAll('.wide:has(svg)')].filter(e => e.scrollWidth > e.clientWidth).length";
                assert_eq!(browser.script(cut), 0, "at {width}");
                let down = browser.script("return document.querySelectorAll('svg.down a').length > 0");
                assert!(width == 768 || down == (width == 360), "at {width}");
            }
            let dark = browser
                .script("return getComputedStyle(document.body).backgroundColor !== 'rgb(255, 255, 255)'");
            assert_eq!(dark, theme == "dark", "{name}");
            let seen = browser.script(include_str!("served/accessible.js"));
            assert_eq!(seen, serde_json::json!([]), "{name} at {width}, {theme}");
            pictures.push(format!("{name}-{width}-{theme}"));
            browser.picture(&pictures[pictures.len() - 1]);
        }
    }
    // The pictures of the documents are among those that are taken here (CONTRIBUTING.md says how).
    let page = include_str!("../../../docs/serve.md");
    let shown: Vec<&str> = page
        .split("](serve/")
        .skip(1)
        .filter_map(|rest| rest.split_once(".png)").map(|(name, _)| name))
        .collect();
    assert!(
        shown.len() >= 3 && shown.iter().all(|name| pictures.iter().any(|taken| taken == name)),
        "{shown:?}"
    );
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
