//! An endpoint that answers from a list, and fails as it is told to.

use super::*;
use std::io::Read;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What the endpoint does with the next request.
type Behaviour = Box<dyn FnMut(&str) -> Option<String> + Send>;

/// Serves until the test ends; every query that came is kept. `None` closes the connection without an answer.
fn serve(mut behaviour: Behaviour) -> (PathBuf, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("sparql+http://{}/query", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let query = decoded(&request(&mut stream));
            kept.lock().unwrap().push(query.clone());
            if let Some(answer) = behaviour(&query) {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    (PathBuf::from(address), asked)
}

/// The body of a request.
fn request(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    assert!(head.contains("User-Agent: ruleguider/"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn decoded(form: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), form.strip_prefix("query=").unwrap().bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

fn answer(content_type: &str, body: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// A graph of two relations, with so many statements of each, in pages as they are asked for.
fn graph(counts: [u64; 2]) -> impl FnMut(&str) -> Option<String> + Send {
    move |query| {
        if query.starts_with("SELECT DISTINCT ?p") {
            let row = |name: &str| format!("{{\"p\":{{\"type\":\"uri\",\"value\":\"http://x/{name}\"}}}}");
            let body = format!(
                "{{\"head\":{{\"vars\":[\"p\"]}},\"results\":{{\"bindings\":[{},{}]}}}}",
                row("s"),
                row("r")
            );
            return answer("application/sparql-results+json", &body);
        }
        let (name, count) = if query.contains("<http://x/r>") { ("r", counts[0]) } else { ("s", counts[1]) };
        let number = |word: &str| -> u64 {
            let rest = query.split(word).nth(1).unwrap();
            rest.split_whitespace().next().unwrap().parse().unwrap()
        };
        let (limit, offset) = (number("LIMIT "), number("OFFSET "));
        let lines: String = (offset..count.min(offset + limit))
            .map(|id| format!("<http://x/e{id}> <http://x/{name}> <http://x/e{}> .\n", id / 2))
            .collect();
        answer("application/n-triples", &lines)
    }
}

const QUICK: Patience = Patience { retries: 2, wait: Duration::from_millis(1) };

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).unwrap().lines().count()
}

#[test]
fn a_graph_comes_in_pages_and_what_has_come_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (address, asked) = serve(Box::new(graph([PAGE + 5, 3])));
    let endpoint = Endpoint::new(&address, None, None).unwrap();
    let mut heard = Vec::new();
    let file = endpoint.fetch(folder.path(), QUICK, &mut |fetched| heard.push(fetched.rows)).unwrap();
    assert_eq!(lines(&file) as u64, PAGE + 8);
    assert_eq!((heard.first(), heard.last()), (Some(&0), Some(&(PAGE + 8))));
    // The relations; two pages and an empty one; a page and an empty one.
    assert_eq!(asked.lock().unwrap().len(), 6);
    endpoint.fetch(folder.path(), QUICK, &mut |fetched| assert!(fetched.complete)).unwrap();
    assert_eq!(asked.lock().unwrap().len(), 6);
}

#[test]
fn an_endpoint_that_dies_in_the_middle_is_an_error_and_the_next_call_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (mut whole, mut requests) = (graph([PAGE + 5, 3]), 0);
    let (address, asked) = serve(Box::new(move |query| {
        requests += 1;
        match requests {
            // Once it says to wait, once it breaks off, and then it is dead for a while.
            2 => Some("HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n\r\nbusy".to_owned()),
            4 => whole(query).map(|answer| answer[..answer.len() / 2].to_owned()),
            5..=6 => None,
            _ => whole(query),
        }
    }));
    let endpoint = Endpoint::new(&address, None, None).unwrap();
    let said = endpoint.fetch(folder.path(), QUICK, &mut |_| {}).unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("{}: expected an answer of the endpoint", address.display())),
        "{said}"
    );
    assert!(
        said.contains("so far 10000 statements in 1 pages have come; the same command goes on"),
        "{said}"
    );
    assert!(said.ends_with("3 times"), "{said}");
    let file = endpoint.fetch(folder.path(), QUICK, &mut |_| {}).unwrap();
    assert_eq!(lines(&file) as u64, PAGE + 8);
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), asked.iter().filter(|query| query.contains("DISTINCT")).count()), (10, 1));
    assert!(asked[6].contains(&format!("OFFSET {PAGE}")), "{}", asked[6]);
}

