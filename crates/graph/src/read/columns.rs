//! What the columns of a table are: by the names in its header, by the user's choice, or by their order.
//!
//! Beside subject, relation and object, a column may say how certain a fact is, where it comes from, when it holds,
//! that it is false, or how its two entities are called and what they are. Columns that say nothing of this are listed
//! once as not used.

use crate::GraphError;
use std::fmt::Write;
use std::str::FromStr;

/// One end of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Subject,
    Object,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Subject,
    Relation,
    Object,
    Confidence,
    Source,
    Negative,
    Time,
    Label(End),
    Type(End),
}

impl Part {
    const ALL: [Part; 11] = [
        Part::Subject,
        Part::Relation,
        Part::Object,
        Part::Confidence,
        Part::Source,
        Part::Negative,
        Part::Time,
        Part::Label(End::Subject),
        Part::Label(End::Object),
        Part::Type(End::Subject),
        Part::Type(End::Object),
    ];

    /// Its name, as in a choice of columns.
    fn name(self) -> &'static str {
        match self {
            Part::Subject => "subject",
            Part::Relation => "relation",
            Part::Object => "object",
            Part::Confidence => "confidence",
            Part::Source => "source",
            Part::Negative => "negative",
            Part::Time => "time",
            Part::Label(End::Subject) => "subject_label",
            Part::Label(End::Object) => "object_label",
            Part::Type(End::Subject) => "subject_type",
            Part::Type(End::Object) => "object_type",
        }
    }

    /// What a column called `name` says beside the fact, if that is clear.
    pub(super) fn beside(name: &str) -> Option<Self> {
        match name {
            "confidence" | "confidence_score" | "has_confidence_score" | "certainty" | "probability" => {
                return Some(Part::Confidence);
            }
            "source"
            | "sources"
            | "provenance"
            | "reference"
            | "references"
            | "citation"
            | "pmid"
            | "pmids"
            | "publication"
            | "publications"
            | "knowledge_source"
            | "primary_knowledge_source"
            | "provided_by" => {
                return Some(Part::Source);
            }
            "negative" | "negated" | "is_negative" => return Some(Part::Negative),
            "time" | "date" | "timestamp" | "year" => return Some(Part::Time),
            _ => {}
        }
        let (end, what) = name.rsplit_once('_')?;
        let end = match end {
            "subject" | "head" | "source" | "from" | "start" | "x" => End::Subject,
            "object" | "tail" | "target" | "to" | "end" | "y" => End::Object,
            _ => return None,
        };
        match what {
            "name" | "label" => Some(Part::Label(end)),
            "type" | "category" | "class" | "kind" => Some(Part::Type(end)),
            _ => None,
        }
    }
}

/// The columns that a user chooses: `subject=x_id,relation=display_relation,object=y_id`. A column is named as in the
/// header, or counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnChoice(Vec<(Part, String)>);

impl FromStr for ColumnChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Part::ALL.map(Part::name).join(", ");
        let mut chosen: Vec<(Part, String)> = Vec::new();
        for pair in text.split(',') {
            let Some((part, column)) = pair.split_once('=').filter(|(_, column)| !column.trim().is_empty())
            else {
                return Err(format!(
                    "expected PART=COLUMN, separated by commas, with the parts {}; found {pair}",
                    known()
                ));
            };
            let Some(part) = Part::ALL.into_iter().find(|known| known.name() == part.trim()) else {
                return Err(format!("expected one of the parts {}; found {}", known(), part.trim()));
            };
            chosen.push((part, column.trim().to_owned()));
        }
        let missing =
            [Part::Subject, Part::Object].into_iter().find(|part| chosen.iter().all(|(of, _)| of != part));
        match missing {
            Some(part) => Err(format!("expected a column for {} too, found {text}", part.name())),
            None => Ok(Self(chosen)),
        }
    }
}

impl std::fmt::Display for ColumnChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs: Vec<String> =
            self.0.iter().map(|(part, name)| format!("{}={name}", part.name())).collect();
        f.write_str(&pairs.join(","))
    }
}

impl ColumnChoice {
    /// Whether all columns are counted instead of named; then a file need not have a header.
    fn is_by_number(&self) -> bool {
        self.0.iter().all(|(_, column)| column.parse::<usize>().is_ok())
    }
}

/// Where the relation of a fact is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RelationAt {
    Column(usize),
    /// All facts have this relation.
    Always(String),
}

/// What the columns of a table are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// How many columns there are.
    pub(super) width: usize,
    pub(super) subject: usize,
    pub(super) relation: RelationAt,
    pub(super) object: usize,
    pub(super) beside: Vec<(usize, Part)>,
    /// The names of the columns, if there is a header.
    pub(super) names: Vec<String>,
    /// In Neo4j's tables, the ID space of the subject and of the object: `Person` in `:START_ID(Person)`.
    pub(super) spaces: [Option<String>; 2],
}

