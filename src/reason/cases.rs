//! Cases: what the embedding model's part of a score came from, in terms of similar entities.
//!
//! Every model scores an entity `e` by `q · v(e)`, up to terms of the entity or the query alone, where the vector `q` of
//! a query `(s, r)` depends on the subject. Compared with another candidate `c`, the answer `o` has `q · (v(o) − v(c))`.
//! Subjects `s'` that are known to have the answer have vectors `q'` of their own, and `q = Σ a' q' + rest`, with
//! weights `a' > 0` by least squares. So every case has a share, `a' q' · (v(o) − v(c))`, and these add up, exactly.
//! Where no other subject has the answer, the roles are exchanged: `v(o) − v(c)` is a combination of the subject's known
//! answers.
//!
//! For DistMult, ComplEx and RotatE `q` is linear in the subject's vector, so the combination is one of subjects; for
//! ConvE it is one of what the network makes of them. How much a few cases leave unexplained is the rest.

use super::because::with_rest;
use super::{Detail, SharePart, ShareSource};
use crate::embed::Embedding;
use crate::eval::ReasonerError;
use crate::graph::{EntityId, Graph, Link, Query};

/// The most cases of an answer.
const CASES: usize = 5;
/// The most entities among which they are chosen, evenly spread: for an explanation, and for a list of answers.
const CHOICE: usize = 1000;
const CHOICE_SHOWN: usize = 24;
/// A further case must explain at least this share of what is to be explained.
const LEAST: f64 = 0.01;
/// Keeps the weights of nearly equal cases small.
const RIDGE: f64 = 1e-6;

/// What a case is similar to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseSide {
    /// The subject: it has the same answer.
    Subject,
    /// The answer: the subject has it too.
    Answer,
}

/// A known fact that is similar to the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The similar entity.
    pub entity: EntityId,
    /// What it is similar to.
    pub side: CaseSide,
    /// Its weight in the combination.
    pub weight: f64,
    /// The facts that both have, each as link and target; the rarest first.
    pub shared: Vec<(Link, EntityId)>,
    /// The known fact.
    pub fact: (EntityId, Link, EntityId),
}

/// What is to be explained by cases.
#[derive(Clone, Copy)]
pub(super) struct CaseQuery {
    pub query: Query,
    pub answer: EntityId,
    /// The candidate that the answer is compared with.
    pub against: Option<EntityId>,
    /// The embedding model's weight in the score.
    pub weight: f64,
    /// Its share of the score.
    pub share: f64,
}

/// The parts of an answer's score by the embedding model that come from similar cases; none for a brief decomposition.
pub(super) fn cases(
    embedding: &Embedding,
    graph: &Graph,
    asked: CaseQuery,
    detail: Detail,
) -> Result<Vec<SharePart>, ReasonerError> {
    let choice = match detail {
        Detail::Brief => return Ok(Vec::new()),
        Detail::Shown => CHOICE_SHOWN,
        Detail::Full => CHOICE,
    };
    let CaseQuery { query, answer, against, .. } = asked;
    let table = embedding.entity_vectors();
    let width = table.columns();
    let table = table.on_host()?;
    let row = |entity: EntityId| &table[entity.index() * width..][..width];
    // The vector of an entity, less that of the candidate that it is compared with.
    let beside = |entity: EntityId| match against {
        Some(other) => row(entity).iter().zip(row(other)).map(|(x, y)| f64::from(x - y)).collect(),
        None => row(entity).iter().copied().map(f64::from).collect::<Vec<f64>>(),
    };
    let others = |entities: &[EntityId]| {
        let others = entities.iter().copied().filter(|one| *one != query.subject && *one != answer);
        thinned(others.collect(), choice)
    };
    let subjects = others(graph.targets(answer, query.link.reversed()));
    let asking = std::iter::once(query.subject).chain(subjects.iter().copied());
    let vectors =
        embedding.query_vectors(&asking.map(|subject| Query { subject, ..query }).collect::<Vec<_>>())?;
    let vectors = vectors.on_host()?;
    let mut rows = vectors.chunks_exact(width).map(|row| row.iter().copied().map(f64::from).collect());
    let own: Vec<f64> = rows.next().unwrap_or_default();
    if !subjects.is_empty() {
        let like = Similar { side: CaseSide::Subject, entities: subjects, vectors: rows.collect() };
        return Ok(like.parts(graph, asked, &own, &beside(answer)));
    }
    let answers = others(graph.targets(query.subject, query.link));
    let vectors = answers.iter().map(|&answer| beside(answer)).collect();
    let like = Similar { side: CaseSide::Answer, entities: answers, vectors };
    Ok(like.parts(graph, asked, &beside(answer), &own))
}

