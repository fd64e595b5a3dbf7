//! The documents as a reader meets them: every page is in the book, and every link leads somewhere.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files of a folder, not of those within.
fn pages(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("the folder is part of the repository");
    let mut pages: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

/// The text without blocks and pieces of code, in which brackets are no links.
fn prose(text: &str) -> String {
    let mut within = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            within = !within;
        } else if !within {
            let outside = line.split('`').step_by(2);
            prose.extend(outside.chain(["\n"]));
        }
    }
    prose
}

/// Where the links `[text](target)` of a page lead.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        let end = rest.find(')').unwrap_or(rest.len());
        found.push(rest[..end].to_owned());
    }
    found
}

/// The names by which headings are linked to, as GitHub makes them.
fn anchors(text: &str) -> HashSet<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let folders = [
        "",
        "docs",
        "docs/reference",
        "results",
        "benches",
        "fuzz",
        "weights",
        "release",
        "python",
        "examples/slurm",
    ];
    let mut broken = Vec::new();
    for page in folders.into_iter().flat_map(pages) {
        let text = fs::read_to_string(&page).unwrap();
        for target in targets(&prose(&text)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let linked =
                if file.is_empty() { page.clone() } else { page.parent().expect("a file").join(file) };
            let there = match anchor {
                "" => linked.exists(),
                anchor => fs::read_to_string(&linked).is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !there {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let linked: HashSet<String> = targets(&summary).into_iter().collect();
    let docs = root().join("docs");
    let there: HashSet<String> = [pages("docs"), pages("docs/reference")]
        .concat()
        .iter()
        .map(|path| path.strip_prefix(&docs).expect("a page of docs").to_string_lossy().into_owned())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    let mut only_one: Vec<&String> = linked.symmetric_difference(&there).collect();
    only_one.sort();
    assert!(only_one.is_empty(), "in docs/SUMMARY.md or in docs/, but not in both: {only_one:?}");
}

#[test]
fn a_broken_link_would_be_found() {
    let text = "see [a](b.md#c-d) and `x[0](y)`\n```\n[no](link)\n```\n# C, d";
    assert_eq!(targets(&prose(text)), ["b.md#c-d"]);
    assert!(anchors(text).contains("c-d"));
}
