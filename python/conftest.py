"""What tests and examples share: a graph, a folder, and a model that is learnt once."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ruleguider as rg

# Where there is no Ray, its module cannot be looked into.
collect_ignore = [] if importlib.util.find_spec("ray") else ["ruleguider/ray.py"]

RULES = {"system": "rules", "rules.samples": 2000}


def skip(need: str, why: str) -> NoReturn:
    """A skipped test is seen where CI looks for it."""
    if seen := os.environ.get("RULEGUIDER_SKIPPED"):
        with open(seen, "a") as file:
            file.write(f"{need}\t{why}\n")
    pytest.skip(why, allow_module_level=True)


def needed(name: str, what: str) -> Any:
    """The module called `name`, without which `what` is skipped, and seen to be."""
    if importlib.util.find_spec(name) is None:
        skip(name, f"{what}: there is no {name}")
    return importlib.import_module(name)


@pytest.fixture(scope="session")
def graph() -> rg.Graph:
    return rg.Graph.demonstration()


@pytest.fixture(scope="session")
def model(graph: rg.Graph, tmp_path_factory: pytest.TempPathFactory) -> rg.Model:
    """A model of rules alone: learnt in a second."""
    return rg.learn(graph, out=tmp_path_factory.mktemp("runs") / "rules", config=RULES, progress=False)


@pytest.fixture(scope="session")
def embedding(graph: rg.Graph, tmp_path_factory: pytest.TempPathFactory) -> rg.Model:
    """A model with vectors."""
    config = {"system": "embedding", "embed": {"model": "complex", "dimension": 16, "epochs": 2}}
    return rg.learn(graph, out=tmp_path_factory.mktemp("runs") / "vectors", config=config, progress=False)


@pytest.fixture(autouse=True)
def examples(doctest_namespace: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """The names that examples in the documentation use."""
    if isinstance(request.node, pytest.DoctestItem):
        doctest_namespace.update(rg=rg, folder=tmp_path)
        doctest_namespace["graph"] = request.getfixturevalue("graph")
        doctest_namespace["model"] = request.getfixturevalue("model")
    yield
