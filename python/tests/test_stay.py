"""What a notebook needs beyond answers: results that are data, progress that is heard, graphs of other packages."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest

import ruleguider as rg
from conftest import RULES, needed

QUERIES = [("Ilse_Hagenthal", "cousin_of"), ("Ilse_Hagenthal", "~parent_of")]


def test_everything_is_pickled_and_compared(graph: rg.Graph, model: rg.Model) -> None:
    many = model.predict_many(QUERIES, top=3, progress=False)
    rules, why = model.rules(), model.explain(*QUERIES[0], many[0][0].entity)
    facts = model.graph.to_pandas("test").head(5)
    listed = (
        model.complete("cousin_of", top=5, progress=False),
        model.score(facts, threshold="auto", progress=False),
        model.relations(QUERIES[0][0], many[0][0].entity),
        model.doubt("sibling_of", top=3, progress=False),
        model.explain_many(facts, progress=False),
        model.evaluate(calibration=True, progress=False).calibration,
    )
    assert all(one is not None and len(one.to_pandas()) for one in listed)
    for one in (many, rules, why, graph, model, model.evaluate(progress=False), *listed):
        again = pickle.loads(pickle.dumps(one))
        assert again == one and hash(again) == hash(one), type(one)
    figures = model.evaluate(progress=False)
    assert pickle.loads(pickle.dumps(figures)).ranks == figures.ranks
    again = pickle.loads(pickle.dumps(many))
    assert again.columns() == many.columns() and again[1] == many[1]
    assert model.rules() == rules and model.rules() != rules[:1]
    assert model.predict_many(QUERIES, top=3, progress=False) == many
    assert pickle.loads(pickle.dumps(rules)).select("cousin_of") == rules.select("cousin_of")
    assert graph != rg.Graph([("a", "r", "b")], split=None) and graph != 3


def test_answers_without_reasons_are_those_with_them(model: rg.Model) -> None:
    bare = model.predict_many(QUERIES, top=5, reasons=False, progress=False)
    full = model.predict_many(QUERIES, top=5, progress=False)
    for one, other in zip(bare, full):
        assert {a.entity: (a.score, a.probability) for a in one}.items() >= {
            a.entity: (a.score, a.probability) for a in other if a.entity in [b.entity for b in one]
        }.items()
        assert all(not answer.path and answer.rule is None for answer in one)
        assert len(one) == 5 or len(one) >= len(other)


def test_an_explanation_has_the_probability_of_the_prediction(model: rg.Model) -> None:
    best = model.predict(*QUERIES[0])[0]
    why = model.explain(*QUERIES[0], best.entity)
    assert why.probability == best.probability and why.score == best.score
    assert f"probability {best.probability:.3f}" in repr(why)
    nothing = model.explain(*QUERIES[0], "Ilse_Hagenthal")
    assert nothing.rank is None and nothing.score is None and nothing.probability is None


def test_ties_are_between_the_ranks_of_both_extremes(graph: rg.Graph, tmp_path: Path) -> None:
    # Divided anew, it asks for what rules do not reach.
    facts = [row for split in ("train", "valid", "test") for row in graph.to_pandas(split).values.tolist()]
    model = rg.learn(facts, out=tmp_path / "run", config=RULES, progress=False)
    best, fair, worst = (
        model.evaluate(direction="both", ties=ties, progress=False).ranks.to_pandas()
        for ties in ("optimistic", "realistic", "pessimistic")
    )
    assert (fair["ties"] == worst["rank"] - best["rank"]).all() and fair["ties"].any()
    assert (fair["rank"] == best["rank"] + fair["ties"] / 2).all()


def test_ranks_give_every_figure(model: rg.Model) -> None:
    found = model.evaluate(direction="both", progress=False)
    frame = found.ranks.to_pandas()
    assert len(frame) == found.queries and set(frame["inverse"]) == {True, False}
    assert (1 / frame["rank"]).mean() == pytest.approx(found.mrr)
    assert (frame["rank"] <= 10).mean() == pytest.approx(found.hits(10))
    assert found.hits(7) == pytest.approx((frame["rank"] <= 7).mean()) and found.hits(3) <= found.hits(7) <= found.hits(10)
    # As PyKEEN defines them: over the expected rank of a random order of each query's candidates.
    expected = (frame["candidates"] + 1) / 2
    assert found.amr == pytest.approx(frame["rank"].mean() / expected.mean())
    assert found.amri == pytest.approx(1 - (frame["rank"].mean() - 1) / (expected.mean() - 1))
    triples = {tuple(row) for row in model.graph.to_pandas("test").values}
    row = frame[~frame["inverse"]].iloc[0]
    assert (row["subject"], row["relation"], row["answer"]) in triples
    assert frame["candidates"].max() <= len(model.graph.entities)
    assert "<td>all</td>" in found._repr_html_()
    with pytest.raises(ValueError, match="hits: expected at least 1, found 0"):
        found.hits(0)
    applied = rg.apply(model.graph, model.rules(), progress=False)
    with pytest.raises(ValueError, match="1, 3, 5 or 10"):
        applied.hits(7)


def test_a_plot_is_drawn_where_matplotlib_is(model: rg.Model) -> None:
    matplotlib = needed("matplotlib", "pictures")
    matplotlib.use("Agg")
    axes = model.evaluate(progress=False).plot(20)
    assert len(axes.lines[0].get_xdata()) == 20


def test_a_function_hears_every_epoch_and_ends_a_training(graph: rg.Graph, tmp_path: Path) -> None:
    config = {"system": "embedding", "embed": {"model": "complex", "dimension": 8, "epochs": 400, "evaluate_every": 1}}
    heard: list[tuple[str, int, dict[str, Any]]] = []

    def stop_after_three(stage: str, step: int, figures: dict[str, Any]) -> bool:
        heard.append((stage, step, figures))
        return figures.get("epoch", 0) >= 3

    model = rg.learn(graph, out=tmp_path / "run", config=config, progress=stop_after_three)
    epochs = [(step, figures) for _, step, figures in heard if "epoch" in figures]
    assert [step for step, _ in epochs][:3] == [1, 2, 3] and "loss" in epochs[0][1]
    trained = model.results["stages"]["embeddings"]["figures"]["epochs"]
    assert 3 <= trained < 400
    assert any(figures.get("total") for _, _, figures in heard)
    with pytest.raises(ValueError, match="progress: expected True, False or a function"):
        rg.learn(graph, out=tmp_path / "other", progress="yes")  # type: ignore[arg-type]


def test_an_error_in_the_function_is_the_callers(graph: rg.Graph, tmp_path: Path) -> None:
    def broken(stage: str, step: int, figures: dict[str, Any]) -> None:
        raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        rg.learn(graph, out=tmp_path / "run", config=RULES, progress=broken)


def test_learning_at_once_leaves_a_run(graph: rg.Graph, tmp_path: Path) -> None:
    model = rg.learn(graph.to_pandas(), out=tmp_path / "run", instant=True, progress=False)
    assert model.results["system"] == "blend"
    answers = rg.open(tmp_path / "run").predict(*QUERIES[0], top=3)
    assert answers[0].probability is not None and answers[0].path


def test_a_run_of_another_seed_is_not_replaced(
    graph: rg.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rg.learn(graph, out=tmp_path / "run", config=RULES, progress=False)
    with pytest.raises(ValueError, match="has the run of seed 1; choose another folder for seed 2"):
        rg.learn(graph, out=tmp_path / "run", seed=2, config=RULES, progress=False)
    rg.learn(graph, out=tmp_path / "run", seed=1, config=RULES, progress=False)
    # Nor one in the folder that is taken by default.
    monkeypatch.chdir(tmp_path)
    rg.learn(graph, config=RULES, progress=False)
    with pytest.raises(ValueError, match="out: runs/demonstration has the run of seed 1"):
        rg.learn(graph, seed=2, config=RULES, progress=False)


def test_numbers_with_gaps_are_names() -> None:
    customers = rg.Graph(numpy.array([[1001, 0, 1002], [1002, 0, 1003]]), split=None)
    assert customers.entities == ["1001", "1002", "1003"] and customers.relations == ["0"]
    ids = rg.Graph(numpy.array([[0, 0, 1], [1, 0, 2]]), split=None)
    assert ids.triples().tolist() == [[0, 0, 1], [1, 0, 2]]
    # What names an id says that gaps are meant.
    named = rg.Graph(numpy.array([[0, 0, 2]]), split=None, entities=["a", "b", "c"], relations=["r"])
    assert named.entities == ["a", "b", "c"]


@pytest.mark.parametrize("nothing", [None, 3, 2.5, True])
def test_what_is_no_data_is_said(nothing: Any) -> None:
    with pytest.raises(ValueError, match="data: expected a path, triples, a frame or a graph"):
        rg.Graph(nothing)


def test_rules_are_applied_to_a_frame(graph: rg.Graph, model: rg.Model) -> None:
    frame = graph.to_pandas()
    rules = rg.mine(frame, samples=500, progress=False)
    assert rg.apply(frame, rules, progress=False).mrr > 0.1
    with pytest.raises(ValueError, match="top: expected a whole number, found '5'"):
        model.predict(*QUERIES[0], top="5")  # type: ignore[arg-type]


def test_an_rdflib_graph_keeps_prefixes_and_labels() -> None:
    rdflib = needed("rdflib", "graphs of rdflib")
    graph = rdflib.Graph().parse(
        data="""
        @prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        ex:ada ex:parent_of ex:ben ; ex:born 1815 ; rdfs:label "Ada" .
        ex:ben ex:parent_of ex:cleo .
        """,
        format="turtle",
    )
    read = rg.Graph(graph, split=None)
    base = "http://example.org/"
    assert sorted(read.entities) == [base + "ada", base + "ben", base + "cleo"] and read.relations == [base + "parent_of"]
    known = rg.ask(read, "Ada", base + "parent_of").to_dict()["known"]
    assert known == ["ex:ben"]


def test_a_networkx_graph_is_read_by_its_edges() -> None:
    networkx = needed("networkx", "graphs of NetworkX")
    graph = networkx.DiGraph()
    graph.add_node("ada", label="Ada")
    graph.add_edge("ada", "ben", relation="parent_of")
    graph.add_edge("ben", "cleo", relation="parent_of")
    read = rg.Graph(graph, split=None)
    assert read.columns() == {"head": ["ada", "ben"], "relation": ["parent_of"] * 2, "tail": ["ben", "cleo"]}
    multi = networkx.MultiDiGraph()
    multi.add_edge("a", "b", key="likes")
    multi.add_edge("a", "b", key="knows")
    assert sorted(rg.Graph(multi, split=None).relations) == ["knows", "likes"]
    graph.add_edge("cleo", "dan")
    with pytest.raises(ValueError, match="the edge from 'cleo' to 'dan' names no relation"):
        rg.Graph(graph)
