//! What to look at next, and how far reviewers agree with each other and with the model: `GET live/queue` and
//! `GET live/agreement`.
//!
//! The suggestions of a queue are found once and kept for [`REUSED`] changes, so that the next one is there as soon as a
//! verdict is written; what was decided meanwhile is left out.

use super::event::{Fact, Kind};
use super::routes::{live_of, uncached};
use super::served::Live;
use super::state::{About, Standing, State as Said};
use super::tokens::Role;
use crate::http::{Deadline, Problem, json_response};
use crate::serve::{MISSING, Parameters, Shared, at_most};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use ruleguider::ask::{
    CompleteOptions, HeldOutFacts, MissingFact, MissingFacts, Model, ScoreOptions, Threshold,
};
use ruleguider::graph::Link;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// After how many changes suggestions are found again.
const REUSED: i64 = 50;
/// The most relations whose suggestions are kept.
const KEPT: usize = 64;
/// How many verdicts the model's probability counts for, as a rule's confidence adds five cases.
const PRIOR: f64 = 5.0;
/// Every which suggestion is there to be learnt from.
const TEACHES: usize = 4;
/// The most facts whose verdicts are compared with the model, the last ones.
const COMPARED: usize = 1000;
/// Bins of probabilities.
const BINS: usize = 10;

/// Suggestions, and when they were found.
struct Found {
    base: u64,
    seq: i64,
    missing: Arc<MissingFacts>,
}

/// What was found for earlier requests.
#[derive(Default)]
pub struct Pools {
    /// By relation; `None` for all of them. Held while suggestions are found: others wait for these.
    suggestions: tokio::sync::Mutex<HashMap<Option<Link>, Found>>,
    /// What the run that was learnt thinks of facts that were decided, and which run that is.
    probabilities: Mutex<(u64, HashMap<Fact, Option<f64>>)>,
}

/// Parameters of `GET queue`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueParams {
    relation: Option<String>,
    limit: Option<usize>,
}

/// What to look at next, and why.
pub async fn queue(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    Parameters(QueueParams { relation, limit }): Parameters<QueueParams>,
) -> Result<Response, Problem> {
    let live = live_of(&shared, &run)?;
    let who = live.admit(&headers, Role::Read)?;
    live.caught_up(shared.gate.timeout()).await?;
    let limit = at_most(limit, 20, "limit")?;
    let _place = shared.gate.enter()?;
    let missing = shared.gate.in_time(suggestions(&shared, &live, relation)).await?;
    let kept = live.kept();
    let open: Vec<&MissingFact> =
        missing.facts.iter().filter(|fact| is_open(&kept.state, fact, &who)).collect();
    let tally = Tally::of(&kept.state.reviewed());
    let items: Vec<Value> = queued(&open, &tally, limit)
        .into_iter()
        .map(|(fact, why, alike)| json!({"fact": fact, "why": why, "alike": alike}))
        .collect();
    let found = json!({
        "items": items, "open": open.len(), "asked": missing.asked, "subjects": missing.subjects,
    });
    Ok(uncached(json_response(shared.gate.json(&found)?)))
}

/// Whether `who` has no verdict on a suggestion, and those of others do not settle it.
fn is_open(state: &Said, fact: &MissingFact, who: &Arc<str>) -> bool {
    let name = [&fact.head, &fact.relation, &fact.tail].map(|name| Arc::from(name.as_str()));
    state.about(&name).is_none_or(|about| {
        let settled = matches!(about.standing(), Standing::Holds | Standing::Rejected);
        !settled && !about.verdicts.contains_key(who)
    })
}

/// The most probable missing facts of a relation, or of all, best first.
async fn suggestions(
    shared: &Shared,
    live: &Arc<Live>,
    relation: Option<String>,
) -> Result<Arc<MissingFacts>, Problem> {
    let now = live.now();
    let model = Arc::clone(&now.model);
    let link =
        relation.map(|name| model.relation(&name)).transpose().map_err(Problem::from)?.map(Link::forward);
    let (base, seq) = (live.generation(), now.overlay.unwrap_or_default());
    let mut pools = live.pools().suggestions.lock().await;
    let found = pools.get(&link).filter(|found| found.base == base && seq - found.seq < REUSED);
    if let Some(found) = found {
        return Ok(Arc::clone(&found.missing));
    }
    let gate = Arc::clone(&shared.gate);
    let work = move |deadline: &Deadline| {
        let options = CompleteOptions {
            links: link.into_iter().collect(),
            top: Some(MISSING),
            min_probability: None,
            held_out: HeldOutFacts::Hide,
            workers: gate.workers(),
            subjects: Default::default(),
            objects: Default::default(),
            paths: Default::default(),
        };
        model.missing_facts(&options, deadline).map_err(|error| gate.problem(error))
    };
    let missing = Arc::new(shared.gate.run_inside(work).await?);
    if pools.len() >= KEPT {
        pools.retain(|_, found| found.base == base && seq - found.seq < REUSED);
    }
    if pools.len() >= KEPT {
        // Any will do: it is found again when it is asked for.
        let any = pools.keys().next().copied();
        any.map(|any| pools.remove(&any));
    }
    pools.insert(link, Found { base, seq, missing: Arc::clone(&missing) });
    Ok(missing)
}

