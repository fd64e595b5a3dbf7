//! The file of a study: round trips, votes are stored once and survive, and older tables are migrated.

use super::schema::{STEPS, migrate};
use super::store::{Outcome, Standing, Store};
use crate::token;
use ruleguider::ask::PathStep;
use ruleguider::judge::{Choice, LabelledEntity, Study, StudyItem, StudyPair};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

fn named(label: &str) -> LabelledEntity {
    LabelledEntity { id: format!("/m/{label}"), label: label.to_owned() }
}

fn step(relation: &str, label: &str) -> PathStep {
    PathStep {
        relation: relation.to_owned(),
        relation_label: Some(format!("label of {relation}")),
        inverse: relation.len().is_multiple_of(2),
        entity: format!("/m/{label}"),
        label: label.to_owned(),
        relation_score: None,
        entity_score: None,
        note: None,
    }
}

fn study(items: usize) -> Study {
    let item = |at: usize| StudyItem {
        pair: 0,
        head: named(&format!("head {at}")),
        relation: named("of"),
        tail: named(&format!("tail {at}")),
        paths: [vec![step("one", "x"), step("two", "tail")], vec![step("three", "tail")]],
    };
    Study {
        dataset: "data".to_owned(),
        // Larger than a signed 64-bit number.
        seed: u64::MAX - 1,
        version: "0".to_owned(),
        systems: vec!["Ours".to_owned(), "Theirs".to_owned()],
        pairs: vec![StudyPair { systems: [0, 1], looked_at: items + 10, unanswered: 5, identical: 5, items }],
        items: (0..items).map(item).collect(),
    }
}

fn written(folder: &tempfile::TempDir, items: usize) -> PathBuf {
    let path = folder.path().join("study.db");
    Store::create(&path, &study(items)).unwrap();
    path
}

fn refused<T>(result: anyhow::Result<T>) -> String {
    format!("{:#}", result.err().expect("an error"))
}

#[test]
fn a_study_comes_out_as_it_went_in_and_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 12);
    assert_eq!(Store::open(&path).unwrap().study().unwrap(), study(12));
    assert!(refused(Store::create(&path, &study(3))).contains("may hold votes"));
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    // The same study gives the same file.
    let other = folder.path().join("other.db");
    Store::create(&other, &study(12)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(other).unwrap());
}

/// The screens of a judge: item, whether it is a repetition, whether the first system is on the left.
fn screens_of(path: &Path, judge: usize) -> Vec<(usize, bool, bool)> {
    let query = "SELECT item, repeat, first_on_left FROM screens WHERE judge = ? ORDER BY position";
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(query).unwrap();
    let rows = statement.query_map([judge], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// An attacker has the program, the systems, the seed and the number of the judge, and so makes a study that is equal.
/// That tells nothing about sides and order in the real one.
#[test]
fn a_judge_who_repeats_the_study_learns_nothing_about_sides() {
    let [real, copy] = [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, 1000);
        let mut store = Store::serve(&path).unwrap();
        let study = store.study().unwrap();
        store.add_judge(&study, "one").unwrap();
        store.add_judge(&study, "two").unwrap();
        [1, 2].map(|judge| screens_of(&path, judge))
    });
    for (judge, (real, copy)) in real.iter().zip(&copy).enumerate() {
        let sides: std::collections::HashMap<_, _> =
            copy.iter().map(|&(item, repeat, side)| ((item, repeat), side)).collect();
        let right = real.iter().filter(|(item, _, side)| sides[&(*item, false)] == *side).count();
        let (share, four_deviations) = (right as f64 / real.len() as f64, 2.0 / (real.len() as f64).sqrt());
        assert!((share - 0.5).abs() < four_deviations, "judge {judge}: {right} of {} right", real.len());
        let places = real.iter().zip(copy).filter(|(real, copy)| real.0 == copy.0).count();
        assert!(places < 20, "judge {judge}: {places} places right");
    }
}

#[test]
fn a_judge_goes_from_screen_to_screen_and_votes_once_on_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 20);
    let mut store = Store::serve(&path).unwrap();
    let study = store.study().unwrap();
    assert_eq!(store.add_judge(&study, "one").unwrap(), 1);
    assert_eq!(store.add_judge(&study, "two").unwrap(), 2);
    assert_eq!((store.judge("two").unwrap(), store.judge("three").unwrap()), (Some(2), None));
    let drawn = screens_of(&path, 1);
    assert_eq!(drawn.len(), 21);
    for (at, &(item, _, first_on_left)) in drawn.iter().enumerate() {
        let Standing { done, total, can_undo, next } = store.standing(1).unwrap();
        assert_eq!((done, total, can_undo), (at, 21, at > 0));
        let shown = next.unwrap();
        assert_eq!(shown.fact[0], format!("head {item}"));
        assert_eq!(shown.paths[0].len(), if first_on_left { 2 } else { 1 });
        // A screen cannot be voted on before its turn or twice.
        assert_eq!(store.vote(1, at + 1, Choice::Left, 1.0).unwrap(), Outcome::Elsewhere);
        assert_eq!(store.vote(1, at, Choice::Right, 1.0).unwrap(), Outcome::Kept);
        assert_eq!(store.vote(1, at, Choice::Left, 1.0).unwrap(), Outcome::Elsewhere);
    }
    let end = store.standing(1).unwrap();
    assert_eq!((end.done, end.next), (21, None));
    assert_eq!(store.vote(1, 21, Choice::Left, 1.0).unwrap(), Outcome::Elsewhere);
    assert_eq!(store.standing(2).unwrap().done, 0, "votes of others are not seen");
    let votes = store.votes().unwrap();
    assert_eq!(votes.len(), 21);
    assert!(votes.iter().all(|vote| vote.judge == 1 && vote.choice == Choice::Right && vote.time_ms > 0));
    let kept: Vec<_> = votes.iter().map(|vote| (vote.item, vote.repeat, vote.first_on_left)).collect();
    assert_eq!(kept, drawn);
}

