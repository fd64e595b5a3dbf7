//! `stats`: what a data set holds.

use crate::arguments::Common;
use crate::data::Data;
use crate::{Outcome, console};
use ruleguider::graph::{Likeness, RelatedRelation, RelationProfile, Spread, Statistics, TypeCount};
use ruleguider::shown::{Shown, grouped};
use std::fmt;

/// Arguments of `stats`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ruleguider stats data/wn18rr
  ruleguider stats data/wn18rr --json | jq .degree.mean
  ruleguider stats my_triples.tsv --split 0.9,0.05,0.05
  ruleguider stats data/wn18rr --relations 5
  zcat dump.nt.gz | ruleguider stats - --format nt
  ruleguider stats data/wn18rr --json | jq '.relation_table[] | select(.functional) | .relation'")]
pub struct Stats {
    #[command(flatten)]
    data: Data,
    /// Show this many relations in the table, those with most facts first; JSON has all
    #[arg(long, value_name = "N", default_value_t = 40)]
    relations: usize,
}

impl Stats {
    /// Reads and counts.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let dataset = self.data.read_incomplete(common)?;
        let statistics = Statistics::new(&dataset);
        if common.json {
            console::print_json(&statistics)?;
        } else {
            console::print(&table(&statistics))?;
            if !statistics.understood.is_empty() {
                console::print(&format_args!("\n{}", Shown(statistics.understood.join(" "))))?;
            }
            console::print(&RelationTable { all: &statistics.relation_table, most: self.relations })?;
        }
        Ok(Outcome::Done)
    }
}

fn table(s: &Statistics) -> String {
    let in_graph = format!("{} of them in the graph", s.entities_in_graph);
    let percent = |part: usize, of: usize| format!("{:.1} % of {of}", 100.0 * part as f64 / of.max(1) as f64);
    let findings = &s.findings;
    let none = |count: usize| if count == 0 { "none; needed for learning".to_owned() } else { String::new() };
    let [learnt, kept_back] = [s.counts.learnt, s.counts.kept_back].map(grouped);
    let of_which = format!("{learnt} to learn from, {kept_back} kept back to check");
    let left_out = format!("{} left out", s.test_left_out);
    let mut rows: Vec<(&str, String, String)> = vec![
        ("entities", s.entities.to_string(), in_graph),
        ("relations", s.relations.to_string(), String::new()),
        ("facts", s.counts.facts.to_string(), of_which),
        ("train", s.train.to_string(), "queries to learn from".to_owned()),
        ("valid", s.valid.to_string(), none(s.valid)),
        ("test", s.test.to_string(), Some(none(s.test)).filter(|none| !none.is_empty()).unwrap_or(left_out)),
        ("degree", mean(&s.degree), median(&s.degree)),
        ("relation degree", mean(&s.relation_degree), median(&s.relation_degree)),
        ("entity degree", mean(&s.entity_degree), median(&s.entity_degree)),
        ("test unseen", s.test_unseen.to_string(), percent(s.test_unseen, s.test + s.test_left_out)),
        ("test linked", s.test_linked.to_string(), percent(s.test_linked, s.test)),
    ];
    for (name, count) in [
        ("duplicates", findings.duplicates),
        ("valid in train", findings.valid_in_train),
        ("test in train", findings.test_in_train),
        ("test in valid", findings.test_in_valid),
        ("valid unseen", findings.valid_unseen),
    ] {
        if count > 0 {
            rows.push((name, count.to_string(), String::new()));
        }
    }
    let lines: Vec<String> = rows
        .iter()
        .map(|(name, value, note)| format!("{name:<16}{value:>10}  {note}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

fn mean(spread: &Spread) -> String {
    format!("{:.2}", spread.mean)
}

fn median(spread: &Spread) -> String {
    format!("mean; median {}", spread.median)
}

/// The columns of a terminal.
const WIDTH: usize = 80;
/// The columns for the name of a relation.
const NAME: usize = 28;

/// The profile of each relation, in the width of a terminal.
struct RelationTable<'a> {
    all: &'a [RelationProfile],
    most: usize,
}

impl fmt::Display for RelationTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.all[..self.most.min(self.all.len())];
        if shown.is_empty() {
            return Ok(());
        }
        write!(
            f,
            "\n{:<NAME$}{:>10}{:>10}{:>10}  in all splits",
            "relation", "facts", "subjects", "objects"
        )?;
        for profile in shown {
            let RelationProfile { label, facts, subjects, objects, .. } = profile;
            let name = fitted(label, NAME);
            let line = format!("{name:<NAME$}{facts:>10}{subjects:>10}{objects:>10}  {}", kind(profile));
            write!(f, "\n{}", line.trim_end())?;
            for line in likeness(profile) {
                write!(f, "\n    {}", fitted(&line, WIDTH - 4))?;
            }
        }
        if shown.len() < self.all.len() {
            let more = self.all.len() - shown.len();
            write!(f, "\n{more} more relations: --relations N shows more, --json has all")?;
        }
        Ok(())
    }
}

/// Whether a subject has one object and an object one subject.
fn kind(profile: &RelationProfile) -> &'static str {
    match (profile.functional, profile.inverse_functional) {
        (true, true) => "one to one",
        (true, false) => "functional",
        (false, true) => "inverse functional",
        (false, false) => "",
    }
}

/// The relations that it resembles, including its own inverse: a line for each.
fn likeness(profile: &RelationProfile) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut lines = Vec::new();
    let types = |types: &[TypeCount]| {
        let all: Vec<String> = types.iter().map(|one| format!("{} {}", one.entities, one.of)).collect();
        if all.is_empty() { "?".to_owned() } else { all.join(", ") }
    };
    if !(profile.subject_types.is_empty() && profile.object_types.is_empty()) {
        lines.push(format!("from {} to {}", types(&profile.subject_types), types(&profile.object_types)));
    }
    if profile.symmetric >= 0.5 {
        lines.push(format!("symmetric: {} of its facts also hold in reverse", percent(profile.symmetric)));
    }
    if profile.transitive >= 0.5 {
        lines.push(format!(
            "transitive: {} of its paths of two facts are closed by a third",
            percent(profile.transitive)
        ));
    }
    let said = |[same, implies, implied_by]: [&str; 3], other: &RelatedRelation| {
        let RelatedRelation { relation, share, share_of_other, how, .. } = other;
        let what = match how {
            Likeness::Same => same,
            Likeness::Implies => implies,
            Likeness::ImpliedBy => implied_by,
        };
        format!(
            "{what} {relation}: {} of its facts, {} of the other's",
            percent(*share),
            percent(*share_of_other)
        )
    };
    lines.extend(
        profile
            .inverse_of
            .iter()
            .map(|other| said(["inverse of", "implies the inverse of", "implied by the inverse of"], other)),
    );
    lines.extend(profile.same_as.iter().map(|other| said(["same as", "implies", "implied by"], other)));
    lines
}

/// A text on one line, with its middle left out if it is longer than `width` columns.
fn fitted(text: &str, width: usize) -> String {
    let letters: Vec<char> = Shown(text).to_string().chars().collect();
    if letters.len() < width {
        return letters.into_iter().collect();
    }
    let (before, after) = (width * 2 / 3, width - width * 2 / 3 - 2);
    let end = letters.len() - after;
    letters[..before].iter().chain(['…'].iter()).chain(&letters[end..]).collect()
}
