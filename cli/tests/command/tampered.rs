//! Files that were changed behind the program's back, and values that mean nothing: each is refused in a sentence.

use crate::served::{SERVE, Server, runs};
use crate::tool::Tool;

#[test]
fn results_that_were_changed_are_not_reported() {
    let tool = Tool::new();
    tool.demonstration();
    let path = tool.path("run/results.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mrr = text.lines().find(|line| line.contains("\"mrr\"")).unwrap();
    std::fs::write(&path, text.replacen(mrr, "    \"mrr\": 0.9999,", 1)).unwrap();
    let message = tool.refused(&["report", "run", "--out", "page"]);
    assert!(message.contains("results.json: does not match its checksum"), "{message}");
    // As the message says, the same command makes it again.
    tool.done(&["run", "--out", "run", "--set", "system=rules", "--quiet"]);
    tool.done(&["report", "run", "--out", "page", "--quiet"]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "set", "--quiet"]);
    for nonsense in
        ["embed.epsilon=-1", "embed.epsilon=nan", "embed.decay=nan", "embed.decay=-1", "embed.decay=2"]
    {
        let message = tool.refused(&["run", "set", "--out", "run", "--set", nonsense]);
        assert!(
            message.contains(nonsense.split_once('=').unwrap().0.trim_start_matches("embed.")),
            "{message}"
        );
    }
    let message = tool.refused(&["generate", "family", "--people", "18446744073709551615", "--out", "all"]);
    assert!(message.contains("at most 4294967295 people"), "{message}");
    let endless = "18446744073709551615";
    let message = tool.refused(&["mine", "set", "--samples", endless, "--out", "rules.tsv"]);
    assert!(message.contains("1000000000000"), "{message}");
    let message = tool.refused(&["run", "set", "--out", "run", "--set", "rules.samples=2000000000000"]);
    assert!(message.contains("samples") && message.contains("at most 1000000000000"), "{message}");
    tool.write("twice.csv", "head,relation,tail,tail\na,r,b,c\n");
    let message = tool.refused(&["stats", "twice.csv"]);
    assert!(message.contains("twice.csv"), "{message}");
}

#[test]
fn an_empty_file_of_queries_is_said_to_be_empty() {
    let tool = Tool::new();
    tool.demonstration();
    tool.write("none.tsv", "\n\n");
    let output = tool.run(&["predict", "run", "--file", "none.tsv"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("none.tsv: has no queries"));
}

#[test]
fn another_label_is_another_answer() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "set", "--quiet"]);
    tool.done(&["run", "set", "--out", "run", "--set", "system=rules", "--quiet"]);
    let labels = std::fs::read_to_string(tool.path("set/entity_labels.tsv")).unwrap();
    let person = labels.split('\t').next().unwrap().to_owned();
    let path = format!("/api/v1/run/entity?id={person}");
    let tag = || {
        let server = Server::spawn(tool.command(&SERVE).arg("run"), 0).0;
        server.get(&path).header("etag").unwrap().to_owned()
    };
    let before = tag();
    assert_eq!(tag(), before);
    let changed = labels.replacen(&format!("{person}\t"), &format!("{person}\tanother "), 1);
    std::fs::write(tool.path("set/entity_labels.tsv"), changed).unwrap();
    // A run has its own labels; the same command takes over new ones, once they are known to be meant.
    assert_eq!(tag(), before);
    let again = ["run", "set", "--out", "run", "--set", "system=rules", "--quiet"];
    let message = tool.refused(&again[..again.len() - 1]);
    assert!(
        message.contains("entity_labels.tsv: ") && message.contains("remove splits.sha256 if you changed"),
        "{message}"
    );
    std::fs::remove_file(tool.path("set/splits.sha256")).unwrap();
    tool.done(&again);
    assert_ne!(tag(), before);
}

#[test]
fn an_empty_label_leaves_the_name_to_be_read() {
    let tool = Tool::new();
    std::fs::create_dir(tool.path("set")).unwrap();
    tool.write("set/train.tsv", "e1\tr\te2\ne2\tr\te3\ne3\tr\te1\n");
    tool.write("set/entity_labels.tsv", "e1\t\ne2\tTwo\n");
    let output = tool.run(&["ask", "set", "e1", "r", "--quiet"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.starts_with("e1's r is"), "{printed}");
}

#[test]
fn requests_that_mean_nothing_are_refused_as_problems() {
    let server = Server::start(&["demo"]);
    for path in [
        "/api/v1/demo/facts?relation=cousin_of&min_probability=nan",
        "/api/v1/demo/rules?head=cousin_of&min_confidence=NaN",
        "/api/v1/%F0%28%8C%28/rules?head=cousin_of",
    ] {
        let reply = server.get(path);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (400, Some("application/problem+json")),
            "{path}"
        );
    }
    assert_eq!(server.get("/api/v1/demo/rules?head=").status, 404);
    let message = runs().refused(&["serve", "demo", "--cors", "https://a/"]);
    assert!(message.contains("expected a scheme and a host"), "{message}");
}
