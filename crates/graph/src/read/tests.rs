//! Data in the forms in which others publish it.

use super::*;
use crate::{Direction, Note, TypeId};
use std::fs;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn options() -> ReadOptions {
    ReadOptions { shares: SplitShares::WHOLE, incomplete: true, ..ReadOptions::default() }
}

fn read_text(name: &str, text: &str, options: &ReadOptions) -> Result<Dataset, String> {
    let folder = folder(&[(name, text)]);
    let read = read(&folder.path().join(name), options);
    read.map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
}

fn facts(dataset: &Dataset) -> Vec<String> {
    let names = &dataset.names;
    let words =
        |fact: &Triple| [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)];
    dataset.known.facts.iter().map(|fact| words(fact).join(" ")).collect()
}

fn entity(dataset: &Dataset, name: &str) -> EntityId {
    EntityId(dataset.names.entities.get(name).unwrap_or_else(|| panic!("no entity {name}")))
}

fn types(dataset: &Dataset, name: &str) -> Vec<String> {
    let types = &dataset.names.types;
    types.of(entity(dataset, name)).map(|of: TypeId| types.name(of).to_owned()).collect()
}

#[test]
fn primekg_is_read_by_its_columns() {
    let text = "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source\n\
                protein_protein,ppi,0,9796,gene/protein,PHYHIP,NCBI,8889,56992,gene/protein,KIF15,NCBI\n\
                indication,indication,14012,DB01148,drug,Flavoxate,DrugBank,33577,5090,disease,\"cystitis, chronic\",MONDO\n";
    let dataset = read_text("kg.csv", text, &options()).unwrap();
    assert_eq!(facts(&dataset), ["0 protein_protein 8889", "14012 indication 33577"]);
    assert_eq!(dataset.names.label(entity(&dataset, "33577")), "cystitis, chronic");
    assert_eq!(
        (types(&dataset, "14012"), types(&dataset, "0")),
        (vec!["drug".to_owned()], vec!["gene/protein".to_owned()])
    );
    let message = dataset.understood.join(" ");
    assert!(message.contains("facts are x_index – relation – y_index"), "{message}");
    assert!(message.contains("not used: display_relation, x_id, x_source, y_id, y_source."), "{message}");
    assert!(message.contains("4 of 4 entities have a type: 2 gene/protein, 1 drug, 1 disease."), "{message}");
}

/// What PyKEEN writes: the ids of the tables are in any order, and a training split need not mention all names.
#[test]
fn triples_of_ids_are_read_with_their_tables_of_names() {
    let entities = ("entity_to_id.tsv", "id\tlabel\n1\tben\n0\tada\n2\tcleo d.\n");
    let relations = ("relation_to_id.tsv", "label\tid\nparent_of\t0\n");
    let triples = |rows: &'static str| ("numeric_triples.tsv", rows);
    let one = folder(&[
        entities,
        relations,
        triples("head\trelation\ttail\n0\t0\t1\n1\t0\t2\n"),
        ("base.pth", "?"),
    ]);
    let dataset = read(one.path(), &options()).unwrap();
    assert_eq!(facts(&dataset), ["ada parent_of ben", "ben parent_of cleo d."]);
    let set = tempfile::tempdir().unwrap();
    for (split, rows) in
        [("training", "0\t0\t1\n1\t0\t0\n"), ("validation", "1\t0\t1\n"), ("testing", "1\t0\t2\n")]
    {
        fs::create_dir(set.path().join(split)).unwrap();
        for (name, text) in [entities, relations, ("numeric_triples.tsv", rows)] {
            fs::write(set.path().join(split).join(name), text).unwrap();
        }
    }
    let dataset = read(set.path(), &ReadOptions::default()).unwrap();
    assert_eq!((dataset.known.facts.len(), dataset.known.valid.len(), dataset.test.len()), (2, 1, 1));
    let known = read_known(set.path(), &ReadOptions::default()).unwrap();
    assert_eq!((known.test.len(), known.names.entities.len()), (0, 2), "names of the test split have no ids");
    for (files, expected) in [
        (
            vec![entities, relations, triples("0\t0\t3\n")],
            "numeric_triples.tsv:1: expected ids that the tables name",
        ),
        (vec![triples("0\t0\n")], "numeric_triples.tsv:1: expected three ids, found 0, 0"),
        (
            vec![("entity_to_id.tsv", "7\tada\n"), triples("0\t0\t0\n")],
            "entity_to_id.tsv: expected ids below the number of names, 1",
        ),
        (
            vec![("entity_to_id.tsv", "ada\n"), triples("0\t0\t0\n")],
            "entity_to_id.tsv:1: expected an id and a name",
        ),
    ] {
        let wrong = folder(&files);
        let message = read(wrong.path(), &options()).err().unwrap().to_string();
        assert!(message.contains(expected), "{message}");
    }
    let bare = folder(&[triples("0\t0\t1\n")]);
    assert_eq!(facts(&read(bare.path(), &options()).unwrap()), ["0 0 1"]);
}

