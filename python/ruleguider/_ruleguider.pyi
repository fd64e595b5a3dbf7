"""The compiled half of the package. Users call `ruleguider`; results are JSON here."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypedDict, final

import numpy
from numpy.typing import NDArray

__all__ = [
    "Error",
    "Graph",
    "beside_columns",
    "chosen_columns",
    "triple_columns",
    "finish",
    "panic_for_tests",
    "Model",
    "explanation_html",
    "export_rdf",
    "facts_html",
    "prediction_html",
    "Predictions",
    "Rules",
    "apply",
    "is_whole",
    "merge",
    "mine",
    "mine_shard",
    "View",
    "command",
    "VERSION",
]

VERSION: str

class Error(Exception): ...

class _Bars(Protocol):
    def begin(self, stage: str, unit: str, total: int | None, /) -> bool | None: ...
    def advance(self, done: int, figures: str, /) -> bool | None: ...
    def record(self, stage: str, epoch: int, seconds: float, figures: str, /) -> bool | None: ...
    def end(self, summary: str, /) -> None: ...

_Path = str | PathLike[str]
_Added = tuple[list[str], float | None, str | None]
_Edits = tuple[list[_Added], list[list[str]], list[list[str]]]
_Columns = Sequence[Sequence[Any]]
# A type or a file, or entities one by one.
_Entities = str | list[str] | None
# What paths pass, what they do not pass, and how many facts they have at most.
_OnPath = tuple[list[str], list[str], int | None]
_Wanted = tuple[_Entities, _Entities, _OnPath]

class _Reading(TypedDict):
    header: bool | None
    columns: str | None
    graph: str | None
    literals: str | None
    conflicts: str | None
    split_time: str | None
    query: str | None

_Ids = NDArray[numpy.int64]

@final
class Graph:
    @staticmethod
    def read(
        path: _Path, split: Sequence[float] | None, seed: int, reading: _Reading, name: str | None
    ) -> Graph: ...
    def by_time(self, since: str) -> Graph: ...
    @staticmethod
    def demonstration() -> Graph: ...
    @staticmethod
    def unpack(name: str, bytes: bytes) -> Graph: ...
    def pack(self) -> bytes: ...
    @staticmethod
    def from_ids(
        name: str,
        train: _Ids,
        valid: _Ids | None,
        test: _Ids | None,
        entities: Sequence[str] | None,
        relations: Sequence[str] | None,
        split: Sequence[float] | None,
        seed: int,
    ) -> Graph: ...
    @staticmethod
    def from_names(
        name: str,
        train: _Columns,
        valid: _Columns | None,
        test: _Columns | None,
        split: Sequence[float] | None,
        seed: int,
    ) -> Graph: ...
    def with_labels(self, labels: list[tuple[str, str]]) -> tuple[Graph, int]: ...
    @property
    def name(self) -> str: ...
    @property
    def sizes(self) -> tuple[int, int, int, int, int]: ...
    @property
    def entities(self) -> list[str]: ...
    @property
    def relations(self) -> list[str]: ...
    def triples(self, split: str) -> View: ...
    def statistics(self) -> str: ...
    def html(self, plain: str) -> str: ...

@final
class View:
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class Model:
    @staticmethod
    def learn(
        graph: Graph,
        minutes: float | None,
        out: _Path | None,
        seed: int,
        config: str | None,
        settings: str | None,
        device: str,
        threads: int | None,
        tensorboard: bool,
        update: _Path | None,
        split: Sequence[float] | None,
        learn_all: bool,
        instant: bool,
        embedding: str | None,
        bars: _Bars | None,
    ) -> Model: ...
    @staticmethod
    def instant(graph: Graph, out: _Path, device: str, threads: int | None) -> Model: ...
    @staticmethod
    def update(
        run: _Path,
        edits: _Edits,
        minutes: float | None,
        out: _Path | None,
        seed: int,
        device: str,
        threads: int | None,
        learn_all: bool,
        bars: _Bars | None,
    ) -> Model: ...
    def with_edits(self, edits: _Edits) -> tuple[Model, int]: ...
    @property
    def seed(self) -> int: ...
    @staticmethod
    def open(
        path: _Path,
        device: str,
        threads: int | None,
        beam: int | None,
    ) -> Model: ...
    def predict(self, subject: str, relation: str, top: int, wanted: _Wanted) -> str: ...
    def predict_many(
        self, queries: list[tuple[str, str]], top: int, reasons: bool, wanted: _Wanted, bars: _Bars | None
    ) -> Predictions: ...
    def explain(self, subject: str, relation: str, object: str) -> str: ...
    def complete(
        self,
        relations: list[str],
        top: int | None,
        min_probability: float | None,
        held_out: str,
        wanted: _Wanted,
        out: _Path | None,
        bars: _Bars | None,
    ) -> str: ...
    def score(self, facts: list[list[str]], threshold: str | None, bars: _Bars | None) -> str: ...
    def explain_many(self, facts: list[list[str]], reasons: int, bars: _Bars | None) -> str: ...
    def relations(self, subject: str, object: str, top: int) -> str: ...
    def doubt(self, relations: list[str], top: int, bars: _Bars | None) -> str: ...
    def evaluate(
        self,
        split: str,
        direction: str | None,
        ties: str,
        leave_out_unseen: bool,
        all_queries: bool,
        strata: bool,
        calibration: bool,
        faithfulness: int | None,
        bars: _Bars | None,
    ) -> tuple[str, str]: ...
    def predict_shard(self, queries: _Path, top: int, wanted: _Wanted, shard: str, out: _Path) -> str: ...
    def evaluate_shard(
        self,
        split: str,
        direction: str | None,
        ties: str,
        leave_out_unseen: bool,
        all_queries: bool,
        shard: str,
        out: _Path,
    ) -> str: ...
    def complete_shard(
        self,
        relations: list[str],
        top: int | None,
        min_probability: float | None,
        held_out: str,
        wanted: _Wanted,
        shard: str,
        out: _Path,
    ) -> str: ...
    def rules(self) -> Rules: ...
    def entity_embeddings(self) -> View: ...
    def entity_biases(self) -> View | None: ...
    def embedding(self) -> str: ...
    def relation_embeddings(self, inverse: bool) -> View: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def path(self) -> str: ...
    @property
    def results(self) -> str: ...
    @property
    def config(self) -> str: ...
    @property
    def metrics(self) -> str: ...
    @property
    def device(self) -> str: ...

@final
class Predictions:
    def __len__(self) -> int: ...
    def get(self, index: int) -> str: ...
    def columns(self) -> dict[str, list[Any]]: ...

@final
class Rules:
    @staticmethod
    def read(path: _Path, graph: Graph) -> Rules: ...
    def __len__(self) -> int: ...
    def get(self, index: int) -> str: ...
    @property
    def saturation(self) -> float | None: ...
    def slice(self, start: int, stop: int, step: int) -> Rules: ...
    def select(self, head: str | None, min_confidence: float) -> Rules: ...
    def columns(self) -> dict[str, list[Any]]: ...
    def save(self, path: _Path) -> None: ...
    def pack(self) -> tuple[bytes, bytes]: ...
    @staticmethod
    def unpack(rules: bytes, names: bytes) -> Rules: ...
    def html(self, plain: str) -> str: ...

def mine(graph: Graph, mining: dict[str, Any], bars: _Bars | None) -> Rules: ...
def mine_shard(graph: Graph, mining: dict[str, Any], shard: str, out: _Path, bars: _Bars | None) -> str: ...
def is_whole(part: _Path) -> bool: ...
def merge(parts: Sequence[_Path], out: _Path | None) -> str: ...
def apply(
    graph: Graph,
    rules: Rules,
    split: str,
    direction: str,
    ties: str,
    leave_out_unseen: bool,
    aggregate: str | None,
    noisy_or_rules: int | None,
    top: int | None,
    unseen: float | None,
    open_weight: float | None,
    zero_weight: float | None,
    long_weight: float | None,
    object_identity: bool,
    by_frequency: bool,
    learn_valid: bool,
    predictions: _Path | None,
    bars: _Bars | None,
) -> str: ...
def triple_columns(columns: list[str]) -> list[int]: ...
def beside_columns(columns: list[str]) -> list[tuple[int, str]]: ...
def chosen_columns(
    choice: str, columns: list[str]
) -> tuple[tuple[int, int | None, int], list[tuple[int, str]]]: ...
def export_rdf(lines: _Path, out: _Path) -> None: ...
def prediction_html(json: str, plain: str) -> str: ...
def explanation_html(json: str, plain: str) -> str: ...
def facts_html(json: str, total: int, plain: str) -> str: ...
def command(arguments: list[str]) -> int: ...
def finish() -> None: ...
def panic_for_tests() -> None: ...
