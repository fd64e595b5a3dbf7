//! Searches of tiny families, from space to table.

use super::*;
use crate::config::{Config, Layer, System};
use crate::generate;
use crate::graph::ReadOptions;
use crate::progress::{Countdown, Silent};
use crate::run::directory::EMBEDDING;
use crate::tensor::DeviceChoice;
use std::path::Path;
use toml::Value;

/// A small embedding model, which trains in a quarter of a second.
fn small() -> Config {
    let set = [
        "system=embedding",
        "embed.dimension=8",
        "embed.epochs=8",
        "embed.evaluate_every=1",
        "embed.patience=1000000",
    ];
    Config::default().with(&Layer::from_pairs(set).unwrap()).unwrap()
}

const SPACE: &str = "[embed]
learning_rate = { from = 0.001, to = 0.1, scale = 'log' }
batch = [16, 64]
dropout_entity = { from = 0.0, to = 0.5 }";

fn data() -> Tuning {
    Tuning::of("family", &generate::family(60, 1).dataset).unwrap()
}

fn sweep(out: &Path, search: Search, trials: usize) -> Sweep {
    let base = small();
    Sweep {
        data: data(),
        system: "complex".to_owned(),
        space: Space::parse(SPACE, "mine.toml", &base).unwrap(),
        base,
        search,
        trials,
        minutes: None,
        seed: 1,
        workers: Workers { at_once: 2, threads: 2, device: DeviceChoice::Cpu },
        out: out.to_owned(),
    }
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Space::parse(text, "a.toml", &Config::default()).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.is_mistake());
}

