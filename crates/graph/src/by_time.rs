//! Divides facts by when they were stated: earlier ones are learnt from, later ones are held out.
//!
//! What will turn out to be true is another question than which of today's facts are missing, and a harder one. Here
//! nothing is learnt from after a day, so figures answer it.

use super::{Array, Dataset, EntityId, Known, RelationId, Time, Triple};
use std::collections::HashSet;

/// All facts of `dataset`, divided by time. Those before the day of `since`, and those without a time, are learnt from.
/// The later ones are held out, the first half of them, as nearly as whole days allow, for validation and the rest for
/// the test: so choices and probabilities are made on facts that nothing was learnt from after. Later facts with a name
/// that is new are left out, since nothing could predict them.
///
/// # Errors
/// If there are no facts before that day, or none on two different days from it on: what was expected, and what was
/// found.
pub(super) fn divided_by_time(dataset: &Dataset, since: Time) -> Result<Dataset, [String; 2]> {
    let Dataset { names, known, findings, .. } = dataset.everything();
    let day = |fact: Triple| known.notes.time(fact).and_then(Time::parse).map(Time::day);
    let mut train = Vec::new();
    let mut later: Vec<(i64, Triple)> = Vec::new();
    for &fact in known.facts.iter() {
        match day(fact).filter(|&day| day >= since.day()) {
            Some(day) => later.push((day, fact)),
            None => train.push(fact),
        }
    }
    if train.is_empty() {
        return Err([format!("facts to learn from before {since}"), "none".to_owned()]);
    }
    let entities: HashSet<EntityId> = train.iter().flat_map(|fact| [fact.head, fact.tail]).collect();
    let relations: HashSet<RelationId> = train.iter().map(|fact| fact.relation).collect();
    let is_known = |fact: &Triple| {
        entities.contains(&fact.head) && entities.contains(&fact.tail) && relations.contains(&fact.relation)
    };
    // Stable: facts of one day stay in the order of the data.
    later.sort_by_key(|(day, _)| *day);
    let (later, left_out): (Vec<_>, Vec<_>) = later.into_iter().partition(|(_, fact)| is_known(fact));
    let Some(middle) = middle(&later) else {
        let expected = format!("facts between known names on two days or more from {since} on");
        return Err([expected, format!("{} on one day", later.len())]);
    };
    let facts_of = |part: &[(i64, Triple)]| -> Array<Triple> { part.iter().map(|(_, fact)| *fact).collect() };
    let (valid, test) = later.split_at(middle);
    let train: Array<Triple> = train.into();
    let divided = Known {
        facts: train.clone(),
        queries: train,
        valid: facts_of(valid),
        negatives: known.negatives,
        ..Known::default()
    };
    let dataset = Dataset {
        names,
        known: divided,
        test: facts_of(test),
        test_left_out: facts_of(&left_out),
        findings,
        ..Dataset::default()
    };
    Ok(dataset.with_notes(known.notes))
}

/// The place between two days that is nearest to the middle of `facts`, which are sorted by day; `None` if all are of
/// one day.
fn middle(facts: &[(i64, Triple)]) -> Option<usize> {
    let between = (1..facts.len()).filter(|&at| facts[at - 1].0 < facts[at].0);
    between.min_by_key(|&at| (2 * at).abs_diff(facts.len()))
}

#[cfg(test)]
mod tests {
    use super::super::{Names, Note, NotesBuilder};
    use super::*;
    use std::sync::Arc;

    /// The data of lines of subject, relation, object and time, divided at `since`.
    fn divided(lines: &[[&str; 4]], since: &str) -> Result<Dataset, [String; 2]> {
        let (mut names, mut notes, mut facts) = (Names::default(), NotesBuilder::default(), Vec::new());
        for &[head, relation, tail, time] in lines {
            let head = names.entities.intern(head);
            let fact = Triple::new(head, names.relations.intern(relation), names.entities.intern(tail));
            notes.add(fact, Note { time: (!time.is_empty()).then_some(time), ..Note::default() });
            facts.push(fact);
        }
        let facts: Array<Triple> = facts.into();
        let known = Known { queries: facts.clone(), facts, ..Known::default() };
        let dataset = Dataset { names: Arc::new(names), known, ..Dataset::default() };
        divided_by_time(&dataset.with_notes(notes.finish()), since.parse().unwrap())
    }

    fn named(dataset: &Dataset, facts: &[Triple]) -> Vec<String> {
        let name = |id| dataset.names.entity(id);
        facts.iter().map(|fact| format!("{}{}", name(fact.head), name(fact.tail))).collect()
    }

    #[test]
    fn earlier_facts_are_learnt_from_and_the_days_after_are_held_out_whole() {
        let lines = [
            ["a", "r", "b", "2022-12-31T23:59:00Z"],
            ["b", "r", "c", ""],
            ["c", "r", "d", "2019"],
            ["a", "r", "e", "2023-05-02"],
            ["a", "r", "d", "2023-01-01"],
            ["b", "r", "d", "2023-01-01T10:00:00Z"],
            ["b", "r", "a", "2023-01-03"],
            ["c", "r", "a", "2023-02-01"],
            ["d", "r", "a", "2023-02-01"],
            ["c", "q", "b", "2023-02-01"],
        ];
        let dataset = divided(&lines, "2023-01-01").unwrap();
        assert_eq!(named(&dataset, &dataset.known.facts), ["ab", "bc", "cd"]);
        assert!(!dataset.known.has_own_graph());
        // Half of five; no day is in both.
        assert_eq!(named(&dataset, &dataset.known.valid), ["ad", "bd"]);
        assert_eq!(named(&dataset, &dataset.test), ["ba", "ca", "da"]);
        // The entity e and the relation q are new.
        assert_eq!(named(&dataset, &dataset.test_left_out), ["cb", "ae"]);
        // Training knows the times of its facts and of no others that only the test split has.
        assert!(dataset.known.notes.time(dataset.test[0]).is_none());
        assert_eq!(dataset.known.notes.time(dataset.known.valid[0]), Some("2023-01-01"));
    }

    #[test]
    fn what_cannot_be_divided_is_said() {
        let lines =
            [["a", "r", "b", "2020-01-01"], ["b", "r", "a", "2021-01-01"], ["b", "r", "b", "2021-01-01"]];
        let refused = |since: &str| divided(&lines, since).unwrap_err().join(", found ");
        assert_eq!(refused("2019-01-01"), "facts to learn from before 2019-01-01, found none");
        let two_days = "facts between known names on two days or more from";
        assert_eq!(refused("2021-01-01"), format!("{two_days} 2021-01-01 on, found 2 on one day"));
        assert_eq!(refused("2024-01-01"), format!("{two_days} 2024-01-01 on, found 0 on one day"));
    }
}
