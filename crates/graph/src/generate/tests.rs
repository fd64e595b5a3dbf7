//! Checks the generated world against the meaning of its relations, computed by brute force.

use super::kin::Kin;
use super::*;
use crate::{Direction, Link};
use ruleguider_support::progress::{Impatient, Silent};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;

type Pair = (usize, usize);

/// The facts of a clan as plain sets of pairs.
fn as_sets(facts: &Facts) -> HashMap<&'static str, BTreeSet<Pair>> {
    let mut sets: HashMap<&'static str, BTreeSet<Pair>> = HashMap::new();
    Kin::ALL.iter().for_each(|kin| _ = sets.insert(kin.name(), BTreeSet::new()));
    for (kin, head, tail) in facts.iter() {
        sets.get_mut(kin.name()).unwrap().insert((head, tail));
    }
    sets
}

/// The pairs that a body reaches over entities `0..entities`, by trying every entity at every position.
fn tried_out(
    sets: &HashMap<&str, BTreeSet<Pair>>,
    template: &planted::Template,
    entities: usize,
) -> BTreeSet<Pair> {
    let mut paths: Vec<Vec<usize>> = (0..entities).map(|x| vec![x]).collect();
    for (kin, way) in template.body {
        let mut longer = Vec::new();
        for path in &paths {
            let last = path[path.len() - 1];
            for next in 0..entities {
                let pair = if *way == Direction::Forward { (last, next) } else { (next, last) };
                if !path.contains(&next) && sets[kin.name()].contains(&pair) {
                    longer.push([path.as_slice(), &[next]].concat());
                }
            }
        }
        paths = longer;
    }
    paths.iter().map(|path| (path[0], path[path.len() - 1])).collect()
}

fn clan_of(size: usize, number: u64) -> Clan {
    Clan::new(number, size, [0, 1, 2, 3, 4, 5], &mut Dice::of(11, number))
}

#[test]
fn planted_counts_are_those_of_trying_out_everything() {
    for number in 0..3 {
        let clan = clan_of(50, number);
        let world = clan.world();
        let sets = as_sets(&world);
        for (template, counts) in planted::TEMPLATES.iter().zip(planted::count(&world)) {
            let predicted = tried_out(&sets, template, clan.len() + TOWNS_A_CLAN + 2);
            let correct = predicted.intersection(&sets[template.head.name()]).count() as u64;
            assert_eq!(counts, (predicted.len() as u64, correct), "{}", template.head.name());
        }
    }
}

#[test]
fn kinship_means_what_it_says() {
    for number in 0..6 {
        let clan = clan_of(99, number);
        let sets = as_sets(&clan.world());
        let women = |id: usize| sets["gender"].contains(&(id, clan.len() + TOWNS_A_CLAN));
        let parents =
            |id: usize| sets["parent_of"].iter().filter(move |pair| pair.1 == id).map(|pair| pair.0);
        let married = |a: usize, b: usize| sets["spouse_of"].contains(&(a, b));
        for a in 0..clan.len() {
            assert!(matches!(parents(a).count(), 0 | 2));
            for b in 0..clan.len() {
                let siblings = |a: usize, b: usize| a != b && parents(a).any(|p| parents(b).any(|q| p == q));
                let elder = parents(b).any(|p| {
                    siblings(a, p) || (0..clan.len()).any(|spouse| married(a, spouse) && siblings(spouse, p))
                });
                let cousins = parents(a).any(|p| parents(b).any(|q| siblings(p, q)));
                let grandparent = parents(b).any(|p| parents(p).any(|g| g == a));
                let message = |name: &str| sets[name].contains(&(a, b));
                assert_eq!(message("sibling_of"), siblings(a, b));
                assert_eq!(message("uncle_of"), elder && !women(a));
                assert_eq!(message("aunt_of"), elder && women(a));
                assert_eq!(message("cousin_of"), cousins);
                assert_eq!(message("grandparent_of"), grandparent);
                assert!(!(married(a, b) && (siblings(a, b) || cousins || women(a) == women(b))));
            }
        }
    }
}

