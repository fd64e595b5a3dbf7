//! Are the reasons that are shown the cause of an answer? The facts of the reasons are taken out of the graph, and the
//! same is asked again.
//!
//! What was learnt stays as it is: rules fire, agents walk and messages are passed on the graph without those facts, but
//! nothing is trained again. So an embedding model, which holds the facts in its vectors, says what it said before, and
//! its figure shows that.

use super::{AskError, Model};
use crate::eval::Side;
use crate::graph::{Direction, EntityId, Graph, Link, Query, RelationId, Triple, evenly};
use crate::progress::{Progress, Silent};
use crate::reason::{
    Because, Candidate, CaseSide, Detail, Explains, Found, MemberShare, ShareSource, supported,
};
use crate::run::RunError;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most shared facts of a similar case that count as shown: as many as an explanation names.
const SHARED: usize = 5;
/// The most rules and paths to an answer whose facts count as shown.
const MAX_PATHS: usize = 100;
/// A member is judged by answers of which it has at least this share.
const NOTABLE: f64 = 0.1;
/// The quantile of the normal distribution for intervals of 95 %.
const NORMAL: f64 = 1.96;
/// The seed of the random facts.
const SEED: u64 = 1;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// The mean of `values`; `None` if there are none.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let margin = NORMAL * (squares / (count - 1.0).max(1.0) / count).sqrt();
        Some(Self { value, low: value - margin, high: value + margin })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5.1} % [{:.1}, {:.1}]", 100.0 * self.value, 100.0 * self.low, 100.0 * self.high)
    }
}

/// Whether the reasons shown are the cause of the best answers. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faithfulness {
    /// How many best answers were tried.
    pub answers: usize,
    /// The mean number of facts that their reasons show.
    pub facts: f64,
    /// The share of an answer's score above the median candidate that goes with the facts of its reasons.
    pub deletion: Estimate,
    /// The same with as many other facts of the subject and its neighbours.
    pub deletion_random: Estimate,
    /// `deletion` divided by the upper end of `deletion_random`: the facts of the reasons cost at least so many times what
    /// others do. Absent if that end is not above 0.
    #[serde(default)]
    pub ratio_to_random: Option<f64>,
    /// How many answers keep their place without the facts of their reasons.
    pub kept_place: Estimate,
    /// The same without as many other facts.
    pub kept_place_random: Estimate,
    /// How many answers keep their place if these facts are all that is known about the subject.
    pub sufficiency: Estimate,
    /// By member: the share of what it gives to an answer that goes with the facts of all reasons.
    pub members: BTreeMap<String, MemberFaithfulness>,
}

/// How much of a member's share of the scores depends on the facts shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberFaithfulness {
    /// The number of answers of which it has at least a tenth.
    pub answers: usize,
    /// Its mean share of what these answers have above a typical candidate.
    pub share: f64,
    /// The share of its part that goes with the facts of the reasons.
    pub deletion: Estimate,
    /// The same with as many other facts.
    pub deletion_random: Estimate,
}

impl fmt::Display for Faithfulness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answers, facts, deletion, deletion_random, kept_place, kept_place_random, .. } = self;
        writeln!(f, "Reasons of {answers} best answers, {facts:.1} facts each (95 % intervals):")?;
        writeln!(f, "  without these facts, of the score above the median goes   {deletion}")?;
        writeln!(f, "  without as many other facts nearby                        {deletion_random}")?;
        match self.ratio_to_random {
            Some(ratio) => {
                writeln!(f, "  so the facts of the reasons cost at least {ratio:.1} times as much")?
            }
            None => writeln!(f, "  so other facts cost nothing")?,
        }
        writeln!(f, "  without these facts, the answer keeps its place           {kept_place}")?;
        writeln!(f, "  without as many other facts nearby                        {kept_place_random}")?;
        write!(f, "  with nothing else about the subject, it keeps its place   {}", self.sufficiency)?;
        for (name, MemberFaithfulness { answers, share, deletion, deletion_random }) in &self.members {
            write!(
                f,
                "\n  {name}, {:.0} % of the score of {answers} answers: {deletion} goes, {deletion_random} without others",
                100.0 * share
            )?;
        }
        Ok(())
    }
}

/// A fact as an edge of the graph.
type Fact = (EntityId, Link, EntityId);

/// The best answer to a query, as the graph has it now.
struct Before {
    query: Query,
    answer: EntityId,
    place: usize,
    /// Its score above the median candidate.
    above: f64,
    because: Because,
    shown: BTreeSet<Triple>,
}

/// What is left of an answer on another graph.
struct After {
    /// The share of its score above the median candidate that is gone.
    gone: f64,
    kept: bool,
    /// The share that is gone of what each notable member gave.
    members: BTreeMap<&'static str, f64>,
}

/// An answer, with the facts of its reasons out, with others out, and with only them left.
struct Tried {
    facts: usize,
    members: BTreeMap<&'static str, f64>,
    without: After,
    without_others: After,
    alone: After,
}

