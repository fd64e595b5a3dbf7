//! The part of the page for readers who know the graph and nothing of machine learning: what the graph is, how good the
//! answers are, a few answers with their reasons, rules, and what to do next.

use super::ReportedRun;
use super::html::{escape, region};
use crate::ask::{AskError, Overview, RuleSummary};
use crate::eval::Figures;
use crate::eval::calibration::ReliabilityBin;
use crate::graph::{Likeness, RelatedRelation, RelationProfile, TypeCount};
use crate::rule::{ScoredRule, UNSEEN};
use crate::shown::grouped;
use std::collections::HashMap;
use std::fmt::Write;

/// The most relations and kinds that are listed.
const RELATIONS: usize = 12;
/// The most rules, and the most of one relation.
const RULES: usize = 8;
const RULES_OF_ONE: usize = 2;
/// A bin of probabilities is said in words from this many answers on.
const ENOUGH: usize = 10;

/// `1 fact`, `2 facts`.
fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { several })
}

/// What the graph is: how large, which kinds of things, which relations.
pub(super) fn graph(run: &ReportedRun) -> Result<String, AskError> {
    let (model, counts) = (&run.model, run.model.counts());
    let Overview { kinds, relations, .. } = model.overview(0, RELATIONS)?;
    let names = model.names();
    let mut html = format!(
        "<h3>What the graph is</h3><p class=\"lead\">{} about {} in {}",
        counted(counts.facts, "fact", "facts"),
        counted(names.entities.len() as u64, "entity", "entities"),
        counted(names.relations.len() as u64, "relation", "relations"),
    );
    if counts.kept_back > 0 {
        // Writing to a string cannot fail, here and below.
        let _ = write!(html, "; {} of them were hidden to check the answers", grouped(counts.kept_back));
    }
    html.push_str(".</p>");
    if !kinds.is_empty() {
        let kind =
            |kind: &crate::ask::EntityKind| format!("{} {}", grouped(kind.entities as u64), kind.label);
        let kinds: Vec<String> = kinds.iter().map(kind).collect();
        let _ = write!(html, "<p>Its entities: {}.</p>", escape(&kinds.join(", ")));
    }
    let profiles = RelationProfile::all(model.dataset());
    let examples: HashMap<&str, String> =
        relations.iter().map(|one| (one.id.as_str(), format!("{} → {}", one.head, one.tail))).collect();
    let rows = profiles.iter().take(RELATIONS).map(|profile| {
        let example = examples.get(profile.relation.as_str()).map_or("", String::as_str);
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
            escape(&profile.label),
            grouped(profile.facts as u64),
            escape(example),
            escape(&in_words(profile))
        )
    });
    let table = format!(
        "<table><thead><tr><th scope=\"col\">relation</th><th scope=\"col\">facts</th><th scope=\"col\" class=\"text\">for example</th>\
         <th scope=\"col\" class=\"text\">how it is used</th></tr></thead><tbody>{}</tbody></table>",
        rows.collect::<String>()
    );
    html.push_str(&region("The relations, most facts first", &table));
    if profiles.len() > RELATIONS {
        let _ = write!(
            html,
            "<p class=\"note\">{} more; <code>ruleguider stats</code> lists all of them.</p>",
            grouped((profiles.len() - RELATIONS) as u64)
        );
    }
    Ok(html)
}

/// What a relation is like, in sentences.
fn in_words(profile: &RelationProfile) -> String {
    let RelationProfile { subjects, objects, functional, inverse_functional, symmetric, .. } = profile;
    let types = |types: &[TypeCount], count: usize| match types {
        [] => grouped(count as u64),
        types => {
            let names: Vec<&str> = types.iter().take(2).map(|one| one.of.as_str()).collect();
            format!("{} ({})", grouped(count as u64), names.join(", "))
        }
    };
    let mut clauses = vec![format!(
        "From {} entities to {}",
        types(&profile.subject_types, *subjects),
        types(&profile.object_types, *objects)
    )];
    clauses.extend(match (functional, inverse_functional) {
        (true, true) => Some("nearly always one to one".to_owned()),
        (true, false) => Some("nearly every subject has exactly one object".to_owned()),
        (false, true) => Some("nearly every object has exactly one subject".to_owned()),
        (false, false) => None,
    });
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    if *symmetric >= 0.5 {
        clauses.push(format!("symmetric: {} also hold in reverse", percent(*symmetric)));
    }
    let other = |[same, implies, implied_by]: [&str; 3], other: &RelatedRelation| {
        let what = match other.how {
            Likeness::Same => same,
            Likeness::Implies => implies,
            Likeness::ImpliedBy => implied_by,
        };
        format!("{what} {} ({} of its facts)", other.relation, percent(other.share))
    };
    clauses.extend(
        profile
            .inverse_of
            .first()
            .map(|one| other(["the inverse of", "implies the inverse of", "implied by the inverse of"], one)),
    );
    clauses
        .extend(profile.same_as.first().map(|one| other(["much the same as", "implies", "implied by"], one)));
    clauses.join("; ") + "."
}

