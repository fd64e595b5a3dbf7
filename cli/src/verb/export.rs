//! `export`: answers for other programs.

use crate::Outcome;
use crate::arguments::Common;
use crate::console;
use anyhow::ensure;
use ruleguider::ask::{ExportFormat, export};
use ruleguider::graph::RdfStyle;
use std::path::PathBuf;

/// Arguments of `export`.
#[derive(clap::Args)]
#[command(
    after_help = "ANSWERS are the JSON lines of `complete --out FILE.jsonl`, `score --out FILE.jsonl`, `doubt --out FILE.jsonl` or \
`predict --file`, with all their fields. RDF is written to a file that ends in .nt, .ttl, .nq or .trig: each fact, and \
about it its probability, score, rule and reason, with prov:wasDerivedFrom the facts that the reason uses, and of a doubted \
fact its plausibility and the counter-evidence. `star` says that about a reifier (RDF 1.2), `reified` about an \
rdf:Statement, for older readers, and `plain` in comments. Neo4j and KGX get a folder of nodes and edges; GraphML is one \
file with the facts and those that their reasons use.

Examples:
  ruleguider export missing.jsonl --to rdf --out missing.ttl
  ruleguider export missing.jsonl --to rdf --rdf reified --out missing.nt
  ruleguider export scored.jsonl --to neo4j --out import
  ruleguider export scored.jsonl --to kgx --out kgx
  ruleguider export doubtful.jsonl --to rdf --out doubtful.ttl
  ruleguider export answers.jsonl --to graphml --out reasons.graphml"
)]
pub struct Export {
    /// JSON lines of complete, score, predict or doubt
    #[arg(value_name = "ANSWERS")]
    answers: PathBuf,
    /// What to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Target,
    /// How RDF says what is known about a fact: plain, star or reified [default: star]
    #[arg(long, value_name = "STYLE")]
    rdf: Option<RdfStyle>,
    /// The file, or for neo4j and kgx the folder, to write
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// RDF.
    Rdf,
    /// Neo4j's import files.
    Neo4j,
    /// The Knowledge Graph Exchange.
    Kgx,
    /// GraphML.
    Graphml,
}

impl Export {
    /// Exports and prints a summary.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        ensure!(self.rdf.is_none() || self.to == Target::Rdf, "--rdf: only --to rdf has styles");
        let format = match self.to {
            Target::Rdf => ExportFormat::Rdf(self.rdf.unwrap_or_default()),
            Target::Neo4j => ExportFormat::Neo4j,
            Target::Kgx => ExportFormat::Kgx,
            Target::Graphml => ExportFormat::Graphml,
        };
        let exported = export(&self.answers, format, &self.out)?;
        if common.json { console::print_json(&exported) } else { console::print(&exported) }?;
        Ok(if exported.facts == 0 { Outcome::Negative } else { Outcome::Done })
    }
}
