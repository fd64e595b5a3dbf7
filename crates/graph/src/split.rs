//! Divides facts into splits, and finds what splits have in common.

use super::{RelationId, Time, Triple};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::collections::HashSet;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The shares of a single file of triples that become train, valid and test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitShares {
    /// The share to learn from.
    pub train: f64,
    /// The share to tune on.
    pub valid: f64,
    /// The share to evaluate on.
    pub test: f64,
    /// Instead of by shares, facts are divided by time: those of this day and later are held out.
    pub since: Option<Time>,
}

impl SplitShares {
    /// Everything is known and nothing is held out: for a graph that is queried but not learnt from.
    pub const WHOLE: SplitShares = SplitShares { train: 1.0, valid: 0.0, test: 0.0, since: None };
}

impl Default for SplitShares {
    fn default() -> Self {
        Self { train: 0.8, valid: 0.1, test: 0.1, since: None }
    }
}

impl FromStr for SplitShares {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("expected three positive shares that add up to 1, such as 0.8,0.1,0.1; found {text}");
        let shares: Vec<f64> =
            text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
        match shares[..] {
            [train, valid, test]
                if train > 0.0 && valid > 0.0 && test > 0.0 && (train + valid + test - 1.0).abs() < 1e-6 =>
            {
                Ok(Self { train, valid, test, since: None })
            }
            _ => Err(wrong()),
        }
    }
}

/// Divides distinct facts at random into train, valid and test.
///
/// A fact is held out only if training keeps another fact with its head, one with its tail and one with its relation:
/// names that training has never seen cannot be predicted, and evaluating them measures nothing. In a sparse graph
/// valid and test can therefore be smaller than requested. The error says how many facts there are and how many can
/// be spared.
pub(super) fn divide(facts: &[Triple], shares: &SplitShares, seed: u64) -> Result<[Vec<Triple>; 3], String> {
    divide_others(facts, &vec![None; facts.len()], shares, seed)
}

/// The split of a fact: 0 for `train`, 1 for `valid`, 2 for `test`.
pub(super) type Place = u8;

/// The same if some facts have their split already; the shares apply to the others.
pub(super) fn divide_others(
    facts: &[Triple],
    placed: &[Option<Place>],
    shares: &SplitShares,
    seed: u64,
) -> Result<[Vec<Triple>; 3], String> {
    if *shares == SplitShares::WHOLE {
        return Ok([facts.to_vec(), Vec::new(), Vec::new()]);
    }
    let mut order: Vec<u32> = (0..facts.len() as u32).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let entities = facts.iter().map(|t| t.head.0.max(t.tail.0) + 1).max().unwrap_or(0);
    let relations = facts.iter().map(|t| t.relation.0 + 1).max().unwrap_or(0);
    let mut of_entity = vec![0u32; entities as usize];
    let mut of_relation = vec![0u32; relations as usize];
    let in_training = facts.iter().zip(placed).filter(|(_, placed)| placed.unwrap_or(0) == 0);
    for (fact, _) in in_training {
        of_entity[fact.head.index()] += 1;
        of_entity[fact.tail.index()] += 1;
        of_relation[fact.relation.index()] += 1;
    }
    let others = placed.iter().filter(|place| place.is_none()).count();
    let before = |place: Place| placed.iter().filter(|placed| **placed == Some(place)).count();
    let quota = |share: f64| (share * others as f64).round() as usize;
    let (valid_quota, test_quota) = (quota(shares.valid), quota(shares.test));
    let (mut valid, mut test) = (0, 0);
    let mut place: Vec<Place> = placed.iter().map(|place| place.unwrap_or(0)).collect();
    for &index in order.iter().filter(|&&index| placed[index as usize].is_none()) {
        if valid >= valid_quota && test >= test_quota {
            break;
        }
        let Triple { head, relation: RelationId(relation), tail } = facts[index as usize];
        let needed_by_itself = if head == tail { 2 } else { 1 };
        let spare = of_entity[head.index()] > needed_by_itself
            && of_entity[tail.index()] > needed_by_itself
            && of_relation[relation as usize] > 1;
        // Alternate, so that both splits get about as many facts if there are fewer spare facts than requested.
        let to_test = test < test_quota && (test <= valid || valid >= valid_quota);
        if !spare || (!to_test && valid >= valid_quota) {
            continue;
        }
        of_entity[head.index()] -= 1;
        of_entity[tail.index()] -= 1;
        of_relation[relation as usize] -= 1;
        place[index as usize] = if to_test { 2 } else { 1 };
        *(if to_test { &mut test } else { &mut valid }) += 1;
    }
    if valid + before(1) == 0 || test + before(2) == 0 {
        return Err(format!("{} facts, of which {} can be held out", facts.len(), valid + test));
    }
    let part = |wanted: u8| {
        facts.iter().zip(&place).filter(|(_, place)| **place == wanted).map(|(fact, _)| *fact).collect()
    };
    Ok([part(0), part(1), part(2)])
}

