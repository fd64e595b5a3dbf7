//! Which entities may be answers: those of a type, those that a file lists, or all but these; and by which paths.

use super::{AskError, Model};
use crate::graph::{EntityId, Link, Query, RelationId, TypeId};
use crate::reason::PathLimits;
use crate::run::Checksum;
use std::collections::BTreeSet;
use std::path::Path;

/// Some entities, as a user names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityChoice {
    /// Those of a type, with its kinds, or those that a file lists, one a line.
    Called(String),
    /// These, by id or label.
    Each(Vec<String>),
}

impl From<&str> for EntityChoice {
    fn from(called: &str) -> Self {
        EntityChoice::Called(called.to_owned())
    }
}

/// Which entities may be answers; by default all.
#[derive(Clone, Debug, Default)]
pub struct AnswersAmong {
    among: Option<BTreeSet<EntityId>>,
    not_among: BTreeSet<EntityId>,
    paths: PathLimits,
}

impl AnswersAmong {
    /// The same, of which only those are answers that have a reason whose path the limits admit.
    pub fn by_paths(self, paths: PathLimits) -> Self {
        Self { paths, ..self }
    }

    /// What is asked of the paths of their reasons.
    pub fn paths(&self) -> &PathLimits {
        &self.paths
    }

    /// Whether `entity` may be an answer.
    pub fn has(&self, entity: EntityId) -> bool {
        self.among.as_ref().is_none_or(|among| among.contains(&entity)) && !self.not_among.contains(&entity)
    }

    /// What they are as a checksum; `None` if every entity may be an answer, by any path.
    pub fn checksum(&self) -> Option<Checksum> {
        let ids = |of: &BTreeSet<EntityId>| of.iter().map(|entity| entity.0).collect::<Vec<u32>>();
        let ends =
            (!self.is_all()).then(|| Checksum::of(&(self.among.as_ref().map(ids), ids(&self.not_among))));
        match checksum_of(&self.paths) {
            Some(paths) => Some(Checksum::of(&(ends, paths))),
            None => ends,
        }
    }

    /// Whether every entity may be an answer.
    pub fn is_all(&self) -> bool {
        self.among.is_none() && self.not_among.is_empty()
    }
}

/// What is asked of paths as a checksum; `None` if it is nothing.
fn checksum_of(limits: &PathLimits) -> Option<Checksum> {
    let PathLimits { relations, without_relations, through, without, max_hops } = limits;
    let relations = [relations, without_relations].map(|of| of.iter().map(|one| one.0).collect::<Vec<u32>>());
    let ids = |of: &BTreeSet<EntityId>| of.iter().map(|entity| entity.0).collect::<Vec<u32>>();
    let through: Vec<Vec<u32>> = through.iter().map(ids).collect();
    (!limits.is_none()).then(|| Checksum::of(&(relations, through, ids(without), max_hops)))
}

/// What a name on a path stands for.
enum OnPath {
    Relation(RelationId),
    Entities(BTreeSet<EntityId>),
}

impl Model {
    /// What is asked of the path of a reason: that it uses only relations of `through`, and passes through an entity of each
    /// type, file or entity there; that it uses and passes nothing of `without`; and that it has at most `max_hops` facts.
    ///
    /// # Errors
    /// If there is no relation, type, file or entity of such a name.
    pub fn path_limits(
        &self,
        through: &[String],
        without: &[String],
        max_hops: Option<usize>,
    ) -> Result<PathLimits, AskError> {
        let mut limits = PathLimits { max_hops, ..PathLimits::default() };
        for given in through {
            match self.on_path(given)? {
                OnPath::Relation(relation) => drop(limits.relations.insert(relation)),
                OnPath::Entities(entities) => limits.through.push(entities),
            }
        }
        for given in without {
            match self.on_path(given)? {
                OnPath::Relation(relation) => drop(limits.without_relations.insert(relation)),
                OnPath::Entities(entities) => limits.without.extend(entities),
            }
        }
        Ok(limits)
    }

