//! Three judges in three windows of a real browser judge a study to its end, and the report says what they voted.
//! Needs Debian's `chromium` and `chromium-driver`, and says so where there are none.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::judged::{NAMES, prepare, serve, systems};
use crate::served::Server;
use crate::served::browser::{Browser, ENTER};
use crate::skip::{Need, skip};
use ruleguider::judge::{fleiss_kappa, krippendorff_alpha, wilson};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longer than the page waits before it hears a key again.
const SETTLED: Duration = Duration::from_millis(420);

fn browser() -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        skip(Need::Chromium, "apt-get install chromium chromium-driver");
    }
    browser
}

/// The items of a study by their facts: their numbers, and the entities of the first system's path.
fn items(study: &str) -> HashMap<String, (usize, Vec<String>)> {
    let connection = rusqlite::Connection::open(systems().path(study)).unwrap();
    let mut items = connection
        .prepare("SELECT number, head_label, relation_label, tail_label, first_path FROM items")
        .unwrap();
    let rows = items.query_map([], |row| {
        let [head, relation, tail, path] = [1, 2, 3, 4].map(|at| row.get::<_, String>(at).unwrap());
        let steps: Vec<Value> = serde_json::from_str(&path).unwrap();
        let labels = steps.iter().map(|step| step["label"].as_str().unwrap().to_owned());
        let path = std::iter::once(head.clone()).chain(labels).collect();
        Ok((format!("{head} —{relation}→ {tail}"), (row.get(0)?, path)))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// A judge with a script.
struct Judge {
    number: usize,
    window: String,
    link: String,
    done: usize,
    last: Instant,
    /// Their first verdict on each item: 0 first, 1 second, 2 both, 3 neither.
    verdicts: HashMap<usize, usize>,
    left: usize,
    sided: usize,
    repeats: usize,
}

impl Judge {
    /// What the script says of an item.
    fn wish(&self, item: usize) -> usize {
        match item % 7 {
            // All agree.
            0 | 1 => 0,
            2 => 1,
            // Two against one.
            3 if self.number == 2 => 1,
            3 => 0,
            // One each: no majority.
            4 => [0, 1, 3][self.number],
            // Draws of both kinds.
            5 => 2 + self.number % 2,
            _ => [1, 1, 2][self.number],
        }
    }

    /// Judges the screen that is shown; `twice` presses the key again while the vote is on its way, and once more as soon
    /// as the next screen is there. Neither is a vote.
    fn judge(&mut self, browser: &Browser, items: &HashMap<String, (usize, Vec<String>)>, twice: bool) {
        browser.turn_to(&self.window);
        browser.wait(&format!("document.body.dataset.at === '{}'", self.done));
        std::thread::sleep(SETTLED.saturating_sub(self.last.elapsed()));
        let fact = browser.text(".fact");
        let (item, path) = items.get(&fact).unwrap_or_else(|| panic!("{fact} is not of the study"));
        let titles =
            "return [...document.querySelectorAll('[data-side=left] title')].map(one => one.textContent)";
        let left: Vec<String> = serde_json::from_value(browser.script(titles)).unwrap();
        let wish = self.wish(*item);
        let key = match (wish, left == *path) {
            (0, true) | (1, false) => "1",
            (0, false) | (1, true) => "2",
            (2, _) => "3",
            _ => "4",
        };
        if twice {
            // In one script: a key that the driver presses may come later than any pause that the page makes.
            browser.script(&format!(
                "const press = () => document.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }})); \
                 new MutationObserver((_, watch) => {{ watch.disconnect(); press(); }}).observe(document.body, {{ attributeFilter: ['data-at'] }}); \
                 press(); press()"
            ));
        } else {
            browser.keys(key);
        }
        self.left += usize::from(key == "1");
        self.sided += usize::from(wish < 2);
        self.repeats += usize::from(self.verdicts.insert(*item, wish).is_some());
        self.done += 1;
        let next = format!("[String({}), 'done'].includes(document.body.dataset.at)", self.done);
        browser.wait(&next);
        self.last = Instant::now();
    }
}

/// What the scripts come to, by the definitions.
fn expected(judges: &[Judge], items: usize) -> Value {
    let verdict = |category: usize| category.min(2);
    let (mut counts, mut dropped, mut votes) = ([0; 3], 0, [0; 4]);
    let (mut units, mut fours, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for item in 0..items {
        let chosen: Vec<usize> = judges.iter().map(|judge| judge.verdicts[&item]).collect();
        chosen.iter().for_each(|&category| votes[category] += 1);
        let of = |wanted: usize| chosen.iter().filter(|one| verdict(**one) == wanted).count();
        let row = [of(0), of(1), of(2)];
        match row.iter().position(|count| *count > 1) {
            Some(winner) => counts[winner] += 1,
            None => dropped += 1,
        }
        units.push(chosen.iter().map(|one| verdict(*one)).collect::<Vec<_>>());
        fours.push(chosen);
        table.push(row);
    }
    let counted = items - dropped;
    let ratio = |count: usize, of: usize| json!({"count": count, "of": of, "share": count as f64 / of as f64, "interval": wilson(count, of)});
    let sum = |of: fn(&Judge) -> usize| judges.iter().map(of).sum::<usize>();
    let repeats = sum(|judge| judge.repeats);
    json!({
        "dropped": dropped, "counted": counted, "open": 0, "votes": votes,
        "first_better": ratio(counts[0], counted), "second_better": ratio(counts[1], counted),
        "draw": ratio(counts[2], counted),
        "agreement": {
            "alpha": krippendorff_alpha(&units), "alpha_four": krippendorff_alpha(&fours),
            "kappa": fleiss_kappa(&table), "complete": items,
        },
        "left": ratio(sum(|judge| judge.left), sum(|judge| judge.sided)), "self_agreement": ratio(repeats, repeats),
    })
}

#[test]
fn three_judges_in_three_windows_judge_a_study_to_its_end() {
    let Some(browser) = browser() else { return };
    prepare("windows.db", 20, &["--seed", "6"]);
    let (server, tokens) = serve("windows.db", 3, 3);
    let items = items("windows.db");
    assert_eq!(items.len(), 20);
    let mut judges: Vec<Judge> = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let window = if number == 0 { browser.window() } else { browser.new_window() };
        let link = format!("http://{}/#{token}", server.address);
        browser.go(&link);
        browser.wait("document.querySelectorAll('.example svg.paths').length === 4");
        // Begin has the focus.
        browser.keys(ENTER);
        browser.wait("document.body.dataset.at === '0'");
        let (verdicts, last) = (HashMap::new(), Instant::now());
        judges.push(Judge { number, window, link, done: 0, last, verdicts, left: 0, sided: 0, repeats: 0 });
    }
    for round in 0..21 {
        for judge in &mut judges {
            let twice = judge.number == 2;
            judge.judge(&browser, &items, twice);
            // The second judge changes their mind once.
            if judge.number == 1 && round == 4 {
                let before = judge.done;
                browser.keys("u");
                browser.wait(&format!("document.body.dataset.at === '{}'", before - 1));
                assert!(browser.text("#status").contains("undone"), "{}", browser.text("#status"));
                assert_eq!(browser.script("return document.querySelector('.undo').disabled"), true);
                std::thread::sleep(SETTLED);
                browser.keys("5x4");
                browser.wait(&format!("document.body.dataset.at === '{before}'"));
                // And once more.
                browser.keys("u");
                browser.wait(&format!("document.body.dataset.at === '{}'", before - 1));
                judge.last = Instant::now();
                judge.done -= 1;
                forget(judge, &browser, &items);
                judge.judge(&browser, &items, false);
            }
            // The first one takes a break, and goes on in another window, as on another device.
            if judge.number == 0 && round == 9 {
                let other = browser.new_window();
                browser.turn_to(&judge.window);
                browser.close();
                browser.turn_to(&other);
                judge.window = other;
                browser.go(&judge.link);
                browser.wait("document.getElementById('begin')?.textContent === 'Continue'");
                assert!(browser.text(".start").contains("10 of 21 judged"), "{}", browser.text(".start"));
                browser.click("#begin");
                browser.wait(&format!("document.body.dataset.at === '{}'", judge.done));
                judge.last = Instant::now();
            }
        }
    }
    for judge in &judges {
        browser.turn_to(&judge.window);
        assert!(browser.text("h1").contains("Done"), "{}", browser.text("h1"));
    }
    browser.is_content();
    let report = systems().json(&["judge", "report", "windows.db"]);
    assert_eq!((&report["votes"], &report["needed"]), (&json!(63), &json!(3)));
    let wanted = expected(&judges, 20);
    for (key, value) in wanted.as_object().unwrap() {
        let found = if ["left", "self_agreement"].contains(&key.as_str()) {
            &report[key]
        } else {
            &report["pairs"][0][key]
        };
        assert_eq!(found, value, "{key}");
    }
    assert_eq!(
        (&report["pairs"][0]["first"], &report["pairs"][0]["second"]),
        (&json!(NAMES[0]), &json!(NAMES[1]))
    );
    assert!(wanted["dropped"].as_u64() > Some(0), "the script has items without a majority");
}

/// Takes back in the script what was taken back on the page: the judge stands before that screen again.
fn forget(judge: &mut Judge, browser: &Browser, items: &HashMap<String, (usize, Vec<String>)>) {
    let (item, _) = items[&browser.text(".fact")];
    let wish = judge.verdicts.remove(&item).expect("it was judged");
    let path = &items[&browser.text(".fact")].1;
    let titles =
        "return [...document.querySelectorAll('[data-side=left] title')].map(one => one.textContent)";
    let left: Vec<String> = serde_json::from_value(browser.script(titles)).unwrap();
    let first_on_left = left == *path;
    judge.left -= usize::from((wish == 0 && first_on_left) || (wish == 1 && !first_on_left));
    judge.sided -= usize::from(wish < 2);
}

#[test]
fn judging_fits_a_desk_and_a_phone_and_says_what_goes_wrong() {
    let Some(browser) = browser() else { return };
    prepare("screens.db", 20, &["--seed", "7"]);
    let (mut server, tokens) = serve("screens.db", 1, 1);
    let home = format!("http://{}/", server.address);
    browser.go(&format!("{home}#guess"));
    browser.wait("document.querySelector('.notice')");
    assert!(browser.text(".notice").contains("not the link of a judge"), "{}", browser.text(".notice"));
    browser.go("about:blank");
    let wide = "const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1); \
        return [innerWidth, document.documentElement.scrollWidth > innerWidth, wide.map(e => e.outerHTML.slice(0, 80))]";
    for (width, theme) in [(1280, "light"), (360, "dark"), (360, "light"), (1280, "dark")] {
        browser.screen(width, theme);
        browser.go(&format!("{home}#{}", tokens[0]));
        browser.wait("document.querySelectorAll('.example svg.paths').length === 4");
        assert_eq!(browser.script(wide), json!([width, false, []]), "instructions at {width}");
        browser.picture(&format!("instructions-{width}-{theme}"));
        browser.click("#begin");
        browser.wait(
            "document.querySelectorAll('.side svg.paths').length === 2 && document.querySelector('.choices')",
        );
        assert_eq!(browser.script(wide), json!([width, false, []]), "an item at {width}");
        browser.picture(&format!("item-{width}-{theme}"));
        let beside = "const [left, right] = [...document.querySelectorAll('.side')].map(e => e.getBoundingClientRect()); return left.top === right.top";
        assert_eq!(browser.script(beside), width > 500);
        browser.go("about:blank");
    }
    // A vote that cannot be sent is not lost: the page says so, and sends it when the server is back.
    browser.go(&format!("{home}#{}", tokens[0]));
    browser.click("#begin");
    browser.wait("document.body.dataset.at === '0'");
    std::thread::sleep(SETTLED);
    server.terminate();
    server.wait();
    browser.keys("1");
    browser.wait("document.querySelector('.notice')?.textContent.startsWith('Not saved')");
    assert_eq!(browser.script("return document.body.dataset.at"), "0");
    let address = server.address.clone();
    let arguments = ["judge", "serve", "screens.db", "--judges", "1", "--bind", &address, "--quiet"];
    // Meanwhile the port may be that of another program's connection, for a while.
    let began = Instant::now();
    let _server = loop {
        let started = Server::attempt(&mut systems().command(&arguments), 1);
        if let Some((started, _)) = started {
            break started;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{address} is not free again");
        std::thread::sleep(Duration::from_millis(500));
    };
    browser.click(".notice button");
    browser.wait("document.body.dataset.at === '1'");
    assert!(browser.text("#status").contains("1 of 21 judged"));
}
