//! The entities at the end of a path of links, with or without object identity.
//!
//! Object identity: all entities on a path are distinct. Edges from an entity to itself are not in [`Reach`], so only
//! entities two or more steps apart remain to be checked. A frontier is exact for one further step: an entity `y` can
//! follow `b` if some path to `b` does not pass through `y`, that is, if `y` is not in the intersection of all paths
//! to `b`. Each entity of the frontier carries that intersection (`blocked`).
//!
//! ```text
//! source ─▶ m ─▶ b    one path to b: it may not go on to m        blocked(b) = {m}
//! source ─▶ m ─▶ c
//! source ─▶ n ─▶ c    two: to m past n, and to n past m           blocked(c) = {}
//! ```
//!
//! So a prefix is walked once for all bodies that begin with it: each last link is one step from the frontier, and no
//! grounding of a whole body is walked.

use super::reach::Reach;
use ruleguider_graph::{EntityId, Link};

/// An entry of `blocked` that blocks nothing.
const NOBODY: EntityId = EntityId(u32::MAX);

/// Steps of a walk between two looks at the clock.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 20;

/// Marks over all entities that are cleared by changing the epoch. Epochs are short, so that marks stay in the cache.
pub(super) struct Marks {
    epoch: u16,
    marks: Vec<u16>,
}

impl Marks {
    /// No entity is marked.
    pub(crate) fn new(entities: usize) -> Self {
        Self { epoch: 1, marks: vec![0; entities] }
    }

    /// Unmarks all.
    pub(crate) fn clear(&mut self) {
        if self.epoch == u16::MAX {
            // Marks of an earlier round would look new.
            self.marks.fill(0);
            self.epoch = 0;
        }
        self.epoch += 1;
    }

    /// Marks `entity`; true if it was not marked yet.
    #[inline]
    pub(crate) fn mark(&mut self, entity: EntityId) -> bool {
        let mark = &mut self.marks[entity.index()];
        let new = *mark != self.epoch;
        *mark = self.epoch;
        new
    }
}

/// The entities that a path reaches from one entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    source: EntityId,
    nodes: Vec<EntityId>,
    /// For each node, `width` entities that lie on every path to it, except the source.
    blocked: Vec<EntityId>,
    width: usize,
}

impl Frontier {
    /// Walks `path` from `source`.
    pub(crate) fn walk(&mut self, reach: &Reach, source: EntityId, path: &[Link], work: &mut Places<'_>) {
        self.source = source;
        self.nodes.clear();
        self.blocked.clear();
        self.width = if reach.distinct() { path.len().saturating_sub(1) } else { 0 };
        match *path {
            [] => self.nodes.push(source),
            [only] => self.nodes.extend_from_slice(reach.targets(only, source)),
            [first, second] if reach.distinct() => self.walk_two(reach, first, second, work),
            _ if reach.distinct() => self.walk_distinct(reach, path, work),
            _ => self.walk_freely(reach, path, work),
        }
    }

    fn walk_two(&mut self, reach: &Reach, first: Link, second: Link, work: &mut Places<'_>) {
        work.clear();
        for &middle in reach.targets(first, self.source) {
            let nodes = reach.targets(second, middle);
            work.work += 1 + nodes.len() as u64;
            for &node in nodes {
                match work.place(node, self.nodes.len()) {
                    _ if node == self.source => {}
                    None => {
                        self.nodes.push(node);
                        self.blocked.push(middle);
                    }
                    // Each middle entity comes once, so this is another path to the node.
                    Some(place) => self.blocked[place] = NOBODY,
                }
            }
        }
    }

    fn walk_distinct(&mut self, reach: &Reach, path: &[Link], work: &mut Places<'_>) {
        work.clear();
        work.steps = 0;
        let mut trail = vec![self.source];
        self.follow(reach, path, &mut trail, work);
        work.work = work.work.saturating_add(work.steps);
    }

