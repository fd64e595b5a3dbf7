//! Rule files: one rule per line, `predicted<TAB>correct<TAB>confidence<TAB>head <= body`, as AnyBURL and PyClause
//! write and read them.
//!
//! The third field is `correct / predicted`, unsmoothed. Counts that were estimated from a sample are marked there:
//! their confidence is written with an exponent (`1.25e-1`), which every reader of numbers accepts. A file is written
//! to a temporary file and renamed, so that an interruption never leaves a partial one.

use super::RuleError;
use super::clause::{Counts, ScoredRule};
use super::text::{self, Malformed, Parsed, Vocabularies};
use rayon::prelude::*;
use ruleguider_graph::{Compression, EntityId, Names, write_packed};
use ruleguider_support::shown::shortened;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// Lines that a thread reads at a time.
const BLOCK: usize = 4096;
/// How much of a file is in memory at once, unless a line is longer.
const PIECE: usize = 32 << 20;
/// The longest line, the same as for lines of facts.
const LONGEST_LINE: usize = 16 << 20;
const TOO_LONG: &str = "expected a rule, found a line of more than 16 MB";

/// The position of some lines: the file, and how many lines precede them.
struct Place<'a> {
    path: &'a Path,
    lines: usize,
}

impl Place<'_> {
    /// An error in one of the lines, counted from 0.
    fn malformed(&self, line: usize, column: usize, message: String) -> RuleError {
        RuleError::Malformed { path: self.path.to_owned(), line: self.lines + line + 1, column, message }
    }
}

/// The rules of a file.
#[derive(Clone, Debug, Default)]
pub struct RuleFile {
    /// The rules, in the order of their lines.
    pub rules: Vec<ScoredRule>,
    /// How many lines were AnyBURL's rules about entities related to themselves (`me_myself_i`), which do not
    /// predict other entities and were left out.
    pub reflexive: usize,
    /// How many rules name an entity or a relation that the data lacks, and were left out: they predict nothing in
    /// it.
    pub unknown: usize,
    /// The position of the first of them, and what it names.
    pub first_unknown: Option<String>,
}

impl RuleFile {
    /// Reads a rule file, plain or compressed (`.gz`, `.zst`). Rules that name entities or relations the data lacks
    /// are left out and counted.
    ///
    /// # Errors
    /// If the file cannot be read or a line is malformed; the message names file, line and column.
    pub fn read(path: &Path, names: &Names) -> Result<Self, RuleError> {
        let unreadable = |source| RuleError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let mut source = Compression::of(path).unpack(file).map_err(unreadable)?;
        Self::read_from(&mut source, path, names)
    }

