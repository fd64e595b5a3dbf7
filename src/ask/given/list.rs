//! The columns of lists of facts and pairs, and the facts that their rows name.

use crate::ask::{AskError, NameIndex};
use crate::graph::{Direction, Link, NamedRow, RowColumn, Triple};

const SUBJECT: RowColumn =
    RowColumn { names: &["subject", "head", "source", "s", "h", "start"], required: true };
const RELATION: RowColumn =
    RowColumn { names: &["relation", "predicate", "rel", "type", "p", "r"], required: true };
const OBJECT: RowColumn = RowColumn { names: &["object", "tail", "target", "o", "t", "end"], required: true };
const LABEL: RowColumn = RowColumn { names: &["label", "true", "truth", "is_true"], required: false };

/// The columns of a list of facts.
pub(super) const TRIPLES: &[RowColumn] = &[SUBJECT, RELATION, OBJECT, LABEL];

/// A row of a list of facts.
pub(super) struct GivenTriple {
    /// Subject, relation and object as typed; empty where the row lacks them.
    pub typed: [String; 3],
    /// Whether the list calls it true.
    pub label: Option<bool>,
    /// The fact, or what is wrong with the row.
    pub ids: Result<Triple, AskError>,
}

/// The fact that a row names.
pub(super) fn given_triple(row: &NamedRow, index: &NameIndex) -> GivenTriple {
    let cannot = |why: &String| AskError::Cannot(why.clone());
    let fields = match &row.fields {
        Ok(fields) => fields,
        Err(why) => return GivenTriple { typed: Default::default(), label: None, ids: Err(cannot(why)) },
    };
    let typed: [String; 3] = std::array::from_fn(|at| fields.get(at).cloned().flatten().unwrap_or_default());
    let label = fields.get(3).and_then(Option::as_deref).map(label_of).transpose();
    let ids = label.as_ref().map_err(cannot).and_then(|_| triple(&typed, index));
    GivenTriple { typed, label: label.ok().flatten(), ids }
}

/// The fact of three names; the relation may be an inverse.
pub(super) fn triple(
    [subject, relation, object]: &[String; 3],
    index: &NameIndex,
) -> Result<Triple, AskError> {
    let (subject, link) = (index.entity(subject)?, index.link(relation)?);
    let object = index.entity(object)?;
    Ok(stated(subject, link, object))
}

/// The fact that `object` answers `(subject, link, ?)`.
pub(super) fn stated(subject: crate::graph::EntityId, link: Link, object: crate::graph::EntityId) -> Triple {
    let relation = link.relation().expect("named links are those of relations");
    match link.direction() {
        Direction::Forward => Triple { head: subject, relation, tail: object },
        Direction::Inverse => Triple { head: object, relation, tail: subject },
    }
}

fn label_of(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "+1" | "true" | "t" | "yes" => Ok(true),
        "-1" | "0" | "false" | "f" | "no" => Ok(false),
        _ => Err(format!("expected a label 1, -1, true or false, found `{text}`")),
    }
}
