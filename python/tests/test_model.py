"""Learning, opening, asking."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy
import pandas
import polars
import pytest

import ruleguider as rg
from conftest import RULES


def test_what_was_learnt_is_opened_again(graph: rg.Graph, tmp_path: Path) -> None:
    rows = pandas.concat([graph.to_pandas(split) for split in ("train", "valid", "test")])
    learnt = rg.learn(rows, out=tmp_path / "mine", seed=4, config=RULES, progress=False)
    # The rows are gone; the run has kept them.
    opened = rg.open(tmp_path / "mine")
    assert opened.results == learnt.results and opened.config["rules"]["samples"] == 2000
    assert opened.graph.entities == learnt.graph.entities
    subject, relation = learnt.graph.to_pandas("test").values[0][:2]
    assert opened.predict(subject, relation) == learnt.predict(subject, relation)
    # While a model is in use its run can be worked in: cells are run twice.
    again = rg.learn(rows, out=tmp_path / "mine", seed=4, config=RULES, progress=False)
    assert again.results["stages"]["rules"]["skipped"]
    with pytest.raises(ValueError, match="was made from triples in memory"):
        rg.learn(graph.to_pandas(), out=tmp_path / "mine", seed=4, config=RULES, progress=False)


def test_given_facts_are_scored_explained_and_doubted(model: rg.Model) -> None:
    facts = model.graph.to_pandas("test").head(20)
    scores = model.score(facts, threshold="auto", progress=False)
    assert len(scores) == 20 and scores.to_pandas()["true"].mean() > 0.5
    row = scores[0]
    assert [row["subject"], row["relation"], row["object"]] == facts.values[0].tolist()
    predicted = {one.entity: one for one in model.predict(row["subject"], row["relation"], top=1000)}
    for row in scores:
        if row["subject"] == scores[0]["subject"] and row["relation"] == scores[0]["relation"]:
            assert row["object"] not in predicted or math.isclose(
                row["probability"], predicted[row["object"]].probability or 0.0, abs_tol=1e-9
            )
    wrong = model.score([("Ilse_Hagenthall", "cousin_of", "Vera_Hagenthal")], progress=False)[0]
    assert "did you mean" in wrong["error"] and "Ilse_Hagenthal" in wrong["suggestions"]
    assert wrong["rank_tail"] is None and wrong["true"] is None
    reasons = model.explain_many(facts.values, reasons=2, progress=False)
    assert set(reasons.columns()["line"]) == set(range(1, 21)) and reasons.columns()["place"][0] == 1
    assert max(reasons.columns()["place"]) == 2
    subject, relation, object = facts.values[0]
    between = model.relations(subject, object, top=50)
    assert relation in between.columns()["relation"] and between[0]["rank_tail"] >= 1
    doubts = model.doubt(top=5, progress=False)
    assert len(doubts) == 5 and doubts.asked == len(model.graph.to_pandas("train"))
    assert doubts.columns()["plausibility"] == sorted(doubts.columns()["plausibility"])
    assert pickle.loads(pickle.dumps(doubts)) == doubts
    with pytest.raises(ValueError, match="fact 0: expected a subject"):
        model.score(["ab"], progress=False)
    with pytest.raises(ValueError, match="threshold"):
        model.score(facts, threshold=2.0, progress=False)


def test_a_prediction_has_its_reasons(model: rg.Model) -> None:
    p = model.predict("Ilse_Hagenthal", "cousin_of", top=5)
    assert 0 < len(p) <= 5 and p.subject == "Ilse_Hagenthal" and not p.inverse
    best = p[0]
    assert best == next(iter(p)) and p[-1] == p.answers[-1] and len(p[:2]) == 2
    assert best.rule is not None and 0 < best.rule.confidence <= 1 and best.rule.correct <= best.rule.predicted
    assert best.path[-1].entity == best.entity or best.start == best.entity
    assert best.probability is not None and 0 <= best.probability <= 1
    assert best.path[0].relation.replace("_", " ") in best.reason and best.label in repr(best)
    assert set(p.known).isdisjoint(answer.entity for answer in p)
    assert repr(p).startswith("Ilse_Hagenthal —cousin_of→ ?\nrank")
    assert p.to_dict()["answers"][0]["entity"] == best.entity
    assert pickle.loads(pickle.dumps(p)) == p and hash(best) == hash(p[0])
    heads = model.predict("Ilse_Hagenthal", "~cousin_of")
    assert heads.inverse and repr(heads).startswith("? —cousin_of→ Ilse_Hagenthal")


def keys(value: object) -> set[str]:
    """Every key of nested data, with the keys above it."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if isinstance(value, dict):
        return set(value).union(*({f"{key}.{below}" for below in keys(value[key])} for key in value))
    return set()


