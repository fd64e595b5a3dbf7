//! What people read about a study: the paper's table with its intervals, a page with the disagreements, a file of votes.

use super::page::html::{boxes, escape, table};
use super::page::whole;
use super::published::{PublishedJudgement, published};
use crate::judge::{Favoured, Judgement, PairJudgement, Ratio, Study, StudyItem, Vote};
use crate::shown::Shown;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Write;

/// A judgement beside the published one. As JSON the names are a contract with scripts.
#[derive(Clone, Debug, Serialize)]
pub struct JudgementReport {
    /// The result of the votes.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// What was published.
    pub published: PublishedJudgement,
}

impl JudgementReport {
    /// `judgement` beside the published one.
    pub fn new(judgement: Judgement) -> Self {
        Self { judgement, published: published().judgement.clone() }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// `61.20 [55.31, 66.79]`, in per cent.
fn in_per_cent(ratio: &Ratio) -> String {
    match (ratio.share, ratio.interval) {
        (Some(share), Some([low, high])) => {
            format!("{} [{}, {}]", percent(share), percent(low), percent(high))
        }
        _ => "–".to_owned(),
    }
}

/// The same with the counts.
fn counted(ratio: &Ratio) -> String {
    format!("{} of {}: {} %", ratio.count, ratio.of, in_per_cent(ratio))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("[{}, {}]", percent(low), percent(high)))
}

impl JudgementReport {
    /// The rows of the paper's table: ours, and the published one.
    fn rows(&self) -> Vec<[String; 7]> {
        let ours = |pair: &PairJudgement| {
            [
                format!("{} / {}", pair.first, pair.second),
                in_per_cent(&pair.first_better),
                in_per_cent(&pair.draw),
                in_per_cent(&pair.second_better),
                pair.counted.to_string(),
                pair.dropped.to_string(),
                pair.identical.to_string(),
            ]
        };
        let theirs = &self.published;
        let published = [
            format!("{} / {}, published, {}", theirs.first, theirs.second, theirs.dataset),
            format!("{:.2}", theirs.first_better),
            format!("{:.2}", theirs.draw),
            format!("{:.2}", theirs.second_better),
            "–".to_owned(),
            "–".to_owned(),
            format!("{} %", theirs.identical),
        ];
        self.judgement.pairs.iter().map(ours).chain([published]).collect()
    }
}

/// The columns of that table.
const HEAD: [&str; 7] =
    ["first / second", "first better, %", "draw, %", "second better, %", "items", "no majority", "identical"];

impl fmt::Display for JudgementReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judgement { dataset, seed, votes, needed, pairs, judges, .. } = &self.judgement;
        writeln!(
            f,
            "{}, seed {seed}: {votes} votes of {} judges; an item counts with {needed} votes",
            Shown(dataset),
            judges.len()
        )?;
        writeln!(f, "\n| {} |\n|{}", HEAD.join(" | "), "---|".repeat(HEAD.len()))?;
        for row in self.rows() {
            writeln!(f, "| {} |", Shown(row.join(" | ")))?;
        }
        writeln!(f, "Brackets are 95 % confidence intervals (Wilson).")?;
        for pair in pairs {
            let [first, second, both, neither] = pair.votes;
            writeln!(f, "\n{} / {}", Shown(&pair.first), Shown(&pair.second))?;
            writeln!(
                f,
                "  votes: {first} for the first, {second} for the second, {both} both, {neither} neither"
            )?;
            writeln!(
                f,
                "  first minus second: {} % {} (bootstrap over items); the first's share by the same bootstrap {}",
                pair.difference.map_or_else(|| "–".to_owned(), percent),
                interval(pair.difference_interval),
                interval(pair.first_interval)
            )?;
            writeln!(
                f,
                "  agreement: Krippendorff's alpha {}, with both and neither as separate verdicts {}; Fleiss' kappa {} over {} items \
                 that every judge has judged",
                number(pair.agreement.alpha),
                number(pair.agreement.alpha_four),
                number(pair.agreement.kappa),
                pair.agreement.complete
            )?;
            if pair.open > 0 {
                writeln!(f, "  {} of {} items have too few votes so far", pair.open, pair.items)?;
            }
        }
        self.judges(f)
    }
}

impl JudgementReport {
    fn judges(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Judgement { left, self_agreement, seconds, judges, .. } = &self.judgement;
        writeln!(f, "\nvotes for the left path, of votes for one path: {}", counted(left))?;
        write!(f, "same verdict on repeated items: {}", counted(self_agreement))?;
        if let Some(seconds) = seconds {
            let (median, lower, upper) = (seconds.median, seconds.lower, seconds.upper);
            write!(
                f,
                "\nseconds per vote: median {median:.1}, half of them between {lower:.1} and {upper:.1}"
            )?;
        }
        for judge in judges {
            let median = judge.seconds.map_or(0.0, |seconds| seconds.median);
            write!(
                f,
                "\n  judge {}: {} votes, left {} of {}, same again {} of {}, median {median:.1} s",
                judge.judge,
                judge.votes,
                judge.left.count,
                judge.left.of,
                judge.self_agreement.count,
                judge.self_agreement.of
            )?;
        }
        Ok(())
    }
}

