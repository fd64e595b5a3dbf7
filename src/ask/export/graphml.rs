//! GraphML: the exported facts and the facts that their reasons use, as drawing programs read them.

use super::ExportedFact;
use crate::graph::{AnnotatedFact, UsedFact, write_packed};
use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="label" for="node" attr.name="label" attr.type="string"/>
  <key id="relation" for="edge" attr.name="relation" attr.type="string"/>
  <key id="predicted" for="edge" attr.name="predicted" attr.type="boolean"/>
  <key id="probability" for="edge" attr.name="probability" attr.type="double"/>
  <key id="probability_rough" for="edge" attr.name="probability_rough" attr.type="boolean"/>
  <key id="plausibility" for="edge" attr.name="plausibility" attr.type="double"/>
  <key id="counter_evidence" for="edge" attr.name="counter_evidence" attr.type="string"/>
  <key id="rule" for="edge" attr.name="rule" attr.type="string"/>
  <key id="confidence" for="edge" attr.name="confidence" attr.type="double"/>
  <key id="source" for="edge" attr.name="source" attr.type="string"/>
  <key id="time" for="edge" attr.name="time" attr.type="string"/>
  <graph edgedefault="directed">
"#;

/// Text as XML has it. Characters that XML cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => safe.push_str(&format!("&#{};", u32::from(character))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

/// Writes the graph; returns how many facts were exported.
pub(super) fn write(
    path: &Path,
    facts: &mut dyn Iterator<Item = io::Result<ExportedFact>>,
) -> io::Result<u64> {
    let mut count = 0;
    write_packed(path, |out| {
        out.write_all(HEAD.as_bytes())?;
        let mut seen = Seen::default();
        for fact in facts {
            let ExportedFact { fact, subject_label, object_label, path_labels } = fact?;
            let [subject, _, object] = &fact.fact;
            seen.node(out, subject, &subject_label)?;
            seen.node(out, object, &object_label)?;
            for (id, label) in &path_labels {
                seen.node(out, id, label)?;
            }
            let probability =
                fact.probability.map(|share| format!("<data key=\"probability\">{share}</data>"));
            let rule =
                fact.rule.as_deref().map(|rule| format!("<data key=\"rule\">{}</data>", escaped(rule)));
            let rough =
                if fact.probability_rough { "<data key=\"probability_rough\">true</data>" } else { "" };
            let more = probability.unwrap_or_default() + rough + &rule.unwrap_or_default() + &doubt(&fact);
            edge(out, &fact.fact, true, &more)?;
            for used in fact.derived_from {
                if seen.edges.insert(used.fact.clone()) {
                    edge(out, &used.fact, false, &note(&used))?;
                }
            }
            count += 1;
        }
        out.write_all(b"  </graph>\n</graphml>\n")
    })?;
    Ok(count)
}

/// What all others say about a fact of the graph.
fn doubt(fact: &AnnotatedFact) -> String {
    let plausible = fact.plausibility.map(|share| format!("<data key=\"plausibility\">{share}</data>"));
    let against = match fact.counter_evidence.is_empty() {
        true => String::new(),
        false => {
            let against = escaped(&fact.counter_evidence.join("; "));
            format!("<data key=\"counter_evidence\">{against}</data>")
        }
    };
    plausible.unwrap_or_default() + &against
}

/// What the data say about a fact that a reason uses.
fn note(used: &UsedFact) -> String {
    let confidence = used.confidence.map(|confidence| confidence.to_string());
    let parts = [("confidence", &confidence), ("source", &used.source), ("time", &used.time)];
    let data = |(key, value): (&str, &Option<String>)| {
        value.as_ref().map(|value| format!("<data key=\"{key}\">{}</data>", escaped(value)))
    };
    parts.into_iter().filter_map(data).collect()
}

/// What is in the file already.
#[derive(Default)]
struct Seen {
    nodes: HashSet<String>,
    edges: HashSet<[String; 3]>,
}

impl Seen {
    fn node(&mut self, out: &mut dyn Write, id: &str, label: &str) -> io::Result<()> {
        if !self.nodes.insert(id.to_owned()) {
            return Ok(());
        }
        let (id, label) = (escaped(id), escaped(label));
        writeln!(out, "    <node id=\"{id}\"><data key=\"label\">{label}</data></node>")
    }
}

fn edge(
    out: &mut dyn Write,
    [head, relation, tail]: &[String; 3],
    predicted: bool,
    more: &str,
) -> io::Result<()> {
    let [head, relation, tail] = [head, relation, tail].map(|name| escaped(name));
    writeln!(
        out,
        "    <edge source=\"{head}\" target=\"{tail}\"><data key=\"relation\">{relation}</data>\
         <data key=\"predicted\">{predicted}</data>{more}</edge>"
    )
}