impl Model {
    /// Takes the facts of the reasons of the best answers to `queries` queries of the test split out of the graph and asks
    /// again; `None` if there is no answer.
    ///
    /// # Errors
    /// If the reasoner fails, a member cannot be loaded, or the user interrupts.
    pub fn faithfulness(
        &self,
        queries: usize,
        progress: &dyn Progress,
    ) -> Result<Option<Faithfulness>, AskError> {
        let mut asked: Vec<Query> = Side::Both.asked(&self.dataset.test).map(|(query, _)| query).collect();
        asked.sort_unstable();
        asked.dedup();
        let asked = evenly(&asked, queries);
        progress.begin("checking reasons", "queries", Some(asked.len() as u64));
        let done = AtomicU64::new(0);
        let tried = |(number, &query): (usize, &Query)| -> Result<Option<Tried>, AskError> {
            if progress.interrupted() {
                return Err(RunError::Interrupted.into());
            }
            let tried = self.best(query)?.map(|before| self.tried(&before, number as u64)).transpose();
            progress.advance(1 + done.fetch_add(1, Ordering::Relaxed), &"");
            tried
        };
        let tried: Result<Vec<Option<Tried>>, AskError> = asked.par_iter().enumerate().map(tried).collect();
        let tried: Vec<Tried> = tried?.into_iter().flatten().collect();
        progress.end(&format_args!("{} answers", tried.len()));
        Ok(summed_up(&tried))
    }

    /// The best answer to a query and the facts of its reasons; `None` if there is none, or none above the median.
    fn best(&self, query: Query) -> Result<Option<Before>, AskError> {
        let found = self.reasoner.search(&[query], usize::MAX, &Silent)?.remove(0);
        let Some(best) = supported(&*self.reasoner, &found, 1)?.pop() else { return Ok(None) };
        let Some(place) = found.candidates.iter().position(|one| one.entity == best.entity) else {
            return Ok(None);
        };
        let candidate = &found.candidates[place];
        let above = candidate.score - median(&found.candidates);
        if above <= 0.0 {
            return Ok(None);
        }
        let because = self.reasoner.because(&found, &[candidate], Detail::Full)?.remove(0);
        let mut shown = shown(query, best.entity, &because, self.graph());
        // Other rules take the place of those that the score is made of, so they are reasons, too.
        let ways = self.reasoner.reasons(query, candidate, MAX_PATHS)?;
        shown.extend(ways.iter().flat_map(|way| way.facts()).filter_map(triple));
        Ok(Some(Before { query, answer: best.entity, place, above, because, shown }))
    }

    fn tried(&self, before: &Before, number: u64) -> Result<Tried, AskError> {
        let graph = self.graph();
        let others = others(graph, before, number);
        let about = graph.edges(before.query.subject).iter();
        let rest: BTreeSet<Triple> = about
            .filter_map(|edge| triple((before.query.subject, edge.link, edge.target)))
            .filter(|fact| !before.shown.contains(fact))
            .collect();
        let total: f64 = before.because.members.iter().map(|member| member.share.max(0.0)).sum();
        let shares = before.because.members.iter().map(|member| (member.member, member.share / total));
        Ok(Tried {
            facts: before.shown.len(),
            members: shares.filter(|(_, share)| *share >= NOTABLE).collect(),
            without: self.without(before, &before.shown)?,
            without_others: self.without(before, &others)?,
            alone: self.without(before, &rest)?,
        })
    }

    /// The answer on the graph without some facts.
    fn without(&self, before: &Before, facts: &BTreeSet<Triple>) -> Result<After, AskError> {
        let kept = |link: Link| {
            let pairs = self.graph().pairs(link).pairs();
            pairs.filter_map(move |(head, tail)| triple((head, link, tail)))
        };
        let graph = self.graph();
        let links = (0..graph.relations() as u32).map(|relation| Link::forward(RelationId(relation)));
        let left: Vec<Triple> = links.flat_map(kept).filter(|fact| !facts.contains(fact)).collect();
        let graph = Arc::new(Graph::new(graph.entities(), graph.relations(), &left));
        let reasoner = self.artifacts.over(&graph)?.reasoner()?;
        let mut found = reasoner.search(&[before.query], usize::MAX, &Silent)?.remove(0);
        // What was taken out is no new answer.
        found
            .candidates
            .retain(|one| !self.graph().contains(before.query.subject, before.query.link, one.entity));
        after(before, &*reasoner, &found)
    }
}

/// What is left of the answer among what was found now.
fn after(before: &Before, reasoner: &dyn Explains, found: &Found) -> Result<After, AskError> {
    let Some(place) = found.candidates.iter().position(|one| one.entity == before.answer) else {
        // What members say that only order the candidates of others is not known then.
        let members = before
            .because
            .members
            .iter()
            .filter(|member| member.gives_candidates())
            .map(|member| (member.member, 1.0));
        return Ok(After { gone: 1.0, kept: false, members: members.collect() });
    };
    let candidate = &found.candidates[place];
    let now = reasoner.because(found, &[candidate], Detail::Brief)?.remove(0);
    let gone = |member: &MemberShare| {
        let left = now.members.iter().find(|one| one.member == member.member).map_or(0.0, |one| one.share);
        (member.member, lost(member.share, left))
    };
    Ok(After {
        gone: lost(before.above, candidate.score - median(&found.candidates)),
        kept: place <= before.place,
        members: before.because.members.iter().map(gone).collect(),
    })
}

