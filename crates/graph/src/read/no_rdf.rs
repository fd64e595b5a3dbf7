//! The names of the RDF formats, where the program was built without their readers.

/// A format of the RDF family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdfFormat {
    /// `.nt`
    NTriples,
    /// `.nq`
    NQuads,
    /// `.ttl`
    Turtle,
    /// `.trig`
    TriG,
    /// `.rdf`
    RdfXml,
}

impl RdfFormat {
    /// The format of files that end so.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "nt" => Self::NTriples,
            "nq" => Self::NQuads,
            "ttl" | "n3" => Self::Turtle,
            "trig" => Self::TriG,
            "rdf" => Self::RdfXml,
            _ => return None,
        })
    }

    /// How files of this format end.
    pub fn file_extension(self) -> &'static str {
        match self {
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::Turtle => "ttl",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
        }
    }
}