#[test]
fn a_folder_of_kgx_has_types_labels_sources_and_negations() {
    let nodes = "id\tcategory\tname\tdescription\tprovided_by\n\
                 CHEBI:1\tbiolink:Drug|biolink:ChemicalEntity\tAspirin\tan old drug\tx\n\
                 MONDO:2\tbiolink:Disease\tHeadache\t\tx\n\
                 MONDO:3\tbiolink:Disease\tUnmentioned\t\tx\n";
    let edges = "id\tsubject\tpredicate\tobject\tcategory\tprimary_knowledge_source\tpublications\tnegated\n\
                 e1\tCHEBI:1\tbiolink:treats\tMONDO:2\tbiolink:Association\tinfores:ctd\tPMID:1|PMID:2\tfalse\n\
                 e2\tMONDO:2\tbiolink:treated_by\tCHEBI:1\tbiolink:Association\tinfores:ctd\t\ttrue\n";
    let folder = folder(&[("my_nodes.tsv", nodes), ("my_edges.tsv", edges), ("README.md", "about")]);
    let dataset = read(folder.path(), &options()).unwrap();
    assert_eq!(facts(&dataset), ["CHEBI:1 biolink:treats MONDO:2"]);
    assert_eq!(dataset.known.negatives.len(), 1);
    assert_eq!(dataset.note(dataset.known.facts[0]).source, Some("infores:ctd|PMID:1|PMID:2"));
    assert_eq!(dataset.names.label(entity(&dataset, "CHEBI:1")), "Aspirin");
    assert_eq!(types(&dataset, "CHEBI:1"), ["biolink:Drug", "biolink:ChemicalEntity"]);
    let described: Vec<(&str, &str)> = dataset.names.attributes.of(entity(&dataset, "CHEBI:1")).collect();
    assert_eq!(described, [("description", "an old drug"), ("provided_by", "x")]);
    let message = dataset.understood.join(" ");
    assert!(
        message.contains("my_nodes.tsv: 3 nodes.")
            && message.contains("1 things that are described are in no fact"),
        "{message}"
    );
    assert!(
        message.contains("Not read, because their columns are neither edges nor nodes: README.md."),
        "{message}"
    );
}

#[test]
fn a_folder_of_neo4j_has_labels_and_the_relation_of_its_file() {
    let movies = "movieId:ID(Movie),title,year:int,:LABEL\ntt1,\"The Matrix\",1999,Movie\ntt2,Reloaded,2003,Movie;Sequel\n";
    let actors = "personId:ID(Person),name\nkeanu,\"Keanu Reeves\"\n";
    let roles =
        ":START_ID(Person),role,:END_ID(Movie),:TYPE\nkeanu,Neo,tt1,ACTED_IN\nkeanu,Neo,tt2,ACTED_IN\n";
    let sequels = ":START_ID(Movie),:END_ID(Movie)\ntt2,tt1\n";
    let files =
        [("movies.csv", movies), ("actors.csv", actors), ("roles.csv", roles), ("follows.csv", sequels)];
    let folder = folder(&files);
    let dataset = read(folder.path(), &options()).unwrap();
    assert_eq!(facts(&dataset), ["tt2 follows tt1", "keanu ACTED_IN tt1", "keanu ACTED_IN tt2"]);
    assert_eq!(
        (types(&dataset, "tt2"), types(&dataset, "keanu")),
        (vec!["Movie".to_owned(), "Sequel".to_owned()], vec!["Person".to_owned()])
    );
    assert_eq!(dataset.names.label(entity(&dataset, "tt1")), "The Matrix");
    assert!(dataset.names.attributes.of(entity(&dataset, "tt1")).eq([("year", "1999")]));
}

