//! A model whose graph has changed since it was learnt: facts are added, retracted and rejected, and nothing is trained
//! again.
//!
//! [`Edits`] are given by names. [`Model::with_edits`] answers on the graph of the model with these edits, as
//! [`OpenOptions::on`](super::OpenOptions) would on a file of the same facts: rules, propagator and universal propagator
//! depend on relations alone, so they use a new fact and a new entity at once. The embedding model of a blend keeps its
//! opinion on the entities that it has learnt and finds all others equally likely. Facts that no member can use wait for
//! the next learning; they are counted.
//!
//! A rejected fact is no fact of the graph, is never predicted, and is a negative example when a run is updated.

use super::elsewhere::with_first_relations;
use super::held_out::HeldOutIndex;
use super::{AskError, Model};
use crate::config::{Config, System};
use crate::graph::{Array, Dataset, EntityId, Graph, Known, Names, Note, NotesBuilder, RelationId, Triple};
use crate::run::member::{self, EMBEDDINGS};
use crate::run::{Learnable, RunDirectory};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// A fact by names: head, relation, tail.
pub type NamedFact = [String; 3];

/// A fact that is added, and what is said about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddedFact {
    /// The fact.
    pub fact: NamedFact,
    /// How certain it is, in (0, 1].
    pub confidence: Option<f32>,
    /// Where it comes from.
    pub source: Option<String>,
    /// When it holds or was stated.
    pub time: Option<String>,
}

/// How the facts of a graph differ from those that a model was learnt from. No fact is in two of the lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Edits {
    /// Facts that the graph has now; those that it had before change nothing.
    pub added: Vec<AddedFact>,
    /// Facts that it no longer has, and that are not known to be false either.
    pub removed: Vec<NamedFact>,
    /// Facts that are known to be false.
    pub rejected: Vec<NamedFact>,
}

/// A model with edits.
pub struct Edited {
    /// The model.
    pub model: Model,
    /// How many of the added facts no member can use yet: their relation, or an entity, was not learnt.
    pub waiting: usize,
}

/// Which new names facts may have.
#[derive(Clone, Copy)]
struct Takes {
    entities: bool,
    relations: bool,
}

impl Takes {
    /// What a model with these settings can use at once.
    fn of(config: &Config) -> Self {
        // In a blend, the embedding model only re-scores what others suggest.
        let bound = |member: &member::MemberRef| {
            let used = member.system().is_some_and(|system| config.includes(system));
            used && member.name() != EMBEDDINGS && member.knows_entities(config).is_some()
        };
        Self {
            entities: config.system != System::Embedding && !member::all().iter().any(bound),
            relations: member::of_any_relation(config).is_some(),
        }
    }
}

/// Edits in the ids of a data set.
struct Resolved {
    /// The names; new ones come after those that were known.
    names: Arc<Names>,
    added: Vec<Triple>,
    notes: NotesBuilder,
    /// Retracted or rejected.
    gone: HashSet<Triple>,
    rejected: Vec<Triple>,
    waiting: usize,
}

