//! Calibration on data with known probabilities.

use super::observe::asked_once;
use super::*;
use crate::eval::{Answers, EvalError, Reasoner, ReasonerError, Scored};
use crate::graph::{Adjacency, EntityId, Graph, Query, Triple};
use crate::progress::{Impatient, Silent};
use crate::shard::Shard;
use proptest::prelude::*;

fn names(relations: &[&str]) -> Names {
    Names { relations: relations.iter().copied().collect(), ..Names::default() }
}

fn relation(id: RelationId) -> String {
    id.0.to_string()
}

/// Pseudo-random numbers from a counter, from 0 to 1.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Queries over two relations whose answers have known probabilities: they depend on the score and on the relation.
/// `scale` is how a reasoner would scale its scores.
fn world(queries: usize, seed: u64, scale: fn(f64) -> f64) -> (Vec<Outcome>, Vec<Vec<f64>>) {
    let mut dice = Dice(seed);
    let mut outcomes = Vec::new();
    let mut chances = Vec::new();
    for query in 0..queries {
        let relation = (query % 2) as u32;
        let mut scores: Vec<f64> = (0..10).map(|_| (dice.next() * 20.0).floor() / 20.0).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let own = if relation == 0 { 1.0 } else { -1.5 };
        let known: Vec<f64> = scores.iter().map(|&score| share_of(4.0 * score - 3.0 + own)).collect();
        outcomes.push(Outcome {
            list: RankedScores {
                link: Link::forward(RelationId(relation)),
                known: 1,
                usual: 2.0,
                scores: scores.iter().map(|&score| scale(score)).collect(),
            },
            judged: scores
                .iter()
                .zip(&known)
                .map(|(&score, &chance)| JudgedAnswer::new(scale(score), dice.next() < chance))
                .collect(),
            stands_in: false,
            weight: 1.0,
        });
        chances.push(known);
    }
    (outcomes, chances)
}

const SCALES: [fn(f64) -> f64; 3] =
    [|score| score, |score| (score + 0.01).ln() * 7.0, |score| 1e6 * score - 4e5];

#[test]
fn known_probabilities_are_found_on_any_scale() {
    for scale in SCALES {
        let (seen, _) = world(2000, 1, scale);
        let calibrator = Calibrator::new(
            &Calibration::fit(&seen.clone().into(), &names(&["a", "b"])).unwrap(),
            &names(&["a", "b"]),
        );
        let (fresh, chances) = world(2000, 2, scale);
        let table = calibrator.reliability(&fresh, 10, relation);
        assert!(table.ece < 0.015, "{table}");
        let mut off = 0.0;
        for (outcome, chances) in fresh.iter().zip(&chances) {
            let estimated = calibrator.probabilities(&outcome.list);
            off += estimated
                .iter()
                .zip(chances)
                .map(|(estimated, chance)| (estimated - chance).abs())
                .sum::<f64>();
        }
        assert!(off / 20_000.0 < 0.03, "in the mean {} off", off / 20_000.0);
    }
}

#[test]
fn a_score_alone_would_be_wrong_about_both_relations() {
    let (seen, _) = world(2000, 1, |score| score);
    let both = names(&["a", "b"]);
    let calibration = Calibration::fit(&seen.clone().into(), &both).unwrap();
    let calibrator = Calibrator::new(&calibration, &both);
    let estimated = |relation| {
        let mut list = seen[0].list.clone();
        list.link = Link::forward(RelationId(relation));
        calibrator.probabilities(&list)[0]
    };
    assert!(estimated(0) > estimated(1) + 0.2, "{} {}", estimated(0), estimated(1));
    // By name, not by number: other data may number the relations in the opposite order.
    let turned = Calibrator::new(&calibration, &names(&["b", "a"]));
    let numbered =
        |relation| RankedScores { link: Link::forward(RelationId(relation)), ..seen[0].list.clone() };
    assert_eq!(turned.probabilities(&numbered(0)), calibrator.probabilities(&numbered(1)));
    assert_eq!(turned.probabilities(&numbered(1)), calibrator.probabilities(&numbered(0)));
}

