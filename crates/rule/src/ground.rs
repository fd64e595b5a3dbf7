//! The search for a grounding: entities along the links of a rule's body.

use ruleguider_graph::{EntityId, Link};

/// Looks for entities along links.
pub struct Grounding<F> {
    /// The targets of a link from an entity, ascending.
    pub targets: F,
    /// Whether all entities have to be different.
    pub distinct: bool,
    /// The constant of the rule's head, which no variable of the body may bind.
    pub avoid: Option<EntityId>,
    /// How many entities may still be tried.
    pub tries: usize,
}

impl<'g, F: Fn(EntityId, Link) -> &'g [EntityId]> Grounding<F> {
    /// The entities along `path` from `start` to `end`, or to anywhere if there is no end, including both; `None` if
    /// there is no path, or none was found within the limit.
    pub fn find(&mut self, start: EntityId, path: &[Link], end: Option<EntityId>) -> Option<Vec<EntityId>> {
        let mut found = None;
        self.each(start, path, end, &mut |trail| {
            found = Some(trail.to_vec());
            false
        });
        found
    }

    /// Calls `visit` with the entities along every path from `start` to `end`, until it returns `false` or
    /// [`tries`](Self::tries) are used up.
    pub fn each(
        &mut self,
        start: EntityId,
        path: &[Link],
        end: Option<EntityId>,
        visit: &mut dyn FnMut(&[EntityId]) -> bool,
    ) {
        self.go_on(&mut vec![start], path, end, visit);
    }

    /// Follows `path` from the end of `trail`, which is restored afterwards; `false` if no more paths are wanted.
    fn go_on(
        &mut self,
        trail: &mut Vec<EntityId>,
        path: &[Link],
        end: Option<EntityId>,
        visit: &mut dyn FnMut(&[EntityId]) -> bool,
    ) -> bool {
        let Some((&link, rest)) = path.split_first() else { return visit(trail) };
        let targets = (self.targets)(trail[trail.len() - 1], link);
        let choice = match end.filter(|_| rest.is_empty()) {
            Some(end) => match targets.binary_search(&end) {
                Ok(place) => &targets[place..=place],
                Err(_) => &[],
            },
            None => targets,
        };
        for &target in choice {
            if self.tries == 0 {
                return false;
            }
            self.tries -= 1;
            // A path that passes through the end cannot reach it again.
            let early = !rest.is_empty() && end == Some(target);
            if self.distinct && (early || trail.contains(&target)) {
                continue;
            }
            let is_variable = !rest.is_empty() || end.is_none();
            if is_variable && self.avoid == Some(target) {
                continue;
            }
            trail.push(target);
            let more = self.go_on(trail, rest, end, visit);
            trail.pop();
            if !more {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruleguider_graph::{Graph, RelationId, Triple};

    #[test]
    fn a_grounding_passes_through_different_entities() {
        // 1 is a parent of 0, 2 and 3; 4 of 2 and 3.
        let facts = [(1, 0), (1, 2), (1, 3), (4, 2), (4, 3)];
        let facts: Vec<Triple> = facts.iter().map(|&(head, tail)| Triple::new(head, 0, tail)).collect();
        let graph = Graph::new(5, 1, &facts);
        let (parent, up) = (Link::forward(RelationId(0)), Link::inverse_of(RelationId(0)));
        let find = |path: &[Link], end: Option<u32>, distinct: bool, tries: usize| {
            let mut search = Grounding {
                targets: |entity, link| graph.targets(entity, link),
                distinct,
                avoid: None,
                tries,
            };
            let found = search.find(EntityId(0), path, end.map(EntityId))?;
            Some(found.iter().map(|entity| entity.0).collect::<Vec<u32>>())
        };
        let path = [up, parent, up];
        assert_eq!(find(&path, Some(4), true, 100), Some(vec![0, 1, 2, 4]));
        assert_eq!(find(&path, None, true, 100), Some(vec![0, 1, 2, 4]));
        // The only paths to 1 pass through it earlier.
        assert_eq!(find(&path, Some(1), true, 100), None);
        assert_eq!(find(&path, Some(1), false, 100), Some(vec![0, 1, 0, 1]));
        assert_eq!(find(&[up, parent], Some(0), true, 100), None);
        // The entities tried: 1, 0 (the start), 2, 4.
        assert_eq!(find(&path, Some(4), true, 3), None);
        assert_eq!(find(&path, Some(4), true, 4), Some(vec![0, 1, 2, 4]));
        let mut all = Vec::new();
        let mut search = Grounding {
            targets: |entity, link| graph.targets(entity, link),
            distinct: true,
            avoid: None,
            tries: 100,
        };
        search.each(EntityId(0), &path, None, &mut |trail| {
            all.push(trail.iter().map(|entity| entity.0).collect::<Vec<u32>>());
            true
        });
        assert_eq!(all, [[0, 1, 2, 4], [0, 1, 3, 4]]);
        let around = |avoid: u32, end: Option<u32>| {
            let targets = |entity, link| graph.targets(entity, link);
            let mut search = Grounding { targets, distinct: true, avoid: Some(EntityId(avoid)), tries: 100 };
            let found = search.find(EntityId(0), &path, end.map(EntityId))?;
            Some(found.iter().map(|entity| entity.0).collect::<Vec<u32>>())
        };
        assert_eq!(around(2, None), Some(vec![0, 1, 3, 4]));
        assert_eq!(around(4, None), None, "the end is a variable");
        assert_eq!(around(4, Some(4)), Some(vec![0, 1, 2, 4]), "the end is a constant");
    }
}
