//! Measures of paths that need no judges. None of them is a judgement.
//!
//! All systems are measured on the same facts: the first ones, in the order in which a study is drawn, that every
//! system explains by a path.

use super::JudgeError;
use super::contender::{Contender, first_run};
use super::study::{DrawOptions, blocks, explained, shuffled};
use crate::ask::Model;
use crate::graph::{EntityId, Graph, Link, Query, Triple};
use crate::progress::{Progress, Quiet};
use crate::reason::{Hop, PathRuleIndex};
use crate::rule::{Counts, Rule, UNSEEN, count_rules, estimate_rules};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// Paths of more links than this are not counted as rules but estimated: a propagator's paths have up to six, and on a
/// dense graph there are billions of such paths.
const COUNTED: usize = 3;
/// The entities that such an estimate starts from.
const SOURCES: usize = 256;

/// Figures about the paths of a system. As JSON their names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathMeasures {
    /// The system.
    pub system: String,
    /// Facts of the validation split that were examined.
    pub looked_at: usize,
    /// Those of them that the system explains by a path.
    pub answered: usize,
    /// Those that all systems explain: the basis of the other figures.
    pub paths: usize,
    /// The share of paths that follow a mined rule; absent where no run has mined any.
    pub rule_share: Option<f64>,
    /// The share of paths that follow a mined rule whose confidence is above the threshold of the run that mined it.
    pub trusted_rule_share: Option<f64>,
    /// The mean smoothed confidence of the rules that are followed.
    pub rule_confidence: Option<f64>,
    /// The mean number of links.
    pub length: f64,
    /// How many paths have one link, two links, and so on.
    pub lengths: Vec<usize>,
    /// The share of paths that visit an entity twice.
    pub revisiting_share: f64,
    /// The share of paths whose relations also lead from head to tail of another fact of the same relation.
    pub supported_share: f64,
    /// The median number of such facts.
    pub support_median: f64,
    /// The mean share of such facts among all facts of the relation.
    pub support_share: f64,
    /// The mean smoothed confidence of the path's relations as a rule, counted in the graph, mined or not.
    pub path_confidence: f64,
}

/// Measures the paths of `contenders` to the first [`DrawOptions::triples`] facts that all of them explain.
///
/// # Errors
/// If there is no run, runs differ in their data, a reasoner fails, or the user interrupts.
pub fn measure(
    contenders: &[Contender],
    options: &DrawOptions,
    progress: &dyn Progress,
) -> Result<Vec<PathMeasures>, JudgeError> {
    let model = first_run(contenders)?;
    let mut rows: Vec<Vec<(Triple, Vec<Hop>)>> = vec![Vec::new(); contenders.len()];
    let (mut looked_at, mut answered) = (0, vec![0; contenders.len()]);
    progress.begin("measuring", "facts", Some(options.triples as u64));
    for block in blocks(&shuffled(model, options.seed)) {
        let paths = explained(contenders, block, options, &Quiet(progress))?;
        for (at, &triple) in block.iter().enumerate() {
            if rows[0].len() >= options.triples {
                break;
            }
            looked_at += 1;
            for (answered, paths) in answered.iter_mut().zip(&paths) {
                *answered += usize::from(paths[at].is_some());
            }
            let all: Option<Vec<&Vec<Hop>>> = paths.iter().map(|paths| paths[at].as_ref()).collect();
            for (row, path) in rows.iter_mut().zip(all.into_iter().flatten()) {
                row.push((triple, path.clone()));
            }
        }
        progress.advance(rows[0].len() as u64, &"");
        if rows[0].len() >= options.triples {
            break;
        }
    }
    let yardstick = Yardstick::new(model.graph(), contenders);
    let measured = contenders.iter().zip(&rows).zip(answered).map(|((contender, paths), answered)| {
        PathMeasures { system: contender.name.clone(), looked_at, answered, ..yardstick.figures(paths) }
    });
    let measured: Vec<PathMeasures> = measured.collect();
    progress.end(&format_args!("{} facts that all systems explain, of {looked_at}", rows[0].len()));
    Ok(measured)
}

/// The reference that all paths are measured against.
struct Yardstick<'a> {
    graph: &'a Arc<Graph>,
    /// The mined rules of the first run that has any, and its confidence threshold.
    rules: Option<(PathRuleIndex, f64)>,
}

impl<'a> Yardstick<'a> {
    fn new(graph: &'a Arc<Graph>, contenders: &[Contender]) -> Self {
        let mut models = contenders.iter().filter_map(Contender::model);
        let of = |model: &Model| (PathRuleIndex::new(model.rules()), model.config().rules.threshold);
        Self { graph, rules: models.find(|model| !model.rules().is_empty()).map(of) }
    }

    /// The counts of paths as rules: exact for short ones, estimated for long ones.
    fn counts(&self, bodies: &[Rule]) -> Vec<Counts> {
        let is_short = |rule: &Rule| rule.body.len() <= COUNTED;
        let (short, long): (Vec<Rule>, Vec<Rule>) = bodies.iter().cloned().partition(is_short);
        let mut short = count_rules(self.graph, &short, true).into_iter();
        let mut long = estimate_rules(self.graph, &long, SOURCES).into_iter();
        let next = |rule: &Rule| if is_short(rule) { short.next() } else { long.next() };
        bodies.iter().map(next).map(Option::unwrap_or_default).collect()
    }

