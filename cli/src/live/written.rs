//! Verdicts as files: TSV, JSON lines, RDF. One row a verdict, with its reviewer and time.

use super::event::{Fact, utc};
use super::state::{About, Standing, State, Verdict};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::fmt::Write;

/// The formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One document, by fact.
    #[default]
    Json,
    /// One JSON object a line.
    Jsonl,
    /// Tab-separated, with a header.
    Tsv,
    /// N-Triples: each verdict is a statement about its fact.
    Rdf,
}

impl Form {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Jsonl => "application/x-ndjson",
            Self::Tsv => "text/tab-separated-values; charset=utf-8",
            Self::Rdf => "application/n-triples",
        }
    }
}

/// What follows from the verdicts on a fact, in a word.
pub fn outcome(about: &About) -> &'static str {
    let (accept, reject) = about.votes();
    match about.standing() {
        Standing::Rejected => "rejected",
        _ if accept > reject => "accepted",
        _ if accept > 0 => "disputed",
        _ => "unsure",
    }
}

/// All verdicts that count, the facts that were decided last first.
pub fn verdicts(state: &State, form: Form) -> String {
    let mut out = String::new();
    if form == Form::Tsv {
        out.push_str("subject\trelation\tobject\tverdict\twho\ttime\tnote\toutcome\n");
    }
    for (fact, about) in state.reviewed() {
        for (who, verdict) in &about.verdicts {
            row(&mut out, form, fact, who, verdict, outcome(about));
        }
    }
    out
}

fn row(out: &mut String, form: Form, fact: &Fact, who: &str, verdict: &Verdict, outcome: &str) {
    let [subject, relation, object] = fact;
    let Verdict { kind, note, seq, time_ms } = verdict;
    let time = utc(*time_ms);
    // Writing to a string cannot fail.
    let _ = match form {
        Form::Json | Form::Jsonl => {
            let line = json!({
                "subject": &**subject, "relation": &**relation, "object": &**object, "verdict": kind.name(),
                "who": who, "time": time, "note": note, "outcome": outcome,
            });
            writeln!(out, "{line}")
        }
        Form::Tsv => {
            // Names of new facts have no control characters, those of the data may have any.
            let [subject, relation, object] = fact.each_ref().map(|name| cell(name));
            let (kind, note) = (kind.name(), cell(note.as_deref().unwrap_or("")));
            writeln!(out, "{subject}\t{relation}\t{object}\t{kind}\t{who}\t{time}\t{note}\t{outcome}")
        }
        Form::Rdf => {
            let mut about =
                |predicate: &str, object: &str| writeln!(out, "_:v{seq} <{predicate}> {object} .");
            let rdf = |name: &str| format!("http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}");
            let prov = |name: &str| format!("http://www.w3.org/ns/prov#{name}");
            let typed = |text: &str, kind: &str| {
                format!("{}^^<http://www.w3.org/2001/XMLSchema#{kind}>", literal(text))
            };
            let written = about(&rdf("type"), &format!("<{}>", rdf("Statement")))
                .and_then(|()| about(&rdf("subject"), &iri(subject)))
                .and_then(|()| about(&rdf("predicate"), &iri(relation)))
                .and_then(|()| about(&rdf("object"), &iri(object)))
                .and_then(|()| about("urn:x-ruleguider:verdict", &literal(kind.name())))
                .and_then(|()| about(&prov("wasAttributedTo"), &iri(who)))
                .and_then(|()| about(&prov("generatedAtTime"), &typed(&time, "dateTime")));
            match note {
                Some(note) => written
                    .and_then(|()| about("http://www.w3.org/2000/01/rdf-schema#comment", &literal(note))),
                None => written,
            }
        }
    };
}

/// A text as a cell of a TSV file: what would break the line is written as `\t`, `\n`, `\r`, `\\`.
fn cell(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\t', '\n', '\r']) {
        return text.into();
    }
    let escaped = |letter: char| match letter {
        '\\' => "\\\\".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect::<String>().into()
}

/// A name as an IRI: as it is if it is one, else as a name of this program's.
fn iri(name: &str) -> String {
    let plain = |letter: char| !letter.is_control() && !" <>\"{}|^`\\".contains(letter);
    if (name.contains("://") || name.starts_with("urn:")) && name.chars().all(plain) {
        return format!("<{name}>");
    }
    let mut encoded = String::from("<urn:x-ruleguider:name:");
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded + ">"
}

fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::event::{Event, Kind, Said};

    #[test]
    fn a_verdict_is_a_row_in_every_format() {
        let fact: Fact = ["Ada\tL\\", "https://e.org/knows", "a \"b\""].map(std::sync::Arc::from);
        let said = |kind, note: Option<&str>| {
            let note = note.map(str::to_owned);
            Said { kind, fact: fact.clone(), confidence: None, source: None, note }
        };
        let event = |seq, who: &str, said| Event { seq, said, who: who.into(), time_ms: 0 };
        let state = State::of([
            event(1, "ada", said(Kind::Accept, Some("seen\tby me"))),
            event(2, "ben", said(Kind::Reject, None)),
            event(3, "cy", said(Kind::Unsure, None)),
            event(4, "cy", said(Kind::Undo, None)),
        ]);
        let tsv = verdicts(&state, Form::Tsv);
        let rows: Vec<&str> = tsv.lines().collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(
            rows[1],
            "Ada\\tL\\\\\thttps://e.org/knows\ta \"b\"\taccept\tada\t1970-01-01T00:00:00Z\tseen\\tby me\tdisputed"
        );
        let lines = verdicts(&state, Form::Jsonl);
        let last: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
        assert_eq!((&last["verdict"], &last["who"]), (&json!("reject"), &json!("ben")));
        let rdf = verdicts(&state, Form::Rdf);
        assert_eq!(rdf.lines().count(), 8 + 7);
        assert!(rdf.contains("rdf-syntax-ns#object> <urn:x-ruleguider:name:a%20%22b%22> ."), "{rdf}");
        assert!(rdf.contains("rdf-syntax-ns#predicate> <https://e.org/knows> ."), "{rdf}");
        assert!(rdf.contains(r#"comment> "seen\tby me" ."#), "{rdf}");
    }
}
