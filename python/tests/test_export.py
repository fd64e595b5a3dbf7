"""Exports are read back by the readers that people use."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import networkx
import pytest
import rdflib
from rdflib.namespace import PROV, RDF

import ruleguider as rg
from conftest import needed

OWN = rdflib.Namespace("urn:x-ruleguider:")


@pytest.fixture(scope="module", params=["complete", "score", "predict"])
def anything(request: pytest.FixtureRequest, model: rg.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `complete`, `score` and `predict` say, as JSON lines."""
    path = tmp_path_factory.mktemp("anything") / f"{request.param}.jsonl"
    facts = model.complete("cousin_of", top=10, progress=False)
    if request.param == "complete":
        lines = facts.to_dict()["facts"]
    elif request.param == "score":
        lines = model.score([(one.head, one.relation, one.tail) for one in facts], progress=False).to_dict()["facts"]
    else:
        lines = [model.predict(head, "cousin_of", top=3).to_dict() for head in sorted({one.head for one in facts})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


Named = tuple[str, str, str]


def stated(answers: Path) -> dict[Named, float]:
    """The facts of JSON lines of any kind, and their probabilities."""
    likely: dict[Named, float] = {}
    for line in map(json.loads, answers.read_text().splitlines()):
        if "answers" in line:
            for answer in line["answers"]:
                likely[line["subject"], line["relation"], answer["entity"]] = answer["probability"]
        else:
            ends = (line["head"], line["tail"]) if "head" in line else (line["subject"], line["object"])
            likely[ends[0], line["relation"], ends[1]] = line["probability"]
    assert likely
    return likely


def test_every_kind_of_answer_is_read_by_rdflib(anything: Path, tmp_path: Path) -> None:
    export(anything, tmp_path / "facts.nt", "--to", "rdf", "--rdf", "reified")
    graph = rdflib.Graph().parse(tmp_path / "facts.nt")
    likely = {}
    for about, probability in graph.subject_objects(OWN.probability):
        parts = [graph.value(about, part) for part in (RDF.subject, RDF.predicate, RDF.object)]
        likely[tuple(name(part) for part in parts if part)] = probability.toPython()
    assert likely == pytest.approx(stated(anything))


def test_every_kind_of_answer_is_read_by_oxigraph(anything: Path, tmp_path: Path) -> None:
    pyoxigraph = needed("pyoxigraph", "what Oxigraph reads")
    export(anything, tmp_path / "facts.ttl", "--to", "rdf")
    own, reifies = str(OWN.probability), str(RDF) + "reifies"
    quads = list(pyoxigraph.parse(path=str(tmp_path / "facts.ttl")))
    reified = {quad.subject: quad.object for quad in quads if quad.predicate.value == reifies}
    likely = {}
    for quad in quads:
        if quad.predicate.value == own:
            fact = reified[quad.subject]
            parts = (fact.subject.value, fact.predicate.value, fact.object.value)
            likely[tuple(part.removeprefix("urn:ruleguider:") for part in parts)] = float(quad.object.value)
    assert likely == pytest.approx(stated(anything))


def test_every_kind_of_answer_is_read_by_networkx(anything: Path, tmp_path: Path) -> None:
    export(anything, tmp_path / "facts.graphml", "--to", "graphml")
    graph = networkx.read_graphml(tmp_path / "facts.graphml", force_multigraph=True)
    edges = [edge for edge in graph.edges(data=True) if edge[2]["predicted"]]
    likely = {(head, data["relation"], tail): data["probability"] for head, tail, data in edges}
    assert likely == pytest.approx(stated(anything))


def test_missing_facts_as_rdf_are_annotated(model: rg.Model, tmp_path: Path) -> None:
    pyoxigraph = needed("pyoxigraph", "what Oxigraph reads")
    written = model.complete("cousin_of", top=5, out=tmp_path / "missing.ttl", progress=False)
    quads = list(pyoxigraph.parse(path=str(tmp_path / "missing.ttl")))
    said = [quad.predicate.value.removeprefix(str(OWN)) for quad in quads]
    assert written.facts == 5 and [said.count(key) for key in ("probability", "score", "reason")] == [5, 5, 5]


@pytest.fixture(scope="module")
def answers(model: rg.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The best missing cousins, as JSON lines."""
    path = tmp_path_factory.mktemp("answers") / "missing.jsonl"
    model.complete("cousin_of", top=20, out=path, progress=False)
    return path


def export(answers: Path, out: Path, *options: str) -> list[dict[str, object]]:
    """Exports the answers; what they are."""
    command = [sys.executable, "-m", "ruleguider", "export", str(answers), "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in answers.read_text().splitlines()]


def name(node: rdflib.term.Node) -> str:
    return str(node).removeprefix("urn:ruleguider:")


def test_reified_facts_are_read_by_rdflib(answers: Path, tmp_path: Path) -> None:
    facts = export(answers, tmp_path / "missing.ttl", "--to", "rdf", "--rdf", "reified")
    graph = rdflib.Graph().parse(tmp_path / "missing.ttl")
    likely = {}
    for about, probability in graph.subject_objects(OWN.probability):
        stated = [graph.value(about, part) for part in (RDF.subject, RDF.predicate, RDF.object)]
        assert None not in stated and tuple(stated) in graph
        sources = list(graph.objects(about, PROV.wasDerivedFrom))
        assert all((source, RDF.type, RDF.Statement) in graph for source in sources)
        likely[tuple(name(part) for part in stated if part)] = (probability.toPython(), len(sources))
    assert len(likely) == 20
    for fact in facts:
        path = fact["path"]
        assert isinstance(path, list)
        assert likely[(fact["head"], fact["relation"], fact["tail"])] == (fact["probability"], len(path))


def test_graphml_is_read_by_networkx(answers: Path, tmp_path: Path) -> None:
    facts = export(answers, tmp_path / "reasons.graphml", "--to", "graphml")
    graph = networkx.read_graphml(tmp_path / "reasons.graphml", force_multigraph=True)
    edges = list(graph.edges(data=True))
    predicted = {(head, data["relation"], tail): data["probability"] for head, tail, data in edges if data["predicted"]}
    assert predicted == {(fact["head"], fact["relation"], fact["tail"]): fact["probability"] for fact in facts}
    # From every subject a path of facts leads to the object.
    known = networkx.Graph((head, tail) for head, tail, data in edges if not data["predicted"])
    for fact in facts:
        if fact["path"] and fact["from_id"] == fact["head"]:
            assert networkx.has_path(known, fact["head"], fact["tail"])
    assert all("label" in data for _, data in graph.nodes(data=True))


def test_tables_of_nodes_and_edges(answers: Path, tmp_path: Path) -> None:
    facts = export(answers, tmp_path / "neo4j", "--to", "neo4j")
    with (tmp_path / "neo4j" / "relationships.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row[":START_ID"], row[":TYPE"], row[":END_ID"]) for row in rows] == [
        (fact["head"], fact["relation"], fact["tail"]) for fact in facts
    ]
    assert [float(row["probability:double"]) for row in rows] == [fact["probability"] for fact in facts]
    with (tmp_path / "neo4j" / "nodes.csv").open(newline="") as file:
        nodes = [row["id:ID"] for row in csv.DictReader(file)]
    assert len(nodes) == len(set(nodes))
    assert set(nodes) == {end for row in rows for end in (row[":START_ID"], row[":END_ID"])}
    export(answers, tmp_path / "kgx", "--to", "kgx")
    with (tmp_path / "kgx" / "edges.tsv").open(newline="") as file:
        edges = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["subject"] for row in edges] == [fact["head"] for fact in facts]
    assert {row["knowledge_level"] for row in edges} == {"prediction"}
    # The edges are data again.
    assert rg.Graph(tmp_path / "kgx" / "edges.tsv", split=None).to_pandas("train").shape[0] == 20
