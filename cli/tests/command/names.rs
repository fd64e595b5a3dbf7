//! Names as they come: with control characters, tabs and line breaks, of any length, called like an inverse.

use crate::tool::{Tool, text};

const RED: &str = "\u{1b}[31mred\u{1b}[0m";

/// A run by rules over a graph whose names hold what a terminal would take for its own.
fn odd_run(tool: &Tool) {
    let csv: String = (0..84)
        .map(|i| {
            let (a, b) = (i % 12, i % 7);
            format!("\"{RED}\n{a}\",\"is\r\nnear\",\"b\t{b}\"\n\"b\t{b}\",\"is\tbeside\",\"{RED}\n{a}\"\n")
        })
        .collect();
    let path = tool.write("odd.csv", &csv);
    // Rules over such names are written and read again.
    tool.done(&["run", text(&path), "--quiet", "--out", "run", "--set", "system=rules"]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let tool = Tool::new();
    odd_run(&tool);
    let subject = format!("{RED}\n3");
    let shown = tool.done(&["predict", "run", &subject, "is\r\nnear"]);
    assert!(!shown.contains(['\u{1b}', '\r', '\t']), "{shown:?}");
    // A name of words is said as words.
    assert!(shown.starts_with("\\u{1b}[31mred\\u{1b}[0m\\n3 is near ?\n"), "{shown:?}");
    let json = tool.json(&["predict", "run", &subject, "is\r\nnear"]);
    assert_eq!(json["subject"], subject.as_str());
    assert_eq!(json["relation"], "is\r\nnear");
    let object = json["answers"][0]["entity"].as_str().unwrap();
    let shown = tool.done(&["explain", "run", &subject, "is\r\nnear", object]);
    assert!(!shown.contains(['\u{1b}', '\r', '\t']) && shown.contains("Rules that predict it"), "{shown:?}");
    let shown = tool.done(&["evaluate", "run", "--quiet"]);
    assert!(!shown.contains(['\u{1b}', '\r', '\t']) && shown.contains("is\\r\\nnear"), "{shown:?}");
    let message = tool.refused(&["predict", "run", &format!("{RED} nobody"), "is\r\nnear"]);
    assert!(!message.contains('\u{1b}') && message.contains("\\u{1b}[31mred"), "{message:?}");
    tool.done(&["convert", "odd.csv", "copy.csv", "--quiet"]);
    assert!(std::fs::read_to_string(tool.path("copy.csv")).unwrap().contains(RED));
}

#[test]
fn a_long_name_is_not_echoed_whole() {
    let tool = Tool::new();
    tool.demonstration();
    let long = "x".repeat(100_000);
    for arguments in [
        &["predict", "run", &long, "uncle_of"][..],
        &["predict", "run", "Ilse_Hagenthal", &long],
        &["run", "--set", &long],
        &["stats", &long],
        &[&long],
    ] {
        let message = tool.refused(arguments);
        assert!(message.len() < 3000, "{}", message.len());
    }
    tool.write("queries.tsv", &format!("\n{long}\tuncle_of\nIlse_Hagenthal\tcousin_of\n"));
    let rows = tool.done(&["predict", "run", "--file", "queries.tsv", "--quiet"]);
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    // Rows say which line they answer.
    assert_eq!((&rows[0]["line"], &rows[1]["line"]), (&2.into(), &3.into()));
    assert!(rows[0]["error"].as_str().unwrap().len() < 1000);
    assert_eq!(rows[0]["subject"], long.as_str());
    assert!(!rows[1]["answers"].as_array().unwrap().is_empty());
}

#[test]
fn a_relation_called_like_an_inverse() {
    let tool = Tool::new();
    let facts: String =
        (0..60).map(|i| format!("a{a}\tinv\tb{b}\nb{b}\t~inv\ta{a}\n", a = i % 12, b = i % 7)).collect();
    let path = tool.write("facts.tsv", &facts);
    tool.done(&["run", text(&path), "--quiet", "--out", "run", "--set", "system=rules"]);
    let output = tool.run(&["predict", "run", "b1", "~inv", "--json"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("`~inv` is a relation of its own here; the inverse of `inv` is `inv^-1`"),
        "{message}"
    );
    let asked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&asked["relation"], &asked["inverse"]), (&"~inv".into(), &false.into()));
    let asked = tool.json(&["predict", "run", "b1", "inv^-1"]);
    assert_eq!((&asked["relation"], &asked["inverse"]), (&"inv".into(), &true.into()));
}

#[test]
fn rule_files_that_are_no_text() {
    let tool = Tool::new();
    tool.done(&["generate", "family", "--people", "60", "--out", "data", "--quiet"]);
    let good = "2\t1\t0.5\tparent_of(X,Y) <= sibling_of(Y,X)\n";
    std::fs::write(tool.path("rules.tsv"), [good.as_bytes(), b"2\t1\t0.5\tparent_of(X,\xff) <= \n"].concat())
        .unwrap();
    let message = tool.refused(&["apply", "data", "--rules", "rules.tsv"]);
    assert!(message.contains("rules.tsv:2:21: expected UTF-8 text, found the byte 0xff"), "{message}");
    tool.write("rules.tsv", "2\t1\t0.5\tparent_of(02154508,Y) <= sibling_of(Y,02154508)\n");
    let message = tool.refused(&["apply", "data", "--rules", "rules.tsv"]);
    assert!(message.contains("rules.tsv:1:19: the data has no entity `02154508`"), "{message}");
    tool.write("rules.tsv", &format!("2\t1\t0.5\t{}\n", "nobody(X,".repeat(1_000_000)));
    let message = tool.refused(&["apply", "data", "--rules", "rules.tsv"]);
    assert!(message.contains("rules.tsv:1:9: the data has no relation `nobody`"), "{message}");
}