/// What verdicts say about suggestions with the same relation and the same subject or object: how many were accepted and
/// rejected.
#[derive(Default)]
struct Tally<'a> {
    subjects: HashMap<(&'a str, &'a str), [usize; 2]>,
    objects: HashMap<(&'a str, &'a str), [usize; 2]>,
}

impl<'a> Tally<'a> {
    fn of(reviewed: &[(&'a Fact, &'a About)]) -> Self {
        let mut tally = Self::default();
        for (fact, about) in reviewed {
            let Some(accepted) = majority(about) else { continue };
            let [subject, relation, object] = fact.each_ref().map(|name| &**name);
            tally.subjects.entry((relation, subject)).or_default()[usize::from(!accepted)] += 1;
            tally.objects.entry((relation, object)).or_default()[usize::from(!accepted)] += 1;
        }
        tally
    }

    /// The probability of a suggestion after these verdicts. The model's probability counts as [`PRIOR`] verdicts; those on
    /// the same subject, and then those on the same object, are added to them.
    fn probability(&self, fact: &MissingFact) -> f64 {
        let about = [(&self.subjects, &fact.head), (&self.objects, &fact.tail)];
        about.into_iter().fold(fact.probability.0.unwrap_or(0.5), |share, (counts, name)| {
            let [accepted, rejected] =
                counts.get(&(&*fact.relation, name.as_str())).copied().unwrap_or_default();
            (PRIOR * share + accepted as f64) / (PRIOR + (accepted + rejected) as f64)
        })
    }
}

/// The next suggestions: the most probable after all verdicts, and every [`TEACHES`]th the one whose verdict would teach
/// most. That is one that is uncertain and rests on the same rule as many others: by its verdict, all of these become more
/// or less likely.
fn queued<'a>(
    open: &[&'a MissingFact],
    tally: &Tally<'_>,
    limit: usize,
) -> Vec<(&'a MissingFact, &'static str, usize)> {
    let rule = |fact: &'a MissingFact| fact.reason.rule.as_ref().map(|rule| rule.text.as_str());
    let mut alike: HashMap<Option<&str>, usize> = HashMap::new();
    for fact in open {
        *alike.entry(rule(fact)).or_default() += 1;
    }
    let others = |fact: &'a MissingFact| alike.get(&rule(fact)).map_or(0, |count| count - 1);
    let shares: Vec<f64> = open.iter().map(|fact| tally.probability(fact)).collect();
    let worth = |at: usize| shares[at] * (1.0 - shares[at]) * (1.0 + others(open[at]) as f64).ln();
    let worth: Vec<f64> = (0..open.len()).map(worth).collect();
    let order = |by: &[f64]| {
        let mut order: Vec<usize> = (0..open.len()).collect();
        order.sort_by(|&a, &b| by[b].total_cmp(&by[a]));
        order.into_iter()
    };
    let (mut probable, mut teaching) = (order(&shares), order(&worth));
    let mut taken = vec![false; open.len()];
    let mut next = Vec::new();
    while next.len() < limit {
        let (place, why) = match next.len() % TEACHES == TEACHES - 1 {
            false => (probable.find(|&at| !taken[at]), "most probable"),
            true => (teaching.find(|&at| !taken[at]), "uncertain, and others rest on the same rule"),
        };
        let Some(place) = place else { break };
        taken[place] = true;
        next.push((open[place], why, others(open[place])));
    }
    next
}

