//! Writes facts with what is known about them as RDF: as RDF 1.2 reifiers, reified for older readers, or plain with
//! comments.

use super::GraphError;
use super::format::{FileKind, Format};
use super::read::RdfFormat;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// How what is known about a fact is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RdfStyle {
    /// As comments, which parsers drop.
    Plain,
    /// About a reifier of the fact, as RDF 1.2 has it.
    #[default]
    Star,
    /// About an `rdf:Statement`, which every reader knows.
    Reified,
}

impl FromStr for RdfStyle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "plain" => Ok(Self::Plain),
            "star" => Ok(Self::Star),
            "reified" => Ok(Self::Reified),
            _ => Err(format!("expected plain, star or reified, found {text}")),
        }
    }
}

/// A fact with what is known about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotatedFact {
    /// Subject, relation and object.
    pub fact: [String; 3],
    /// Its probability, if known.
    pub probability: Option<f64>,
    /// Whether the probability is rough: calibrated on too little.
    pub probability_rough: bool,
    /// Its score, if it has one.
    pub score: Option<f64>,
    /// The rule that predicts it.
    pub rule: Option<String>,
    /// Why, in one line; empty if there is no reason.
    pub reason: String,
    /// The facts that the reason uses.
    pub derived_from: Vec<UsedFact>,
    /// The split that holds it out; empty if the data does not have it.
    pub held_out: &'static str,
    /// How plausible a fact of the graph is by all others, if that was asked.
    pub plausibility: Option<f64>,
    /// What speaks against it, a line each.
    pub counter_evidence: Vec<String>,
}

/// A fact that a reason uses, with what the data say about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsedFact {
    /// Subject, relation and object.
    pub fact: [String; 3],
    /// How certain it is, in (0, 1].
    pub confidence: Option<f32>,
    /// Where it comes from; several sources are separated by `|`.
    pub source: Option<String>,
    /// When it holds or was stated.
    pub time: Option<String>,
}

impl UsedFact {
    /// Whether the data say nothing about it.
    pub fn is_bare(&self) -> bool {
        self.confidence.is_none() && self.source.is_none() && self.time.is_none()
    }
}

impl AnnotatedFact {
    /// Where the facts that its reason uses come from, each source once, in their order.
    pub fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = Vec::new();
        let given = self.derived_from.iter().filter_map(|used| used.source.as_deref());
        for source in given.flat_map(|all| all.split('|')) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// Whether the ending of `path` is that of a format for [`write_annotated`].
pub fn is_annotated(path: &Path) -> bool {
    let lines = [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG];
    FileKind::of(path)
        .is_some_and(|kind| matches!(kind.format, Format::Rdf(format) if lines.contains(&format)))
}

/// Writes `facts` to `path` in their order. Returns how many there were.
///
/// # Errors
/// If the ending is not that of a line-based RDF format, the file cannot be written, or the iterator fails.
pub fn write_annotated(
    path: &Path,
    style: RdfStyle,
    facts: &mut dyn Iterator<Item = io::Result<AnnotatedFact>>,
) -> Result<u64, GraphError> {
    #[cfg(feature = "rdf")]
    return super::reified::write(path, style, facts);
    #[cfg(not(feature = "rdf"))]
    {
        let _ = (style, facts);
        let expected = "a program with the feature `rdf`";
        Err(GraphError::file(path, expected, "one that was built without"))
    }
}