    /// Reads uncompressed rules from `source`; `path` is the file's name in messages.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_from(source: &mut dyn Read, path: &Path, names: &Names) -> Result<Self, RuleError> {
        let unreadable = |source| RuleError::Unreadable { path: path.to_owned(), source };
        let known = Vocabularies::new(names);
        let (mut whole, mut bytes, mut lines) = (RuleFile::default(), Vec::new(), 0);
        loop {
            let had = bytes.len();
            let read = (&mut *source).take(PIECE as u64).read_to_end(&mut bytes).map_err(unreadable)?;
            // All complete lines; at the end of the file the last line is complete too.
            let end = if read == 0 { Some(had) } else { memchr::memrchr(b'\n', &bytes).map(|at| at + 1) };
            let place = Place { path, lines };
            match end {
                Some(end) => lines += whole.add_bytes(&bytes[..end], &place, &known)?,
                None if bytes.len() > LONGEST_LINE => return Err(place.malformed(0, 1, TOO_LONG.to_owned())),
                None => continue,
            }
            bytes.drain(..end.unwrap_or(0));
            if read == 0 {
                return Ok(whole);
            }
        }
    }

    /// Reads rules from text that is already in memory; `path` is the file's name in messages.
    ///
    /// # Errors
    /// If a line is malformed; the message names line and column.
    pub fn parse(text: &str, path: &Path, names: &Names) -> Result<Self, RuleError> {
        let mut whole = RuleFile::default();
        whole.add_text(text, &Place { path, lines: 0 }, &Vocabularies::new(names))?;
        Ok(whole)
    }

    /// Adds the lines of `bytes`. Returns how many there are.
    fn add_bytes(
        &mut self,
        bytes: &[u8],
        place: &Place<'_>,
        known: &Vocabularies<'_>,
    ) -> Result<usize, RuleError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.add_text(text, place, known),
            Err(error) => {
                let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
                let line_at = valid.rfind('\n').map_or(0, |at| at + 1);
                // An error in an earlier line is reported first.
                let lines = self.add_text(&valid[..line_at], place, known)?;
                let message = format!("expected UTF-8 text, found the byte 0x{:02x}", bytes[valid.len()]);
                Err(place.malformed(lines, valid[line_at..].chars().count() + 1, message))
            }
        }
    }

    /// Adds the lines of `text`. Returns how many there are.
    fn add_text(
        &mut self,
        text: &str,
        place: &Place<'_>,
        known: &Vocabularies<'_>,
    ) -> Result<usize, RuleError> {
        let lines: Vec<&str> = text.lines().collect();
        let block = |(number, lines): (usize, &[&str])| {
            let mut rules = RuleFile::default();
            for (at, line) in lines.iter().enumerate() {
                let Err(Malformed { at: byte, message, unknown }) = rules.add_line(line, known) else {
                    continue;
                };
                let column = line[..byte].chars().count() + 1;
                let malformed = place.malformed(number * BLOCK + at, column, message);
                if !unknown {
                    return Err(malformed);
                }
                rules.unknown += 1;
                rules.first_unknown.get_or_insert_with(|| malformed.to_string());
            }
            Ok(rules)
        };
        let blocks: Vec<Result<Self, RuleError>> = lines.par_chunks(BLOCK).enumerate().map(block).collect();
        for block in blocks {
            let RuleFile { rules, reflexive, unknown, first_unknown } = block?;
            self.rules.extend(rules);
            self.reflexive += reflexive;
            self.unknown += unknown;
            self.first_unknown = self.first_unknown.take().or(first_unknown);
        }
        Ok(lines.len())
    }

    fn add_line(&mut self, line: &str, known: &Vocabularies<'_>) -> Result<(), Malformed> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.len() > LONGEST_LINE {
            return Err(Malformed::new(0, TOO_LONG));
        }
        if line.is_empty() {
            return Ok(());
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [predicted, correct, confidence, rule] = fields[..] else {
            let message = format!(
                "expected 4 tab-separated fields (predicted, correct, confidence, rule), found {}",
                fields.len()
            );
            return Err(Malformed::new(0, message));
        };
        let (correct_at, confidence_at) = (predicted.len() + 1, predicted.len() + correct.len() + 2);
        let counts = Counts {
            predicted: count(predicted, 0, "predictions")?,
            correct: count(correct, correct_at, "correct predictions")?,
            sampled: confidence.contains('e'),
        };
        if counts.correct > counts.predicted {
            let message = format!("{correct} correct predictions of {predicted} is impossible");
            return Err(Malformed::new(correct_at, message));
        }
        if !confidence.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number)) {
            let message = format!("expected a confidence from 0 to 1, found `{}`", shortened(confidence));
            return Err(Malformed::new(confidence_at, message));
        }
        let rule_at = confidence_at + confidence.len() + 1;
        let parsed = text::parse(rule, known).map_err(|wrong| {
            // Text without the form of a rule does not count as a rule about something unknown.
            let unknown = wrong.unknown && rule.contains(text::IMPLIED_BY);
            Malformed { at: wrong.at + rule_at, unknown, ..wrong }
        })?;
        match parsed {
            Parsed::Rule(rule) => self.rules.push(ScoredRule { rule, counts }),
            Parsed::Reflexive => self.reflexive += 1,
        }
        Ok(())
    }
}

fn count(field: &str, at: usize, what: &str) -> Result<u64, Malformed> {
    field
        .parse()
        .map_err(|_| format!("expected the number of {what}, found `{}`", shortened(field)))
        .map_err(|message| Malformed::new(at, message))
}

/// Writes `rules` to `path`, compressed if the name ends in `.gz` or `.zst`.
///
/// # Errors
/// If the file cannot be written. The previous file at `path` is then untouched.
pub fn write_rules(path: &Path, rules: &[ScoredRule], names: &Names) -> Result<(), RuleError> {
    write_packed(path, |out| write_lines(out, rules, names))
        .map_err(|source| RuleError::Unwritable { path: path.to_owned(), source })
}