#[test]
fn lists_of_edges_and_sif_are_read() {
    let snap = "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n0\t2\n3  0\n";
    assert_eq!(facts(&read_text("web.txt", snap, &options()).unwrap()), ["0 link 1", "0 link 2", "3 link 0"]);
    assert_eq!(
        facts(&read_text("words.txt", "a likes b\nb likes c\n", &options()).unwrap()),
        ["a likes b", "b likes c"]
    );
    let message = read_text("words.txt", "a likes b\nb likes\n", &options()).unwrap_err();
    assert_eq!(message, "words.txt:2: expected 3 fields separated by white space, found 2");
    let sif = "a pp b c\nlonely\nb pd c\n";
    let dataset = read_text("net.sif", sif, &options()).unwrap();
    assert_eq!(facts(&dataset), ["a pp b", "a pp c", "b pd c"]);
    assert!(dataset.understood[0].contains("1 nodes without an edge"), "{:?}", dataset.understood);
    assert_eq!(facts(&read_text("tabs.sif", "a b\tpp\tc d\n", &options()).unwrap()), ["a b pp c d"]);
}

#[test]
fn facts_have_a_confidence_a_source_and_a_time() {
    let text = "subject\trelation\tobject\tconfidence\tsource\ttime\n\
                a\tr\tb\t0.5\tPMID:1\t2015-06-30\n\
                b\tr\tc\t\t\t\n";
    let dataset = read_text("noted.tsv", text, &options()).unwrap();
    let [first, second] = [dataset.known.facts[0], dataset.known.facts[1]];
    let expected = Note { confidence: Some(0.5), source: Some("PMID:1"), time: Some("2015-06-30") };
    assert_eq!((dataset.note(first), dataset.note(second)), (expected, Note::default()));
    let wrong =
        |cell: &str, text: &str| read_text("noted.tsv", &text.replace("0.5", cell), &options()).unwrap_err();
    assert_eq!(wrong("1.5", text), "noted.tsv:2: expected a confidence above 0 and at most 1, found 1.5");
    let message = read_text("noted.tsv", &text.replace("2015-06-30", "soon"), &options()).unwrap_err();
    assert!(message.starts_with("noted.tsv:2: expected a date such as 2015-06-30"), "{message}");
    let dated = read_text("dated.tsv", "a\tr\tb\t2015-06-30\nb\tr\tc\t2014-01-01\n", &options()).unwrap();
    assert_eq!(dated.known.notes.time(dated.known.facts[1]), Some("2014-01-01"));
    // The notes of a test fact stay with the test split.
    let folder = folder(&[("train.tsv", text), ("test.tsv", "head\trelation\ttail\ttime\nb\tr\ta\t2020\n")]);
    let split = read(folder.path(), &options()).unwrap();
    assert_eq!((split.known.notes.len(), split.test_notes.time(split.test[0])), (1, Some("2020")));
}

#[test]
fn columns_are_chosen_and_a_wrong_name_lists_those_there_are() {
    let text = "n,drug,effect,disease\n1,aspirin,treats,headache\n";
    let chosen = |columns: &str| ReadOptions { columns: Some(columns.parse().unwrap()), ..options() };
    let columns = "subject=drug,relation=effect,object=disease";
    assert_eq!(facts(&read_text("own.csv", text, &chosen(columns)).unwrap()), ["aspirin treats headache"]);
    let tabs = text.replace(',', "\t");
    assert_eq!(facts(&read_text("own.tsv", &tabs, &chosen(columns)).unwrap()), ["aspirin treats headache"]);
    let message = read_text("own.csv", text, &chosen("subject=drug,object=illness")).unwrap_err();
    assert_eq!(
        message,
        "own.csv:1: expected a column illness, as chosen for the object, found n, drug, effect, disease"
    );
    let message = read_text("own.csv", text, &options()).unwrap_err();
    assert!(
        message.contains("--columns subject=…") && message.ends_with("found 4: n, drug, effect, disease"),
        "{message}"
    );
}