/// How far reviewers agree with each other, and with the model by its probability.
pub async fn agreement(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let live = live_of(&shared, &run)?;
    live.admit(&headers, Role::Read)?;
    let gate = Arc::clone(&shared.gate);
    let work = move |deadline: &Deadline| {
        let (base, model, learnt) = live.base();
        let (pairs, reviewers, decided) = {
            let kept = live.kept();
            let reviewed = kept.state.reviewed();
            let last = reviewed.iter().filter_map(|(fact, about)| Some(((*fact).clone(), majority(about)?)));
            let last: Vec<(Fact, bool)> = last.take(COMPARED).collect();
            (pairs(&reviewed), reviewers(&reviewed), last)
        };
        // A run that was trained on the verdict says nothing about it.
        let is_new = |fact: &Fact| !learnt.has(&fact.each_ref().map(|name| name.to_string()));
        let probabilities = probabilities(live.pools(), base, &model, &decided, deadline)
            .map_err(|error| gate.problem(error))?;
        let judged = decided.iter().zip(&probabilities);
        let judged: Vec<(f64, bool)> = judged
            .filter(|((fact, _), _)| is_new(fact))
            .filter_map(|((_, accepted), share)| Some(((*share)?, *accepted)))
            .collect();
        let found = json!({
            "reviewers": reviewers, "pairs": pairs, "decided": decided.len(), "compared": judged.len(),
            "bins": bins(&judged),
        });
        gate.json(&found)
    };
    Ok(uncached(json_response(shared.gate.run(work).await?)))
}

/// Whether a fact was accepted; `None` if its reviewers are undecided.
fn majority(about: &About) -> Option<bool> {
    let (accept, reject) = about.votes();
    (accept != reject).then_some(accept > reject)
}

fn reviewers(reviewed: &[(&Fact, &About)]) -> Vec<Value> {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (who, verdict) in reviewed.iter().flat_map(|(_, about)| &about.verdicts) {
        let place = [Kind::Accept, Kind::Reject].iter().position(|kind| *kind == verdict.kind).unwrap_or(2);
        counts.entry(who).or_default()[place] += 1;
    }
    let row = |(who, [accept, reject, unsure]): (&str, [usize; 3])| json!({"who": who, "accept": accept, "reject": reject, "unsure": unsure});
    counts.into_iter().map(row).collect()
}

/// For any two reviewers: how many facts both accepted or rejected, on how many of them they agree, and how much more that
/// is than by chance (Cohen's kappa).
fn pairs(reviewed: &[(&Fact, &About)]) -> Vec<Value> {
    // The facts that both accept, only the first, only the second, neither.
    let mut counts: BTreeMap<(&str, &str), [usize; 4]> = BTreeMap::new();
    for (_, about) in reviewed {
        let decided: Vec<(&str, bool)> = about
            .verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict.kind, Kind::Accept | Kind::Reject))
            .map(|(who, verdict)| (&**who, verdict.kind == Kind::Accept))
            .collect();
        for (at, (first, accepts)) in decided.iter().enumerate() {
            for (second, also) in &decided[at + 1..] {
                let place = 2 * usize::from(!accepts) + usize::from(!also);
                counts.entry((first, second)).or_default()[place] += 1;
            }
        }
    }
    let row = |((first, second), counts): ((&str, &str), [usize; 4])| {
        let facts = counts.iter().sum::<usize>();
        json!({
            "reviewers": [first, second], "facts": facts, "agree": counts[0] + counts[3], "kappa": kappa(counts),
        })
    };
    counts.into_iter().map(row).collect()
}

/// Cohen's kappa of a table of two by two; `None` if chance alone makes the two agree.
fn kappa([both, first, second, neither]: [usize; 4]) -> Option<f64> {
    let all = (both + first + second + neither) as f64;
    let agree = (both + neither) as f64 / all;
    let accepts = [(both + first) as f64 / all, (both + second) as f64 / all];
    let chance = accepts[0] * accepts[1] + (1.0 - accepts[0]) * (1.0 - accepts[1]);
    (chance < 1.0).then(|| (agree - chance) / (1.0 - chance))
}

/// What the run without edits thinks of these facts; `None` if it has no probability.
fn probabilities(
    pools: &Pools,
    base: u64,
    model: &Model,
    decided: &[(Fact, bool)],
    deadline: &Deadline,
) -> Result<Vec<Option<f64>>, ruleguider::ask::AskError> {
    let lock = || pools.probabilities.lock().unwrap_or_else(PoisonError::into_inner);
    let before = {
        let mut known = lock();
        if known.0 != base {
            *known = (base, HashMap::new());
        }
        std::mem::take(&mut known.1)
    };
    let new: Vec<[String; 3]> = decided
        .iter()
        .filter(|(fact, _)| !before.contains_key(fact))
        .map(|(fact, _)| fact.each_ref().map(|name| name.to_string()))
        .collect();
    let options = ScoreOptions { threshold: Threshold::Never, ..ScoreOptions::default() };
    let mut scored = model.score(&new, &options, deadline)?.into_iter();
    // What was decided long ago is forgotten here.
    let mut all = HashMap::new();
    for (fact, _) in decided {
        let share = match before.get(fact) {
            Some(share) => *share,
            None => scored.next().and_then(|row| row.probability.0.filter(|_| row.error.is_none())),
        };
        all.insert(fact.clone(), share);
    }
    let found = decided.iter().map(|(fact, _)| all[fact]).collect();
    let mut known = lock();
    if known.0 == base {
        known.1 = all;
    }
    Ok(found)
}

