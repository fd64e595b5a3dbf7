//! Real files in the forms in which they are published (`RULEGUIDER_DATA`, or `../shared/data`), and small ones of forms
//! that are published elsewhere.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::skip::{Need, skip};
use ruleguider::graph::{Dataset, Direction, EntityId, Literals, ReadOptions, RelationId, SplitShares, read};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn options() -> ReadOptions {
    ReadOptions { shares: SplitShares::WHOLE, incomplete: true, ..ReadOptions::default() }
}

fn shared(name: &str) -> Option<Dataset> {
    let data =
        std::env::var_os("RULEGUIDER_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let path = data.join(name);
    if !path.exists() {
        skip(Need::Data, format_args!("{} is not there", path.display()));
        return None;
    }
    Some(read(&path, &options()).unwrap_or_else(|error| panic!("{error}")))
}

fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn facts(dataset: &Dataset) -> Vec<String> {
    let names = &dataset.names;
    let words = |fact: &ruleguider::graph::Triple| {
        [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)].join(" ")
    };
    dataset.known.facts.iter().map(words).collect()
}

/// Entities, relations, facts, how many entities have a type, and the three most frequent types with their counts.
fn check(name: &str, sizes: [usize; 4], types: &[(&str, usize)]) {
    let Some(dataset) = shared(name) else { return };
    let (names, of) = (&dataset.names, &dataset.names.types);
    let facts = dataset.known.queries.len() + dataset.known.valid.len() + dataset.test.len();
    let ours = [names.entities.len(), names.relations.len(), facts, of.typed()];
    assert_eq!(ours, sizes, "{name}");
    let most: Vec<(&str, usize)> =
        of.by_frequency().into_iter().take(3).map(|(of_type, count)| (of.label(of_type), count)).collect();
    assert_eq!(most, types, "{name}");
}

#[test]
fn genes_and_a_part_of_hetionet_have_the_types_of_their_prefixes() {
    let genes = [("GO", 43_558), ("gene", 21_162), ("pfam", 6_282)];
    check("human-genes-go/facts.tsv.gz", [74_032, 14, 499_459, 74_032], &genes);
    let part = [("Gene", 17_596), ("Biological Process", 2_423), ("Pathway", 1_822)];
    check("hetionet-part", [28_063, 24, 198_596, 28_063], &part);
}

#[test]
fn attack_has_days() {
    check("mitre-attack/facts.tsv.gz", [4_202, 8, 26_975, 0], &[]);
    let Some(dated) = shared("mitre-attack/facts_dated.tsv.gz") else { return };
    assert_eq!((dated.known.notes.len(), dated.known.facts.len()), (26_975, 26_975));
    assert!(dated.known.notes.has_time());
}

/// The edges of Hetionet as they are published: packed SIF with a header.
#[test]
fn hetionet_is_read_as_it_is_published() {
    let lines: String =
        (0..40).map(|id| format!("Gene::{id}\tGpBP\tBiological Process::GO:{}\n", id % 7)).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hetionet-v1.0-edges.sif.gz");
    let mut packed =
        flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, format!("source\tmetaedge\ttarget\n{lines}").as_bytes()).unwrap();
    packed.finish().unwrap();
    let dataset = read(&path, &options()).unwrap();
    assert_eq!((dataset.known.facts.len(), dataset.findings.headers), (40, 1));
    let types = &dataset.names.types;
    let named: Vec<(&str, usize)> =
        types.by_frequency().into_iter().map(|(of, count)| (types.name(of), count)).collect();
    assert_eq!(named, [("Gene", 40), ("Biological Process", 7)]);
}

/// Lists as SNAP publishes them: comments, and numbers separated by white space.
#[test]
fn lists_of_edges_are_read_as_snap_publishes_them() {
    let text = "# Undirected graph: ../../data/output/amazon.ungraph.txt\n# Amazon\n# Nodes: 5 Edges: 4\n\
                # FromNodeId\tToNodeId\n1\t88160\n1\t118052\n2 2\n  3\t  1\n";
    let folder = written(&[("com-amazon.ungraph.txt", text)]);
    let dataset = read(&folder.path().join("com-amazon.ungraph.txt"), &options()).unwrap();
    assert_eq!(facts(&dataset), ["1 link 88160", "1 link 118052", "2 link 2", "3 link 1"]);
}