/// The share of `before` that is gone, if `now` is left; not more than all of it, in either direction.
fn lost(before: f64, now: f64) -> f64 {
    (1.0 - now / before).clamp(-1.0, 1.0)
}

/// The score of the candidate in the middle.
fn median(candidates: &[Candidate]) -> f64 {
    let mut scores: Vec<f64> = candidates.iter().map(|one| one.score).collect();
    let middle = scores.len().saturating_sub(1) / 2;
    if scores.is_empty() { 0.0 } else { *scores.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

/// An edge as a fact of the data.
fn triple((from, link, to): Fact) -> Option<Triple> {
    let relation = link.relation()?;
    Some(match link.direction() {
        Direction::Forward => Triple { head: from, relation, tail: to },
        Direction::Inverse => Triple { head: to, relation, tail: from },
    })
}

/// The facts of the graph that the reasons show.
fn shown(query: Query, answer: EntityId, because: &Because, graph: &Graph) -> BTreeSet<Triple> {
    let facts = |source: &ShareSource| -> Vec<Fact> {
        match source {
            ShareSource::Rule { groundings, .. } => groundings.iter().flat_map(|one| one.facts()).collect(),
            ShareSource::Path(way) => way.facts(),
            ShareSource::Case(case) => {
                let like = match case.side {
                    CaseSide::Subject => query.subject,
                    CaseSide::Answer => answer,
                };
                let shared = case.shared.iter().take(SHARED);
                let both = shared
                    .flat_map(|&(link, target)| [like, case.entity].map(|entity| (entity, link, target)));
                both.chain([case.fact]).collect()
            }
            ShareSource::Feature(_) | ShareSource::Rest(_) => Vec::new(),
        }
    };
    let parts = because.members.iter().flat_map(|member| &member.parts);
    let all = parts.flat_map(|part| facts(&part.source));
    all.filter(|&(from, link, to)| graph.contains(from, link, to)).filter_map(triple).collect()
}

/// As many facts of the subject and its neighbours as are shown, but other ones, drawn at random.
fn others(graph: &Graph, before: &Before, number: u64) -> BTreeSet<Triple> {
    let subject = before.query.subject;
    let neighbours = graph.edges(subject).iter().map(|edge| edge.target);
    let near: BTreeSet<EntityId> = std::iter::once(subject).chain(neighbours).collect();
    let facts = near.into_iter().flat_map(|entity| {
        graph.edges(entity).iter().filter_map(move |edge| triple((entity, edge.link, edge.target)))
    });
    let pool: BTreeSet<Triple> = facts.filter(|fact| !before.shown.contains(fact)).collect();
    let mut pool: Vec<Triple> = pool.into_iter().collect();
    pool.shuffle(&mut ChaCha8Rng::seed_from_u64(SEED ^ number));
    pool.into_iter().take(before.shown.len()).collect()
}

fn summed_up(tried: &[Tried]) -> Option<Faithfulness> {
    let estimate = |of: &dyn Fn(&Tried) -> f64| Estimate::of(&tried.iter().map(of).collect::<Vec<f64>>());
    let kept = |after: &After| f64::from(u8::from(after.kept));
    let mut members = BTreeMap::new();
    let names: BTreeSet<&str> = tried.iter().flat_map(|one| one.members.keys().copied()).collect();
    for name in names {
        let of: Vec<&Tried> = tried.iter().filter(|one| one.members.contains_key(name)).collect();
        let gone = |after: &dyn Fn(&Tried) -> Option<f64>| {
            Estimate::of(&of.iter().filter_map(|one| after(one)).collect::<Vec<f64>>())
        };
        let deletion = gone(&|one| one.without.members.get(name).copied());
        let random = gone(&|one| one.without_others.members.get(name).copied());
        let share = of.iter().map(|one| one.members[name]).sum::<f64>() / of.len() as f64;
        if let (Some(deletion), Some(deletion_random)) = (deletion, random) {
            let one = MemberFaithfulness { answers: of.len(), share, deletion, deletion_random };
            members.insert(name.to_owned(), one);
        }
    }
    let deletion = estimate(&|one| one.without.gone)?;
    let deletion_random = estimate(&|one| one.without_others.gone)?;
    Some(Faithfulness {
        ratio_to_random: (deletion_random.high > 0.0).then(|| deletion.value / deletion_random.high),
        answers: tried.len(),
        facts: tried.iter().map(|one| one.facts as f64).sum::<f64>() / tried.len().max(1) as f64,
        deletion,
        deletion_random,
        kept_place: estimate(&|one| kept(&one.without))?,
        kept_place_random: estimate(&|one| kept(&one.without_others))?,
        sufficiency: estimate(&|one| kept(&one.alone))?,
        members,
    })
}