/// Writes `rules` as the lines of a rule file.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_lines(out: &mut dyn Write, rules: &[ScoredRule], names: &Names) -> std::io::Result<()> {
    let mut line = String::new();
    for scored in rules {
        line.clear();
        rule_line(&scored.counts, &rule_text(&scored.rule, names), &mut line);
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// Appends the line of the rule with this text to `line`, without a line break.
pub(super) fn rule_line(counts: &Counts, text: &str, line: &mut String) {
    use std::fmt::Write;
    let Counts { predicted, correct, sampled } = *counts;
    let confidence = if predicted == 0 { 0.0 } else { correct as f64 / predicted as f64 };
    // Writing to a string cannot fail.
    let _ = match sampled {
        true => write!(line, "{predicted}\t{correct}\t{confidence:e}\t"),
        false => write!(line, "{predicted}\t{correct}\t{confidence}\t"),
    };
    line.push_str(text);
}

/// The text of a rule as in rule files, `head <= body`.
pub fn rule_text(rule: &super::Rule, names: &Names) -> String {
    let mut text = String::new();
    text::write(rule, names, &mut text);
    text
}

/// The rule that [`rule_text`] writes as `text`.
///
/// # Errors
/// If it is not a rule over `names`: what is wrong with it, and at which byte.
pub fn parse_rule(text: &str, names: &Names) -> Result<super::Rule, String> {
    match text::parse(text, &Vocabularies::new(names)) {
        Ok(Parsed::Rule(rule)) => Ok(rule),
        Ok(Parsed::Reflexive) => Err("a rule about an entity and itself is not applied".to_owned()),
        Err(Malformed { at, message, .. }) => Err(format!("at byte {at}: {message}")),
    }
}

/// The text of a rule for people, with the labels of relations and with `entity` naming the entities.
pub fn rule_calling(rule: &super::Rule, names: &Names, entity: impl Fn(EntityId) -> String) -> String {
    let mut text = String::new();
    text::write_calling(rule, names, entity, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rule, Shape};
    use ruleguider_graph::{Link, RelationId};

    fn names() -> Names {
        Names {
            entities: ["ann", "bob"].into_iter().collect(),
            relations: ["knows", "likes"].into_iter().collect(),
            ..Names::default()
        }
    }

    fn rules() -> Vec<ScoredRule> {
        let [knows, likes] = [0, 1].map(|id| Link::forward(RelationId(id)));
        let counts = [Counts::exact(3, 2), Counts { predicted: 4000, correct: 7, sampled: true }];
        let bodies: [&[Link]; 2] = [&[likes], &[likes, knows.reversed()]];
        let both = bodies.into_iter().zip(counts);
        both.map(|(body, counts)| ScoredRule { rule: Rule::cyclic(knows, body), counts }).collect()
    }

    #[test]
    fn a_file_holds_what_was_written_whatever_its_ending() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rules.tsv", "rules.tsv.gz", "rules.tsv.zst"] {
            let path = folder.path().join(name);
            write_rules(&path, &rules(), &names()).unwrap();
            let file = RuleFile::read(&path, &names()).unwrap();
            assert_eq!((file.rules, file.reflexive), (rules(), 0));
        }
        let text = std::fs::read_to_string(folder.path().join("rules.tsv")).unwrap();
        let first = "3\t2\t0.6666666666666666\tknows(X,Y) <= likes(X,Y)\n";
        assert_eq!(text, format!("{first}4000\t7\t1.75e-3\tknows(X,Y) <= likes(X,A), knows(Y,A)\n"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left aside");
    }

    #[test]
    fn a_bad_line_is_named_with_file_line_and_column() {
        let good = "2\t1\t0.5\tknows(X,Y) <= likes(Y,X)";
        for (line, place) in [
            ("2\t1\tknows(X,Y) <= likes(Y,X)", "r.tsv:2:1: expected 4 tab-separated fields"),
            ("two\t1\t0.5\tknows(X,Y) <= likes(Y,X)", "r.tsv:2:1: expected the number of predictions"),
            ("2\t-1\t0.5\tknows(X,Y) <= likes(Y,X)", "r.tsv:2:3: expected the number of correct"),
            ("2\t3\t0.5\tknows(X,Y) <= likes(Y,X)", "r.tsv:2:3: 3 correct predictions of 2"),
            ("2\t1\thalf\tknows(X,Y) <= likes(Y,X)", "r.tsv:2:5: expected a confidence"),
            ("2\t1\t0.5\teve", "r.tsv:2:9: expected an atom"),
        ] {
            let error =
                RuleFile::parse(&format!("{good}\n{line}\n"), Path::new("r.tsv"), &names()).unwrap_err();
            assert!(error.to_string().starts_with(place), "{error}");
        }
        let reflexive = format!("{good}\r\n\n7\t7\t1.0\tknows(X,me_myself_i) <= likes(me_myself_i,X)");
        let file = RuleFile::parse(&reflexive, Path::new("r.tsv"), &names()).unwrap();
        assert_eq!((file.rules.len(), file.reflexive), (1, 1));
    }

    #[test]
    fn rules_that_name_what_the_data_lacks_are_left_out_and_counted() {
        let good = "2\t1\t0.5\tknows(X,Y) <= likes(Y,X)\n";
        for (line, place) in [
            ("2\t1\t0.5\tknows(X,eve) <= likes(X,Y)", "r.tsv:2:17: the data has no entity `eve`"),
            ("2\t1\t0.5\tknows(X,Y) <= likés(X,Y)", "r.tsv:2:23: the data has no relation `likés`"),
            ("2\t1\t0.5\tfears(X,Y) <= knows(X,Y)", "r.tsv:2:9: the data has no relation `fears`"),
        ] {
            let text = [good, line, "\n", good, line].concat();
            let file = RuleFile::parse(&text, Path::new("r.tsv"), &names()).unwrap();
            assert_eq!((file.rules.len(), file.unknown), (2, 2));
            let first = file.first_unknown.unwrap();
            assert!(first.starts_with(place), "{first}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named_by_their_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.tsv");
        let good = "2\t1\t0.5\tknows(X,Y) <= likes(Y,X)\n".as_bytes();
        let reported = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            RuleFile::read(&path, &names()).unwrap_err().to_string()
        };
        let broken =
            reported(&[good, good, b"2\t1\t0.5\tkn\xc3\xb6\xffows(X,Y) <= likes(Y,X)\n", good].concat());
        assert!(broken.ends_with("rules.tsv:3:12: expected UTF-8 text, found the byte 0xff"), "{broken}");
        let other = reported(&[good, b"worse\n", b"\xff\n"].concat());
        assert!(other.contains("rules.tsv:2:1: expected 4 tab"), "{other}");
        let endless = reported(&[good, &vec![b'x'; 40 << 20]].concat());
        assert!(
            endless.ends_with("rules.tsv:2:1: expected a rule, found a line of more than 16 MB"),
            "{endless}"
        );
    }

    #[test]
    fn names_with_tabs_and_line_breaks_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.tsv");
        let names = Names {
            entities: ["a\tb", "c\nd", "e\\tf"].into_iter().collect(),
            relations: ["is\r\nnear", "knows"].into_iter().collect(),
            ..Names::default()
        };
        let near = Link::forward(RelationId(0));
        let of =
            |answer: u32| Shape::Constant { answer: EntityId(answer), end: Some(EntityId((answer + 1) % 3)) };
        let counts = Counts::exact(3, 2);
        let rule = |answer| Rule { head: near, body: [near.reversed()].into(), shape: of(answer) };
        let rules: Vec<ScoredRule> = (0..3).map(|a| ScoredRule { rule: rule(a), counts }).collect();
        write_rules(&path, &rules, &names).unwrap();
        assert_eq!(RuleFile::read(&path, &names).unwrap().rules, rules);
    }

    #[test]
    fn many_lines_keep_their_order_and_the_first_bad_one_is_named() {
        let line = |predicted: usize| format!("{predicted}\t1\t0.5\tknows(X,Y) <= likes(Y,X)\n");
        let mut lines: Vec<String> = (1..=3 * BLOCK).map(line).collect();
        let read = |lines: &[String]| RuleFile::parse(&lines.concat(), Path::new("r.tsv"), &names());
        let counts = read(&lines).unwrap().rules.into_iter().map(|scored| scored.counts.predicted);
        assert!(counts.eq(1..=3 * BLOCK as u64));
        (lines[BLOCK + 7], lines[2 * BLOCK]) = ("bad\n".to_owned(), "worse\n".to_owned());
        let reported = read(&lines).unwrap_err().to_string();
        assert!(reported.starts_with(&format!("r.tsv:{}:1: ", BLOCK + 8)), "{reported}");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none/rules.tsv");
        let error = write_rules(&path, &rules(), &names()).unwrap_err();
        assert!(matches!(error, RuleError::Unwritable { .. }), "{error}");
    }
}
