//! Folders of nodes and edges: Neo4j's import files, and KGX.

use super::ExportedFact;
use crate::graph::{Cell, table_line, write_packed};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

type Facts<'a> = &'a mut dyn Iterator<Item = io::Result<ExportedFact>>;

/// Writes two files of a folder: each node once, and an edge for each fact. Returns how many edges there are.
fn write_both(
    folder: &Path,
    [nodes, edges]: [(&str, &str); 2],
    facts: Facts<'_>,
    node: impl Fn(&mut dyn Write, &str, &str) -> io::Result<()>,
    edge: impl Fn(&mut dyn Write, u64, &ExportedFact) -> io::Result<()>,
) -> io::Result<u64> {
    fs::create_dir_all(folder)?;
    let (mut seen, mut count) = (HashSet::new(), 0);
    write_packed(&folder.join(edges.0), |edge_file| {
        writeln!(edge_file, "{}", edges.1)?;
        write_packed(&folder.join(nodes.0), |node_file| {
            writeln!(node_file, "{}", nodes.1)?;
            for fact in facts {
                let fact = fact?;
                let [subject, _, object] = &fact.fact.fact;
                for (id, label) in [(subject, &fact.subject_label), (object, &fact.object_label)] {
                    if !seen.contains(id) {
                        seen.insert(id.clone());
                        node(node_file, id, label)?;
                    }
                }
                count += 1;
                edge(edge_file, count, &fact)?;
            }
            Ok(())
        })
    })?;
    Ok(count)
}

/// A line of CSV as Neo4j's importer reads it.
fn commas(out: &mut dyn Write, cells: &[&str]) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(cells)?;
    writer.flush()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Writes `nodes.csv` and `relationships.csv`.
pub(super) fn write_neo4j(folder: &Path, facts: Facts<'_>) -> io::Result<u64> {
    let nodes = ("nodes.csv", "id:ID,name,:LABEL");
    let edges = (
        "relationships.csv",
        ":START_ID,:END_ID,:TYPE,probability:double,score:double,rule,reason,probability_rough:boolean,sources:string[],plausibility:double,counter_evidence:string[]",
    );
    let node = |out: &mut dyn Write, id: &str, label: &str| commas(out, &[id, label, "Entity"]);
    let edge = |out: &mut dyn Write, _, ExportedFact { fact, .. }: &ExportedFact| {
        let [subject, relation, object] = &fact.fact;
        let (probability, score) = (number(fact.probability), number(fact.score));
        let rule = fact.rule.as_deref().unwrap_or_default();
        let rough = fact.probability_rough.to_string();
        let sources = fact.sources().join(";");
        let (plausibility, against) = (number(fact.plausibility), fact.counter_evidence.join(";"));
        let reason = &fact.reason;
        let cells: [&str; 11] = [
            subject,
            object,
            relation,
            &probability,
            &score,
            rule,
            reason,
            &rough,
            &sources,
            &plausibility,
            &against,
        ];
        commas(out, &cells)
    };
    write_both(folder, [nodes, edges], facts, node, edge)
}

/// Writes `nodes.tsv` and `edges.tsv`.
pub(super) fn write_kgx(folder: &Path, facts: Facts<'_>) -> io::Result<u64> {
    let nodes = ("nodes.tsv", "id\tcategory\tname");
    let edges = (
        "edges.tsv",
        "id\tsubject\tpredicate\tobject\tcategory\tknowledge_level\tagent_type\tprobability\tscore\trule\treason\tprobability_rough\tsources\tplausibility\tcounter_evidence",
    );
    let line = |out: &mut dyn Write, cells: &[&str]| {
        let cells: Vec<Cell> = cells.iter().map(|cell| Cell::text(*cell)).collect();
        writeln!(out, "{}", table_line(&cells))
    };
    let node = |out: &mut dyn Write, id: &str, label: &str| line(out, &[id, "biolink:NamedThing", label]);
    let edge = |out: &mut dyn Write, count: u64, ExportedFact { fact, .. }: &ExportedFact| {
        let [subject, relation, object] = &fact.fact;
        let (id, category) = (format!("urn:x-ruleguider:edge-{count}"), "biolink:Association");
        let (probability, score) = (number(fact.probability), number(fact.score));
        let rule = fact.rule.as_deref().unwrap_or_default();
        let (level, agent) = ("prediction", "computational_model");
        let rough = fact.probability_rough.to_string();
        let sources = fact.sources().join("|");
        let (plausibility, against) = (number(fact.plausibility), fact.counter_evidence.join("|"));
        let cells: [&str; 15] = [
            &id,
            subject,
            relation,
            object,
            category,
            level,
            agent,
            &probability,
            &score,
            rule,
            &fact.reason,
            &rough,
            &sources,
            &plausibility,
            &against,
        ];
        line(out, &cells)
    };
    write_both(folder, [nodes, edges], facts, node, edge)
}
