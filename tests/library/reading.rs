//! Reading: every format says the same, whatever its line ends, packing and the number of threads.

use proptest::prelude::*;
use ruleguider::graph::{
    Dataset, Literals, Names, ReadOptions, Triple, read, read_file, write_dataset, write_file,
};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

const LINES: &str = "ada\tparent_of\tben\nben\tsibling_of\tcleo\nada\tparent_of\tcleo\n";

fn named(names: &Names, facts: &[Triple]) -> Vec<[String; 3]> {
    facts
        .iter()
        .map(|t| [names.entity(t.head), names.relation(t.relation), names.entity(t.tail)].map(str::to_owned))
        .collect()
}

fn read_named(path: &Path) -> Vec<[String; 3]> {
    let (names, facts, _) =
        read_file(path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    named(&names, &facts)
}

fn naive(text: &str) -> Vec<[String; 3]> {
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>().try_into().expect("three fields"))
        .collect()
}

#[test]
fn line_ends_marks_and_packing_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(LINES.as_bytes()).unwrap();
    let variants = [
        file("plain.txt", LINES.as_bytes()),
        file("no_last_newline.tsv", LINES.trim_end().as_bytes()),
        file("crlf.txt", LINES.replace('\n', "\r\n").as_bytes()),
        file("mark.txt", format!("\u{feff}{LINES}").as_bytes()),
        file("blank_lines.txt", format!("\n{}\n", LINES.replace('\n', "\n\n")).as_bytes()),
        file("packed.txt.gz", &gzip.finish().unwrap()),
        file("packed.tsv.zst", &zstd::encode_all(LINES.as_bytes(), 1).unwrap()),
        file("commas.csv", LINES.replace('\t', ",").as_bytes()),
        file(
            "header.csv",
            format!("\u{feff}Subject,Predicate,Object\n{}", LINES.replace('\t', ",")).as_bytes(),
        ),
        file(
            "quoted.csv",
            "\"ada\",parent_of,\"ben\"\r\nben,sibling_of,cleo\r\nada,parent_of,cleo\r\n".as_bytes(),
        ),
    ];
    for path in variants {
        assert_eq!(read_named(&path), naive(LINES), "{}", path.display());
    }
}

#[test]
fn a_header_can_be_forced_or_denied() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, told) in [
        ("x.csv", "head,relation,tail\na,r,b\n", 1),
        ("x.tsv", "\u{feff}head\trelation\ttail\r\na\tr\tb\n", 1),
        ("blank.tsv", "\n\r\nSource\tType\tTarget\na\tr\tb", 1),
        // A fact of a small example rather than a header.
        ("h.tsv", "h\tr\tt\na\tr\tb\n", 2),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let count = |header| read_file(&path, &ReadOptions { header, ..Default::default() }).unwrap().1.len();
        assert_eq!((count(None), count(Some(true)), count(Some(false))), (told, 1, 2), "{name}");
    }
}

