//! A graph with known rules, of any size: people over generations, how they are related, and where they live.
//!
//! A world is made of clans of 50 to 99 people, each generated from the seed and its own number, so the same world
//! results on every machine and with any number of threads, and worlds larger than memory can be written
//! ([`write`](write())). Of all true facts, some are left out of `train` at random. Those that a [`PlantedRule`]
//! derives from `train` become `valid` and `test`; the rest are in no split.
//!
//! That choice makes `valid` and `test` easy, easier than the rules' confidences suggest: a fact that no rule
//! predicts is never asked for. In a world of 60,000 people, spouses share a town in 0.897 of the training facts that
//! can tell, and in 0.953 of those held out; rules alone rank the right answer first for over 0.99 of `test`. A high
//! figure on a family therefore shows that the parts work together. It does not tell good reasoners apart, and says
//! nothing about real graphs. Mined confidences should be compared with the planted counts.
//!
//! This module only generates data: it reads none and mines nothing.

mod clan;
mod dice;
mod errors;
mod kin;
mod names;
mod planted;
#[cfg(test)]
mod tests;
mod write;

pub use errors::{WithErrors, with_errors};
pub use planted::PlantedRule;
pub use write::{Written, write};

use crate::{Array, Dataset, EntityId, Known, Names, RelationId, Triple};
use clan::{Clan, TOWNS_A_CLAN};
use dice::Dice;
use kin::{Facts, Kin};
use planted::Counts;
use rayon::prelude::*;
use std::sync::Arc;

/// The smallest world: one clan.
pub const LEAST_PEOPLE: u64 = 50;
/// How many people the demonstration graph has, and its seed.
const DEMONSTRATION: (u64, u64) = (360, 1);

/// A generated graph, and the rules that hold in it.
#[derive(Clone)]
pub struct Family {
    /// The graph with its splits.
    pub dataset: Dataset,
    /// Every rule that was planted, with its exact counts in the whole world.
    pub rules: Vec<PlantedRule>,
}

/// The world of `people` people with this seed, in memory. The same facts in the same order as [`write`](write())
/// writes.
///
/// # Panics
/// If `people` is below [`LEAST_PEOPLE`].
pub fn family(people: u64, seed: u64) -> Family {
    assert!(people >= LEAST_PEOPLE, "a family has at least {LEAST_PEOPLE} people");
    let layout = Layout { people, seed };
    let clans: Vec<ClanFacts> = (0..layout.clans()).into_par_iter().map(|clan| layout.clan(clan)).collect();
    let mut names = Names::default();
    let mut counts = planted::no_counts();
    let train = intern(&mut names, clans.iter().map(|clan| (clan, &clan.train)));
    let valid = intern(&mut names, clans.iter().map(|clan| (clan, &clan.valid)));
    let test = intern(&mut names, clans.iter().map(|clan| (clan, &clan.test)));
    for clan in &clans {
        planted::add(&mut counts, &clan.counts);
        let labelled = clan.names.iter().zip(&clan.labels);
        let known = labelled.filter_map(|(name, label)| Some((names.entities.get(name)?, label)));
        names.labels.extend(known.map(|(id, label)| (EntityId(id), label.clone())));
    }
    let rules = planted::rules(&counts, &names.relations);
    let known = Known { facts: train.clone(), queries: train, valid, ..Known::default() };
    Family { dataset: Dataset { names: Arc::new(names), known, test, ..Dataset::default() }, rules }
}

/// The built-in demonstration graph: a small family with a fixed seed.
pub fn demonstration() -> Dataset {
    let (people, seed) = DEMONSTRATION;
    family(people, seed).dataset
}

/// The facts of one split as triples; names are interned in order of appearance.
fn intern<'a>(
    names: &mut Names,
    split: impl Iterator<Item = (&'a ClanFacts, &'a Vec<Fact>)>,
) -> Array<Triple> {
    let mut triples = Vec::new();
    let Names { entities, relations, .. } = names;
    for (clan, facts) in split {
        triples.extend(facts.iter().map(|fact| {
            let mut entity = |id: u8| EntityId(entities.intern(&clan.names[usize::from(id)]));
            let head = entity(fact.head);
            let relation = RelationId(relations.intern(fact.kin.name()));
            Triple { head, relation, tail: entity(fact.tail) }
        }));
    }
    triples.into()
}

/// How a world is divided into clans.
#[derive(Clone, Copy)]
struct Layout {
    people: u64,
    seed: u64,
}

impl Layout {
    fn clans(self) -> u64 {
        self.people / LEAST_PEOPLE
    }

    /// About one town to 60 people, and never fewer than a clan chooses from.
    fn towns(self) -> u64 {
        (self.people / 60).max(TOWNS_A_CLAN as u64 + 2)
    }

    /// Makes the clan with this number, divides its facts among the splits, counts the rules.
    fn clan(self, number: u64) -> ClanFacts {
        let mut dice = Dice::of(self.seed, number);
        let larger = u64::from(number < self.people % self.clans());
        let size = (self.people / self.clans() + larger) as usize;
        let first_town = (u128::from(number) * u128::from(self.towns()) / u128::from(self.clans())) as u64;
        let towns = std::array::from_fn(|i| (first_town + i as u64) % self.towns());
        let clan = Clan::new(number, size, towns, &mut dice);
        let world = clan.world();
        ClanFacts::new(&clan, &world, &mut dice)
    }
}

/// A fact between two entities of a clan, by their indices in its names.
#[derive(Clone, Copy)]
struct Fact {
    kin: Kin,
    head: u8,
    tail: u8,
}

/// The facts of a clan, divided into splits.
struct ClanFacts {
    /// The names of its entities; people first.
    names: Vec<String>,
    /// A label for each of its people.
    labels: Vec<String>,
    train: Vec<Fact>,
    valid: Vec<Fact>,
    test: Vec<Fact>,
    /// How many true facts are in no split.
    left_out: u64,
    counts: Counts,
}

impl ClanFacts {
    fn new(clan: &Clan, world: &Facts, dice: &mut Dice) -> Self {
        let (mut train, mut held) = (Vec::new(), Vec::new());
        let mut known = Facts::none();
        for (kin, head, tail) in world.iter() {
            let fact = Fact { kin, head: head as u8, tail: tail as u8 };
            if dice.chance(kin.held_per_mille()) {
                held.push(fact);
            } else {
                train.push(fact);
                known.insert(kin, head, tail);
            }
        }
        dice.shuffle(&mut train);
        dice.shuffle(&mut held);
        let derived = planted::derived(&known);
        let (mut valid, mut test, mut left_out) = (Vec::new(), Vec::new(), 0);
        for fact in held {
            if !derived[fact.kin as usize].contains(usize::from(fact.head), usize::from(fact.tail)) {
                left_out += 1;
            } else if dice.chance(500) {
                valid.push(fact);
            } else {
                test.push(fact);
            }
        }
        let labels = (0..clan.len()).map(|person| clan.label(person)).collect();
        Self { names: clan.names(), labels, train, valid, test, left_out, counts: planted::count(world) }
    }
}