#[test]
fn negatives_beside_splits_are_kept_and_conflicts_name_both_lines() {
    // What a schema declares stays where prefixes are the types.
    let text: String = (0..20).map(|id| format!("Gene::{id}\tr\tDisease::{}\n", id % 5)).collect();
    let prefixed = folder(&[("train.tsv", &text), ("schema.tsv", "r\tdomain\tGene\n")]);
    let declared = read(prefixed.path(), &options()).unwrap().names.types.clone();
    assert_eq!((declared.declarations(), declared.typed()), (1, 25));
    let train = "a\tr\tb\nb\tr\tc\nc\tr\ta\n";
    let files = [
        ("train.tsv", train),
        ("negatives.tsv", "a\tr\tc\n"),
        ("types.tsv", "a\tPerson\nb\tPerson|Author\n"),
    ];
    let given =
        folder(&[&files[..], &[("schema.tsv", "r\tdomain\tPerson\nAuthor\tsubclass_of\tPerson\n")]].concat());
    let dataset = read(given.path(), &options()).unwrap();
    assert_eq!((dataset.known.negatives.len(), dataset.known.facts.len()), (1, 3));
    assert_eq!(types(&dataset, "b"), ["Person", "Author"]);
    let types = &dataset.names.types;
    assert_eq!(
        types.declared(RelationId(0), Direction::Forward).collect::<Vec<_>>(),
        [types.find("Person").unwrap()]
    );
    let conflict = folder(&[("train.tsv", train), ("negatives.tsv", "a\tr\tc\nb\tr\tc\n")]);
    let message = read(conflict.path(), &options()).unwrap_err().to_string();
    let place = |name: &str| conflict.path().join(name).display().to_string();
    let expected = format!(
        "{}:2: expected a fact that is known to be false (--conflicts drop, facts or negatives settles such conflicts), \
         found b r c, which is stated as a fact in {}:2",
        place("negatives.tsv"),
        place("train.tsv")
    );
    assert_eq!(message, expected);
    let wrong = folder(&[("train.tsv", train), ("schema.tsv", "r\tfrom\tPerson\n")]);
    let message = read(wrong.path(), &options()).unwrap_err().to_string();
    assert!(message.contains("schema.tsv:1: expected a relation, `domain` or `range`"), "{message}");
}

#[test]
fn rdf_has_labels_types_attributes_and_prefixes() {
    let text = "@prefix ex: <http://example.org/> .\n\
                @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
                ex:ada a ex:Mathematician ; rdfs:label \"Ada Lovelace\"@de, \"Ada\"@en ; ex:height 1.65 ;\n\
                  ex:knows ex:charles .\n\
                ex:charles rdfs:label \"Charles\" ; ex:knows ex:ada .\n\
                ex:Mathematician rdfs:subClassOf ex:Person .\n\
                ex:knows rdfs:domain ex:Person ; rdfs:label \"is acquainted with\" .\n";
    let dataset = read_text("ada.ttl", text, &options()).unwrap();
    let names = &dataset.names;
    let ada = entity(&dataset, "http://example.org/ada");
    assert_eq!(dataset.known.facts.len(), 4);
    assert_eq!(
        (names.label(ada), names.relation_label(dataset.known.facts[1].relation)),
        ("Ada", "is acquainted with")
    );
    let all: Vec<&str> = names.types.all_of(ada).iter().map(|&of| names.types.label(of)).collect();
    assert_eq!(all, ["ex:Mathematician", "ex:Person"]);
    assert!(names.attributes.of(ada).eq([("http://example.org/height", "1.65")]));
    assert_eq!(names.label(entity(&dataset, "http://example.org/Person")), "ex:Person");
    assert_eq!(names.types.declarations(), 1);
    // The old way: every statement is a fact.
    let kept = read_text("ada.ttl", text, &ReadOptions { literals: Literals::Keep, ..options() }).unwrap();
    assert_eq!((kept.known.facts.len(), kept.names.attributes.len()), (10, 0));
}

#[test]
fn types_of_held_out_facts_are_not_told() {
    let of = |name: &str| format!("<http://x.org/{name}> <{}> <http://x.org/T> .\n", finish::RDF_TYPE);
    let link = |a: &str, b: &str| format!("<http://x.org/{a}> <http://x.org/r> <http://x.org/{b}> .\n");
    let train = [of("a"), link("a", "b"), link("b", "c")].concat();
    let folder = folder(&[("train.nt", &train), ("valid.nt", &link("c", "a")), ("test.nt", &of("b"))]);
    let dataset = read(folder.path(), &ReadOptions::default()).unwrap();
    assert_eq!((types(&dataset, "http://x.org/a").len(), types(&dataset, "http://x.org/b").len()), (1, 0));
}