/// A schema in the form of schema.org with things described by it (`examples/schema.ttl`).
#[test]
fn a_schema_in_the_form_of_schema_org_gives_types_domains_and_ranges() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/schema.ttl");
    let dataset = read(&path, &options()).unwrap();
    let (names, types) = (&dataset.names, &dataset.names.types);
    let author = RelationId(names.relations.get("https://schema.org/author").unwrap());
    let declared = |side| types.declared(author, side).map(|of| types.label(of)).collect::<Vec<_>>();
    assert_eq!(declared(Direction::Forward), ["CreativeWork"]);
    assert_eq!(declared(Direction::Inverse), ["Person", "Organization"]);
    let notes = EntityId(names.entities.get("http://example.org/notes").unwrap());
    assert_eq!(names.label(notes), "Notes on the Analytical Engine");
    let all: Vec<&str> = types.all_of(notes).iter().map(|&of| types.label(of)).collect();
    assert!(["Article", "CreativeWork", "Thing"].iter().all(|of| all.contains(of)), "{all:?}");
    assert!(names.attributes.of(notes).any(|one| one == ("https://schema.org/datePublished", "1843")));
    let said = dataset.understood.join(" ");
    assert!(said.contains("domains and ranges of relations are declared"), "{said}");
    let kept = read(&path, &ReadOptions { literals: Literals::Keep, ..options() }).unwrap();
    assert!(kept.known.facts.len() > dataset.known.facts.len());
}

/// An excerpt of what `apt-cache dumpavail` prints, as RDF by `benches/debian.py`.
#[test]
fn packages_as_rdf_have_labels_types_and_attributes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lists = fs::File::open(root.join("tests/library/dumpavail.txt")).unwrap();
    let script = root.join("benches/debian.py");
    let written_by = Command::new("python3").arg(script).arg("--rdf").stdin(lists).output();
    let Ok(rdf) = written_by else { return skip(Need::System, "there is no python3") };
    assert!(rdf.status.success(), "{}", String::from_utf8_lossy(&rdf.stderr));
    let folder = written(&[("packages.nt", std::str::from_utf8(&rdf.stdout).unwrap())]);
    let dataset = read(&folder.path().join("packages.nt"), &options()).unwrap();
    let names = &dataset.names;
    let curl = EntityId(names.entities.get("urn:debian:package/curl").unwrap());
    assert_eq!((names.entities.get("489"), names.label(curl)), (None, "curl"));
    let attributes: Vec<(&str, &str)> = names.attributes.of(curl).collect();
    let expected = [
        ("urn:debian:description", "command line tool for transferring data with URL syntax"),
        ("urn:debian:version", "7.88.1-10+deb12u15"),
        ("urn:debian:installed-size", "489"),
    ];
    assert_eq!(attributes, expected);
    let types: Vec<&str> = names.types.of(curl).map(|of| names.types.name(of)).collect();
    assert_eq!(types, ["urn:debian:Package"]);
    let all = facts(&dataset);
    let short = |fact: &str| fact.replace("urn:debian:", "");
    let has = |fact: &str| all.iter().any(|one| short(one) == fact);
    assert!(has("package/curl depends package/libcurl4") && has("package/libcurl4 source source/src%3Acurl"));
    assert!(has("package/curl implemented-in implemented-in/implemented-in%3A%3Ac"), "{all:?}");
    // Libraries that are only named have no type.
    assert_eq!(all.iter().filter(|one| one.ends_with("urn:debian:Package")).count(), 2);
}

/// Neo4j's import: the header of a table in a file of its own, ID spaces, arrays.
#[test]
fn an_import_of_neo4j_may_have_its_headers_in_files_of_their_own() {
    let folder = written(&[
        ("movies-header.csv", "movieId:ID(Movie),title,:LABEL\n"),
        ("movies.csv", "1,\"The Matrix\",Movie;Film\n2,Reloaded,Movie\n"),
        ("actors-header.csv", "personId:ID(Person),name,:LABEL\n"),
        ("actors.csv", "1,\"Keanu Reeves\",Person\n"),
        ("roles-header.csv", ":START_ID(Person),role,:END_ID(Movie),:TYPE\n"),
        ("roles.csv", "1,Neo,1,ACTED_IN\n1,Neo,2,ACTED_IN\n"),
    ]);
    let dataset = read(folder.path(), &options()).unwrap();
    // Both tables have an id 1, which the ID space tells apart.
    assert_eq!(facts(&dataset), ["Person:1 ACTED_IN Movie:1", "Person:1 ACTED_IN Movie:2"]);
    let names = &dataset.names;
    let matrix = EntityId(names.entities.get("Movie:1").unwrap());
    assert_eq!(names.label(matrix), "The Matrix");
    let types: Vec<&str> = names.types.of(matrix).map(|of| names.types.name(of)).collect();
    assert_eq!(types, ["Movie", "Film"]);
}
