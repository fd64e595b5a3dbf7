//! Rules with constants, `h(X,c) <= b(X,d)` and `h(X,c) <= b(X,A)`, and zero rules `h(X,c) <= `.
//!
//! A body selects entities; any link that many of them have to the same constant makes a rule. One pass over the
//! edges of the selected entities therefore serves all heads.

use super::order::in_order;
use super::select::{Keep, kept};
use super::{MineOptions, Miner, MiningBudget};
use crate::Map;
use crate::clause::{Counts, Rule, RuleType, ScoredRule, Shape, reversed_path, sort_by_confidence};
use crate::frontier::{Frontier, Marks, Places};
use crate::reach::Neighbour;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use ruleguider_graph::{EntityId, Link};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A body of a rule with constants: a path from the variable, and the constant at its end if there is one.
type Body = (Box<[Link]>, Option<EntityId>);

/// A link, a constant, and all entities that the link joins to the constant.
type Group<'a> = (Link, EntityId, &'a [EntityId]);
/// A body of one link under a head and its constant.
struct CountedBody {
    link: Link,
    end: Option<EntityId>,
    counts: Counts,
    /// The subjects that it explains, by index.
    covers: Vec<u32>,
}

/// Bodies counted between two checks for too many rules.
const BODIES: usize = 1024;
/// Walks that share one random stream.
const CHUNK: u64 = 1024;
/// Entities processed between two looks at the clock.
const BETWEEN_LOOKS: usize = 64;
/// How many rules may accumulate, at least, before the worst are dropped.
const ROOM: usize = 1 << 16;

/// What a rule with a longer body adds. How such bodies overlap is not known, so each adds all that it explains.
pub(crate) fn adds(counts: &Counts, options: &MineOptions) -> f64 {
    counts.confidence(options.unseen) * counts.correct as f64
}

