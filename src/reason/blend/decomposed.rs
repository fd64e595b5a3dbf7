//! What a score of the blend came from: `w · x` is a sum over features, and each feature belongs to a member.

use super::super::because::{GRAPH, middle, with_rest};
use super::super::cases::{CaseQuery, cases};
use super::super::recipe::{
    EMBEDDING, FREQUENCY, FURTHER, LINKED, LINKED_BACK, PROPAGATOR, RELATIONS, RULES, TAKEN, TYPES, WALKER,
};
use super::super::{Because, Candidate, Detail, Found, GraphFeature, MemberShare, SharePart, ShareSource};
use super::Blend;
use crate::eval::ReasonerError;
use crate::graph::EntityId;
use crate::reason::fit::{Features, WIDTH};

/// What the graph says about a candidate, and where that stands among the features of the blend.
const GRAPH_FEATURES: [(GraphFeature, usize); 6] = [
    (GraphFeature::Linked, LINKED),
    (GraphFeature::LinkedBack, LINKED_BACK),
    (GraphFeature::Taken, TAKEN),
    (GraphFeature::Frequency, FREQUENCY),
    (GraphFeature::Types, TYPES),
    (GraphFeature::Relations, RELATIONS),
];

/// A member, as the blend of a query's link weighs it.
struct Weighed {
    name: &'static str,
    places: Vec<usize>,
    /// What it contributes to the candidate in the middle, and the features of that candidate.
    typical: f64,
    middle: Option<(EntityId, [f32; WIDTH])>,
}

impl Blend {
    /// What the scores of the `chosen` candidates came from.
    pub(super) fn decomposed(
        &self,
        found: &Found,
        chosen: &[&Candidate],
        detail: Detail,
    ) -> Result<Vec<Because>, ReasonerError> {
        let weights = self.weights.of(found.query.link);
        let seen: Vec<(EntityId, &[f32; WIDTH])> = found
            .candidates
            .iter()
            .filter_map(|candidate| Some((candidate.entity, candidate.evidence.features.as_ref()?)))
            .collect();
        let mut members = self.members.features();
        members.push((GRAPH, GRAPH_FEATURES.map(|feature| feature.1).to_vec()));
        members.retain(|(_, places)| self.has_weight(found.query.link, places));
        let weigh = |(name, places): (&'static str, Vec<usize>)| {
            let contributions: Vec<f64> =
                seen.iter().map(|(_, features)| contribution(features, weights, &places)).collect();
            let at = middle(&contributions);
            let typical = at.map_or(0.0, |at| contributions[at]);
            Weighed { name, places, typical, middle: at.map(|at| (seen[at].0, *seen[at].1)) }
        };
        let members: Vec<Weighed> = members.into_iter().map(weigh).collect();
        chosen.iter().map(|candidate| self.decomposition(found, candidate, &members, detail)).collect()
    }

    fn decomposition(
        &self,
        found: &Found,
        candidate: &Candidate,
        members: &[Weighed],
        detail: Detail,
    ) -> Result<Because, ReasonerError> {
        let weights = self.weights.of(found.query.link);
        let features = candidate.evidence.features.unwrap_or([0.0; WIDTH]);
        let mut shares = Vec::with_capacity(members.len());
        for member in members {
            let share = contribution(&features, weights, &member.places) - member.typical;
            let parts = self.parts_of(member, found, candidate, share, detail)?;
            let rules = self.members.rules.as_ref().filter(|_| member.places[0] == RULES);
            let together = rules.and_then(|rules| rules.together(candidate));
            shares.push(MemberShare { member: member.name, share, together, parts });
        }
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        Ok(Because { typical: members.iter().map(|member| member.typical).sum(), members: shares })
    }

    /// What a member's share consists of.
    fn parts_of(
        &self,
        member: &Weighed,
        found: &Found,
        candidate: &Candidate,
        share: f64,
        detail: Detail,
    ) -> Result<Vec<SharePart>, ReasonerError> {
        let (query, weights, first) = (found.query, self.weights.of(found.query.link), member.places[0]);
        let full = detail == Detail::Full;
        Ok(match first {
            RULES => match &self.members.rules {
                Some(rules) => rules.parts(query, candidate, share, detail),
                None => Vec::new(),
            },
            WALKER => match &self.members.walker {
                Some(walker) => walker.parts(query, candidate, share),
                None => Vec::new(),
            },
            EMBEDDING => match &self.members.embedding {
                // A new entity is like no other yet.
                Some(embedding) if embedding.size().entities == self.graph.entities() => {
                    let (answer, against) = (candidate.entity, member.middle.map(|middle| middle.0));
                    let asked = CaseQuery { query, answer, against, weight: weights[EMBEDDING], share };
                    cases(embedding, &self.graph, asked, detail)?
                }
                _ => Vec::new(),
            },
            PROPAGATOR if full => match &self.members.propagator {
                Some(propagator) => propagator.parts(query, candidate, share, weights[PROPAGATOR])?,
                None => Vec::new(),
            },
            LINKED => parts_of_graph(member, candidate, weights, share),
            place if full && place >= FURTHER => {
                let reasoner = &self.members.further[place - FURTHER].reasoner;
                reasoner.shared_out(query, candidate, share, weights[place])?
            }
            _ => Vec::new(),
        })
    }
}

