//! Reads the rows of a table into facts and what is said beside them, and tables of nodes.

use super::columns::{End, Layout, Part, RelationAt, is_array, layout_of, plain_name, space_of};
use super::facts::Facts;
use super::{Builder, ReadOptions};
use crate::{GraphError, Note, Time, Triple};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A source of records with fields.
pub(super) trait Rows {
    /// Advances to the next record; `false` at the end. An error is the line, what was expected and what was found.
    fn advance(&mut self) -> Result<bool, super::records::Bad>;
    /// The line on which the record begins.
    fn line(&self) -> u64;
    /// How many fields it has.
    fn len(&self) -> usize;
    /// A field.
    fn field(&self, place: usize) -> &[u8];
    /// Whether a header may have names of one letter.
    fn may_be_letters(&self) -> bool {
        true
    }
    /// Whether two fields are an edge without a relation.
    fn may_be_edges(&self) -> bool {
        false
    }
    /// What the fields are, for messages: `comma-separated fields`.
    fn words(&self) -> &'static str;
}

/// The fields of the current record.
pub(super) fn fields<'r>(path: &Path, rows: &'r dyn Rows, into: &mut Vec<&'r str>) -> Result<(), GraphError> {
    for place in 0..rows.len() {
        let bytes = rows.field(place);
        into.push(std::str::from_utf8(bytes).map_err(|error| {
            let found = format!("the byte 0x{:02x}", bytes[error.valid_up_to()]);
            GraphError::line(path, rows.line(), "UTF-8 text", found)
        })?);
    }
    Ok(())
}

/// The name of the file without its endings.
pub(super) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Reads all `rows` as facts. The first says what the columns are.
pub(super) fn read(
    path: &Path,
    rows: &mut dyn Rows,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let mut facts = Facts::default();
    let mut layout: Option<Layout> = None;
    let bad = |line, (expected, found): (String, String)| GraphError::line(path, line, expected, found);
    while rows.advance().map_err(|(line, expected, found)| bad(line, (expected, found)))? {
        let mut row = Vec::with_capacity(rows.len());
        fields(path, rows, &mut row)?;
        let known = match &layout {
            Some(layout) => layout,
            None => {
                let choice = options.columns.as_ref();
                let (found, is_header) = match row.len() {
                    2 if rows.may_be_edges() && choice.is_none() => (Layout::edges(), false),
                    _ => layout_of(&row, &stem(path), options.header, rows.may_be_letters(), choice)
                        .map_err(|found| bad(rows.line(), found))?,
                };
                builder.columns_of(path, &found);
                let found = layout.insert(found);
                if is_header {
                    continue;
                }
                builder.first_is_a_fact = *found == Layout::plain() && choice.is_none();
                found
            }
        };
        if row.len() != known.width {
            let (expected, found) = (format!("{} {}", known.width, rows.words()), row.len().to_string());
            return Err(bad(rows.line(), (expected, found)));
        }
        builder
            .take_row(path, rows.line(), known, &row, &mut facts)
            .map_err(|found| bad(rows.line(), found))?;
    }
    Ok(facts)
}

impl Builder {
    /// Notes which columns of the table at `path` are read as what.
    pub(super) fn columns_of(&mut self, path: &Path, layout: &Layout) {
        if let Some(sentence) = layout.sentence() {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.understood.push(format!("{file}: {sentence}."));
        }
    }

