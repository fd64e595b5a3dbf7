//! Facts, paths and rules as sentences.

use super::Naming;
use super::phrase::{Phrases, Told};
use crate::graph::{Direction, Link, Names, Query};
use crate::reason::Reasoned;
use crate::rule::{Rule, ScoredRule, Shape};

/// The fact that `answer` answers `query`.
pub fn fact_sentence(query: Query, answer: &str, names: &Names, naming: &Naming) -> String {
    let subject = naming.of(query.subject, names);
    path_sentence(naming.phrases(), &subject, &[(query.link, answer.to_owned())])
}

/// Why an answer was given: its path, and how often the rule that it follows was right. Empty if there is neither.
pub fn reason_sentence(reasoned: &Reasoned, names: &Names, naming: &Naming) -> String {
    let path = path_of_reason(reasoned, names, naming);
    match &reasoned.rule {
        None => path,
        Some(rule) if path.is_empty() => {
            let sentence = rule_sentence(&rule.rule, names, naming);
            format!("{sentence}; this held in {}", counts_sentence(rule))
        }
        Some(rule) => format!("{path}; this held in {}", counts_sentence(rule)),
    }
}

/// The path of a reason alone.
pub fn path_of_reason(reasoned: &Reasoned, names: &Names, naming: &Naming) -> String {
    let start = naming.of(reasoned.start, names);
    let hops = reasoned.path.iter().map(|hop| (hop.link, naming.of(hop.target, names)));
    path_sentence(naming.phrases(), &start, &hops.collect::<Vec<_>>())
}

/// A path in words: the facts it is made of, each once. `hops` are its links with the names of the entities they lead to.
pub fn path_sentence(phrases: &Phrases, start: &str, hops: &[(Link, String)]) -> String {
    let mut told: Vec<Told> = Vec::new();
    let mut from = start;
    for (link, to) in hops {
        let Some(relation) = link.relation() else { continue };
        let fact = match link.direction() {
            Direction::Forward => phrases.told(relation, [from, to], false),
            Direction::Inverse => phrases.told(relation, [to, from], true),
        };
        from = to;
        match told.last_mut() {
            // `A is attributed to X and uses Y`.
            Some(last) if last.topic.is_some() && last.topic == fact.topic => {
                last.rest = format!("{} and {}", last.rest, fact.rest);
            }
            _ => told.push(fact),
        }
    }
    joined(told.iter().map(Told::whole).collect())
}

/// `a`, `a, and b`, `a, b, and c`.
fn joined(mut parts: Vec<String>) -> String {
    let Some(last) = parts.pop() else { return String::new() };
    match parts.len() {
        0 => last,
        _ => format!("{}, and {last}", parts.join(", ")),
    }
}

/// A rule in words: `if A is attributed to X and uses Y, then X uses Y`.
pub fn rule_sentence(rule: &Rule, names: &Names, naming: &Naming) -> String {
    let phrases = naming.phrases();
    let (end, body_end) = match rule.shape {
        Shape::Cyclic => ("Y".to_owned(), Some("Y".to_owned())),
        Shape::Constant { answer, end } => (naming.of(answer, names), end.map(|end| naming.of(end, names))),
    };
    let head = path_sentence(phrases, "X", &[(rule.head, end)]);
    if rule.body.is_empty() {
        return format!("{head}, whatever X is");
    }
    let last = rule.body.len() - 1;
    let name = |(at, &link): (usize, &Link)| {
        let between = || char::from(b'A' + (at % 20) as u8).to_string();
        (link, body_end.clone().filter(|_| at == last).unwrap_or_else(between))
    };
    let hops: Vec<(Link, String)> = rule.body.iter().enumerate().map(name).collect();
    format!("if {}, then {head}", path_sentence(phrases, "X", &hops))
}

/// How often a rule was right, in words: `130 of 374 such cases (0.348)`.
pub fn counts_sentence(scored: &ScoredRule) -> String {
    let (correct, predicted) = (scored.counts.correct, scored.counts.predicted);
    let about = if scored.counts.sampled { "about " } else { "" };
    let cases = if scored.rule.body.is_empty() { "cases" } else { "such cases" };
    let share = correct as f64 / predicted.max(1) as f64;
    format!("{about}{correct} of {predicted} {cases} ({share:.3})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EntityId, RelationId};
    use crate::reason::Hop;
    use crate::rule::Counts;

    fn names() -> Names {
        let entities = ["APT29", "C0024", "Mimikatz", "Windows"].into_iter().collect();
        let relations = ["attributed-to", "uses", "platform"].into_iter().collect();
        Names { entities, relations, ..Names::default() }
    }

    fn link(relation: u32) -> Link {
        Link::forward(RelationId(relation))
    }

    #[test]
    fn a_path_tells_its_facts_and_repeats_no_subject() {
        let names = names();
        let naming = Naming::new(&names);
        let hop = |link: Link, target: u32| Hop { link, target: EntityId(target), scores: None };
        let rule = Rule::cyclic(link(1), &[link(0).reversed(), link(1)]);
        let reasoned = Reasoned {
            entity: EntityId(2),
            score: 0.5,
            start: EntityId(0),
            path: vec![hop(link(0).reversed(), 1), hop(Link::NO_OP, 1), hop(link(1), 2)],
            rule: Some(ScoredRule { rule: rule.clone(), counts: Counts::exact(374, 130) }),
            without: None,
        };
        assert_eq!(
            reason_sentence(&reasoned, &names, &naming),
            "C0024 is attributed to APT29 and uses Mimikatz; this held in 130 of 374 such cases (0.348)"
        );
        assert_eq!(
            rule_sentence(&rule, &names, &naming),
            "if A is attributed to X and uses Y, then X uses Y"
        );
        let query = Query { subject: EntityId(0), link: link(1) };
        assert_eq!(fact_sentence(query, "Mimikatz", &names, &naming), "APT29 uses Mimikatz");
        let query = Query { subject: EntityId(2), link: link(1).reversed() };
        assert_eq!(fact_sentence(query, "?", &names, &naming), "? uses Mimikatz");
    }

    #[test]
    fn longer_paths_are_lists_and_rules_may_have_constants() {
        let names = names();
        let naming = Naming::new(&names);
        let hops = [
            (link(1), "Mimikatz".to_owned()),
            (link(2), "Windows".to_owned()),
            (link(1).reversed(), "x".to_owned()),
        ];
        assert_eq!(
            path_sentence(naming.phrases(), "APT29", &hops),
            "APT29 uses Mimikatz, Mimikatz's platform is Windows, and x uses Windows"
        );
        let constant = |body: &[Link], end: Option<u32>| {
            let shape = Shape::Constant { answer: EntityId(2), end: end.map(EntityId) };
            rule_sentence(&Rule { head: link(1), body: body.into(), shape }, &names, &naming)
        };
        assert_eq!(constant(&[link(2)], Some(3)), "if X's platform is Windows, then X uses Mimikatz");
        assert_eq!(constant(&[link(0)], None), "if X is attributed to A, then X uses Mimikatz");
        assert_eq!(constant(&[], None), "X uses Mimikatz, whatever X is");
    }
}
