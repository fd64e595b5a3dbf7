"""rdflib and NetworkX, in and out; tables that say more than facts."""

from __future__ import annotations

import pandas
import pytest

import ruleguider as rg
from conftest import needed

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
