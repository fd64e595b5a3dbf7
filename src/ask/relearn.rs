//! Learning again: after the facts have changed ([`Learn::update`](super::Learn::update)), or, once the figures are
//! measured, from all facts ([`Learn::learn_all`](super::Learn::learn_all)).

use super::{AskError, Model, RunReport};
use crate::eval::Figures;
use crate::progress::Progress;
use crate::run::member::RULES;
use crate::run::{self, DataChanges, RuleChanges, RunSpec, StageReport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an update changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpdateReport {
    /// The run that the update started from.
    pub from: String,
    /// How the data differs.
    #[serde(flatten)]
    pub data: DataChanges,
    /// Validation and test facts that the earlier run had already learnt. They cannot measure anything and are left out
    /// of these splits.
    pub learnt_before: usize,
    /// What became of the rules.
    pub rules: RuleChanges,
    /// The figures of the earlier run on its own test split, if it finished.
    pub figures_before: Option<Figures>,
}

impl UpdateReport {
    /// This report with the rule changes from the report of the rules stage.
    pub(super) fn with_rules(self, stages: &BTreeMap<String, StageReport>) -> Self {
        let rules = stages.get(RULES).and_then(|stage| stage.figures.changes.clone());
        Self { rules: rules.unwrap_or_default(), ..self }
    }
}

/// A run on all facts, none held out. Answers come from it, figures do not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearntEverything {
    /// How many facts it learnt.
    pub facts: usize,
    /// How many of these were held out while the figures were measured.
    pub held_out_before: usize,
    /// Its stages, by name.
    pub stages: BTreeMap<String, StageReport>,
}

