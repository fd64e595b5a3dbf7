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

OWN = rdflib.Namespace("urn:x-ruleguider:")


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
