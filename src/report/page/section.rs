//! The part of the page about one run.

use super::ReportedRun;
use super::chart::{ChartWidth, Line, lines};
use super::html::{boxes, escape, table};
use super::story;
use crate::ask::{
    AskError, Estimate, ExampleAnswer, Faithfulness, Naming, PathStep, Reason, RunReport, because_in_words,
};
use crate::config::{self, Config, System};
use crate::eval::Stratum;
use crate::eval::calibration::{Reliability, ReliabilityBin, ReliabilityOf};
use crate::progress::Metric;
use crate::report::published;
use crate::run::member::{self, PRETRAINING};
use serde_json::json;
use std::fmt::Write;

/// The title of the run on the page.
pub(crate) fn title(run: &ReportedRun) -> String {
    let RunReport { dataset, system, name, .. } = &run.report;
    // A run is known by its directory; its data may be called `facts`, as many are.
    let directory = run.model.run_path().file_name().map(|name| name.to_string_lossy().into_owned());
    match (name, directory) {
        (Some(name), _) => format!("{dataset}, {name}"),
        (None, Some(directory)) if directory != *dataset => {
            format!("{directory} ({dataset}), {}", format!("{system:?}").to_lowercase())
        }
        (None, _) => format!("{dataset}, {}", format!("{system:?}").to_lowercase()),
    }
}

/// Everything about one run.
pub(crate) fn section(run: &ReportedRun, answers: usize) -> Result<String, AskError> {
    let mut html = format!("<h2>{}</h2>", escape(&title(run)));
    html.push_str(&story::graph(run)?);
    html.push_str(&story::quality(run));
    html.push_str(&calibration_chart(run));
    let examples = run.model.examples(answers)?;
    html.push_str(&examples_html(&examples, run.model.naming()));
    html.push_str(&story::rules(run));
    html.push_str(&curves(&run.metrics));
    html.push_str(&story::next(run)?);
    html.push_str(&details(run));
    Ok(html)
}

/// What readers who know the field look for.
fn details(run: &ReportedRun) -> String {
    let RunReport { version, seed, .. } = &run.report;
    format!(
        "<details><summary>Technical details of {}</summary><p class=\"note\">Version {}, seed {seed}, data {}.</p>{}</details>",
        escape(&title(run)),
        escape(version),
        escape(run.model.checksum().short()),
        [
            otherwise(run),
            relations(run),
            situations(run),
            reliability(run),
            faithfulness(run),
            stages(run),
            rule_share(run)
        ]
        .concat()
    )
}

/// The settings that differ from the configuration that the run is named after.
fn otherwise(run: &ReportedRun) -> String {
    let Some(name) = &run.report.name else { return String::new() };
    let full = format!("{}/{name}", run.report.dataset);
    let Ok(named) = config::named(&full, &Config::default()) else { return String::new() };
    let changed = run.model.config().differences(&named);
    if changed.is_empty() {
        return String::new();
    }
    let parts: Vec<String> =
        changed.iter().map(|(key, ours, theirs)| format!("{key} = {ours} instead of {theirs}")).collect();
    format!(
        "<p class=\"note\">Settings that differ from the configuration {}: {}.</p>",
        escape(&full),
        escape(&parts.join("; "))
    )
}

fn stages(run: &ReportedRun) -> String {
    let in_order = member::names().filter_map(|name| run.report.stages.get_key_value(name));
    let rows: Vec<Vec<String>> = in_order
        .map(|(name, stage)| {
            let memory = stage.peak_memory_mb.map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}"));
            let cut = stage.cut.clone().unwrap_or_default();
            vec![name.clone(), format!("{:.1}", stage.seconds), memory, cut]
        })
        .chain([vec![
            "ranking".to_owned(),
            format!("{:.1}", run.report.report.seconds),
            "–".to_owned(),
            String::new(),
        ]])
        .collect();
    table("Time and memory by stage", &["stage", "seconds", "peak MB", "cut"], &rows)
}

fn rule_share(run: &ReportedRun) -> String {
    let Some(after) = run.report.rule_share else { return String::new() };
    let before = run.report.stages.get(PRETRAINING).and_then(|stage| stage.figures.rule_share);
    let name = run.report.name.as_deref().unwrap_or_default();
    let theirs = published::published().row(&run.report.dataset, name, "test").and_then(|row| row.rule_share);
    let rows = [
        ("end of pre-training", before.map(|share| 100.0 * share), theirs.map(|theirs| theirs.pretraining)),
        ("end of joint training", Some(100.0 * after), theirs.map(|theirs| theirs.training)),
    ];
    // The walker of a blend is not evaluated by itself on the test split.
    let split = if run.report.system == System::Blend { "validation" } else { "test" };
    let mut html = format!(
        "<p class=\"caption\">Share of the walker's top answers whose path is a rule: the validation split after \
         pre-training, the {split} split after joint training</p><dl class=\"bars\">",
    );
    for (when, ours, theirs) in rows {
        for (whose, share, class) in [("", ours, "c0"), (", published", theirs, "c5")] {
            let Some(share) = share else { continue };
            // Writing to a string cannot fail.
            let _ = write!(
                html,
                "<dt>{when}{whose}</dt><dd><span class=\"bar {class}\" style=\"width:{:.1}%\"></span>{share:.1} %</dd>",
                0.8 * share
            );
        }
    }
    html.push_str("</dl>");
    html
}

