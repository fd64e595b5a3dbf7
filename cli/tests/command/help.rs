//! The help of every verb begins with an example, and the examples work on the demonstration.

use crate::tool::Tool;

/// What is not run here: it makes the demonstration, it needs the benchmark graphs, it does not end (`serve.rs`).
const NOT_RUN: [&str; 3] = ["run", "pretrain", "serve"];

/// The example with which the help of a verb, or of a verb and its step, begins.
fn example_of(tool: &Tool, verb: &str) -> String {
    let help = tool.done(&[&verb.split(' ').collect::<Vec<_>>()[..], &["--help"]].concat());
    // It is one paragraph, which may be broken into lines.
    let paragraph: Vec<&str> = help.lines().take_while(|line| !line.is_empty()).collect();
    let example = paragraph.join(" ");
    let example = example.strip_prefix("Example: ").unwrap_or_else(|| panic!("{verb} begins with {example}"));
    assert!(example.contains(&format!("ruleguider {verb}")), "{verb}: {example}");
    example.to_owned()
}

/// Runs the commands of an example.
fn works(tool: &Tool, example: &str) {
    for command in example.split(" && ") {
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        tool.done(&[&arguments[..], &["--quiet"]].concat());
    }
}

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
        let example = example_of(&tool, verb);
        if NOT_RUN.contains(&verb) {
            continue;
        }
        works(&tool, &example);
    }
    // Of the steps of a verb, too. Some of them need a second system, a study, or verdicts of a server.
    for step in ["judge measure", "live token"] {
        works(&tool, &example_of(&tool, step));
    }
    for step in ["judge prepare", "judge serve", "judge report", "live export"] {
        example_of(&tool, step);
    }
}
