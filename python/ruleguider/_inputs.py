"""Users' data as ids or columns of names. Only NumPy is imported: frames and factories are recognised by their
attributes."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from . import _ruleguider

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Columns = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]

# The suffix that PyKEEN adds to a relation's name for its inverse.
INVERSE = "_inverse"


@dataclass
class Triples:
    """Triples of one split: ids, with names if known, or columns of names."""

    ids: NDArray[numpy.int64] | None = None
    columns: Columns | None = None
    entities: list[str] | None = None
    relations: list[str] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    # What is said beside the facts, by kind (`confidence`, `source`, `time`, `negative`, `object_type`, …), as columns.
    beside: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    # Statements with prefixes, in TriG: everything that an RDF graph or data set says.
    trig: str | None = None

    def named(self) -> Columns:
        """The columns of names."""
        if self.columns is not None:
            return self.columns
        assert self.ids is not None
        heads, relations, tails = (self.ids[:, at].tolist() for at in range(3))
        return (
            _called(heads, self.entities),
            _called(relations, self.relations),
            _called(tails, self.entities),
        )


def _called(ids: list[int], names: list[str] | None) -> list[str]:
    return [str(at) for at in ids] if names is None else [names[at] for at in ids]


# The relation of edges that have none.
LINK = "link"

# Which columns of a table are what: `{"subject": "drug", "object": "disease"}`, or the same as text.
ColumnNames = Union[str, Mapping[str, Any]]


def column_choice(columns: ColumnNames | None) -> str | None:
    """A choice of columns as text."""
    if isinstance(columns, Mapping):
        return ",".join(f"{part}={column}" for part, column in columns.items())
    return columns


def triples(data: Any, columns: str | None = None) -> Triples:
    """The triples in any supported kind of data; `columns` chooses those of a frame."""
    names_columns = _columns(data)
    if columns is not None:
        if names_columns is None:
            raise ValueError("columns: only for files and frames, and these triples have none")
        return _chosen(*names_columns, columns)
    if hasattr(data, "mapped_triples"):
        return _factory(data)
    if hasattr(data, "namespace_manager") and hasattr(data, "triples"):
        return _rdf(data)
    if hasattr(data, "is_multigraph") and hasattr(data, "edges"):
        return _networkx(data)
    if names_columns is not None:
        names, column = names_columns
        place = _ruleguider.triple_columns(names)
        made = _from_columns([column(at) for at in place])
        made.beside = {part: _list(column(at)) for at, part in _ruleguider.beside_columns(names)}
        return made
    return _from_rows(data)


def _chosen(names: list[str], column: Any, columns: str) -> Triples:
    """The triples of a frame whose columns the user chose."""
    (subject, relation, object), beside = _ruleguider.chosen_columns(columns, names)
    if relation is None:
        heads = _list(column(subject))
        made = Triples(columns=(heads, [LINK] * len(heads), _list(column(object))))
    else:
        made = _from_columns([column(at) for at in (subject, relation, object)])
    made.beside = {part: _list(column(at)) for at, part in beside}
    return made


def pairs(data: Any) -> list[tuple[str, str]]:
    """Queries: pairs of subject and relation."""
    columns = _columns(data)
    if columns is not None:
        names, column = columns
        if len(names) != 2:
            raise ValueError(f"queries: expected two columns, subject and relation, found {', '.join(names)}")
        return [(str(subject), str(relation)) for subject, relation in zip(_list(column(0)), _list(column(1)))]
    queries = []
    for place, query in enumerate(data.tolist() if hasattr(data, "tolist") else data):
        if isinstance(query, str) or not hasattr(query, "__len__") or len(query) != 2:
            raise ValueError(f"query {place}: expected a subject and a relation, found {query!r}")
        queries.append((str(query[0]), str(query[1])))
    return queries


def facts(data: Any) -> list[list[str]]:
    """Given facts: names of subject, relation and object. Whole numbers are names too."""
    columns = _columns(data)
    if columns is not None:
        names, column = columns
        rows: Iterable[Any] = zip(*(_list(column(at)) for at in _ruleguider.triple_columns(names)))
    else:
        rows = data.tolist() if hasattr(data, "tolist") else data
    given = []
    for place, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 3:
            raise ValueError(f"fact {place}: expected a subject, a relation and an object, found {row!r}")
        given.append([str(name) for name in row])
    return given


# Some entities: the name of a type, a file with one a line, or the entities.
Entities = Union[str, "os.PathLike[str]", Iterable[Any]]
# Relations, types and entities by name, or a single one of them.
Names = Union[str, Iterable[str]]


def entities(given: Entities | None) -> str | list[str] | None:
    """Entities as the library takes them."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, os.PathLike):
        return os.fspath(given)
    return [str(entity) for entity in _list(given)]


