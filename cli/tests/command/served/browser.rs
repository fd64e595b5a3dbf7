//! A real Chromium, driven over HTTP by Debian's `chromium-driver` (WebDriver).
//!
//! Machines that run tests are busy, so nothing here counts on time: what a page does by and by is waited for, and what
//! failed because the page moved under it is tried again.

use crate::served::{Client, Server};
use crate::skip::{Need, skip};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub const ENTER: &str = "\u{E007}";
pub const TAB: &str = "\u{E004}";
pub const ESCAPE: &str = "\u{E00C}";

/// How long anything is waited for. Only a test that fails takes as long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Waits in a script until the page was drawn twice, or for half a second where it is not drawn: in a window behind another.
const FRAMES: &str = "const frame = () => new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 250); }); \
    await frame(); await frame();";

/// Whoever holds it has the only browser.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct Browser {
    driver: Child,
    /// Open as long as the driver may write to it.
    _stdout: BufReader<ChildStdout>,
    address: String,
    session: String,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// A browser, a server of `arguments` and the address of its page; `None`, which is noted, where there is no browser.
pub fn started(arguments: &[&str]) -> Option<(Browser, Server, String)> {
    let Some(browser) = Browser::start() else {
        skip(Need::Chromium, "apt-get install chromium chromium-driver");
        return None;
    };
    let server = Server::start(arguments);
    let home = format!("http://{}/", server.address);
    Some((browser, server, home))
}

impl Browser {
    /// A browser without a window; `None` where there is no driver.
    pub fn start() -> Option<Self> {
        // A browser takes a core: one at a time.
        Self::begin(Some(alone()))
    }

    /// Another browser for another person, beside this one.
    pub fn beside(&self) -> Self {
        Self::begin(None).expect("there is one already")
    }

    fn begin(alone: Option<MutexGuard<'static, ()>>) -> Option<Self> {
        let driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = driver.ok()?;
        let mut stdout = BufReader::new(driver.stdout.take().expect("its stdout is ours"));
        let message = |line: Result<String, _>| {
            let line: String = line.ok()?;
            let (_, port) = line.split_once("successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        };
        let port = stdout.by_ref().lines().find_map(message).expect("the driver says where it is");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let address = format!("127.0.0.1:{port}");
        let mut browser = Self { driver, _stdout: stdout, address, session: String::new(), _alone: alone };
        // On a busy machine, a browser may not be up in the time that the driver gives it.
        let session = browser.attempt("POST", "/session", &wanted);
        let session = session.unwrap_or_else(|_| browser.call("POST", "/session", &wanted));
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    /// What the driver answers, or what it complains about.
    fn attempt(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let headers = [("Content-Type", "application/json"), ("Host", "localhost"), ("Connection", "close")];
        let reply = Client::to(&self.address).request(method, path, &headers, body.as_bytes());
        let message = reply.json()["value"].clone();
        if reply.status == 200 { Ok(message) } else { Err(message.to_string()) }
    }

    #[track_caller]
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let answered = self.attempt(method, path, body);
        answered.unwrap_or_else(|complaint| panic!("{method} {path}: {complaint}"))
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), body)
    }

    pub fn go(&self, address: &str) {
        self.post("/url", &json!({"url": address}));
    }

    /// The window that is driven.
    pub fn window(&self) -> String {
        let handle = self.call("GET", &format!("{}/window", self.session), &Value::Null);
        handle.as_str().expect("a window").to_owned()
    }

    /// Opens another window and turns to it.
    pub fn new_window(&self) -> String {
        let opened = self.post("/window/new", &json!({"type": "window"}));
        let handle = opened["handle"].as_str().expect("a window").to_owned();
        self.turn_to(&handle);
        handle
    }

    pub fn turn_to(&self, window: &str) {
        self.post("/window", &json!({"handle": window}));
    }

    /// Closes the window that is driven.
    pub fn close(&self) {
        self.call("DELETE", &format!("{}/window", self.session), &Value::Null);
    }

    pub fn back(&self) {
        self.post("/back", &json!({}));
    }

    pub fn forward(&self) {
        self.post("/forward", &json!({}));
    }

    /// What a script gives, which ends with `return …`.
    #[track_caller]
    pub fn script(&self, text: &str) -> Value {
        self.post("/execute/sync", &json!({"script": text, "args": []}))
    }