#[test]
fn few_queries_give_rough_probabilities_and_none_give_none() {
    let (fresh, _) = world(2000, 3, |score| score);
    for (queries, within) in [(1, 0.5), (12, 0.2), (40, 0.12)] {
        let (seen, _) = world(queries, 9, |score| score);
        let both = names(&["a", "b"]);
        let table = Calibrator::new(&Calibration::fit(&seen.clone().into(), &both).unwrap(), &both)
            .reliability(&fresh, 10, relation);
        assert!(table.ece < within, "{queries} queries: {table}");
    }
    assert_eq!(Calibration::fit(&Vec::new().into(), &names(&[])), None);
    let nothing = Outcome { judged: Vec::new(), ..fresh[0].clone() };
    assert_eq!(Calibration::fit(&vec![nothing].into(), &names(&["a"])), None);
}

#[test]
fn answers_that_the_test_split_has_do_not_count_against_those_of_validation() {
    // Every query has answers of both splits, and all of the first half is true; but only validation is known.
    let mut dice = Dice(5);
    let mut seen = Vec::new();
    for query in 0..2000u32 {
        let valid: Vec<bool> = (0..10).map(|place| place < 5 && dice.next() < 0.5).collect();
        let trues = valid.iter().filter(|&&is_true| is_true).count();
        // A query without a validation fact is not asked.
        if trues > 0 {
            let list = RankedScores {
                link: Link::forward(RelationId(query % 2)),
                known: 9,
                usual: 9.0,
                scores: (0..10).map(|place| -f64::from(place)).collect(),
            };
            let judged = list.scores.iter().zip(valid);
            let judged = judged.map(|(&score, is_true)| JudgedAnswer::new(score, is_true)).collect();
            seen.push(Outcome { list, judged, stands_in: trues > 1, weight: 1.0 });
        }
    }
    let both = names(&["a", "b"]);
    let calibrator = Calibrator::new(&Calibration::fit(&seen.clone().into(), &both).unwrap(), &both);
    let estimated = calibrator.probabilities(&seen[0].list);
    // Near the edge the curve is smoothed; elsewhere true answers are likely and no others are.
    assert!(estimated[..4].iter().all(|&estimated| estimated > 0.9) && estimated[4] > 0.7, "{estimated:?}");
    assert!(estimated[5] < 0.2 && estimated[6..].iter().all(|&estimated| estimated < 0.01), "{estimated:?}");
}

#[test]
fn facts_of_half_certainty_are_half_as_probable() {
    let (mut seen, _) = world(2000, 6, |score| score);
    let both = names(&["a", "b"]);
    let fitted =
        |seen: &[Outcome]| Calibrator::new(&Calibration::fit(&seen.to_vec().into(), &both).unwrap(), &both);
    let certain = fitted(&seen).probabilities(&seen[0].list);
    for answer in seen.iter_mut().flat_map(|outcome| &mut outcome.judged) {
        answer.truth *= 0.5;
    }
    let halved = fitted(&seen);
    let table = halved.reliability(&seen, 10, relation);
    assert!(table.ece < 0.02, "{table}");
    for (half, whole) in halved.probabilities(&seen[0].list).iter().zip(certain) {
        assert!((half - whole / 2.0).abs() < 0.05, "{half} of {whole}");
    }
}

#[test]
fn what_is_known_to_be_false_hides_no_facts() {
    // Five answers of each query are true, and the others as good ones are false: for certain, or maybe hidden.
    let seen_with = |is_denied: bool| -> Vec<Outcome> {
        let list =
            RankedScores { link: Link::forward(RelationId(0)), known: 9, usual: 9.0, scores: vec![1.0; 10] };
        let answer =
            |at: usize| JudgedAnswer { is_denied: is_denied && at >= 5, ..JudgedAnswer::new(1.0, at < 5) };
        let outcome = Outcome { list, judged: (0..10).map(answer).collect(), stands_in: true, weight: 1.0 };
        vec![outcome; 200]
    };
    let name = names(&["a"]);
    let best = |seen: Vec<Outcome>| {
        let calibrator = Calibrator::new(&Calibration::fit(&seen.clone().into(), &name).unwrap(), &name);
        calibrator.probabilities(&seen[0].list)[0]
    };
    let (hidden, denied) = (best(seen_with(false)), best(seen_with(true)));
    assert!(hidden > 0.8 && (denied - 0.5).abs() < 0.02, "{hidden} {denied}");
}