/// How good the answers are, in sentences.
pub(super) fn quality(run: &ReportedRun) -> String {
    let report = &run.report.report;
    let Figures { queries, hits_at_1, hits_at_10, .. } = report.figures;
    // 100 of 100 means all of them.
    let of_100 = |share: f64| if share < 1.0 { (100.0 * share).round().min(99.0) } else { 100.0 };
    let mut html = String::from("<h3>How good the answers are</h3>");
    if queries == 0 {
        return html + "<p>That was not measured: no facts were hidden.</p>";
    }
    let _ = write!(
        html,
        "<p class=\"lead\">Of 100 facts that were hidden, {} are its first answer and {} are among its first ten \
         (measured on {}).",
        of_100(hits_at_1),
        of_100(hits_at_10),
        counted(queries as u64, "question", "questions")
    );
    if let Some(popular) = report.baseline.as_ref().map(|found| &found.popularity.figures) {
        let _ = write!(
            html,
            " Guessing the most frequent answers, without any model, gets {} first and {} among ten.",
            of_100(popular.hits_at_1),
            of_100(popular.hits_at_10)
        );
    }
    html.push_str("</p>");
    let Some(reliability) = &run.report.calibration else { return html };
    let enough: Vec<&ReliabilityBin> =
        reliability.bins.iter().filter(|bin| bin.of.answers >= ENOUGH).collect();
    let bins = enough.iter().rev().take(3).filter_map(|bin| {
        Some(format!(
            "<li>when it said {:.0} to {:.0} %, {:.0} % of {} were true</li>",
            100.0 * bin.from,
            100.0 * bin.to,
            100.0 * bin.of.observed?,
            counted(bin.of.answers as u64, "answer", "answers")
        ))
    });
    let items: String = bins.collect();
    if !items.is_empty() {
        let _ = write!(html, "<p>How far its probabilities can be trusted:</p><ul>{items}</ul>");
    }
    if let Some(why) = run.model.why_rough() {
        let _ = write!(html, "<p>Probabilities are rough, and marked with ~: {}.</p>", escape(why));
    }
    html
}

/// Rules worth knowing: reliable, often used, of different relations; those about relations alone before those about
/// single entities.
pub(super) fn rules(run: &ReportedRun) -> String {
    let model = &run.model;
    let worth = |rule: &&ScoredRule| rule.counts.confidence(UNSEEN) * (1.0 + rule.counts.correct as f64).ln();
    let mut all: Vec<&ScoredRule> = model.rules().iter().filter(|rule| !rule.rule.body.is_empty()).collect();
    all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let mut shown: HashMap<_, usize> = HashMap::new();
    let mut chosen: Vec<RuleSummary> = Vec::new();
    for rule in all {
        let summary = RuleSummary::new(rule, model.names(), model.naming());
        let times = shown.entry(rule.rule.head).or_default();
        if *times < RULES_OF_ONE && !summary.constants {
            *times += 1;
            chosen.push(summary);
        }
        if chosen.len() == RULES {
            break;
        }
    }
    if chosen.is_empty() {
        return String::new();
    }
    let item = |rule: &RuleSummary| {
        let text = if rule.sentence.is_empty() { &rule.label } else { &rule.sentence };
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
        format!(
            "<li>{}{}. <span class=\"because\">True in {} of {} cases.</span></li>",
            escape(&first),
            escape(letters.as_str()),
            grouped(rule.correct),
            grouped(rule.predicted)
        )
    };
    let items: String = chosen.iter().map(item).collect();
    format!(
        "<h3>Rules worth knowing</h3><p class=\"note\">{} were learnt. These are reliable and often apply.</p><ul class=\"rules\">{items}</ul>",
        counted(model.rules().len() as u64, "rule", "rules")
    )
}

/// What to do next, as commands.
pub(super) fn next(run: &ReportedRun) -> Result<String, AskError> {
    let path = run.model.run_path().display().to_string();
    let mut items: Vec<(String, String)> = vec![
        (
            "Ask and browse it, and see the reason for every answer:".to_owned(),
            format!("ruleguider serve {path}"),
        ),
        (
            "List the facts that are most probably missing:".to_owned(),
            format!("ruleguider complete {path} --out missing.tsv"),
        ),
        (
            "Let people accept and reject suggestions, and learn from what they say:".to_owned(),
            format!("ruleguider serve {path} --live live.db"),
        ),
    ];
    if let Some(question) = run.model.overview(1, 0)?.questions.first() {
        let command = format!("ruleguider predict {path} '{}' '{}'", question.subject, question.relation);
        items.insert(0, ("Ask it on the command line:".to_owned(), command));
    }
    let mut html = String::from("<h3>What to do next</h3><ul>");
    for (what, command) in items {
        let _ = write!(html, "<li>{what} <code>{}</code></li>", escape(&command));
    }
    if !run.report.still_improving.is_empty() {
        let _ = write!(
            html,
            "<li>Give it more minutes: {} still improved when the time was over.</li>",
            escape(&run.report.still_improving.join(", "))
        );
    }
    html.push_str("</ul>");
    Ok(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_said_in_words() {
        let profile = RelationProfile {
            relation: "r".to_owned(),
            label: "r".to_owned(),
            facts: 2000,
            subjects: 1000,
            objects: 1,
            one_object: 1.0,
            one_subject: 0.0,
            functional: true,
            inverse_functional: false,
            transitive: 0.0,
            symmetric: 0.6,
            reflexive: 0,
            subject_types: vec![TypeCount { of: "Person".to_owned(), entities: 900 }],
            object_types: Vec::new(),
            inverse_of: Vec::new(),
            same_as: vec![RelatedRelation {
                how: Likeness::Same,
                relation: "s".to_owned(),
                shared: 1900,
                share: 0.95,
                share_of_other: 1.0,
            }],
        };
        assert_eq!(
            in_words(&profile),
            "From 1,000 (Person) entities to 1; nearly every subject has exactly one object; symmetric: 60 % also hold in \
             reverse; much the same as s (95 % of its facts)."
        );
    }
}
