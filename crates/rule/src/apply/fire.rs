//! Firing the rules of a query, the most confident first.

use super::base::{LinkRules, RuleBase};
use crate::clause::{Shape, reversed_path};
use crate::frontier::{Frontier, Marks, Places};
use crate::reach::Reach;
use ruleguider_graph::{EntityId, Query};

/// Whether to continue with less confident rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Stop,
}

/// Receives the predictions of the rules.
pub(super) trait Listener {
    /// The next `rules` rules all have this confidence. Confidences arrive in descending order.
    fn confidence(&mut self, confidence: f64, rules: usize) -> Go;
    /// A rule of that confidence predicts `entity`. A rule predicts an entity at most once.
    fn predicted(&mut self, entity: EntityId, rule: u32);
}

/// How many rules fire between two looks at the clock.
const BETWEEN_LOOKS: usize = 64;

/// A rule that is about to fire.
#[derive(Clone, Copy)]
enum Firing {
    /// The cyclic rule at this index of the link's list.
    Path(u32),
    /// A rule that predicts one entity.
    One { rule: u32, answer: EntityId },
    /// A rule about the subject that predicts every entity that satisfies its body.
    About(u32),
}

/// Scratch memory of one thread.
pub(super) struct Firer {
    marks: Marks,
    /// Taken out while a query is being answered.
    places: Option<Places<'static>>,
    /// Frontiers of the current query by prefix; valid where `walked` says that this query has walked the prefix.
    frontiers: Vec<Frontier>,
    walked: Vec<u32>,
    query: u32,
    /// Each with the confidence and the index of the rule.
    firings: Vec<(f64, u32, Firing)>,
}

impl Firer {
    pub(crate) fn new(entities: usize) -> Self {
        Self {
            marks: Marks::new(entities),
            places: Some(Places::new(entities)),
            frontiers: Vec::new(),
            walked: Vec::new(),
            query: 0,
            firings: Vec::new(),
        }
    }

    /// Tells `listener` what the rules of `base` predict for `query`. Returns false if `over` returned true before
    /// the end; then the predictions are incomplete.
    pub(crate) fn fire(
        &mut self,
        base: &RuleBase,
        reach: &Reach,
        query: Query,
        listener: &mut dyn Listener,
        over: &(dyn Fn() -> bool + Sync),
    ) -> bool {
        let link = &base.links[query.link.index()];
        let entities = reach.graph().entities();
        let mut places = self.places.take().unwrap_or_else(|| Places::new(entities)).watched_by(over);
        self.begin(link);
        self.gather(link, reach, query, &mut places);
        let mut firings = std::mem::take(&mut self.firings);
        let in_time = !places.is_over() && self.fire_all(&firings, base, reach, query, listener, &mut places);
        firings.clear();
        self.firings = firings;
        self.places = Some(places.watched_by(&|| false));
        in_time
    }

    /// Fires the rules; false if the time was up before the end.
    fn fire_all(
        &mut self,
        firings: &[(f64, u32, Firing)],
        base: &RuleBase,
        reach: &Reach,
        query: Query,
        listener: &mut dyn Listener,
        places: &mut Places<'_>,
    ) -> bool {
        let link = &base.links[query.link.index()];
        let mut fired = 0_usize;
        for group in firings.chunk_by(|a, b| a.0 == b.0) {
            if listener.confidence(group[0].0, group.len()) == Go::Stop {
                break;
            }
            for &(_, _, firing) in group {
                match firing {
                    Firing::Path(path) => self.fire_path(link, path, reach, query, listener, places),
                    Firing::One { rule, answer } => listener.predicted(answer, rule),
                    Firing::About(rule) => self.fire_about(base, rule, reach, query, listener, places),
                }
                fired += 1;
                if places.has_given_up() || (fired.is_multiple_of(BETWEEN_LOOKS) && places.is_over()) {
                    return false;
                }
            }
        }
        true
    }

    fn begin(&mut self, link: &LinkRules) {
        if self.query == u32::MAX {
            self.walked.fill(0);
            self.query = 0;
        }
        self.query += 1;
        if self.frontiers.len() < link.prefixes.len() {
            self.frontiers.resize_with(link.prefixes.len(), Frontier::default);
            self.walked.resize(link.prefixes.len(), 0);
        }
    }