    /// Adds what one row states: a fact or its negation, and what is said beside it.
    pub(super) fn take_row(
        &mut self,
        path: &Path,
        line: u64,
        layout: &Layout,
        row: &[&str],
        facts: &mut Facts,
    ) -> Result<(), (String, String)> {
        let relation = match &layout.relation {
            RelationAt::Column(place) => row[*place],
            RelationAt::Always(relation) => relation,
        };
        let (subject, object) = (row[layout.subject], row[layout.object]);
        let is_bare =
            layout.spaces == [None, None] || !self.with_spaces || subject.is_empty() || object.is_empty();
        let [own_subject, own_object] = match is_bare {
            true => [Cow::Borrowed(subject), Cow::Borrowed(object)],
            false => {
                let [of_subject, of_object] = &layout.spaces;
                [self.in_space(of_subject.as_deref(), subject), self.in_space(of_object.as_deref(), object)]
            }
        };
        let (subject, object) = (&*own_subject, &*own_object);
        if let Some(which) = super::first_empty(&[subject, relation, object]) {
            return Err((
                format!("{} fields with text in them", layout.width.min(3)),
                format!("an empty {which}"),
            ));
        }
        if layout.beside.is_empty() {
            self.take_fact([subject, relation, object], facts);
            return Ok(());
        }
        let mut note = Note::default();
        let mut sources = Vec::new();
        let mut is_false = false;
        for &(place, part) in &layout.beside {
            let value = row[place].trim();
            if value.is_empty() {
                continue;
            }
            let thing = |end: End| if end == End::Subject { subject } else { object };
            match part {
                Part::Confidence => note.confidence = Some(confidence(value)?),
                Part::Source if layout.names.get(place).is_some_and(|name| is_array(name)) => {
                    sources.extend(value.split(';').map(str::trim).filter(|one| !one.is_empty()));
                }
                Part::Source => sources.push(value),
                Part::Negative => is_false = truth(value)?,
                Part::Time => note.time = Some(time(value)?),
                Part::Label(end) => self.about.label(thing(end), value),
                Part::Type(end) => {
                    value.split(['|', ';']).for_each(|of| self.about.of_type(thing(end), of.trim()))
                }
                Part::Subject | Part::Relation | Part::Object => {}
            }
        }
        let fact = self.fact([subject, relation, object]);
        self.notes.add(fact, note);
        for source in sources {
            self.notes.add(fact, Note { source: Some(source), ..Note::default() });
        }
        match is_false {
            true => self.negatives.push((0, fact, path.to_owned(), line)),
            false => facts.push(fact, self.names.entities.len()),
        }
        Ok(())
    }

    /// The name of a node of Neo4j: its id, behind its ID space where several have the same.
    fn in_space<'n>(&self, space: Option<&str>, id: &'n str) -> Cow<'n, str> {
        match space {
            Some(space) if self.with_spaces => Cow::Owned(format!("{space}:{id}")),
            _ => Cow::Borrowed(id),
        }
    }

    /// The fact that three names state.
    pub(super) fn fact(&mut self, [head, relation, tail]: [&str; 3]) -> Triple {
        let head = self.names.entities.intern(head);
        let relation = self.names.relations.intern(relation);
        Triple::new(head, relation, self.names.entities.intern(tail))
    }
}

/// A confidence in (0, 1].
pub(super) fn confidence(value: &str) -> Result<f32, (String, String)> {
    let number = value.parse::<f32>().ok().filter(|number| *number > 0.0 && *number <= 1.0);
    number.ok_or_else(|| ("a confidence above 0 and at most 1".to_owned(), value.to_owned()))
}

/// A text that gives a time.
pub(super) fn time(value: &str) -> Result<&str, (String, String)> {
    let expected = "a date such as 2015-06-30, or a number, as the time";
    Time::parse(value).map(|_| value).ok_or_else(|| (expected.to_owned(), value.to_owned()))
}

pub(super) fn truth(value: &str) -> Result<bool, (String, String)> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "t" => Ok(true),
        "false" | "0" | "no" | "f" => Ok(false),
        _ => Err(("true or false in the column of negatives".to_owned(), value.to_owned())),
    }
}

/// What the columns of a table of nodes are.
pub(super) struct NodeLayout {
    id: usize,
    label: Option<usize>,
    types: Option<usize>,
    names: Vec<String>,
    /// Whether a column has several values.
    arrays: Vec<bool>,
    /// The ID space, from Neo4j's `:ID(Person)`.
    space: Option<String>,
}

impl NodeLayout {
    /// The layout of a table of nodes with this header, if it is one.
    pub(super) fn of_header(header: &[&str]) -> Option<Self> {
        let upper = |name: &&str| name.to_ascii_uppercase();
        let neo4j = header.iter().position(|name| {
            let name = upper(name);
            name == ":ID" || name.ends_with(":ID") || name.contains(":ID(")
        });
        let clear: Vec<String> = header.iter().map(|name| plain_name(name)).collect();
        let named =
            |wanted: &[&str]| wanted.iter().find_map(|name| clear.iter().position(|other| other == name));
        let id = neo4j.or_else(|| named(&["id", "node_id", "node_index", "identifier"]))?;
        let neo4j_label = header.iter().position(|name| upper(name) == ":LABEL");
        let types = neo4j_label.or_else(|| named(&["category", "type", "types", "node_type", "kind"]));
        // Neo4j's `:LABEL` is a type, so its plain name must not stand in the way of a title.
        let label = ["name", "label", "node_name", "title"].iter().find_map(|name| {
            let is_free = |place: &usize| clear[*place] == *name && Some(*place) != types && *place != id;
            (0..clear.len()).find(is_free)
        });
        let is_one = neo4j.is_some() || types.is_some() || label.is_some();
        is_one.then(|| Self {
            id,
            label,
            types,
            names: header.iter().map(|&name| name.split(':').next().unwrap_or(name).to_owned()).collect(),
            arrays: header.iter().map(|name| is_array(name)).collect(),
            space: neo4j.and_then(|place| space_of(header[place])),
        })
    }
}

