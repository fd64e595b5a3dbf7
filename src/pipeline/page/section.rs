//! The part of the page about one run.

use super::Shown;
use super::chart::{Line, Room, lines};
use super::html::{escape, table};
use crate::pipeline::answer::Step;
use crate::pipeline::metrics::Metric;
use crate::pipeline::{Example, PipelineError, RunReport, Stage, published};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What the run is called on the page.
pub fn title(run: &Shown) -> String {
    let RunReport { dataset, system, name, .. } = &run.report;
    match name {
        Some(name) => format!("{dataset}, {name}"),
        None => format!("{dataset}, {}", format!("{system:?}").to_lowercase()),
    }
}

/// Everything about one run.
pub fn section(run: &Shown, answers: usize) -> Result<String, PipelineError> {
    let mut html = format!("<h2>{}</h2>", escape(&title(run)));
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        html,
        "<p class=\"note\">Version {}, seed {}, data {}.</p>",
        escape(&run.report.version),
        run.report.seed,
        escape(run.opened.checksum().short())
    );
    html.push_str(&stages(run));
    html.push_str(&rule_share(run));
    html.push_str(&curves(&run.metrics));
    html.push_str(&relations(run));
    let reasoner = run.opened.reasoner()?;
    let examples = run.opened.examples(&*reasoner, answers)?;
    html.push_str(&examples_html(&examples));
    Ok(html)
}

fn stages(run: &Shown) -> String {
    let in_order = Stage::ALL.iter().filter_map(|stage| run.report.stages.get_key_value(stage.name()));
    let rows: Vec<Vec<String>> = in_order
        .map(|(name, stage)| {
            let memory = stage.peak_memory_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}"));
            vec![name.clone(), format!("{:.1}", stage.seconds), memory]
        })
        .chain([vec!["ranking".to_owned(), format!("{:.1}", run.report.report.seconds), "–".to_owned()]])
        .collect();
    table("Time and memory by stage", &["stage", "seconds", "peak MB"], &rows)
}

fn rule_share(run: &Shown) -> String {
    let Some(after) = run.report.rule_share else { return String::new() };
    let before = run.report.stages.get("pretraining").and_then(|stage| stage.figures["rule_share"].as_f64());
    let name = run.report.name.as_deref().unwrap_or_default();
    let theirs = published::published().row(&run.report.dataset, name, "test").and_then(|row| row.rule_share);
    let given = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{share:.1}"));
    let rows = [
        vec![
            "end of pre-training".to_owned(),
            given(before.map(|s| 100.0 * s)),
            given(theirs.map(|t| t.pretraining)),
        ],
        vec![
            "end of joint training".to_owned(),
            given(Some(100.0 * after)),
            given(theirs.map(|t| t.training)),
        ],
    ];
    table("Share of top answers whose path is a rule, per cent", &["", "ours", "published"], &rows)
}

/// Figures that are no curve: they count or are told elsewhere.
const NO_CURVE: [&str; 4] = ["batches", "valid_queries", "valid_mean_rank", "learning_rate"];

/// The lines of a chart by name, each a list of points.
type Lines<'a> = BTreeMap<&'a str, Vec<(f64, f64)>>;

/// A chart for every figure of every stage that has more than one value; those of the validation split together.
fn curves(metrics: &[Metric]) -> String {
    let mut charts: BTreeMap<(&str, &str), Lines> = BTreeMap::new();
    for metric in metrics {
        for (name, value) in &metric.figures {
            let Some(value) = value.as_f64().filter(|_| !NO_CURVE.contains(&name.as_str())) else { continue };
            let (chart, line) = match name.strip_prefix("valid_") {
                Some(line) => ("validation", line),
                None => (name.as_str(), name.as_str()),
            };
            let lines = charts.entry((&metric.stage, chart)).or_default();
            lines.entry(line).or_default().push((metric.step as f64, value));
        }
    }
    let drawn: Vec<String> = charts
        .into_iter()
        .filter(|(_, curves)| curves.values().any(|points| points.len() > 1))
        .filter_map(|((stage, chart), curves)| {
            let curves: Vec<Line> =
                curves.into_iter().map(|(name, points)| Line { name: name.to_owned(), points }).collect();
            lines(&format!("{stage}: {chart}"), "epoch", Room::Narrow, &curves)
        })
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    format!("<h3>Learning curves</h3><div class=\"charts\">{}</div>", drawn.concat())
}

fn relations(run: &Shown) -> String {
    let report = &run.report.report;
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let row = |name: &str, figures: &crate::eval::Figures| {
        vec![
            name.to_owned(),
            figures.queries.to_string(),
            percent(figures.hits_at_1),
            percent(figures.hits_at_10),
            percent(figures.mrr),
        ]
    };
    let mut rows = vec![row("to one", &report.to_one), row("to many", &report.to_many)];
    rows.extend(report.relations.iter().take(12).map(|relation| row(&relation.relation, &relation.figures)));
    table("By relation, the most frequent first", &["relation", "queries", "hits@1", "hits@10", "MRR"], &rows)
}

fn examples_html(examples: &[Example]) -> String {
    let mut html = String::from("<h3>Answers with their paths</h3><ol class=\"answers\">");
    for example in examples {
        let answer = &example.answer;
        let (class, verdict) = if example.true_in_test {
            ("true", "true in the test split")
        } else {
            ("open", "not in the data")
        };
        let _ = write!(
            html,
            "<li><strong>{}</strong> {} <strong>{}</strong> <span class=\"{class}\">({verdict})</span>{}",
            escape(&example.subject),
            escape(&example.relation),
            escape(&answer.label),
            drawn(&answer.from, &answer.path)
        );
        if let Some(rule) = &answer.rule {
            let _ = write!(
                html,
                "<div class=\"because\">{} · confidence {:.2}, {} of {}</div>",
                escape(&rule.text),
                rule.confidence,
                rule.correct,
                rule.predicted
            );
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
    html
}

/// A path drawn as boxes and arrows that wrap on a narrow screen.
fn drawn(from: &str, path: &[Step]) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut html = format!("<div class=\"path\"><span class=\"node\">{}</span>", escape(from));
    for Step { relation, inverse, label, .. } in path {
        let relation = escape(relation);
        let arrow = if *inverse { format!("←{relation}—") } else { format!("—{relation}→") };
        let _ =
            write!(html, "<span class=\"hop\">{arrow}</span><span class=\"node\">{}</span>", escape(label));
    }
    html.push_str("</div>");
    html
}