#[test]
fn schema_org_declares_domains_and_ranges() {
    let text = "@prefix schema: <https://schema.org/> .\n@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
                schema:Book rdfs:subClassOf schema:CreativeWork .\n\
                schema:author schema:domainIncludes schema:CreativeWork ; schema:rangeIncludes schema:Person .\n\
                <http://x.org/b> a schema:Book ; schema:name \"Notes\" ; schema:author <http://x.org/ada> .\n";
    let dataset = read_text("books.ttl", text, &options()).unwrap();
    let types = &dataset.names.types;
    let author = RelationId(dataset.names.relations.get("https://schema.org/author").unwrap());
    let range: Vec<&str> = types.declared(author, Direction::Inverse).map(|of| types.label(of)).collect();
    assert_eq!(range, ["schema:Person"]);
    let works = types.entities(types.find("https://schema.org/CreativeWork").unwrap());
    assert_eq!(works, [entity(&dataset, "http://x.org/b")]);
    assert_eq!(dataset.names.label(works[0]), "Notes");
}

#[test]
fn rdf_annotations_are_notes() {
    let text = "@prefix ex: <http://example.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n\
                ex:a ex:treats ex:b {| ex:confidence 0.9 ; prov:wasDerivedFrom <http://pubmed.org/1> |} .\n\
                ex:b ex:treats ex:c .\n";
    let dataset = read_text("noted.ttl", text, &options()).unwrap();
    assert_eq!(dataset.known.facts.len(), 2);
    let note = dataset.note(dataset.known.facts[0]);
    assert_eq!((note.confidence, note.source), (Some(0.9), Some("http://pubmed.org/1")));
    // In N-Triples, what is said about a statement may stand before the statement.
    let lines = "_:n <http://example.org/confidence> \"0.25\" .\n\
                 _:n <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <http://x.org/a> <http://x.org/r> <http://x.org/b> )>> .\n\
                 <http://x.org/a> <http://x.org/r> <http://x.org/b> .\n";
    let dataset = read_text("noted.nt", lines, &options()).unwrap();
    assert_eq!(
        (dataset.known.facts.len(), dataset.known.notes.confidence(dataset.known.facts[0])),
        (1, 0.25)
    );
}

#[test]
fn a_wrong_annotation_is_an_error_wherever_it_stands() {
    let reifies = "_:n <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> \
                   <<( <http://x.org/a> <http://x.org/r> <http://x.org/b> )>> .\n";
    let fact = "<http://x.org/a> <http://x.org/r> <http://x.org/b> .\n";
    for (message, expected) in [
        (
            "confidence> \"7\"",
            "a confidence above 0 and at most 1, found 7 (_:n http://example.org/confidence)",
        ),
        (
            "date> \"soon\"",
            "a date such as 2015-06-30, or a number, as the time, found soon (_:n http://example.org/date)",
        ),
    ] {
        let message = format!("_:n <http://example.org/{message} .\n");
        for text in [format!("{fact}{message}{reifies}"), format!("{fact}{reifies}{message}")] {
            let error = read_text("noted.nt", &text, &options()).unwrap_err();
            assert!(error.starts_with("noted.nt:") && error.ends_with(expected), "{error}");
        }
    }
    // Other annotations are counted.
    let noted = format!("{fact}{reifies}_:n <http://example.org/mood> \"good\" .\n");
    let dataset = read_text("noted.nt", &noted, &options()).unwrap();
    assert_eq!(
        dataset.understood[0],
        "1 annotations of facts are left out, which are no confidence, source, time or negation (http://example.org/mood)."
    );
}

#[test]
fn one_named_graph_is_read_alone() {
    let text = "<http://x.org/a> <http://x.org/r> <http://x.org/b> <http://x.org/g> .\n\
                <http://x.org/b> <http://x.org/r> <http://x.org/c> <http://x.org/h> .\n";
    let one = ReadOptions { named_graph: Some("http://x.org/g".to_owned()), ..options() };
    let dataset = read_text("graphs.nq", text, &one).unwrap();
    assert_eq!(facts(&dataset), ["http://x.org/a http://x.org/r http://x.org/b"]);
    assert!(dataset.understood.join(" ").contains("1 statements of other named graphs"));
    assert_eq!(read_text("graphs.nq", text, &options()).unwrap().known.facts.len(), 2);
}