#[test]
fn the_space_called_paper_has_the_papers_bounds() {
    let space = Space::named("paper", &Config::default()).unwrap();
    let described: Vec<String> =
        space.described().into_iter().map(|(key, domain)| format!("{key}: {domain}")).collect();
    let expected = [
        "walk.bandwidth: 200, 256, 400, 512",
        "walk.batch: 64, 128, 256, 512",
        "walk.embedding_dropout: 0 to 0.3, linear",
        "walk.entity_dropout: 0 to 0.95, linear",
        "walk.entropy: 0 to 0.1, linear",
        "walk.hidden_dropout: 0 to 0.3, linear",
        "walk.hops: 2, 3",
        "walk.learning_rate: 0.001 to 0.003, linear",
        "walk.relation_dropout: 0 to 0.95, linear",
    ];
    assert_eq!(described, expected);
    for name in Space::names() {
        Space::named(name, &Config::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let error = Space::named("papper", &Config::default()).unwrap_err().to_string();
    assert_eq!(error, "papper: no such file, and no space of that name; did you mean `paper`?");
}

#[test]
fn a_wrong_space_is_refused_with_its_place() {
    refused("\n[walk]\nhop = [2]", "a.toml:3: unknown setting `walk.hop`; did you mean `walk.hops`?");
    refused(
        "[walk]\nbetta = { from = 0, to = 1 }",
        "a.toml:2: unknown setting `walk.betta`; did you mean `walk.batch`?",
    );
    refused("[walk]\nhops = [2, 9]", "a.toml:2: `walk.hops`: expected a whole number from 1 to 5, found 9");
    refused(
        "[walk]\nhops = 2",
        "a.toml:2: `walk.hops`: expected a list of values or { from = …, to = … }, found 2",
    );
    refused("[walk]\nhops = []", "a.toml:2: `walk.hops`: expected at least one value, found none");
    refused("[walk]\nhops = [2, 2]", "a.toml:2: `walk.hops`: 2 is listed twice");
    refused("[walk]\nlambda = { from = 0.1 }", "a.toml:2: `walk.lambda`: expected both `from` and `to`");
    refused(
        "[walk]\nlambda = { from = 0.9, to = 0.1 }",
        "a.toml:2: `walk.lambda`: expected `from` below `to`, found 0.9 and 0.1",
    );
    refused(
        "[walk]\nlambda = { from = 0, to = 1, scale = 'log' }",
        "a.toml:2: `walk.lambda`: a logarithmic scale begins above 0, found 0",
    );
    refused(
        "[walk]\nlambda = { from = 0, to = 1, scale = 'square' }",
        "a.toml:2: `walk.lambda`: expected `linear` or `log` as `scale`",
    );
    // A setting with the name of a bounds key is still a setting.
    let steps =
        Space::parse("[walk]\nsteps = { from = 10, to = 20, steps = 2 }", "a", &Config::default()).unwrap();
    assert_eq!(
        steps.described(),
        [("walk.steps".to_owned(), "10 to 20, whole linear, 2 steps".to_owned())].into()
    );
    assert!(Space::parse("[walk]\nsteps = [10, 20]", "a", &Config::default()).is_ok());
    refused(
        "# nothing",
        "a.toml: expected settings with their values or bounds, such as walk.hops = [2, 3]; found none",
    );
}

#[test]
fn points_lie_in_the_space_and_depend_on_seed_and_number_alone() {
    let base = small();
    let text = format!("{SPACE}\ndimension = {{ from = 4, to = 6 }}");
    let space = Space::parse(&text, "a", &base).unwrap();
    let points = |trials, seed| Points::of(&space, Search::Random, trials, seed, &base).points;
    let drawn = points(200, 1);
    assert_eq!(drawn.len(), 200);
    assert_eq!(points(20, 1), drawn[..20]);
    assert_ne!(points(20, 2), drawn[..20]);
    let mut seen = std::collections::BTreeSet::new();
    let mut below = 0;
    for point in &drawn {
        let rate = point["embed.learning_rate"].as_float().unwrap();
        assert!((0.001..=0.1).contains(&rate), "{rate}");
        below += usize::from(rate < 0.01);
        seen.insert(point["embed.dimension"].as_integer().unwrap());
    }
    assert_eq!(seen, [4, 5, 6].into());
    // On a logarithmic scale half of them are in the lower decade; on a linear one it would be a tenth.
    assert!((80..120).contains(&below), "{below}");
    // A space with four points has no more.
    let few = Space::parse("[walk]\nhops = [2, 3]\nbatch = [1, 2]", "a", &base).unwrap();
    assert_eq!(Points::of(&few, Search::Halving, 100, 1, &base).points.len(), 4);
}

#[test]
fn a_grid_has_every_combination_or_some_of_them() {
    let base = small();
    let text = "[walk]\nhops = [2, 3]\nentropy = { from = 0.0, to = 0.1 }\nlearning_rate = { from = 0.001, to = 0.1, scale = 'log', steps = 2 }";
    let space = Space::parse(text, "a", &base).unwrap();
    let all = Points::of(&space, Search::Grid, 100, 1, &base);
    assert_eq!((all.points.len(), all.grid, all.unfit), (12, Some(12), 0));
    let entropies: Vec<&Value> = all.points.iter().map(|point| &point["walk.entropy"]).collect();
    assert!([0.0, 0.05, 0.1].iter().all(|value| entropies.contains(&&Value::Float(*value))));
    let some = Points::of(&space, Search::Grid, 5, 1, &base).points;
    assert!(some.len() == 5 && some.iter().all(|point| all.points.contains(point)));
    // Incompatible points are left out and counted: 3 does not divide 8.
    let text = "[embed]\nmodel = ['conve']\nimage_rows = [2, 3]\nkernel = [2]\ndimension = [8, 12]";
    let twelve = base.with(
        &Layer::from_pairs([
            "embed.model=conve",
            "embed.dimension=12",
            "embed.image_rows=2",
            "embed.kernel=2",
        ])
        .unwrap(),
    );
    let twelve = twelve.unwrap();
    let space = Space::parse(text, "a", &twelve).unwrap();
    let fitting = Points::of(&space, Search::Grid, 100, 1, &twelve);
    assert_eq!((fitting.points.len(), fitting.unfit), (3, 1));
}

#[test]
fn rungs_double_the_epochs_and_halve_the_trials() {
    let of = |search, trials, validations| -> Vec<(usize, f64)> {
        Rung::of(search, trials, validations).into_iter().map(|rung| (rung.trials, rung.part)).collect()
    };
    assert_eq!(of(Search::Halving, 9, 100), [(9, 0.125), (5, 0.25), (3, 0.5), (2, 1.0)]);
    assert_eq!(of(Search::Halving, 16, 4), [(16, 0.25), (8, 0.5), (4, 1.0)]);
    assert_eq!(of(Search::Random, 16, 4), [(16, 1.0)]);
    let first = Rung { trials: 1, part: 0.25 };
    assert_eq!(
        [first.epochs(10), first.epochs(1), Rung { part: 1.0, ..first }.epochs(10)],
        [Some(3), Some(1), None]
    );
}

#[test]
fn what_matters_is_what_the_figure_follows() {
    let base = Config::default();
    let space = Space::parse("[walk]\nhops = [2, 3]\nlambda = { from = 0.0, to = 1.0 }", "a", &base).unwrap();
    let point = |hops: i64, lambda: f64| -> Point {
        [("walk.hops".to_owned(), Value::Integer(hops)), ("walk.lambda".to_owned(), Value::Float(lambda))]
            .into()
    };
    // Hops decide; a third of the variance within each group goes with nothing.
    let points = [point(2, 0.1), point(2, 0.9), point(3, 0.2), point(3, 0.8), point(2, 0.5), point(3, 0.4)];
    let figures = [0.1, 0.2, 0.7, 0.8, 0.15, 0.75];
    let trials: Vec<(&Point, f64)> = points.iter().zip(figures).collect();
    let found = matters::mattered(&space, &trials);
    assert_eq!(found[0].setting, "walk.hops");
    // Between: 6 · 0.3²; in all: that and 4 · 0.05².
    assert!((found[0].explained - 0.54 / 0.55).abs() < 1e-12, "{found:?}");
    assert!((found[0].by_chance - 0.2).abs() < 1e-12);
    let groups: Vec<(&str, usize)> =
        found[0].groups.iter().map(|group| (group.values.as_str(), group.trials)).collect();
    assert_eq!(groups, [("2", 3), ("3", 3)]);
    assert_eq!(found[1].groups.len(), 3);
    assert!(found[1].explained < 0.2, "{found:?}");
    assert!(matters::mattered(&space, &trials[..3]).is_empty());
}

#[test]
fn the_test_split_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("family");
    generate::write(60, 1, &data, false, &Silent).unwrap();
    let test = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    let test = test.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("test."));
    let test = test.unwrap();
    let options = ReadOptions::default();
    let whole = crate::graph::read(&data, &options).unwrap();
    let seen = || {
        let tuning = Tuning::read(&data, &options).unwrap();
        let dataset = tuning.dataset();
        assert!(dataset.test.is_empty() && dataset.test_left_out.is_empty());
        let sum = crate::run::Checksum::of_known(&dataset.names, &dataset.known);
        (sum, dataset.names.entities.len(), dataset.names.labels.len())
    };
    let before = seen();
    let of_dataset = Tuning::of("family", &whole).unwrap();
    let names = &of_dataset.dataset().names;
    assert_eq!(before.0, crate::run::Checksum::of_known(names, &of_dataset.dataset().known));
    assert_eq!(before.1, names.entities.len());
    for content in ["\u{0}\u{1} no triples at all", "Nobody\tknows\tthem\n"] {
        std::fs::write(&test, content).unwrap();
        assert_eq!(seen(), before);
    }
    std::fs::remove_file(&test).unwrap();
    assert_eq!(seen(), before);
}

