//! The help of every verb begins with an example, and the examples work on the demonstration.

use crate::tool::Tool;

/// What is not run here: it makes the demonstration, it needs the benchmark graphs, it does not end (`serve.rs`).
const NOT_RUN: [&str; 3] = ["run", "pretrain", "serve"];

#[test]
fn the_help_of_every_verb_begins_with_an_example_that_works() {
    let tool = Tool::new();
    tool.demonstration();
    std::fs::create_dir(tool.path("runs")).expect("a folder for the run");
    std::fs::rename(tool.path("run"), tool.path("runs/demonstration")).expect("a run can be renamed");
    let help = tool.done(&["--help"]);
    let listed = help.split_once("Commands:\n").expect("verbs are listed").1;
    let verbs =
        listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let verbs: Vec<&str> = verbs.filter(|verb| *verb != "help").collect();
    assert!(verbs.len() >= 19 && NOT_RUN.iter().all(|verb| verbs.contains(verb)), "{verbs:?}");
    for verb in verbs {
        // The example is one paragraph, which may be broken into lines.
        let help = tool.done(&[verb, "--help"]);
        let paragraph: Vec<&str> = help.lines().take_while(|line| !line.is_empty()).collect();
        let example = paragraph.join(" ");
        let example =
            example.strip_prefix("Example: ").unwrap_or_else(|| panic!("{verb} begins with {example}"));
        assert!(example.contains(&format!("ruleguider {verb}")), "{verb}: {example}");
        if NOT_RUN.contains(&verb) {
            continue;
        }
        for command in example.split(" && ") {
            let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
            tool.done(&[&arguments[..], &["--quiet"]].concat());
        }
    }
}