/// Entities that may be similar to one side of an answer.
struct Similar {
    side: CaseSide,
    entities: Vec<EntityId>,
    vectors: Vec<Vec<f64>>,
}

impl Similar {
    /// The parts of a share that is `weight · target · other`, with `target` as a combination of these vectors.
    fn parts(self, graph: &Graph, asked: CaseQuery, target: &[f64], other: &[f64]) -> Vec<SharePart> {
        let CaseQuery { query, answer, weight, share, .. } = asked;
        let part = |(place, factor): (usize, f64)| {
            let entity = self.entities[place];
            let (like, fact) = match self.side {
                CaseSide::Subject => (query.subject, (entity, query.link, answer)),
                CaseSide::Answer => (answer, (query.subject, query.link, entity)),
            };
            let shared = shared(graph, like, entity);
            let case = Case { entity, side: self.side, weight: factor, shared, fact };
            let share = weight * factor * dot(&self.vectors[place], other);
            SharePart { share, source: ShareSource::Case(case) }
        };
        let mut parts: Vec<SharePart> = combine(target, &self.vectors).into_iter().map(part).collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        with_rest(share, parts, 0)
    }
}

/// At most `most` of the entities, evenly spread.
fn thinned(entities: Vec<EntityId>, most: usize) -> Vec<EntityId> {
    let step = (entities.len() as f64 / most as f64).max(1.0);
    let places = (0..most).map(|place| (place as f64 * step) as usize);
    places.take_while(|place| *place < entities.len()).map(|place| entities[place]).collect()
}

/// The facts that two entities have in common, the rarest first.
fn shared(graph: &Graph, one: EntityId, other: EntityId) -> Vec<(Link, EntityId)> {
    // One of them may be a hub.
    let by_degree =
        if graph.edges(one).len() <= graph.edges(other).len() { [one, other] } else { [other, one] };
    let [few, many] = by_degree;
    let edges = graph.edges(few).iter().map(|edge| (edge.link, edge.target));
    let mut shared: Vec<(Link, EntityId)> =
        edges.filter(|&(link, target)| graph.contains(many, link, target)).collect();
    shared.sort_by_cached_key(|&(link, target)| (graph.targets(target, link.reversed()).len(), link, target));
    shared
}

/// `target` as a combination of a few of `vectors`, by their places and positive weights: the one that explains most of
/// what is left is added, and all weights are fitted again.
fn combine(target: &[f64], vectors: &[Vec<f64>]) -> Vec<(usize, f64)> {
    let whole = dot(target, target);
    let squares: Vec<f64> = vectors.iter().map(|vector| dot(vector, vector)).collect();
    let (mut chosen, mut weights): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut refused: Vec<usize> = Vec::new();
    let (mut rest, mut left) = (target.to_vec(), whole);
    while chosen.len() < CASES {
        let gain = |place: usize| {
            let along = dot(&vectors[place], &rest);
            along.max(0.0).powi(2) / squares[place].max(f64::MIN_POSITIVE)
        };
        let open = (0..vectors.len()).filter(|place| !chosen.contains(place) && !refused.contains(place));
        let Some((place, most)) =
            open.map(|place| (place, gain(place))).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
        else {
            break;
        };
        if most <= LEAST * whole {
            break;
        }
        chosen.push(place);
        let fitted = least_squares(target, &chosen.iter().map(|&at| &vectors[at][..]).collect::<Vec<_>>());
        if fitted.iter().any(|weight| *weight <= 0.0) {
            refused.extend(chosen.pop());
            continue;
        }
        weights = fitted;
        rest = target.to_vec();
        for (&place, weight) in chosen.iter().zip(&weights) {
            rest.iter_mut().zip(&vectors[place]).for_each(|(x, y)| *x -= weight * y);
        }
        let now = dot(&rest, &rest);
        if left - now < LEAST * whole {
            break;
        }
        left = now;
    }
    chosen.into_iter().zip(weights).collect()
}