#[test]
fn a_header_may_put_the_columns_in_another_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    for (header, line) in [("source,target,type", "a,b,r"), ("Predicate,Object,Subject_ID", "r,b,a")] {
        let commas = format!("{header}\n{line}\n");
        let tabs = folder.path().join("x.tsv");
        fs::write(&tabs, commas.replace(',', "\t")).unwrap();
        fs::write(&path, commas).unwrap();
        for path in [&path, &tabs] {
            assert_eq!(read_named(path), naive("a\tr\tb"), "{header}");
            let options = ReadOptions { header: Some(false), ..Default::default() };
            assert_eq!(read_file(path, &options).unwrap().1.len(), 2, "{header}");
        }
    }
    // Other columns beside them are no matter, if every record has them.
    fs::write(&path, "id,source,weight,target,type\n1,a,0.5,b,r\n").unwrap();
    assert_eq!(read_named(&path), naive("a\tr\tb"));
    fs::write(&path, "id,source,weight,target,type\n1,a,0.5,b\n").unwrap();
    let message = read_file(&path, &ReadOptions::default()).err().unwrap().to_string();
    assert!(message.ends_with(":2: expected 5 comma-separated fields, found 4"), "{message}");
    // The same in TSV: the edges of KGX, and Hetionet's own header.
    let tabs = folder.path().join("edges.tsv");
    let kgx = "id\tsubject\tpredicate\tobject\tcategory\n1\ta\tr\tb\tx\n";
    for text in [kgx, "source\tmetaedge\ttarget\na\tr\tb\n", "id\tsubject\tpredicate\tobject\n\ta\tr\tb\n"] {
        fs::write(&tabs, text).unwrap();
        assert_eq!(read_named(&tabs), naive("a\tr\tb"), "{text}");
    }
    for (line, found) in [("1\ta\tr\tb", "4 instead of 5"), ("1\ta\t\tb\tx", "an empty relation")] {
        fs::write(&tabs, format!("id\tsubject\tpredicate\tobject\tcategory\n{line}\n")).unwrap();
        let message = read_file(&tabs, &ReadOptions::default()).err().unwrap().to_string();
        assert!(message.contains(":2: expected") && message.ends_with(found), "{message}");
    }
    // A fact of such names is written so that it is read as one.
    let options = ReadOptions { header: Some(false), ..Default::default() };
    fs::write(&path, "source,type,target\na,r,b\n").unwrap();
    let (names, facts, _) = read_file(&path, &options).unwrap();
    let tabs = folder.path().join("back.tsv");
    write_file(&tabs, &names, &facts).unwrap();
    assert_eq!(read_named(&tabs), naive("source\ttype\ttarget\na\tr\tb"));
    // What the names do not tell stays in its order.
    fs::write(&path, "from where,how,where to\na,r,b\n").unwrap();
    let (names, facts, _) =
        read_file(&path, &ReadOptions { header: Some(true), ..Default::default() }).unwrap();
    assert_eq!(named(&names, &facts), naive("a\tr\tb"));
}

#[test]
fn nothing_is_said_of_a_header_where_there_can_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nt.gz");
    fs::write(&path, "").unwrap();
    for header in [true, false] {
        let options = ReadOptions { header: Some(header), ..Default::default() };
        let message = read_file(&path, &options).err().map(|error| error.to_string()).unwrap();
        assert!(
            message.contains("expected a TSV or CSV file (other formats have no header), found"),
            "{message}"
        );
    }
}

#[test]
fn a_bad_line_is_reported_even_if_the_file_is_cut_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tsv.gz");
    for (bad, message) in
        [("two\tfields\n", ":2: expected 3 tab"), ("h\tr\tt\n", "expected more of the file")]
    {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        write!(gzip, "a\tr\tb\n{bad}").unwrap();
        for i in 0..20_000u64 {
            writeln!(gzip, "e{}\tr\te{}", i * 7919 % 10_007, i * 104_729 % 9_973).unwrap();
        }
        let packed = gzip.finish().unwrap();
        fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        let error = read_file(&path, &ReadOptions::default()).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn formats_convert_into_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let odd = "Ada Lovelace\tknows, well\t\"five\"@en\n_:b1\thttp://example.org/r\thttp://example.org/ü?x=1\n100%\t<r>\t;\n";
    let source = folder.path().join("source.tsv");
    fs::write(&source, odd).unwrap();
    let (names, facts, _) = read_file(&source, &ReadOptions::default()).unwrap();
    for ending in
        ["tsv", "csv", "nt", "ttl", "nq", "rdf", "csv.gz", "nt.zst", "txt.gz", "parquet", "parquet.gz"]
    {
        let path = folder.path().join(format!("copy.{ending}"));
        write_file(&path, &names, &facts).unwrap_or_else(|error| panic!("{ending}: {error}"));
        // One of the names is a literal in RDF, where literals are no entities unless that is asked for.
        let options = ReadOptions { literals: Literals::Keep, ..ReadOptions::default() };
        let (copy_names, copy, _) = read_file(&path, &options).unwrap_or_else(|e| panic!("{e}"));
        // Blank node labels are a file's own; the rest must be the same.
        let strip = |facts: Vec<[String; 3]>| -> BTreeSet<[String; 3]> {
            facts
                .into_iter()
                .map(|fact| fact.map(|n| if n.starts_with("_:") { "_:".into() } else { n }))
                .collect()
        };
        assert_eq!(strip(named(&copy_names, &copy)), strip(naive(odd)), "{ending}");
    }
}

