//! A study: facts of the validation split, each with the paths by which two systems explain it.
//!
//! The split is shuffled by the seed. For each pair of systems, the study takes the first facts that both explain by
//! different paths; those explained by the same path are only counted. So the same systems and the same seed draw the
//! same study.

use super::JudgeError;
use super::contender::{Contender, first_run};
use crate::ask::{Model, PathStep, answer};
use crate::graph::{EntityId, RelationId, Triple};
use crate::progress::{Progress, Quiet};
use crate::reason::Hop;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Facts that all systems are asked for at once. What is drawn does not depend on it.
const BLOCK: usize = 64;

/// How a study is drawn.
#[derive(Clone, Copy, Debug)]
pub struct DrawOptions {
    /// Facts for each pair of systems.
    pub triples: usize,
    /// The seed.
    pub seed: u64,
    /// The lowest rank at which a system may have the answer; any rank if not given.
    pub within: Option<usize>,
    /// Threads that ask.
    pub workers: usize,
}

/// A study: everything that judges are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// The name of the data set.
    pub dataset: String,
    /// The seed of every choice in it.
    pub seed: u64,
    /// The version of the program that drew it.
    pub version: String,
    /// The systems.
    pub systems: Vec<String>,
    /// Which of them are compared.
    pub pairs: Vec<StudyPair>,
    /// What is judged.
    pub items: Vec<StudyItem>,
}

/// Two systems, and how their facts were drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyPair {
    /// The two, by their places in [`Study::systems`].
    pub systems: [usize; 2],
    /// Facts of the validation split that were examined.
    pub looked_at: usize,
    /// Those that one or both do not explain.
    pub unanswered: usize,
    /// Those that both explain by the same path.
    pub identical: usize,
    /// Those to be judged.
    pub items: usize,
}

/// A fact with two paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyItem {
    /// The pair of systems, by its place in [`Study::pairs`].
    pub pair: usize,
    /// The head of the true fact.
    pub head: LabelledEntity,
    /// Its relation.
    pub relation: LabelledEntity,
    /// Its tail.
    pub tail: LabelledEntity,
    /// The path of each of the two systems, without any score.
    pub paths: [Vec<PathStep>; 2],
}

/// An entity or relation as people and programs know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelledEntity {
    /// Its name in the data.
    pub id: String,
    /// What people read.
    pub label: String,
}

/// The validation split of `model` in the order in which `seed` draws from it.
pub(super) fn shuffled(model: &Model, seed: u64) -> Vec<Triple> {
    let mut triples = model.dataset().known.valid.to_vec();
    triples.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    triples
}

/// The paths of all systems to the facts of a block, a row for each system.
pub(super) fn explained(
    contenders: &[Contender],
    block: &[Triple],
    options: &DrawOptions,
    progress: &dyn Progress,
) -> Result<Vec<Vec<Option<Vec<Hop>>>>, JudgeError> {
    let paths = |one: &Contender| one.paths(block, options.within, options.workers, progress);
    contenders.iter().map(paths).collect()
}

/// Blocks of `triples`, in their order.
pub(super) fn blocks(triples: &[Triple]) -> impl Iterator<Item = &[Triple]> {
    triples.chunks(BLOCK)
}

/// Draws a study of `contenders`, all pairs of them.
///
/// # Errors
/// If they are fewer than two or have learnt from different data, a reasoner fails, or the user interrupts.
pub fn draw(
    contenders: &[Contender],
    options: &DrawOptions,
    progress: &dyn Progress,
) -> Result<Study, JudgeError> {
    if contenders.len() < 2 {
        return Err(JudgeError::Systems("expected at least two systems to compare".to_owned()));
    }
    let model = first_run(contenders)?;
    let mut draws: Vec<Draw> = pairs(contenders.len()).map(Draw::new).collect();
    let total = draws.len() as u64 * options.triples as u64;
    progress.begin("drawing", "facts", Some(total));
    for block in blocks(&shuffled(model, options.seed)) {
        if draws.iter().all(|draw| draw.items.len() >= options.triples) {
            break;
        }
        let paths = explained(contenders, block, options, &Quiet(progress))?;
        for draw in &mut draws {
            draw.look(block, &paths, options.triples);
        }
        progress.advance(draws.iter().map(|draw| draw.items.len() as u64).sum(), &"");
    }
    let study = study(model, contenders, options.seed, &draws);
    let identical: usize = study.pairs.iter().map(|pair| pair.identical).sum();
    progress.end(&format_args!("{} facts, {identical} more with identical paths", study.items.len()));
    Ok(study)
}

