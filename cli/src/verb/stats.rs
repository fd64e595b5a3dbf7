//! `stats`: what a data set holds.

use crate::arguments::Common;
use crate::data::Data;
use crate::{Outcome, console};
use ruleguider::graph::{Spread, Statistics};

/// Arguments of `stats`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  ruleguider stats data/wn18rr
  ruleguider stats data/wn18rr --json | jq .degree.mean
  ruleguider stats my_triples.tsv --split 0.9,0.05,0.05")]
pub struct Stats {
    #[command(flatten)]
    data: Data,
}

impl Stats {
    /// Reads and counts.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let dataset = self.data.read(common)?;
        let statistics = Statistics::new(&dataset);
        if common.json {
            console::print_json(&statistics)?;
        } else {
            console::print(&table(&statistics))?;
        }
        Ok(Outcome::Done)
    }
}

fn table(s: &Statistics) -> String {
    let in_graph = format!("{} of them in the graph", s.entities_in_graph);
    let percent = |part: usize, of: usize| format!("{:.1} % of {of}", 100.0 * part as f64 / of.max(1) as f64);
    let findings = &s.findings;
    let mut rows: Vec<(&str, String, String)> = vec![
        ("entities", s.entities.to_string(), in_graph),
        ("relations", s.relations.to_string(), String::new()),
        ("facts", s.facts.to_string(), "to walk on".to_owned()),
        ("train", s.train.to_string(), "queries to learn from".to_owned()),
        ("valid", s.valid.to_string(), String::new()),
        ("test", s.test.to_string(), format!("{} left out", s.test_left_out)),
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