/// The ID space that a column of Neo4j names.
pub(super) fn space_of(name: &str) -> Option<String> {
    let (_, rest) = name.split_once('(')?;
    Some(rest.split(')').next().unwrap_or_default().to_owned()).filter(|space| !space.is_empty())
}

/// Whether a column of Neo4j has several values, separated by semicolons: `sources:string[]`.
pub(super) fn is_array(name: &str) -> bool {
    name.trim_end().ends_with("[]")
}

/// The relation of a list of edges that have none.
pub(super) const LINK: &str = "link";

impl Layout {
    /// Subject, relation and object, in this order.
    pub(super) fn plain() -> Self {
        Self::of_places(3, [0, 1, 2])
    }

    pub(super) fn of_places(width: usize, [subject, relation, object]: [usize; 3]) -> Self {
        let relation = RelationAt::Column(relation);
        Self { width, subject, relation, object, beside: Vec::new(), names: Vec::new(), spaces: [None, None] }
    }

    /// Two columns: edges without a relation.
    pub(super) fn edges() -> Self {
        let relation = RelationAt::Always(LINK.to_owned());
        Self { relation, object: 1, width: 2, ..Self::plain() }
    }

    /// The columns of a fact, if nothing else is read.
    pub(super) fn only_facts(&self) -> Option<[usize; 3]> {
        match self.relation {
            RelationAt::Column(relation) if self.beside.is_empty() => {
                Some([self.subject, relation, self.object])
            }
            _ => None,
        }
    }

    /// The layout of a table whose header has these names, if they say it. `file` names the relation of a table of
    /// edges that has no column for it, as Neo4j's may.
    pub(super) fn of_header(names: &[&str], file: &str) -> Option<Self> {
        let clear: Vec<String> = names.iter().map(|name| plain_name(name)).collect();
        let edges_of_neo4j = || {
            let place = |wanted: &str| clear.iter().position(|name| name == wanted);
            let raw = names.iter().any(|name| name.to_ascii_uppercase().contains(":START_ID"));
            raw.then(|| Some((place("start_id")?, place("end_id")?))).flatten()
        };
        let (subject, relation, object) =
            match (super::columns_by_role(clear.iter().map(String::as_str)), edges_of_neo4j()) {
                (Some([subject, relation, object]), _) => (subject, RelationAt::Column(relation), object),
                (None, Some((subject, object))) => (subject, RelationAt::Always(file.to_owned()), object),
                (None, None) => return None,
            };
        let mut layout = Self { relation, ..Self::of_places(names.len(), [subject, 0, object]) };
        layout.spaces = [subject, object].map(|place| space_of(names[place]));
        for (place, name) in clear.iter().enumerate() {
            if !layout.is_of_fact(place)
                && let Some(part) = Part::beside(name)
            {
                layout.beside.push((place, part));
            }
        }
        layout.names = names.iter().map(|&name| name.to_owned()).collect();
        Some(layout)
    }

    /// The layout that a user chose for a table with these columns: names of a header, or values of a first row.
    ///
    /// # Errors
    /// If there is no such column; says which there are.
    pub(super) fn chosen(
        choice: &ColumnChoice,
        header: &[&str],
        is_header: bool,
    ) -> Result<Self, (String, String)> {
        let place = |column: &str| {
            let named = is_header.then(|| header.iter().position(|name| *name == column)).flatten();
            let by_number = || column.parse::<usize>().ok().filter(|&at| (1..=header.len()).contains(&at));
            named.or_else(|| by_number().map(|at| at - 1))
        };
        let mut layout = Self { width: header.len(), ..Self::plain() };
        layout.relation = RelationAt::Always(LINK.to_owned());
        for (part, column) in &choice.0 {
            let Some(place) = place(column) else {
                let found = if is_header { header.join(", ") } else { format!("{} columns", header.len()) };
                return Err((format!("a column {column}, as chosen for the {}", part.name()), found));
            };
            match part {
                Part::Subject => layout.subject = place,
                Part::Relation => layout.relation = RelationAt::Column(place),
                Part::Object => layout.object = place,
                _ => layout.beside.push((place, *part)),
            }
        }
        if is_header {
            layout.names = header.iter().map(|&name| name.to_owned()).collect();
        }
        Ok(layout)
    }

    /// The names of the fact that a row states.
    pub(super) fn words<'r>(&'r self, row: &[&'r str]) -> Option<[&'r str; 3]> {
        let relation = match &self.relation {
            RelationAt::Column(place) => row.get(*place)?,
            RelationAt::Always(relation) => relation.as_str(),
        };
        Some([row.get(self.subject)?, relation, row.get(self.object)?])
    }

    fn is_of_fact(&self, place: usize) -> bool {
        place == self.subject || place == self.object || self.relation == RelationAt::Column(place)
    }