#[test]
fn clans_have_the_size_asked_for() {
    for people in [50, 99, 100, 149, 1234] {
        let layout = Layout { people, seed: 5 };
        let sizes: Vec<usize> = (0..layout.clans()).map(|clan| layout.clan(clan).labels.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>() as u64, people);
        assert!(sizes.iter().all(|size| (50..100).contains(size)));
    }
}

#[test]
fn no_two_people_share_a_name_when_surnames_come_round_again() {
    let layout = Layout { people: 45_000, seed: 3 };
    let mut seen = HashSet::new();
    for clan in 0..layout.clans() {
        let clan = layout.clan(clan);
        for name in &clan.names[..clan.labels.len()] {
            assert!(seen.insert(name.clone()), "{name} twice");
        }
    }
}

#[test]
fn splits_are_disjoint_and_valid_and_test_follow_from_train() {
    let Family { dataset, rules } = family(400, 9);
    let graph = dataset.graph();
    let train: HashSet<Triple> = dataset.known.facts.iter().copied().collect();
    let held: Vec<Triple> = dataset.known.valid.iter().chain(dataset.test.iter()).copied().collect();
    assert_eq!(train.len(), dataset.known.facts.len());
    assert_eq!(held.iter().collect::<HashSet<_>>().len(), held.len());
    assert!(dataset.known.valid.len() > 100 && dataset.test.len() > 100);
    let reaches = |rule: &PlantedRule, from: EntityId, to: EntityId| {
        let mut paths = vec![vec![from]];
        for &link in &rule.body {
            let longer = paths.iter().flat_map(|path| {
                let targets = graph.targets(path[path.len() - 1], link).iter();
                targets.filter(|next| !path.contains(next)).map(|&next| [path.as_slice(), &[next]].concat())
            });
            paths = longer.collect();
        }
        paths.iter().any(|path| path[path.len() - 1] == to)
    };
    for triple in held {
        assert!(!train.contains(&triple));
        let mut by = rules.iter().filter(|rule| rule.head == triple.relation);
        assert!(by.any(|rule| reaches(rule, triple.head, triple.tail)));
    }
}

#[test]
fn in_train_rules_hold_as_often_as_expected() {
    let Family { dataset, rules } = family(6_000, 2);
    let graph = dataset.graph();
    for rule in &rules {
        let (mut predicted, mut correct) = (0u64, 0u64);
        for source in (0..graph.entities() as u32).map(EntityId) {
            let mut paths = vec![vec![source]];
            for &link in &rule.body {
                let longer = paths.iter().flat_map(|path| {
                    let targets = graph.targets(path[path.len() - 1], link).iter();
                    targets
                        .filter(|next| !path.contains(next))
                        .map(|&next| [path.as_slice(), &[next]].concat())
                });
                paths = longer.collect();
            }
            let targets: HashSet<EntityId> = paths.iter().map(|path| path[path.len() - 1]).collect();
            predicted += targets.len() as u64;
            let head = Link::forward(rule.head);
            correct += targets.iter().filter(|&&target| graph.contains(source, head, target)).count() as u64;
        }
        let share = correct as f64 / predicted as f64;
        assert!(predicted > 500, "{}: only {predicted} predictions", rule.text);
        assert!((share - rule.expected_in_train()).abs() < 0.06, "{}: {share} in train", rule.text);
    }
    let confidence = |text: &str| rules.iter().find(|rule| rule.text == text).unwrap().confidence();
    assert_eq!(confidence("grandparent_of(X,Y) <= parent_of(X,A), parent_of(A,Y)"), 1.0);
    assert!((confidence("spouse_of(X,Y) <= parent_of(X,A), parent_of(Y,A)") - 0.9).abs() < 0.03);
    assert!((confidence("lives_in(X,Y) <= spouse_of(X,A), lives_in(A,Y)") - 0.9).abs() < 0.03);
    assert!((confidence("uncle_of(X,Y) <= sibling_of(X,A), parent_of(A,Y)") - 0.5).abs() < 0.05);
}

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn written_on(threads: usize, people: u64, seed: u64) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("world");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| write(people, seed, &out, false, &Silent)).unwrap().unwrap();
    assert_eq!(files_beside(&out), ["world"]);
    files(&out)
}

