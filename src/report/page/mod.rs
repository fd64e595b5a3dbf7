//! The report: one self-contained HTML page, made from the files in run directories.

pub(super) mod chart;
pub(super) mod html;
mod section;
mod story;

use super::figure::{DRAWING, STYLE as DRAWN};
use super::published;
use crate::ask::{AskError, Model, RunReport};
use crate::eval::{BaselineFigures, Figures, Report};
use crate::progress::Metric;
use chart::{ChartWidth, Line, lines};
pub(super) use html::escape;
use html::table;
use section::{section, title};
use std::fmt::Write;

/// The style sheet shared with the program's other pages.
pub const STYLE: &str = include_str!("page.css");

/// What reports have beyond it.
const REPORT_STYLE: &str = include_str!("report.css");

/// Draws the paths of the page; without scripts they remain readable as text.
const DRAW_ALL: &str = "for (const place of document.querySelectorAll('[data-reason]')) {
  const reason = JSON.parse(place.dataset.reason);
  place.replaceChildren(drawn([pathOf(reason)], new Set([reason.goal]), () => undefined, place.clientWidth));
  place.className = 'wide';
}";

/// How many answers of each run are shown with their paths.
const ANSWERS: usize = 5;

/// A run as the page shows it.
pub struct ReportedRun {
    /// The run, open.
    pub model: Model,
    /// The result.
    pub report: RunReport,
    /// Its learning curves.
    pub metrics: Vec<Metric>,
}

/// The page about `runs`.
///
/// # Errors
/// If a run cannot be asked for its example answers.
pub fn page(runs: &[ReportedRun]) -> Result<String, AskError> {
    let mut body = String::from("<h1>RuleGuider: answers with their reasons</h1>");
    for run in runs {
        body.push_str(&section(run, ANSWERS)?);
    }
    // What only some readers look for comes last.
    body.push_str(&results(runs));
    body.push_str(&rule_quality(runs));
    let script = format!("<script type=\"module\">{DRAWING}\n{DRAW_ALL}</script>");
    Ok(whole("RuleGuider report", &body, &script))
}

/// A self-contained page with this title, body and script.
pub(super) fn whole(title: &str, body: &str, script: &str) -> String {
    let version = crate::VERSION;
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{STYLE}{REPORT_STYLE}{DRAWN}</style></head><body><main>{body}\
         <p class=\"note\">Made by ruleguider {version}.</p></main>{script}</body></html>\n",
        escape(title),
    )
}

/// The figures of all runs, each beside the published ones of the same system where there are any.
fn results(runs: &[ReportedRun]) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let given = |figure: Option<f64>| figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.1}"));
    let mut rows = Vec::new();
    let mut ours = Vec::new();
    let mut compared = false;
    for run in runs {
        ours.push(rows.len());
        let RunReport { report, dataset, seed, .. } = &run.report;
        let figures = &report.figures;
        rows.push(vec![
            title(run),
            percent(figures.hits_at_1),
            percent(figures.hits_at_3),
            percent(figures.hits_at_5),
            percent(figures.hits_at_10),
            percent(figures.mrr),
            format!("{:.0}", figures.mean_rank),
            figures.queries.to_string(),
            report.left_out.to_string(),
            seed.to_string(),
        ]);
        rows.extend(beside(report));
        let name = run.report.name.as_deref().unwrap_or_default();
        if let Some(row) = published::published().row(dataset, name, "test") {
            compared = true;
            rows.push(vec![
                format!("— {name}, as published"),
                given(row.hits_at_1),
                "–".to_owned(),
                given(row.hits_at_5),
                given(row.hits_at_10),
                given(row.mrr),
                "–".to_owned(),
                "–".to_owned(),
                "–".to_owned(),
                "–".to_owned(),
            ]);
        }
    }
    let protocols: Vec<String> = runs.iter().map(protocol).collect();
    // Runs with another protocol than the first are labelled.
    for (row, protocol) in ours.into_iter().zip(&protocols).filter(|(_, protocol)| **protocol != protocols[0])
    {
        rows[row][0] = format!("{} ({protocol})", rows[row][0]);
    }
    let protocol = format!(
        "Per cent except the mean rank. Filtered, test split, {}.",
        protocols.first().map_or("", String::as_str)
    );
    let head =
        ["", "hits@1", "hits@3", "hits@5", "hits@10", "MRR", "mean rank", "queries", "left out", "seed"];
    let mut html = format!("<h2>Results in figures</h2>{}", table(&protocol, &head, &rows));
    if compared {
        let protocol = &published::published().protocol;
        let _ = write!(
            html,
            "<p class=\"note\">Published figures: {}; {}.</p>",
            escape(&protocol.ranking),
            escape(&protocol.differs)
        );
    }
    html
}

/// The rows below a run: its tails alone where both ends were asked for, and what needs no model.
fn beside(report: &Report) -> Vec<Vec<String>> {
    let baseline =
        |of: fn(&BaselineFigures) -> &Report| report.baseline.as_ref().map(|found| of(found).figures);
    let rows = [
        ("— tails alone", report.tails),
        ("— by popularity, no model", baseline(|found| &found.popularity)),
        ("— as similar subjects, no model", baseline(|found| &found.similar)),
    ];
    let row = |(name, figures): (&str, Option<Figures>)| {
        let Figures { queries, hits_at_1, hits_at_3, hits_at_5, hits_at_10, mrr, mean_rank } = figures?;
        let shares = [hits_at_1, hits_at_3, hits_at_5, hits_at_10, mrr];
        let mut row = vec![name.to_owned()];
        row.extend(shares.map(|share| format!("{:.1}", 100.0 * share)));
        row.extend([format!("{mean_rank:.0}"), queries.to_string(), "–".to_owned(), "–".to_owned()]);
        Some(row)
    };
    rows.into_iter().filter_map(row).collect()
}

/// How a run was ranked.
fn protocol(run: &ReportedRun) -> String {
    let report = &run.report.report;
    let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    format!("{} queries, ties {}", word(&report.direction), word(&report.ties))
}

/// The rules of each run sorted by accuracy: how many there are of each quality.
fn rule_quality(runs: &[ReportedRun]) -> String {
    let curves: Vec<Line> = runs
        .iter()
        .filter(|run| !run.model.rules().is_empty())
        .map(|run| {
            let mut confidences: Vec<f64> =
                run.model.rules().iter().map(|rule| rule.counts.confidence(crate::rule::UNSEEN)).collect();
            confidences.sort_by(|a, b| b.total_cmp(a));
            let count = confidences.len() as f64;
            let share = |at: usize| 100.0 * (at as f64 + 1.0) / count;
            let points =
                confidences.iter().enumerate().map(|(at, &confidence)| (share(at), confidence)).collect();
            Line { name: format!("{} ({} rules)", run.report.dataset, confidences.len()), points }
        })
        .collect();
    match lines(
        "Rules sorted by accuracy",
        "per cent of the rules, the best first",
        ChartWidth::Wide,
        &curves,
    ) {
        Some(chart) => format!(
            "<h2>Quality of the rules</h2><p class=\"note\">Accuracy: correct / (predicted + 5), counted in the graph.</p>{chart}"
        ),
        None => String::new(),
    }
}
