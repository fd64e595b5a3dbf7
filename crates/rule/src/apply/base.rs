//! Rules indexed by the queries they answer.
//!
//! A query `(subject, link, ?)` is answered by cyclic rules for that link, walked from the subject; by rules
//! that predict a constant for every subject with some path; and, asked from the other end, by rules whose
//! constant is the subject itself and which then predict all entities with some path.

use super::ApplyOptions;
use crate::Map;
use crate::clause::{ScoredRule, Shape};
use rayon::prelude::*;
use ruleguider_graph::{EntityId, Link};
use std::hash::Hash;
use std::sync::Arc;

/// A cyclic rule, seen from one query link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub confidence: f64,
    /// Which rule of the base this is.
    pub rule: u32,
    /// The body without its last link, as an index into [`LinkRules::prefixes`].
    pub prefix: u32,
    pub last: Link,
}

/// A rule with a constant head, seen from one query link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    pub confidence: f64,
    pub rule: u32,
    /// The constant that the rule predicts.
    pub answer: EntityId,
}

/// Values by key in one array, because most keys of rules with constants have a single value.
pub(super) struct Grouped<K, V> {
    /// Where the values of a key begin and end.
    places: Map<K, [u32; 2]>,
    values: Vec<V>,
}

impl<K: Ord + Copy + Hash, V> Grouped<K, V> {
    /// Groups `pairs`; the values of a key stay in their order.
    fn new(mut pairs: Vec<(K, V)>) -> Self {
        pairs.sort_by_key(|pair| pair.0);
        let mut places: Map<K, [u32; 2]> = Map::default();
        for (at, (key, _)) in (0..).zip(&pairs) {
            places.entry(*key).or_insert([at, at])[1] = at + 1;
        }
        Self { places, values: pairs.into_iter().map(|pair| pair.1).collect() }
    }

    /// The values of `key`.
    pub(crate) fn of(&self, key: K) -> &[V] {
        match self.places.get(&key) {
            Some(&[from, to]) => &self.values[from as usize..to as usize],
            None => &[],
        }
    }
}

/// The rules for one query link.
pub(super) struct LinkRules {
    /// Cyclic rules, the most confident first; ties in input order.
    pub paths: Vec<Path>,
    /// The distinct bodies of cyclic rules without their last links.
    pub prefixes: Vec<Box<[Link]>>,
    /// The distinct bodies of rules that predict a constant for a subject.
    pub bodies: Vec<Box<[Link]>>,
    /// By body and the entity at its end (`None`: any), the constants predicted for the subject.
    pub fixed: Grouped<(u32, Option<EntityId>), Fixed>,
    /// By subject: the rules that have it as their constant and have a body, each with its confidence.
    pub about: Grouped<EntityId, (f64, u32)>,
}

/// The same under construction.
#[derive(Default)]
struct Gathered {
    paths: Vec<Path>,
    prefixes: Vec<Box<[Link]>>,
    bodies: Vec<Box<[Link]>>,
    fixed: Vec<((u32, Option<EntityId>), Fixed)>,
    about: Vec<(EntityId, (f64, u32))>,
}

impl Gathered {
    fn arranged(self) -> LinkRules {
        let Self { mut paths, prefixes, bodies, fixed, about } = self;
        paths.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        LinkRules { paths, prefixes, bodies, fixed: Grouped::new(fixed), about: Grouped::new(about) }
    }
}

/// All rules, by the links they answer.
pub(super) struct RuleBase {
    pub rules: Arc<[ScoredRule]>,
    pub links: Vec<LinkRules>,
}

impl RuleBase {
    /// Indexes `rules` for a graph with this many `links`, with confidences weighted by `options`.
    pub(crate) fn new(rules: Arc<[ScoredRule]>, links: usize, options: &ApplyOptions) -> Self {
        let mut base: Vec<Gathered> = (0..links).map(|_| Gathered::default()).collect();
        let mut prefixes: Map<(Link, Box<[Link]>), u32> = Map::default();
        let mut bodies: Map<(Link, Box<[Link]>), u32> = Map::default();
        for (id, scored) in (0..).zip(&*rules) {
            let confidence = options.confidence(scored);
            let rule = &scored.rule;
            match rule.shape {
                Shape::Cyclic => {
                    for rule in [rule, &rule.reversed()] {
                        let Some((&last, prefix)) = rule.body.split_last() else { continue };
                        let link = &mut base[rule.head.index()];
                        let prefix =
                            *prefixes.entry((rule.head, prefix.into())).or_insert_with_key(|(_, prefix)| {
                                link.prefixes.push(prefix.clone());
                                link.prefixes.len() as u32 - 1
                            });
                        link.paths.push(Path { confidence, rule: id, prefix, last });
                    }
                }
                Shape::Constant { answer, end } => {
                    let link = &mut base[rule.head.index()];
                    let body = *bodies.entry((rule.head, rule.body.clone())).or_insert_with(|| {
                        link.bodies.push(rule.body.clone());
                        link.bodies.len() as u32 - 1
                    });
                    link.fixed.push(((body, end), Fixed { confidence, rule: id, answer }));
                    // Without a body every entity would be predicted equally, which carries no information.
                    if !rule.body.is_empty() {
                        let about = &mut base[rule.head.reversed().index()].about;
                        about.push((answer, (confidence, id)));
                    }
                }
            }
        }
        Self { rules, links: base.into_par_iter().map(Gathered::arranged).collect() }
    }
}
