//! `docs/reference/` is written by the program: the settings from their documentation and defaults, the commands from
//! their help, the HTTP API from its description. `REFERENCE=write cargo test reference` writes it again.

use crate::tool::Tool;
use ruleguider::config::Config;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compares a page with what it should say, or writes it.
fn check(name: &str, text: &str) {
    let path = root().join("docs/reference").join(name);
    if std::env::var("REFERENCE").is_ok_and(|wish| wish == "write") {
        std::fs::write(&path, text).expect("a writable page");
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(text.lines()).find(|(there, new)| there != new);
    assert!(
        page == text,
        "{name} is not current ({differs:?}); REFERENCE=write cargo test reference writes it"
    );
}

/// The sections of a configuration, and where their fields are declared.
const SECTIONS: [(&str, &str, &str); 7] = [
    ("data", "config/mod.rs", "DataConfig"),
    ("rules", "config/mod.rs", "RulesConfig"),
    ("embed", "embed/settings.rs", "Settings"),
    ("walk", "walk/config.rs", "WalkConfig"),
    ("propagate", "propagate/settings.rs", "PropagateSettings"),
    ("blend", "config/mod.rs", "BlendConfig"),
    ("eval", "config/mod.rs", "EvalConfig"),
];

/// The fields of a struct with their documentation, in one line each.
fn fields(source: &str, name: &str) -> Vec<(String, String)> {
    let start = source.find(&format!("pub struct {name} {{")).unwrap_or_else(|| panic!("no struct {name}"));
    let (mut found, mut said) = (Vec::new(), String::new());
    for line in source[start..].lines().skip(1).take_while(|line| *line != "}").map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            said.push_str(words);
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(':')) {
            found.push((field.to_owned(), std::mem::take(&mut said).trim().to_owned()));
        }
    }
    found
}

/// Documentation in a cell of a table: links of rustdoc are words.
fn cell(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").replace('|', "\\|")
}

#[test]
fn settings_are_listed() {
    let defaults = serde_json::to_value(Config::default()).expect("a configuration is plain fields");
    let mut page = String::from(
        "# Settings\n\nOf a file for `--config`, of `--set SECTION.NAME=VALUE`, and of `Learn::set`.\n\
         `run` on your own graph plans many of them by its size and the time; `config.toml` of the run has what it took.\n\
         Written from the source by a test.\n",
    );
    for (section, file, name) in SECTIONS {
        let source = std::fs::read_to_string(root().join("src").join(file)).expect("a file of the library");
        let given = defaults[section].as_object().expect("a section");
        let declared = fields(&source, name);
        write!(page, "\n## {section}\n\n| setting | default | |\n|---|---|---|\n").expect("a string");
        for (field, said) in &declared {
            assert!(!said.is_empty(), "{section}.{field} is not documented");
            let default = given.get(field).map_or_else(|| "–".to_owned(), |value| format!("`{value}`"));
            writeln!(page, "| `{section}.{field}` | {default} | {} |", cell(said)).expect("a string");
        }
        let missing: Vec<&String> =
            given.keys().filter(|key| !declared.iter().any(|(field, _)| field == *key)).collect();
        assert!(missing.is_empty(), "{section}: {missing:?} are not found in {file}");
    }
    check("settings.md", &page);
}