#[test]
fn queries_of_ones_own_and_named_graphs_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let rows = r#"{"head":{"vars":["a","b","c"]},"results":{"bindings":[{"a":{"type":"uri","value":"http://x/a"},
        "b":{"type":"uri","value":"http://x/r"},"c":{"type":"uri","value":"http://x/b"}}]}}"#;
    let (address, asked) = serve(Box::new(move |query| match query.contains("OFFSET 1") {
        true => answer(
            "application/sparql-results+json",
            r#"{"head":{"vars":["a","b","c"]},"results":{"bindings":[]}}"#,
        ),
        false => answer("application/sparql-results+json", rows),
    }));
    let query = "SELECT ?a ?b ?c { ?a ?b ?c }".to_owned();
    let endpoint = Endpoint::new(&address, None, Some(query.clone())).unwrap();
    let file = endpoint.fetch(folder.path(), QUICK, &mut |_| {}).unwrap();
    assert_eq!(fs::read_to_string(file).unwrap(), "<http://x/a> <http://x/r> <http://x/b> .\n");
    let once = Endpoint::new(&address, None, Some(format!("{query} LIMIT 1"))).unwrap();
    assert_eq!(lines(&once.fetch(folder.path(), QUICK, &mut |_| {}).unwrap()), 1);
    assert_eq!(asked.lock().unwrap().len(), 3);
    let (address, asked) = serve(Box::new(graph([1, 1])));
    let named = Endpoint::new(&address, Some("http://x/g".to_owned()), None).unwrap();
    let file = named.fetch(folder.path(), QUICK, &mut |_| {}).unwrap();
    assert!(
        fs::read_to_string(file)
            .unwrap()
            .starts_with("<http://x/e0> <http://x/r> <http://x/e0> <http://x/g> .\n")
    );
    assert!(asked.lock().unwrap().iter().all(|query| query.contains("GRAPH <http://x/g>")));
}

#[test]
fn what_is_no_endpoint_says_what_to_do() {
    let refused = |address: &str, query: Option<&str>| {
        Endpoint::new(Path::new(address), None, query.map(str::to_owned)).unwrap_err().to_string()
    };
    assert!(refused("sparql+https://example.org/sparql", None).contains("curl -H"));
    assert!(refused("sparql+http://", None).contains("an address like sparql+http://127.0.0.1:7878/query"));
    assert!(refused("sparql+http://x/", Some("ASK {}")).contains("a SELECT or CONSTRUCT"));
    let folder = tempfile::tempdir().unwrap();
    let fetch = |behaviour: Behaviour| {
        let (address, asked) = serve(behaviour);
        let said = Endpoint::new(&address, None, None).unwrap().fetch(folder.path(), QUICK, &mut |_| {});
        let said = said.unwrap_err().to_string();
        (said, asked.lock().unwrap().len())
    };
    // What is wrong with a question is wrong again; a page that is none may be one the next time.
    let (said, times) = fetch(Box::new(|_| Some("HTTP/1.1 400 No\r\n\r\nno DISTINCT here".to_owned())));
    assert!(said.contains("HTTP 400 no DISTINCT here") && times == 1, "{said}");
    let (said, times) = fetch(Box::new(|_| answer("text/html", "<p>Welcome")));
    assert!(said.contains("found text/html, 3 times") && times == 3, "{said}");
    let (said, _) =
        fetch(Box::new(|_| Some("HTTP/1.1 302 There\r\nLocation: https://x.org/\r\n\r\n".to_owned())));
    assert!(said.contains("a redirection to https://x.org/"), "{said}");
}
