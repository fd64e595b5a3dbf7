//! Firing the rules of a query, the most confident first.

use super::base::{LinkRules, RuleBase};
use crate::graph::{EntityId, Query};
use crate::rule::clause::{Shape, reversed_path};
use crate::rule::frontier::{Frontier, Marks, Places};
use crate::rule::reach::Reach;

/// Whether to continue with less confident rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    On,
    Stop,
}

/// Receives what the rules predict.
pub(super) trait Listener {
    /// The next `rules` rules all have this confidence. Rules come in falling order of confidence.
    fn confidence(&mut self, confidence: f64, rules: usize) -> Go;
    /// A rule of that confidence predicts `entity`. No rule does so twice.
    fn predicted(&mut self, entity: EntityId, rule: u32);
}

/// A rule that is about to fire.
#[derive(Clone, Copy)]
enum Firing {
    /// The cyclic rule at this place of the link's list.
    Path(u32),
    /// A rule that predicts one entity.
    One { rule: u32, answer: EntityId },
    /// A rule about the subject that predicts every entity that satisfies its body.
    About(u32),
}

/// Scratch memory of one thread.
pub(super) struct Firer {
    marks: Marks,
    places: Places<'static>,
    /// Frontiers of the current query by prefix; `None` where the prefix has not been walked yet.
    frontiers: Vec<Frontier>,
    walked: Vec<u32>,
    query: u32,
    /// With the confidence and the place of the rule among all rules.
    firings: Vec<(f64, u32, Firing)>,
}

impl Firer {
    pub fn new(entities: usize) -> Self {
        Self {
            marks: Marks::new(entities),
            places: Places::new(entities),
            frontiers: Vec::new(),
            walked: Vec::new(),
            query: 0,
            firings: Vec::new(),
        }
    }

    /// Tells `listener` what the rules of `base` predict for `query`.
    pub fn fire(&mut self, base: &RuleBase, reach: &Reach, query: Query, listener: &mut dyn Listener) {
        let link = &base.links[query.link.index()];
        self.begin(link);
        self.gather(link, reach, query);
        let mut firings = std::mem::take(&mut self.firings);
        for group in firings.chunk_by(|a, b| a.0 == b.0) {
            if listener.confidence(group[0].0, group.len()) == Go::Stop {
                break;
            }
            for &(_, _, firing) in group {
                match firing {
                    Firing::Path(path) => self.fire_path(link, path, reach, query, listener),
                    Firing::One { rule, answer } => listener.predicted(answer, rule),
                    Firing::About(rule) => self.fire_about(base, rule, reach, query, listener),
                }
            }
        }
        firings.clear();
        self.firings = firings;
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

    /// Lists what will fire, the most confident first.
    fn gather(&mut self, link: &LinkRules, reach: &Reach, query: Query) {
        for (place, path) in (0..).zip(&link.paths) {
            let first = link.prefixes[path.prefix as usize].first().unwrap_or(&path.last);
            if reach.has(*first, query.subject) {
                self.firings.push((path.confidence, path.rule, Firing::Path(place)));
            }
        }
        let sorted = self.firings.len();
        for (body, path) in (0..).zip(&link.bodies) {
            self.gather_fixed(link, body, path, reach, query);
        }
        let about = link.about.of(query.subject);
        self.firings.extend(about.iter().map(|&(confidence, rule)| (confidence, rule, Firing::About(rule))));
        if self.firings.len() > sorted {
            // Of equals the first rule fires first, so that the first to predict an entity is also its best reason.
            self.firings.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
    }

    fn gather_fixed(
        &mut self,
        link: &LinkRules,
        body: u32,
        path: &[crate::graph::Link],
        reach: &Reach,
        query: Query,
    ) {
        let firings = &mut self.firings;
        let mut fire = |end: Option<EntityId>| {
            for fixed in link.fixed.of((body, end)) {
                if !reach.distinct() || fixed.answer != query.subject {
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
        frontier.walk(reach, query.subject, prefix, &mut self.places);
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
    ) {
        let path = link.paths[path as usize];
        let prefix = path.prefix as usize;
        let frontier = &mut self.frontiers[prefix];
        if self.walked[prefix] != self.query {
            self.walked[prefix] = self.query;
            frontier.walk(reach, query.subject, &link.prefixes[prefix], &mut self.places);
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
    ) {
        let scored = &base.rules[rule as usize].rule;
        let allowed = |entity: EntityId| !reach.distinct() || entity != query.subject;
        let Shape::Constant { end, .. } = scored.shape else { return };
        match (end, &*scored.body) {
            (Some(end), body) => {
                let back = reversed_path(body);
                let Some((&last, prefix)) = back.split_last() else { return };
                let mut frontier = Frontier::default();
                frontier.walk(reach, end, prefix, &mut self.places);
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
                for &entity in reach.sources(body[0]).iter().filter(|&&entity| allowed(entity)) {
                    let mut frontier = Frontier::default();
                    frontier.walk(reach, entity, &body[..body.len() - 1], &mut self.places);
                    let mut any = false;
                    frontier.step(reach, body[body.len() - 1], &mut self.marks, |_| any = true);
                    if any {
                        listener.predicted(entity, rule);
                    }
                }
            }
        }
    }
}