#[test]
fn a_search_gives_the_same_table_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let table = |name: &str| std::fs::read_to_string(folder.path().join(name).join("trials.tsv")).unwrap();
    let whole = sweep(&folder.path().join("whole"), Search::Halving, 4).run(&Silent).unwrap();
    let states: Vec<TrialState> = whole.trials.iter().map(|row| row.state).collect();
    assert_eq!(states, [TrialState::Finished, TrialState::Stopped, TrialState::Stopped, TrialState::Stopped]);
    assert_eq!(whole.rungs, [0.25, 0.5, 1.0]);
    let epochs: Vec<Option<u64>> = whole.trials.iter().map(|row| row.epochs).collect();
    assert_eq!(epochs, [8, 4, 2, 2].map(Some));
    // Stopped after a while, again and again.
    let one = Sweep {
        workers: Workers { at_once: 1, threads: 1, device: DeviceChoice::Cpu },
        ..sweep(&folder.path().join("stopped"), Search::Halving, 4)
    };
    let mut interruptions = 0;
    while !one.run(&Countdown::from(100)).unwrap().complete {
        interruptions += 1;
        assert!(interruptions < 100);
    }
    assert!(interruptions > 2, "{interruptions}");
    assert_eq!(table("stopped"), table("whole"));
    // A trial that was paused and resumed equals, bit for bit, one that was trained without a break.
    let plain = sweep(&folder.path().join("plain"), Search::Random, 4).run(&Silent).unwrap();
    let best = whole.best.unwrap().trial;
    let learnt = |name: &str| {
        let trial = folder.path().join(name).join(format!("trials/{best:04}"));
        std::fs::read(trial.join(EMBEDDING)).unwrap()
    };
    assert_eq!(learnt("whole"), learnt("plain"));
    assert!(plain.trials.iter().all(|row| row.state == TrialState::Finished));
    // More trials of the same search reuse the finished ones.
    let more = sweep(&folder.path().join("plain"), Search::Random, 5).run(&Silent).unwrap();
    assert_eq!(more.trials.len(), 5);
    for row in &plain.trials {
        assert_eq!(more.trials.iter().find(|other| other.trial == row.trial), Some(row));
    }
    for (other, what) in [
        (
            Sweep { seed: 2, ..sweep(&folder.path().join("plain"), Search::Random, 5) },
            "another seed (1; now 2)",
        ),
        (sweep(&folder.path().join("plain"), Search::Random, 4), "another number of trials (5; now 4)"),
        (sweep(&folder.path().join("plain"), Search::Grid, 5), "another search (random; now grid)"),
    ] {
        let message = other.run(&Silent).unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn the_best_is_a_configuration_as_it_was_before_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let mut searching = sweep(&folder.path().join("out"), Search::Random, 3);
    searching.base.data.learn_valid = crate::config::LearnValid::Always;
    let report = searching.run(&Silent).unwrap();
    let best = report.best.as_ref().unwrap();
    let text = std::fs::read_to_string(&best.config).unwrap();
    assert!(text.starts_with("# complex on family: the best of 3 trials by random search"), "{text}");
    let config = Config::from_toml(&text, "best.toml").unwrap();
    // The search held the validation split out; `learn_valid` of the result is as in the base configuration.
    assert_eq!(config.data.learn_valid, crate::config::LearnValid::Always);
    let row = &report.trials[0];
    assert_eq!(config, searching.base.with(&search::layer(&row.point)).unwrap());
    assert_eq!((row.trial, row.mrr), (best.trial, Some(best.mrr)));
    assert!(row.valid.is_some_and(|valid| valid.mrr == best.mrr));
}

