"""Facts that are added to a model: answers at once, and learning from what is new alone."""

from __future__ import annotations

import pickle
from pathlib import Path

import pandas
import pytest

import ruleguider as rg
from conftest import RULES

NEW = [("Ada_New", "parent_of", "Ilse_Hagenthal"), ("Ada_New", "sibling_of", "Bo_New")]


def test_what_is_added_is_in_the_next_answer(model: rg.Model) -> None:
    frame = pandas.DataFrame(NEW, columns=["head", "relation", "tail"]).assign(confidence=[0.9, None], source=["a letter", None])
    more = model.add(frame)
    assert "Ada_New" in more.predict("Ilse_Hagenthal", "~parent_of").known
    assert more.waiting == 0 and len(more.graph) == len(model.graph) + 2
    assert "Ada_New" not in model.graph.entities, "the model itself is as it was"
    assert more != model and "2 edits" in repr(more)
    # Edits add up, and can be undone.
    again = more.add([("Bo_New", "parent_of", "Cy_New")], remove=NEW[:1])
    assert "Cy_New" in again.graph.entities and again.predict("Ilse_Hagenthal", "~parent_of").known_total == model.predict(
        "Ilse_Hagenthal", "~parent_of"
    ).known_total
    assert pickle.loads(pickle.dumps(more)) == more
    assert pickle.loads(pickle.dumps(more)).graph.entities == more.graph.entities


def test_what_is_rejected_is_never_predicted(model: rg.Model) -> None:
    best = model.predict("Ilse_Hagenthal", "cousin_of")[0].entity
    less = model.add(reject=[("Ilse_Hagenthal", "cousin_of", best)])
    assert best not in [answer.entity for answer in less.predict("Ilse_Hagenthal", "cousin_of", top=1000)]


def test_an_unknown_relation_waits(model: rg.Model) -> None:
    assert model.add([("Ilse_Hagenthal", "met", "Vera_Hagenthal")]).waiting == 1


def test_an_update_needs_only_what_is_new(graph: rg.Graph, tmp_path: Path) -> None:
    first = rg.learn(graph, out=tmp_path / "run", config=RULES, progress=False)
    now = first.add(NEW[:1]).update(NEW[1:], progress=False)
    assert now.path == tmp_path / "run-updated" and now.results["update"]["facts_added"] == 2
    assert {"Ada_New", "Bo_New"} <= set(now.graph.entities)
    assert len(first.graph) + 2 == len(now.graph)
    with pytest.raises(ValueError, match="update: expected facts"):
        first.update(progress=False)


def test_wrong_facts_are_said(model: rg.Model) -> None:
    with pytest.raises(ValueError, match="fact 0: expected a subject, a relation and an object"):
        model.add([("a", "b")])  # type: ignore[list-item]
    frame = pandas.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"], "confidence": [7.0]})
    with pytest.raises(ValueError, match="fact 0: expected a confidence above 0 and at most 1, found 7"):
        model.add(frame)