#[test]
fn where_nothing_was_true_nothing_is_likely() {
    let (mut seen, _) = world(50, 1, |score| score);
    seen.iter_mut().flat_map(|outcome| &mut outcome.judged).for_each(|one| one.truth = 0.0);
    let both = names(&["a", "b"]);
    let calibrator = Calibrator::new(&Calibration::fit(&seen.clone().into(), &both).unwrap(), &both);
    let estimated = calibrator.probabilities(&seen[0].list);
    assert!(estimated.iter().all(|&estimated| estimated > 0.0 && estimated < 0.01), "{estimated:?}");
}

#[test]
fn whether_an_answer_is_left_is_known_to_the_calibration() {
    // Half of the queries have no answer left, whatever their scores: those that have one already.
    let (mut seen, _) = world(2000, 4, |score| score);
    let mut counts = left::LeftCounts::default();
    for (at, outcome) in seen.iter_mut().enumerate() {
        outcome.list.known = usize::from(at % 4 < 2);
        if outcome.list.known == 1 {
            outcome.judged.iter_mut().for_each(|one| one.truth = 0.0);
        }
        counts.add(outcome.list.link, outcome.list.known, outcome.judged.iter().any(JudgedAnswer::is_true));
    }
    let both = names(&["a", "b"]);
    let observed = FitOutcomes { left: counts.shares(), ..seen.clone().into() };
    let calibrator = Calibrator::new(&Calibration::fit(&observed, &both).unwrap(), &both);
    let best = |known| calibrator.probabilities(&RankedScores { known, ..seen[0].list.clone() })[0];
    assert!(best(0) > 0.5 && best(1) < 0.05, "{} {}", best(0), best(1));
}

#[test]
fn few_true_answers_or_a_cut_sample_make_probabilities_rough() {
    let both = names(&["a", "b"]);
    let fitted = |queries: usize, planned: usize| {
        let observed = FitOutcomes { planned, ..world(queries, 1, |score| score).0.into() };
        Calibration::fit(&observed, &both).unwrap()
    };
    assert_eq!(fitted(300, 500).why_rough(), None);
    let few = fitted(9, 9).why_rough().unwrap();
    assert!(
        few.starts_with("calibration found only ") && few.ends_with(" true answers to 9 queries"),
        "{few}"
    );
    let cut = fitted(300, 700).why_rough().unwrap();
    assert_eq!(cut, "the time for calibration was enough for only 300 of 700 queries");
}

#[test]
fn a_longer_list_of_answers_gives_the_same_probabilities() {
    let (seen, _) = world(300, 7, |score| score);
    let both = names(&["a", "b"]);
    let calibrator = Calibrator::new(&Calibration::fit(&seen.into(), &both).unwrap(), &both);
    // The tenth answer is tied with others that a search for ten answers does not return.
    let scores: Vec<f64> = (0..30).map(|at| if at < 8 { 0.9 - 0.05 * f64::from(at) } else { 0.3 }).collect();
    let list = |most: usize| RankedScores {
        link: Link::forward(RelationId(0)),
        known: 1,
        usual: 2.0,
        scores: scores[..most].to_vec(),
    };
    assert_eq!(calibrator.probabilities(&list(10)), calibrator.probabilities(&list(30))[..10]);
}

#[test]
fn a_file_says_the_same() {
    let (seen, _) = world(200, 1, |score| -3.0 / (score + 0.1));
    let both = names(&["a", "b"]);
    let calibration = Calibration::fit(&seen.clone().into(), &both).unwrap();
    let text = serde_json::to_string(&calibration).unwrap();
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_higher_score_never_has_a_lower_probability(
        seed in any::<u64>(),
        queries in 1usize..60,
        scores in prop::collection::vec(-0.5f64..1.5, 0..30),
        (known, usual, relation) in (0usize..5, 1.0f64..9.0, 0u32..3),
        around in [0.0f64..1.0, 0.0f64..1.0],
    ) {
        let (mut seen, _) = world(queries, seed, |score| score);
        // Outcomes that contradict the order must not reverse it.
        if seed % 3 == 0 {
            for outcome in &mut seen {
                let turned: Vec<f64> = outcome.judged.iter().rev().map(|one| one.truth).collect();
                outcome.judged.iter_mut().zip(turned).for_each(|(one, truth)| one.truth = truth);
            }
        }
        let both = names(&["a", "b"]);
        let calibrator = Calibrator::new(&Calibration::fit(&seen.clone().into(), &both).unwrap(), &both);
        let mut scores: Vec<f64> = scores.iter().map(|score| (score * 10.0).round() / 10.0).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let link = Link::forward(RelationId(relation));
        let list = RankedScores { link, known, usual, scores: scores.clone() };
        let estimated = calibrator.probabilities(&list);
        prop_assert!(estimated.iter().all(|estimated| (0.0..=1.0).contains(estimated)), "{:?}", estimated);
        for at in 1..scores.len() {
            prop_assert!(estimated[at] <= estimated[at - 1], "{:?} {:?}", scores, estimated);
            prop_assert!(scores[at] != scores[at - 1] || estimated[at] == estimated[at - 1]);
        }
        // Nor is it higher than the bound for scores around these.
        let moved = |by: f64| scores.iter().zip(0..).map(|(score, at)| score + by / f64::from(1 + at % 3)).collect();
        let [lowest, highest] = [-around[0], around[1]].map(|by| {
            let mut scores: Vec<f64> = moved(by);
            scores.sort_by(|a, b| b.total_cmp(a));
            RankedScores { scores, ..list.clone() }
        });
        let most = calibrator.at_most([&lowest, &highest]);
        prop_assert!(estimated.iter().all(|&estimated| estimated <= most + 1e-12), "{:?} {}", estimated, most);
    }
}

