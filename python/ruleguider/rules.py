"""Rules by themselves: mined, read, applied, saved."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any, Literal, overload

from . import _ruleguider
from ._progress import Progress, shown
from ._tables import Table, rows
from .graph import Data, Graph
from .results import Direction, Evaluation, Rule, Ties


class Rules(Table, Sequence[Rule]):
    """Rules over the names of a graph: a sequence of `Rule`.

    >>> rules = model.rules()
    >>> rules.select(head="cousin_of", min_confidence=0.5).to_pandas()["relation"].unique().tolist()
    ['cousin_of']
    """

    __slots__ = ("_rules",)

    def __init__(self, rules: _ruleguider.Rules) -> None:
        self._rules = rules

    @staticmethod
    def read(path: str | os.PathLike[str], graph: Graph) -> Rules:
        """Reads a file in AnyBURL's format, written by this program, AnyBURL or PyClause."""
        return Rules(_ruleguider.Rules.read(os.fspath(path), graph._graph))

    def __len__(self) -> int:
        return len(self._rules)

    @overload
    def __getitem__(self, index: int) -> Rule: ...
    @overload
    def __getitem__(self, index: slice) -> Rules: ...
    def __getitem__(self, index: int | slice) -> Rule | Rules:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step < 1:
                raise ValueError("a slice of rules needs a positive step")
            return Rules(self._rules.slice(start, stop, step))
        return Rule(json.loads(self._rules.get(range(len(self))[index])))

    @property
    def saturation(self) -> float | None:
        """The share of the counting that was done before mining ended; `None` for rules that were not just mined."""
        return self._rules.saturation

    def select(self, head: str | None = None, min_confidence: float = 0.0) -> Rules:
        """The rules that predict the relation `head`, with at least this confidence."""
        return Rules(self._rules.select(head, min_confidence))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the rules in AnyBURL's format; `.gz` and `.zst` are compressed."""
        self._rules.save(os.fspath(path))

    def columns(self) -> dict[str, list[Any]]:
        """The rules as columns."""
        return self._rules.columns()

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain data."""
        return {"rules": [rule.to_dict() for rule in self]}

    def _over(self, graph: Graph) -> Rules:
        """The same rules over another graph's names, without those about what that graph lacks."""
        with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
            path = os.path.join(folder, "rules.tsv")
            self.save(path)
            return Rules.read(path, graph)

    def __eq__(self, other: object) -> bool:
        """Rules are equal if they are the same rules with the same counts, in the same order."""
        return isinstance(other, Rules) and len(self) == len(other) and self.columns() == other.columns()

    def __hash__(self) -> int:
        return hash((len(self), self[0].text if len(self) else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._rules.pack(),)

    def __repr__(self) -> str:
        columns = Rules(self._rules.slice(0, 10, 1)).columns()
        kept = {name: columns[name] for name in ("rule", "confidence", "correct", "predicted")}
        more = f"\n… and {len(self) - 10:,} more" if len(self) > 10 else ""
        return f"Rules({len(self):,})\n{rows(kept, 10)}{more}"

    def _repr_html_(self) -> str:
        return self._rules.html(repr(self))


def _unpickled(packed: tuple[bytes, bytes]) -> Rules:
    return Rules(_ruleguider.Rules.unpack(*packed))


def mine(
    graph: Data,
    *,
    types: Sequence[str] | None = None,
    seconds: float | None = None,
    samples: int | None = None,
    saturate: bool = False,
    max_length: int | None = None,
    max_acyclic_length: int | None = None,
    min_support: int | None = None,
    min_confidence: float | None = None,
    unseen: float | None = None,
    object_identity: bool = True,
    heads: Sequence[str] = (),
    max_bodies: int | None = None,
    max_groundings: int | None = None,
    confidence: Literal["standard", "pca", "validation"] | None = None,
    learn_valid: bool = False,
    seed: int = 1,
    progress: Progress = True,
) -> Rules:
    """Finds rules, the most confident first. Defaults are those of the command line (`ruleguider mine --help`).

    `types` are some of `cyclic`, `acyclic` and `zero`. Mining ends after `seconds`, or when everything is counted; with
    `samples` instead of seconds, or with `saturate`, which counts everything, the same seed gives the same rules. Without
    `max_length`, longer bodies are tried in the remaining time, and kept if they rank the validation split better. `heads`
    are the relations to mine rules for. `confidence` says which predictions of a rule count: all (`standard`), only those
    about entities that have a known fact of the relation (`pca`), or whichever of the two ranks the validation split better
    (`validation`). Ctrl-C ends it with `KeyboardInterrupt`.

    >>> rules = rg.mine(graph, types=["cyclic"], samples=1000, progress=False)
    >>> rules[0].confidence >= rules[1].confidence
    True
    """
    read = Graph.of(graph)
    mining = _mining(
        types=types,
        seconds=seconds,
        samples=samples,
        saturate=saturate,
        max_length=max_length,
        max_acyclic_length=max_acyclic_length,
        min_support=min_support,
        min_confidence=min_confidence,
        unseen=unseen,
        object_identity=object_identity,
        heads=heads,
        max_bodies=max_bodies,
        max_groundings=max_groundings,
        confidence=confidence,
        learn_valid=learn_valid,
        seed=seed,
    )
    with shown(progress) as bars:
        return Rules(_ruleguider.mine(read._graph, mining, bars))


# The default options of mining.
_MINING: dict[str, Any] = {
    "types": None,
    "seconds": None,
    "samples": None,
    "saturate": False,
    "max_length": None,
    "max_acyclic_length": None,
    "min_support": None,
    "min_confidence": None,
    "unseen": None,
    "object_identity": True,
    "heads": (),
    "max_bodies": None,
    "max_groundings": None,
    "confidence": None,
    "learn_valid": False,
    "seed": 1,
}


def _mining(**given: Any) -> dict[str, Any]:
    """The mining options in the library's form."""
    if unknown := given.keys() - _MINING.keys():
        raise TypeError(f"mine: unexpected {', '.join(sorted(unknown))}")
    mining = {**_MINING, **given}
    if mining["types"] is not None:
        mining["types"] = _words("types", mining["types"])
    mining["heads"] = _words("heads", mining["heads"])
    return mining


def apply(
    graph: Data,
    rules: Rules | str | os.PathLike[str],
    *,
    split: Literal["test", "valid"] = "test",
    direction: Direction = "tail",
    ties: Ties = "realistic",
    leave_out_unseen: bool = False,
    aggregate: str | None = None,
    noisy_or_rules: int | None = None,
    top: int | None = None,
    unseen: float | None = None,
    open_weight: float | None = None,
    zero_weight: float | None = None,
    long_weight: float | None = None,
    object_identity: bool = True,
    by_frequency: bool = True,
    learn_valid: bool = False,
    predictions: str | os.PathLike[str] | None = None,
    progress: Progress = True,
) -> Evaluation:
    """Ranks a split by rules alone. `rules` may be the path of a file in AnyBURL's format.

    `aggregate` is `max-plus`, `max` or `noisy-or`; `predictions` names a file for the best answers, in AnyBURL's format.

    >>> rules = rg.mine(graph, samples=1000, progress=False)
    >>> rg.apply(graph, rules, progress=False).mrr > 0.5
    True
    """
    read = Graph.of(graph)
    given = rules if isinstance(rules, Rules) else Rules.read(rules, read)
    if read is not graph and isinstance(rules, Rules):
        # Rules belong to the graph that they were mined from; from the same data, they mean the same.
        given = rules._over(read)
    with shown(progress) as bars:
        report = _ruleguider.apply(
            read._graph,
            given._rules,
            split,
            direction,
            ties,
            leave_out_unseen,
            aggregate,
            noisy_or_rules,
            top,
            unseen,
            open_weight,
            zero_weight,
            long_weight,
            object_identity,
            by_frequency,
            learn_valid,
            None if predictions is None else os.fspath(predictions),
            bars,
        )
    return Evaluation(json.loads(report))


def _words(name: str, words: Sequence[str]) -> list[str]:
    if isinstance(words, str):
        raise ValueError(f"{name}: expected a list of words, found the text {words!r}")
    return list(words)
