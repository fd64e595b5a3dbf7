//! The result of a study: from votes to shares and agreement.
//!
//! As in the paper, *both* and *neither* are a draw, the majority decides an item, and an item without one (1-1-1) is
//! dropped. Also reported, unlike in the paper: confidence intervals, agreement between judges and of judges with
//! themselves, and whether the side mattered. Only a judge's first vote on an item counts; the second one, on a
//! repetition, is compared with it.

use super::Study;
use super::statistics::{bootstrap, fleiss_kappa, krippendorff_alpha, quantile, wilson};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bootstrap rounds for an interval.
const ROUNDS: usize = 2000;

/// What a judge chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The path on the left.
    Left,
    /// The path on the right.
    Right,
    /// Both are equally good.
    Both,
    /// Neither is reasonable.
    Neither,
}

impl Choice {
    /// All of them, in the order of their keys.
    pub const ALL: [Choice; 4] = [Choice::Left, Choice::Right, Choice::Both, Choice::Neither];

    /// Its word in files and addresses.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Left => "left",
            Choice::Right => "right",
            Choice::Both => "both",
            Choice::Neither => "neither",
        }
    }

    /// The choice with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == word)
    }
}

/// What a vote says about the two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Favoured {
    /// The first system's path is better.
    First,
    /// The second system's path is better.
    Second,
    /// Both, or neither.
    Draw,
}

/// One vote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The judge, from 1.
    pub judge: usize,
    /// Which of the judge's screens it was, from 0.
    pub position: usize,
    /// The item, by its place in the study.
    pub item: usize,
    /// Whether the judge had seen it before.
    pub repeat: bool,
    /// Whether the first system's path was on the left.
    pub first_on_left: bool,
    /// The judge's choice.
    pub choice: Choice,
    /// How long the screen was looked at.
    pub seconds: f64,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
}

impl Vote {
    /// What it says about the two systems.
    pub fn verdict(&self) -> Favoured {
        match (self.choice, self.first_on_left) {
            (Choice::Left, true) | (Choice::Right, false) => Favoured::First,
            (Choice::Left, false) | (Choice::Right, true) => Favoured::Second,
            (Choice::Both | Choice::Neither, _) => Favoured::Draw,
        }
    }

    /// The verdict with *both* and *neither* apart, as a category.
    fn category(&self) -> usize {
        match (self.verdict(), self.choice) {
            (Favoured::First, _) => 0,
            (Favoured::Second, _) => 1,
            (Favoured::Draw, Choice::Both) => 2,
            (Favoured::Draw, _) => 3,
        }
    }
}

/// A share with its 95 % interval (Wilson).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// The share; absent if `of` is 0.
    pub share: Option<f64>,
    /// The interval.
    pub interval: Option<[f64; 2]>,
}

impl Ratio {
    fn new(count: usize, of: usize) -> Self {
        let share = (of > 0).then(|| count as f64 / of as f64);
        Self { count, of, share, interval: wilson(count, of) }
    }

    fn of<'a>(votes: impl Iterator<Item = &'a Vote> + Clone, holds: impl Fn(&Vote) -> bool) -> Self {
        Self::new(votes.clone().filter(|vote| holds(vote)).count(), votes.count())
    }
}

/// How long votes took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// The lower quartile.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub upper: f64,
}

impl Seconds {
    fn of<'a>(votes: impl Iterator<Item = &'a Vote>) -> Option<Self> {
        let mut seconds: Vec<f64> = votes.map(|vote| vote.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let [lower, median, upper] = [0.25, 0.5, 0.75].map(|share| quantile(&seconds, share));
        Some(Self { lower: lower?, median: median?, upper: upper? })
    }
}

/// How far judges agree with each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Krippendorff's alpha of first, second and draw; absent where nothing was judged twice, or all votes are the same.
    pub alpha: Option<f64>,
    /// The same with *both* and *neither* apart.
    pub alpha_four: Option<f64>,
    /// Fleiss' kappa of first, second and draw, over the items that all judges have judged.
    pub kappa: Option<f64>,
    /// How many items these are.
    pub complete: usize,
}

