//! A real Chromium, driven over HTTP by Debian's `chromium-driver` (WebDriver).

use crate::served::{Client, Server};
use crate::skip::{Need, skip};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub const ENTER: &str = "\u{E007}";
pub const TAB: &str = "\u{E004}";
pub const ESCAPE: &str = "\u{E00C}";

/// A browser takes a core: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Browser {
    driver: Child,
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
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::begin(Some(alone))
    }

    /// Another browser for another person, beside this one.
    pub fn beside(&self) -> Self {
        Self::begin(None).expect("there is one already")
    }

    fn begin(alone: Option<MutexGuard<'static, ()>>) -> Option<Self> {
        let driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = driver.ok()?;
        let lines = BufReader::new(driver.stdout.take().expect("its stdout is ours")).lines();
        let message = |line: Result<String, _>| {
            let line: String = line.ok()?;
            let (_, port) = line.split_once("successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        };
        let port = { lines }.find_map(message).expect("the driver says where it is");
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
        let mut browser = Self { driver, address, session: String::new(), _alone: alone };
        let session = browser.call("POST", "/session", &wanted);
        browser.session = format!("/session/{}", session["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let headers = [("Content-Type", "application/json"), ("Host", "localhost"), ("Connection", "close")];
        let reply = Client::to(&self.address).request(method, path, &headers, body.as_bytes());
        let message = reply.json()["value"].clone();
        assert_eq!(reply.status, 200, "{method} {path}: {message}");
        message
    }

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
    pub fn script(&self, text: &str) -> Value {
        self.post("/execute/sync", &json!({"script": text, "args": []}))
    }

    /// The text of the first element that fits.
    pub fn text(&self, selector: &str) -> String {
        let text = self.script(&format!("return document.querySelector({selector:?})?.textContent ?? ''"));
        text.as_str().unwrap_or_default().to_owned()
    }

    pub fn click(&self, selector: &str) {
        self.wait(&format!("document.querySelector({selector:?})"));
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        let id = found
            .as_object()
            .and_then(|found| found.values().next())
            .and_then(Value::as_str)
            .expect("an element");
        self.post(&format!("/element/{id}/click"), &json!({}));
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
    /// address is new and the content is old.
    #[track_caller]
    pub fn wait(&self, expression: &str) {
        let began = Instant::now();
        let holds = format!("return !document.body.classList.contains('busy') && !!({expression})");
        while self.script(&holds) != true {
            let body = || self.script("return location.href + '\\n' + document.body.innerText");
            assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {expression}: {}", body());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// A screen of that width, light or dark.
    pub fn screen(&self, width: u32, theme: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.post(
            "/goog/cdp/execute",
            &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}),
        );
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.post("/goog/cdp/execute", &json!({"cmd": "Emulation.setEmulatedMedia", "params": media}));
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
            self.call("DELETE", &self.session, &Value::Null);
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