    /// The text of the first element that fits.
    pub fn text(&self, selector: &str) -> String {
        let text = self.script(&format!("return document.querySelector({selector:?})?.textContent ?? ''"));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element that fits, once it stands still.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.wait(&format!("document.querySelector({selector:?})"));
        let began = Instant::now();
        while let Err(complaint) = self.try_click(selector) {
            assert!(began.elapsed() < PATIENCE, "{selector} cannot be clicked: {complaint}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Clicks, unless the element has gone, moves, or is under another one. Then nothing was clicked.
    fn try_click(&self, selector: &str) -> Result<(), String> {
        let moves = format!(
            "return (async () => {{ const place = () => JSON.stringify(document.querySelector({selector:?})?.getBoundingClientRect()); \
             const before = place(); {FRAMES} return before !== place(); }})()"
        );
        let path = format!("{}/execute/sync", self.session);
        if self.attempt("POST", &path, &json!({"script": moves, "args": []}))? == true {
            return Err("it moves".to_owned());
        }
        let wanted = json!({"using": "css selector", "value": selector});
        let found = self.attempt("POST", &format!("{}/element", self.session), &wanted)?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let click = format!("{}/element/{}/click", self.session, id.expect("an element"));
        self.attempt("POST", &click, &json!({})).map(drop)
    }

    /// Presses keys where the focus is.
    pub fn keys(&self, text: &str) {
        let pressed: Vec<Value> = text
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})))
            .collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": pressed}]}));
    }

    /// Waits until the expression holds and the page is not on its way to another view: until that one is there, the
    /// address is new and the content is old. An expression about what is not there yet fails, and does not hold.
    #[track_caller]
    pub fn wait(&self, expression: &str) {
        let began = Instant::now();
        let holds = format!(
            "try {{ return !document.body.classList.contains('busy') && !!({expression}); }} catch {{ return false; }}"
        );
        let body = json!({"script": holds, "args": []});
        // Between two pages there is no place where a script could run.
        while self.attempt("POST", &format!("{}/execute/sync", self.session), &body) != Ok(json!(true)) {
            let shown = || {
                self.script("return location.href + '\\n' + document.activeElement?.outerHTML.slice(0, 200) + '\\n' + document.body?.innerText")
            };
            assert!(began.elapsed() < PATIENCE, "waited in vain for {expression}: {}", shown());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until every drawing that can be seen is made and nothing moves any more.
    #[track_caller]
    pub fn still(&self) {
        // What is folded has a width, too, but is not drawn.
        self.wait("[...document.querySelectorAll('.wide')].every(one => one.childNodes.length > 0 || one.clientWidth === 0 || one.closest('details:not([open])'))");
        let moves = format!(
            "return (async () => {{ const place = () => [scrollX, scrollY, document.documentElement.scrollHeight].join(); \
             const before = place(); {FRAMES} return before !== place(); }})()"
        );
        let began = Instant::now();
        while self.script(&moves) == true {
            assert!(began.elapsed() < PATIENCE, "the page does not come to rest");
        }
    }

    /// A screen of that width, light or dark. The page has been laid out for it then.
    #[track_caller]
    pub fn screen(&self, width: u32, theme: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}),
        );
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.post("/goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": media}));
        // A phone shows a page that does not speak of phones, such as the empty one, as wide as on a desk.
        self.wait(&format!("innerWidth === {width} || !document.querySelector('meta[name=viewport]')"));
        self.script(&format!("return (async () => {{ {FRAMES} }})()"));
    }

    /// Shows the page as it would be printed.
    pub fn print_media(&self) {
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}}),
        );
    }

    /// The page as a PNG in the folder that `RULEGUIDER_SCREENSHOTS` names, if it does.
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("RULEGUIDER_SCREENSHOTS") else { return };
        let picture = self.call("GET", &format!("{}/screenshot", self.session), &Value::Null);
        let bytes = from_base64(picture.as_str().expect("a picture"));
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), bytes)
            .expect("it can be written");
    }

    /// Fails if anything came to the console, or anything was fetched from elsewhere.
    #[track_caller]
    pub fn is_content(&self) {
        let message = self.post("/se/log", &json!({"type": "browser"}));
        // What the server refuses is said there too, and is what the test asked for.
        let wrong = |line: &&Value| {
            !line["message"]
                .as_str()
                .unwrap_or_default()
                .contains("the server responded with a status of 404")
        };
        let message: Vec<&Value> = message.as_array().expect("a list").iter().filter(wrong).collect();
        assert!(message.is_empty(), "{message:?}");
        let elsewhere = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin + '/'))";
        assert_eq!(self.script(elsewhere), json!([]));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            let _ = self.attempt("DELETE", &self.session, &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(digit).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let joined = four.iter().fold(0, |sum, digit| sum << 6 | digit) << (6 * (4 - four.len()));
        bytes.extend_from_slice(&joined.to_be_bytes()[1..four.len()]);
    }
    bytes
}
