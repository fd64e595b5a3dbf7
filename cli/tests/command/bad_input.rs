//! Data that is wrong: each case ends in one line on stderr that names the place, exit code 2, nothing on stdout.

use crate::tool::Tool;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

fn ruleguider(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ruleguider"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

/// What a failing call says, with its exit code in front.
fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = ruleguider(folder, arguments);
    let message = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "data on stdout in spite of: {message}");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    format!("exit {}: {}", output.status.code().expect("an exit code"), message.trim_end())
}

/// A folder of three good splits, then changed by `spoil`; what `stats` says of it.
fn stats_after(spoil: impl FnOnce(&Path)) -> String {
    said_after(spoil, &["stats", "."])
}

/// The same of a verb that needs all splits.
fn mine_after(spoil: impl FnOnce(&Path)) -> String {
    said_after(spoil, &["mine", ".", "--out", "rules.tsv"])
}

fn said_after(spoil: impl FnOnce(&Path), arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let facts: String = (0..30).map(|i| format!("e{}\tr{}\te{}\n", i % 7, i % 3, i % 5)).collect();
    for split in ["train", "valid", "test"] {
        fs::write(folder.path().join(format!("{split}.txt")), &facts).expect("writable");
    }
    spoil(folder.path());
    complaint(folder.path(), arguments)
}

fn train(folder: &Path) -> std::path::PathBuf {
    folder.join("train.txt")
}

#[test]
fn a_line_with_too_few_fields_names_its_place() {
    let message = stats_after(|folder| {
        let mut lines: Vec<String> =
            fs::read_to_string(train(folder)).unwrap().lines().map(str::to_owned).collect();
        lines[16] = "e1\tr1".to_owned();
        fs::write(train(folder), lines.join("\n")).unwrap();
    });
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt:17: expected 3 tab-separated fields, found 2");
}