/// The distinct facts in the order of first appearance, and how many repetitions were removed.
pub(super) fn distinct(entities: usize, mut facts: Vec<Triple>) -> (Vec<Triple>, usize) {
    // Facts are grouped by head (a counting sort of their indices), then each group is checked by itself.
    let mut starts = vec![0u32; entities + 1];
    for fact in &facts {
        starts[fact.head.index() + 1] += 1;
    }
    for row in 0..entities {
        starts[row + 1] += starts[row];
    }
    let mut places = vec![0u32; facts.len()];
    let mut next = starts.clone();
    for (place, fact) in facts.iter().enumerate() {
        let slot = &mut next[fact.head.index()];
        places[*slot as usize] = place as u32;
        *slot += 1;
    }
    drop(next);
    let repeated: Vec<AtomicU64> = (0..facts.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
    let count: usize = starts
        .par_windows(2)
        .with_min_len(1024)
        .map(|row| mark_repetitions(&places[row[0] as usize..row[1] as usize], &facts, &repeated))
        .sum();
    drop(places);
    if count > 0 {
        let mut place = 0;
        facts.retain(|_| {
            let marks = repeated[place / 64].load(Ordering::Relaxed);
            place += 1;
            marks >> ((place - 1) % 64) & 1 == 0
        });
    }
    (facts, count)
}

/// Marks those of `group` (indices of facts with one head) whose fact also stands at an earlier index. Returns how
/// many there are.
fn mark_repetitions(group: &[u32], facts: &[Triple], repeated: &[AtomicU64]) -> usize {
    if group.len() < 2 {
        return 0;
    }
    let mut sorted: Vec<(RelationId, u32, u32)> = group
        .iter()
        .map(|&place| (facts[place as usize].relation, facts[place as usize].tail.0, place))
        .collect();
    sorted.sort_unstable();
    let same = |pair: &&[(RelationId, u32, u32)]| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
    let mark = |pair: &[(RelationId, u32, u32)]| {
        let place = pair[1].2 as usize;
        repeated[place / 64].fetch_or(1 << (place % 64), Ordering::Relaxed);
    };
    sorted.windows(2).filter(same).map(mark).count()
}

/// How many of `facts` are also in any of `others`.
pub(super) fn shared(facts: &[Triple], others: &[&[Triple]]) -> usize {
    let wanted: HashSet<Triple, foldhash::fast::FixedState> = facts.iter().copied().collect();
    let mut found: HashSet<Triple, foldhash::fast::FixedState> = HashSet::default();
    for other in others {
        found.extend(other.iter().filter(|fact| wanted.contains(fact)));
    }
    found.len()
}

/// At most this many of `items`, evenly spread; 0 for all.
pub fn evenly<T: Copy>(items: &[T], most: usize) -> Vec<T> {
    let count = items.len();
    let taken = if most == 0 { count } else { most.min(count) };
    (0..taken).map(|index| items[index * count / taken]).collect()
}

/// The places of a list of `count` items, in an order of which every beginning is spread evenly over the list: work that
/// is cut off has then seen a bit of everything.
pub fn spread_places(count: usize) -> Vec<usize> {
    // Multiples of the golden ratio, modulo 1, leave no large gap however many of them are taken.
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by_cached_key(|&place| ((place as f64 * golden).fract() * 2f64.powi(53)) as u64);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_beginning_is_spread_over_the_list() {
        let order = spread_places(5000);
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 5000);
        for beginning in [50, 300, 2500] {
            for tenth in 0..10 {
                let range = 500 * tenth..500 * (tenth + 1);
                let seen = order[..beginning].iter().filter(|place| range.contains(*place)).count();
                assert!(seen.abs_diff(beginning / 10) <= 3, "{beginning}: {seen} of tenth {tenth}");
            }
        }
        assert!(spread_places(0).is_empty());
    }

    fn triples() -> impl Strategy<Value = Vec<Triple>> {
        prop::collection::vec((0u32..6, 0u32..3, 0u32..6), 0..60)
            .prop_map(|facts| facts.into_iter().map(|(h, r, t)| Triple::new(h, r, t)).collect())
    }

    proptest! {
        #[test]
        fn distinct_keeps_first_appearances(facts in triples()) {
            let mut naive = Vec::new();
            for fact in &facts {
                if !naive.contains(fact) {
                    naive.push(*fact);
                }
            }
            let repeated = facts.len() - naive.len();
            prop_assert_eq!(distinct(6, facts), (naive, repeated));
        }

        #[test]
        fn shared_counts_what_two_lists_have_in_common(a in triples(), b in triples(), c in triples()) {
            let set = |list: &[Triple]| list.iter().copied().collect::<BTreeSet<_>>();
            let others = &set(&b) | &set(&c);
            prop_assert_eq!(shared(&a, &[&b, &c]), (&set(&a) & &others).len());
        }

        #[test]
        fn a_division_loses_nothing_and_leaves_every_name_in_training(facts in triples(), seed in 0u64..20) {
            let (facts, _) = distinct(6, facts);
            let Ok([train, valid, test]) = divide(&facts, &SplitShares::default(), seed) else { return Ok(()) };
            let all: BTreeSet<Triple> = [&train[..], &valid, &test].concat().into_iter().collect();
            prop_assert_eq!(all.len(), train.len() + valid.len() + test.len());
            prop_assert_eq!(all, facts.iter().copied().collect::<BTreeSet<_>>());
            let entities = |facts: &[Triple]| facts.iter().flat_map(|t| [t.head, t.tail]).collect::<BTreeSet<_>>();
            let relations = |facts: &[Triple]| facts.iter().map(|t| t.relation).collect::<BTreeSet<_>>();
            prop_assert_eq!(entities(&train), entities(&facts));
            prop_assert_eq!(relations(&train), relations(&facts));
        }
    }

    #[test]
    fn facts_with_a_place_keep_it_and_the_others_are_divided() {
        let facts: Vec<Triple> = (0..200).map(|n| Triple::new(n % 10, 0, 10 + n / 10)).collect();
        let placed: Vec<Option<Place>> =
            (0..200).map(|n| (n < 100).then_some((n % 4 == 0) as Place)).collect();
        let shares = SplitShares::default();
        let [train, valid, test] = divide_others(&facts, &placed, &shares, 3).unwrap();
        for (fact, place) in facts.iter().zip(&placed) {
            assert!(place.is_none_or(|place| [&train, &valid, &test][place as usize].contains(fact)));
        }
        assert_eq!((train.len(), valid.len(), test.len()), (75 + 80, 25 + 10, 10));
        // The new facts may be too few to hold any out.
        let placed: Vec<Option<Place>> = (0..200).map(|n| (n < 198).then_some((n % 3) as Place)).collect();
        let [train, valid, test] = divide_others(&facts, &placed, &shares, 3).unwrap();
        assert_eq!((train.len(), valid.len(), test.len()), (68, 66, 66));
    }

    #[test]
    fn shares_must_add_up() {
        assert_eq!(
            "0.7, 0.2,0.1".parse(),
            Ok(SplitShares { train: 0.7, valid: 0.2, test: 0.1, since: None })
        );
        for wrong in ["0.8,0.2", "1,0,0", "0.5,0.5,0.5", "a,b,c", ""] {
            assert!(wrong.parse::<SplitShares>().unwrap_err().contains("add up to 1"), "{wrong}");
        }
    }
}