def said(model: rg.Model, *words: str) -> dict[str, object]:
    """What the command line answers, as data."""
    command = [sys.executable, "-m", "ruleguider._command", words[0], str(model.path), *words[1:]]
    run = subprocess.run([*command, "--json", "--quiet"], capture_output=True, check=True, timeout=120)
    answer: dict[str, object] = json.loads(run.stdout)
    return answer


def test_results_have_the_keys_of_the_command_line(model: rg.Model) -> None:
    p = model.predict("Ilse_Hagenthal", "cousin_of")
    assert keys(p.to_dict()) - {"answers.reason"} == keys(said(model, "predict", "Ilse_Hagenthal", "cousin_of"))
    why = model.explain("Ilse_Hagenthal", "cousin_of", p[0].entity)
    added = {"answers.reason", "instead.reason"}
    assert keys(why.to_dict()) - added == keys(said(model, "explain", "Ilse_Hagenthal", "cousin_of", p[0].entity))
    assert why.rules_total >= len(why.rules) > 0
    subject, relation, held = model.graph.to_pandas("test").values[0]
    missing = model.predict(subject, relation)
    assert held in missing.held_out and missing.held_out_total >= len(missing.held_out)
    facts = model.graph.to_pandas()
    town = facts[facts["relation"] == "lives_in"]["tail"].iloc[0]
    assert p.hint is None and "lives_in" in (model.predict(town, "lives_in").hint or "")


@pytest.fixture(scope="module")
def blend(tmp_path_factory: pytest.TempPathFactory) -> rg.Model:
    """A blend of rules and vectors, on another family."""
    folder = tmp_path_factory.mktemp("blend")
    family = ["generate", "family", "--people", "60", "--seed", "5", "--out", str(folder / "family"), "--quiet"]
    subprocess.run([sys.executable, "-m", "ruleguider._command", *family], check=True, capture_output=True, timeout=120)
    config = {"system": "blend", "rules.samples": 1000, "embed.epochs": 3, "embed.dimension": 8}
    return rg.learn(folder / "family", out=folder / "run", config=config, progress=False)


@pytest.fixture(scope="module")
def instant(tmp_path_factory: pytest.TempPathFactory) -> rg.Model:
    """Weights of other graphs, on a ring with a hub."""
    facts = [(f"n{one}", "next", f"n{(one + 1) % 90}") for one in range(90)]
    facts += [("hub", "has", f"n{one}") for one in range(0, 90, 2)]
    facts += [(f"n{one}", "far", f"n{(one + 2) % 90}") for one in range(0, 90, 3)]
    return rg.learn(facts, out=tmp_path_factory.mktemp("instant") / "run", instant=True, progress=False)


@pytest.mark.parametrize("which", ["model", "blend", "instant"])
def test_a_fact_has_the_probability_of_the_command_line(which: str, request: pytest.FixtureRequest) -> None:
    model: rg.Model = request.getfixturevalue(which)
    questions = [("Ilse_Hagenthal", "cousin_of")] if which == "model" else model.graph.to_pandas("test").values[:, :2]
    asked = next((str(row[0]), str(row[1])) for row in questions if len(model.predict(str(row[0]), str(row[1]))) > 1)
    answers = said(model, "predict", *asked)["answers"]
    assert isinstance(answers, list)
    many = model.predict_many([asked], progress=False)[0]
    for here in (model.predict(*asked), many):
        assert [one.probability for one in here] == pytest.approx([one["probability"] for one in answers], abs=1e-6)
    entity, probability = answers[0]["entity"], pytest.approx(answers[0]["probability"], abs=1e-6)
    scored = model.score([(*asked, entity)], progress=False)[0]
    explained = model.explain_many([(*asked, entity)], progress=False)[0]
    between = [one for one in model.relations(asked[0], entity, top=100) if one["relation"] == asked[1]]
    assert len(between) == 1
    for row in (scored, explained, *between):
        assert row["probability"] == probability
        assert row["typical"] + sum(part["share"] for part in row["because"]) == pytest.approx(row["score"])
        if which == "model":
            assert row["because"][0]["member"] == "rules" and row["path"] == answers[0]["path"]
    assert model.explain(*asked, entity).probability == probability
    assert said(model, "explain", *asked, entity)["probability"] == probability
    relation = "~" + asked[1] if answers[0].get("inverse") else asked[1]
    missing = [one for one in model.complete(relation, held_out="show", min_probability=0.0, progress=False)
               if (one.head, one.tail) == (asked[0], entity)]
    assert [one.probability for one in missing] == [probability]