def on_path(through: Names, without: Names, max_hops: int | None) -> tuple[list[str], list[str], int | None]:
    """What is asked of paths, as the library takes it."""
    if max_hops is not None and max_hops < 1:
        raise ValueError(f"max_hops: expected at least 1, found {max_hops}")
    passed, avoided = ([given] if isinstance(given, str) else [str(name) for name in given] for given in (through, without))
    return passed, avoided, max_hops


def noted_facts(data: Any) -> list[tuple[list[str], float | None, str | None]]:
    """Facts with their confidence and source, if a frame has such columns."""
    names = facts(data)
    columns = _columns(data)
    said: dict[str, list[Any]] = {}
    if columns is not None:
        said = {part: _list(columns[1](at)) for at, part in _ruleguider.beside_columns(columns[0])}
    nothing = [None] * len(names)
    confidences = [None if _is_missing(value) else float(value) for value in said.get("confidence", nothing)]
    sources = [None if _is_missing(value) else str(value) for value in said.get("source", nothing)]
    return list(zip(names, confidences, sources))


def _is_missing(value: Any) -> bool:
    # NaN and NaT are not equal to themselves.
    return value is None or value != value


def write(folder: str, name: str, given: Triples) -> str:
    """Writes triples with what is said beside them to a file of `folder`; its path."""
    if given.trig is not None:
        path = os.path.join(folder, f"{name}.trig")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(given.trig)
        return path
    path = os.path.join(folder, f"{name}.csv")
    columns = [*given.named(), *given.beside.values()]
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["subject", "relation", "object", *given.beside])
        out.writerows([_cell(value) for value in row] for row in zip(*columns))
    return path


def _cell(value: Any) -> str:
    """A value of a table as text: nothing is the empty text."""
    if _is_missing(value):
        return ""
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _columns(data: Any) -> tuple[list[str], Any] | None:
    """The names of a frame's columns, and a function from an index to the column; `None` if `data` is not a frame."""
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return [str(name) for name in data.columns], lambda at: data.iloc[:, at]
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        data = data.collect()
    if hasattr(data, "get_columns"):
        series = data.get_columns()
        return [str(name) for name in data.columns], series.__getitem__
    if hasattr(data, "column_names") and hasattr(data, "column"):
        return [str(name) for name in data.column_names], data.column
    return None


def _list(column: Any) -> list[Any]:
    for name in ("to_list", "to_pylist", "tolist"):
        if hasattr(column, name):
            return getattr(column, name)()
    return list(column)


def _from_columns(columns: list[Any]) -> Triples:
    import numpy

    if all(_is_whole(column) for column in columns):
        arrays = [numpy.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column) for column in columns]
        return Triples(ids=numpy.column_stack(arrays).astype(numpy.int64, copy=False))
    heads, relations, tails = (_list(column) for column in columns)
    return Triples(columns=(heads, relations, tails))


