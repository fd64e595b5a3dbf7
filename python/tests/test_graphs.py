"""rdflib and NetworkX, in and out; tables that say more than facts."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest

import ruleguider as rg
from conftest import RULES, needed

QUERY = ("Ilse_Hagenthal", "cousin_of")
FAMILY = """
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
ex:ada ex:parent_of ex:ben ; ex:born 1815 ; a ex:Person ; rdfs:label "Ada"@en .
ex:ben ex:parent_of ex:cleo ; ex:note "a \\"quoted\\" word" .
"""
BASE = "http://example.org/"


def test_a_frame_may_say_more_than_facts(tmp_path: object) -> None:
    frame = pandas.DataFrame(
        {
            "head": ["ada", "ben", "ada"],
            "relation": ["parent_of", "parent_of", "parent_of"],
            "tail": ["ben", "cleo", "dan"],
            "confidence": [0.9, None, 1.0],
            "source": ["a letter", "a \"book\", 2nd", None],
            "year": [1815, 1840, None],
            "negative": [False, False, True],
            "tail_type": ["person", "person", "robot"],
        }
    )
    graph = rg.Graph(frame, split=None)
    facts = graph.statistics()
    assert facts["facts"] == 2, "what is known to be false is no fact"
    said = rg.ask(graph, "cleo", "~parent_of")
    assert said.known == ["ben"]
    for kind in ("confidence", "source", "time"):
        assert kind in str(facts), facts
    with pytest.raises(ValueError, match=r"data \(train\):2: .*confidence"):
        rg.Graph(frame.assign(confidence=[7.0, 1.0, 1.0]), split=None)
    # Columns that say nothing of facts change nothing.
    plain = rg.Graph(frame[["head", "relation", "tail"]].assign(colour="red"), split=None)
    assert len(plain) == 3 and plain.entities[0] == "ada"


def test_splits_may_say_more_too() -> None:
    frame = pandas.DataFrame({"head": ["a", "b", "c"], "relation": ["r"] * 3, "tail": ["b", "c", "a"], "confidence": [0.5] * 3})
    graph = rg.Graph(frame[:2], valid=frame[2:])
    assert graph.to_dict()["valid"] == 1 and len(graph) == 2


def test_an_rdflib_graph_keeps_literals_and_types() -> None:
    rdflib = needed("rdflib", "graphs of rdflib")
    graph = rg.Graph(rdflib.Graph().parse(data=FAMILY, format="turtle"), split=None)
    # What a file of the same says.
    assert sorted(graph.relations) == [BASE + "parent_of", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"]
    assert BASE + "ada" in graph.entities and not any("1815" in entity for entity in graph.entities)
    said = str(graph.statistics())
    assert "born" in said and "Person" in said, said
    assert rg.ask(graph, "Ada", BASE + "parent_of").to_dict()["known"] == ["ex:ben"]


def test_predicted_facts_are_an_rdflib_graph(model: rg.Model) -> None:
    rdflib = needed("rdflib", "graphs of rdflib")
    prediction = model.predict(*QUERY, top=3)
    facts = model.complete("cousin_of", top=4, progress=False)
    given = [(*QUERY, prediction[0].entity), (*QUERY, "nobody")]
    many = model.predict_many([QUERY, ("Ilse_Hagenthal", "~parent_of")], top=2, progress=False)
    for result, count in (
        (prediction, 3),
        (facts, 4),
        (model.score(given, progress=False), 1),
        (many, sum(map(len, many))),
    ):
        graph = result.to_rdflib()
        statements = set(graph.subjects(rdflib.RDF.type, rdflib.RDF.Statement))
        about = [one for one in statements if (one, rdflib.URIRef("urn:x-ruleguider:score"), None) in graph]
        assert len(about) == count, type(result)
        for one in about:
            fact = tuple(graph.value(one, part) for part in (rdflib.RDF.subject, rdflib.RDF.predicate, rdflib.RDF.object))
            assert fact in graph
            assert 0 <= float(graph.value(one, rdflib.URIRef("urn:x-ruleguider:probability"))) <= 1
    derived = rdflib.URIRef("http://www.w3.org/ns/prov#wasDerivedFrom")
    assert len(set(prediction.to_rdflib().objects(None, derived))) == sum(len(answer.path) for answer in prediction)


def test_reasons_are_a_networkx_graph(model: rg.Model) -> None:
    networkx = needed("networkx", "graphs of NetworkX")
    prediction = model.predict(*QUERY, top=3)
    drawn = prediction.to_networkx()
    assert isinstance(drawn, networkx.MultiDiGraph)
    predicted = {(head, tail) for head, tail, said in drawn.edges(data="predicted") if said}
    assert predicted == {(QUERY[0], answer.entity) for answer in prediction}
    known = model.graph.to_pandas()
    facts = set(known.itertuples(index=False, name=None))
    for head, tail, relation, about in drawn.edges(keys=True, data=True):
        assert about["predicted"] or (head, relation, tail) in facts
    best = prediction[0]
    edge = drawn.edges[QUERY[0], best.entity, "cousin_of"]
    assert edge["probability"] == best.probability and edge["rule"] == best.rule.text  # type: ignore[union-attr]
    assert networkx.has_path(drawn.to_undirected(), QUERY[0], best.entity)
    inverse = model.predict(QUERY[0], "~parent_of", top=1).to_networkx()
    assert all(tail == QUERY[0] for _, tail, said in inverse.edges(data="predicted") if said)
    why = model.explain(*QUERY, best.entity).to_networkx()
    assert set(drawn.nodes) & set(why.nodes) and why.edges[QUERY[0], best.entity, "cousin_of"]["predicted"]


def test_edges_of_networkx_say_more_than_facts() -> None:
    networkx = needed("networkx", "graphs of NetworkX")
    graph = networkx.MultiDiGraph()
    graph.add_node("ada", label="Ada", type="person")
    graph.add_edge("ada", "ben", relation="parent_of", confidence=0.8, source="a letter")
    graph.add_edge("ben", "cleo", relation="parent_of", weight=3)
    read = rg.Graph(graph, split=None)
    said = str(read.statistics())
    assert "confidence" in said and "source" in said and "person" in said
    assert read.relations == ["parent_of"] and len(read) == 2


def test_a_data_set_of_rdflib_keeps_its_named_graphs() -> None:
    rdflib = needed("rdflib", "data sets of rdflib")
    data = rdflib.Dataset()
    data.bind("ex", BASE)
    ex = rdflib.Namespace(BASE)
    data.parse(data=FAMILY, format="turtle")
    # One statement is in two graphs, and one graph has no statement that is elsewhere.
    for graph in (ex.letters, ex.books):
        data.graph(graph).add((ex.cleo, ex.parent_of, ex.dan))
    data.graph(ex.books).add((ex.dan, rdflib.RDFS.label, rdflib.Literal('Dan "D."', lang="en")))
    data.graph(ex.books).add((ex.dan, ex.note, rdflib.Literal('two\nlines, a \\ and a "quote"')))
    data.graph(ex.books).add((ex.dan, ex.parent_of, ex.eve))
    whole = rg.Graph(data, split=None)
    facts = set(whole.to_pandas().itertuples(index=False, name=None))
    chain = [("ada", "ben"), ("ben", "cleo"), ("cleo", "dan"), ("dan", "eve")]
    assert facts == {(BASE + a, BASE + "parent_of", BASE + b) for a, b in chain} | {
        (BASE + "ada", str(rdflib.RDF.type), BASE + "Person")
    }
    books = rg.Graph(data, split=None, graph=BASE + "books")
    assert len(books) == 2 and BASE + "ada" not in books.entities
    assert rg.ask(books, 'Dan "D."', "ex:parent_of").known == [BASE + "eve"]
    kept = rg.Graph(data, split=None, literals="keep")
    assert len(kept) == len(whole) + 5, "two labels, a year and two notes are facts then"
    older = rdflib.ConjunctiveGraph()
    older.get_context(ex.letters).add((ex.ada, ex.parent_of, ex.ben))
    assert rg.Graph(older, split=None, graph=BASE + "letters").to_pandas().values.tolist() == [
        [BASE + "ada", BASE + "parent_of", BASE + "ben"]
    ]
    with pytest.raises(ValueError, match="literals: expected apart or keep, found some"):
        rg.Graph(data, split=None, literals="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="graph: cannot be used with triples without more"):
        rg.Graph([("a", "r", "b")], split=None, graph=BASE)


EFFECTS = pandas.DataFrame(
    {
        "paper": ["PMID:1", "PMID:2", "PMID:3"],
        "drug": ["aspirin", "ibuprofen", "aspirin"],
        "effect": ["treats", "treats", "causes"],
        "disease": ["headache", "fever", "bleeding"],
        "seen": [2001, 2009, 2015],
    }
)
CHOSEN = {"subject": "drug", "relation": "effect", "object": "disease", "source": "paper", "time": "seen"}


def test_columns_are_chosen_in_frames_and_in_files(tmp_path: Path) -> None:
    file = tmp_path / "effects.csv"
    EFFECTS.to_csv(file, index=False)
    chosen = ",".join(f"{part}={column}" for part, column in CHOSEN.items())
    polars = needed("polars", "frames of polars")
    for data in (EFFECTS, polars.from_pandas(EFFECTS), file, str(file)):
        for columns in (CHOSEN, chosen):
            graph = rg.Graph(data, split=None, columns=columns)
            assert graph.relations == ["treats", "causes"] and len(graph) == 3
            said = str(graph.statistics()["understood"])
            assert "source" in said and "time" in said, said
    edges = rg.Graph(EFFECTS, split=None, columns={"subject": "drug", "object": "disease"})
    assert edges.relations == ["link"] and len(edges) == 3
    for data in (EFFECTS, file):
        with pytest.raises(ValueError, match="expected a column drugs, as chosen for the subject, found paper, drug, effect"):
            rg.Graph(data, split=None, columns={**CHOSEN, "subject": "drugs"})
        with pytest.raises(ValueError, match="columns: expected one of the parts subject, .*; found verb"):
            rg.Graph(data, split=None, columns={**CHOSEN, "verb": "effect"})
    with pytest.raises(ValueError, match="columns: only for files and frames"):
        rg.Graph([("a", "r", "b")], split=None, columns=CHOSEN)


def test_a_fact_that_is_also_false_is_what_conflicts_says(tmp_path: Path) -> None:
    rows = pandas.DataFrame({"head": ["a", "b", "a"], "relation": ["r"] * 3, "tail": ["b", "c", "b"], "negative": [False, False, True]})
    file = tmp_path / "facts.csv"
    rows.to_csv(file, index=False)
    for data in (rows, file):
        with pytest.raises(ValueError, match="conflicts|known to be false"):
            rg.Graph(data, split=None)
        assert len(rg.Graph(data, split=None, conflicts="facts")) == 2
        assert len(rg.Graph(data, split=None, conflicts="negatives")) == len(rg.Graph(data, split=None, conflicts="drop")) == 1


def dated() -> pandas.DataFrame:
    """The demonstration, each fact with a year."""
    family = rg.Graph.demonstration()
    facts = pandas.concat([family.to_pandas(split) for split in ("train", "valid", "test")], ignore_index=True)
    return facts.assign(time=[2000 + at * 20 // len(facts) for at in range(len(facts))])


def test_what_comes_later_is_held_out(tmp_path: Path) -> None:
    facts = dated()
    file = tmp_path / "dated.csv"
    facts.to_csv(file, index=False)
    of_file = rg.Graph(file, split_time=2018)
    assert of_file == rg.Graph(facts, split_time="2018")
    whole = rg.Graph(facts, split=None)
    model = rg.learn(whole, split_time=2018, out=tmp_path / "run", config=RULES, progress=False)
    assert model.graph.to_dict() == {**of_file.to_dict(), "name": model.graph.name}
    later = set(facts[facts["time"] >= 2018][["head", "relation", "tail"]].itertuples(index=False, name=None))
    held_out = set(model.graph.to_pandas("test").itertuples(index=False, name=None))
    assert held_out and held_out <= later
    assert not later & set(model.graph.to_pandas("train").itertuples(index=False, name=None))
    with pytest.raises(ValueError, match="split_time: expected a date"):
        rg.Graph(facts, split_time="once")
    with pytest.raises(ValueError, match="split_time: expected facts between known names from 3000 on, found none"):
        rg.learn(whole, split_time=3000, out=tmp_path / "none", config=RULES, progress=False)
    with pytest.raises(ValueError, match="split_time: cannot be used with triples without more"):
        rg.Graph([("a", "r", "b")], split_time=2018)


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> rg.Model:
    """A model of the demonstration with a source for every fact, and a type for every entity: the first letter."""
    facts = dated()
    facts = facts.assign(
        source=[f"page {at}" for at in range(len(facts))],
        confidence=0.9,
        head_type=facts["head"].str[0],
        tail_type=facts["tail"].str[0],
    )
    return rg.learn(facts, out=tmp_path_factory.mktemp("runs") / "noted", config=RULES, progress=False)


def test_a_step_says_where_its_fact_comes_from(noted: rg.Model) -> None:
    answer = noted.predict(*QUERY, top=1)[0]
    assert answer.path
    for step in answer.path:
        assert step.source and step.source.startswith("page ") and step.confidence == pytest.approx(0.9)
        assert step.time and step.time.startswith("20") and step.note["source"] == step.source


def test_answers_are_chosen_by_type_by_file_and_one_by_one(noted: rg.Model, tmp_path: Path) -> None:
    everyone = [answer.entity for answer in noted.predict(*QUERY, top=1000)]
    letter = everyone[0][0]
    of_type = [entity for entity in everyone if entity[0] == letter]
    assert 0 < len(of_type) < len(everyone)
    file = tmp_path / "wanted.txt"
    file.write_text("\n".join(of_type))
    for given in (letter, file, str(file), of_type, set(of_type), pandas.Series(of_type)):
        among = noted.predict(*QUERY, top=1000, among=given)
        assert {answer.entity for answer in among} == set(of_type), given
        others = noted.predict(*QUERY, top=1000, not_among=given)
        assert [answer.entity for answer in others] == [entity for entity in everyone if entity not in of_type]
    for reasons in (True, False):
        (one,) = noted.predict_many([QUERY], top=50, among=of_type[:1], reasons=reasons, progress=False)
        assert [answer.entity for answer in one] == of_type[:1]
    with pytest.raises(ValueError, match="expected a type or a file of entities, found Nothing; "):
        noted.predict(*QUERY, among="Nothing")
    with pytest.raises(ValueError, match="Nobody"):
        noted.predict(*QUERY, among=["Nobody at all"])


def test_paths_are_chosen_too(noted: rg.Model) -> None:
    relations = {step.relation for answer in noted.predict(*QUERY, top=20) for step in answer.path}
    avoided = sorted(relations)[0]
    without = noted.predict(*QUERY, top=20, without=avoided)
    assert without and all(step.relation != avoided for answer in without for step in answer.path)
    short = noted.predict(*QUERY, top=20, max_hops=2)
    assert all(len(answer.path) <= 2 for answer in short)
    with pytest.raises(ValueError, match="without reasons there are no paths"):
        noted.predict_many([QUERY], reasons=False, max_hops=2, progress=False)
    with pytest.raises(ValueError, match="max_hops: expected at least 1, found 0"):
        noted.predict(*QUERY, max_hops=0)


def test_missing_facts_are_chosen_by_their_ends(noted: rg.Model, tmp_path: Path) -> None:
    every = noted.complete("cousin_of", min_probability=0.05, progress=False)
    letters = sorted({fact.head[0] for fact in every})
    subject, object = letters[0], sorted({fact.tail[0] for fact in every if fact.head[0] == letters[0]})[-1]
    wanted = [(fact.head, fact.tail) for fact in every if (fact.head[0], fact.tail[0]) == (subject, object)]
    found = noted.complete("cousin_of", min_probability=0.05, subjects=subject, objects=object, progress=False)
    assert wanted and [(fact.head, fact.tail) for fact in found] == wanted
    assert found.asked < every.asked
    head = [wanted[0][0]]
    out = noted.complete("cousin_of", min_probability=0.05, subjects=head, out=tmp_path / "facts.tsv", progress=False)
    assert out.facts == sum(fact.head == wanted[0][0] for fact in every)