    fn follow(&mut self, reach: &Reach, rest: &[Link], trail: &mut Vec<EntityId>, work: &mut Places<'_>) {
        let here = trail[trail.len() - 1];
        let Some((&link, rest)) = rest.split_first() else {
            let between = &trail[1..trail.len() - 1];
            match work.place(here, self.nodes.len()) {
                None => {
                    self.nodes.push(here);
                    self.blocked.extend_from_slice(between);
                }
                // Intersects with this path. Its length is the same, so the slots stay; what leaves becomes `NOBODY`.
                Some(place) => {
                    for blocked in &mut self.blocked[place * self.width..(place + 1) * self.width] {
                        if !between.contains(blocked) {
                            *blocked = NOBODY;
                        }
                    }
                }
            }
            return;
        };
        for &next in reach.targets(link, here) {
            work.steps += 1;
            // The most steps stand for "given up", so that no walk that unwinds needs another flag.
            if work.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && !work.has_given_up() && work.is_over() {
                work.steps = u64::MAX;
            }
            if work.has_given_up() {
                return;
            }
            if !trail.contains(&next) {
                trail.push(next);
                self.follow(reach, rest, trail, work);
                trail.pop();
            }
        }
    }

    fn walk_freely(&mut self, reach: &Reach, path: &[Link], work: &mut Places<'_>) {
        self.nodes.push(self.source);
        // Without object identity only the set of entities matters: breadth first, each entity once a hop.
        let mut next = Vec::new();
        for &link in path {
            work.clear();
            for &node in &self.nodes {
                let targets = reach.targets(link, node);
                work.work += 1 + targets.len() as u64;
                for &target in targets {
                    if work.place(target, 0).is_none() {
                        next.push(target);
                    }
                }
            }
            std::mem::swap(&mut self.nodes, &mut next);
            next.clear();
        }
    }

    /// The entities reached, each once.
    pub(crate) fn nodes(&self) -> &[EntityId] {
        &self.nodes
    }

    /// Whether nothing was reached.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a step from the node at index `place` may end in `target`.
    #[inline]
    pub(crate) fn allows(&self, place: usize, target: EntityId, distinct: bool) -> bool {
        let blocked = &self.blocked[place * self.width..(place + 1) * self.width];
        !distinct || (target != self.source && !blocked.contains(&target))
    }

    /// Calls `found` with every distinct entity that one step by `last` reaches.
    #[inline]
    pub(crate) fn step(&self, reach: &Reach, last: Link, marks: &mut Marks, mut found: impl FnMut(EntityId)) {
        marks.clear();
        for (place, &node) in self.nodes.iter().enumerate() {
            for &target in reach.targets(last, node) {
                if self.allows(place, target, reach.distinct()) && marks.mark(target) {
                    found(target);
                }
            }
        }
    }
}

/// For every entity, its index in the frontier under construction.
pub(super) struct Places<'w> {
    marks: Marks,
    places: Vec<u32>,
    /// Steps of the last walk of three or more links, and the limit.
    steps: u64,
    limit: u64,
    /// Steps of all walks of two or more links since the last [`take_work`](Self::take_work).
    work: u64,
    /// Polled from time to time during a walk of three or more links; true ends the walk.
    over: &'w (dyn Fn() -> bool + Sync),
}

impl<'w> Places<'w> {
    /// No entity has an index.
    pub(crate) fn new(entities: usize) -> Self {
        Self::watched(entities, &|| false)
    }

    /// The same, but walks of three or more links are given up once `over` returns true.
    pub(crate) fn watched(entities: usize, over: &'w (dyn Fn() -> bool + Sync)) -> Self {
        let (marks, places) = (Marks::new(entities), vec![0; entities]);
        Self { marks, places, steps: 0, limit: u64::MAX, work: 0, over }
    }