    /// What `given` names. An exact name comes before what may be meant.
    fn on_path(&self, given: &str) -> Result<OnPath, AskError> {
        let is_relation = self.names().relations.get(given).is_some();
        if !is_relation && let Some(entities) = self.entities_of_type(given) {
            return Ok(OnPath::Entities(entities));
        }
        if let Some(relation) = self.index().link(given).ok().and_then(Link::relation) {
            return Ok(OnPath::Relation(relation));
        }
        match self.index().entity(given) {
            Ok(entity) => Ok(OnPath::Entities(BTreeSet::from([entity]))),
            Err(_) if Path::new(given).is_file() => Ok(OnPath::Entities(self.entities_called(given)?)),
            Err(error) => {
                let expected = "expected a relation, a type, an entity or a file of entities, found";
                Err(AskError::Cannot(format!("{expected} {given}; {error}")))
            }
        }
    }

    /// The entities `among` and not `not_among`, each the name of a type or a file with one entity a line. A type has the
    /// entities of its kinds too.
    ///
    /// # Errors
    /// If there is neither such a type nor such a file, or the file names an entity that is not known.
    pub fn answers_among(
        &self,
        among: Option<&str>,
        not_among: Option<&str>,
    ) -> Result<AnswersAmong, AskError> {
        let [among, not_among] = [among, not_among].map(|given| given.map(EntityChoice::from));
        self.answers_chosen(among.as_ref(), not_among.as_ref())
    }

    /// The same where entities may also be given one by one.
    ///
    /// # Errors
    /// Those of [`answers_among`](Self::answers_among).
    pub fn answers_chosen(
        &self,
        among: Option<&EntityChoice>,
        not_among: Option<&EntityChoice>,
    ) -> Result<AnswersAmong, AskError> {
        let entities = |choice: &EntityChoice| match choice {
            EntityChoice::Called(name) => self.entities_called(name),
            EntityChoice::Each(names) => names.iter().map(|name| self.index().entity(name)).collect(),
        };
        Ok(AnswersAmong {
            among: among.map(entities).transpose()?,
            not_among: not_among.map(entities).transpose()?.unwrap_or_default(),
            ..AnswersAmong::default()
        })
    }