    fn figures(&self, paths: &[(Triple, Vec<Hop>)]) -> PathMeasures {
        let query = |triple: &Triple| Query { subject: triple.head, link: Link::forward(triple.relation) };
        let followed: Option<Vec<f64>> = self.rules.as_ref().map(|(rules, _)| {
            let confidence = |(triple, path): &(Triple, Vec<Hop>)| {
                Some(rules.of(query(triple), path)?.counts.confidence(UNSEEN))
            };
            paths.iter().filter_map(confidence).collect()
        });
        let trusted = self.rules.as_ref().zip(followed.as_ref()).map(|((_, threshold), followed)| {
            followed.iter().filter(|confidence| *confidence > threshold).count()
        });
        let rule = |(triple, path): &(Triple, Vec<Hop>)| {
            let body: Vec<Link> = path.iter().map(|hop| hop.link).collect();
            Rule::cyclic(Link::forward(triple.relation), &body)
        };
        let bodies: Vec<Rule> = paths.iter().map(rule).collect();
        let counts = self.counts(&bodies);
        let facts = |triple: &Triple| self.graph.pairs(Link::forward(triple.relation)).len().max(1) as f64;
        let of_relation =
            |((triple, _), counts): (&(Triple, _), &Counts)| counts.correct as f64 / facts(triple);
        let mut support: Vec<u64> = counts.iter().map(|counts| counts.correct).collect();
        support.sort_unstable();
        let share = |count: usize| count as f64 / paths.len().max(1) as f64;
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / paths.len().max(1) as f64;
        PathMeasures {
            system: String::new(),
            looked_at: 0,
            answered: 0,
            paths: paths.len(),
            rule_share: followed.as_ref().map(|followed| share(followed.len())),
            trusted_rule_share: trusted.map(share),
            rule_confidence: followed
                .filter(|followed| !followed.is_empty())
                .map(|followed| followed.iter().sum::<f64>() / followed.len() as f64),
            length: mean(&mut paths.iter().map(|(_, path)| path.len() as f64)),
            lengths: lengths(paths),
            revisiting_share: share(
                paths.iter().filter(|(triple, path)| revisits(triple.head, path)).count(),
            ),
            supported_share: share(support.iter().filter(|support| **support > 0).count()),
            support_median: median(&support),
            support_share: mean(&mut paths.iter().zip(&counts).map(of_relation)),
            path_confidence: mean(&mut counts.iter().map(|counts| counts.confidence(UNSEEN))),
        }
    }
}

fn lengths(paths: &[(Triple, Vec<Hop>)]) -> Vec<usize> {
    let longest = paths.iter().map(|(_, path)| path.len()).max().unwrap_or(0);
    (1..=longest).map(|length| paths.iter().filter(|(_, path)| path.len() == length).count()).collect()
}

fn revisits(start: EntityId, path: &[Hop]) -> bool {
    let mut seen = HashSet::from([start]);
    !path.iter().all(|hop| seen.insert(hop.target))
}

/// The median of sorted numbers.
fn median(sorted: &[u64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        count => (sorted[(count - 1) / 2] + sorted[count / 2]) as f64 / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use crate::rule::ScoredRule;

    #[test]
    fn paths_are_measured_as_by_hand() {
        // Relation 0 leads 0 -> 1 -> 2, 3 -> 4 -> 5 and 6 -> 7 -> 8; relation 1 has the ends of the first two, the
        // third is asked for. Relation 2 leads 6 -> 8 in a way that no other fact of relation 1 has.
        let mut facts: Vec<Triple> = [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)]
            .iter()
            .map(|&(h, t)| Triple::new(h, 0, t))
            .collect();
        facts.extend([Triple::new(0, 1, 2), Triple::new(3, 1, 5), Triple::new(6, 2, 8)]);
        let graph = Arc::new(Graph::new(9, 3, &facts));
        let [down, asked, other] = [0, 1, 2].map(|relation| Link::forward(RelationId(relation)));
        let rule = ScoredRule { rule: Rule::cyclic(asked, &[down, down]), counts: Counts::exact(3, 2) };
        let yardstick = Yardstick { graph: &graph, rules: Some((PathRuleIndex::new(&[rule]), 0.2)) };
        let hop = |link, target| Hop { link, target: EntityId(target), scores: None };
        let triple = Triple::new(6, 1, 8);
        let paths = [
            (triple, vec![hop(down, 7), hop(down, 8)]),
            (triple, vec![hop(other, 8)]),
            (triple, vec![hop(down, 7), hop(down.reversed(), 6), hop(other, 8)]),
        ];
        let figures = yardstick.figures(&paths);
        let third = 1.0 / 3.0;
        assert_eq!(figures.rule_share, Some(third));
        assert_eq!(figures.trusted_rule_share, Some(third));
        assert_eq!(figures.rule_confidence, Some(2.0 / 8.0));
        assert_eq!((figures.length, figures.lengths), (2.0, vec![1, 1, 1]));
        assert_eq!(figures.revisiting_share, third);
        // The first path holds for both facts of relation 1, the others for none.
        assert_eq!((figures.supported_share, figures.support_median), (third, 0.0));
        assert_eq!(figures.support_share, third);
        assert!((figures.path_confidence - third * 2.0 / 8.0).abs() < 1e-12, "{}", figures.path_confidence);
        let strict = Yardstick { rules: yardstick.rules.map(|(rules, _)| (rules, 0.25)), ..yardstick };
        assert_eq!(strict.figures(&paths).trusted_rule_share, Some(0.0));
        let none = Yardstick { rules: None, graph: &graph }.figures(&[]);
        assert_eq!((none.rule_share, none.paths, none.length), (None, 0, 0.0));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median(&[]), median(&[3]), median(&[1, 2]), median(&[1, 2, 9])], [0.0, 3.0, 1.5, 2.0]);
    }
}
