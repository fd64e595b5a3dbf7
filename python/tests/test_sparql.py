"""A graph behind a SPARQL endpoint: Oxigraph's store, served on loopback."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

import ruleguider as rg
from conftest import needed

ox = needed("pyoxigraph", "a SPARQL endpoint")

FACTS = 200_000
"""Two pages of each relation: the endpoint orders what it pages through."""
RELATIONS = 10


@pytest.fixture(scope="module")
def store() -> ox.Store:
    """Facts, labels, and a named graph."""
    store = ox.Store()
    node = lambda number: ox.NamedNode(f"http://example.org/e{number}")  # noqa: E731
    relations = [ox.NamedNode(f"http://example.org/r{number}") for number in range(RELATIONS)]
    label = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
    facts = (ox.Quad(node(i % 50_021), relations[i % RELATIONS], node(i * 7919 % 49_999)) for i in range(FACTS))
    labels = (ox.Quad(node(i), label, ox.Literal(f'entity "{i}"', language="en")) for i in range(500))
    own = [ox.Quad(node(1), relations[0], node(2), ox.NamedNode("http://example.org/g"))]
    store.bulk_extend([*facts, *labels, *own])
    return store


class Endpoint(http.server.ThreadingHTTPServer):
    """Answers queries; from a certain request on it is dead."""

    dies_at: float = float("inf")
    asked = 0


class Handler(http.server.BaseHTTPRequestHandler):
    store: ox.Store
    server: Endpoint

    def do_POST(self) -> None:
        self.server.asked += 1
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.asked >= self.server.dies_at:
            return
        found = self.store.query(urllib.parse.parse_qs(form)["query"][0])
        is_rows = isinstance(found, ox.QuerySolutions)
        kind = ox.QueryResultsFormat.JSON if is_rows else ox.RdfFormat.N_TRIPLES
        body = found.serialize(format=kind)
        self.send_response(200)
        self.send_header("Content-Type", kind.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(store: ox.Store) -> Iterator[Endpoint]:
    handler = type("Handler", (Handler,), {"store": store})
    with Endpoint(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def command(endpoint: Endpoint, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`ruleguider stats` on the endpoint."""
    address = f"sparql+http://127.0.0.1:{endpoint.server_address[1]}/query"
    every = [sys.executable, "-m", "ruleguider", "stats", address, "--json", *arguments]
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    return subprocess.run(every, env=env, capture_output=True, text=True, check=False)


def test_a_graph_is_read_page_by_page_and_goes_on_after_the_server_died(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.dies_at = 16
    failed = command(endpoint, tmp_path)
    assert failed.returncode == 2
    assert "so far 100000 statements in 14 pages have come; the same command goes on from there" in failed.stderr
    asked, endpoint.dies_at = endpoint.asked, float("inf")
    done = command(endpoint, tmp_path)
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert counted["train"] + counted["valid"] + counted["test"] == FACTS
    assert (counted["relations"], counted["entities"]) == (RELATIONS, 50_021)
    assert "label" in counted["understood"][0]
    # The rest of one relation, five others, the labels, and an empty page of each.
    assert endpoint.asked - asked == 18, endpoint.asked
    # What has come is not asked for again.
    again = command(endpoint, tmp_path)
    assert json.loads(again.stdout) == counted
    assert endpoint.asked - asked == 18


def test_a_named_graph_and_a_query_of_ones_own(endpoint: Endpoint, tmp_path: Path) -> None:
    of_graph = command(endpoint, tmp_path, "--graph", "http://example.org/g")
    assert json.loads(of_graph.stdout)["facts"] == 1, of_graph.stderr
    query = tmp_path / "query.rq"
    query.write_text(
        "PREFIX ex: <http://example.org/>\n"
        "SELECT ?s ?p ?o { VALUES ?p { ex:r1 } ?s ?p ?o FILTER(?s = ex:e1) } ORDER BY ?o # all of one\n"
    )
    of_query = command(endpoint, tmp_path, "--query", str(query))
    assert json.loads(of_query.stdout)["relations"] == 1, of_query.stderr
    wrong = command(endpoint, tmp_path, "--query", str(tmp_path / "missing.rq"))
    assert wrong.returncode == 2 and "missing.rq: cannot be read" in wrong.stderr


def test_a_graph_is_read_from_an_endpoint(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    address = f"sparql+http://127.0.0.1:{endpoint.server_address[1]}/query"
    part = rg.Graph(address, split=None, graph="http://example.org/g")
    assert part.to_pandas().values.tolist() == [[f"http://example.org/{name}" for name in ("e1", "r0", "e2")]]
    query = "SELECT ?s ?p ?o { VALUES ?p { <http://example.org/r1> } ?s ?p ?o } ORDER BY ?s ?o LIMIT 7"
    asked = endpoint.asked
    for _ in range(2):
        assert len(rg.Graph(address, split=None, query=query)) == 7
    assert endpoint.asked == asked + 1, "what has come is not asked for again"
    with pytest.raises(ValueError, match="expected a named graph or a query"):
        rg.Graph(address, graph="http://example.org/g", query=query)
    with pytest.raises(ValueError, match="query: cannot be used with triples in memory"):
        rg.Graph([("a", "r", "b")], query=query)