    /// The same with names of types alone: whoever asks from outside must not make the server read its files.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn answers_of_types(
        &self,
        among: Option<&str>,
        not_among: Option<&str>,
    ) -> Result<AnswersAmong, AskError> {
        let of_type = |given: &str| {
            self.entities_of_type(given).ok_or_else(|| AskError::Cannot(self.no_type("a type", given)))
        };
        Ok(AnswersAmong {
            among: among.map(of_type).transpose()?,
            not_among: not_among.map(of_type).transpose()?.unwrap_or_default(),
            ..AnswersAmong::default()
        })
    }

    fn entities_of_type(&self, given: &str) -> Option<BTreeSet<EntityId>> {
        let names = self.names();
        let expanded = || names.types.names.get(&names.prefixes.expand(given)?).map(TypeId);
        let of = names.types.find(given).or_else(expanded)?;
        Some(names.types.entities(of).into_iter().collect())
    }

    /// What to say where `given` is no type.
    fn no_type(&self, expected: &str, given: &str) -> String {
        let types = &self.names().types.names;
        let known: Vec<&str> = types.iter().take(12).collect();
        let known = match known.len() {
            0 => "the data have no types".to_owned(),
            1 => format!("the only type is {}", known[0]),
            _ => format!("{} types are known: {}", types.len(), known.join(", ")),
        };
        format!("expected {expected}, found {given}; {known}")
    }

    fn entities_called(&self, given: &str) -> Result<BTreeSet<EntityId>, AskError> {
        if let Some(entities) = self.entities_of_type(given) {
            return Ok(entities);
        }
        if !Path::new(given).is_file() {
            return Err(AskError::Cannot(self.no_type("a type or a file of entities", given)));
        }
        let read = |error: std::io::Error| AskError::Cannot(format!("{given}: cannot be read: {error}"));
        let text = std::fs::read_to_string(given).map_err(read)?;
        let named = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        named
            .map(|(line, number)| {
                let entity = self.index().entity(line.trim_end());
                entity.map_err(|error| AskError::Cannot(format!("{given}:{number}: {error}")))
            })
            .collect()
    }

    /// Where the data say that `entity` is no answer of `query`, if they say so and tell.
    pub(super) fn source_of_denial(&self, query: Query, entity: EntityId) -> Option<String> {
        let fact = query.fact(entity).filter(|_| self.is_denied(query, entity))?;
        self.dataset().known.notes.source(fact).map(str::to_owned)
    }

    /// Whether `entity` is known not to be an answer of `query`.
    pub(super) fn is_denied(&self, query: Query, entity: EntityId) -> bool {
        let negatives = &self.dataset().known.negatives;
        if negatives.is_empty() {
            return false;
        }
        query.fact(entity).is_some_and(|fact| negatives.binary_search(&fact).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use crate::ask::instant;
    use crate::graph::{Triple, TypesBuilder};
    use crate::progress::Silent;
    use crate::run::Source;
    use crate::tensor::Device;
    use std::sync::Arc;

    #[test]
    fn answers_are_of_the_type_asked_for_and_never_known_to_be_false() {
        let mut dataset = crate::generate::demonstration().everything();
        let folder = tempfile::tempdir().unwrap();
        let model = |dataset, name: &str| {
            let source = Source::Memory { name: name.to_owned() };
            instant(source, dataset, &folder.path().join(name), None, &Device::cpu(1).unwrap(), 1, &Silent)
                .unwrap()
        };
        let plain = model(dataset.clone(), "plain");
        let query = plain.query("Ilse_Hagenthal", "cousin_of").unwrap();
        let answers = plain.predict_query(query, 10).unwrap().answers;
        assert!(answers.len() >= 2);
        let id = |name: &str| crate::graph::EntityId(dataset.names.entities.get(name).unwrap());
        let [first, second] = [id(&answers[0].entity), id(&answers[1].entity)];
        // The first is denied, and the second is of a type of its own.
        let relation = query.link.relation().unwrap();
        dataset.known.negatives = [Triple { head: query.subject, relation, tail: first }].into();
        let mut types = TypesBuilder::default();
        types.add(second, "Second");
        Arc::make_mut(&mut dataset.names).types = types.finish();
        let told = model(dataset.clone(), "told");
        let names =
            |answers: Vec<crate::ask::Answer>| answers.into_iter().map(|a| a.entity).collect::<Vec<_>>();
        let all = names(told.predict_query(query, 10).unwrap().answers);
        assert!(!all.contains(&answers[0].entity) && all.contains(&answers[1].entity));
        let among = |among, not_among| {
            let among = told.answers_among(among, not_among).unwrap();
            names(told.predict_among(query, 10, &among).unwrap().answers)
        };
        assert_eq!(among(Some("Second"), None), [answers[1].entity.clone()]);
        assert!(!among(None, Some("Second")).contains(&answers[1].entity));
        let file = folder.path().join("wanted.txt");
        std::fs::write(&file, format!("{}\n\n", answers[1].entity)).unwrap();
        assert_eq!(among(file.to_str(), None), [answers[1].entity.clone()]);
        let each = |name: &str| super::EntityChoice::Each(vec![name.to_owned()]);
        let listed = told.answers_chosen(Some(&each(&answers[1].entity)), None).unwrap();
        assert_eq!(
            names(told.predict_among(query, 10, &listed).unwrap().answers),
            [answers[1].entity.clone()]
        );
        assert!(told.answers_chosen(None, Some(&each("Nobody at all"))).is_err());
        std::fs::write(&file, "\nNobody at all\n").unwrap();
        let message = told.answers_among(file.to_str(), None).unwrap_err().to_string();
        assert!(message.contains("wanted.txt:2: "), "{message}");
        let message = told.answers_among(Some("Third"), None).unwrap_err().to_string();
        assert!(message.ends_with("found Third; the only type is Second"), "{message}");
    }
}
