//! As much of HTTP/1.1 as asking an endpoint takes: one request a connection, without TLS.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The most bytes that the body of an answer may have.
const LONGEST: u64 = 1 << 28;
/// The most bytes of all header lines.
const LONGEST_HEAD: u64 = 1 << 16;
const CONNECT: Duration = Duration::from_secs(10);
/// How long an endpoint may work on a page before it sends anything.
const ANSWER: Duration = Duration::from_secs(600);

/// Where an endpoint listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// With its port, if that is not 80: what the header `Host` says.
    pub(super) host: String,
    /// Beginning with `/`.
    pub(super) path: String,
}

impl Address {
    /// The address of `http://host[:port]/path`.
    pub(super) fn of(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let (host, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], &rest[slash..]),
            None => (rest, "/"),
        };
        let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        let is_one = !host.is_empty() && !host.contains('@') && is_clean(host) && is_clean(path);
        is_one.then(|| Self { host: host.to_owned(), path: path.to_owned() })
    }

    fn connect(&self) -> io::Result<TcpStream> {
        // `[::1]:80` and `host:80` have a port, `[::1]` and `host` have none.
        let has_port = self.host.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok())
            && (!self.host.starts_with('[') || self.host.contains("]:"));
        let place = if has_port { self.host.clone() } else { format!("{}:80", self.host) };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "a host without an address");
        for address in place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Posts `query` as a form and returns the answer.
    pub(super) fn post(&self, query: &str, accept: &str) -> io::Result<Response> {
        let body = format!("query={}", encoded(query));
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let Self { host, path } = self;
        let (length, version) = (body.len(), env!("CARGO_PKG_VERSION"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: ruleguider/{version} (reads a graph page by page)\r\n\
             Accept: {accept}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        Response::read(stream)
    }
}

/// `text` as a value of a form.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(3 * text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// What an endpoint answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    /// Without parameters, in lower case.
    pub(super) content_type: String,
    /// How many seconds it asks to wait.
    pub(super) retry_after: Option<u64>,
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl Response {
    /// Reads an answer to its end.
    ///
    /// # Errors
    /// If it is no HTTP, too long, or breaks off.
    pub(super) fn read(source: impl Read) -> io::Result<Self> {
        let mut source = BufReader::new(source);
        let mut head = (&mut source).take(LONGEST_HEAD);
        let mut status = 100;
        let mut headers = Vec::new();
        // An answer that only says to go on is followed by another.
        while status == 100 {
            let line = header_line(&mut head)?.ok_or_else(|| broken("no answer"))?;
            let number = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
            status = number.ok_or_else(|| {
                broken(format!("expected HTTP, found `{}`", line.chars().take(60).collect::<String>()))
            })?;
            headers.clear();
            while let Some(line) = header_line(&mut head)? {
                let (name, value) = line.split_once(':').ok_or_else(|| broken("a header without a colon"))?;
                headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            }
        }
        let find =
            |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let is_chunked = find("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked"));
        let length =
            find("content-length").map(|length| length.parse::<u64>().map_err(|_| broken("no length")));
        let body = match (is_chunked, length.transpose()?) {
            (true, _) => chunks(&mut source)?,
            (false, Some(length)) => exactly(&mut source, length)?,
            (false, None) => {
                let mut body = Vec::new();
                (&mut source).take(LONGEST + 1).read_to_end(&mut body)?;
                expect_short(body.len() as u64)?;
                body
            }
        };
        let kind = find("content-type").unwrap_or_default();
        Ok(Self {
            status,
            content_type: kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase(),
            retry_after: find("retry-after").and_then(|seconds| seconds.parse().ok()),
            location: find("location").map(str::to_owned),
            body,
        })
    }
}

/// The next line of a head; `None` where it ends.
fn header_line(head: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    head.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer breaks off"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    let line = String::from_utf8(line).map_err(|_| broken("a header that is no text"))?;
    Ok((!line.is_empty()).then_some(line))
}

fn expect_short(length: u64) -> io::Result<()> {
    match length > LONGEST {
        true => Err(broken("a page of more than 256 MB")),
        false => Ok(()),
    }
}

/// The next `length` bytes. A length that is claimed takes no memory before the bytes are there.
fn exactly(source: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    expect_short(length)?;
    let mut body = Vec::new();
    source.take(length).read_to_end(&mut body)?;
    match body.len() as u64 == length {
        true => Ok(body),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer breaks off")),
    }
}

/// A body in chunks, each behind its length.
fn chunks(source: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = header_line(&mut source.take(LONGEST_HEAD))?.unwrap_or_default();
        let digits = line.split(';').next().unwrap_or_default().trim();
        let length = u64::from_str_radix(digits, 16).map_err(|_| broken("a chunk without a length"))?;
        if length == 0 {
            return Ok(body);
        }
        expect_short((body.len() as u64).saturating_add(length))?;
        body.append(&mut exactly(source, length)?);
        header_line(&mut source.take(LONGEST_HEAD))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_path() {
        let of = |url: &str| Address::of(url).map(|address| (address.host, address.path));
        let some = |host: &str, path: &str| Some((host.to_owned(), path.to_owned()));
        assert_eq!(of("http://127.0.0.1:7878/query"), some("127.0.0.1:7878", "/query"));
        assert_eq!(of("http://example.org"), some("example.org", "/"));
        for wrong in [
            "https://example.org/",
            "http:///query",
            "http://a b/",
            "http://x/\r\nHost: y",
            "http://me:pw@x/",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(encoded("a b+ü?"), "a%20b%2B%C3%BC%3F");
    }

    #[test]
    fn bodies_are_whole_or_an_error() {
        let body = |text: &str| {
            Response::read(text.as_bytes()).map(|response| response.body).map_err(|error| error.to_string())
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n";
        assert_eq!(body(&format!("{head}Content-Length: 3\r\n\r\nabc more")), Ok(b"abc".to_vec()));
        assert_eq!(body(&format!("{head}\r\nto the end")), Ok(b"to the end".to_vec()));
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n");
        assert_eq!(body(&chunked), Ok(b"abcde".to_vec()));
        for broken in
            [&chunked[..chunked.len() - 8], "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", "HTTP/1.1 200"]
        {
            assert_eq!(body(broken), Err("the answer breaks off".to_owned()), "{broken}");
        }
        assert_eq!(
            body("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
            Err("a page of more than 256 MB".to_owned())
        );
        assert_eq!(body("SSH-2.0\r\n"), Err("expected HTTP, found `SSH-2.0`".to_owned()));
        let waits =
            Response::read("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 503 No\r\nRetry-After: 7\r\n\r\n".as_bytes())
                .unwrap();
        assert_eq!((waits.status, waits.retry_after), (503, Some(7)));
    }
}