fn files_beside(out: &Path) -> Vec<String> {
    let entries = fs::read_dir(out.parent().unwrap()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let once = written_on(1, 700, 4);
    assert_eq!(once.len(), 6);
    assert_eq!(once, written_on(2, 700, 4));
    assert_ne!(once, written_on(2, 700, 5));
}

#[test]
fn files_say_what_is_in_memory() {
    let files = written_on(2, 360, 1);
    let Family { dataset, rules } = {
        let (people, seed) = DEMONSTRATION;
        family(people, seed)
    };
    let names = &dataset.names;
    let text = |split: &[Triple]| -> String {
        let line =
            |t: &Triple| [names.entity(t.head), names.relation(t.relation), names.entity(t.tail)].join("\t");
        split.iter().map(|triple| line(triple) + "\n").collect()
    };
    assert_eq!(files["train.tsv"], text(&dataset.known.facts));
    assert_eq!(files["valid.tsv"], text(&dataset.known.valid));
    assert_eq!(files["test.tsv"], text(&dataset.test));
    for line in files["entity_labels.tsv"].lines() {
        let (name, label) = line.split_once('\t').unwrap();
        let id = names.entities.get(name).unwrap();
        assert_eq!(names.label(EntityId(id)), label);
    }
    for (line, rule) in files["planted_rules.tsv"].lines().zip(&rules) {
        assert!(
            line.starts_with(&format!("{}\t{}\t", rule.predicted, rule.correct))
                && line.ends_with(&rule.text)
        );
    }
}

#[test]
fn what_was_written_reads_back_as_what_is_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    write(300, 8, folder.path(), false, &Silent).unwrap();
    let read = crate::read(folder.path(), &crate::ReadOptions::default()).unwrap();
    let ours = family(300, 8).dataset;
    assert_eq!(
        read.names.entities.iter().collect::<Vec<_>>(),
        ours.names.entities.iter().collect::<Vec<_>>()
    );
    assert_eq!(
        read.names.relations.iter().collect::<Vec<_>>(),
        ours.names.relations.iter().collect::<Vec<_>>()
    );
    assert_eq!(read.names.labels, ours.names.labels);
    assert_eq!((&read.known.facts, &read.known.valid), (&ours.known.facts, &ours.known.valid));
    assert_eq!((&read.test, read.findings), (&ours.test, ours.findings));
}

/// Users see the demonstration graph; it may change, but not unnoticed.
#[test]
fn the_demonstration_graph_stays_what_it_is() {
    let Family { dataset, rules } = {
        let (people, seed) = DEMONSTRATION;
        family(people, seed)
    };
    let sizes = (dataset.known.facts.len(), dataset.known.valid.len(), dataset.test.len(), rules.len());
    assert_eq!(sizes, (3117, 264, 229, 32));
    let first = dataset.known.facts[0];
    let names = &dataset.names;
    assert_eq!(
        (names.entity(first.head), names.relation(first.relation), names.entity(first.tail)),
        ("Ilse_Hagenthal", "cousin_of", "Mina_Rosenbert")
    );
}

#[test]
fn a_folder_with_files_is_left_alone_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.txt"), "precious").unwrap();
    fs::write(folder.path().join("train.tsv"), "old").unwrap();
    let error = write(50, 1, folder.path(), false, &Silent).unwrap_err();
    assert!(error.to_string().contains("unless overwriting is forced"), "{error}");
    assert_eq!(files(folder.path())["train.tsv"], "old");
    write(50, 1, folder.path(), true, &Silent).unwrap();
    let after = files(folder.path());
    assert_eq!((after.len(), after["mine.txt"].as_str()), (7, "precious"));
    assert!(after["train.tsv"].contains("parent_of"));

    let file = folder.path().join("mine.txt");
    assert!(write(50, 1, &file, false, &Silent).unwrap_err().to_string().contains("found a file"));
    let empty = tempfile::tempdir().unwrap();
    write(50, 1, empty.path(), false, &Silent).unwrap();
    assert_eq!(files(empty.path()).len(), 6);
}

#[test]
fn too_few_people_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = write(49, 1, &folder.path().join("world"), false, &Silent).unwrap_err();
    assert_eq!(error.to_string(), "a family has at least 50 people, not 49");
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("deep/world");
    assert!(write(500, 1, &out, false, &Impatient).unwrap().is_none());
    assert!(files_beside(&out).is_empty());
}
