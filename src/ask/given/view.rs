//! A model without some of the facts of its graph, and what it says about both ends of given facts.

use crate::ask::many::by_workers;
use crate::ask::{AskError, Contribution, Model, Probability};
use crate::config::Config;
use crate::embed::Embedding;
use crate::eval::{Reasoner, Scored, filtered_rank};
use crate::graph::{Adjacency, Direction, EntityId, Graph, Query, Triple};
use crate::progress::Progress;
use crate::reason::{Because, Candidate, Detail, Explains, Found};
use crate::run::{Artifacts, RunError};
use crate::tensor::logsumexp;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;

/// Groups of facts that are taken out together have at most this share of the graph's facts, so that what is left says
/// about as much as the whole.
const SHARE_TAKEN_OUT: usize = 50;

/// A model, or a model without some facts.
pub(super) struct View<'a> {
    pub model: &'a Model,
    pub reasoner: Arc<dyn Explains>,
    pub graph: Arc<Graph>,
    /// The embedding model, if its opinion is wanted.
    pub embedding: Option<Arc<Embedding>>,
    /// The artifacts behind the reasoner, if they are not those of the model.
    pub artifacts: Option<Artifacts>,
    /// Whether scores of objects are decomposed.
    pub decomposes: bool,
}

/// The directions in which both ends of a fact are asked: first for the tail.
pub(super) const BOTH_ENDS: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// What a view says about one end of a fact.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub query: Query,
    pub object: EntityId,
    /// The candidate that the object is; `None` if nothing supports it.
    pub candidate: Option<Candidate>,
    /// Of the object, as if it were supported.
    pub probability: Probability,
    /// Its rank among all entities, without the other facts of the graph.
    pub place: f64,
    /// Its rank without all other facts that are known to be true.
    pub rank: f64,
    /// The embedding model's score of the fact and the logarithm of its softmax.
    pub embedding: Option<[f64; 2]>,
    /// What the score came from, if it is that of a tail, and decomposed.
    pub because: Option<Because>,
    /// The best other candidate that is not known to be true, with its probability.
    pub rival: Option<(Candidate, Probability)>,
}

impl Model {
    /// What the score of an end came from, with names: a typical candidate's score, and the members' shares.
    pub(super) fn decomposition_of(&self, end: &End) -> (Option<f64>, Vec<Contribution>) {
        let named = end.because.as_ref().map(|because| self.contributions(end.query, end.object, because));
        named.map_or((None, Vec::new()), |(typical, because)| (Some(typical), because))
    }

    /// Facts of the graph, in groups that are taken out of it together.
    pub(super) fn groups_to_take_out<'f>(&self, facts: &'f [Triple]) -> std::slice::Chunks<'f, Triple> {
        facts.chunks((self.graph().facts() / SHARE_TAKEN_OUT).max(1))
    }
}

impl<'a> View<'a> {
    /// The model as it is.
    pub(super) fn whole(model: &'a Model) -> Result<Self, AskError> {
        Ok(Self {
            model,
            reasoner: Arc::clone(&model.reasoner),
            graph: Arc::clone(model.graph()),
            embedding: model.embedding()?,
            artifacts: None,
            decomposes: false,
        })
    }

