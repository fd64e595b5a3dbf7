"""Long work: shown, stopped, resumed, beside other threads, and from a shell."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import redirect_stderr
from pathlib import Path

import pytest

import ruleguider as rg
from conftest import RULES

# Trains until it is stopped; the second time goes on from the checkpoint.
TRAINING = textwrap.dedent("""
    import sys, threading, time, ruleguider
    config = {"system": "embedding", "embed": {"model": "complex", "dimension": 8, "epochs": int(sys.argv[2]), "patience": 1000000}}
    def told():
        while not any(file.stat().st_size for file in __import__("pathlib").Path(sys.argv[1]).rglob("metrics.jsonl")):
            time.sleep(0.01)
        print("learning", flush=True)
    threading.Thread(target=told, daemon=True).start()
    try:
        model = ruleguider.learn(out=sys.argv[1], config=config, progress=False)
        print(max(point["step"] for point in model.metrics), min(point["step"] for point in model.metrics))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
""")


def test_the_interpreter_is_free_while_the_library_works(graph: rg.Graph) -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        rg.mine(graph, types=["cyclic", "acyclic"], samples=200_000, progress=False)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    turns = 0
    while thread.is_alive():
        turns += 1
    # With the interpreter's lock held this loop would get no turn before the end.
    assert turns > 1000


def test_many_threads_get_the_same_answers(model: rg.Model) -> None:
    queries = [(row[0], row[1]) for row in model.graph.to_pandas("test").values[:50]]
    alone = [model.predict(*query) for query in queries]
    found: dict[int, list[rg.Prediction]] = {}

    def ask(number: int) -> None:
        found[number] = [model.predict(*query) for query in queries]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number] == alone for number in range(4))


def test_ctrl_c_keeps_a_checkpoint(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    child = subprocess.Popen([sys.executable, "-c", TRAINING, run, "100000"], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "learning\n"
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert said == "interrupted\n" and child.returncode == 0
    checkpoints = list((tmp_path / "run").rglob("checkpoints/**/*.safetensors"))
    assert checkpoints, "nothing was kept"
    assert not list((tmp_path / "run").rglob("*.partial"))
    # Another run may begin at once: nobody works in the directory any longer.
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    assert kept["seed"] == 1


def test_progress_is_shown_and_can_be_silenced(graph: rg.Graph, tmp_path: Path) -> None:
    shown, silent = io.StringIO(), io.StringIO()
    with redirect_stderr(shown):
        rg.learn(graph, out=tmp_path / "shown", config=RULES)
    assert "rules" in shown.getvalue() and "100%" in shown.getvalue()
    with redirect_stderr(silent):
        rg.learn(graph, out=tmp_path / "silent", config=RULES, progress=False)
    assert silent.getvalue() == ""


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command that was installed with the package."""
    program = Path(sys.executable).with_name("ruleguider")
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=120)


def test_the_package_has_the_command(model: rg.Model) -> None:
    version = command("--version")
    assert version.stdout == f"ruleguider {rg.__version__}\n" and version.returncode == 0
    asked = command("predict", str(model.path), "Ilse_Hagenthal", "cousin_of", "--json")
    answers = json.loads(asked.stdout)["answers"]
    here = model.predict("Ilse_Hagenthal", "cousin_of").to_dict()["answers"]
    assert [answer["entity"] for answer in answers] == [answer["entity"] for answer in here]
    assert answers[0]["rule"] == here[0]["rule"] and answers[0]["path"] == here[0]["path"]
    wrong = command("predict", str(model.path), "nobody", "cousin_of")
    assert wrong.returncode == 2 and wrong.stderr.startswith("ruleguider: ")
    misspelt = command("predikt")
    assert misspelt.returncode == 2 and "see ruleguider --help" in misspelt.stderr
    module = subprocess.run([sys.executable, "-m", "ruleguider", "--version"], capture_output=True, text=True)
    assert module.stdout == version.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_the_command_is_stopped_by_ctrl_c(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("ruleguider")
    child = subprocess.Popen(
        [str(program), "run", "--out", str(tmp_path / "run"), "--set", "system=embedding", "--set", "embed.epochs=100000"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None and "into" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130 and "run the same command again to resume" in said