    /// The same memory with another `over`.
    pub(crate) fn watched_by<'v>(self, over: &'v (dyn Fn() -> bool + Sync)) -> Places<'v> {
        let Places { marks, places, limit, work, .. } = self;
        Places { marks, places, steps: 0, limit, work, over }
    }

    /// The same, but walks of three or more links are given up after `limit` steps: under object identity all
    /// their groundings are walked one by one, and there can be very many.
    pub(crate) fn with_limit(entities: usize, limit: u64) -> Self {
        Self { limit, ..Self::new(entities) }
    }

    /// Whether `over` returns true.
    pub(crate) fn is_over(&self) -> bool {
        (self.over)()
    }

    /// Whether the last walk of three or more links was given up, so that its frontier is incomplete.
    pub(crate) fn has_given_up(&self) -> bool {
        self.steps > self.limit || self.steps == u64::MAX
    }

    /// About how many steps were walked since the last call: the cost of the walks.
    pub(crate) fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work) as usize
    }

    fn clear(&mut self) {
        self.marks.clear();
    }

    /// The index of `entity`; if it has none yet, it gets `next`.
    #[inline]
    fn place(&mut self, entity: EntityId, next: usize) -> Option<usize> {
        if self.marks.mark(entity) {
            self.places[entity.index()] = next as u32;
            return None;
        }
        Some(self.places[entity.index()] as usize)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use ruleguider_graph::{Graph, Triple};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// The ends of all groundings of `path` from `source`, one by one.
    pub(crate) fn ends(graph: &Graph, source: EntityId, path: &[Link], distinct: bool) -> BTreeSet<EntityId> {
        fn go(
            graph: &Graph,
            trail: &[EntityId],
            path: &[Link],
            distinct: bool,
            out: &mut BTreeSet<EntityId>,
        ) {
            let here = trail[trail.len() - 1];
            let Some((&link, rest)) = path.split_first() else {
                out.insert(here);
                return;
            };
            for &next in graph.targets(here, link) {
                if !distinct || !trail.contains(&next) {
                    go(graph, &[trail, &[next]].concat(), rest, distinct, out);
                }
            }
        }
        let mut out = BTreeSet::new();
        go(graph, &[source], path, distinct, &mut out);
        out
    }

    /// Whether some grounding of `body` from `x`, to `end` if there is one, binds no variable to `constant`.
    pub(crate) fn holds(
        graph: &Graph,
        x: EntityId,
        body: &[Link],
        end: Option<EntityId>,
        constant: EntityId,
        distinct: bool,
    ) -> bool {
        fn go(
            graph: &Graph,
            trail: &[EntityId],
            rest: &[Link],
            distinct: bool,
            all: &mut Vec<Vec<EntityId>>,
        ) {
            let Some((&link, rest)) = rest.split_first() else { return all.push(trail.to_vec()) };
            for &next in graph.targets(trail[trail.len() - 1], link) {
                if !distinct || !trail.contains(&next) {
                    go(graph, &[trail, &[next]].concat(), rest, distinct, all);
                }
            }
        }
        let mut all = Vec::new();
        go(graph, &[x], body, distinct, &mut all);
        all.iter().any(|trail| {
            let variables = &trail[..trail.len() - usize::from(end.is_some())];
            end.is_none_or(|end| trail.ends_with(&[end])) && !(distinct && variables.contains(&constant))
        })
    }

    pub(crate) fn graph(facts: &[(u32, u32, u32)], entities: usize, relations: usize) -> Arc<Graph> {
        let facts: Vec<Triple> = facts.iter().map(|&(h, r, t)| Triple::new(h, r, t)).collect();
        Graph::new(entities, relations, &facts).into()
    }

    proptest! {
        #[test]
        fn a_frontier_and_one_step_end_where_the_groundings_end(
            facts in prop::collection::vec((0u32..6, 0u32..2, 0u32..6), 0..30),
            path in prop::collection::vec(3u32..7, 1..5),
            distinct in any::<bool>(),
        ) {
            let graph = graph(&facts, 6, 2);
            let path: Vec<Link> = path.into_iter().map(Link).collect();
            let reach = Reach::new(&graph, distinct);
            let (last, prefix) = path.split_last().unwrap();
            let (mut places, mut marks) = (Places::new(6), Marks::new(6));
            let mut frontier = Frontier::default();
            for source in (0..6).map(EntityId) {
                frontier.walk(&reach, source, prefix, &mut places);
                let reached: BTreeSet<EntityId> = frontier.nodes().iter().copied().collect();
                prop_assert_eq!(reached.len(), frontier.nodes().len());
                prop_assert_eq!(reached, ends(&graph, source, prefix, distinct));
                let mut stepped = Vec::new();
                frontier.step(&reach, *last, &mut marks, |target| stepped.push(target));
                let distinct_ends: BTreeSet<EntityId> = stepped.iter().copied().collect();
                prop_assert_eq!(distinct_ends.len(), stepped.len());
                prop_assert_eq!(distinct_ends, ends(&graph, source, &path, distinct));
            }
        }
    }
}