    /// Lists the rules that will fire, the most confident first.
    fn gather(&mut self, link: &LinkRules, reach: &Reach, query: Query, places: &mut Places<'_>) {
        for (place, path) in (0..).zip(&link.paths) {
            let first = link.prefixes[path.prefix as usize].first().unwrap_or(&path.last);
            if reach.has(*first, query.subject) {
                self.firings.push((path.confidence, path.rule, Firing::Path(place)));
            }
        }
        let sorted = self.firings.len();
        for (body, path) in (0..).zip(&link.bodies) {
            self.gather_fixed(link, body, path, reach, query, places);
        }
        let about = link.about.of(query.subject);
        self.firings.extend(about.iter().map(|&(confidence, rule)| (confidence, rule, Firing::About(rule))));
        if self.firings.len() > sorted {
            // Among ties the first rule fires first, so that the first rule to predict an entity is also its best
            // reason.
            self.firings.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
    }

    fn gather_fixed(
        &mut self,
        link: &LinkRules,
        body: u32,
        path: &[ruleguider_graph::Link],
        reach: &Reach,
        query: Query,
        places: &mut Places<'_>,
    ) {
        let firings = &mut self.firings;
        let mut fire = |end: Option<EntityId>| {
            for fixed in link.fixed.of((body, end)) {
                let fits = || {
                    fixed.answer != query.subject
                        && reach.holds_around(query.subject, path, end, fixed.answer)
                };
                if !reach.distinct() || fits() {
                    let one = Firing::One { rule: fixed.rule, answer: fixed.answer };
                    firings.push((fixed.confidence, fixed.rule, one));
                }
            }
        };
        let Some((&last, prefix)) = path.split_last() else { return fire(None) };
        if !reach.has(path[0], query.subject) {
            return;
        }
        let mut frontier = Frontier::default();
        frontier.walk(reach, query.subject, prefix, places);
        let mut any = false;
        frontier.step(reach, last, &mut self.marks, |end| {
            any = true;
            fire(Some(end));
        });
        if any {
            fire(None);
        }
    }

    fn fire_path(
        &mut self,
        link: &LinkRules,
        path: u32,
        reach: &Reach,
        query: Query,
        listener: &mut dyn Listener,
        places: &mut Places<'_>,
    ) {
        let path = link.paths[path as usize];
        let prefix = path.prefix as usize;
        let frontier = &mut self.frontiers[prefix];
        if self.walked[prefix] != self.query {
            self.walked[prefix] = self.query;
            frontier.walk(reach, query.subject, &link.prefixes[prefix], places);
        }
        frontier.step(reach, path.last, &mut self.marks, |target| listener.predicted(target, path.rule));
    }

    fn fire_about(
        &mut self,
        base: &RuleBase,
        rule: u32,
        reach: &Reach,
        query: Query,
        listener: &mut dyn Listener,
        places: &mut Places<'_>,
    ) {
        let scored = &base.rules[rule as usize].rule;
        let Shape::Constant { end, .. } = scored.shape else { return };
        let allowed = |entity: EntityId| {
            let around = || reach.holds_around(entity, &scored.body, end, query.subject);
            !reach.distinct() || (entity != query.subject && around())
        };
        match (end, &*scored.body) {
            (Some(end), body) => {
                let back = reversed_path(body);
                let Some((&last, prefix)) = back.split_last() else { return };
                let mut frontier = Frontier::default();
                frontier.walk(reach, end, prefix, places);
                frontier.step(reach, last, &mut self.marks, |entity| {
                    if allowed(entity) {
                        listener.predicted(entity, rule);
                    }
                });
            }
            (None, &[only]) => {
                for &entity in reach.sources(only).iter().filter(|&&entity| allowed(entity)) {
                    listener.predicted(entity, rule);
                }
            }
            (None, body) => {
                for &entity in reach.sources(body[0]) {
                    let mut frontier = Frontier::default();
                    frontier.walk(reach, entity, &body[..body.len() - 1], places);
                    if places.has_given_up() {
                        return;
                    }
                    let mut any = false;
                    frontier.step(reach, body[body.len() - 1], &mut self.marks, |_| any = true);
                    if any && allowed(entity) {
                        listener.predicted(entity, rule);
                    }
                }
            }
        }
    }
}