impl Edits {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.rejected.is_empty()
    }

    /// All facts that are edited.
    pub fn facts(&self) -> impl Iterator<Item = &NamedFact> {
        let added = self.added.iter().map(|added| &added.fact);
        added.chain(&self.removed).chain(&self.rejected)
    }

    /// These and `other` edits, which are about other facts.
    pub fn and(mut self, other: Self) -> Self {
        self.added.extend(other.added);
        self.removed.extend(other.removed);
        self.rejected.extend(other.rejected);
        self
    }

    /// `dataset` with these edits, to learn from: added facts are training facts, and rejected ones negative examples.
    pub fn applied_to(&self, dataset: &Dataset) -> Dataset {
        self.resolve(&dataset.names, Takes { entities: true, relations: true }).dataset(dataset)
    }

    fn resolve(&self, names: &Arc<Names>, takes: Takes) -> Resolved {
        let mut all = Resolved {
            names: Arc::clone(names),
            added: Vec::with_capacity(self.added.len()),
            notes: NotesBuilder::default(),
            gone: HashSet::new(),
            rejected: Vec::new(),
            waiting: 0,
        };
        for AddedFact { fact, confidence, source, time } in &self.added {
            let Some(triple) = all.added(fact, takes) else {
                all.waiting += 1;
                continue;
            };
            all.added.push(triple);
            let note = Note { confidence: *confidence, source: source.as_deref(), time: time.as_deref() };
            all.notes.add(triple, note);
        }
        // A fact of unknown names is no fact already.
        all.rejected = self.rejected.iter().filter_map(|fact| all.known(fact)).collect();
        all.gone = self.removed.iter().filter_map(|fact| all.known(fact)).collect();
        all.gone.extend(&all.rejected);
        all
    }
}

impl Resolved {
    /// The ids of a fact whose names may be new; `None` if they are and must not be.
    fn added(&mut self, [head, relation, tail]: &NamedFact, takes: Takes) -> Option<Triple> {
        let Names { entities, relations, .. } = &*self.names;
        let new_entity = [head, tail].into_iter().any(|name| entities.get(name).is_none());
        let new_relation = relations.get(relation).is_none();
        if (new_entity && !takes.entities) || (new_relation && !takes.relations) {
            return None;
        }
        if !new_entity && !new_relation {
            return self.known(&[head.clone(), relation.clone(), tail.clone()]);
        }
        let names = Arc::make_mut(&mut self.names);
        Some(Triple {
            head: EntityId(names.entities.intern(head)),
            relation: RelationId(names.relations.intern(relation)),
            tail: EntityId(names.entities.intern(tail)),
        })
    }

    /// The ids of a fact whose names are known.
    fn known(&self, [head, relation, tail]: &NamedFact) -> Option<Triple> {
        let Names { entities, relations, .. } = &*self.names;
        Some(Triple {
            head: EntityId(entities.get(head)?),
            relation: RelationId(relations.get(relation)?),
            tail: EntityId(entities.get(tail)?),
        })
    }

    /// `split` without what is gone, and with what is added.
    fn with_added(&self, split: &Array<Triple>) -> Array<Triple> {
        let mut new: HashSet<Triple> = self.added.iter().copied().collect();
        let mut all = Vec::with_capacity(split.len() + new.len());
        for &fact in split.iter() {
            new.remove(&fact);
            if !self.gone.contains(&fact) {
                all.push(fact);
            }
        }
        all.extend(self.added.iter().filter(|fact| new.remove(fact)));
        all.into()
    }

    /// `split` without what is gone and without what is a fact of the graph now.
    fn held_out(&self, split: &Array<Triple>) -> Array<Triple> {
        let added: HashSet<&Triple> = self.added.iter().collect();
        split.iter().copied().filter(|fact| !self.gone.contains(fact) && !added.contains(fact)).collect()
    }

    fn known_of(&self, before: &Known, notes: &crate::graph::Notes) -> Known {
        let facts = self.with_added(&before.facts);
        let queries = if before.has_own_graph() { self.with_added(&before.queries) } else { facts.clone() };
        let added: HashSet<&Triple> = self.added.iter().collect();
        let denied = before.negatives.iter().copied().filter(|fact| !self.gone.contains(fact));
        let mut negatives: Vec<Triple> = denied.chain(self.rejected.clone()).collect();
        negatives.retain(|fact| !added.contains(fact));
        negatives.sort_unstable();
        negatives.dedup();
        let gone = |fact: Triple| (!self.gone.contains(&fact)).then_some(fact);
        Known {
            facts,
            queries,
            valid: self.held_out(&before.valid),
            notes: before.notes.map(gone).and(notes),
            negatives: negatives.into(),
            valid_negatives: self.held_out(&before.valid_negatives),
        }
    }