    /// The columns that are read, ascending.
    #[cfg(feature = "parquet")]
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![self.subject, self.object];
        if let RelationAt::Column(place) = self.relation {
            places.push(place);
        }
        places.extend(self.beside.iter().map(|(place, _)| *place));
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The same layout over the columns `read` alone.
    #[cfg(feature = "parquet")]
    pub(super) fn among(&self, read: &[usize]) -> Self {
        let at = |place: usize| read.iter().position(|&other| other == place).unwrap_or(0);
        Self {
            width: read.len(),
            subject: at(self.subject),
            relation: match &self.relation {
                RelationAt::Column(place) => RelationAt::Column(at(*place)),
                always => always.clone(),
            },
            object: at(self.object),
            beside: self.beside.iter().map(|&(place, part)| (at(place), part)).collect(),
            names: Vec::new(),
            spaces: [None, None],
        }
    }

    /// What is read from which column, in a sentence; `None` if there is nothing but facts.
    pub(super) fn sentence(&self) -> Option<String> {
        if self.names.is_empty() || (self.width == 3 && self.beside.is_empty()) {
            return None;
        }
        let name = |place: usize| self.names.get(place).map_or("", String::as_str);
        let relation = match &self.relation {
            RelationAt::Column(place) => name(*place),
            RelationAt::Always(relation) => relation,
        };
        let mut text = format!("facts are {} – {relation} – {}", name(self.subject), name(self.object));
        for (place, part) in &self.beside {
            // Writing to a string cannot fail.
            let _ = write!(text, ", {} is {}", part.name(), name(*place));
        }
        let used = |place: &usize| self.is_of_fact(*place) || self.beside.iter().any(|(of, _)| of == place);
        let unused: Vec<&str> = (0..self.width).filter(|place| !used(place)).map(name).collect();
        if !unused.is_empty() {
            let _ = write!(text, "; not used: {}", unused.join(", "));
        }
        Some(text)
    }
}

/// The columns of a table with these names that say something beside its facts, each with what it is: `confidence`,
/// `source`, `negative`, `time`, `subject_label`, `object_type` and the like. Empty if the names do not say which columns
/// are the facts.
pub fn beside_columns(columns: &[&str]) -> Vec<(usize, &'static str)> {
    let layout = Layout::of_header(columns, "");
    let beside = layout.map_or_else(Vec::new, |layout| layout.beside);
    beside.into_iter().map(|(place, part)| (place, part.name())).collect()
}

/// The columns of a table that a user chose, by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenColumns {
    /// The subjects.
    pub subject: usize,
    /// The relations; `None` if all facts have the same one, as in a list of edges.
    pub relation: Option<usize>,
    /// The objects.
    pub object: usize,
    /// The others, each with what it is.
    pub beside: Vec<(usize, &'static str)>,
}

/// The columns of a table with these names that a user chose.
///
/// # Errors
/// If there is no such column; says which there are.
pub fn chosen_columns(choice: &ColumnChoice, columns: &[&str]) -> Result<ChosenColumns, GraphError> {
    let layout = Layout::chosen(choice, columns, true).map_err(|(expected, found)| {
        GraphError::Data(format!("columns: expected {expected}, found {found}"))
    })?;
    let relation = match layout.relation {
        RelationAt::Column(place) => Some(place),
        RelationAt::Always(_) => None,
    };
    let beside = layout.beside.into_iter().map(|(place, part)| (place, part.name())).collect();
    Ok(ChosenColumns { subject: layout.subject, relation, object: layout.object, beside })
}

/// The layout of a table by its first row, and whether that row is a header. `header` says so; `None` detects it.
/// `letters` is whether names of one letter can be a header: in TSV they could just as well be a fact.
///
/// # Errors
/// If a chosen column does not exist, or nothing says which columns are meant.
pub(super) fn layout_of(
    row: &[&str],
    file: &str,
    header: Option<bool>,
    letters: bool,
    choice: Option<&ColumnChoice>,
) -> Result<(Layout, bool), (String, String)> {
    let named = if header == Some(false) { None } else { Layout::of_header(row, file) };
    if let Some(choice) = choice {
        let is_header = header.unwrap_or(!choice.is_by_number() || named.is_some());
        return Ok((Layout::chosen(choice, row, is_header)?, is_header));
    }
    if let Some(layout) = named {
        let clear = letters || row.len() != 3 || row.iter().all(|name| name.len() > 1);
        if header == Some(true) || clear {
            return Ok((layout, true));
        }
    }
    if row.len() == 3 {
        return Ok((Layout::plain(), header == Some(true)));
    }
    let fourth = if header == Some(true) || row.len() != 4 { None } else { fourth_column(row[3]) };
    match fourth {
        Some(part) => Ok((Layout { beside: vec![(3, part)], width: 4, ..Layout::plain() }, false)),
        None => Err((
            "3 columns, or a header that names subject, relation and object (--columns subject=…,relation=…,object=… says \
             which they are)"
                .to_owned(),
            format!("{}: {}", row.len(), row.join(", ")),
        )),
    }
}