impl Miner<'_> {
    /// For every link and constant, the rule that always predicts the constant; and the share of links counted.
    pub(crate) fn zero(&self) -> (Vec<ScoredRule>, f64) {
        let mut rules = Vec::new();
        let heads: Vec<Link> = self.reach.links().filter(|head| self.worth.heads[head.index()]).collect();
        let heads = self.own(heads, |&head| self.reach.pairs(head) as u64);
        let mut counted = 0;
        for &head in heads.iter().take_while(|_| !self.watch.over()) {
            counted += 1;
            let predicted = self.reach.pairs(head) as u64;
            for (answer, subjects) in self.reach.rows(head.reversed()) {
                let counts = Counts::exact(predicted, subjects.len() as u64);
                if self.worth.holds(counts) {
                    let shape = Shape::Constant { answer, end: None };
                    rules.push(ScoredRule { rule: Rule { head, body: [].into(), shape }, counts });
                }
            }
        }
        self.watch.note(RuleType::Zero, rules.len());
        (rules, self.share(counted, heads.len()))
    }

    /// For every link and constant, the best rules with a body of one link; and the share of (link, constant) pairs
    /// counted.
    pub(crate) fn short_acyclic(&self) -> (Vec<ScoredRule>, f64) {
        let heads = self.reach.links().filter(|head| self.worth.heads[head.index()]);
        let groups: Vec<Group<'_>> = heads
            .flat_map(|head| self.reach.rows(head.reversed()).map(move |(answer, row)| (head, answer, row)))
            .filter(|(_, _, subjects)| subjects.len() as u64 >= self.options.min_support)
            .collect();
        let edges = |subject: &EntityId| self.reach.graph().edges(*subject).len() as u64;
        let mut groups = self.own(groups, |(_, _, subjects)| subjects.iter().map(edges).sum());
        let counted = AtomicUsize::new(0);
        let mut rules = Vec::new();
        let most = |a: &Group<'_>, b: &Group<'_>| b.2.len().cmp(&a.2.len()).then((a.0, a.1).cmp(&(b.0, b.1)));
        in_order(&mut groups, most, |block| {
            rules.extend(self.bodies_of_all(block, &counted).into_iter().flatten());
            !self.watch.over()
        });
        (rules, self.share(counted.into_inner(), groups.len()))
    }

    /// The best rules of each of `groups` until the time is up; adds the number of finished groups to `counted`.
    fn bodies_of_all(&self, groups: &[Group<'_>], counted: &AtomicUsize) -> Vec<Vec<ScoredRule>> {
        let groups = groups.par_iter().with_max_len(256);
        let counting = groups.fold(Vec::new, |mut rules, &(head, answer, subjects)| {
            if !self.watch.over() {
                let before = rules.len();
                if !self.bodies_of(head, answer, subjects, &mut rules) {
                    return rules;
                }
                self.watch.note(RuleType::Acyclic, rules.len() - before);
                counted.fetch_add(1, Ordering::Relaxed);
            }
            rules
        });
        counting.collect()
    }

    /// Adds the best rules `head(X,answer) <= b(X,·)`; `subjects` are all X for which the head is true. False if the
    /// time was up before they were found.
    fn bodies_of(
        &self,
        head: Link,
        answer: EntityId,
        subjects: &[EntityId],
        rules: &mut Vec<ScoredRule>,
    ) -> bool {
        let distinct = self.reach.distinct();
        // Each with the index of the subject.
        let mut edges: Vec<(Link, EntityId, u32)> = Vec::new();
        let mut links: Vec<(Link, u32)> = Vec::new();
        for (place, &subject) in (0..).zip(subjects) {
            if place as usize % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 && self.watch.over() {
                return false;
            }
            let all = self.reach.graph().edges(subject).iter();
            let first = edges.len();
            edges.extend(all.filter(|e| !distinct || e.target != subject).map(|e| (e.link, e.target, place)));
            // An open end must not bind the constant: otherwise a fact would be evidence for itself.
            let by_link = edges[first..].chunk_by(|a, b| a.0 == b.0);
            let open = by_link.filter(|run| run.iter().any(|edge| !distinct || edge.1 != answer));
            links.extend(open.map(|run| (run[0].0, place)));
        }
        edges.sort_unstable();
        links.sort_unstable();
        let itself = |has: bool| u64::from(distinct && has);
        let same_body = |a: &(Link, EntityId, u32), b: &(Link, EntityId, u32)| (a.0, a.1) == (b.0, b.1);
        let bound =
            edges.chunk_by(same_body).filter(|same| (same[0].0, same[0].1) != (head, answer)).map(|same| {
                let (link, end, _) = same[0];
                let selected = self.reach.targets(link.reversed(), end);
                let predicted = selected.len() as u64 - itself(selected.binary_search(&answer).is_ok());
                let counts = Counts::exact(predicted, same.len() as u64);
                (link, Some(end), counts, same.iter().map(|edge| edge.2).collect::<Vec<u32>>())
            });
        let open = links.chunk_by(|a, b| a.0 == b.0).map(|same| {
            let counts = Counts::exact(self.with_open_end(same[0].0, answer), same.len() as u64);
            (same[0].0, None, counts, same.iter().map(|edge| edge.1).collect())
        });
        let confidence = |counts: Counts| counts.confidence(self.options.unseen);
        let mut bodies: Vec<CountedBody> = bound
            .chain(open)
            .filter(|(_, _, counts, _)| self.worth.holds(*counts))
            .map(|(link, end, counts, covers)| CountedBody { link, end, counts, covers })
            .collect();
        bodies.sort_unstable_by(|a, b| {
            (confidence(b.counts).total_cmp(&confidence(a.counts)))
                .then(b.counts.correct.cmp(&a.counts.correct))
                .then((a.link, a.end).cmp(&(b.link, b.end)))
        });
        let explained: Vec<(f64, &[u32])> =
            bodies.iter().map(|body| (confidence(body.counts), body.covers.as_slice())).collect();
        let kept = kept(self.options.keep, &explained, subjects.len(), self.options.max_bodies);
        rules.extend(kept.into_iter().map(|at| {
            let CountedBody { link, end, counts, .. } = bodies[at];
            let rule = Rule { head, body: [link].into(), shape: Shape::Constant { answer, end } };
            ScoredRule { rule, counts }
        }));
        true
    }

    /// How many entities other than `answer` have a `link` to an entity other than `answer`.
    fn with_open_end(&self, link: Link, answer: EntityId) -> u64 {
        let sources = self.reach.sources(link).len() as u64;
        if !self.reach.distinct() {
            return sources;
        }
        let leads_here_alone = |&&source: &&EntityId| self.reach.targets(link, source).len() == 1;
        let alone = self.reach.targets(link.reversed(), answer).iter().filter(leads_here_alone).count();
        sources - alone as u64 - u64::from(self.reach.has(link, answer))
    }

    /// Rules with constants and longer bodies, as nominated by random walks, and the share of the nominated bodies
    /// that was counted. Ends when the walks find nothing new.
    pub(crate) fn long_acyclic(&self) -> (Vec<ScoredRule>, f64) {
        let mut done: Map<Body, ()> = Map::default();
        let (mut counted, mut own) = (0, 0);
        let mut rules = Vec::new();
        let mut room = ROOM;
        let over = || self.watch.over();
        for round in 0.. {
            let walks = match self.options.budget {
                MiningBudget::Samples(samples) => samples,
                MiningBudget::Seconds(_) | MiningBudget::Saturation => 1 << 16,
            };
            let mut bodies = self.nominate_bodies(round, walks);
            bodies.retain(|body| done.try_insert(body.clone(), ()).is_ok());
            let none = bodies.is_empty();
            let bodies = self.own(bodies, |(path, end)| match end {
                Some(end) => self.reach.targets(path[path.len() - 1].reversed(), *end).len() as u64,
                None => self.reach.pairs(path[0]) as u64,
            });
            own += bodies.len();
            for bodies in bodies.chunks(BODIES) {
                let found: Vec<Option<Vec<ScoredRule>>> = bodies
                    .par_iter()
                    .map_init(|| self.scratch(&over), |work, body| self.count_body(body, work))
                    .collect();
                counted += found.iter().flatten().count();
                rules.extend(found.into_iter().flatten().flatten());
                if rules.len() > room {
                    self.keep_the_best(&mut rules);
                    room = ROOM.max(2 * rules.len());
                }
            }
            let once = matches!(self.options.budget, MiningBudget::Samples(_));
            if once || none || self.watch.over() {
                break;
            }
        }
        self.keep_the_best(&mut rules);
        (rules, self.share(counted, own))
    }

    /// Keeps at most the wanted number of rules for every link and constant.
    fn keep_the_best(&self, rules: &mut Vec<ScoredRule>) {
        let options = self.options;
        sort_by_confidence(rules, options.unseen);
        if options.keep != Keep::Confident {
            rules.sort_by(|a, b| adds(&b.counts, options).total_cmp(&adds(&a.counts, options)));
        }
        let mut kept: Map<(Link, Option<EntityId>), usize> = Map::default();
        rules.retain(|scored| {
            let count = kept.entry((scored.rule.head, scored.rule.shape.constant())).or_default();
            *count += 1;
            *count <= options.max_bodies
        });
    }

    fn scratch<'o>(&self, over: &'o (dyn Fn() -> bool + Sync)) -> (Places<'o>, Marks) {
        let entities = self.reach.graph().entities();
        (Places::watched(entities, over), Marks::new(entities))
    }

    /// Bodies that random walks have followed, the most frequent first.
    fn nominate_bodies(&self, round: u64, walks: u64) -> Vec<Body> {
        let chunks = walks.div_ceil(CHUNK);
        let found: Vec<Map<Body, u32>> = (0..chunks)
            .into_par_iter()
            .fold(Map::default, |mut seen, chunk| {
                if !self.watch.over() {
                    let count = CHUNK.min(walks - chunk * CHUNK);
                    self.walk_bodies(round * chunks + chunk, count, &mut seen);
                }
                seen
            })
            .collect();
        let mut seen: Map<Body, u32> = Map::default();
        // Once the time is up, bodies would not be counted anyway.
        for (body, times) in self.while_in_time(found.into_iter().flatten()) {
            *seen.entry(body).or_default() += times;
        }
        // A body followed by two walks selects at least some entities; the rest would mostly lack support.
        let mut bodies: Vec<(Body, u32)> = seen.into_iter().filter(|&(_, times)| times > 1).collect();
        bodies.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        bodies.into_iter().map(|(body, _)| body).collect()
    }

    /// Records the bodies of `walks` walks, drawn from the random stream `stream`.
    fn walk_bodies(&self, stream: u64, walks: u64, seen: &mut Map<Body, u32>) {
        let mut random = ChaCha8Rng::seed_from_u64(self.options.seed);
        random.set_stream(stream);
        for _ in 0..walks {
            let Some(source) = self.reach.random_source(&mut random) else { break };
            let mut trail = vec![source];
            let mut path = Vec::new();
            for _ in 0..random.random_range(2..=self.options.max_acyclic_length) {
                let edges = self.reach.neighbours(trail[trail.len() - 1]);
                let Neighbour { target, link } = edges[random.random_range(0..edges.len())];
                if self.reach.distinct() && trail.contains(&target) {
                    break;
                }
                trail.push(target);
                path.push(link);
            }
            if path.len() > 1 {
                *seen.entry((path.clone().into(), None)).or_default() += 1;
                *seen.entry((path.into(), trail.last().copied())).or_default() += 1;
            }
        }
    }

    /// The rules of one body; none if the time is up.
    fn count_body(
        &self,
        (path, end): &Body,
        (places, marks): &mut (Places<'_>, Marks),
    ) -> Option<Vec<ScoredRule>> {
        if self.watch.over() {
            return None;
        }
        let mut rules = Vec::new();
        let mut subjects = Vec::new();
        let mut frontier = Frontier::default();
        match end {
            Some(end) => {
                let back = reversed_path(path);
                frontier.walk(self.reach, *end, &back[..back.len() - 1], places);
                if places.has_given_up() {
                    return None;
                }
                frontier.step(self.reach, back[back.len() - 1], marks, |subject| subjects.push(subject));
                subjects.sort_unstable();
            }
            None => {
                for (place, &subject) in self.reach.sources(path[0]).iter().enumerate() {
                    if place % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 && self.watch.over() {
                        return None;
                    }
                    frontier.walk(self.reach, subject, &path[..path.len() - 1], places);
                    let mut any = false;
                    frontier.step(self.reach, path[path.len() - 1], marks, |_| any = true);
                    if any {
                        subjects.push(subject);
                    }
                }
            }
        }
        self.heads_of(path, *end, &subjects, &mut rules);
        self.watch.note(RuleType::Acyclic, rules.len());
        Some(rules)
    }

    /// Appends the rules with this body, which selects `subjects`.
    fn heads_of(
        &self,
        body: &[Link],
        end: Option<EntityId>,
        subjects: &[EntityId],
        rules: &mut Vec<ScoredRule>,
    ) {
        let mut edges: Vec<(Link, EntityId, EntityId)> = Vec::new();
        for &subject in subjects {
            let all = self.reach.graph().edges(subject).iter();
            let fit = all.filter(|edge| {
                self.worth.heads[edge.link.index()] && !(self.reach.distinct() && edge.target == subject)
            });
            edges.extend(fit.map(|edge| (edge.link, edge.target, subject)));
        }
        edges.sort_unstable();
        // By constant: the subjects for which the body holds only if a variable binds the constant.
        let mut bound: Map<EntityId, Vec<EntityId>> = Map::default();
        for same in edges.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (head, answer, _) = same[0];
            let says_nothing = body == [head] && end == Some(answer);
            if (same.len() as u64) < self.options.min_support || says_nothing {
                continue;
            }
            let bound = bound.entry(answer).or_insert_with(|| {
                let holds = |x: EntityId| x != answer && self.reach.holds_around(x, body, end, answer);
                let only_bound = |x: &EntityId| self.reach.distinct() && !holds(*x);
                subjects.iter().copied().filter(only_bound).collect()
            });
            let correct = same.iter().filter(|edge| bound.binary_search(&edge.2).is_err()).count();
            let counts = Counts::exact((subjects.len() - bound.len()) as u64, correct as u64);
            if self.worth.holds(counts) {
                let rule = Rule { head, body: body.into(), shape: Shape::Constant { answer, end } };
                rules.push(ScoredRule { rule, counts });
            }
        }
    }
}
