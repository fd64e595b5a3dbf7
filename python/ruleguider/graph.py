"""`Graph`: the known facts, from any supported kind of data."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _ruleguider
from ._inputs import ColumnNames, Triples, column_choice, triples, write

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

SPLIT = (0.8, 0.1, 0.1)

# A Graph, a path, rows of triples, an array of shape (n, 3), a pandas, polars or Arrow table, a PyKEEN factory or data set.
# Unions of literals, because mypy's stubtest takes a literal of several values for one.
Literals = Literal["apart"] | Literal["keep"]
Conflicts = Literal["error"] | Literal["drop"] | Literal["facts"] | Literal["negatives"]
Data = Union["Graph", str, "os.PathLike[str]", Iterable[Sequence[Any]], Any]


class Graph:
    """A knowledge graph with its splits.

    `data` is a path (a folder with train, valid and test, one file of triples in any format that the command line
    reads, or a SPARQL endpoint, `sparql+http://…`), rows of triples, an array of shape (n, 3), a pandas, polars or Arrow
    table, a PyKEEN `TriplesFactory`, a PyKEEN data set, an rdflib or a NetworkX graph. Text values are names. Integers from 0 without gaps are ids and keep
    their values; `entities` and `relations` name them. Other integers, such as customer numbers, are names.

    Triples without splits are divided by `split` and `seed`; with `split=None` all of them are training facts. `valid` and
    `test` give the splits instead, and `split_time` holds out the facts of that day and later, by the time that the data
    give them. `labels` are readable names of entities.

    `columns` says which columns of a file or frame are what, by name (in a file, also by number from 1): `{"subject": "drug",
    "relation": "effect", "object": "disease", "source": "paper"}`. Of RDF, `graph` is the only named graph to read, and with
    `literals="keep"` literals are entities. `conflicts` says what becomes of facts that are also known to be false:
    `error`, `drop`, `facts` or `negatives`. An endpoint is asked by `query`, if given: a SELECT of subject, predicate and
    object, or a CONSTRUCT.

    >>> rg.Graph([("ada", "parent_of", "ben"), ("ben", "parent_of", "cleo")], split=None)
    Graph(triples: 3 entities, 1 relations, 2 facts, 0 valid, 0 test)
    >>> import numpy
    >>> ids = numpy.array([[0, 0, 1], [1, 0, 2]])
    >>> rg.Graph(ids, split=None, entities=["ada", "ben", "cleo"], relations=["parent_of"]).entities
    ['ada', 'ben', 'cleo']
    """

    __slots__ = ("_graph",)

    def __init__(
        self,
        data: Data,
        *,
        valid: Any = None,
        test: Any = None,
        entities: Sequence[str] | None = None,
        relations: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        split: Sequence[float] | None = SPLIT,
        seed: int = 1,
        header: bool | None = None,
        name: str | None = None,
        columns: ColumnNames | None = None,
        graph: str | None = None,
        literals: Literals | None = None,
        conflicts: Conflicts | None = None,
        split_time: str | int | None = None,
        query: str | None = None,
    ) -> None:
        shares = _shares(split)
        choice = column_choice(columns)
        since = None if split_time is None else str(split_time)
        reading = _reading(header, choice, graph, literals, conflicts, since, query)
        if isinstance(data, Graph):
            raise ValueError("data: is already a Graph")
        if data is None or isinstance(data, (int, float)):
            raise ValueError(f"data: expected a path, triples, a frame or a graph, found {data!r}")
        if isinstance(data, (str, os.PathLike)):
            _refuse("a path", valid=valid, test=test, entities=entities, relations=relations, name=name)
            read = _ruleguider.Graph.read(os.fspath(data), shares, seed, reading, None)
        else:
            _refuse("triples in memory", header=header, query=query)
            if hasattr(data, "training") and hasattr(data, "testing"):
                valid = getattr(data, "validation", None) if valid is None else valid
                data, test = data.training, data.testing if test is None else test
            splits = [None if part is None else triples(part, choice) for part in (data, valid, test)]
            found = {entity: label for part in splits if part is not None for entity, label in part.labels.items()}
            labels = {**found, **(labels or {})}
            if any(part is not None and (part.beside or part.trig) for part in splits):
                _refuse("a graph that says more than its facts", entities=entities, relations=relations)
                # The columns are chosen already.
                reading["columns"] = None
                read = _written(name or "triples", splits, shares, seed, reading)
            else:
                _refuse("triples without more", graph=graph, literals=literals, split_time=split_time)
                read = _numbered(name or "triples", splits, entities, relations, shares, seed)
        if labels:
            read, _ = read.with_labels([(str(entity), str(label)) for entity, label in labels.items()])
        self._graph = read

    @staticmethod
    def of(
        data: Data,
        *,
        split: Sequence[float] | None = SPLIT,
        seed: int = 1,
        header: bool | None = None,
        split_time: str | int | None = None,
    ) -> Graph:
        """`data` itself if it is a graph, else a graph made from it. With `split_time` a graph is divided anew."""
        if not isinstance(data, Graph):
            return Graph(data, split=split, seed=seed, header=header, split_time=split_time)
        return data if split_time is None else Graph._wrap(data._graph.by_time(str(split_time)))

    @staticmethod
    def demonstration() -> Graph:
        """The built-in demonstration graph: a family.

        >>> len(rg.Graph.demonstration().relations)
        9
        """
        return Graph._wrap(_ruleguider.Graph.demonstration())

    @staticmethod
    def _wrap(graph: _ruleguider.Graph) -> Graph:
        made = Graph.__new__(Graph)
        made._graph = graph
        return made

    @property
    def name(self) -> str:
        """Its name."""
        return self._graph.name

    @property
    def entities(self) -> list[str]:
        """The names of entities, in the order of their ids."""
        return self._graph.entities

    @property
    def relations(self) -> list[str]:
        """The names of relations, in the order of their ids."""
        return self._graph.relations

    def triples(self, split: str = "train") -> NDArray[numpy.uint32]:
        """The ids of a split's triples: read-only, the graph's own memory.

        >>> graph.triples("valid").shape[1]
        3
        """
        import numpy

        return numpy.asarray(self._graph.triples(split))

    def statistics(self) -> dict[str, Any]:
        """Entities, relations, facts, splits, degrees: what `ruleguider stats --json` prints."""
        return json.loads(self._graph.statistics())

    def columns(self) -> dict[str, list[str]]:
        """The training facts as columns of names."""
        return self._named("train")

    def _named(self, split: str) -> dict[str, list[str]]:
        names, ids = (self.entities, self.relations), self.triples(split)
        columns = ("head", "relation", "tail")
        return {column: [names[at % 2][one] for one in ids[:, at].tolist()] for at, column in enumerate(columns)}

    def to_pandas(self, split: str = "train") -> Any:
        """The triples of a split as a pandas frame."""
        import pandas

        return pandas.DataFrame(self._named(split))

    def to_polars(self, split: str = "train") -> Any:
        """The triples of a split as a polars frame."""
        import polars

        return polars.DataFrame(self._named(split))

    def to_dict(self) -> dict[str, Any]:
        """Its sizes, by name."""
        names = ("entities", "relations", "facts", "valid", "test")
        return {"name": self.name, **dict(zip(names, self._graph.sizes))}

    def __len__(self) -> int:
        return self._graph.sizes[2]

    def __eq__(self, other: object) -> bool:
        """Graphs with the same names, labels and splits are equal."""
        if not isinstance(other, Graph):
            return False
        return self is other or (self._graph.sizes == other._graph.sizes and self._graph.pack() == other._graph.pack())

    def __hash__(self) -> int:
        return hash(self._graph.sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.name, self._graph.pack())

    def __repr__(self) -> str:
        names = ("entities", "relations", "facts", "valid", "test")
        sizes = ", ".join(f"{size:,} {what}" for what, size in zip(names, self._graph.sizes))
        return f"Graph({self.name}: {sizes})"

    def _repr_html_(self) -> str:
        return self._graph.html(repr(self))


def _reading(
    header: bool | None = None,
    columns: str | None = None,
    graph: str | None = None,
    literals: str | None = None,
    conflicts: str | None = None,
    split_time: str | None = None,
    query: str | None = None,
) -> _ruleguider._Reading:
    """How files are read; by default as their content says."""
    return {
        "header": header,
        "columns": columns,
        "graph": graph,
        "literals": literals,
        "conflicts": conflicts,
        "split_time": split_time,
        "query": query,
    }


def _unpickled(name: str, packed: bytes) -> Graph:
    return Graph._wrap(_ruleguider.Graph.unpack(name, packed))


def _shares(split: Sequence[float] | None) -> tuple[float, float, float] | None:
    if split is None:
        return None
    if isinstance(split, str) or len(split) != 3:
        raise ValueError(f"split: expected three shares that add up to 1, such as (0.8, 0.1, 0.1), found {split!r}")
    train, valid, test = map(float, split)
    return train, valid, test


def _refuse(what: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: cannot be used with {what}")


def _dense(given: list[Triples]) -> bool:
    """Whether the ids of entities, and those of relations, are all the numbers from 0 on."""
    import numpy

    ids = [part.ids for part in given if part.ids is not None]
    if len(ids) < len(given):
        return False
    for columns in ([0, 2], [1]):
        used = numpy.unique(numpy.concatenate([part[:, columns].ravel() for part in ids]))
        if len(used) and (used[0] != 0 or used[-1] != len(used) - 1):
            return False
    return True


def _written(
    name: str,
    splits: list[Triples | None],
    shares: tuple[float, float, float] | None,
    seed: int,
    reading: _ruleguider._Reading,
) -> _ruleguider.Graph:
    """A graph of triples with what is said beside them, read as files of the same are."""
    with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
        parts = {split: part for split, part in zip(("train", "valid", "test"), splits) if part is not None}
        paths = [write(folder, split, part) for split, part in parts.items()]
        try:
            if len(paths) == 1:
                return _ruleguider.Graph.read(paths[0], shares, seed, reading, name)
            return _ruleguider.Graph.read(folder, None, seed, reading, name)
        except ValueError as error:
            # Nobody has seen the file.
            said = str(error)
            for split, path in zip(parts, paths):
                said = said.replace(path, f"data ({split})")
            raise ValueError(said) from None


def _numbered(
    name: str,
    splits: list[Triples | None],
    entities: Sequence[str] | None,
    relations: Sequence[str] | None,
    shares: tuple[float, float, float] | None,
    seed: int,
) -> _ruleguider.Graph:
    """A graph of ids if all splits have ids with the same meaning, else a graph of names."""
    import numpy

    given = [part for part in splits if part is not None]
    first = given[0]
    alike = all(part.entities == first.entities and part.relations == first.relations for part in given)
    if entities is None and relations is None and first.entities is None and not _dense(given):
        # Numbers with gaps are names: as ids, each gap would be an entity.
        alike = False
    if all(part.ids is not None for part in given) and alike:
        ids = [None if part is None else numpy.ascontiguousarray(part.ids, dtype=numpy.int64) for part in splits]
        assert ids[0] is not None
        names = [own if own is not None else other for own, other in ((entities, first.entities), (relations, first.relations))]
        return _ruleguider.Graph.from_ids(name, ids[0], ids[1], ids[2], names[0], names[1], shares, seed)
    if entities is not None or relations is not None:
        raise ValueError("entities, relations: only for triples of ids, and these triples have names")
    columns = [None if part is None else part.named() for part in splits]
    assert columns[0] is not None
    return _ruleguider.Graph.from_names(name, columns[0], columns[1], columns[2], shares, seed)