/// The result for a pair of systems. As JSON the names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairJudgement {
    /// The first system.
    pub first: String,
    /// The second system.
    pub second: String,
    /// Items of the study.
    pub items: usize,
    /// Facts that were left out because both paths are identical.
    pub identical: usize,
    /// Items with too few votes so far.
    pub open: usize,
    /// Items without a majority.
    pub dropped: usize,
    /// Items with a majority: the denominator of the three shares.
    pub counted: usize,
    /// Items for the first system.
    pub first_better: Ratio,
    /// Items for neither of them: *both* and *neither*.
    pub draw: Ratio,
    /// Items for the second system.
    pub second_better: Ratio,
    /// The share of the first minus that of the second.
    pub difference: Option<f64>,
    /// Its 95 % interval by a bootstrap over items.
    pub difference_interval: Option<[f64; 2]>,
    /// The 95 % interval of the first's share by the same bootstrap.
    pub first_interval: Option<[f64; 2]>,
    /// Votes for the first, for the second, for both and for neither.
    pub votes: [usize; 4],
    /// How far judges agree.
    pub agreement: Agreement,
}

/// What one judge did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgeSummary {
    /// The judge.
    pub judge: usize,
    /// Votes, repetitions included.
    pub votes: usize,
    /// *Left* among the votes for a side.
    pub left: Ratio,
    /// Repetitions on which the verdict was the same.
    pub self_agreement: Ratio,
    /// How long votes took.
    pub seconds: Option<Seconds>,
}

/// The result of all votes. As JSON the names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The data set.
    pub dataset: String,
    /// The seed of the study.
    pub seed: u64,
    /// Votes, repetitions included.
    pub votes: usize,
    /// Votes that an item needs to count.
    pub needed: usize,
    /// Each pair of systems.
    pub pairs: Vec<PairJudgement>,
    /// *Left* among the votes for a side: half of them, if the side does not matter.
    pub left: Ratio,
    /// Repetitions on which a judge's verdict was the same.
    pub self_agreement: Ratio,
    /// How long votes took.
    pub seconds: Option<Seconds>,
    /// Each judge.
    pub judges: Vec<JudgeSummary>,
}

impl Judgement {
    /// The result of `votes` on `study`. An item counts once it has `needed` votes; by default, one from each judge who
    /// has voted at all.
    pub fn new(study: &Study, votes: &[Vote], needed: Option<usize>) -> Self {
        let judges: BTreeSet<usize> = votes.iter().map(|vote| vote.judge).collect();
        let needed = needed.unwrap_or(judges.len()).max(1);
        let first_votes: HashMap<(usize, usize), &Vote> =
            votes.iter().filter(|vote| !vote.repeat).map(|vote| ((vote.judge, vote.item), vote)).collect();
        let agreed = |of: &[&Vote]| {
            let repeated = of.iter().filter(|vote| vote.repeat);
            let twice: Vec<bool> = repeated
                .filter_map(|vote| {
                    Some(first_votes.get(&(vote.judge, vote.item))?.verdict() == vote.verdict())
                })
                .collect();
            Ratio::new(twice.iter().filter(|same| **same).count(), twice.len())
        };
        let summary = |judge: &usize| {
            let own: Vec<&Vote> = votes.iter().filter(|vote| vote.judge == *judge).collect();
            JudgeSummary {
                judge: *judge,
                votes: own.len(),
                left: left(&own),
                self_agreement: agreed(&own),
                seconds: Seconds::of(own.iter().copied()),
            }
        };
        let all: Vec<&Vote> = votes.iter().collect();
        let pair = |at: usize| PairJudgement::new(study, at, &first_votes, needed, judges.len());
        Self {
            dataset: study.dataset.clone(),
            seed: study.seed,
            votes: votes.len(),
            needed,
            pairs: (0..study.pairs.len()).map(pair).collect(),
            left: left(&all),
            self_agreement: agreed(&all),
            seconds: Seconds::of(votes.iter()),
            judges: judges.iter().map(summary).collect(),
        }
    }
}

