//! Annotated facts as lines of N-Triples, which are also valid Turtle, TriG and N-Quads.

use super::format::Out;
use super::read::{named_node, node, term};
use super::write::write_packed;
use super::{AnnotatedFact, GraphError, RdfStyle, UsedFact, is_annotated};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple as Statement};
use std::io;
use std::path::Path;

/// The vocabulary of annotations.
const VOCABULARY: &str = "urn:x-ruleguider:";
const DERIVED_FROM: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";
const REIFIES: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies";

/// Writes `facts` to `path` in their order. Returns how many there were.
pub(super) fn write(
    path: &Path,
    style: RdfStyle,
    facts: &mut dyn Iterator<Item = io::Result<AnnotatedFact>>,
) -> Result<u64, GraphError> {
    if !is_annotated(path) {
        let found = path.extension().map_or("no extension".into(), |ending| ending.to_string_lossy());
        let expected = "one of the extensions .nt, .ttl, .nq, .trig, each also with .gz or .zst";
        return Err(GraphError::file(path, expected, found));
    }
    let mut count = 0;
    let written = write_packed(path, |out| {
        for fact in facts {
            count += 1;
            write_fact(out, style, &fact?, count)?;
        }
        Ok(())
    });
    written.map_err(GraphError::writing(path))?;
    Ok(count)
}

fn statement([subject, relation, object]: &[String; 3]) -> Statement {
    Statement { subject: node(subject), predicate: named_node(relation), object: term(object) }
}

fn iri(text: &str) -> NamedNode {
    NamedNode::new_unchecked(text)
}

fn blank(id: String) -> NamedOrBlankNode {
    BlankNode::new_unchecked(id).into()
}

/// Writes a fact; `number` names its blank nodes.
fn write_fact(out: Out<'_>, style: RdfStyle, fact: &AnnotatedFact, number: u64) -> io::Result<()> {
    let AnnotatedFact {
        fact: triple,
        probability,
        probability_rough,
        score,
        rule,
        reason,
        derived_from,
        held_out,
        plausibility,
        counter_evidence,
    } = fact;
    let stated = statement(triple);
    if style == RdfStyle::Plain {
        let rough = if *probability_rough { "~" } else { "" };
        let likely = match (probability, plausibility) {
            (Some(share), _) => format!("probability {rough}{share}: "),
            (None, Some(share)) => format!("plausibility {share}: "),
            (None, None) => String::new(),
        };
        writeln!(out, "# {likely}{}", reason.replace(['\n', '\r'], " "))?;
        return writeln!(out, "{stated} .");
    }
    writeln!(out, "{stated} .")?;
    let about = blank(format!("rg{number}"));
    say_what(out, style, &about, &stated)?;
    let mut say = |name: &str, value: Literal| {
        let predicate = iri(&format!("{VOCABULARY}{name}"));
        writeln!(out, "{} .", Statement { subject: about.clone(), predicate, object: value.into() })
    };
    let number_of = |value: f64| Literal::new_typed_literal(format!("{value:?}"), xsd::DOUBLE);
    probability.map_or(Ok(()), |value| say("probability", number_of(value)))?;
    if *probability_rough {
        say("probabilityRough", Literal::from(true))?;
    }
    score.map_or(Ok(()), |value| say("score", number_of(value)))?;
    rule.as_ref().map_or(Ok(()), |rule| say("rule", Literal::from(rule.as_str())))?;
    if !reason.is_empty() {
        say("reason", Literal::from(reason.as_str()))?;
    }
    if !held_out.is_empty() {
        say("heldOut", Literal::from(*held_out))?;
    }
    plausibility.map_or(Ok(()), |value| say("plausibility", number_of(value)))?;
    for against in counter_evidence {
        say("counterEvidence", Literal::from(against.as_str()))?;
    }
    for (place, given) in derived_from.iter().enumerate() {
        let used = statement(&given.fact);
        let own = blank(format!("rg{number}s{place}"));
        if style == RdfStyle::Reified || !given.is_bare() {
            say_what(out, style, &own, &used)?;
            write_note(out, &own, given)?;
        }
        let source: Term = match style {
            RdfStyle::Reified => own.into(),
            RdfStyle::Star | RdfStyle::Plain => Term::Triple(Box::new(used)),
        };
        writeln!(
            out,
            "{} .",
            Statement { subject: about.clone(), predicate: iri(DERIVED_FROM), object: source }
        )?;
    }
    Ok(())
}

