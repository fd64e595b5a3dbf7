//! A server as users run it, on a free port of this machine, and a small HTTP client that speaks to it byte by byte.

pub mod browser;

use crate::tool::Tool;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A question to the demonstration that has answers.
pub const ASKED: &str = "subject=Ilse_Hagenthal&relation=cousin_of";

/// A name with everything that addresses, markup and quoting could stumble over.
pub const ODD: &str = "a/b \"c\" <script>document.title='owned'</script> & 😀 %2F ../ é#?";

/// A name of ten thousand characters.
pub fn long() -> String {
    "long name ".repeat(999) + "long name!"
}

/// Reports about groups, software and techniques as a table with types, sources and dates.
pub fn reports() -> String {
    let groups = [
        "G0016 APT29",
        "G0034 Sandworm Team",
        "G0007 APT28",
        "G0032 Lazarus Group",
        "G0046 FIN7",
        "G0010 Turla",
        "G0049 OilRig",
        "G0094 Kimsuky",
        "G0096 APT41",
        "G0050 APT32",
        "G0069 MuddyWater",
        "G1017 Volt Typhoon",
    ];
    let software = [
        "S0002 Mimikatz",
        "S0154 Cobalt Strike",
        "S0039 Net",
        "S0100 ipconfig",
        "S0357 Impacket",
        "S0363 Empire",
    ];
    let techniques = [
        "T1566 Phishing",
        "T1566.001 Spearphishing Attachment",
        "T1071.001 Web Protocols",
        "T1003.001 LSASS Memory",
        "T1082 System Information Discovery",
        "T1059.001 PowerShell",
    ];
    let mut rows = "subject,relation,object,subject_type,object_type,publications,date\n".to_owned();
    for (i, one) in software.iter().enumerate() {
        for technique in [techniques[i], techniques[(i + 1) % 6]] {
            rows += &format!(
                "{one},implements,{technique},Software,Technique,https://example.org/{i},2020-0{}-01\n",
                i + 1
            );
        }
    }
    for (i, group) in groups.iter().enumerate() {
        for k in 0..3 {
            let used = (i * (k + 1) + k) % 6;
            let day = k + 1;
            rows += &format!("{group},uses,{},Group,Software,Report {i},2021-01-0{day}\n", software[used]);
            for d in (0..2).filter(|d| (i + k + d) % 4 > 0) {
                let technique = techniques[(used + d) % 6];
                rows += &format!("{group},performs,{technique},Group,Technique,Report {i},2022-01-0{day}\n");
            }
        }
    }
    rows
}

/// Four runs, learnt once for all tests of a program: the demonstration, a graph with odd names, one with names of wide
/// letters, and one with types and sources that rules and an embedding answer.
pub fn runs() -> &'static Tool {
    static RUNS: OnceLock<Tool> = OnceLock::new();
    RUNS.get_or_init(|| {
        let tool = Tool::new();
        tool.demonstration();
        std::fs::rename(tool.path("run"), tool.path("demo")).expect("a run can be renamed");
        let mut facts = String::new();
        for i in 0..60 {
            facts += &format!("x{i}\tlikes/it\ty{i}\n");
            if i % 6 > 0 {
                facts += &format!("x{i}\t<b>knows</b>\ty{i}\n");
            }
        }
        facts += &format!("{ODD}\tlikes/it\tÜber 😀\n{}\tlikes/it\t{ODD}\nalone\tother\tlonely\n", long());
        tool.write("odd.tsv", &facts);
        tool.done(&["run", "odd.tsv", "--quiet", "--out", "odd", "--set", "system=rules"]);
        let wide = "W".repeat(12);
        let facts = (0..40).map(|i| {
            let known = if i % 8 == 0 { "" } else { "WIDE" };
            let fact = |relation: &str| format!("{wide} {i}\t{relation}\tM{wide}M {}\n", i % 5);
            fact("NEAR") + &known.lines().map(fact).collect::<String>()
        });
        tool.write("wide.tsv", &facts.collect::<String>());
        tool.done(&["run", "wide.tsv", "--quiet", "--out", "wide", "--set", "system=rules"]);
        tool.write("reports.csv", &reports());
        let blend = "system = \"blend\"\n[blend]\nwith_walker = false\n[embed]\nmodel = \"complex\"\ndimension = 16\nepochs = 20\n[rules]\nsamples = 2000\n";
        tool.write("blend.toml", blend);
        tool.done(&["run", "reports.csv", "--quiet", "--out", "reports", "--config", "blend.toml"]);
        tool
    })
}