/// What some features contribute to a score.
fn contribution(features: &[f32; WIDTH], weights: &Features, places: &[usize]) -> f64 {
    places.iter().map(|&place| f64::from(features[place]) * weights[place]).sum()
}

/// What each feature has of a share.
fn parts_of_graph(member: &Weighed, candidate: &Candidate, weights: &Features, share: f64) -> Vec<SharePart> {
    let own = candidate.evidence.features.unwrap_or([0.0; WIDTH]);
    let typical = member.middle.map_or([0.0; WIDTH], |middle| middle.1);
    let part = |(feature, place): (GraphFeature, usize)| SharePart {
        share: weights[place] * (f64::from(own[place]) - f64::from(typical[place])),
        source: ShareSource::Feature(feature),
    };
    let mut parts: Vec<SharePart> =
        GRAPH_FEATURES.into_iter().map(part).filter(|part| part.share != 0.0).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    with_rest(share, parts, 0)
}

#[cfg(test)]
mod tests {
    use super::super::{Further, Members};
    use super::*;
    use crate::config::BlendWeights;
    use crate::embed::{self, Embedding, ModelKind, Settings, Size};
    use crate::graph::{Array, Graph, Known, Link, Names, Query, RelationId, Triple};
    use crate::progress::Silent;
    use crate::propagate::{PropagateSettings, Propagator};
    use crate::reason::recipe::FeatureWeights;
    use crate::reason::{ByPropagator, ByRules, ByWalker, Explains, PathRuleIndex, Recipe};
    use crate::rule::{ApplyOptions, Counts, Rule, ScoredRule};
    use crate::tensor::Device;
    use crate::walk::{WalkConfig, Walker};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::sync::Arc;

    const ENTITIES: u32 = 14;
    const RELATIONS: u32 = 3;

    /// A graph, rules over it and untrained networks, all drawn from `random`.
    fn drawn(random: &mut ChaCha8Rng, model: ModelKind) -> (Arc<Graph>, Members) {
        let mut one_of = |most: u32| random.next_u32() % most;
        let facts: Vec<Triple> =
            (0..60).map(|_| Triple::new(one_of(ENTITIES), one_of(RELATIONS), one_of(ENTITIES))).collect();
        let graph = Arc::new(Graph::new(ENTITIES as usize, RELATIONS as usize, &facts));
        let rules: Vec<ScoredRule> = (0..12)
            .map(|_| {
                let body = [0, 1].map(|_| Link::forward(RelationId(one_of(RELATIONS))));
                let head = Link::forward(RelationId(one_of(RELATIONS)));
                let counts = Counts::exact(20, u64::from(1 + one_of(20)));
                ScoredRule { rule: Rule::cyclic(head, &body), counts }
            })
            .collect();
        let device = Device::cpu(1).unwrap();
        let suited = embed::suited(model, ENTITIES as usize);
        let settings = Settings { dimension: 8, image_rows: 2, initial: 1.0, entity_bias: true, ..suited };
        let size = Size { entities: ENTITIES as usize, relations: RELATIONS as usize };
        let small = PropagateSettings { layers: 2, width: 8, ..PropagateSettings::default() };
        let walk = WalkConfig { hops: 2, dimension: 8, history: 8, ..WalkConfig::default() };
        let known =
            Known { facts: Array::from(facts.clone()), queries: Array::from(facts), ..Known::default() };
        let propagator = Propagator::new(&small, &graph, &device, 3).unwrap();
        // As the universal propagator takes part: known by its name and its reasoner alone.
        let further = Propagator::new(&small, &graph, &device, 4).unwrap();
        let paths = Arc::new(PathRuleIndex::new(&rules));
        let further = ByPropagator::new(Arc::new(further), &graph, Arc::clone(&paths));
        let walker = Walker::new(&walk, &graph, &known, &device, 1).unwrap();
        let members = Members {
            rules: Some(Arc::new(ByRules::new(&graph, rules.clone().into(), ApplyOptions::default()))),
            walker: Some(ByWalker::new(Arc::new(walker), &graph, Arc::clone(&paths))),
            embedding: Some(Arc::new(Embedding::new(&settings, size, &device, 7).unwrap())),
            propagator: Some(ByPropagator::new(Arc::new(propagator), &graph, paths)),
            further: vec![Further { name: "universal", reasoner: Arc::new(further) }],
        };
        (graph, members)
    }