/// A Parquet file of the fuzzing corpus (made by PyArrow), which begins with a byte of the fuzzer's own.
fn parquet(folder: &Path, name: &str) -> std::path::PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/parquet").join(name);
    let path = folder.join(format!("{name}.parquet"));
    let bytes = fs::read(&corpus).expect("a file of the corpus");
    fs::write(&path, &bytes[1..]).expect("a temporary file");
    path
}

#[test]
fn columns_are_found_by_name_or_by_order_whatever_their_pages() {
    let folder = tempfile::tempdir().unwrap();
    let expected = naive(&format!("{LINES}dora\tparent_of\tada\n"));
    for name in [
        "snappy",
        "no_dictionary",
        "gzip_pages",
        "zstd_pages_v2",
        "lz4_pages",
        "groups_of_two",
        "other_order_more_columns",
    ] {
        assert_eq!(read_named(&parquet(folder.path(), name)), expected, "{name}");
    }
    let numbers = read_named(&parquet(folder.path(), "numbers"));
    assert_eq!(numbers, naive("1\t7\t2\n2\t8\t3\n3\t7\t1\n"));
    assert!(read_named(&parquet(folder.path(), "no_rows")).is_empty());
}

#[test]
fn a_parquet_file_that_holds_no_facts_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let message = |path: &Path| {
        let error = read_file(path, &ReadOptions::default()).err().expect("no facts").to_string();
        error.strip_prefix(&path.display().to_string()).expect("the file first").to_owned()
    };
    let of = |name: &str| message(&parquet(folder.path(), name));
    assert_eq!(of("empty_value"), ":2: expected a name in each of the 3 columns, found no head");
    assert_eq!(
        of("only_two_columns"),
        ": expected columns called head, relation and tail, or only three, found head, tail"
    );
    let lists = of("lists");
    assert!(lists.starts_with(": expected text or numbers in the column head.list"), "{lists}");
    let brotli = of("brotli_pages");
    assert!(brotli.starts_with(": expected a Parquet file, found an error: "), "{brotli}");
    let text = folder.path().join("text.parquet");
    fs::write(&text, LINES).unwrap();
    assert!(message(&text).starts_with(": expected a Parquet file, found an error: "), "{}", message(&text));
}

#[test]
fn ids_do_not_depend_on_the_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.tsv");
    // Some 15 MB: several blocks.
    let text: String = (0..600_000u64)
        .map(|i| format!("entity_{}\tr{}\tentity_{}\n", i * 7919 % 200_003, i % 17, i * 104_729 % 99_991))
        .collect();
    fs::write(&path, &text).unwrap();
    let read_with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (names, facts, _) = pool.install(|| read_file(&path, &ReadOptions::default())).unwrap();
        (names.entities.iter().map(str::to_owned).collect::<Vec<_>>(), facts)
    };
    let one = read_with(1);
    assert_eq!(one.1.len(), 600_000);
    assert_eq!(one, read_with(2));
    assert_eq!(one, read_with(5));
    let mut seen = std::collections::HashSet::new();
    let first_seen: Vec<String> = naive(&text)
        .into_iter()
        .flat_map(|[h, _, t]| [h, t])
        .filter(|name| seen.insert(name.clone()))
        .collect();
    assert_eq!(one.0, first_seen);
}

#[test]
fn a_bad_line_far_down_is_named_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.tsv");
    let mut lines: Vec<String> = (0..400_000).map(|i| format!("entity_{i}\tr\tentity_{}", i / 2)).collect();
    lines[333_332] = "broken".to_owned();
    lines[390_000] = "broken too".to_owned();
    fs::write(&path, lines.join("\n")).unwrap();
    let error = read_file(&path, &ReadOptions::default()).err().expect("an error").to_string();
    assert!(error.ends_with("many.tsv:333333: expected 3 tab-separated fields, found 1"), "{error}");
}

