"""Results as graphs of other packages: rdflib and NetworkX, which are imported when they are asked for."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from typing import Any

from . import _ruleguider


def rdflib_graph(objects: Iterable[dict[str, Any]]) -> Any:
    """What the library writes for RDF, read by rdflib: every fact and, about an `rdf:Statement` of it, what is known."""
    import rdflib

    with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
        lines, out = os.path.join(folder, "facts.jsonl"), os.path.join(folder, "facts.nt")
        with open(lines, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in objects)
        _ruleguider.export_rdf(lines, out)
        return rdflib.Graph().parse(out, format="nt")


class Drawing:
    """A NetworkX graph of reasons: entities, the facts of paths, and the facts that they are reasons for."""

    def __init__(self) -> None:
        import networkx

        self.graph = networkx.MultiDiGraph()

    def entity(self, name: str, label: str | None = None) -> None:
        """An entity; a label is kept, whoever names it first."""
        if label is not None or name not in self.graph:
            self.graph.add_node(name, label=label or name)

    def path(self, start: str, label: str | None, steps: list[dict[str, Any]]) -> None:
        """The facts of a path, in the direction in which they are stated."""
        if not steps:
            return
        self.entity(start, label)
        at = start
        for step in steps:
            self.entity(step["entity"], step["label"])
            head, tail = (step["entity"], at) if step["inverse"] else (at, step["entity"])
            self.fact(head, tail, step["relation"], predicted=False)
            at = step["entity"]

    def fact(self, head: str, tail: str, relation: str, **about: Any) -> None:
        """A fact. The key is the relation, so that a fact of several paths is there once."""
        self.entity(head)
        self.entity(tail)
        said = {name: value for name, value in about.items() if value is not None}
        if not self.graph.has_edge(head, tail, key=relation) or about.get("predicted"):
            self.graph.add_edge(head, tail, key=relation, relation=relation, **said)

    def answer(self, query: dict[str, Any], answer: dict[str, Any]) -> None:
        """An answer to a query with the path that is its reason."""
        self.path(answer["from_id"], answer["from"], answer["path"])
        self.entity(answer["entity"], answer["label"])
        head, tail = (answer["entity"], query["subject"]) if query["inverse"] else (query["subject"], answer["entity"])
        rule = answer["rule"]["text"] if answer["rule"] else None
        about = {"probability": answer["probability"], "score": answer["score"], "rule": rule}
        self.fact(head, tail, query["relation"], predicted=True, **about)
