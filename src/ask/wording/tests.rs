//! Names of relations and their phrases.

use super::*;

#[test]
fn names_of_relations_become_phrases() {
    for (name, phrase) in [
        ("uses", "{s} uses {o}"),
        ("parent_of", "{s} is a parent of {o}"),
        ("aunt_of", "{s} is an aunt of {o}"),
        ("subtechnique-of", "{s} is a subtechnique of {o}"),
        ("attributed-to", "{s} is attributed to {o}"),
        ("conceptually_related_to", "{s} is conceptually related to {o}"),
        ("interacts_with", "{s} interacts with {o}"),
        ("co-occurs_with", "{s} co-occurs with {o}"),
        ("negatively_regulates", "{s} negatively regulates {o}"),
        ("in_pathway", "{s} is in pathway {o}"),
        ("_also_see", "{s} refers also to {o}"),
        ("has-analytic", "{s} has the analytic {o}"),
        ("has_enzyme_class", "{s} has the enzyme class {o}"),
        ("platform", "{s}'s platform is {o}"),
        ("country of citizenship", "{s}'s country of citizenship is {o}"),
        ("/people/person/place_of_birth", "{s}'s place of birth is {o}"),
        ("http://www.w3.org/ns/bornIn", "{s} was born in {o}"),
        ("_similar_to", "{s} is similar to {o}"),
        ("_hypernym", "{s} is a kind of {o}"),
        ("isa", "{s} is a kind of {o}"),
        ("is <a_b> here", "{s} is <a_b> here {o}"),
        ("P27", "{s} is linked to {o} (P27)"),
        ("CtD", "{s} is linked to {o} (CtD)"),
        ("Gr>G", "{s} is linked to {o} (Gr>G)"),
        ("___", "{s} is linked to {o}"),
        ("time_zones", "{s}'s time zones include {o}"),
        ("depends", "{s} depends on {o}"),
        ("artists", "{s}'s artists include {o}"),
        ("docks_with", "{s} docks with {o}"),
        ("members_of", "{s} is one of the members of {o}"),
        ("measures_taken", "the measures taken by {s} include {o}"),
        ("places_lived", "the places where {s} lived include {o}"),
        ("place_founded", "the place where {s} was founded is {o}"),
        ("died_in", "{s} died in {o}"),
        ("hasParts", "{s}'s parts include {o}"),
        ("politics", "{s}'s politics is {o}"),
        ("organization_headquarters", "{s}'s organization headquarters is {o}"),
        ("languagesOfInstruction", "{s}'s languages of instruction include {o}"),
        ("knows", "{s} knows {o}"),
        ("schema:knows", "{s} knows {o}"),
        ("concept:agentbelongstoorganization", "{s} is linked to {o} (agentbelongstoorganization)"),
    ] {
        assert_eq!(phrase_of(name), phrase, "{name}");
    }
}

/// All relations of seven graphs and some of Wikidata, read by a person.
#[test]
fn relations_of_real_graphs_are_sentences() {
    let told = include_str!("names.txt").lines().map(|name| match name.strip_prefix("# ") {
        Some(graph) => format!("# {graph}"),
        None => format!("{} <- {name}", phrase_of(name).replace(SUBJECT, "X").replace(OBJECT, "Y")),
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// The plurals that were taken for verbs, `X artists Y`, and those that were one thing, `X's time zones is Y`.
#[test]
fn plurals_are_no_verbs_and_not_one_thing() {
    for name in include_str!("names.txt").lines().filter(|name| !name.starts_with('#')) {
        let words = words_of(name);
        let Some(last) = words.last().filter(|_| !is_code(name)) else { continue };
        let phrase = phrase_of(name);
        if is_plural(last) && !is_verb(last, None) && !GOVERNING.iter().any(|(verb, _)| last.ends_with(verb))
        {
            assert!(phrase.contains(" include "), "{name}: {phrase}");
        }
    }
}