def test_many_are_what_each_is(model: rg.Model) -> None:
    queries = [(row[0], row[1]) for row in model.graph.to_pandas("test").values[:40]]
    many = model.predict_many(queries, top=3, progress=False)
    assert len(many) == 40 and [p.subject for p in many] == [subject for subject, _ in queries]
    assert many[7] == model.predict(*queries[7], top=3) and many[-1] == many[39]
    frame = many.to_pandas()
    assert len(frame) == sum(map(len, many)) and frame["rank"].max() <= 3
    assert many.to_polars().rows(named=True)[0]["entity"] == many[0][0].entity
    assert many.to_dict()["predictions"][3] == many[3].to_dict()
    for same in (pandas.DataFrame(queries), polars.DataFrame(queries, orient="row"), numpy.array(queries)):
        assert model.predict_many(same, top=3, progress=False).columns() == many.columns()


def test_an_explanation_says_why_and_why_not(model: rg.Model) -> None:
    best = model.predict("Ilse_Hagenthal", "cousin_of")[0]
    why = model.explain("Ilse_Hagenthal", "cousin_of", best.entity)
    assert why.rank == 1 and not why.known and why.instead is None and why.rules[0].path
    assert "predicted at rank 1" in repr(why)
    assert list(why.to_pandas()["kind"])[0] == "rule" and why.to_polars().height == len(why.columns()["kind"])
    known = model.explain("Ilse_Hagenthal", "cousin_of", model.predict("Ilse_Hagenthal", "cousin_of").known[0])
    assert known.known and "a fact of the graph" in repr(known)
    assert [part.member for part in why.because] == ["rules"] and why.typical is not None
    for scored in (best, why):
        assert scored.typical + sum(part.share for part in scored.because) == pytest.approx(best.score)
    rules = why.because[0]
    assert sum(part.share for part in rules.evidence) == pytest.approx(rules.share) and "rule" in rules.words
    assert rules.evidence[0].rule is not None and rules.evidence[0].path and "Evidence(" in repr(rules.evidence[0])
    never = model.explain("Ilse_Hagenthal", "cousin_of", "Ilse_Hagenthal")
    assert never.rank is None and never.instead is not None and never.plausibility is None


def test_missing_facts_in_memory_and_in_a_file(model: rg.Model, tmp_path: Path) -> None:
    facts = model.complete("cousin_of", top=20, progress=False)
    assert len(facts) == 20 and all(fact.relation == "cousin_of" for fact in facts)
    assert [fact.probability for fact in facts] == sorted((fact.probability for fact in facts), reverse=True)
    assert facts[0].reason in repr(facts[0]) and facts.asked > 0 and facts[0].path
    written = model.complete("cousin_of", top=20, out=tmp_path / "missing.jsonl", progress=False)
    lines = [json.loads(line) for line in (tmp_path / "missing.jsonl").read_text().splitlines()]
    assert written.facts == 20 and lines == facts.to_dict()["facts"]
    assert facts.to_pandas()["tail"].tolist() == [fact.tail for fact in facts]
    likely = model.complete(["cousin_of", "sibling_of"], min_probability=0.8, progress=False)
    assert all(fact.probability >= 0.8 for fact in likely) and likely.to_polars().height == len(likely)
    assert {fact.relation for fact in model.complete(top=200, progress=False)} > {"cousin_of"}