#[test]
fn a_single_file_is_divided_by_its_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.tsv");
    let text: String = (0..500).map(|i| format!("e{}\tr{}\te{}\n", i % 40, i % 3, (i * 7) % 40)).collect();
    fs::write(&path, &text).unwrap();
    let with = |seed| read(&path, &ReadOptions { seed, ..Default::default() }).unwrap();
    let (a, again, other) = (with(1), with(1), with(2));
    assert_eq!(a.test, again.test);
    assert_ne!(a.test, other.test);
    let all = a.known.facts.len() + a.known.valid.len() + a.test.len();
    assert_eq!(all + a.findings.duplicates, 500);
    assert_eq!(a.known.valid.len(), (all as f64 * 0.1).round() as usize);
}

fn small_dataset(folder: &Path) -> Dataset {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("writable");
    write("graph.tsv", "a\tr\tb\nb\tr\tc\nc\ts\ta\na\tr\tb\n");
    write("train.tsv", "a\tr\tb\n");
    write("valid.tsv", "d\tr\ta\n");
    write("test.tsv", "d\ts\tb\nb\tr\tc\n");
    write("test_with_unseen.tsv", "d\ts\tb\nnobody\tr\ta\nb\tr\tc\n");
    write("entity_labels.tsv", "a\tAda\nnot_there\tNobody\n");
    read(folder, &ReadOptions::default()).expect("a good data set")
}

#[test]
fn a_graph_of_its_own_stays_apart_from_the_queries() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = small_dataset(folder.path());
    assert_eq!((dataset.known.facts.len(), dataset.known.queries.len()), (3, 1));
    assert!(dataset.known.has_own_graph());
    let findings = dataset.findings;
    assert_eq!((findings.duplicates, findings.test_in_train, findings.labels_unused), (1, 1, 1));
    assert_eq!((findings.valid_unseen, findings.test_unseen), (1, 1));
    assert_eq!(dataset.test_left_out.len(), 1);
    let for_test = dataset.known.for_test();
    assert_eq!((for_test.facts.len(), for_test.queries.len()), (4, 2));
    let a = dataset.names.entities.get("a").map(ruleguider::graph::EntityId).unwrap();
    assert_eq!(dataset.names.label(a), "Ada");
}

#[test]
fn a_data_set_written_and_read_is_the_same() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dataset = small_dataset(folder.path());
    write_dataset(copy.path(), "csv.gz", &dataset).unwrap();
    let back = read(copy.path(), &ReadOptions::default()).unwrap();
    let tell = |d: &Dataset| {
        [&d.known.facts, &d.known.queries, &d.known.valid, &d.test, &d.test_left_out]
            .map(|s| named(&d.names, s))
    };
    assert_eq!(tell(&back), tell(&dataset));
    assert_eq!(back.names.labels, dataset.names.labels);
}

#[test]
fn a_data_set_written_over_another_leaves_nothing_of_it() {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut dataset = small_dataset(folder.path());
    write_dataset(copy.path(), "csv", &dataset).unwrap();
    for name in ["NOTES.md", "train.log", "training.tsv"] {
        fs::write(copy.path().join(name), "").unwrap();
    }
    dataset.known.facts = dataset.known.queries.clone();
    dataset.test_left_out = [].into();
    std::sync::Arc::make_mut(&mut dataset.names).labels.clear();
    write_dataset(copy.path(), "tsv", &dataset).unwrap();
    let mut left: Vec<_> = fs::read_dir(copy.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(
        left,
        ["NOTES.md", "splits.sha256", "test.tsv", "train.log", "train.tsv", "training.tsv", "valid.tsv"]
    );
    assert!(!read(copy.path(), &ReadOptions::default()).unwrap().known.has_own_graph());
}

proptest! {
    #[test]
    fn any_lines_read_as_they_stand(
        lines in prop::collection::vec(("[a-cé ]{1,3}", "[rs]", "[a-c\u{1F600}]{1,2}"), 1..40)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tsv");
        let text: String = lines.iter().map(|(h, r, t)| format!("{h}\t{r}\t{t}\n")).collect();
        fs::write(&path, &text).unwrap();
        prop_assert_eq!(read_named(&path), naive(&text));
    }
}