/// Words of the help that lists verbs.
fn verbs(help: &str) -> Vec<String> {
    let Some((_, listed)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let verbs = lines.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    verbs.map(str::to_owned).collect()
}

#[test]
fn commands_are_listed() {
    let tool = Tool::new();
    let help = |verb: &[&str]| tool.done(&[verb, &["--help"]].concat());
    let mut page = String::from(
        "# Commands\n\nWhat `ruleguider VERB --help` prints; `ruleguider manual` writes it as manual pages.\n\
         The options at the end of `ruleguider --help` hold for every verb.\nWritten by a test.\n",
    );
    let mut write = |title: &str, text: &str, depth: &str| {
        // Options that all verbs have are shown once.
        let own = match title {
            "ruleguider" => text,
            _ => text.split_once("\n      --threads <N>").map_or(text, |(own, _)| own),
        };
        let own = own.trim_end().trim_end_matches("\nOptions:").trim_end();
        write!(page, "\n{depth} {title}\n\n```text\n{own}\n```\n").expect("a string");
    };
    let all = help(&[]);
    write("ruleguider", &all, "##");
    for verb in verbs(&all) {
        let text = help(&[&verb]);
        write(&format!("ruleguider {verb}"), &text, "##");
        for step in verbs(&text) {
            write(&format!("ruleguider {verb} {step}"), &help(&[&verb, &step]), "###");
        }
    }
    check("commands.md", &page);
}

/// A schema in a few words: its type, or the name of the schema that it refers to.
fn kind(schema: &Value) -> String {
    if let Some(named) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{named}](#{})", named.to_lowercase());
    }
    let several = |list: &Vec<Value>| list.iter().map(kind).collect::<Vec<_>>().join(" or ");
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => match ["oneOf", "anyOf", "allOf"].iter().find_map(|key| schema[*key].as_array()) {
            Some(list) => several(list),
            None if schema.get("const").is_some() || schema.get("enum").is_some() => "constant".to_owned(),
            None => "any".to_owned(),
        },
    }
}

fn described(schema: &Value) -> String {
    cell(schema["description"].as_str().unwrap_or_default())
}

fn routes(page: &mut String, paths: &Map<String, Value>) {
    for (path, methods) in paths {
        for (method, route) in methods.as_object().expect("methods of a route") {
            let summary = route["summary"].as_str().unwrap_or_default();
            write!(page, "\n### {} {path}\n\n{summary}\n", method.to_uppercase()).expect("a string");
            let parameters = route["parameters"].as_array().into_iter().flatten();
            let rows: Vec<String> = parameters
                .filter(|parameter| parameter["in"] != "path")
                .map(|parameter| {
                    let must = if parameter["required"] == true { "yes" } else { "" };
                    let (name, text) = (parameter["name"].as_str().unwrap_or_default(), described(parameter));
                    format!("| `{name}` | {} | {must} | {text} |\n", kind(&parameter["schema"]))
                })
                .collect();
            if !rows.is_empty() {
                let head = "\n| parameter | type | required | |\n|---|---|---|---|\n";
                page.extend([head, &rows.concat()]);
            }
            let content = |of: &Value| -> Option<String> {
                let (media, body) = of["content"].as_object()?.iter().next()?;
                Some(format!("{} (`{media}`)", kind(&body["schema"])))
            };
            if let Some(body) = content(&route["requestBody"]) {
                write!(page, "\nBody: {body}.\n").expect("a string");
            }
            if let Some(answer) = content(&route["responses"]["200"]) {
                write!(page, "\nAnswer: {answer}.\n").expect("a string");
            }
        }
    }
}

#[test]
fn the_api_is_listed() {
    let described_in = root().join("cli/src/serve/openapi.json");
    let api: Value = serde_json::from_str(&std::fs::read_to_string(described_in).expect("the description"))
        .expect("the description is JSON");
    let mut page = String::from(
        "# The HTTP API and its JSON\n\nRoutes and schemas of [`serve`](../serve.md), from `/api/openapi.json`.\n\
         `--json` of the commands prints the same objects.\nWritten by a test.\n\n## Routes\n",
    );
    routes(&mut page, api["paths"].as_object().expect("routes"));
    page.push_str("\n## Objects\n");
    for (name, schema) in api["components"]["schemas"].as_object().expect("schemas") {
        write!(page, "\n### {name}\n").expect("a string");
        if schema["description"].is_string() {
            write!(page, "\n{}\n", described(schema)).expect("a string");
        }
        let properties = schema["properties"].as_object();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if let Some(properties) = properties.filter(|all| !all.is_empty()) {
            page.push_str("\n| key | type | always | |\n|---|---|---|---|\n");
            for (key, value) in properties {
                let always = if required.contains(&key.as_str()) { "yes" } else { "" };
                writeln!(page, "| `{key}` | {} | {always} | {} |", kind(value), described(value))
                    .expect("a string");
            }
        }
    }
    check("json.md", &page);
}