/// The charts of a stage: their titles, and for each the figures it shows with their display names.
const CHARTS: [(&str, &[(&str, &str)]); 4] = [
    (
        "on the validation split",
        &[
            ("valid_mrr", "MRR"),
            ("valid_hits@1", "hits@1"),
            ("valid_hits@3", "hits@3"),
            ("valid_hits@10", "hits@10"),
            ("rule_share", "top answers that follow a rule"),
        ],
    ),
    ("walks", &[("reward", "mean reward"), ("hit_rate", "reach the target"), ("rule_rate", "follow a rule")]),
    ("loss", &[("loss", "loss")]),
    ("entropy of the entity agent", &[("entropy", "entropy")]),
];

/// The learning curves of every stage that has any, in the order of the stages.
fn curves(metrics: &[Metric]) -> String {
    let all = member::names().flat_map(|stage| CHARTS.iter().map(move |chart| (stage, chart)));
    let drawn: Vec<String> = all
        .filter_map(|(stage, (title, figures))| {
            let curve = |&(figure, name): &(&str, &str)| {
                let of_stage = metrics.iter().filter(|metric| metric.stage == stage);
                let points: Vec<(f64, f64)> = of_stage
                    .filter_map(|metric| Some((metric.step as f64, metric.figures.get(figure)?.as_f64()?)))
                    .collect();
                // One point is not a curve, and a figure that is always 0 was not measured.
                let says = points.len() > 1 && points.iter().any(|point| point.1 != 0.0);
                says.then(|| Line { name: name.to_owned(), points })
            };
            let curves: Vec<Line> = figures.iter().filter_map(curve).collect();
            lines(&format!("{stage}: {title}"), "epoch", ChartWidth::Narrow, &curves)
        })
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    format!("<h3>Learning curves</h3><div class=\"charts\">{}</div>", drawn.concat())
}

fn relations(run: &ReportedRun) -> String {
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
    // Whoever sees the figures of a relation sees at once whether they are better than none.
    let by_popularity = |name: &str| {
        let popularity = &report.baseline.as_ref()?.popularity;
        let same = popularity.relations.iter().find(|relation| relation.relation == name)?;
        Some(percent(same.figures.mrr))
    };
    let mut rows = vec![row("to one", &report.to_one), row("to many", &report.to_many)];
    rows.extend(report.relations.iter().take(12).map(|relation| row(&relation.relation, &relation.figures)));
    for row in &mut rows {
        row.push(by_popularity(&row[0]).unwrap_or_else(|| "–".to_owned()));
    }
    let head = ["relation", "queries", "hits@1", "hits@10", "MRR", "MRR by popularity"];
    table("By relation, the most frequent first", &head, &rows)
}

/// The figures by situation, if they were asked for.
fn situations(run: &ReportedRun) -> String {
    let Some(strata) = &run.report.report.strata else { return String::new() };
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let row = |one: &Stratum| {
        vec![
            format!("{} {}", one.about(), one.value),
            one.figures.queries.to_string(),
            percent(one.figures.hits_at_1),
            percent(one.figures.hits_at_10),
            percent(one.figures.mrr),
        ]
    };
    let rows: Vec<Vec<String>> = strata.iter().map(row).collect();
    table("By situation", &["situation", "queries", "hits@1", "hits@10", "MRR"], &rows)
}

/// Predicted probabilities of test answers against observed frequencies, drawn.
fn calibration_chart(run: &ReportedRun) -> String {
    let Some(Reliability { bins, .. }) = &run.report.calibration else { return String::new() };
    let drawn = [
        Line {
            name: "observed".to_owned(),
            points: bins.iter().filter_map(|bin| bin.of.predicted.zip(bin.of.observed)).collect(),
        },
        Line { name: "as it should be".to_owned(), points: vec![(0.0, 0.0), (1.0, 1.0)] },
    ];
    lines("Share of true answers by the probability that was said", "probability", ChartWidth::Narrow, &drawn)
        .unwrap_or_default()
}