#[test]
fn names_with_a_few_prefixes_have_types() {
    let text: String = (0..20).map(|id| format!("Gene::{id}\tupregulates\tDisease::{}\n", id % 5)).collect();
    let dataset = read_text("part.tsv", &text, &options()).unwrap();
    assert_eq!(
        (types(&dataset, "Gene::7"), types(&dataset, "Disease::0")),
        (vec!["Gene".to_owned()], vec!["Disease".to_owned()])
    );
    assert!(
        dataset.understood[0].contains("by what their names begin with: 20 Gene, 5 Disease"),
        "{:?}",
        dataset.understood
    );
}

#[test]
fn a_header_of_sif_is_no_fact() {
    let hetionet = "source\tmetaedge\ttarget\nGene::9021\tGpBP\tBiological Process::GO:0071357\nGene::51676\tGpBP\tBiological Process::GO:0098780\n";
    let dataset = read_text("hetionet-v1.0-edges.sif", hetionet, &options()).unwrap();
    let expected =
        ["Gene::9021 GpBP Biological Process::GO:0071357", "Gene::51676 GpBP Biological Process::GO:0098780"];
    assert_eq!((facts(&dataset), dataset.findings.headers), (expected.map(str::to_owned).to_vec(), 1));
    let with = |header: Option<bool>, columns: &str| {
        let columns = (!columns.is_empty()).then(|| columns.parse().unwrap());
        ReadOptions { header, columns, ..options() }
    };
    let count = |text: &str, options: &ReadOptions| {
        facts(&read_text("net.sif", text, options).unwrap_or_else(|said| panic!("{said}")))
    };
    assert_eq!(count(hetionet, &with(Some(false), "")).len(), 3);
    // Several nodes a line behind a header; other names of columns; columns in another order; spaces.
    assert_eq!(count("a\thow\tb\nx\tr\ty\tz\n", &with(Some(true), "")), ["x r y", "x r z"]);
    assert_eq!(count("target\ttype\tsource\nx\tr\ty\n", &options()), ["y r x"]);
    assert_eq!(count("source type target\nx r y\n", &options()), ["x r y"]);
    assert_eq!(count("1\tx\ty\tr\n", &with(None, "subject=2,object=3,relation=4")), ["x r y"]);
}

#[test]
fn a_first_line_whose_names_stand_nowhere_else_is_a_header() {
    let rows: String = (0..20).map(|id| format!("d{}\ttreats\tx{}\n", id % 5, id % 7)).collect();
    let text = format!("drug\teffect\tdisease\n{rows}");
    for name in ["own.tsv", "own.csv", "own.sif"] {
        let text = if name.ends_with("csv") { text.replace('\t', ",") } else { text.clone() };
        let dataset = read_text(name, &text, &options()).unwrap();
        assert_eq!((dataset.known.facts.len(), dataset.names.entities.len()), (20, 12), "{name}");
        assert_eq!((dataset.names.relations.len(), facts(&dataset)[0].as_str()), (1, "d0 treats x0"));
        let said = dataset.understood.join(" ");
        assert!(
            said.starts_with(&format!(
                "{name}: the first line (drug, effect, disease) is taken for a header"
            )),
            "{said}"
        );
        let kept = ReadOptions { header: Some(false), ..options() };
        assert_eq!(read_text(name, &text, &kept).unwrap().known.facts.len(), 21);
    }
    // In every split, even a short one. What stands elsewhere is a name.
    let split = folder(&[("train.tsv", &text), ("valid.tsv", "drug\teffect\tdisease\nd0\ttreats\tx3\n")]);
    let dataset = read(split.path(), &options()).unwrap();
    assert_eq!(
        (dataset.known.facts.len(), dataset.known.valid.len(), dataset.names.entities.len()),
        (20, 1, 12)
    );
    for text in [
        format!("{text}drug\ttreats\tx1\n"),
        format!("drug\ttreats\tdisease\n{rows}"),
        format!("d9\teffect\tx9\n{rows}"),
    ] {
        assert_eq!(read_text("own.tsv", &text, &options()).unwrap().findings.headers, 0, "{text}");
    }
}

