"""Users' data as ids or columns of names. Only NumPy is imported: frames and factories are recognised by their
attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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


def triples(data: Any) -> Triples:
    """The triples in any supported kind of data."""
    if hasattr(data, "mapped_triples"):
        return _factory(data)
    if hasattr(data, "namespace_manager") and hasattr(data, "triples"):
        return _rdf(data)
    if hasattr(data, "is_multigraph") and hasattr(data, "edges"):
        return _networkx(data)
    columns = _columns(data)
    if columns is not None:
        names, column = columns
        place = _ruleguider.triple_columns(names)
        return _from_columns([column(at) for at in place])
    return _from_rows(data)


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


# What a label is in RDF, by IRI.
LABELS = ("http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#prefLabel")
# The attributes of a NetworkX edge that may name its relation.
RELATIONS = ("relation", "predicate", "label", "type")


def _rdf(graph: Any) -> Triples:
    """The triples of an rdflib graph, by IRI. Labels become labels, else an entity is shown by its prefixed name; other
    literals are no entities and are left out."""
    columns: Columns = ([], [], [])
    labels: dict[str, str] = {}
    shown: dict[str, str] = {}
    for subject, predicate, value in sorted(graph):
        if hasattr(value, "datatype"):
            if str(predicate) in LABELS:
                labels.setdefault(str(subject), str(value))
            continue
        for column, node in zip(columns, (subject, predicate, value)):
            column.append(str(node))  # type: ignore[attr-defined]
        shown.update((str(node), _prefixed(node, graph.namespace_manager)) for node in (subject, value))
    if not columns[0]:
        raise ValueError("expected at least one triple between resources, found none")
    shown.update((name, label) for name, label in labels.items() if name in shown)
    return Triples(columns=columns, labels={name: label for name, label in shown.items() if label != name})


def _prefixed(node: Any, names: Any) -> str:
    """`ex:ada` for an IRI whose namespace has a prefix, else the IRI."""
    text = node.n3(names)
    return str(node) if text.startswith("<") else text


def _networkx(graph: Any) -> Triples:
    """The edges of a NetworkX graph. The relation is an attribute of the edge or the key of a multigraph's edge; edges of
    an undirected graph have the direction in which they are listed. An attribute `label` of a node is its label."""
    columns: Columns = ([], [], [])
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
    if not columns[0]:
        raise ValueError("expected at least one edge, found none")
    labels = {str(node): str(about["label"]) for node, about in graph.nodes(data=True) if "label" in about}
    return Triples(columns=columns, labels=labels)


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