/// Learns the model of all facts after the first run, whose figures are in `report`.
pub(super) fn learn_again(
    spec: &RunSpec,
    first: &Model,
    report: RunReport,
    progress: &dyn Progress,
) -> Result<Model, AskError> {
    progress.begin("learning everything", "", None);
    progress.end(&"once more, with the facts that were held out");
    let dataset = first.dataset();
    let learnt = run::learn_everything(spec, dataset, &report.stages, progress)?;
    let all = dataset.everything();
    let facts = all.known.facts.len();
    let held_out_before = facts - dataset.known.facts.len();
    let learnt_everything = LearntEverything { facts, held_out_before, stages: learnt.stages };
    let second = Model::new(learnt.directory, all, learnt.artifacts, spec.seed)?.after(&spec.out);
    second.keep_results(RunReport { learnt_everything: Some(learnt_everything), ..report })?;
    Ok(second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Learn, OpenOptions};
    use crate::eval::{Protocol, Split};
    use crate::generate::family;
    use crate::graph::{Dataset, Names, Triple, write_file};
    use crate::progress::{Countdown, Silent};
    use crate::run::directory::{EMBEDDING, RULES};
    use crate::tensor::Device;
    use std::path::{Path, PathBuf};

    /// A family in one file, learnt by rules and a small embedding model.
    struct World {
        folder: tempfile::TempDir,
        names: Names,
        facts: Vec<Triple>,
    }

    impl World {
        fn new() -> Self {
            let dataset = family(60, 1).dataset;
            let facts = dataset.everything().known.facts.to_vec();
            Self { folder: tempfile::tempdir().unwrap(), names: (*dataset.names).clone(), facts }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, facts: &[Triple]) -> PathBuf {
            let path = self.path("facts.tsv");
            write_file(&path, &self.names, facts).unwrap();
            path
        }

        fn learn(&self, run: &str) -> Learn {
            let settings = [
                "system=blend",
                "blend.with_walker=false",
                "blend.with_propagator=false",
                "rules.samples=4000",
                "rules.longer=false",
                "embed.dimension=8",
                "embed.epochs=4",
                "embed.evaluate_every=1",
            ];
            let learn = Learn::new(self.path("facts.tsv")).out(self.path(run)).minutes(5.0);
            settings.into_iter().fold(learn.device(Device::cpu(1).unwrap()), Learn::set)
        }
    }

    /// The file of a run.
    fn bytes(run: &Path, file: &str) -> Vec<u8> {
        std::fs::read(run.join(file)).unwrap()
    }

    /// Learns with interruptions, a little further each time, until it finishes.
    fn piecemeal(learn: &Learn) -> Model {
        for (stops, asks) in (1..).map(|round| 7 * round * round).enumerate() {
            match learn.clone().prepare().unwrap().run(&Countdown::from(asks)) {
                Ok(model) => {
                    assert!(stops > 3, "it was hardly interrupted");
                    return model;
                }
                Err(error) => assert!(error.is_interrupted(), "{error}"),
            }
        }
        unreachable!("the last round is never interrupted")
    }

    #[test]
    fn all_facts_are_learnt_after_the_figures_and_these_stay() {
        let world = World::new();
        world.write(&world.facts);
        let first = world.learn("first").run().unwrap();
        let whole = world.learn("whole").learn_all(true);
        let second = piecemeal(&whole);
        assert!(second.has_learnt_everything() && !first.has_learnt_everything());
        let (report, before) = (second.results().unwrap(), first.results().unwrap());
        assert_eq!(report.report.figures, before.report.figures);
        let learnt = report.learnt_everything.as_ref().unwrap();
        let held_out = first.dataset().known.valid.len() + first.dataset().test.len();
        assert_eq!((learnt.facts, learnt.held_out_before), (world.facts.len(), held_out));
        // Held-out facts are in the graph now, so evaluating on them is refused.
        let fact = first.dataset().test[0];
        assert!(second.graph().contains(fact.head, crate::graph::Link::forward(fact.relation), fact.tail));
        let refused = second.evaluate(Split::Test, Protocol::default(), &Silent).unwrap_err();
        assert!(refused.to_string().contains("has learnt the facts of all splits"), "{refused}");
        // Opening the run gives the second model; measuring uses the first.
        let run = world.path("whole");
        assert!(Model::open(&run).unwrap().has_learnt_everything());
        let measured = OpenOptions { first: true, ..OpenOptions::DEFAULT }.open(&run).unwrap();
        assert_eq!(measured.dataset().test, first.dataset().test);
        // Interruptions change nothing; and the second model differs from the first.
        let at_once = world.learn("at_once").learn_all(true).run().unwrap();
        let everything = |run: &Path, file: &str| bytes(&run.join("everything"), file);
        for file in [EMBEDDING, RULES] {
            assert!(everything(&run, file) == everything(at_once.run_path(), file), "{file} differs");
            assert!(everything(&run, file) != bytes(&run, file), "{file}");
        }
        // Running the first again with other settings makes the second stale.
        let other = world.learn("whole").set("rules.max_length=2").run().unwrap();
        assert!(!other.has_learnt_everything());
        assert!(!Model::open(&run).unwrap().has_learnt_everything());
    }

    #[test]
    fn an_update_goes_on_from_what_was_learnt_and_says_what_has_changed() {
        let mut world = World::new();
        let (old, new) = world.facts.split_at(world.facts.len() * 9 / 10);
        let (old, mut now) = (old.to_vec(), [old, new].concat());
        world.write(&old);
        let before = world.learn("run").run().unwrap();
        // Some facts are removed, some are new, and there is a new entity.
        now.swap_remove(0);
        let child = world.names.entities.intern("newborn");
        now.push(Triple { head: crate::graph::EntityId(child), ..now[5] });
        world.write(&now);
        let stale = Model::open(world.path("run")).unwrap();
        assert!(stale.source_change().is_some_and(|change| change.contains("--update")));
        let kept = bytes(&world.path("run"), EMBEDDING);
        let update = |out: &str| world.learn(out).update(world.path("run"));
        let after = piecemeal(&update("after"));
        let report = after.results().unwrap().update.as_ref().unwrap();
        let Dataset { names, known, test, .. } = after.dataset();
        let DataChanges { facts_added, facts_removed, entities_added, entities_removed, .. } = report.data;
        assert_eq!((facts_added, facts_removed), (now.len() - (old.len() - 1), 1));
        let entities = before.dataset().names.entities.len() + entities_added - entities_removed;
        assert!(entities_added > 0 && entities == names.entities.len());
        assert_eq!(known.facts.len() + known.valid.len() + test.len(), now.len());
        let RuleChanges { kept: still, new, gone: lost, moved } = &report.rules;
        assert!(*still > 0 && *new > 0 && !moved.is_empty(), "{still} {new} {lost}");
        assert_eq!(report.figures_before.as_ref(), Some(&before.results().unwrap().report.figures));
        // No fact that was learnt before is held out now.
        let earlier = before.dataset();
        let named = |names: &Names, fact: Triple| -> [String; 3] {
            [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)]
                .map(str::to_owned)
        };
        let learnt: std::collections::HashSet<[String; 3]> =
            earlier.known.facts.iter().map(|&fact| named(&earlier.names, fact)).collect();
        assert!(test.iter().chain(&*known.valid).all(|&fact| !learnt.contains(&named(names, fact))));
        // The earlier run is unchanged, the new one answers, and it does not depend on interruptions.
        assert_eq!(bytes(&world.path("run"), EMBEDDING), kept);
        let at_once = update("at_once").run().unwrap();
        for file in [EMBEDDING, RULES] {
            assert!(bytes(&world.path("after"), file) == bytes(at_once.run_path(), file), "{file} differs");
        }
        assert!(Model::open(world.path("after")).is_ok());
        let nothing = world.learn("other").update(world.path("none")).run().err().unwrap();
        assert!(nothing.is_mistake(), "{nothing}");
    }
}