/// Adds the ids of a table of nodes of Neo4j to those of its ID space. What is broken is reported when it is read.
pub(super) fn collect_ids(rows: &mut dyn Rows, spaces: &mut HashMap<String, HashSet<Vec<u8>>>) {
    let mut own: Option<(usize, String)> = None;
    while rows.advance().unwrap_or(false) {
        match &own {
            Some((place, space)) if *place < rows.len() => {
                spaces.entry(space.clone()).or_default().insert(rows.field(*place).to_vec());
            }
            Some(_) => {}
            None => {
                let header: Vec<&str> =
                    (0..rows.len()).filter_map(|place| std::str::from_utf8(rows.field(place)).ok()).collect();
                let Some(NodeLayout { id, space: Some(space), .. }) = NodeLayout::of_header(&header) else {
                    return;
                };
                own = Some((id, space));
            }
        }
    }
}

/// Records behind the header of another file.
pub(super) struct WithHeader {
    pub(super) header: Vec<Vec<u8>>,
    /// Whether the header is the current record.
    pub(super) at_header: Option<bool>,
    pub(super) rows: Box<dyn Rows>,
}

impl Rows for WithHeader {
    fn advance(&mut self) -> Result<bool, super::records::Bad> {
        self.at_header = Some(self.at_header.is_none());
        if self.at_header == Some(true) { Ok(true) } else { self.rows.advance() }
    }
    fn line(&self) -> u64 {
        if self.at_header == Some(true) { 1 } else { self.rows.line() }
    }
    fn len(&self) -> usize {
        if self.at_header == Some(true) { self.header.len() } else { self.rows.len() }
    }
    fn field(&self, place: usize) -> &[u8] {
        if self.at_header == Some(true) { &self.header[place] } else { self.rows.field(place) }
    }
    fn words(&self) -> &'static str {
        self.rows.words()
    }
}

/// Reads all `rows` as a table of nodes: labels, types, and the other columns as attributes.
pub(super) fn read_nodes(
    path: &Path,
    rows: &mut dyn Rows,
    builder: &mut Builder,
) -> Result<usize, GraphError> {
    let mut layout: Option<NodeLayout> = None;
    let mut count = 0;
    let bad = |line, expected: &str, found: &str| GraphError::line(path, line, expected, found);
    while rows.advance().map_err(|(line, expected, found)| bad(line, &expected, &found))? {
        let mut row = Vec::with_capacity(rows.len());
        fields(path, rows, &mut row)?;
        let Some(known) = &layout else {
            let found = NodeLayout::of_header(&row);
            let expected = "a header with a column id, and name or category (or :ID and :LABEL)";
            layout = Some(found.ok_or_else(|| bad(rows.line(), expected, &row.join(", ")))?);
            continue;
        };
        if row.len() != known.names.len() {
            let expected = format!("{} {}", known.names.len(), rows.words());
            return Err(bad(rows.line(), &expected, &row.len().to_string()));
        }
        let id = row[known.id];
        if id.is_empty() {
            return Err(bad(rows.line(), "a node with an id", "an empty one"));
        }
        count += 1;
        let own = builder.in_space(known.space.as_deref(), id);
        let id = &*own;
        for (place, value) in
            row.iter().enumerate().filter(|(place, value)| *place != known.id && !value.is_empty())
        {
            if Some(place) == known.label {
                builder.about.label(id, value);
            } else if Some(place) == known.types {
                value.split(['|', ';']).for_each(|of| builder.about.of_type(id, of.trim()));
            } else if known.arrays[place] {
                let values = value.split(';').filter(|one| !one.is_empty());
                values.for_each(|one| builder.about.attribute(id, &known.names[place], one));
            } else {
                builder.about.attribute(id, &known.names[place], value);
            }
        }
        if let Some(space) = known.space.as_ref().filter(|_| known.types.is_none()) {
            builder.about.of_type(id, space);
        }
    }
    Ok(count)
}
