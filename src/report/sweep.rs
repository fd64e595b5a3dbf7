//! What people read about a search: one page with the table, every trial as a line through its settings, and what mattered.

use super::page::chart::number;
use super::page::html::{escape, table};
use super::page::whole;
use crate::sweep::{Dimension, Domain, Mattered, SweepReport, TrialRow, TrialState};
use std::fmt::Write;

/// The height of the drawing, and its margins, in its own units.
const HEIGHT: f64 = 380.0;
const SIDE: f64 = 64.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 20.0;
/// The distance between two axes.
const AXIS: f64 = 96.0;
/// The most values of a list that are written beside an axis; more would overlap.
const MOST_VALUES: usize = 12;
/// The length of a bar that explains everything, in rem.
const LONGEST_BAR: f64 = 16.0;

/// The style of the drawing, beside the one that all pages share.
const STYLE: &str = "<style>.trials polyline { fill: none; stroke: currentColor; stroke-width: 1.6; }
.trials polyline:hover { stroke-width: 4; stroke-opacity: 1; } .trials .first { stroke-width: 3.5; }
.trials .name { fill: var(--ink); font: 600 12px system-ui, sans-serif; } .trials .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
tr.best td { font-weight: 600; } .bars dd { white-space: normal; }</style>";

/// The page about a search.
pub fn page(report: &SweepReport) -> String {
    let SweepReport { dataset, system, space, search, seed, trials, .. } = report;
    let mut body = format!(
        "{STYLE}<h1>{} on {}: settings by validation</h1><p class=\"note\">{} trials, {} search of the space {}, seed {seed}. \
         Chosen by the MRR on the validation split; the test split was not read.</p>",
        escape(system),
        escape(dataset),
        trials.len(),
        search.name(),
        escape(space),
    );
    body.push_str(&beginning(report));
    body.push_str(&lines(report));
    body.push_str(&what_mattered(report));
    body.push_str(&all(report));
    whole(&format!("RuleGuider sweep: {system} on {dataset}"), &body, "")
}