#[test]
fn what_trials_share_is_done_once_and_a_trial_that_fails_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let set = [
        "system=blend",
        "blend.with_walker=false",
        "blend.with_propagator=true",
        "rules.samples=2000",
        "propagate.epochs=1",
        "propagate.layers=2",
        "propagate.width=8",
    ];
    let base = small().with(&Layer::from_pairs(set).unwrap()).unwrap();
    assert_eq!(base.system, System::Blend);
    let text = "[propagate]\nlearning_rate = [0.003, 1e300]\nhidden = [8]";
    let searching = Sweep {
        space: Space::parse(text, "a", &base).unwrap(),
        base,
        ..sweep(&folder.path().join("out"), Search::Grid, 10)
    };
    let report = searching.run(&Silent).unwrap();
    let states: Vec<TrialState> = report.trials.iter().map(|row| row.state).collect();
    assert_eq!(states, [TrialState::Finished, TrialState::Failed], "{report}");
    // Debug builds detect the first NaN, other builds the loss of an epoch.
    let error = report.trials[1].error.as_deref().unwrap();
    assert!(error.contains("not a number") || error.contains("epoch"), "{report}");
    // The second trial reuses the first trial's embedding model and rules.
    let records = |number: usize| {
        let text = std::fs::read_to_string(folder.path().join(format!("out/trials/{number:04}/stages.json")));
        let stages: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        [stages["embeddings"].clone(), stages["rules"].clone()]
    };
    assert_eq!(records(1), records(2));
}

#[test]
fn halving_needs_something_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    let message = |base: Config, trials: usize| {
        let searching = Sweep { base, ..sweep(&folder.path().join("out"), Search::Halving, trials) };
        searching.run(&Silent).unwrap_err().to_string()
    };
    assert!(
        message(Config { system: System::Rules, ..small() }, 4).ends_with("rules are not trained in epochs")
    );
    assert!(message(small(), 1).ends_with("a single trial has no worse half"));
    let mut rare = small();
    rare.embed.evaluate_every = 8;
    assert!(message(rare, 4).contains("the embedding model is validated 1 times"));
    assert!(!folder.path().join("out").exists());
}

#[test]
fn halving_may_be_trained_trial_by_trial() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, single] = ["whole", "single"].map(|out| sweep(&folder.path().join(out), Search::Halving, 4));
    let report = whole.run(&Silent).unwrap();
    let last = single.train(4, &Silent).unwrap();
    assert!(last.rungs.len() == 1 && last.finished.is_none(), "{last:?}");
    assert_eq!(single.train(4, &Silent).unwrap(), last, "it waits for the others");
    // One pass over all trials for each of the three rungs; stopped trials stay as they are.
    let pass = || {
        let trained = (1..=4).rev().map(|number| single.train(number, &Silent).unwrap().rungs.len());
        let mut rungs: Vec<usize> = trained.collect();
        rungs.sort_unstable();
        rungs
    };
    assert_eq!([pass(), pass(), pass(), pass()], [[1, 1, 1, 1], [1, 1, 2, 2], [1, 1, 2, 3], [1, 1, 2, 3]]);
    assert_eq!(single.run(&Silent).unwrap().to_string().replace("single", "whole"), report.to_string());
    let table = |out: &str| std::fs::read(folder.path().join(out).join("trials.tsv")).unwrap();
    assert_eq!(table("single"), table("whole"));
}

#[test]
fn time_is_shared_by_all_trials() {
    let folder = tempfile::tempdir().unwrap();
    let mut searching = sweep(&folder.path().join("out"), Search::Random, 4);
    // Without a limit this would take hours.
    (searching.base.embed.epochs, searching.minutes) = (100_000, Some(0.02));
    let report = searching.run(&Silent).unwrap();
    assert!(
        report.complete && report.trials.iter().all(|row| row.out_of_time && row.mrr.is_some()),
        "{report}"
    );
}