/// The system that a vote was for, in words.
fn for_whom<'a>(study: &'a Study, vote: &Vote) -> &'a str {
    let [first, second] = study.pairs[study.items[vote.item].pair].systems;
    match vote.verdict() {
        Favoured::First => &study.systems[first],
        Favoured::Second => &study.systems[second],
        Favoured::Draw => vote.choice.name(),
    }
}

/// A page for reading: the table, and every item on which judges disagree, with both paths and all votes, the most
/// disputed first. It names the systems, so it is not for judges who are still voting.
pub fn disagreements(study: &Study, votes: &[Vote], report: &JudgementReport) -> String {
    let mut by_item: BTreeMap<usize, Vec<&Vote>> = BTreeMap::new();
    for vote in votes.iter().filter(|vote| !vote.repeat) {
        by_item.entry(vote.item).or_default().push(vote);
    }
    let most_agreeing = |votes: &[&Vote]| {
        let of = |verdict| votes.iter().filter(|vote| vote.verdict() == verdict).count();
        [Favoured::First, Favoured::Second, Favoured::Draw].map(of).into_iter().max().unwrap_or(0)
    };
    let mut disputed: Vec<(usize, Vec<&Vote>)> =
        by_item.into_iter().filter(|(_, votes)| most_agreeing(votes) < votes.len()).collect();
    disputed.sort_by(|(_, one), (_, other)| {
        // By the share of the largest camp, without dividing.
        (most_agreeing(one) * other.len()).cmp(&(most_agreeing(other) * one.len()))
    });
    let rows: Vec<Vec<String>> = report.rows().into_iter().map(Vec::from).collect();
    let mut body = format!("<h1>Paths judged by people: {}</h1>", escape(&study.dataset));
    body.push_str(&table("Per cent of the items with a majority; 95 % intervals in brackets", &HEAD, &rows));
    // Writing to a string cannot fail.
    let _ = write!(
        body,
        "<h2>Where judges disagree</h2><p class=\"note\">{} items, the most disputed first.</p><ol class=\"answers\">",
        disputed.len()
    );
    for (item, votes) in &disputed {
        body.push_str(&disputed_item(study, &study.items[*item], votes));
    }
    body.push_str("</ol>");
    whole("Paths judged by people", &body, "")
}

fn disputed_item(study: &Study, item: &StudyItem, votes: &[&Vote]) -> String {
    let StudyItem { head, relation, tail, paths, pair } = item;
    let mut html = format!(
        "<li><strong>{}</strong> {} <strong>{}</strong>",
        escape(&head.label),
        escape(&relation.label),
        escape(&tail.label)
    );
    for (system, path) in study.pairs[*pair].systems.iter().zip(paths) {
        let drawn = boxes(&head.label, path, |step| step.label.clone());
        let name = escape(&study.systems[*system]);
        // Writing to a string cannot fail, here and below.
        let _ = write!(html, "<p class=\"caption\">{name}</p><div class=\"path\">{drawn}</div>");
    }
    let lines: Vec<String> = votes
        .iter()
        .map(|vote| format!("judge {}: {} ({:.0} s)", vote.judge, for_whom(study, vote), vote.seconds))
        .collect();
    let _ = write!(html, "<div class=\"because\">{}</div></li>", escape(&lines.join(" · ")));
    html
}

/// Writes one line per vote, with a header.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_votes(study: &Study, votes: &[Vote], out: impl Write) -> std::io::Result<()> {
    let mut lines = csv::Writer::from_writer(out);
    lines.write_record([
        "judge", "position", "item", "repeat", "head", "relation", "tail", "left", "right", "choice", "for",
        "seconds", "time_ms",
    ])?;
    for vote in votes {
        let item = &study.items[vote.item];
        let mut sides = study.pairs[item.pair].systems;
        if !vote.first_on_left {
            sides.reverse();
        }
        let [left, right] = sides.map(|system| study.systems[system].as_str());
        let [judge, position, number] =
            [vote.judge, vote.position + 1, vote.item + 1].map(|one| one.to_string());
        let (repeat, seconds) = (if vote.repeat { "yes" } else { "no" }, format!("{:.3}", vote.seconds));
        let (time, whom) = (vote.time_ms.to_string(), for_whom(study, vote));
        let fact: [&str; 3] = [&item.head.id, &item.relation.id, &item.tail.id];
        let before: [&str; 4] = [&judge, &position, &number, repeat];
        let after: [&str; 6] = [left, right, vote.choice.name(), whom, &seconds, &time];
        lines.write_record(before.iter().chain(&fact).chain(&after))?;
    }
    lines.flush()
}
