"""A graph is the same graph, whatever holds its triples."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import ruleguider as rg
from conftest import skip

ROWS = [("ada", "parent_of", "ben"), ("ben", "parent_of", "cleo"), ("ada", "sibling_of", "dan")]
SAME = {"name": "triples", "entities": 4, "relations": 2, "facts": 3, "valid": 0, "test": 0}


def frame(**more: Any) -> dict[str, Any]:
    heads, relations, tails = (list(column) for column in zip(*ROWS))
    return {**more, "subject": heads, "predicate": relations, "object": tails}


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        tuple(map(list, ROWS)),
        (row for row in ROWS),
        numpy.array(ROWS),
        numpy.array(ROWS, dtype=object),
        pandas.DataFrame(frame()),
        pandas.DataFrame(frame(weight=[1.0, 2.0, 3.0])),
        pandas.DataFrame(ROWS),
        polars.DataFrame(frame()),
        polars.LazyFrame(frame(weight=[1, 2, 3])),
        pyarrow.table(frame()),
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_names_are_numbered_by_appearance(data: Any) -> None:
    graph = rg.Graph(data, split=None)
    assert graph.to_dict() == SAME
    assert graph.entities == ["ada", "ben", "cleo", "dan"]
    assert graph.relations == ["parent_of", "sibling_of"]
    assert graph.triples().tolist() == [[0, 0, 1], [1, 0, 2], [0, 1, 3]]
    assert list(graph.to_pandas().itertuples(index=False, name=None)) == ROWS
    assert graph.to_polars().rows() == ROWS


IDS = [[3, 1, 0], [2, 0, 3], [3, 1, 1]]


@pytest.mark.parametrize(
    "data",
    [
        IDS,
        numpy.array(IDS),
        numpy.array(IDS, dtype=numpy.uint8),
        numpy.asfortranarray(numpy.array(IDS)),
        numpy.array([row[::-1] for row in IDS])[:, ::-1],
        pandas.DataFrame(IDS, columns=["h", "r", "t"]),
        polars.DataFrame(IDS, schema=["h", "r", "t"], orient="row"),
    ],
    ids=lambda data: f"{type(data).__module__}.{type(data).__name__}",
)
def test_ids_keep_their_numbers(data: Any) -> None:
    graph = rg.Graph(data, split=None)
    assert graph.triples().tolist() == IDS
    assert graph.entities == ["0", "1", "2", "3"]
    named = rg.Graph(data, split=None, entities=["a", "b", "c", "d"], relations=["r", "s"])
    assert named.to_pandas().values.tolist()[0] == ["d", "s", "a"]


def test_splits_are_given_or_made() -> None:
    given = rg.Graph(ROWS, valid=[("ben", "sibling_of", "eve")], test=numpy.array([("dan", "parent_of", "ada")]))
    assert given.to_dict() == {**SAME, "entities": 5, "valid": 1, "test": 1}
    everyone = rg.Graph.demonstration()
    rows = [tuple(row) for split in ("train", "valid", "test") for row in everyone.to_pandas(split).values]
    by_seed = [rg.Graph(rows, seed=seed).triples("test").tolist() for seed in (1, 1, 2)]
    assert by_seed[0] == by_seed[1] != by_seed[2]
    half = rg.Graph(rows, split=(0.5, 0.25, 0.25))
    assert abs(len(half) / len(rows) - 0.5) < 0.1


def test_a_path_is_what_the_command_line_reads(tmp_path: Path, graph: rg.Graph) -> None:
    file = tmp_path / "family.tsv"
    graph.to_pandas().to_csv(file, sep="\t", header=False, index=False)
    assert rg.Graph(file, seed=3).triples().tolist() == rg.Graph(str(file), seed=3).triples().tolist()
    assert len(rg.Graph(file, split=None)) == len(graph)
    for split in ("train", "valid", "test"):
        graph.to_pandas(split).to_csv(tmp_path / f"{split}.csv", header=False, index=False)
    file.unlink()
    assert rg.Graph(tmp_path).to_dict() == {**graph.to_dict(), "name": tmp_path.name}


def factory(ids: list[list[int]], relations: list[str], **more: Any) -> Any:
    """What a PyKEEN factory looks like from outside."""

    class Tensor:
        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> Any:
            return numpy.array(ids)

    return SimpleNamespace(
        mapped_triples=Tensor(),
        entity_to_id={"ada": 0, "ben": 1, "cleo": 2},
        relation_to_id={name: at for at, name in enumerate(relations)},
        **more,
    )


@pytest.mark.parametrize(
    "given",
    [
        factory([[0, 0, 1], [1, 1, 2]], ["r", "s"], create_inverse_triples=False, real_num_relations=2),
        factory([[0, 0, 1], [1, 1, 2]], ["r", "s"], create_inverse_triples=True, real_num_relations=2),
        factory([[0, 0, 1], [1, 1, 0], [1, 2, 2], [2, 3, 1]], ["r", "s"], create_inverse_triples=True, real_num_relations=2),
        factory([[0, 0, 1], [1, 1, 0], [2, 3, 1]], ["r", "r_inverse", "s", "s_inverse"]),
    ],
    ids=["plain", "made on the fly", "made already", "by name"],
)
def test_a_factory_and_its_inverses(given: Any) -> None:
    graph = rg.Graph(given, split=None)
    assert graph.entities == ["ada", "ben", "cleo"] and graph.relations == ["r", "s"]
    assert graph.triples().tolist() == [[0, 0, 1], [1, 1, 2]]


def test_factories_of_other_numbers_agree_by_name() -> None:
    train = factory([[0, 0, 1], [1, 1, 2]], ["r", "s"])
    test = factory([[0, 0, 1]], ["s", "r"])
    data = SimpleNamespace(training=train, validation=train, testing=test)
    graph = rg.Graph(data)
    assert graph.to_dict()["valid"] == 2
    assert graph.to_pandas("test").values.tolist() == [["ada", "s", "ben"]]
    bare = SimpleNamespace(mapped_triples=numpy.array([[0, 0, 1]]), num_entities=2, num_relations=1)
    assert rg.Graph(bare, split=None).entities == ["0", "1"]


@pytest.mark.parametrize("inverse", [False, True])
def test_a_factory_of_pykeen_itself(inverse: bool) -> None:
    """With the real package, which needs torch."""
    if importlib.util.find_spec("pykeen") is None:
        skip("pykeen", "a factory of PyKEEN itself")
    from pykeen.datasets import Nations
    from pykeen.triples import TriplesFactory

    rows = numpy.array(ROWS, dtype=str)
    made = TriplesFactory.from_labeled_triples(rows, create_inverse_triples=inverse)
    read = rg.Graph(made, split=None)
    assert sorted(map(tuple, read.to_pandas().values.tolist())) == sorted(ROWS)
    assert read.entities == [name for name, _ in sorted(made.entity_to_id.items(), key=lambda pair: pair[1])]
    nations = Nations(create_inverse_triples=inverse)
    graph = rg.Graph(nations)
    assert graph.to_dict()["facts"] == nations.training.num_triples and graph.to_dict()["relations"] == 55
    assert graph.triples("test").tolist() == nations.testing.mapped_triples.tolist()


# Where `environment.sh` puts PyKEEN's files; where the package itself is, they come with it.
PYKEEN = Path(__file__).parents[2] / "target/pykeen/pykeen/datasets"


@pytest.mark.parametrize(
    ("name", "entities", "relations", "splits"),
    [("nations", 14, 55, (1592, 199, 201)), ("umls", 135, 46, (5216, 652, 661)), ("kinships", 104, 25, (8544, 1068, 1074))],
)
def test_the_files_that_pykeen_publishes(
    name: str, entities: int, relations: int, splits: tuple[int, int, int], tmp_path: Path
) -> None:
    if not PYKEEN.is_dir():
        skip("pypi", "the files of PyKEEN's data sets")
    graph = rg.Graph(PYKEEN / name)
    assert graph.to_dict() == {
        "name": name,
        "entities": entities,
        "relations": relations,
        **dict(zip(("facts", "valid", "test"), splits)),
    }
    # As PyKEEN saves a data set (`to_directory_binary`), and a training its triples (`save_to_directory`).
    ids = {"entity": sorted(graph.entities), "relation": sorted(graph.relations)}
    for split, folder in (("train", "training"), ("valid", "validation"), ("test", "testing")):
        (tmp_path / folder).mkdir()
        for kind, names in ids.items():
            frame = pandas.DataFrame({"id": range(len(names)), "label": names}).set_index("id")
            frame.to_csv(tmp_path / folder / f"{kind}_to_id.tsv.gz", sep="\t")
        rows = graph.to_pandas(split)
        for column, names in (("head", ids["entity"]), ("relation", ids["relation"]), ("tail", ids["entity"])):
            rows[column] = rows[column].map({name: at for at, name in enumerate(names)})
        rows.to_csv(tmp_path / folder / "numeric_triples.tsv.gz", sep="\t", index=False)
    saved = rg.Graph(tmp_path)
    for split in ("train", "valid", "test"):
        assert saved.to_pandas(split).values.tolist() == graph.to_pandas(split).values.tolist()
    assert len(rg.Graph(tmp_path / "training", split=None)) == splits[0]


def test_torch_is_never_imported() -> None:
    probe = "import ruleguider, sys; assert not {'torch', 'pandas', 'polars', 'pykeen'} & set(sys.modules), sys.modules"
    subprocess.run([sys.executable, "-c", probe], check=True)


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        ([("a", "r")], {}, "row 0: expected head, relation and tail, found ('a', 'r')"),
        (["abc"], {}, "row 0: expected head, relation and tail, found 'abc'"),
        ([], {}, "expected at least one triple, found none"),
        ([("a", "r", None)], {}, "train, row 0: expected a name (text or a whole number), found NoneType None"),
        ([("a", "", "b")], {}, "train, row 0: expected three names, found an empty relation"),
        ([("a", "r", 0.5)], {}, "train, row 0: expected a name (text or a whole number), found float 0.5"),
        (numpy.zeros((2, 3)), {}, "expected an array of ids or names, found one of float64"),
        (numpy.zeros((2, 2), dtype=int), {}, "expected an array of shape (n, 3), found (2, 2)"),
        (numpy.array([[0, 0, -1]]), {"entities": ["a"], "relations": ["r"]}, "expected ids from 0 to 4294967294, found -1"),
        (IDS, {"entities": ["a", "b"]}, "a triple has the entity 3, but there are only 2 names"),
        (IDS, {"entities": ["a", "b", "a", "c"]}, "entities: expected names that are all different, found `a` twice"),
        (ROWS, {"entities": ["a"]}, "only for triples of ids, and these triples have names"),
        (ROWS, {"split": (0.5, 0.5)}, "split: expected three shares that add up to 1"),
        (ROWS, {"split": (0.5, 0.2, 0.1)}, "expected three positive shares that add up to 1"),
        (ROWS, {"header": True}, "header: cannot be used with triples in memory"),
        (ROWS, {}, "enough triples to hold some out for validation and test, found 3 facts"),
        (pandas.DataFrame({"a": [1], "b": [2]}), {}, "expected columns called head, relation and tail"),
        ("nowhere.tsv", {}, "nowhere.tsv: cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_a_value_error(data: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:
        rg.Graph(data, **options)
    assert said in str(error.value)


def test_labels_are_shown(tmp_path: Path) -> None:
    graph = rg.Graph(ROWS, split=None, labels={"ada": "Ada Lovelace", "nobody": "?"})
    rules = rg.mine(graph, samples=10, progress=False)
    assert len(rules) == 0 and "Ada Lovelace" in graph._repr_html_()
