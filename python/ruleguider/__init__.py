"""Answers over knowledge graphs, with their reasons.

>>> import ruleguider as rg
>>> graph = rg.Graph.demonstration()
>>> model = rg.learn(graph, out=folder / "family", config={"system": "rules", "rules.samples": 2000}, progress=False)
>>> p = model.predict("Ilse_Hagenthal", "cousin_of", top=3)
>>> p[0].entity, p[0].path[0].relation, p[0].rule.confidence > 0.5
('Vera_Hagenthal', 'aunt_of', True)

`Graph` takes a path, triples, arrays, frames or a PyKEEN factory. `learn` goes from a graph to a `Model`; `open` opens a
run again. A `Model` predicts, explains, completes and evaluates. `mine` and `apply` work with rules alone. Wrong arguments
are a `ValueError`; everything else that goes wrong is an `Error`.
"""

import atexit as _atexit

from . import _ruleguider
from ._ruleguider import Error
from .client import Client, ServerError
from .graph import Graph
from .model import Model, ask, learn, open
from .results import (
    Answer,
    Case,
    Contribution,
    Completed,
    Doubts,
    Evaluation,
    Evidence,
    Explanation,
    Fact,
    Facts,
    Prediction,
    Predictions,
    Reasons,
    Relations,
    Rule,
    Scores,
    Step,
)
from .rules import Rules, apply, mine

__version__ = _ruleguider.VERSION

__all__ = [
    "Answer",
    "Case",
    "Client",
    "Contribution",
    "Completed",
    "Doubts",
    "Error",
    "Evaluation",
    "Evidence",
    "Explanation",
    "Fact",
    "Facts",
    "Graph",
    "Model",
    "Prediction",
    "Predictions",
    "Reasons",
    "Relations",
    "Rule",
    "Rules",
    "Scores",
    "ServerError",
    "Step",
    "apply",
    "ask",
    "learn",
    "mine",
    "open",
]

# Interrupted work saves its checkpoint before the interpreter exits.
_atexit.register(_ruleguider.finish)