/// Writes what the data say about a fact, about the node that stands for it.
fn write_note(out: Out<'_>, about: &NamedOrBlankNode, used: &UsedFact) -> io::Result<()> {
    let UsedFact { confidence, source, time, .. } = used;
    let mut say = |name: &str, value: Literal| {
        let predicate = iri(&format!("{VOCABULARY}{name}"));
        writeln!(out, "{} .", Statement { subject: about.clone(), predicate, object: value.into() })
    };
    if let Some(confidence) = confidence {
        say("confidence", Literal::new_typed_literal(confidence.to_string(), xsd::DECIMAL))?;
    }
    for source in source.iter().flat_map(|all| all.split('|')) {
        say("source", Literal::from(source))?;
    }
    time.as_ref().map_or(Ok(()), |time| say("time", Literal::from(time.as_str())))
}

/// Says which statement `about` stands for.
fn say_what(out: Out<'_>, style: RdfStyle, about: &NamedOrBlankNode, stated: &Statement) -> io::Result<()> {
    let mut say = |predicate: NamedNode, object: Term| {
        writeln!(out, "{} .", Statement { subject: about.clone(), predicate, object })
    };
    if style == RdfStyle::Star {
        return say(iri(REIFIES), Term::Triple(Box::new(stated.clone())));
    }
    say(rdf::TYPE.into(), iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#Statement").into())?;
    say(rdf::SUBJECT.into(), stated.subject.clone().into())?;
    say(rdf::PREDICATE.into(), stated.predicate.clone().into())?;
    say(rdf::OBJECT.into(), stated.object.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdfio::{RdfFormat, RdfParser};

    fn facts() -> Vec<AnnotatedFact> {
        let names = |fact: [&str; 3]| fact.map(str::to_owned);
        let full = AnnotatedFact {
            fact: names(["http://example.org/ada", "aunt of", "ben \"B\""]),
            probability: Some(0.75),
            probability_rough: true,
            score: Some(-0.5),
            rule: Some("aunt_of(X,Y) <= sister_of(X,A), parent_of(A,Y)".to_owned()),
            reason: "ada —sister_of→ cleo —parent_of→ ben".to_owned(),
            derived_from: vec![
                UsedFact {
                    fact: names(["http://example.org/ada", "sister_of", "cleo"]),
                    confidence: Some(0.5),
                    source: Some("PMID:1|PMID:2".to_owned()),
                    time: Some("2015".to_owned()),
                },
                UsedFact { fact: names(["cleo", "parent_of", "ben \"B\""]), ..UsedFact::default() },
            ],
            held_out: "test",
            plausibility: Some(0.125),
            counter_evidence: vec!["ada —sister_of→ dora".to_owned()],
        };
        vec![full, AnnotatedFact { fact: names(["cleo", "aunt of", "dora"]), ..AnnotatedFact::default() }]
    }

    fn read_back(style: RdfStyle, ending: &str) -> Vec<Statement> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("facts.{ending}"));
        assert_eq!(write(&path, style, &mut facts().into_iter().map(Ok)).unwrap(), 2);
        let format = RdfFormat::from_extension(ending).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let quads = RdfParser::from_format(format).for_slice(&bytes).map(Result::unwrap);
        quads
            .map(|quad| Statement { subject: quad.subject, predicate: quad.predicate, object: quad.object })
            .collect()
    }

    fn objects(all: &[Statement], subject: &NamedOrBlankNode, predicate: &str) -> Vec<Term> {
        let matching =
            all.iter().filter(|one| one.subject == *subject && one.predicate.as_str() == predicate);
        matching.map(|one| one.object.clone()).collect()
    }

    #[test]
    fn annotations_are_read_back_by_a_real_reader() {
        let facts = facts();
        for ending in ["nt", "ttl", "nq", "trig"] {
            let all = read_back(RdfStyle::Star, ending);
            let own = statement(&facts[0].fact);
            assert!(all.contains(&own) && all.contains(&statement(&facts[1].fact)));
            let reifier = all.iter().find(|one| one.object == Term::Triple(Box::new(own.clone()))).unwrap();
            assert_eq!(reifier.predicate.as_str(), REIFIES);
            let said = |name: &str| objects(&all, &reifier.subject, &format!("{VOCABULARY}{name}"));
            let double = |text: &str| vec![Term::from(Literal::new_typed_literal(text, xsd::DOUBLE))];
            assert_eq!((said("probability"), said("score")), (double("0.75"), double("-0.5")));
            assert_eq!(said("probabilityRough"), [Term::from(Literal::from(true))]);
            assert_eq!(said("heldOut"), [Term::from(Literal::from("test"))]);
            assert_eq!(said("plausibility"), double("0.125"));
            assert_eq!(said("counterEvidence"), [Term::from(Literal::from("ada —sister_of→ dora"))]);
            assert_eq!(said("rule"), [Term::from(Literal::from(facts[0].rule.as_ref().unwrap().as_str()))]);
            let used: Vec<Term> = facts[0]
                .derived_from
                .iter()
                .map(|used| Term::Triple(Box::new(statement(&used.fact))))
                .collect();
            assert_eq!(objects(&all, &reifier.subject, DERIVED_FROM), used);
        }
    }

    #[test]
    fn reified_facts_are_read_by_older_readers() {
        let facts = facts();
        let all = read_back(RdfStyle::Reified, "nt");
        assert!(all.iter().all(|one| !matches!(one.object, Term::Triple(_))));
        let stated = |about: &NamedOrBlankNode| {
            let one = |part: &str| {
                objects(&all, about, &format!("http://www.w3.org/1999/02/22-rdf-syntax-ns#{part}")).remove(0)
            };
            [one("subject"), one("predicate"), one("object")]
        };
        let parts = |fact: &[String; 3]| {
            let Statement { subject, predicate, object } = statement(fact);
            [subject.into(), predicate.into(), object]
        };
        let likely = all.iter().find(|one| one.predicate.as_str().ends_with("probability")).unwrap();
        assert_eq!(stated(&likely.subject), parts(&facts[0].fact));
        let sources = objects(&all, &likely.subject, DERIVED_FROM);
        assert_eq!(sources.len(), 2);
        for (source, used) in sources.into_iter().zip(&facts[0].derived_from) {
            let Term::BlankNode(source) = source else { panic!("{source}") };
            assert_eq!(stated(&source.into()), parts(&used.fact));
        }
        // Only facts are stated, not what they are derived from.
        assert!(!all.contains(&statement(&facts[0].derived_from[0].fact)));
        let plain = read_back(RdfStyle::Plain, "ttl");
        assert_eq!(plain, facts.iter().map(|fact| statement(&fact.fact)).collect::<Vec<_>>());
    }

    /// Notes of used facts are read back by our own reader; what is used is no fact of the file.
    #[test]
    fn notes_of_used_facts_are_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        for (style, ending) in [(RdfStyle::Star, "ttl"), (RdfStyle::Star, "nt"), (RdfStyle::Reified, "nt")] {
            let path = folder.path().join(format!("facts.{ending}"));
            // The used fact is also stated, so that it can have a note.
            let mut all = facts();
            all.push(AnnotatedFact { fact: all[0].derived_from[0].fact.clone(), ..AnnotatedFact::default() });
            write(&path, style, &mut all.into_iter().map(Ok)).unwrap();
            let options = crate::ReadOptions { incomplete: true, ..crate::ReadOptions::default() };
            let whole = crate::ReadOptions { shares: crate::SplitShares::WHOLE, ..options };
            let dataset = crate::read(&path, &whole).unwrap();
            let names = &dataset.names;
            let known = |fact: &crate::Triple| names.relation(fact.relation) == "sister_of";
            let fact = dataset.known.facts.iter().find(|fact| known(fact)).unwrap();
            let expected =
                crate::Note { confidence: Some(0.5), source: Some("PMID:1|PMID:2"), time: Some("2015") };
            assert_eq!((dataset.note(*fact), dataset.known.facts.len()), (expected, 3), "{ending}");
        }
    }

    #[test]
    fn a_wrong_ending_is_refused() {
        let said = write(Path::new("facts.tsv"), RdfStyle::Star, &mut facts().into_iter().map(Ok));
        assert!(said.unwrap_err().to_string().contains("one of the extensions .nt"));
    }
}
