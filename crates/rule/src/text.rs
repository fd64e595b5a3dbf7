//! A rule as one line of text, in AnyBURL's notation: `h(X,Y) <= b(X,A), c(Y,A)`.
//!
//! Names may contain commas, spaces and parentheses, which the notation does not escape. The parser therefore checks
//! at every bracket and comma whether the text is a name in the vocabulary, and backtracks if not. `spelling` says
//! how a name is written so that it differs from a variable and from the end of a line.

use super::clause::{Rule, Shape};
use super::spelling::{self, variable};
use ruleguider_graph::{Direction, EntityId, Link, Names, RelationId};
use ruleguider_support::shown::shortened;
use std::borrow::Cow;
use std::fmt::Write;

/// AnyBURL's constant for "the same entity again", in rules about facts such as `r(a,a)`.
const ITSELF: &str = "me_myself_i";
pub(super) const IMPLIED_BY: &str = " <=";

/// What is wrong with a rule, and at which byte of its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub at: usize,
    pub message: String,
    /// Whether it may well be a rule that names something the data lacks.
    pub unknown: bool,
}

impl Malformed {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), unknown: false }
    }
}

/// The content of a line of text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Rule(Rule),
    /// A rule about entities related to themselves, which has no path to walk.
    Reflexive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    Variable(u8),
    Constant(EntityId),
    Itself,
}

#[derive(Clone, Copy, Debug)]
struct Atom {
    at: usize,
    relation: RelationId,
    left: Term,
    right: Term,
}

/// The names that can occur in the text of a rule.
pub(super) struct Vocabularies<'a> {
    names: &'a Names,
    /// No name is longer than this many bytes, so a line of any length is scanned only once.
    longest_relation: usize,
    longest_term: usize,
}

impl<'a> Vocabularies<'a> {
    /// All of `names`.
    pub(super) fn new(names: &'a Names) -> Self {
        let longest_relation = spelling::longest(&names.relations);
        Self { names, longest_relation, longest_term: spelling::longest(&names.entities).max(ITSELF.len()) }
    }
}

