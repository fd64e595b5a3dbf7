//! Which end of a relation is asked for, and whether the user may have meant the other.

use super::Model;
use crate::graph::{Direction, EntityId, Graph, Link, Query};

/// A subject resembles the heads (or tails) of a relation if at least this share of the entities with one of its links
/// are such.
const ALIKE: f64 = 0.1;
/// It resembles one end rather than the other if its likeness is this many times as large.
const RATHER: f64 = 2.0;
/// How many entities are named as examples.
const EXAMPLES: usize = 2;

impl Model {
    /// Whether the other direction of the relation may have been meant, and why: a hint for a query whose subject is
    /// never at this end of the relation. `None` if the subject, or entities that resemble it, are.
    pub fn other_direction(&self, query: Query) -> Option<String> {
        let graph = self.graph();
        let facts = |link: Link| graph.targets(query.subject, link).len();
        let (here, there) = (query.link, query.link.reversed());
        if facts(here) > 0 {
            return None;
        }
        let (subject, relation) = (self.naming().of(query.subject, self.names()), self.relation_name(query));
        let [(end, typed), (other_end, other)] = [here, there].map(|link| self.spelt(link, &relation));
        let asked = self.in_question(there, &subject, &relation);
        if facts(there) > 0 {
            let such_as = self.fact_of(query.subject, there, &relation);
            let times = counted(facts(there), "fact");
            return Some(format!(
                "{subject} is the {other_end} of `{relation}` in {times} of the graph, such as {such_as}, and never its \
                 {end}; did you mean `{other}`? It asks {asked}"
            ));
        }
        let [like_here, like_there] = [here, there].map(|link| likeness(graph, query.subject, link));
        if like_there >= ALIKE && like_there > RATHER * like_here {
            let percent = (100.0 * like_there).round();
            return Some(format!(
                "{subject} is in no fact of `{relation}` in the graph. Of the entities that have a link in common with it, \
                 {percent} % are a {other_end} of `{relation}`, and {:.0} % a {end}; did you mean `{other}`? It asks {asked}",
                100.0 * like_here
            ));
        }
        if like_here >= ALIKE || graph.pairs(here).is_empty() {
            return None;
        }
        let [these, those] = [here, there].map(|link| self.some_with(link));
        Some(format!(
            "no entity like {subject} is a {end} of `{relation}` in the graph; `{typed}` is for entities such as {these}, \
             `{other}` for entities such as {those}"
        ))
    }

    /// Which end of the relation has `link`, and how a person writes the link.
    fn spelt(&self, link: Link, relation: &str) -> (&'static str, String) {
        match link.direction() {
            Direction::Forward => ("head", relation.to_owned()),
            // A relation may have that very name.
            Direction::Inverse if self.names().relations.get(&format!("~{relation}")).is_some() => {
                ("tail", format!("{relation}^-1"))
            }
            Direction::Inverse => ("tail", format!("~{relation}")),
        }
    }

    /// The question that `link` asks, in words.
    fn in_question(&self, link: Link, subject: &str, relation: &str) -> String {
        match link.direction() {
            Direction::Forward => format!("{subject} —{relation}→ ?"),
            Direction::Inverse => format!("? —{relation}→ {subject}"),
        }
    }

    /// One fact of `subject` by `link`.
    fn fact_of(&self, subject: EntityId, link: Link, relation: &str) -> String {
        let name = |entity: EntityId| self.naming().of(entity, self.names());
        let other =
            self.graph().targets(subject, link).first().map_or_else(String::new, |&other| name(other));
        match link.direction() {
            Direction::Forward => format!("{} —{relation}→ {other}", name(subject)),
            Direction::Inverse => format!("{other} —{relation}→ {}", name(subject)),
        }
    }

    /// Entities that have `link`: those with most facts of it.
    fn some_with(&self, link: Link) -> String {
        let mut rows: Vec<(usize, EntityId)> =
            self.graph().pairs(link).rows().map(|(source, targets)| (targets.len(), source)).collect();
        rows.sort_by_key(|&(facts, source)| (std::cmp::Reverse(facts), source));
        let named = rows.iter().take(EXAMPLES).map(|&(_, source)| self.naming().of(source, self.names()));
        named.collect::<Vec<_>>().join(" and ")
    }
}

/// `1 fact`, `3 facts`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// How much `subject` resembles the entities that have `link`. For each link of the subject, the share of entities
/// with that link that also have `link`; the largest of these.
fn likeness(graph: &Graph, subject: EntityId, link: Link) -> f64 {
    let with_link = graph.pairs(link).sources;
    let shared = |own: Link| {
        let sources = graph.pairs(own).sources;
        let (few, many) =
            if sources.len() < with_link.len() { (sources, with_link) } else { (with_link, sources) };
        let both = few.iter().filter(|entity| many.binary_search(entity).is_ok()).count();
        both as f64 / sources.len().max(1) as f64
    };
    let own = graph.edges(subject).chunk_by(|a, b| a.link == b.link).map(|run| run[0].link);
    own.map(shared).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{RelationId, Triple};

    #[test]
    fn an_entity_is_like_those_it_shares_links_with() {
        // People live in towns; most people have a gender, and towns lie in a country.
        let mut facts = Vec::new();
        for person in 0..10 {
            facts.push(Triple::new(person, 0, 20));
            if person < 8 {
                facts.push(Triple::new(person, 1, 30));
            }
        }
        facts.push(Triple::new(20, 2, 31));
        let graph = Graph::new(32, 3, &facts);
        let [gender, back] = [Link::forward(RelationId(1)), Link::inverse_of(RelationId(1))];
        assert_eq!(likeness(&graph, EntityId(9), gender), 0.8);
        assert_eq!(likeness(&graph, EntityId(9), back), 0.0);
        assert_eq!(likeness(&graph, EntityId(20), gender), 0.0);
        assert_eq!(likeness(&graph, EntityId(5), gender), 1.0, "it has one itself");
    }
}