/// How a server is started: on a free port, with time enough for a busy machine.
pub const SERVE: [&str; 6] = ["serve", "--bind", "127.0.0.1:0", "--quiet", "--timeout-s", "300"];

/// A server that ends with the test.
pub struct Server {
    child: Child,
    /// `127.0.0.1:port`.
    pub address: String,
}

impl Server {
    /// Serves with `arguments`, which begin with runs.
    pub fn start(arguments: &[&str]) -> Self {
        let has_limit = arguments.contains(&"--timeout-s");
        let mut command = runs().command(if has_limit { &SERVE[..4] } else { &SERVE[..] });
        Self::spawn(command.args(arguments), 0).0
    }

    /// Starts `command`, which says where it listens and then `more` lines, which are given.
    #[track_caller]
    pub fn spawn(command: &mut Command, more: usize) -> (Self, Vec<String>) {
        Self::attempt(command, more).expect("the server starts")
    }

    /// The same; `None` if it does not start.
    pub fn attempt(command: &mut Command, more: usize) -> Option<(Self, Vec<String>)> {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let out = BufReader::new(child.stdout.take().expect("its stdout is ours"));
        let mut lines = out.lines().map(|line| line.expect("the server says where it is"));
        let line = lines.next().unwrap_or_default();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let server = Self { child, address };
        if server.address.is_empty() {
            return None;
        }
        let message = lines.take(more).collect();
        server.until("it is ready", || server.get("/readyz").status == 200);
        Some((server, message))
    }

    /// Ends it as a power cut would: nothing is written any more.
    pub fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.wait();
    }

    /// Waits until `holds`, and fails if that takes long.
    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn client(&self) -> Client {
        Client::to(&self.address)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.client().get(path)
    }

    /// The JSON at `path`, which has to be there.
    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// A figure of /metrics.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its state can be asked for").is_none()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        let done = Command::new("kill").arg(self.child.id().to_string()).status().expect("kill starts");
        assert!(done.success());
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it can be waited for").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// One connection, kept alive.
pub struct Client {
    pub stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    pub fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server is there");
        stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a time limit can be set");
        Self { stream: BufReader::new(stream), host: address.to_owned() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // A server may refuse before it has read everything; its answer is what counts.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, &[], b"")
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.send(&[head.as_bytes(), b"\r\n", body].concat());
        self.reply(method == "HEAD")
    }

    /// Sends queries as JSON.
    pub fn post(&mut self, path: &str, body: &Value) -> Reply {
        self.request("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the server answers");
        line.trim_end().to_owned()
    }

    /// The status with which a server refuses what it has not read whole; none where the connection was reset before the
    /// answer could be read.
    pub fn refusal(&mut self) -> Option<u16> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        line.split(' ').nth(1)?.parse().ok()
    }

    pub fn reply(&mut self, head_only: bool) -> Reply {
        let status = self.line();
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = code.unwrap_or_else(|| panic!("expected a status, found `{status}`"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if head_only || status == 304 || status == 204 {
            return reply;
        }
        if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().expect("a length")];
            self.stream.read_exact(&mut reply.body).expect("the body comes whole");
        } else if reply.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).expect("the size of a chunk");
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).expect("the chunk comes whole");
                if size == 0 {
                    break;
                }
                reply.body.extend_from_slice(&chunk[..size]);
            }
        } else {
            self.stream.read_to_end(&mut reply.body).expect("the body comes");
        }
        reply
    }
}

/// `text` as it may stand in an address.
pub fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