/// Reads `head <= body`.
pub(super) fn parse(text: &str, known: &Vocabularies<'_>) -> Result<Parsed, Malformed> {
    let mut parser = Parser { text, known, furthest: None, dead: Vec::new(), endless: None };
    let mut body = Vec::new();
    let head = parser.atom(0, &mut |parser, _, end| {
        let Some(rest) = text[end..].strip_prefix(IMPLIED_BY) else {
            parser.expect(end, "expected ` <= ` after the head");
            return false;
        };
        let body_at = end + IMPLIED_BY.len() + usize::from(rest.starts_with(' '));
        text[body_at..].is_empty() || parser.body(body_at, 0, &mut body)
    });
    match head {
        Some(head) => assemble(head, &body),
        None => {
            let nothing = Malformed::new(0, "expected a rule, `head(X,Y) <= body(X,Y)`");
            Err(parser.endless.or(parser.furthest).unwrap_or(nothing))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    known: &'a Vocabularies<'a>,
    /// The rightmost error: the parse that got furthest is most likely the intended one.
    furthest: Option<Malformed>,
    /// Positions where parsing a body has already failed.
    dead: Vec<usize>,
    /// Set if the body is too long. No other parses are tried then: each would take as long.
    endless: Option<Malformed>,
}

impl Parser<'_> {
    fn expect(&mut self, at: usize, message: impl Into<String>) {
        if self.furthest.as_ref().is_none_or(|known| at > known.at) {
            self.furthest = Some(Malformed::new(at, message));
        }
    }

    /// Reports a name that the data lacks.
    fn expect_name(&mut self, at: usize, message: String) {
        if self.furthest.as_ref().is_none_or(|known| at > known.at) {
            self.furthest = Some(Malformed { unknown: true, ..Malformed::new(at, message) });
        }
    }

    /// Reads atoms up to the end of the text; `before` of them are to the left.
    fn body(&mut self, at: usize, before: usize, atoms: &mut Vec<Atom>) -> bool {
        if before == LONGEST_BODY {
            let message = format!("expected a body of at most {LONGEST_BODY} atoms");
            self.endless.get_or_insert(Malformed::new(at, message));
        }
        if self.endless.is_some() || self.dead.contains(&at) {
            return false;
        }
        let place = atoms.len();
        let found = self.atom(at, &mut |parser, _, end| {
            let rest = &parser.text[end..];
            if rest.is_empty() {
                return true;
            }
            let Some(more) = rest.strip_prefix(',') else {
                parser.expect(end, "expected `, ` and another atom, or the end of the line");
                return false;
            };
            parser.body(end + 1 + usize::from(more.starts_with(' ')), before + 1, atoms)
        });
        match found {
            // Atoms are completed from the last to the first, since each waits for the rest of the line.
            Some(atom) => atoms.insert(place, atom),
            None => self.dead.push(at),
        }
        found.is_some()
    }

    /// The first parse of an atom at `at` for which `goes_on` accepts the rest.
    fn atom(&mut self, at: usize, goes_on: &mut dyn FnMut(&mut Self, Atom, usize) -> bool) -> Option<Atom> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let places = |from: usize, byte: u8, longest: usize| {
            let to = bytes.len().min(from + longest + 1);
            memchr::memchr_iter(byte, &bytes[from..to]).map(move |i| from + i)
        };
        match memchr::memchr(b'(', &bytes[at..]) {
            Some(name) if spelling::read_relation(&text[at..at + name], self.known.names).is_none() => {
                let name = shortened(&text[at..at + name]);
                self.expect_name(at, format!("the data has no relation `{name}`"));
            }
            Some(_) => {}
            None => self.expect(at, "expected an atom, `relation(X,Y)`"),
        }
        let (longest_relation, longest_term) = (self.known.longest_relation, self.known.longest_term);
        for open in places(at, b'(', longest_relation) {
            let Some(relation) = spelling::read_relation(&text[at..open], self.known.names) else { continue };
            for comma in places(open + 1, b',', longest_term) {
                let Some(left) = self.term(open + 1, comma) else { continue };
                for close in places(comma + 1, b')', longest_term) {
                    let Some(right) = self.term(comma + 1, close) else { continue };
                    let atom = Atom { at, relation, left, right };
                    if goes_on(self, atom, close + 1) {
                        return Some(atom);
                    }
                    if self.endless.is_some() {
                        return None;
                    }
                }
                self.expect_known(comma + 1, b')');
            }
            self.expect_known(open + 1, b',');
            self.expect(open + 1, "expected two terms, `(X,Y)`");
        }
        None
    }

    /// Reports a term that is longer than any name and was therefore not looked up.
    fn expect_known(&mut self, from: usize, end: u8) {
        if let Some(length) = memchr::memchr(end, &self.text.as_bytes()[from..])
            && length > self.known.longest_term
        {
            self.unknown_term(from, from + length);
        }
    }

    fn unknown_term(&mut self, from: usize, to: usize) {
        let name = shortened(&self.text[from..to]);
        self.expect_name(from, format!("the data has no entity `{name}`, and it is not a variable"));
    }

    fn term(&mut self, from: usize, to: usize) -> Option<Term> {
        let text = &self.text[from..to];
        if let Some(letter) = variable(text) {
            return Some(Term::Variable(letter));
        }
        let known = spelling::read_entity(text, self.known.names).map(Term::Constant);
        let term = known.or((text == ITSELF).then_some(Term::Itself));
        if term.is_none() {
            self.unknown_term(from, to);
        }
        term
    }
}

/// Orders the atoms as they are walked from the head's variable.
fn assemble(head: Atom, body: &[Atom]) -> Result<Parsed, Malformed> {
    let wrong = |at: usize, message: &str| Err(Malformed::new(at, message));
    if body.iter().chain([&head]).any(|atom| [atom.left, atom.right].contains(&Term::Itself)) {
        return Ok(Parsed::Reflexive);
    }
    let (start, head_link, goal) = match (head.left, head.right) {
        (Term::Variable(left), Term::Variable(right)) if left == right => {
            // PyClause's notation for an entity related to itself.
            if let [only] = body
                && [only.left, only.right].contains(&head.left)
            {
                return Ok(Parsed::Reflexive);
            }
            return wrong(head.at, "the head needs two variables, or a variable and a constant");
        }
        (Term::Variable(left), goal) => (left, Link::forward(head.relation), goal),
        (goal, Term::Variable(right)) => (right, Link::inverse_of(head.relation), goal),
        _ => return wrong(head.at, "the head needs a variable"),
    };
    let (links, end) = walk(start, body)?;
    let at = body.last().map_or(head.at, |atom| atom.at);
    let shape = match (goal, end) {
        (Term::Variable(_), end) if end == goal => Shape::Cyclic,
        (Term::Variable(_), _) => {
            return wrong(at, "the body does not lead to the second variable of the head");
        }
        (Term::Constant(answer), Term::Constant(end)) => Shape::Constant { answer, end: Some(end) },
        (Term::Constant(answer), _) => Shape::Constant { answer, end: None },
        (Term::Itself, _) => return Ok(Parsed::Reflexive),
    };
    Ok(Parsed::Rule(match shape {
        Shape::Cyclic => Rule::cyclic(head_link, &links),
        Shape::Constant { .. } => Rule { head: head_link, body: links.into(), shape },
    }))
}