/// The best trial, and notes on the search.
fn beginning(report: &SweepReport) -> String {
    let mut html = String::from("<h2>The best</h2>");
    // Writing to a string cannot fail, here and below.
    match &report.best {
        Some(best) => {
            let settings: Vec<String> =
                best.settings.iter().map(|(key, value)| escape(&format!("{key} = {value}"))).collect();
            let _ = write!(
                html,
                "<p>Trial {}: MRR <strong>{:.4}</strong> on the validation split.</p><pre class=\"wide\">{}</pre>\
                 <p class=\"note\">As a configuration: {}</p>",
                best.trial,
                best.mrr,
                settings.join("\n"),
                escape(&best.config.display().to_string())
            );
        }
        None => html.push_str("<p>No trial is finished yet.</p>"),
    }
    let mut notes = Vec::new();
    if !report.complete {
        notes.push("The search was interrupted; run the same command again to resume.".to_owned());
    }
    if let Some(grid) = report.grid.filter(|grid| *grid > (report.trials.len() + report.unfit) as u128) {
        notes.push(format!("The grid has {grid} points; the trials are a random sample of them."));
    }
    if report.unfit > 0 {
        notes.push(format!(
            "{} points were left out: their settings are not a valid configuration.",
            report.unfit
        ));
    }
    if report.rungs.len() > 1 {
        let parts: Vec<String> = report.rungs.iter().map(|part| number(100.0 * part)).collect();
        notes.push(format!(
            "Successive halving: after {} per cent of the epochs the worse half was stopped.",
            parts[..parts.len() - 1].join(", ")
        ));
    }
    for note in &notes {
        let _ = write!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    html
}

/// Every trial as a line through its settings to its MRR.
fn lines(report: &SweepReport) -> String {
    let rows: Vec<(&TrialRow, f64)> = report.trials.iter().filter_map(|row| Some((row, row.mrr?))).collect();
    let low = rows.iter().map(|row| row.1).fold(f64::INFINITY, f64::min);
    let high = rows.iter().map(|row| row.1).fold(f64::NEG_INFINITY, f64::max);
    if rows.is_empty() {
        return String::new();
    }
    let axes = &report.searched.dimensions;
    let width = 2.0 * SIDE + AXIS * axes.len() as f64;
    // At a larger scale, letters would be larger than the page's text.
    let widest = 1.4 * width;
    let mut svg = format!(
        "<h2>Trials</h2><p class=\"caption\">Each line is a trial, from its settings on the left to its MRR on the right; \
         the best is thick, those that were stopped early are grey.</p><div class=\"wide\"><svg class=\"whole trials\" \
         style=\"min-width: {width}px; max-width: {widest}px\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"Parallel coordinates of all trials\">"
    );
    let one_group = axes.iter().all(|axis| group(&axis.key) == group(&axes[0].key));
    for (at, axis) in axes.iter().enumerate() {
        let name = if one_group { axis.key.rsplit('.').next().unwrap_or(&axis.key) } else { &axis.key };
        svg.push_str(&axis_at(at, name, &ticks(&axis.domain)));
    }
    let figures = [(0.0, format!("{low:.4}")), (1.0, format!("{high:.4}"))];
    svg.push_str(&axis_at(axes.len(), "MRR", if high > low { &figures } else { &figures[..1] }));
    // The best come last, so that they lie on top.
    for (row, mrr) in rows.iter().rev() {
        let height = if high > low { (mrr - low) / (high - low) } else { 0.0 };
        svg.push_str(&line(report, row, axes, height));
    }
    svg + "</svg></div>"
}

fn group(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

/// The ticks of an axis: positions and labels.
fn ticks(domain: &Domain) -> Vec<(f64, String)> {
    match domain {
        Domain::Values(values) => {
            let every = values.len().div_ceil(MOST_VALUES).max(1);
            let marked = values.iter().step_by(every);
            marked
                .filter_map(|value| Some((domain.place(value)?, value.to_string().replace('"', ""))))
                .collect()
        }
        Domain::Bounds { from, to, .. } => vec![(0.0, from.to_string()), (1.0, to.to_string())],
    }
}

fn x_of(axis: usize) -> f64 {
    SIDE + AXIS * axis as f64
}

fn y_of(place: f64) -> f64 {
    HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM)
}

fn axis_at(at: usize, name: &str, ticks: &[(f64, String)]) -> String {
    let x = x_of(at);
    // Neighbouring names are on different lines, so that long ones have room.
    let y = if at.is_multiple_of(2) { 14.0 } else { 30.0 };
    let mut svg = format!(
        "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
         <text class=\"name\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>",
        y_of(1.0),
        y_of(0.0),
        escape(name)
    );
    for (place, text) in ticks {
        let _ = write!(
            svg,
            "<text class=\"tick halo\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 5.0,
            y_of(*place) + 4.0,
            escape(text)
        );
    }
    svg
}

fn line(report: &SweepReport, row: &TrialRow, axes: &[Dimension], height: f64) -> String {
    let mut points: Vec<String> = Vec::new();
    for (at, axis) in axes.iter().enumerate() {
        if let Some(place) = row.point.get(&axis.key).and_then(|value| axis.domain.place(value)) {
            points.push(format!("{:.1},{:.1}", x_of(at), y_of(place)));
        }
    }
    points.push(format!("{:.1},{:.1}", x_of(axes.len()), y_of(height)));
    let is_best = report.best.as_ref().is_some_and(|best| best.trial == row.trial);
    let class = match row.state {
        _ if is_best => "c1 first",
        TrialState::Finished => "c0",
        _ => "c5",
    };
    let settings: Vec<String> = row.point.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!(
        "<polyline class=\"{class}\" stroke-opacity=\"{:.2}\" points=\"{}\"><title>{}</title></polyline>",
        if is_best { 1.0 } else { 0.25 + 0.65 * height },
        points.join(" "),
        escape(&format!("trial {}: MRR {:.4}\n{}", row.trial, row.mrr.unwrap_or(0.0), settings.join("\n")))
    )
}

fn what_mattered(report: &SweepReport) -> String {
    if report.mattered.is_empty() {
        return String::new();
    }
    let by = match report.rungs.len() {
        1 => "",
        _ => " Trials are compared by their MRR at the end of the first rung.",
    };
    let mut html = format!(
        "<h2>What mattered</h2><p class=\"note\">The share of the variance of the MRR that a setting explains, if trials \
         with similar values form a group: the correlation ratio η². Numbers within bounds form three groups of equal size. \
         The second number is what chance alone explains on average, (groups − 1) / (trials − 1): a bar that is not much \
         longer means nothing.{by}</p><dl class=\"bars\">"
    );
    for Mattered { setting, explained, by_chance, groups } in &report.mattered {
        let groups: Vec<String> = groups
            .iter()
            .map(|group| format!("{}: {:.4} ({})", group.values, group.mrr, group.trials))
            .collect();
        let _ = write!(
            html,
            "<dt>{}</dt><dd><span class=\"bar c0\" style=\"width:{:.2}rem\"></span>η² {explained:.2}, chance {by_chance:.2}\
             <br><span class=\"because\">mean MRR (trials) at {}</span></dd>",
            escape(setting),
            LONGEST_BAR * explained,
            escape(&groups.join("; "))
        );
    }
    html + "</dl>"
}

/// The table of all trials.
fn all(report: &SweepReport) -> String {
    let keys: Vec<&str> = report.settings().collect();
    let mut head = vec!["trial", "MRR", "hits@1", "hits@3", "hits@10", "epochs", "seconds", "state"];
    head.extend(&keys);
    let figure = |figure: Option<f64>| figure.map_or("–".to_owned(), |figure| format!("{figure:.4}"));
    let rows: Vec<Vec<String>> = report
        .trials
        .iter()
        .map(|row| {
            let valid = row.valid.as_ref();
            let late = if row.out_of_time { ", out of time" } else { "" };
            let mut cells = vec![
                row.trial.to_string(),
                figure(row.mrr),
                figure(valid.map(|valid| valid.hits_at_1)),
                figure(valid.map(|valid| valid.hits_at_3)),
                figure(valid.map(|valid| valid.hits_at_10)),
                row.epochs.map_or("–".to_owned(), |epochs| epochs.to_string()),
                format!("{:.1}", row.seconds),
                format!("{}{late}", row.state.name()),
            ];
            let value = |key: &&str| {
                row.point.get(*key).map_or(String::new(), |value| value.to_string().replace('"', ""))
            };
            cells.extend(keys.iter().map(value));
            cells
        })
        .collect();
    let caption = "Fractions, on the validation split, filtered without the test split. For a trial that was stopped, the best MRR \
                   during its training.";
    let mut html = format!("<h2>All trials</h2>{}", table(caption, &head, &rows));
    for row in &report.trials {
        if let Some(error) = &row.error {
            let _ = write!(html, "<p class=\"note\">Trial {} failed: {}</p>", row.trial, escape(error));
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Search, Space};

    #[test]
    fn a_page_has_every_trial_as_a_line_and_as_a_row() {
        let text = "[walk]\nhops = [2, 3]\n[embed]\nmodel = ['complex', 'conve']\nn3 = { from = 0.001, to = 0.1, scale = 'log' }";
        let space = Space::parse(text, "<mine>", &crate::config::Config::default()).unwrap();
        let report = SweepReport::example(space, Search::Halving, 9);
        let page = page(&report);
        assert_eq!(page.matches("<polyline").count(), 9);
        assert_eq!(page.matches("<tr>").count(), 1 + 9);
        assert!(page.contains("&lt;mine&gt;") && !page.contains("<mine>") && !page.contains("NaN"));
        for part in ["embed.model", "η²", "Successive halving"] {
            assert!(page.contains(part), "{part}");
        }
    }
}