    /// `dataset` with the edits.
    fn dataset(mut self, dataset: &Dataset) -> Dataset {
        let notes = std::mem::take(&mut self.notes).finish();
        Dataset {
            known: self.known_of(&dataset.known, &notes),
            test: self.held_out(&dataset.test),
            test_left_out: self.held_out(&dataset.test_left_out),
            test_notes: dataset.test_notes.clone(),
            test_negatives: self.held_out(&dataset.test_negatives),
            findings: dataset.findings,
            understood: dataset.understood.clone(),
            names: self.names,
            ..Dataset::default()
        }
    }
}

impl Model {
    /// The same model on its graph with `edits`. It shares everything that does not depend on the graph.
    ///
    /// # Errors
    /// If an artifact cannot be loaded, or the model answers on another graph already.
    pub fn with_edits(&self, edits: &Edits) -> Result<Edited, AskError> {
        if self.on().is_some() {
            let message = "facts can be edited on the graph that a run was learnt from, not on another one";
            return Err(AskError::Cannot(message.to_owned()));
        }
        // Its file names the entities that were learnt, so it is loaded before there are others.
        if self.artifacts.has(EMBEDDINGS) {
            self.artifacts.embedding()?;
        }
        let takes = Takes::of(self.config());
        let resolved = edits.resolve(self.names(), takes);
        let waiting = resolved.waiting;
        let before = &self.artifacts.learnable;
        // The facts that are learnt may be more than the training facts: the validation split, too.
        let own = !before.known.facts.is_same(&self.dataset.known.facts);
        let whole = own.then(|| {
            let all =
                Dataset { names: self.names().clone(), known: before.known.clone(), ..Dataset::default() };
            edits.resolve(self.names(), takes).dataset(&all).known
        });
        let dataset = resolved.dataset(&self.dataset);
        let known = whole.unwrap_or_else(|| dataset.known.clone());
        let names = Arc::clone(&dataset.names);
        let graph = Arc::new(Graph::new(names.entities.len(), names.relations.len(), &known.facts));
        // A blend answers queries of new relations by the member that needs to know none.
        let learnt = self.names().relations.len();
        let has_others = member::knows_relations(self.config()) && names.relations.len() > learnt;
        let learnt = has_others.then(|| with_first_relations(&names, learnt));
        let learnable = Learnable { graph, known, names, learnt, ..before.clone() };
        let artifacts = self.artifacts.on(learnable);
        let reasoner = artifacts.reasoner()?;
        let same_names = Arc::ptr_eq(&dataset.names, self.names());
        let model = Model {
            directory: RunDirectory::look_at(self.directory.path())?,
            first: self.first.clone(),
            dataset,
            artifacts,
            reasoner,
            rules: Arc::clone(&self.rules),
            calibrator: self.calibrator.clone(),
            why_rough: self.why_rough.clone(),
            not_learnt: self.not_learnt.clone(),
            seed: self.seed,
            on: None,
            source_change: self.source_change.clone(),
            results: self.results.clone(),
            held_out: HeldOutIndex::default(),
            counts: OnceLock::new(),
            naming: if same_names { self.naming.clone() } else { OnceLock::new() },
            index: if same_names { self.index.clone() } else { OnceLock::new() },
            rules_by_head: OnceLock::new(),
            fitted: super::given::FittedVerdicts::default(),
        };
        Ok(Edited { model, waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Answer, Learn, OpenOptions, Reason};
    use crate::generate::family;
    use crate::graph::{Link, ReadOptions, SplitShares, write_file};
    use crate::progress::Silent;
    use crate::run::Source;
    use crate::tensor::Device;
    use std::collections::{BTreeMap, HashMap};

    fn cpu() -> Device {
        Device::cpu(1).unwrap()
    }

    /// A family learnt by rules, and by an embedding model too.
    fn learnt(folder: &std::path::Path, system: &[&str]) -> Model {
        let dataset = family(60, 1).dataset;
        let learn = Learn::from_dataset(Source::Memory { name: "family".to_owned() }, dataset);
        let learn = learn.out(folder.join("run")).device(cpu()).set("rules.samples=4000");
        system.iter().fold(learn, |learn, set| learn.set(*set)).run().unwrap()
    }

    fn named(model: &Model, fact: Triple) -> NamedFact {
        let names = model.names();
        [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)].map(str::to_owned)
    }

    /// An answer's score and probability to the last digit, and the rule and relations of its path.
    type Shown = (u64, Option<u64>, Option<String>, Vec<String>);

    /// All answers by name. Each hop of their paths is one of `facts`.
    fn answers(
        model: &Model,
        subject: &str,
        relation: &str,
        facts: &HashSet<NamedFact>,
    ) -> BTreeMap<String, Shown> {
        let found = model.predict(subject, relation, 1000).unwrap();
        let one = |answer: Answer| {
            let Reason { rule, path, from_id, .. } = &answer.reason;
            let mut at = from_id.as_str();
            for step in path {
                let [head, tail] = if step.inverse { [&*step.entity, at] } else { [at, &*step.entity] };
                let hop = [head, &step.relation, tail].map(str::to_owned);
                assert!(facts.contains(&hop), "{hop:?} of the path to {} is no fact", answer.entity);
                at = &step.entity;
            }
            // Which of several paths of a rule is shown depends on the numbers of entities.
            let hops = path.iter().map(|step| format!("{}{}", step.relation, step.inverse)).collect();
            let rule = rule.as_ref().map(|rule| rule.text.clone());
            let numbers = (answer.score.to_bits(), answer.probability.0.map(f64::to_bits));
            (answer.entity.clone(), (numbers.0, numbers.1, rule, hops))
        };
        found.answers.into_iter().map(one).collect()
    }

    /// The facts of the graph of `model`, by name.
    fn facts_of(model: &Model) -> HashSet<NamedFact> {
        model.artifacts.learnable.known.facts.iter().map(|fact| named(model, *fact)).collect()
    }

    /// The model at `path` on a file of `facts`.
    fn on_file(path: &std::path::Path, file: &std::path::Path) -> Model {
        let options = ReadOptions { shares: SplitShares::WHOLE, ..ReadOptions::default() };
        let on = Some(Source::of(file, &options).unwrap());
        OpenOptions { device: Some(cpu()), on, ..OpenOptions::DEFAULT }.open(path).unwrap()
    }

    #[test]
    fn edits_answer_as_a_file_of_the_same_facts_does() {
        let folder = tempfile::tempdir().unwrap();
        let base = learnt(folder.path(), &["system=rules"]);
        let mut state = 7_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut facts: Vec<Triple> = base.artifacts.learnable.known.facts.to_vec();
        let given: HashSet<Triple> = facts.iter().copied().collect();
        let mut names = (**base.names()).clone();
        let mut degrees: HashMap<EntityId, usize> = HashMap::new();
        for fact in &facts {
            *degrees.entry(fact.head).or_default() += 1;
            *degrees.entry(fact.tail).or_default() += 1;
        }
        for round in 0..5 {
            // 200 edits: facts between any two entities, some of them new, and retractions that leave no entity without
            // facts, since a file would not have it.
            for edit in 0..200 {
                if edit % 2 == 0 {
                    let new = edit % 10 == 0;
                    let head = if new { names.entities.intern(&format!("new {round} {edit}")) } else { 0 };
                    let head = if new { head } else { draw(base.names().entities.len()) as u32 };
                    let tail = draw(names.entities.len()) as u32;
                    let fact = Triple::new(head, draw(names.relations.len()) as u32, tail);
                    if !facts.contains(&fact) && head != tail {
                        *degrees.entry(fact.head).or_default() += 1;
                        *degrees.entry(fact.tail).or_default() += 1;
                        facts.push(fact);
                    }
                } else {
                    let at = draw(facts.len());
                    let fact = facts[at];
                    if degrees[&fact.head] > 1 && degrees[&fact.tail] > 1 && fact.head != fact.tail {
                        facts.swap_remove(at);
                        *degrees.get_mut(&fact.head).unwrap() -= 1;
                        *degrees.get_mut(&fact.tail).unwrap() -= 1;
                    }
                }
            }
            let now: HashSet<Triple> = facts.iter().copied().collect();
            let by_names = |fact: &Triple| {
                [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)]
                    .map(str::to_owned)
            };
            let added = facts.iter().filter(|fact| !given.contains(fact)).map(by_names);
            let edits = Edits {
                added: added.map(|fact| AddedFact { fact, ..AddedFact::default() }).collect(),
                removed: given.iter().filter(|fact| !now.contains(fact)).map(by_names).collect(),
                rejected: Vec::new(),
            };
            let Edited { model, waiting } = base.with_edits(&edits).unwrap();
            assert_eq!((waiting, model.graph().facts()), (0, facts.len()));
            let path = folder.path().join(format!("facts{round}.tsv"));
            write_file(&path, &names, &facts).unwrap();
            let file = on_file(base.run_path(), &path);
            let by_name: HashSet<NamedFact> = facts.iter().map(by_names).collect();
            for _ in 0..20 {
                let fact = facts[draw(facts.len())];
                for relation in [String::new(), "~".to_owned()] {
                    let subject = if relation.is_empty() { fact.head } else { fact.tail };
                    let (subject, relation) =
                        (names.entity(subject), relation + names.relation(fact.relation));
                    let [ours, theirs] =
                        [&model, &file].map(|one| answers(one, subject, &relation, &by_name));
                    assert_eq!(ours, theirs, "{subject} {relation}");
                }
            }
        }
    }