#[test]
fn conflicts_are_found_by_the_options_of_reading_and_settled_if_that_is_asked() {
    let train = "n\tfrom_what\thow\tto_what\n1\ta\tr\tb\n2\tb\tr\tc\n3\tc\tr\ta\n";
    let negatives = "n\tfrom_what\thow\tto_what\n1\ta\tr\tc\n2\tb\tr\tc\n";
    let given = folder(&[("train.tsv", train), ("negatives.tsv", negatives)]);
    let columns = Some("subject=from_what,relation=how,object=to_what".parse().unwrap());
    let with = |conflicts| ReadOptions { columns: columns.clone(), conflicts, ..options() };
    let said = read(given.path(), &with(Conflicts::Error)).unwrap_err().to_string();
    assert!(said.contains("negatives.tsv:3: expected") && said.ends_with("train.tsv:3"), "{said}");
    let counts = |conflicts| {
        let dataset = read(given.path(), &with(conflicts)).unwrap();
        let said = dataset.understood.join(" ");
        assert!(said.contains("1 facts that are also known to be false are"), "{said}");
        (dataset.known.facts.len(), dataset.known.queries.len(), dataset.known.negatives.len())
    };
    assert_eq!(counts(Conflicts::Drop), (2, 2, 1));
    assert_eq!(counts(Conflicts::Facts), (3, 3, 1));
    assert_eq!(counts(Conflicts::Negatives), (2, 2, 2));
    // A file of lines of RDF has lines, too.
    let line = |a: &str, b: &str| format!("<http://x.org/{a}> <http://x.org/r> <http://x.org/{b}> .\n");
    let train = ["# comment\n".to_owned(), line("a", "b"), line("b", "c")].concat();
    let given = folder(&[("train.nt", &train), ("negatives.nt", &line("b", "c"))]);
    let said = read(given.path(), &options()).unwrap_err().to_string();
    assert!(said.contains("negatives.nt:1: expected") && said.ends_with("train.nt:3"), "{said}");
}

#[test]
fn rdf_annotations_may_deny_a_fact() {
    let text = "@prefix ex: <http://example.org/> .\n\
                ex:a ex:treats ex:b {| ex:negated true |} .\nex:b ex:treats ex:c {| ex:negated false |} .\n";
    let dataset = read_text("denied.ttl", text, &options()).unwrap();
    let named = |fact: Triple| (dataset.names.entity(fact.head), dataset.names.entity(fact.tail));
    assert_eq!(
        dataset.known.facts.iter().map(|&fact| named(fact)).collect::<Vec<_>>(),
        [("http://example.org/b", "http://example.org/c")]
    );
    assert_eq!(
        dataset.known.negatives.iter().map(|&fact| named(fact)).collect::<Vec<_>>(),
        [("http://example.org/a", "http://example.org/b")]
    );
}

#[test]
fn statements_of_older_rdf_are_annotations() {
    let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    let text = format!(
        "@prefix ex: <http://example.org/> .\n@prefix rdf: <{rdf}> .\n\
         ex:a ex:treats ex:b .\nex:b ex:treats ex:c .\n\
         _:early ex:confidence 0.5 .\n\
         _:early a rdf:Statement ; rdf:subject ex:a ; rdf:predicate ex:treats ; rdf:object ex:b .\n\
         ex:s1 rdf:object ex:c ; rdf:predicate ex:treats ; rdf:subject ex:b ; ex:source \"PMID:1\" .\n\
         ex:s1 a rdf:Statement .\n\
         ex:s2 a rdf:Statement ; rdf:subject ex:a ; rdf:predicate ex:height ; rdf:object 1.65 ; ex:source \"tape\" .\n"
    );
    let dataset = read_text("old.ttl", &text, &options()).unwrap();
    let notes: Vec<Note> = dataset.known.facts.iter().map(|&fact| dataset.note(fact)).collect();
    assert_eq!((notes.len(), notes[0].confidence, notes[1].source), (2, Some(0.5), Some("PMID:1")));
    let said = dataset.understood.join(" ");
    assert!(said.contains("1 of rdf:Statement are left out"), "{said}");
    assert_eq!(dataset.names.entities.len(), 3);
}