#[test]
fn the_last_vote_is_taken_back_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::serve(&written(&folder, 5)).unwrap();
    let study = store.study().unwrap();
    store.add_judge(&study, "one").unwrap();
    assert_eq!(store.undo(1, 0).unwrap(), Outcome::Elsewhere);
    for at in 0..3 {
        store.vote(1, at, Choice::Left, 1.0).unwrap();
    }
    assert_eq!(store.undo(1, 1).unwrap(), Outcome::Elsewhere);
    assert_eq!(store.undo(1, 2).unwrap(), Outcome::Kept);
    let standing = store.standing(1).unwrap();
    assert_eq!((standing.done, standing.can_undo), (2, false));
    assert_eq!(store.undo(1, 1).unwrap(), Outcome::Elsewhere, "one step, not all the way");
    store.vote(1, 2, Choice::Both, 1.0).unwrap();
    assert!(store.standing(1).unwrap().can_undo);
    assert_eq!(store.votes().unwrap().iter().map(|vote| vote.choice).collect::<Vec<_>>()[2], Choice::Both);
}

#[test]
fn a_study_has_one_server_and_votes_are_read_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 5);
    let mut store = Store::serve(&path).unwrap();
    let study = store.study().unwrap();
    store.add_judge(&study, "one").unwrap();
    assert!(refused(Store::serve(&path)).contains("another server is using"));
    store.vote(1, 0, Choice::Left, 1.0).unwrap();
    assert_eq!(Store::open(&path).unwrap().votes().unwrap().len(), 1);
    drop(store);
    let mut again = Store::serve(&path).unwrap();
    assert_eq!(again.standing(1).unwrap().done, 1);
    assert!(refused(again.renew(2, "x")).contains("no judge 2"));
    again.renew(1, "other").unwrap();
    assert_eq!((again.judge("one").unwrap(), again.judge("other").unwrap()), (None, Some(1)));
}

#[test]
fn older_tables_become_newer_ones_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, 5);
    let mut store = Store::serve(&path).unwrap();
    let study = store.study().unwrap();
    store.add_judge(&study, "one").unwrap();
    store.vote(1, 0, Choice::Neither, 2.5).unwrap();
    drop(store);
    let version = |path: &Path| -> i64 {
        Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&path), 1);
    let mut connection = Connection::open(&path).unwrap();
    let broken = [STEPS[0], "ALTER TABLE votes ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1)"];
    assert!(migrate(&mut connection, &broken).is_err());
    assert_eq!(version(&path), 1);
    let next = [STEPS[0], "ALTER TABLE votes ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"];
    migrate(&mut connection, &next).unwrap();
    let kept: (String, f64, String) = connection
        .query_row("SELECT choice, seconds, note FROM votes", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(kept, ("neither".to_owned(), 2.5, "none".to_owned()));
    drop(connection);
    assert_eq!(version(&path), 2);
    assert!(refused(Store::open(&path)).contains("newer version of ruleguider"));
}

#[test]
fn what_is_no_study_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.db");
    assert!(refused(Store::open(&path)).contains("no such study"));
    std::fs::write(&path, "no database, but long enough to be taken for one".repeat(100)).unwrap();
    assert!(refused(Store::open(&path)).contains("is not a study"));
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(refused(Store::open(&other)).contains("is not a study"));
}

#[test]
fn tokens_are_random_and_kept_as_sums() {
    let (one, other) = (token::new().unwrap(), token::new().unwrap());
    assert_eq!(one.len(), 48);
    assert_ne!(one, other);
    assert_ne!(token::sum(&one), token::sum(&other));
    assert!(!token::sum(&one).contains(&one));
}

#[test]
fn a_study_whose_tables_do_not_fit_is_damaged() {
    for change in [
        "UPDATE pairs SET first = 99",
        "UPDATE pairs SET items = 3",
        "DELETE FROM items",
        "DELETE FROM items WHERE number = 2",
        "UPDATE screens SET item = item + 1000",
        "DELETE FROM pairs",
        "UPDATE items SET pair = 99",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = written(&folder, 5);
        let mut store = Store::serve(&path).unwrap();
        let study = store.study().unwrap();
        store.add_judge(&study, "one").unwrap();
        drop(store);
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {change}")).unwrap();
        drop(connection);
        let message = refused(Store::open(&path).unwrap().study());
        assert!(message.contains("the study is damaged"), "{change}: {message}");
    }
}

#[test]
fn of_studies_prepared_at_once_one_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.db");
    let created = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Store::create(&path, &study(5)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(created.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(created.into_iter().filter(Result::is_err).all(|one| refused(one).contains("may hold votes")));
    assert_eq!(Store::open(&path).unwrap().study().unwrap(), study(5));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