/// What a fourth column without a name is, by its first value: a date is a time, a fraction a confidence.
fn fourth_column(value: &str) -> Option<Part> {
    use crate::Time;
    match Time::parse(value)? {
        Time::Date(_) => Some(Part::Time),
        Time::Number(number) if number > 0.0 && number <= 1.0 && value.contains('.') => {
            Some(Part::Confidence)
        }
        Time::Number(_) => None,
    }
}

/// The name of a column without what does not matter: case, the type that Neo4j adds, spaces for underscores.
pub(super) fn plain_name(name: &str) -> String {
    let name = name.trim().trim_start_matches('#').trim_start_matches(':');
    let name = name.split('(').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    name.trim().to_ascii_lowercase().replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_beside_the_facts_are_named_by_what_they_are() {
        let said = beside_columns(&["head", "relation", "tail", "certainty", "weight", "Year", "tail_kind"]);
        assert_eq!(said, [(3, "confidence"), (5, "time"), (6, "object_type")]);
        // Where the subject is called source, no other column is.
        assert_eq!(beside_columns(&["source", "metaedge", "target"]), []);
        assert_eq!(beside_columns(&["a", "b", "c", "confidence"]), []);
    }

    fn parts(header: &str) -> Option<String> {
        let names: Vec<&str> = header.split(',').collect();
        Layout::of_header(&names, "acted_in")
            .map(|layout| layout.sentence().unwrap_or_else(|| "facts".to_owned()))
    }

    #[test]
    fn published_headers_are_understood() {
        for (header, expected) in [
            ("source,metaedge,target", Some("facts")),
            (
                "id,subject,predicate,object,category,publications,negated",
                Some(
                    "facts are subject – predicate – object, source is publications, negative is negated; not used: id, \
                     category",
                ),
            ),
            (
                "relation,display_relation,x_index,x_id,x_type,x_name,x_source,y_index,y_id,y_type,y_name,y_source",
                Some(
                    "facts are x_index – relation – y_index, subject_type is x_type, subject_label is x_name, object_type \
                     is y_type, object_label is y_name; not used: display_relation, x_id, x_source, y_id, y_source",
                ),
            ),
            (
                ":START_ID(Person),role,:END_ID(Movie),:TYPE,confidence:float",
                Some(
                    "facts are :START_ID(Person) – :TYPE – :END_ID(Movie), confidence is confidence:float; not used: role",
                ),
            ),
            (":START_ID,:END_ID", Some("facts are :START_ID – acted_in – :END_ID")),
            (
                "head,relation,tail,source,date",
                Some("facts are head – relation – tail, source is source, time is date"),
            ),
            ("drug,effect,disease", None),
        ] {
            assert_eq!(parts(header).as_deref(), expected, "{header}");
        }
    }

    #[test]
    fn a_choice_names_columns_or_counts_them() {
        let choice: ColumnChoice = "subject=drug,relation=effect,object=disease".parse().unwrap();
        assert_eq!(choice.to_string().parse::<ColumnChoice>(), Ok(choice.clone()));
        let header = ["n", "drug", "effect", "disease"];
        let (layout, is_header) = layout_of(&header, "", None, false, Some(&choice)).unwrap();
        assert_eq!((layout.only_facts(), is_header), (Some([1, 2, 3]), true));
        let (expected, found) = layout_of(&["a", "b"], "", None, false, Some(&choice)).unwrap_err();
        assert_eq!((expected.as_str(), found.as_str()), ("a column drug, as chosen for the subject", "a, b"));
        let counted: ColumnChoice = "subject=1,object=2".parse().unwrap();
        let (layout, is_header) = layout_of(&["17", "4", "0.5"], "", None, false, Some(&counted)).unwrap();
        assert_eq!((layout.relation, is_header), (RelationAt::Always(LINK.to_owned()), false));
        for wrong in ["subject", "subject=a", "whom=a,object=b", "subject=,object=b"] {
            assert!(wrong.parse::<ColumnChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn four_columns_without_a_header_are_facts_with_a_time_or_a_confidence() {
        let part =
            |row: [&str; 4]| layout_of(&row, "", None, false, None).map(|(layout, _)| layout.beside[0].1);
        assert_eq!(part(["a", "r", "b", "2015-06-30"]), Ok(Part::Time));
        assert_eq!(part(["a", "r", "b", "0.93"]), Ok(Part::Confidence));
        assert!(part(["a", "r", "b", "17"]).is_err() && part(["a", "r", "b", "c"]).is_err());
    }
}