def _is_whole(column: Any) -> bool:
    """Whether a column holds whole numbers and nothing else."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    return kind in ("i", "u") if kind is not None else _listed_whole(_list(column))


def _listed_whole(items: Iterable[Any]) -> bool:
    items = list(items)
    return bool(items) and all(isinstance(item, int) and not isinstance(item, bool) for item in items)


def _from_rows(data: Any) -> Triples:
    import numpy

    if not isinstance(data, numpy.ndarray):
        rows = data if isinstance(data, (list, tuple)) else list(data)
        for place, row in enumerate(rows):
            if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != 3:
                raise ValueError(f"row {place}: expected head, relation and tail, found {row!r}")
        if not rows:
            raise ValueError("expected at least one triple, found none")
        columns = tuple([row[at] for row in rows] for at in range(3))
        if all(_listed_whole(column) for column in columns):
            return Triples(ids=numpy.asarray(rows, dtype=numpy.int64))
        return Triples(columns=(columns[0], columns[1], columns[2]))
    if data.ndim != 2 or data.shape[1] != 3:
        raise ValueError(f"expected an array of shape (n, 3), found {data.shape}")
    if data.dtype.kind in "iu":
        return Triples(ids=data.astype(numpy.int64, copy=False))
    if data.dtype.kind in "UOT":
        heads, relations, tails = (data[:, at].tolist() for at in range(3))
        return Triples(columns=(heads, relations, tails))
    raise ValueError(f"expected an array of ids or names, found one of {data.dtype}")


# The attributes of a NetworkX edge that may name its relation.
RELATIONS = ("relation", "predicate", "label", "type")


# What rdflib calls the graph without a name.
_DEFAULT_GRAPH = "urn:x-rdflib:default"


def _rdf(graph: Any) -> Triples:
    """An rdflib graph or data set as text for the library's own reader: literals become labels and attributes, types are
    types, prefixes abbreviate names, and named graphs keep their names."""
    # A line each, sorted: the order in which rdflib has them changes from process to process.
    lines = sorted(_statement(*statement) for statement in _statements(graph))
    if not lines:
        raise ValueError("expected at least one triple between resources, found none")
    prefixes = [f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in graph.namespaces()]
    return Triples(trig="".join(prefixes + lines))


def _statements(graph: Any) -> Iterable[tuple[Any, Any]]:
    """The triples of an rdflib graph, each with its named graph if it is in one."""
    if not hasattr(graph, "quads"):
        return ((triple, None) for triple in graph)
    # By version of rdflib the context is a graph, its name, or nothing.
    named = ((quad[:3], getattr(quad[3], "identifier", quad[3])) for quad in graph.quads((None, None, None, None)))
    return ((triple, None if name is None or str(name) == _DEFAULT_GRAPH else name) for triple, name in named)


def _statement(triple: Any, name: Any) -> str:
    text = " ".join(node.n3() for node in triple) + " ."
    return f"{text}\n" if name is None else f"{name.n3()} {{ {text} }}\n"


def _networkx(graph: Any) -> Triples:
    """The edges of a NetworkX graph. The relation is an attribute of the edge or the key of a multigraph's edge; edges of
    an undirected graph have the direction in which they are listed. An attribute `label` of a node is its label, and `type`
    its type; other attributes of edges are understood as the columns of a table are."""
    columns: Columns = ([], [], [])
    about_edges: list[dict[str, Any]] = []
    edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    for head, tail, *key, about in edges:
        named = [str(about[name]) for name in RELATIONS if name in about]
        named += [name for name in key if isinstance(name, str)]
        if not named:
            raise ValueError(
                f"the edge from {head!r} to {tail!r} names no relation; expected an attribute {', '.join(RELATIONS)}, "
                "or a text as the key of a multigraph's edge"
            )
        for column, name in zip(columns, (str(head), named[0], str(tail))):
            column.append(name)  # type: ignore[attr-defined]
        types = {f"{end}_type": graph.nodes[node].get("type") for end, node in (("subject", head), ("object", tail))}
        about_edges.append({**about, **types})
    if not columns[0]:
        raise ValueError("expected at least one edge, found none")
    said = sorted({name for about in about_edges for name, value in about.items() if value is not None})
    names = ["subject", "relation", "object", *(name for name in said if name not in RELATIONS)]
    beside = {
        part: [about.get(names[at]) for about in about_edges] for at, part in _ruleguider.beside_columns(names)
    }
    labels = {str(node): str(about["label"]) for node, about in graph.nodes(data=True) if "label" in about}
    return Triples(columns=columns, labels=labels, beside=beside)


def _factory(factory: Any) -> Triples:
    """The triples of a PyKEEN `TriplesFactory`. Added triples of inverse relations are turned back."""
    import numpy

    mapped = factory.mapped_triples
    for step in ("detach", "cpu", "numpy"):
        mapped = getattr(mapped, step)() if hasattr(mapped, step) else mapped
    ids = numpy.asarray(mapped).astype(numpy.int64, copy=False)
    relations = _names(getattr(factory, "relation_to_id", None))
    entities = _names(getattr(factory, "entity_to_id", None))
    real = getattr(factory, "real_num_relations", None)
    turned, of = None, None
    if getattr(factory, "create_inverse_triples", False) and real and len(ids) and ids[:, 1].max() >= real:
        # Added by the factory: relation r is 2 r, its inverse 2 r + 1.
        turned, of = ids[:, 1] % 2 == 1, ids[:, 1] // 2
    elif relations is not None and any(name.endswith(INVERSE) for name in relations):
        place = {name: at for at, name in enumerate(relations)}
        base = [place.get(name.removesuffix(INVERSE), at) for at, name in enumerate(relations)]
        turned = numpy.asarray([base[at] != at for at in range(len(base))])[ids[:, 1]]
        kept = sorted(set(base))
        number = {at: new for new, at in enumerate(kept)}
        of = numpy.asarray([number[at] for at in base])[ids[:, 1]]
        relations = [relations[at] for at in kept]
    if turned is not None and of is not None:
        heads, tails = numpy.where(turned, ids[:, 2], ids[:, 0]), numpy.where(turned, ids[:, 0], ids[:, 2])
        ids = numpy.column_stack([heads, of, tails])
    return Triples(ids=ids, entities=entities, relations=relations)


def _names(to_id: Any) -> list[str] | None:
    """The names in the order of their ids."""
    if to_id is None:
        return None
    names: list[str] = [""] * (max(to_id.values(), default=-1) + 1)
    for name, at in to_id.items():
        names[at] = str(name)
    missing = [at for at, name in enumerate(names) if not name]
    if missing:
        raise ValueError(f"the id {missing[0]} has no name")
    return names


def plain(value: Any) -> Any:
    """A NumPy number as a Python one, a path as text."""
    if hasattr(value, "item"):
        return value.item()
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise ValueError(f"config: expected numbers, text, lists and dicts, found {type(value).__name__} {value!r}")