    #[test]
    fn a_new_relation_and_a_rejection_answer_as_a_file_does_on_a_run_that_was_not_trained() {
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Memory { name: "family".to_owned() };
        let data = family(60, 1).dataset;
        let path = folder.path().join("run");
        let base = crate::ask::instant(source, data, &path, None, &cpu(), 1, &Silent).unwrap();
        let people: Vec<&str> = base.names().entities.iter().take(12).collect();
        // Everybody teaches somebody, and those who were taught teach somebody who is new.
        let new: Vec<NamedFact> = (0..people.len())
            .flat_map(|at| {
                let other = people[(at * 5 + 3) % people.len()].to_owned();
                let pupil = format!("pupil {}", at / 2);
                [
                    [people[at].to_owned(), "teaches".to_owned(), other.clone()],
                    [other, "teaches".to_owned(), pupil],
                ]
            })
            .collect();
        let known = facts_of(&base);
        let rejected = known.iter().min().unwrap().clone();
        let add = |fact: &NamedFact| AddedFact { fact: fact.clone(), ..AddedFact::default() };
        let edits = Edits {
            added: new.iter().map(add).collect(),
            rejected: vec![rejected.clone()],
            ..Edits::default()
        };
        let Edited { model, waiting } = base.with_edits(&edits).unwrap();
        let facts: HashSet<NamedFact> =
            known.into_iter().filter(|fact| *fact != rejected).chain(new).collect();
        assert_eq!((waiting, facts_of(&model)), (0, facts.clone()));
        let mut lines: Vec<String> = facts.iter().map(|fact| fact.join("\t") + "\n").collect();
        lines.sort();
        let path = folder.path().join("facts.tsv");
        std::fs::write(&path, lines.concat()).unwrap();
        let file = on_file(base.run_path(), &path);
        let mut compared = 0;
        for (subject, relation) in [
            (people[0], "teaches"),
            ("pupil 1", "~teaches"),
            (people[1], "~teaches"),
            (&*rejected[0], &*rejected[1]),
            (people[2], &*rejected[1]),
        ] {
            let [ours, mut theirs] = [&model, &file].map(|one| answers(one, subject, relation, &facts));
            if (subject, relation) == (&*rejected[0], &*rejected[1]) {
                // A file of facts does not say what is false.
                theirs.remove(&rejected[2]);
            }
            let score = |shown: &Shown| f64::from_bits(shown.0);
            assert!(ours.keys().eq(theirs.keys()), "{subject} {relation}: {ours:?}, {theirs:?}");
            for (name, shown) in &ours {
                // Messages are added up in the order of the numbers of entities and relations.
                let (ours, theirs) = (score(shown), score(&theirs[name]));
                assert!((ours - theirs).abs() < 1e-3, "{subject} {relation} {name}: {ours}, {theirs}");
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }

    #[test]
    fn what_is_rejected_is_neither_a_fact_nor_an_answer_and_comes_back_when_that_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let embedded = ["system=blend", "blend.with_walker=false", "blend.with_propagator=false"];
        let small = ["embed.dimension=8", "embed.epochs=2", "embed.evaluate_every=1"];
        let base = learnt(folder.path(), &[&embedded[..], &small[..]].concat());
        let fact = base.dataset().known.facts[0];
        let [head, relation, tail] = named(&base, fact);
        let answer = base.dataset().known.facts.iter().find_map(|fact| {
            let [head, relation, _] = named(&base, *fact);
            let first = base.predict(&head, &relation, 1).unwrap().into_iter().next()?;
            Some([head, relation, first.entity])
        });
        let answer = answer.expect("something is predicted");
        let rejected = vec![[head.clone(), relation.clone(), tail], answer.clone()];
        let edits = Edits { rejected, ..Edits::default() };
        let model = base.with_edits(&edits).unwrap().model;
        assert!(!model.graph().contains(fact.head, Link::forward(fact.relation), fact.tail));
        let found = model.predict(&head, &relation, 1000).unwrap();
        assert!(!found.known_ids.contains(&edits.rejected[0][2]));
        assert!(found.answers.iter().all(|one| one.entity != edits.rejected[0][2]));
        let shown = |model: &Model| answers(model, &answer[0], &answer[1], &facts_of(model));
        assert!(!shown(&model).contains_key(&answer[2]) && shown(&base).contains_key(&answer[2]));
        // A new entity has answers in a blend with an embedding model, which does not know it.
        let newcomer = ["newcomer".to_owned(), relation.clone(), head.clone()];
        let added = AddedFact {
            fact: newcomer,
            confidence: Some(0.5),
            source: Some("Ada".to_owned()),
            ..AddedFact::default()
        };
        let unknown = ["newcomer".to_owned(), "unheard of".to_owned(), head.clone()];
        let edits = Edits {
            added: vec![added, AddedFact { fact: unknown, ..AddedFact::default() }],
            ..Edits::default()
        };
        let Edited { model, waiting } = base.with_edits(&edits).unwrap();
        assert_eq!(waiting, 1, "no member knows anything of a new relation");
        let found = model.predict("newcomer", &relation, 10).unwrap();
        assert_eq!(found.known_ids, std::slice::from_ref(&head));
        for name in model.names().relations.iter() {
            for relation in [name.to_owned(), format!("~{name}")] {
                let found = model.predict("newcomer", &relation, 10).unwrap();
                assert!(found.answers.iter().all(|one| one.score.is_finite()));
                for answer in found.answers.iter().take(1).filter(|_| !relation.starts_with('~')) {
                    model.explain("newcomer", &relation, &answer.entity).unwrap();
                }
            }
        }
        // What is learnt again has all of it.
        let learnt = edits.applied_to(base.dataset());
        assert_eq!(learnt.known.facts.len(), base.dataset().known.facts.len() + 2);
        assert_eq!(learnt.known.notes.source(*learnt.known.facts.iter().rev().nth(1).unwrap()), Some("Ada"));
    }
}