/// *Left* among the votes for a side.
fn left(votes: &[&Vote]) -> Ratio {
    let sided = votes.iter().copied().filter(|vote| matches!(vote.choice, Choice::Left | Choice::Right));
    Ratio::of(sided, |vote| vote.choice == Choice::Left)
}

/// The verdict with more votes than any other.
fn majority(counts: [usize; 3]) -> Option<Favoured> {
    let most = counts.into_iter().max()?;
    let verdicts = [Favoured::First, Favoured::Second, Favoured::Draw];
    let mut best = verdicts.into_iter().zip(counts).filter(|(_, count)| *count == most);
    let winner = best.next().map(|(verdict, _)| verdict);
    winner.filter(|_| best.next().is_none())
}

fn counted(votes: &[&Vote]) -> [usize; 3] {
    let mut counts = [0; 3];
    for vote in votes {
        counts[vote.verdict() as usize] += 1;
    }
    counts
}

impl PairJudgement {
    fn new(
        study: &Study,
        at: usize,
        votes: &HashMap<(usize, usize), &Vote>,
        needed: usize,
        judges: usize,
    ) -> Self {
        let pair = &study.pairs[at];
        let mut by_item: BTreeMap<usize, Vec<&Vote>> = BTreeMap::new();
        for ((_, item), vote) in votes.iter().filter(|((_, item), _)| study.items[*item].pair == at) {
            by_item.entry(*item).or_default().push(vote);
        }
        let ready: Vec<&Vec<&Vote>> = by_item.values().filter(|votes| votes.len() >= needed).collect();
        let verdicts: Vec<Option<Favoured>> = ready.iter().map(|votes| majority(counted(votes))).collect();
        let decided: Vec<Favoured> = verdicts.iter().flatten().copied().collect();
        let of = |wanted: Favoured| {
            Ratio::new(decided.iter().filter(|verdict| **verdict == wanted).count(), decided.len())
        };
        let first_share = |drawn: &[&Option<Favoured>]| shares(drawn).map(|[first, _]| first);
        let difference = |drawn: &[&Option<Favoured>]| shares(drawn).map(|[first, second]| first - second);
        let mut categories = [0; 4];
        for vote in by_item.values().flatten() {
            categories[vote.category()] += 1;
        }
        Self {
            first: study.systems[pair.systems[0]].clone(),
            second: study.systems[pair.systems[1]].clone(),
            items: pair.items,
            identical: pair.identical,
            open: pair.items - ready.len(),
            dropped: ready.len() - decided.len(),
            counted: decided.len(),
            first_better: of(Favoured::First),
            draw: of(Favoured::Draw),
            second_better: of(Favoured::Second),
            difference: difference(&verdicts.iter().collect::<Vec<_>>()),
            // Dropped items are resampled like the others: which items are dropped is random too.
            difference_interval: bootstrap(&verdicts, ROUNDS, study.seed, difference),
            first_interval: bootstrap(&verdicts, ROUNDS, study.seed, first_share),
            votes: categories,
            agreement: Agreement::of(&by_item, judges),
        }
    }
}

/// The shares of the first and of the second among items with a majority.
fn shares(verdicts: &[&Option<Favoured>]) -> Option<[f64; 2]> {
    let decided: Vec<Favoured> = verdicts.iter().copied().flatten().copied().collect();
    let share = |wanted: Favoured| decided.iter().filter(|verdict| **verdict == wanted).count() as f64;
    let of = |count: f64| count / decided.len() as f64;
    (!decided.is_empty()).then(|| [of(share(Favoured::First)), of(share(Favoured::Second))])
}