/// The weights with which the sum of `vectors` is nearest to `target`: the normal equations, by Gaussian elimination.
fn least_squares(target: &[f64], vectors: &[&[f64]]) -> Vec<f64> {
    let size = vectors.len();
    let mut rows: Vec<Vec<f64>> = vectors
        .iter()
        .map(|one| vectors.iter().map(|other| dot(one, other)).chain([dot(one, target)]).collect())
        .collect();
    for (place, row) in rows.iter_mut().enumerate() {
        row[place] *= 1.0 + RIDGE;
    }
    // The matrix is positive definite, so no pivot is zero.
    for pivot in 0..size {
        let (head, tail) = rows.split_at_mut(pivot + 1);
        let above = &head[pivot];
        for row in tail {
            let factor = row[pivot] / above[pivot];
            row.iter_mut().zip(above).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut weights = vec![0.0; size];
    for place in (0..size).rev() {
        let known: f64 = (place + 1..size).map(|at| rows[place][at] * weights[at]).sum();
        weights[place] = (rows[place][size] - known) / rows[place][place];
    }
    weights
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::{self, ModelKind, Settings, Size};
    use crate::graph::{RelationId, Triple};
    use crate::tensor::Device;

    #[test]
    fn a_vector_is_a_combination_of_those_that_it_is_made_of() {
        let vectors = vec![
            vec![1.0, 0.0, 0.0, 0.2],
            vec![0.0, 1.0, 0.0, 0.0],
            vec![0.0, 0.0, 1.0, 0.0],
            vec![-1.0, 0.0, -1.0, 0.0],
        ];
        let target: Vec<f64> = (0..4).map(|at| 2.0 * vectors[0][at] + 0.5 * vectors[2][at]).collect();
        let mut found = combine(&target, &vectors);
        found.sort_unstable_by_key(|one| one.0);
        assert_eq!(found.iter().map(|one| one.0).collect::<Vec<usize>>(), [0, 2]);
        assert!((found[0].1 - 2.0).abs() < 1e-4 && (found[1].1 - 0.5).abs() < 1e-4, "{found:?}");
        // What points the other way is no case.
        assert_eq!(combine(&[-1.0, 0.0, 0.0, 0.0], &vectors[..3]), []);
        assert_eq!(combine(&[], &[]), []);
    }

    /// The shares of cases are what the model says of them, by its own scores.
    #[test]
    fn a_share_is_the_weight_of_a_case_times_its_own_score() {
        // 0, 1 and 2 have the property 3; 1, 2 and 4 have 5; does 0 have it too?
        let facts = [(0, 0, 3), (1, 0, 3), (2, 0, 3), (1, 1, 5), (2, 1, 5), (4, 1, 5)];
        let graph = Graph::new(7, 2, &facts.map(|(head, relation, tail)| Triple::new(head, relation, tail)));
        let query = Query { subject: EntityId(0), link: Link::forward(RelationId(1)) };
        let mut explained = 0;
        for (model, seed) in
            [(ModelKind::DistMult, 1), (ModelKind::ComplEx, 2), (ModelKind::RotatE, 3), (ModelKind::ConvE, 4)]
                .into_iter()
                .flat_map(|(model, seed)| (0..4).map(move |more| (model, 10 * seed + more)))
        {
            let suited = embed::suited(model, 7);
            let settings = Settings { dimension: 8, image_rows: 2, initial: 1.0, ..suited };
            let size = Size { entities: 7, relations: 2 };
            let embedding = Embedding::new(&settings, size, &Device::cpu(1).unwrap(), seed).unwrap();
            let (answer, other) = (EntityId(5), EntityId(6));
            let asked = CaseQuery { query, answer, against: Some(other), weight: 0.7, share: 0.0 };
            let parts = cases(&embedding, &graph, asked, Detail::Full).unwrap();
            assert_eq!(cases(&embedding, &graph, asked, Detail::Shown).unwrap(), parts, "there are few");
            let above = |subject: EntityId| {
                let scores = embedding.scores(&[Query { subject, ..query }]).unwrap().to_vec().unwrap();
                // Without the terms of the entities alone, which no case explains.
                let rows = embedding.entity_vectors().to_vec().unwrap();
                let width = rows.len() / 7;
                let square = |entity: EntityId| -> f64 {
                    let row = &rows[entity.index() * width..][..width];
                    row.iter().map(|x| f64::from(*x).powi(2)).sum()
                };
                let of_entities =
                    if model == ModelKind::RotatE { square(answer) - square(other) } else { 0.0 };
                f64::from(scores[answer.index()] - scores[other.index()]) + of_entities
            };
            for part in parts {
                let ShareSource::Case(case) = part.source else { continue };
                assert!([1, 2, 4].contains(&case.entity.0) && case.side == CaseSide::Subject);
                let shared = if case.entity.0 == 4 { 0 } else { 1 };
                assert_eq!(case.shared.len(), shared);
                let share = 0.7 * case.weight * above(case.entity);
                assert!((part.share - share).abs() < 1e-4, "{model:?}: {} {share}", part.share);
                explained += 1;
            }
        }
        assert!(explained > 10, "{explained}");
    }
}