/// Verdicts by probability: bins that have any, with how many were accepted.
fn bins(judged: &[(f64, bool)]) -> Vec<Value> {
    let mut bins = [(0, 0, 0.0); BINS];
    for &(share, accepted) in judged {
        let bin = &mut bins[((share * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += 1;
        bin.1 += usize::from(accepted);
        bin.2 += share;
    }
    let filled = bins.into_iter().enumerate().filter(|(_, (facts, ..))| *facts > 0);
    let row = |(at, (facts, accepted, sum)): (usize, (usize, usize, f64))| {
        json!({
            "from": at as f64 / BINS as f64, "to": (at + 1) as f64 / BINS as f64, "facts": facts,
            "accepted": accepted, "probability": sum / facts as f64,
        })
    };
    filled.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_learns_from_verdicts_takes_turns_and_names_no_fact_twice() {
        let fact = |tail: &str, probability: f64, rule: &str| -> MissingFact {
            serde_json::from_value(json!({
                "head": "h", "relation": "r", "tail": tail, "head_label": "h", "tail_label": tail,
                "probability": probability, "score": probability, "words": "", "held_out": null,
                "from": "h", "path": [], "sentence": "",
                "rule": {
                    "text": rule, "confidence": 0.5, "predicted": 4, "correct": 2, "support": 2, "body": [],
                },
            }))
            .unwrap_or_else(|error| panic!("{error}"))
        };
        let facts = [fact("a", 0.9, "x"), fact("b", 0.5, "y"), fact("c", 0.47, "z"), fact("d", 0.4, "z")];
        let facts = [&facts[..], &[fact("e", 0.1, "w")]].concat();
        let open: Vec<&MissingFact> = facts.iter().collect();
        let tails = |tally: &Tally<'_>| -> String {
            queued(&open, tally, 10).iter().map(|one| one.0.tail.as_str()).collect()
        };
        assert_eq!(tails(&Tally::default()), "abcde");
        let next = queued(&open, &Tally::default(), 10);
        assert_eq!((next[3].1, next[2].2, next[0].2), ("uncertain, and others rest on the same rule", 1, 0));
        // Reviewers reject what is like the first and accept what is like the last.
        let said = |seq, object: &str, kind| {
            let fact = ["other", "r", object].map(Arc::from);
            let said = super::super::event::Said { kind, fact, confidence: None, source: None, note: None };
            super::super::event::Event { seq, said, who: "ada".into(), time_ms: 0 }
        };
        let mut state = Said::default();
        (0..10).for_each(|at| {
            let kind = if at % 2 == 0 { Kind::Reject } else { Kind::Accept };
            let mut event = said(at + 1, if at % 2 == 0 { "a" } else { "e" }, kind);
            event.said.fact[0] = format!("other {at}").into();
            state.apply(event);
        });
        let reviewed = state.reviewed();
        let tally = Tally::of(&reviewed);
        assert!((tally.probability(&facts[0]) - 0.45).abs() < 1e-12);
        assert_eq!(tails(&tally), "ebcda");
    }

    #[test]
    fn agreement_is_more_than_chance() {
        assert_eq!(kappa([5, 0, 0, 5]), Some(1.0));
        assert_eq!(kappa([0, 5, 5, 0]), Some(-1.0));
        assert!(kappa([20, 5, 10, 15]).is_some_and(|found| (found - 0.4).abs() < 1e-12));
        assert_eq!(kappa([5, 0, 0, 0]), None);
        let found = bins(&[(0.05, false), (0.0, false), (1.0, true), (0.95, false)]);
        let counts = |bin: &Value| (bin["facts"].as_u64().unwrap(), bin["accepted"].as_u64().unwrap());
        assert_eq!(found.iter().map(counts).collect::<Vec<_>>(), [(2, 0), (2, 1)]);
    }
}
