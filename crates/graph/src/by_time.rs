//! Divides facts by when they were stated: earlier ones are learnt from, later ones are held out.
//!
//! What will turn out to be true is another question than which of today's facts are missing, and a harder one. Here
//! nothing is learnt from after a day, so figures answer it.

use super::{Array, Dataset, EntityId, Known, RelationId, Time, Triple};
use std::collections::{HashMap, HashSet};

/// The share of the facts before the day that is held out for validation, about.
const LATEST: f64 = 0.1;

/// Facts with their days.
type Dated = Vec<(i64, Triple)>;

/// All facts of `dataset`, divided by time. Those of the day of `since` and later are the test. Of those before, the
/// latest are held out for validation, as nearly a tenth as whole days allow, so choices and probabilities are made on
/// facts that nothing was learnt from after; earlier facts, and those without a time, are learnt from. Facts with a name
/// that is new cannot be predicted: such facts of the last days before are learnt from, later ones are left out.
///
/// If times begin only then, there are no latest facts before, and the first half of the later ones is for validation.
///
/// # Errors
/// If there is nothing to learn from or nothing to hold out: what was expected, and what was found.
pub fn divided_by_time(dataset: &Dataset, since: Time) -> Result<Dataset, [String; 2]> {
    let Dataset { names, known, findings, .. } = dataset.everything();
    let day = |fact: Triple| known.notes.time(fact).and_then(Time::parse).map(Time::day);
    let (mut train, mut before, mut later) = (Vec::new(), Dated::new(), Dated::new());
    for &fact in known.facts.iter() {
        match day(fact) {
            Some(day) if day >= since.day() => later.push((day, fact)),
            Some(day) => before.push((day, fact)),
            None => train.push(fact),
        }
    }
    // Stable: facts of one day stay in the order of the data.
    for dated in [&mut before, &mut later] {
        dated.sort_by_key(|(day, _)| *day);
    }
    let earlier = (1.0 - LATEST) * before.len() as f64;
    let latest = between_days(&before, earlier as usize).map_or(Dated::new(), |at| before.split_off(at));
    train.extend(before.into_iter().map(|(_, fact)| fact));
    let (mut valid, new) = known_apart(latest, &train);
    train.extend(new.into_iter().map(|(_, fact)| fact));
    if train.is_empty() {
        return Err([format!("facts to learn from before {since}"), "none".to_owned()]);
    }
    let (mut test, left_out) = known_apart(later, &train);
    if valid.is_empty() && !test.is_empty() {
        let Some(middle) = between_days(&test, test.len() / 2) else {
            let expected = format!("facts between known names on two days or more from {since} on");
            return Err([expected, format!("{} on one day", test.len())]);
        };
        let rest = test.split_off(middle);
        (valid, test) = (test, rest);
    }
    if test.is_empty() {
        return Err([format!("facts between known names from {since} on"), "none".to_owned()]);
    }
    // In the order of the data, as any other split has them.
    let order: HashMap<Triple, usize> =
        known.facts.iter().enumerate().map(|(at, &fact)| (fact, at)).collect();
    train.sort_by_key(|fact| order[fact]);
    let facts_of = |part: &Dated| -> Array<Triple> { part.iter().map(|(_, fact)| *fact).collect() };
    let train: Array<Triple> = train.into();
    let divided = Known {
        facts: train.clone(),
        queries: train,
        valid: facts_of(&valid),
        negatives: known.negatives,
        ..Known::default()
    };
    let dataset = Dataset {
        names,
        known: divided,
        test: facts_of(&test),
        test_left_out: facts_of(&left_out),
        findings,
        ..Dataset::default()
    };
    Ok(dataset.with_notes(known.notes))
}

/// `facts` between names that `train` has, and the others.
fn known_apart(facts: Dated, train: &[Triple]) -> (Dated, Dated) {
    let entities: HashSet<EntityId> = train.iter().flat_map(|fact| [fact.head, fact.tail]).collect();
    let relations: HashSet<RelationId> = train.iter().map(|fact| fact.relation).collect();
    facts.into_iter().partition(|(_, fact)| {
        entities.contains(&fact.head) && entities.contains(&fact.tail) && relations.contains(&fact.relation)
    })
}

/// The place between two days that is nearest to `wanted` in `facts`, which are sorted by day; `None` if all are of one
/// day.
fn between_days(facts: &[(i64, Triple)], wanted: usize) -> Option<usize> {
    let between = (1..facts.len()).filter(|&at| facts[at - 1].0 < facts[at].0);
    between.min_by_key(|&at| at.abs_diff(wanted))
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
    fn the_latest_facts_before_are_for_validation_and_all_later_ones_are_the_test() {
        let day = |at: usize| format!("2022-01-{:02}", at + 1);
        let days: Vec<String> = (0..20).map(day).collect();
        let mut lines: Vec<[&str; 4]> = days.iter().map(|day| ["a", "r", "b", day.as_str()]).collect();
        let names = ["a", "b", "c", "d", "e", "f"];
        for (at, line) in lines.iter_mut().enumerate() {
            (line[0], line[2]) = (names[at / 5], names[1 + at % 5]);
        }
        // Of the last two of 20 facts before, one has a name that is new then.
        (lines[18][0], lines[19][2]) = ("d", "g");
        lines.extend([
            ["c", "r", "g", "2023-01-01"],
            ["f", "r", "b", "2023-07-01"],
            ["a", "r", "h", "2023-07-01"],
        ]);
        let dataset = divided(&lines, "2023").unwrap();
        assert_eq!(named(&dataset, &dataset.known.valid), ["de"]);
        assert_eq!(
            (dataset.known.facts.len(), named(&dataset, &dataset.known.facts)[18].as_str()),
            (19, "dg")
        );
        assert_eq!(named(&dataset, &dataset.test), ["cg", "fb"]);
        assert_eq!(named(&dataset, &dataset.test_left_out), ["ah"]);
    }

    #[test]
    fn if_times_begin_with_the_day_the_first_days_after_are_for_validation() {
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
        assert_eq!(refused("2024-01-01"), "facts between known names from 2024-01-01 on, found none");
    }
}