def test_figures_are_those_of_the_run(model: rg.Model) -> None:
    evaluation = model.evaluate(progress=False)
    assert evaluation.mrr == model.results["mrr"] and evaluation.hits(10) == model.results["hits@10"]
    both = model.evaluate(direction="both", ties="pessimistic", progress=False)
    tails = model.evaluate(direction="tail", ties="pessimistic", progress=False)
    assert both.queries == 2 * tails.queries and both.direction == "both" and tails.tails is None
    assert both.tails and both.heads and both.tails["mrr"] == tails.mrr and both.heads["queries"] == tails.queries
    assert set(both.baseline) == {"popularity", "similar"}
    assert all(0 < baseline.mrr < both.mrr and baseline.queries == both.queries for baseline in both.baseline.values())
    frame = both.to_pandas()
    assert frame["relation"][0] == "all" and frame["queries"][1:].sum() == both.queries
    assert math.isclose(both.to_polars()["mrr"][0], both.mrr) and f"mrr={both.mrr:.4f}" in repr(both)
    assert both.hits(1) <= both.hits(2) <= both.hits(3) and both.hits(3) == pytest.approx(both.to_dict()["hits@3"])


def test_rules_are_mined_saved_read_and_applied(graph: rg.Graph, tmp_path: Path) -> None:
    rules = rg.mine(graph, types=["cyclic", "acyclic", "zero"], samples=2000, seed=1, progress=False)
    assert rules == rules and len(rules) > 100 and 0 < (rules.saturation or 0) <= 1
    assert rules[0].confidence >= rules[-1].confidence and len(rules[:7]) == 7 and rules[5:7][0] == rules[5]
    frame = rules.to_pandas()
    assert set(frame["type"]) == {"cyclic", "acyclic", "zero"}
    # They are ordered by the smoothed confidence.
    assert (frame["correct"] / (frame["predicted"] + 5)).round(12).is_monotonic_decreasing
    assert rules.to_polars()["rule"][0] == rules[0].text and rules[0].to_dict()["text"] == rules[0].text
    rules.save(tmp_path / "rules.tsv.gz")
    read = rg.Rules.read(tmp_path / "rules.tsv.gz", graph)
    assert len(read) == len(rules) and read.saturation is None
    applied = rg.apply(graph, tmp_path / "rules.tsv.gz", aggregate="max-plus", direction="both", progress=False)
    assert applied == rg.apply(graph, rules, aggregate="max-plus", direction="both", progress=False) or applied.mrr > 0.5
    one = rules.select(head="cousin_of", min_confidence=0.3)
    assert 0 < len(one) < len(rules) and all(rule.confidence >= 0.3 for rule in one)
    known = rg.mine(
        graph, types=["cyclic", "acyclic", "zero"], samples=2000, seed=1, confidence="pca", progress=False
    )
    assert len(known) == len(rules)
    assert sum(rule.predicted for rule in known) < sum(rule.predicted for rule in rules)
    heads = rg.mine(graph, heads=["cousin_of"], samples=500, progress=False)
    assert set(heads.to_pandas()["relation"]) == {"cousin_of"}
    rg.apply(graph, one, predictions=tmp_path / "predictions.txt", progress=False)
    assert (tmp_path / "predictions.txt").read_text().count("Heads:") > 0


def test_embeddings_are_views_that_nobody_can_write(embedding: rg.Model) -> None:
    entities, relations = embedding.entity_embeddings(), embedding.relation_embeddings()
    assert entities.dtype == relations.dtype == numpy.float32
    assert len(entities) == len(embedding.graph.entities) and len(relations) == len(embedding.graph.relations)
    assert entities.shape[1] == relations.shape[1] and numpy.isfinite(entities).all() and entities.std() > 0
    # The same memory each time, and no way to change it.
    again = embedding.entity_embeddings()
    assert again.__array_interface__["data"] == (entities.__array_interface__["data"][0], True)
    assert not entities.flags.owndata and not entities.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        entities[0, 0] = 1.0
    inverse = embedding.relation_embeddings(inverse=True)
    step = inverse.__array_interface__["data"][0] - relations.__array_interface__["data"][0]
    assert step == 4 * relations.shape[1] and relations.strides[0] == 2 * step
    # The memory outlives whoever gave it.
    kept = entities[:2].copy()
    del again, inverse
    assert (entities[:2] == kept).all()


def test_an_embedding_alone_predicts_nothing_without_reason(embedding: rg.Model) -> None:
    assert embedding.explain("Ilse_Hagenthal", "cousin_of", "Ilse_Hagenthal").plausibility is not None
    assert embedding.evaluate(progress=False).queries > 0 and embedding.metrics[0]["stage"] == "embeddings"