/// The path of links from `start` through all atoms, and the term at its end.
fn walk(start: u8, body: &[Atom]) -> Result<(Vec<Link>, Term), Malformed> {
    let mut rest: Vec<Atom> = body.to_vec();
    let mut seen = vec![Term::Variable(start)];
    let mut here = Term::Variable(start);
    let mut links = Vec::with_capacity(body.len());
    while let Some(first) = rest.first() {
        let broken = Malformed::new(first.at, "the atoms of the body do not form a path");
        let touching = rest.iter().position(|atom| atom.left == here || atom.right == here);
        let (Some(place), Term::Variable(_)) = (touching, here) else { return Err(broken) };
        let atom = rest.remove(place);
        let (direction, next) = match atom.left == here {
            true => (Direction::Forward, atom.right),
            false => (Direction::Inverse, atom.left),
        };
        if seen.contains(&next) {
            return Err(Malformed::new(atom.at, "the body visits a variable twice"));
        }
        links.push(Link::new(atom.relation, direction));
        seen.push(next);
        here = next;
    }
    Ok((links, here))
}

/// Writes `head <= body` at the end of `out`.
pub(super) fn write(rule: &Rule, names: &Names, out: &mut String) {
    let calls = Calls {
        entity: |id| spelling::entity(id, names).into_owned(),
        relation: |id| spelling::relation(id, names),
    };
    write_with(rule, &calls, out);
}

/// The same for people, with the labels of relations and with `entity` naming the entities.
pub(super) fn write_calling(
    rule: &Rule,
    names: &Names,
    entity: impl Fn(EntityId) -> String,
    out: &mut String,
) {
    write_with(rule, &Calls { entity, relation: |id| names.relation_label(id).into() }, out);
}

/// The functions that name entities and relations.
struct Calls<E, R> {
    entity: E,
    relation: R,
}

fn write_with<'n, E, R>(rule: &Rule, calls: &Calls<E, R>, out: &mut String)
where
    E: Fn(EntityId) -> String,
    R: Fn(RelationId) -> Cow<'n, str>,
{
    let inner = |step: usize| -> String {
        // A body with more variables than the letters from A to W could not be read back.
        char::from(b'A' + u8::try_from(step).unwrap_or(u8::MAX).min(22)).into()
    };
    let last = rule.body.len().saturating_sub(1);
    let (start, goal, end) = match rule.shape {
        Shape::Cyclic => ("X", "Y".to_owned(), "Y".to_owned()),
        Shape::Constant { answer, end } => {
            let start = if rule.head.direction() == Direction::Forward { "X" } else { "Y" };
            (start, (calls.entity)(answer), end.map_or_else(|| inner(last), &calls.entity))
        }
    };
    let write_atom = |link: Link, from: &str, to: &str, out: &mut String| {
        let relation = (calls.relation)(link.relation().expect("rules hold no reserved links"));
        let (left, right) = if link.direction() == Direction::Forward { (from, to) } else { (to, from) };
        // Writing to a string cannot fail.
        let _ = write!(out, "{relation}({left},{right})");
    };
    write_atom(rule.head, start, &goal, out);
    out.push_str(IMPLIED_BY);
    out.push(' ');
    let mut here = start.to_owned();
    for (step, &link) in rule.body.iter().enumerate() {
        let next = if step == last { end.clone() } else { inner(step) };
        out.push_str(if step == 0 { "" } else { ", " });
        write_atom(link, &here, &next, out);
        here = next;
    }
}