    /// The same by the members that other settings leave, without the embedding model's opinion.
    pub(super) fn with_settings(self, config: Config) -> Result<View<'a>, AskError> {
        let mut artifacts = self.model.artifacts.over(&self.graph)?;
        artifacts.config = config;
        let reasoner = artifacts.reasoner()?;
        Ok(View { reasoner, embedding: None, artifacts: Some(artifacts), ..self })
    }

    /// The same without `facts`.
    pub(super) fn without(&self, facts: &[Triple]) -> Result<View<'a>, AskError> {
        let out: HashSet<Triple> = facts.iter().copied().collect();
        let known = &self.model.artifacts.learnable.known.facts;
        let left: Vec<Triple> = known.iter().copied().filter(|fact| !out.contains(fact)).collect();
        let graph = Arc::new(Graph::new(self.graph.entities(), self.graph.relations(), &left));
        let artifacts = self.artifacts.as_ref().unwrap_or(&self.model.artifacts).over(&graph)?;
        Ok(View {
            model: self.model,
            reasoner: artifacts.reasoner()?,
            graph,
            embedding: self.embedding.clone(),
            artifacts: Some(artifacts),
            decomposes: self.decomposes,
        })
    }

    /// What `make` makes of each fact and of what is said about it, asked in the directions `ways`, in the order of the
    /// facts. A fact of the graph is asked of a view without it, which `make` is told.
    pub(super) fn each<const N: usize, T: Send>(
        &self,
        facts: &[Triple],
        ways: [Direction; N],
        truth: &Adjacency,
        workers: usize,
        progress: &dyn Progress,
        make: impl Fn(&View<'a>, Triple, bool, &[End; N]) -> Result<T, AskError> + Sync,
    ) -> Result<Vec<T>, AskError> {
        let is_known = |&place: &usize| {
            let (query, object) = Query::of(facts[place], Direction::Forward);
            self.graph.contains(query.subject, query.link, object)
        };
        let (known, new): (Vec<usize>, Vec<usize>) = (0..facts.len()).partition(is_known);
        let mut made: Vec<Option<T>> = facts.iter().map(|_| None).collect();
        let mut fill = |view: &View<'a>, places: &[usize], known: bool| {
            let asked: Vec<Triple> = places.iter().map(|&place| facts[place]).collect();
            let ends = view.judge(&asked, ways, truth, workers, progress)?;
            let one = |(&fact, ends)| make(view, fact, known, ends);
            let all: Result<Vec<T>, AskError> = asked.par_iter().zip(&ends).map(one).collect();
            for (place, one) in places.iter().zip(all?) {
                made[*place] = Some(one);
            }
            Ok::<(), AskError>(())
        };
        fill(self, &new, false)?;
        let taken_out: Vec<Triple> = known.iter().map(|&place| facts[place]).collect();
        let mut known = known.as_slice();
        for group in self.model.groups_to_take_out(&taken_out) {
            let (places, rest) = known.split_at(group.len());
            fill(&self.without(group)?, places, true)?;
            known = rest;
        }
        Ok(made.into_iter().map(|one| one.expect("every fact is known or new")).collect())
    }

    /// What it says about each fact, asked in the directions `ways`, by `workers` threads. `truth` are the facts that
    /// are known to be true.
    pub(super) fn judge<const N: usize>(
        &self,
        facts: &[Triple],
        ways: [Direction; N],
        truth: &Adjacency,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<[End; N]>, AskError> {
        let asked: Vec<(Query, EntityId)> =
            facts.iter().flat_map(|&fact| ways.map(|way| Query::of(fact, way))).collect();
        let mut ends = self.ends(&asked, truth, workers, progress)?.into_iter();
        let mut of_fact = |_| ends.next().expect("every direction of every fact is asked");
        Ok(facts.iter().map(|_| std::array::from_fn(&mut of_fact)).collect())
    }

    /// What it says about each answer to its query, in their order. A query with several answers is asked once.
    pub(super) fn ends(
        &self,
        asked: &[(Query, EntityId)],
        truth: &Adjacency,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<End>, AskError> {
        let mut order: Vec<usize> = (0..asked.len()).collect();
        order.sort_unstable_by_key(|&at| (asked[at].0.link, asked[at].0.subject, asked[at].1, at));
        let groups: Vec<&[usize]> = order.chunk_by(|&a, &b| asked[a].0 == asked[b].0).collect();
        let batches: Vec<&[&[usize]]> =
            groups.chunks(self.reasoner.reasoner().batch().clamp(1, 1024)).collect();
        let answer = |batch: &[&[usize]]| self.batch(batch, asked, truth, progress);
        // What is asked about may belong to a longer piece of work, which reports on itself.
        let ends = by_workers(&batches, workers, 0, answer, &Unreported(progress))?;
        let mut placed: Vec<Option<End>> = vec![None; asked.len()];
        for (at, end) in order.iter().zip(ends.into_iter().flatten()) {
            placed[*at] = Some(end);
        }
        Ok(placed.into_iter().map(|end| end.expect("every query is in one group")).collect())
    }

    fn batch(
        &self,
        batch: &[&[usize]],
        asked: &[(Query, EntityId)],
        truth: &Adjacency,
        progress: &dyn Progress,
    ) -> Result<Vec<Vec<End>>, AskError> {
        if progress.interrupted() {
            return Err(RunError::Interrupted.into());
        }
        let queries: Vec<Query> = batch.iter().map(|group| asked[group[0]].0).collect();
        let found = self.reasoner.search(&queries, usize::MAX, progress)?;
        let mut ends: Vec<Vec<End>> = Vec::with_capacity(batch.len());
        for (found, group) in found.iter().zip(batch) {
            let objects = group.iter().map(|&at| asked[at].1);
            ends.push(self.of_query(found, objects, truth)?);
        }
        if let Some(embedding) = &self.embedding {
            add_embedding(embedding, &queries, &mut ends)?;
        }
        Ok(ends)
    }

    fn of_query(
        &self,
        found: &Found,
        objects: impl Iterator<Item = EntityId>,
        truth: &Adjacency,
    ) -> Result<Vec<End>, AskError> {
        let Found { query, candidates } = found;
        let scored = |one: &Candidate| Scored { entity: one.entity, score: one.score };
        let listed: Vec<Scored> = candidates.iter().map(scored).collect();
        let probabilities = self.model.probabilities_on(found, &self.graph);
        let known = self.graph.adjacency().edges_by(query.subject, query.link);
        let is_true = truth.edges_by(query.subject, query.link);
        let all = self.graph.entities();
        let not_a_number = || {
            let (subject, relation) =
                (self.model.names().entity(query.subject), self.model.relation_name(*query));
            AskError::Cannot(format!("a score of an answer to `{relation}` of `{subject}` is not a number"))
        };
        objects
            .map(|object| {
                let candidate = candidates.iter().find(|candidate| candidate.entity == object);
                let rank = |others| filtered_rank(&listed, all, others, object).ok_or_else(not_a_number);
                let is_rival = |one: &&Candidate| {
                    one.entity != object
                        && is_true.binary_search_by_key(&one.entity, |edge| edge.target).is_err()
                };
                let rival = candidates.iter().find(is_rival);
                let is_tail = query.link.direction() == Direction::Forward;
                let because = match candidate.filter(|_| self.decomposes && is_tail) {
                    Some(own) => self.reasoner.because(found, &[own], Detail::Brief)?.pop(),
                    None => None,
                };
                Ok(End {
                    query: *query,
                    object,
                    candidate: candidate.cloned(),
                    // Less than any supported answer.
                    probability: probabilities.of(candidate.map_or(f64::NEG_INFINITY, |one| one.score)),
                    place: rank(known)?,
                    rank: rank(is_true)?,
                    embedding: None,
                    because,
                    rival: rival.map(|one| (one.clone(), probabilities.of(one.score))),
                })
            })
            .collect()
    }
}

/// Adds the embedding model's opinion to the ends of each query.
fn add_embedding(embedding: &Embedding, queries: &[Query], ends: &mut [Vec<End>]) -> Result<(), AskError> {
    let at_once = embedding.batch().max(1);
    for (batch, ends) in queries.chunks(at_once).zip(ends.chunks_mut(at_once)) {
        let scores = embedding.scores(batch)?;
        let scores = scores.on_host()?;
        for (row, ends) in scores.chunks_exact(embedding.size().entities).zip(ends) {
            let total = logsumexp(row);
            for end in ends {
                let own = f64::from(row[end.object.index()]);
                end.embedding = Some([own, own - total]);
            }
        }
    }
    Ok(())
}

/// Passes on the wish to stop, and no progress.
struct Unreported<'a>(&'a dyn Progress);

impl Progress for Unreported<'_> {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn std::fmt::Display) {}
    fn end(&self, _summary: &dyn std::fmt::Display) {}
    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}