/// Scores every entity by its id, lowest id best, as a list or densely.
struct ById {
    dense: bool,
}

impl Reasoner for ById {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let row = || (0..20u32).map(|id| Scored { entity: EntityId(id), score: -f64::from(id) });
        Ok(match self.dense {
            true => Answers::Dense {
                scores: queries.iter().flat_map(|_| row().map(|answer| answer.score as f32)).collect(),
                entities: 20,
            },
            false => Answers::Listed(queries.iter().map(|_| row().collect()).collect()),
        })
    }
}

#[test]
fn facts_are_no_answers_and_a_query_is_asked_once() {
    let triples =
        |ids: &[(u32, u32)]| ids.iter().map(|&(h, t)| Triple::new(h, 0, t)).collect::<Vec<Triple>>();
    let (facts, valid, test) = (triples(&[(0, 1)]), triples(&[(0, 3), (0, 4)]), triples(&[(0, 5)]));
    let graph = Graph::new(20, 1, &facts);
    let [earlier, valid_truth, truth] = [&valid, &valid, &test].map(|split| Adjacency::new(20, &[split]));
    let mut asked: Vec<(Query, f64)> = asked_once(&valid).into_iter().map(|query| (query, 1.0)).collect();
    asked.reverse();
    let seen_by = |reasoner: &ById, judged, progress: &dyn crate::progress::Progress| {
        observe(reasoner, &asked, judged, 4, Shard::WHOLE, progress)
    };
    let verdicts = |outcome: &Outcome| -> Vec<(f64, bool)> {
        outcome.judged.iter().map(|answer| (answer.score, answer.is_true())).collect()
    };
    let nothing = (None, [&[][..]; 2]);
    for dense in [true, false] {
        let (notes, denied) = nothing;
        let judged =
            Judged { graph: &graph, taken_out: None, truth: &valid_truth, hides: true, notes, denied };
        let seen = seen_by(&ById { dense }, judged, &Silent).unwrap();
        assert_eq!(seen.len(), 3, "one tail query and two head queries");
        let tail = &seen[0];
        assert_eq!(tail.list.scores[..4], [0.0, -2.0, -3.0, -4.0]);
        assert_eq!(verdicts(tail), [(0.0, false), (-2.0, false), (-3.0, true), (-4.0, true)]);
        assert_eq!(seen.iter().map(|one| one.stands_in).collect::<Vec<bool>>(), [true, true, true]);
        assert_eq!((tail.list.known, tail.list.usual), (1, 1.0));
        assert_eq!(tail.list.scores.len(), 10, "others are compared with");
        let judged =
            Judged { graph: &graph, taken_out: Some(&earlier), truth: &truth, hides: false, notes, denied };
        let seen = seen_by(&ById { dense }, judged, &Silent).unwrap();
        assert_eq!(seen[0].list.scores[..4], [0.0, -2.0, -3.0, -4.0], "validation facts are compared with");
        assert_eq!(verdicts(&seen[0]), [(0.0, false), (-2.0, false), (-5.0, true), (-6.0, false)]);
        let stopped = seen_by(&ById { dense }, judged, &Impatient);
        assert!(matches!(stopped, Err(EvalError::Interrupted)));
    }
}