/// The longest body whose variables can be told apart in text.
pub(super) const LONGEST_BODY: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(entities: &[&str], relations: &[&str]) -> Names {
        Names {
            entities: entities.iter().copied().collect(),
            relations: relations.iter().copied().collect(),
            ..Names::default()
        }
    }

    fn parse(text: &str, names: &Names) -> Result<Parsed, Malformed> {
        super::parse(text, &Vocabularies::new(names))
    }

    fn read(text: &str, names: &Names) -> Rule {
        match parse(text, names) {
            Ok(Parsed::Rule(rule)) => rule,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn written(rule: &Rule, names: &Names) -> String {
        let mut text = String::new();
        write(rule, names, &mut text);
        text
    }

    /// Names that contain everything the notation itself uses.
    const ENTITIES: [&str; 15] = [
        "tab\tbed",
        "tab\\tbed",
        "two\r\nlines",
        "a",
        "b(c,d)",
        "e, f(X,Y)",
        "g) <= h(",
        "é,",
        "concept:x",
        "A",
        "\"A\"",
        "\"\"A\"\"",
        "\"B\"",
        "X",
        "\"\"X\"\"",
    ];
    const RELATIONS: [&str; 6] = ["r", "/film/film.x", "s(t", "u, v(X", "w <= z", "in\ntwo"];

    fn any_rule() -> impl Strategy<Value = Rule> {
        let link = 3u32..3 + 2 * RELATIONS.len() as u32;
        let entity = 0..ENTITIES.len() as u32;
        let shape = prop_oneof![
            Just(Shape::Cyclic),
            (entity.clone(), prop::option::of(entity)).prop_map(|(answer, end)| Shape::Constant {
                answer: EntityId(answer),
                end: end.map(EntityId)
            })
        ];
        (link.clone(), prop::collection::vec(link, 0..4), shape).prop_map(|(head, body, shape)| {
            let mut body: Vec<Link> = body.into_iter().map(Link).collect();
            match shape {
                Shape::Cyclic => {
                    if body.is_empty() {
                        body.push(Link(head));
                    }
                    Rule::cyclic(Link(head), &body)
                }
                Shape::Constant { answer, end } => {
                    let end = end.filter(|_| !body.is_empty());
                    Rule { head: Link(head), body: body.into(), shape: Shape::Constant { answer, end } }
                }
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(rule in any_rule()) {
            let names = names(&ENTITIES, &RELATIONS);
            let text = written(&rule, &names);
            prop_assert_eq!(read(&text, &names), rule, "{}", text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-eXYA(),<= é]{0,40}") {
            let names = names(&["a", "b", "c,d"], &["a", "b", "r(e"]);
            if let Err(Malformed { at, .. }) = parse(&text, &names) {
                prop_assert!(text.is_char_boundary(at));
            }
        }
    }

    #[test]
    fn anyburl_s_and_pyclause_s_notation_is_understood() {
        let names = names(&["c", "d"], &["h", "r", "s"]);
        for (text, canonical) in [
            ("h(X,Y) <= r(X,A), s(Y,A)", "h(X,Y) <= r(X,A), s(Y,A)"),
            ("h(X,Y) <= s(Y,B), r(X,B)", "h(X,Y) <= r(X,A), s(Y,A)"),
            ("h(B,A) <= r(A,B)", "h(X,Y) <= r(Y,X)"),
            ("h(X,Y) <= r(A,X), r(A,B), s(B,Y)", "h(X,Y) <= r(A,X), r(A,B), s(B,Y)"),
            ("h(c,Y) <= r(Y,d)", "h(c,Y) <= r(Y,d)"),
            ("h(c,Y) <= r(A,Y)", "h(c,Y) <= r(A,Y)"),
            ("h(X,c) <= r(X,A), s(A,B)", "h(X,c) <= r(X,A), s(A,B)"),
            ("h(c,Y) <= r(A,Y), s(A,B), r(B,d)", "h(c,Y) <= r(A,Y), s(A,B), r(B,d)"),
            ("h(c,Y) <= r(c,Y)", "h(c,Y) <= r(c,Y)"),
            ("h(X,c) <= ", "h(X,c) <= "),
            ("h(c,Y) <= ", "h(c,Y) <= "),
            ("h(X,c) <=", "h(X,c) <= "),
        ] {
            assert_eq!(written(&read(text, &names), &names), canonical);
        }
        for text in ["h(X,me_myself_i) <= r(me_myself_i,X)", "h(X,X) <= r(X,d)", "h(X,X) <= r(A,X)"] {
            assert_eq!(parse(text, &names), Ok(Parsed::Reflexive));
        }
    }

    #[test]
    fn complaints_point_at_what_is_wrong() {
        let names = names(&["c"], &["h", "r"]);
        for (text, at, part) in [
            ("", 0, "expected an atom"),
            ("q(X,Y) <= r(X,Y)", 0, "no relation `q`"),
            ("h(X,Y) <= q(X,Y)", 10, "no relation `q`"),
            ("h(X,Y) <= r(X,e)", 14, "no entity `e`"),
            ("h(02154508,Y) <= r(c,Y)", 2, "no entity `02154508`"),
            ("h(c,Y) <= r(d,Y)", 12, "no entity `d`"),
            ("h(X,Y)", 6, "` <= `"),
            ("h(X,Y) <= r(X,Y) r(X,Y)", 16, "another atom"),
            ("h(X,Y) <= r(X,Y", 12, "two terms"),
            ("h(X,Y) <= ", 0, "does not lead"),
            ("h(X,Y) <= r(X,A)", 10, "does not lead"),
            ("h(X,Y) <= r(X,A), r(B,Y)", 18, "do not form a path"),
            ("h(X,Y) <= r(X,Y), r(Y,X)", 18, "visits a variable twice"),
            ("h(X,X) <= r(A,Y)", 0, "two variables"),
            ("h(X,X) <= r(X,A), r(A,Y)", 0, "two variables"),
            ("h(c,c) <= r(c,Y)", 0, "needs a variable"),
        ] {
            let error = parse(text, &names).unwrap_err();
            assert!(error.at == at && error.message.contains(part), "{text}: {error:?}");
        }
    }

    #[test]
    fn an_entity_called_like_a_variable_stands_in_quotes() {
        let names = names(&["A", "B+", "\"O\""], &["blood_group", "donates_to"]);
        let text = "blood_group(X,\"A\") <= donates_to(X,A), blood_group(A,B+)";
        let rule = read(text, &names);
        let Shape::Constant { answer, end } = rule.shape else { panic!("{rule:?}") };
        assert_eq!((names.entity(answer), end.map(|end| names.entity(end))), ("A", Some("B+")));
        assert_eq!(written(&rule, &names), text);
        // A literal `"O"` from an RDF file stays as it is if no entity is called O.
        let literal = "blood_group(X,\"O\") <= donates_to(X,A)";
        assert_eq!(written(&read(literal, &names), &names), literal);
    }

    #[test]
    fn a_body_without_end_is_refused() {
        let names = names(&["c"], &["h", "r"]);
        let longest = vec!["r(X,A)"; LONGEST_BODY].join(", ");
        let error = parse(&format!("h(X,Y) <= {longest}, r(A,Y)"), &names).unwrap_err();
        assert!(error.message.contains("at most 22 atoms"), "{error:?}");
        assert_eq!(error.at, "h(X,Y) <= ".len() + longest.len() + 2);
        let endless = format!("h(X,Y) <= {}", vec!["r(X,A)"; 200_000].join(", "));
        assert_eq!(parse(&endless, &names).unwrap_err().at, error.at);
    }

    #[test]
    fn a_line_of_megabytes_is_looked_through_once() {
        let names = names(&["c"], &["h", "r"]);
        let long = 4 << 20;
        for (text, at, part) in [
            (format!("{}(X,Y) <= r(X,Y)", "(".repeat(long)), 0, "no relation ``"),
            (format!("{}(X,Y) <= r(X,Y)", "h".repeat(long)), 0, "no relation `hhh"),
            (format!("h(X,Y) <= {}", "q(".repeat(long)), 10, "no relation `q`"),
            (format!("h(X,Y) <= r({}X,Y)", "c,".repeat(long)), 14, "no entity"),
            (format!("h(X,Y) <= r({},Y)", "c".repeat(long)), 12, "no entity `ccc"),
            (format!("h(X,Y) <= r(X,{}", "c)".repeat(long)), 16, "another atom"),
            (format!("h(X,Y) <= r(X,{})", "c".repeat(long)), 14, "no entity `ccc"),
        ] {
            let error = parse(&text, &names).unwrap_err();
            assert!(error.message.contains(part), "{}…: {error:?}", &text[..20]);
            assert!(error.at == at && error.message.len() < 600, "{}…: {error:?}", &text[..20]);
        }
    }
}