    /// Weights, each member's being zero in a third of the cases.
    fn weights(random: &mut ChaCha8Rng) -> (Recipe, Vec<&'static str>) {
        let mut left_out = Vec::new();
        let mut weight = |name: &'static str, random: &mut ChaCha8Rng| {
            let zero = random.next_u32().is_multiple_of(3);
            left_out.extend(zero.then_some(name));
            move |at: u32| if zero { 0.0 } else { f64::from(at % 1000) / 500.0 - 0.3 }
        };
        let [rules, walker, embedding, propagator, universal, graph] =
            ["rules", "walker", "embedding", "propagator", "universal", "graph"]
                .map(|name| weight(name, random));
        let mut next = || random.next_u32();
        let general = FeatureWeights {
            rules: rules(next()),
            rules_absent: rules(next()),
            rules_sure: rules(next()),
            walker: walker(next()),
            walker_absent: walker(next()),
            embedding: embedding(next()),
            propagator: propagator(next()),
            linked: graph(next()),
            linked_back: graph(next()),
            taken: graph(next()),
            frequency: graph(next()),
            types: graph(next()),
            relations: graph(next()),
            further: [("universal".to_owned(), universal(next()))].into(),
        };
        let given = BlendWeights { rules: 0.0, walker: 0.0, embedding: 0.0, propagator: 0.0 };
        (Recipe { general, ..Recipe::of(given) }, left_out)
    }

    #[test]
    fn shares_add_up_to_the_score_and_members_without_weight_have_none() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let models = [ModelKind::DistMult, ModelKind::ComplEx, ModelKind::RotatE, ModelKind::ConvE];
        let (mut compared, mut cases, mut paths, mut further) = (0, 0, 0, 0);
        for model in models.into_iter().cycle().take(12) {
            let (graph, members) = drawn(&mut random, model);
            let (recipe, left_out) = weights(&mut random);
            let blend = Blend::new(members, &recipe, &graph, &Names::default());
            let subject = EntityId(random.next_u32() % ENTITIES);
            let query = Query { subject, link: Link::forward(RelationId(random.next_u32() % RELATIONS)) };
            let found = blend.search(&[query], 10, &Silent).unwrap().remove(0);
            let all: Vec<&Candidate> = found.candidates.iter().collect();
            for detail in [Detail::Brief, Detail::Shown, Detail::Full] {
                let because = blend.because(&found, &all, detail).unwrap();
                for (candidate, because) in all.iter().zip(because) {
                    let shares: f64 = because.members.iter().map(|member| member.share).sum();
                    let score = because.typical + shares;
                    assert!((score - candidate.score).abs() < 1e-9, "{score} {}", candidate.score);
                    for member in &because.members {
                        assert!(!left_out.contains(&member.member), "{} has no weight", member.member);
                        let parts: f64 = member.parts.iter().map(|part| part.share).sum();
                        assert!(member.parts.is_empty() || (parts - member.share).abs() < 1e-9, "{member:?}");
                        let is_case = |part: &&SharePart| matches!(part.source, ShareSource::Case(_));
                        let is_path = |part: &&SharePart| matches!(part.source, ShareSource::Path(_));
                        cases += member.parts.iter().filter(is_case).count();
                        let along = member.parts.iter().filter(is_path).count();
                        paths += along;
                        further += if member.member == "universal" { along } else { 0 };
                    }
                    compared += 1;
                }
            }
            let supported = blend.are_supported(&found, all.len()).unwrap();
            for (candidate, supported) in all.iter().zip(supported) {
                assert_eq!(supported, !blend.reasons(query, candidate, 1).unwrap().is_empty());
            }
            // The path of a walker without weight is no reason either.
            let walks = |candidate: &&&Candidate| candidate.evidence.walk.is_some();
            for candidate in all.iter().filter(walks).filter(|_| left_out.contains(&"walker")) {
                let reasons = blend.reasons(query, candidate, 5).unwrap();
                assert!(!reasons.is_empty(), "it is still an answer");
                let walked = reasons.iter().flat_map(|reason| &reason.path).any(|hop| hop.scores.is_some());
                assert!(!walked, "{reasons:?}");
            }
        }
        assert!(
            compared > 100 && cases > 50 && paths > 50 && further > 20,
            "{compared} {cases} {paths} {further}"
        );
    }
}