impl Agreement {
    fn of(by_item: &BTreeMap<usize, Vec<&Vote>>, judges: usize) -> Self {
        let units = |category: fn(&Vote) -> usize| -> Vec<Vec<usize>> {
            by_item.values().map(|votes| votes.iter().map(|vote| category(vote)).collect()).collect()
        };
        let complete: Vec<[usize; 3]> =
            by_item.values().filter(|votes| votes.len() == judges).map(|votes| counted(votes)).collect();
        Self {
            alpha: krippendorff_alpha(&units(|vote| vote.verdict() as usize)),
            alpha_four: krippendorff_alpha(&units(Vote::category)),
            kappa: fleiss_kappa(&complete),
            complete: complete.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::study::tests::study;

    fn vote(judge: usize, item: usize, choice: Choice, first_on_left: bool, repeat: bool) -> Vote {
        Vote { judge, position: 0, item, repeat, first_on_left, choice, seconds: judge as f64, time_ms: 0 }
    }

    /// Five items and three judges, worked out by hand.
    #[test]
    fn votes_come_to_what_they_come_to_by_hand() {
        use Choice::{Both, Left, Neither, Right};
        let rows = [
            // First, first, first.
            [(Left, true), (Right, false), (Left, true)],
            // First, first, draw.
            [(Left, true), (Left, true), (Both, true)],
            // Second, second, first.
            [(Right, true), (Left, false), (Right, false)],
            // Draw, draw, second.
            [(Both, true), (Neither, false), (Left, false)],
            // One each: dropped.
            [(Left, true), (Left, false), (Neither, true)],
        ];
        let mut votes: Vec<Vote> = Vec::new();
        for (item, row) in rows.into_iter().enumerate() {
            for (judge, (choice, first_on_left)) in (1..).zip(row) {
                votes.push(vote(judge, item, choice, first_on_left, false));
            }
        }
        // The first judge says the same again on the other side, the second does not.
        votes.push(vote(1, 0, Right, false, true));
        votes.push(vote(2, 0, Neither, true, true));
        let judgement = Judgement::new(&study(5, 1), &votes, None);
        let pair = &judgement.pairs[0];
        assert_eq!((pair.counted, pair.dropped, pair.open, judgement.needed), (4, 1, 0, 3));
        let counts =
            [&pair.first_better, &pair.draw, &pair.second_better].map(|ratio| (ratio.count, ratio.of));
        assert_eq!(counts, [(2, 4), (1, 4), (1, 4)]);
        assert_eq!((pair.difference, pair.votes), (Some(0.25), [7, 4, 2, 2]));
        let [low, high] = pair.difference_interval.unwrap();
        assert!(low < 0.25 && 0.25 < high, "{low} {high}");
        // Of 11 votes for a side and the repeated one, 8 are for the left.
        assert_eq!((judgement.left.count, judgement.left.of), (8, 12));
        assert_eq!((judgement.self_agreement.count, judgement.self_agreement.of), (1, 2));
        assert_eq!(judgement.seconds.unwrap().median, 2.0);
        // n = 15 votes: 7 first, 4 second, 4 draws. Pairs that disagree: 0, 4, 4, 4, 6 of 6, each half a coincidence.
        // alpha = 1 − 14 · 9 / (225 − 49 − 16 − 16) = 1 − 126 / 144.
        assert!((pair.agreement.alpha.unwrap() - 18.0 / 144.0).abs() < 1e-12);
        // P = (6 + 2 + 2 + 2 + 0) / 30, P_e = (49 + 16 + 16) / 225.
        let (observed, chance) = (12.0 / 30.0, 81.0 / 225.0);
        assert!((pair.agreement.kappa.unwrap() - (observed - chance) / (1.0 - chance)).abs() < 1e-12);
        assert_eq!(pair.agreement.complete, 5);
        assert_eq!((judgement.judges.len(), judgement.judges[0].votes), (3, 6));
    }

    #[test]
    fn an_item_waits_for_everybody_unless_fewer_are_enough() {
        let votes = [
            vote(1, 0, Choice::Left, true, false),
            vote(2, 0, Choice::Left, true, false),
            vote(1, 1, Choice::Both, true, false),
        ];
        let of = |needed| {
            let pair = Judgement::new(&study(3, 1), &votes, needed).pairs.remove(0);
            (pair.counted, pair.open, pair.agreement.complete)
        };
        assert_eq!([of(None), of(Some(1)), of(Some(3))], [(1, 2, 1), (2, 1, 1), (0, 3, 1)]);
        let nothing = Judgement::new(&study(3, 1), &[], None);
        assert_eq!(
            (nothing.pairs[0].open, nothing.pairs[0].first_better.share, nothing.seconds),
            (3, None, None)
        );
    }
}