#[test]
fn too_many_fields_and_empty_fields() {
    let message = stats_after(|folder| fs::write(train(folder), "a\tr\tb\na\tr\tb\tc\n").unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt:2: expected 3 tab-separated fields, found 4");
    let message = stats_after(|folder| fs::write(train(folder), "a\tr\tb\n\na\t\tb\n").unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt:3: expected 3 fields with text in them, found an empty relation");
    let message = stats_after(|folder| fs::write(train(folder), "a r\n").unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt:1: expected 3 tab-separated fields, found 1");
}

#[test]
fn invalid_utf8_names_the_byte() {
    let message = stats_after(|folder| fs::write(train(folder), b"a\tr\tb\nc\tr\t\xff\n").unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt:2: expected UTF-8 text, found the byte 0xff");
}

#[test]
fn missing_and_empty_splits() {
    let message = mine_after(|folder| fs::remove_file(folder.join("valid.txt")).unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: .: expected a file valid.txt, valid.tsv.gz, valid.nt or the like, found test.txt, train.txt");
    let message = mine_after(|folder| fs::write(folder.join("test.txt"), "").unwrap());
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./test.txt:1: expected at least one fact, found none");
    let message = stats_after(|folder| {
        fs::copy(train(folder), folder.join("train.csv")).unwrap();
    });
    insta::assert_snapshot!(message, @"exit 2: ruleguider: .: expected one file for the split train, found train.csv, train.txt");
}

#[test]
fn unreadable_files_and_wrong_endings() {
    let folder = tempfile::tempdir().unwrap();
    let message = complaint(folder.path(), &["stats", "nowhere"]);
    insta::assert_snapshot!(message, @"exit 2: ruleguider: nowhere: cannot be read: No such file or directory (os error 2)");
    fs::write(folder.path().join("triples.docx"), "x").unwrap();
    let message = complaint(folder.path(), &["stats", "triples.docx"]);
    insta::assert_snapshot!(message, @"exit 2: ruleguider: triples.docx: expected one of the extensions .txt, .tsv, .csv, .sif, .nt, .ttl, .nq, .trig, .rdf, .owl, .n3, .parquet, each also with .gz, .zst or .bz2, found .docx");
    let message = stats_after(|folder| {
        fs::remove_file(train(folder)).unwrap();
        fs::create_dir(train(folder)).unwrap();
    });
    insta::assert_snapshot!(message, @"exit 2: ruleguider: ./train.txt: expected a file of triples, found a folder");
}

#[test]
fn a_gzip_stream_that_breaks_off() {
    let message = stats_after(|folder| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        for i in 0..20_000u64 {
            writeln!(packer, "e{}\tr\te{}", i * 7919 % 10_007, i * 104_729 % 9_973).unwrap();
        }
        let packed = packer.finish().unwrap();
        fs::remove_file(train(folder)).unwrap();
        fs::write(folder.join("train.txt.gz"), &packed[..packed.len() / 2]).unwrap();
    });
    assert!(message.starts_with("exit 2: ruleguider: ./train.txt.gz:"), "{message}");
    assert!(message.contains("expected more of the file, found an error"), "{message}");
}

#[test]
fn bad_csv_and_bad_rdf() {
    let spoil = |name: &'static str, text: &'static str| {
        stats_after(move |folder| {
            fs::remove_file(train(folder)).unwrap();
            fs::write(folder.join(name), text).unwrap();
        })
    };
    insta::assert_snapshot!(spoil("train.csv", "head,relation,tail\na,r,b\na,r\n"), @"exit 2: ruleguider: ./train.csv:3: expected 3 comma-separated fields, found 2");
    insta::assert_snapshot!(spoil("train.csv", "a,r,b\nd,r,\"e\nf,r,g\nh,r,i\n"), @"exit 2: ruleguider: ./train.csv:2: expected a quote that closes the last field, found the end of the file");
    insta::assert_snapshot!(spoil("train.csv", "a,r,b\n\0\nc,r,d\n"), @"exit 2: ruleguider: ./train.csv:2: expected 3 comma-separated fields, found 1");
    insta::assert_snapshot!(spoil("train.csv", "a,r,\n"), @"exit 2: ruleguider: ./train.csv:1: expected 3 fields with text in them, found an empty tail");
    insta::assert_snapshot!(spoil("train.nt", "<http://a> <http://r> <http://b> .\n<http://a> <http://r> .\n"), @"exit 2: ruleguider: ./train.nt:2: expected an RDF statement, found an error: Parser error at line 2 column 23: The object of a triple must be an IRI, a blank node or a literal");
}

#[test]
fn shares_that_do_not_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let output = ruleguider(folder.path(), &["stats", "x.tsv", "--split", "0.5,0.5,0.5"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("add up to 1"), "{message}");
}

#[test]
fn a_file_too_small_to_divide() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.tsv"), "a\tr\tb\n").unwrap();
    let message = complaint(folder.path(), &["mine", "tiny.tsv", "--out", "rules.tsv"]);
    insta::assert_snapshot!(message, @"exit 2: ruleguider: tiny.tsv: expected enough facts to hold some out for validation and test, found 1 facts, of which 0 can be held out");
}

#[test]
fn nothing_half_written_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.tsv"), "a\tr\tb\nbroken\n").unwrap();
    fs::write(folder.path().join("tab.csv"), "\"a\tb\",r,c\n").unwrap();
    let message = complaint(folder.path(), &["convert", "bad.tsv", "out.nt"]);
    insta::assert_snapshot!(message, @"exit 2: ruleguider: bad.tsv:2: expected 3 tab-separated fields, found 1");
    let message = complaint(folder.path(), &["convert", "tab.csv", "out.tsv"]);
    insta::assert_snapshot!(message, @r#"exit 2: ruleguider: out.tsv: expected names without tabs or line breaks (or the extension .csv), found "a\tb""#);
    let message = complaint(folder.path(), &["convert", "tab.csv", "bad.tsv"]);
    insta::assert_snapshot!(message, @"exit 2: ruleguider: bad.tsv: already exists; --force overwrites it");
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bad.tsv", "tab.csv"]);
}

/// A path need not be UTF-8, but what a run records has to be.
#[cfg(unix)]
#[test]
fn data_below_a_path_that_is_not_utf8_is_refused_where_it_must_be_recorded() {
    use std::os::unix::ffi::OsStrExt;
    let tool = Tool::new();
    let folder = tool.folder.path().join(std::ffi::OsStr::from_bytes(b"lat\xe9"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("fam.tsv"), facts(40)).unwrap();
    let within = |arguments: &[&str]| {
        let output = tool.command(arguments).current_dir(&folder).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = within(&["run", "fam.tsv", "--quiet", "--set", "system=rules", "--out", "out"]);
    assert_eq!((code, message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains("this path is not UTF-8"), "{message}");
    assert!(!folder.join("out").exists());
    assert_eq!(within(&["stats", "fam.tsv", "--quiet"]).0, Some(0));
}

fn facts(count: usize) -> String {
    (0..count).map(|i| format!("x{i}\tlikes\ty{i}\n")).collect()
}
