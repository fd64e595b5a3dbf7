//! Which entities a relation is sensibly asked of: those that resemble the entities that have it.
//!
//! An entity is asked for a link if it has the link already, or if it has another link with which this one often
//! occurs: at least one in ten of the entities with that other link have this one too. An entity with an address is
//! asked for a postcode; a river is not asked for its spouse. If the link is functional (at most one in a hundred of
//! the entities that have it have more than one answer), an entity that has an answer is not asked for another.

use super::{EntityId, Graph, Link, Query};
use std::collections::HashMap;

/// Two links occur together if at least this share of the entities with one also have the other.
const TOGETHER: f64 = 0.1;
/// A link is functional if at most this share of its entities have several answers.
const SEVERAL: f64 = 0.01;

/// The entities that are asked for `link`, in the order of their ids.
pub fn subjects(graph: &Graph, link: Link) -> Vec<EntityId> {
    let mut asked = vec![false; graph.entities()];
    for other in seen_with(graph, link) {
        graph.pairs(other).sources.iter().for_each(|entity| asked[entity.index()] = true);
    }
    let answered = !is_functional(graph, link);
    graph.pairs(link).sources.iter().for_each(|entity| asked[entity.index()] = answered);
    (0..graph.entities() as u32).map(EntityId).filter(|entity| asked[entity.index()]).collect()
}

/// The links that `link` often occurs with.
fn seen_with(graph: &Graph, link: Link) -> Vec<Link> {
    // A map of the links that occur, not an array: there may be hundreds of thousands of links.
    let mut together: HashMap<Link, usize> = HashMap::new();
    for &entity in graph.pairs(link).sources {
        for run in graph.edges(entity).chunk_by(|a, b| a.link == b.link) {
            *together.entry(run[0].link).or_default() += 1;
        }
    }
    let often = |&(other, count): &(Link, usize)| {
        other != link && count as f64 >= TOGETHER * graph.pairs(other).sources.len() as f64
    };
    let mut often: Vec<Link> = together.into_iter().filter(often).map(|(other, _)| other).collect();
    often.sort_unstable();
    often
}

/// Whether hardly any entity has more than one answer.
fn is_functional(graph: &Graph, link: Link) -> bool {
    let several = graph.pairs(link).rows().filter(|(_, targets)| targets.len() > 1).count();
    several as f64 <= SEVERAL * graph.pairs(link).sources.len() as f64
}

/// How many queries `links` have.
pub fn count_queries(graph: &Graph, links: &[Link]) -> u64 {
    links.iter().map(|&link| subjects(graph, link).len() as u64).sum()
}

/// The queries of `links`, one link after the other; only one link's subjects are in memory at a time.
pub fn sensible_queries<'a>(graph: &'a Graph, links: &'a [Link]) -> impl Iterator<Item = Query> + 'a {
    links
        .iter()
        .flat_map(move |&link| subjects(graph, link).into_iter().map(move |subject| Query { subject, link }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RelationId, Triple};

    /// Relation 0 is functional and occurs with relation 1; other entities have relation 2.
    fn graph() -> Graph {
        let mut facts = vec![Triple::new(20, 2, 21)];
        for person in 0..10 {
            facts.push(Triple::new(person, 1, 30));
            if person < 8 {
                facts.push(Triple::new(person, 0, 31));
            }
        }
        Graph::new(32, 3, &facts)
    }

    fn asked(link: Link) -> Vec<u32> {
        subjects(&graph(), link).iter().map(|entity| entity.0).collect()
    }

    #[test]
    fn those_are_asked_who_are_like_those_that_have_it() {
        assert_eq!(asked(Link::forward(RelationId(0))), [8, 9], "the others have their one answer");
        assert_eq!(asked(Link::inverse_of(RelationId(1))), [30], "it has many answers and may have more");
        assert!(asked(Link::forward(RelationId(2))).is_empty());
    }

    #[test]
    fn queries_go_link_by_link() {
        let links = [Link::inverse_of(RelationId(1)), Link::forward(RelationId(0))];
        let graph = graph();
        let all: Vec<(u32, Link)> =
            sensible_queries(&graph, &links).map(|query| (query.subject.0, query.link)).collect();
        assert_eq!(all, [(30, links[0]), (8, links[1]), (9, links[1])]);
        assert_eq!(count_queries(&graph, &links), 3);
    }
}