/// The same in figures.
fn reliability(run: &ReportedRun) -> String {
    let Some(Reliability { queries, top, answers, ece, error_above, above, by_relation, bins, .. }) =
        &run.report.calibration
    else {
        return String::new();
    };
    let filled: Vec<&ReliabilityBin> = bins.iter().filter(|bin| bin.of.answers > 0).collect();
    let row = |bin: &&ReliabilityBin| {
        [vec![format!("{:.1} to {:.1}", bin.from, bin.to)], reliability_row(&bin.of)].concat()
    };
    let rows: Vec<Vec<String>> = filled.iter().map(row).collect();
    let caption = format!(
        "Expected calibration error {ece:.4} over {answers} answers, the {top} best of {queries} queries; {error_above:.4} over \
         the {} answers above 0.2",
        above.answers
    );
    let table_of_bins = table(&caption, &["probability", "answers", "mean", "true", "95 % interval"], &rows);
    let rows: Vec<Vec<String>> = by_relation
        .iter()
        .map(|(relation, of)| [vec![relation.clone()], reliability_row(of)].concat())
        .collect();
    let columns = ["relation", "answers", "mean", "true", "95 % interval"];
    let by_relation = table("Answers above 0.2, by relation", &columns, &rows);
    format!("<h3>Probabilities</h3>{table_of_bins}{by_relation}")
}

/// Answers, their mean probability, and the share that is true with its interval.
fn reliability_row(of: &ReliabilityOf) -> Vec<String> {
    let ReliabilityOf { answers, predicted, observed, interval, .. } = of;
    let share = |share: &Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{share:.3}"));
    let interval = interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
    vec![answers.to_string(), share(predicted), share(observed), interval]
}

/// Whether the reasons shown are the cause of the answers.
fn faithfulness(run: &ReportedRun) -> String {
    let Some(measured) = &run.report.faithfulness else { return String::new() };
    let Faithfulness { answers, facts, members, .. } = measured;
    let share = |estimate: &Estimate| {
        let Estimate { value, low, high } = estimate;
        format!("{:.1} [{:.1}, {:.1}]", 100.0 * value, 100.0 * low, 100.0 * high)
    };
    let row = |what: &str, of_reasons: &Estimate, of_others: Option<&Estimate>| {
        vec![what.to_owned(), share(of_reasons), of_others.map_or_else(String::new, share)]
    };
    let mut rows = vec![
        row("score above the median that goes", &measured.deletion, Some(&measured.deletion_random)),
        row("answers that keep their place", &measured.kept_place, Some(&measured.kept_place_random)),
        row("the same with nothing else about the subject", &measured.sufficiency, None),
    ];
    rows.extend(members.iter().map(|(name, member)| {
        let what =
            format!("of what {name} gives, {:.0} % of {} answers", 100.0 * member.share, member.answers);
        row(&what, &member.deletion, Some(&member.deletion_random))
    }));
    let caption = format!(
        "Per cent, without the facts of the reasons of {answers} best answers, {facts:.1} each, and without as many others nearby"
    );
    let table = table(&caption, &["", "without these facts", "without others"], &rows);
    format!("<h3>Are the reasons the cause?</h3>{table}")
}

fn examples_html(examples: &[ExampleAnswer], naming: &Naming) -> String {
    let mut html = String::from("<h3>Answers with their reasons</h3><ol class=\"answers\">");
    for example in examples {
        let answer = &example.answer;
        let (class, verdict) = match example.split() {
            Some(split) => ("true", format!("true, held out for {}", split.purpose())),
            None => ("open", "not in the data".to_owned()),
        };
        let _ = write!(
            html,
            "<li><strong>{}.</strong> <span class=\"{class}\">({verdict})</span>{}",
            escape(example.claim()),
            drawn(&answer.reason, &answer.entity, naming)
        );
        let reason = answer.reason_in_words();
        if !reason.is_empty() {
            let _ = write!(html, "<div class=\"because\">{}</div>", escape(&reason));
        }
        if answer.because.len() > 1 {
            let words = because_in_words(&answer.because);
            let _ = write!(html, "<div class=\"because\">Its score came from: {}</div>", escape(&words));
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
    html
}

/// A path as boxes and arrows, with the data for the script that replaces them by a drawing.
fn drawn(reason: &Reason, goal: &str, naming: &Naming) -> String {
    let Reason { from, from_id, path, .. } = reason;
    if path.is_empty() {
        return String::new();
    }
    let from = naming.name(from, from_id);
    let name = |step: &PathStep| naming.name(&step.label, &step.entity);
    let steps: Vec<PathStep> =
        path.iter().map(|step| PathStep { label: name(step), ..step.clone() }).collect();
    let data = json!({"from": from, "from_id": from_id, "path": steps, "goal": goal}).to_string();
    format!("<div class=\"path\" data-reason=\"{}\">{}</div>", escape(&data), boxes(&from, path, name))
}
