//! The statistics of the benchmark graphs, where they are there (`RULEGUIDER_DATA`, or `../shared/data`).

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::skip::{Need, skip};
use ruleguider::graph::{ReadOptions, Statistics, read};
use std::path::PathBuf;

fn statistics(name: &str) -> Option<Statistics> {
    let data =
        std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = data.join(name);
    if !folder.is_dir() {
        skip(Need::Data, format_args!("{} is not there", folder.display()));
        return None;
    }
    let dataset = read(&folder, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    Some(Statistics::new(&dataset))
}

/// entities, in the graph, relations, facts, train, valid, test, unseen in test, linked in test
fn check(name: &str, sizes: [usize; 9], degrees: Option<[(f64, f64); 3]>) {
    let Some(s) = statistics(name) else { return };
    let ours = [
        s.entities,
        s.entities_in_graph,
        s.relations,
        s.facts,
        s.train,
        s.valid,
        s.test,
        s.test_unseen,
        s.test_linked,
    ];
    assert_eq!(ours, sizes, "{name}");
    let spreads = [s.degree, s.relation_degree, s.entity_degree];
    for (ours, (mean, median)) in spreads.iter().zip(degrees.into_iter().flatten()) {
        assert!((ours.mean - mean).abs() < 0.005, "{name}: mean {} against {mean}", ours.mean);
        assert_eq!(ours.median, median, "{name}");
    }
}

#[test]
fn wn18rr() {
    let degrees = [(4.28, 3.0), (2.55, 2.0), (3.54, 2.0)];
    check("wn18rr", [40_943, 40_559, 11, 86_835, 86_835, 3_034, 3_134, 210, 1_096], Some(degrees));
}

#[test]
fn fb15k_237() {
    let degrees = [(37.52, 22.0), (10.32, 10.0), (29.17, 18.0)];
    check("fb15k-237", [14_541, 14_505, 237, 272_115, 272_115, 17_535, 20_466, 28, 0], Some(degrees));
}

#[test]
fn nell_995() {
    let degrees = [(4.03, 1.0), (1.79, 1.0), (3.47, 1.0)];
    check("nell-995", [75_492, 74_432, 200, 149_678, 8_747, 543, 2_840, 1_152, 1_161], Some(degrees));
}

#[test]
fn umls_kinship_and_countries() {
    check("umls", [135, 135, 46, 5_216, 5_216, 652, 661, 0, 421], None);
    check("kinship", [104, 104, 25, 8_544, 8_544, 1_068, 1_074, 0, 875], None);
    for (name, lines) in [("countries-s1", 1_111), ("countries-s2", 1_063), ("countries-s3", 985)] {
        let Some(s) = statistics(name) else { continue };
        assert_eq!((s.train + s.findings.duplicates, s.findings.duplicates), (lines, 1), "{name}");
    }
}
