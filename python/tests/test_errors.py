"""What goes wrong is an exception that says what and how to mend it; the interpreter always lives on."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import ruleguider as rg


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"rules": {"treshold": 0.1}}, "config: unknown setting `rules.treshold`; did you mean `rules.threshold`?"),
        ({"rules.treshold": 0.1}, "config: unknown setting `rules.treshold`; did you mean `rules.threshold`?"),
        ({"walk": 3}, "`walk` is a group of settings"),
        ({"rules": {"seconds": "long"}}, "`rules.seconds`: expected a number"),
        ({"system": "magic"}, "`system`: expected one of"),
        ({"walk": {"lambda": None}}, "`walk.lambda`: expected a value that TOML can hold, found null"),
        ({"base": "wn18r/blend"}, "did you mean `wn18rr/blend`?"),
        ("wn18r/blend", "did you mean `wn18rr/blend`?"),
        ({"rules": {"types": object()}}, "config: expected numbers, text, lists and dicts, found object"),
    ],
)
def test_settings_are_checked_as_those_of_a_file(config: Any, said: str, graph: rg.Graph, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        rg.learn(graph, config=config, out=tmp_path / "run", progress=False)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_numbers_of_numpy_are_numbers(graph: rg.Graph, tmp_path: Path) -> None:
    config = {"system": "rules", "rules": {"samples": numpy.int64(300), "threshold": numpy.float32(0.5)}}
    model = rg.learn(graph, config=config, out=tmp_path / "run", progress=False)
    assert model.config["rules"]["samples"] == 300 and model.config["rules"]["threshold"] == 0.5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda model: model.predict("Ilse_Hagental", "cousin_of"), "Ilse_Hagenthal"),
        (lambda model: model.predict("Ilse_Hagenthal", "cousinof"), "cousin_of"),
        (lambda model: model.predict("Ilse_Hagenthal", "cousin_of", top=0), "top: expected at least 1, found 0"),
        (lambda model: model.predict_many([("Ilse_Hagenthal", "cousin_of"), ("x", "y")], progress=False), "query 1: "),
        (lambda model: model.predict_many(["ab"], progress=False), "query 0: expected a subject and a relation"),
        (lambda model: model.evaluate("tests", progress=False), "split: expected `test` or `valid`, found `tests`"),
        (lambda model: model.evaluate(direction="up", progress=False), "direction: unknown variant `up`"),
        (lambda model: model.complete("cousin", progress=False, top=1), "cousin_of"),
        (lambda model: model.complete(min_probability=2, progress=False), "min_probability: expected a number from 0 to 1"),
        (lambda model: model.entity_embeddings(), "this run has trained no embedding model"),
        (lambda model: rg.open(model.path, device="gpu"), "unknown device `gpu`; use cpu, cuda or auto"),
        (lambda model: rg.open(model.path, threads=0), "threads: expected at least 1"),
        (lambda model: rg.open(model.path, beam=10), "no walker"),
        (lambda model: rg.open("nowhere"), "nowhere: not a run directory"),
        (lambda model: rg.mine(model.graph, types="cyclic", progress=False), "types: expected a list of words"),
        (lambda model: rg.mine(model.graph, types=["loops"], progress=False), "types: unknown variant `loops`"),
        (lambda model: rg.mine(model.graph, seconds=1, samples=1, progress=False), "give one of them"),
        (lambda model: rg.mine(model.graph, seconds=-1, progress=False), "`seconds`: expected"),
        (lambda model: rg.mine(model.graph, heads=["cousinof"], progress=False), "cousin_of"),
        (lambda model: rg.mine(model.graph, confidence="best", progress=False), "confidence: unknown variant `best`"),
        (
            lambda model: rg.mine(model.graph, confidence="validation", learn_valid=True, progress=False),
            "confidence: validation cannot be used if the validation split is learnt",
        ),
        (lambda model: rg.apply(model.graph, model.rules(), top=0, progress=False), "`top`: expected"),
        (lambda model: rg.apply(rg.Graph.demonstration(), model.rules(), progress=False), "belong to another graph"),
        (lambda model: rg.learn(model.graph, minutes=0, progress=False), "minutes: expected a number of minutes above 0"),
        (lambda model: rg.learn([("a", "r", "b")], split=None, progress=False), "learning needs a validation and a test split"),
        (lambda model: rg.Graph(model.graph), "data: is already a Graph"),
        (lambda model: model.graph.triples("tests"), "split: expected train, valid or test"),
    ],
)
def test_wrong_arguments_are_value_errors(wrong: Callable[[rg.Model], Any], said: str, model: rg.Model) -> None:
    with pytest.raises(ValueError) as error:
        wrong(model)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_everything_else_is_an_error_of_its_own(model: rg.Model, graph: rg.Graph, tmp_path: Path) -> None:
    with pytest.raises(rg.Error, match="cannot be written|cannot write"):
        model.rules().save("/proc/rules.tsv")
    broken = tmp_path / "broken"
    rg.learn(graph, out=broken, config={"system": "rules", "rules.samples": 100}, progress=False)
    (broken / "rules.tsv").write_text("")
    with pytest.raises(rg.Error, match="has changed since it was written"):
        rg.open(broken)
    assert not issubclass(rg.Error, ValueError)


def test_a_panic_is_an_exception() -> None:
    with pytest.raises(rg.Error, match="the library panicked, which is a bug; please report it: asked for by a test"):
        rg._ruleguider.panic_for_tests()
    assert len(rg.Graph.demonstration()) > 0


def asked(path: Path, answers: Any) -> None:
    try:
        answers.put(len(rg.open(path).predict("Ilse_Hagenthal", "cousin_of")))
    except rg.Error as error:
        answers.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("method", "said"), [("fork", "was forked"), ("spawn", None)])
def test_after_a_fork_it_says_so_instead_of_hanging(method: str, said: str | None, model: rg.Model) -> None:
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    child = context.Process(target=asked, args=(model.path, answers))
    child.start()
    answer = answers.get(timeout=60)
    child.join(60)
    assert said in answer if said else answer > 0


def test_a_fork_before_the_first_use_is_as_good_as_any(model: rg.Model) -> None:
    program = textwrap.dedent(f"""
        import os, ruleguider
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        answers = ruleguider.open({str(model.path)!r}).predict("Ilse_Hagenthal", "cousin_of")
        os._exit(0 if len(answers) else 1)
    """)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