/// All pairs of `systems` systems.
fn pairs(systems: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..systems).flat_map(move |first| (first + 1..systems).map(move |second| [first, second]))
}

/// The facts of one pair of systems.
struct Draw {
    pair: StudyPair,
    items: Vec<(Triple, [Vec<Hop>; 2])>,
}

impl Draw {
    fn new(systems: [usize; 2]) -> Self {
        let pair = StudyPair { systems, looked_at: 0, unanswered: 0, identical: 0, items: 0 };
        Self { pair, items: Vec::new() }
    }

    fn look(&mut self, block: &[Triple], paths: &[Vec<Option<Vec<Hop>>>], wanted: usize) {
        let [first, second] = self.pair.systems;
        for (at, &triple) in block.iter().enumerate() {
            if self.items.len() >= wanted {
                return;
            }
            self.pair.looked_at += 1;
            match (&paths[first][at], &paths[second][at]) {
                (Some(one), Some(other)) if one == other => self.pair.identical += 1,
                (Some(one), Some(other)) => {
                    self.pair.items += 1;
                    self.items.push((triple, [one.clone(), other.clone()]));
                }
                _ => self.pair.unanswered += 1,
            }
        }
    }
}

fn study(model: &Model, contenders: &[Contender], seed: u64, draws: &[Draw]) -> Study {
    let (names, naming) = (model.names(), model.naming());
    let entity =
        |id: EntityId| LabelledEntity { id: names.entity(id).to_owned(), label: naming.of(id, names) };
    let relation = |id: RelationId| LabelledEntity {
        id: names.relation(id).to_owned(),
        label: names.relation_label(id).to_owned(),
    };
    let path = |hops: &[Hop]| -> Vec<PathStep> {
        let mut steps = answer::steps(hops, names);
        for (step, hop) in steps.iter_mut().zip(hops) {
            step.label = naming.of(hop.target, names);
        }
        steps
    };
    let item = |pair: usize, (triple, [first, second]): &(Triple, [Vec<Hop>; 2])| StudyItem {
        pair,
        head: entity(triple.head),
        relation: relation(triple.relation),
        tail: entity(triple.tail),
        paths: [path(first), path(second)],
    };
    let of_draw = |(pair, draw): (usize, &Draw)| -> Vec<StudyItem> {
        draw.items.iter().map(|drawn| item(pair, drawn)).collect()
    };
    let folder = || model.directory().path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Study {
        dataset: model.results().map_or_else(|_| folder(), |results| results.dataset.clone()),
        seed,
        version: crate::VERSION.to_owned(),
        systems: contenders.iter().map(|contender| contender.name.clone()).collect(),
        pairs: draws.iter().map(|draw| draw.pair.clone()).collect(),
        items: draws.iter().enumerate().flat_map(of_draw).collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A study of two systems with `items` facts, all the same and without paths.
    pub(crate) fn study(items: usize, seed: u64) -> Study {
        let named = |id: &str| LabelledEntity { id: id.to_owned(), label: id.to_owned() };
        let item = StudyItem {
            pair: 0,
            head: named("h"),
            relation: named("r"),
            tail: named("t"),
            paths: [Vec::new(), Vec::new()],
        };
        Study {
            dataset: "d".to_owned(),
            seed,
            version: "v".to_owned(),
            systems: vec!["a".to_owned(), "b".to_owned()],
            pairs: vec![StudyPair { systems: [0, 1], looked_at: 9, unanswered: 1, identical: 2, items }],
            items: vec![item; items],
        }
    }
}
