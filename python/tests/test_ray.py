"""Many machines, as Ray has them: a head and two raylets on this one, killed, stopped and joined."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import ruleguider as rg

try:
    import ray
    from ray.cluster_utils import Cluster

    import ruleguider.ray as many
except ImportError as missing:
    if skipped := os.environ.get("RULEGUIDER_SKIPPED"):
        with open(skipped, "a") as file:
            file.write(f"ray\tmany machines: {missing}\n")
    pytest.skip(f"Ray is not here: {missing}", allow_module_level=True)

MINING: dict[str, Any] = {"types": ["cyclic", "acyclic"], "samples": 3000, "seed": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that does no work, and two nodes of one processor each."""
    # Ray's workers stand back behind everything else; beside a build they would hardly ever get a turn.
    os.environ["RAY_worker_niceness"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 << 20})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def mined(graph: rg.Graph, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What one process mines."""
    file = tmp_path_factory.mktemp("mined") / "rules.tsv"
    rg.mine(graph, progress=False, **MINING).save(file)
    return file.read_bytes()


def test_mining_is_that_of_one_process(cluster: Cluster, graph: rg.Graph, mined: bytes, tmp_path: Path) -> None:
    out = tmp_path / "rules.tsv"
    rules = many.mine(graph, out=out, parts=7, progress=False, **MINING)
    assert out.read_bytes() == mined and len(rules) == mined.count(b"\n")
    assert [path.name for path in tmp_path.iterdir()] == ["rules.tsv"], "parts are left"
    with pytest.raises(ValueError, match="a time limit is not repeatable"):
        many.mine(graph, out=out, parts=2, progress=False, seconds=1.0)


def test_a_run_is_asked_on_all_nodes(cluster: Cluster, model: rg.Model, tmp_path: Path) -> None:
    model.complete(out=tmp_path / "whole.tsv", min_probability=0.2, progress=False)
    done = many.complete(model, out=tmp_path / "facts.tsv", min_probability=0.2, parts=3, progress=False)
    assert (tmp_path / "facts.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes() and done.facts > 0
    with pytest.raises(many.PartFailed, match=r"part [12]/2 failed on node [\d.]+ \(process \d+\): .*cousin_off"):
        many.complete(model, "cousin_off", out=tmp_path / "none.tsv", parts=2, progress=False)

    figures = many.evaluate(model.path, out=tmp_path / "figures.json", direction="both", parts=3, progress=False)
    alone = model.evaluate(direction="both", progress=False)
    assert figures.mrr == alone.mrr and figures.queries == alone.queries
    assert json.loads((tmp_path / "figures.json").read_text())["mrr"] == alone.mrr

    queries = [(row[0], row[1]) for row in model.graph.to_pandas("test").values] * 40
    out = many.predict_many(model, queries, out=tmp_path / "answers.jsonl", top=2, parts=3, progress=False)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["line"] for line in lines] == list(range(1, len(queries) + 1))
    expected = model.predict_many(queries[:20], top=2, progress=False)
    for line, prediction in zip(lines, expected):
        assert [answer["entity"] for answer in line["answers"]] == [answer.entity for answer in prediction]


def test_a_run_that_is_being_read_is_not_unpacked_over(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        many._add(archive, "run.json", b"{}")
    run = tmp_path / "run"
    many._untar(packed.getvalue(), run)
    with (run / "run.json").open("rb") as read:
        many._untar(packed.getvalue(), run)
        assert os.fstat(read.fileno()).st_ino == (run / "run.json").stat().st_ino
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_what_is_done_is_not_done_again(
    cluster: Cluster, graph: rg.Graph, mined: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, submitted = tmp_path / "rules.tsv", list[str]()
    real = many._remote

    class Counting:
        def __init__(self, task: Any, fails: bool) -> None:
            self.task, self.fails = task, fails

        def remote(self, shard: str, *arguments: Any) -> Any:
            submitted.append(shard)
            if self.fails and len(submitted) > 3:
                raise KeyboardInterrupt
            return self.task.remote(shard, *arguments)

    monkeypatch.setattr(many, "_remote", lambda *given: Counting(real(*given), True))
    monkeypatch.setattr(many, "_slots", lambda _: 1)
    with pytest.raises(KeyboardInterrupt):
        many.mine(graph, out=out, parts=6, progress=False, **MINING)
    parts = sorted((tmp_path / "rules.tsv.parts").glob("part-*"))
    assert parts and not out.exists()
    # One of them was cut off by the crash of a machine.
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    submitted.clear()
    monkeypatch.setattr(many, "_remote", lambda *given: Counting(real(*given), False))
    many.mine(graph, out=out, progress=False, **MINING)
    assert out.read_bytes() == mined
    assert len(submitted) == 6 - len(parts) + 1, "only what is missing, in as many parts as before"


def test_a_worker_that_is_killed_is_replaced_or_named(cluster: Cluster, tmp_path: Path) -> None:
    # In here, for it to travel to workers, which do not know this file.
    def killed_once(mark: str) -> tuple[str, Any]:
        """Killed as the system kills those that take too much memory."""
        if not os.path.exists(mark):
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "node", b"done"

    def gather(retries: int, mark: str, kept: list[Any]) -> None:
        many._gather(
            "testing",
            "parts",
            [1],
            1,
            lambda _: many._remote(killed_once, 1, 0, retries).remote(str(tmp_path / mark)),
            lambda _, rows: kept.append(bytes(rows)),
            lambda index: f"part {index}/1",
            1,
            False,
        )

    kept: list[Any] = []
    gather(2, "first", kept)
    assert kept == [b"done"]
    with pytest.raises(many.PartFailed, match="part 1/1 failed repeatedly, because its worker or node died: .+"):
        gather(0, "second", kept)


def test_a_sweep_of_four_runs(cluster: Cluster, graph: rg.Graph, tmp_path: Path) -> None:
    configs = {name: {"system": "rules", "rules.samples": n, "eval.direction": "tail"} for name, n in (("few", 300), ("more", 2000))}
    results = many.sweep(graph, configs, seeds=[1, 2], out=tmp_path / "runs", progress=False)
    assert [(result["config"], result["seed"]) for result in results] == [("few", 1), ("few", 2), ("more", 1), ("more", 2)]
    alone = rg.learn(graph, out=tmp_path / "alone", seed=2, config=configs["more"], progress=False)
    assert results[3]["mrr"] == alone.results["mrr"]
    assert rg.open(tmp_path / "runs" / "more-2").evaluate(progress=False).mrr == alone.results["mrr"]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("results.json")}
    assert many.sweep(graph, configs, seeds=[1, 2], out=tmp_path / "runs", progress=False) == results
    assert {path: path.stat().st_mtime_ns for path in before} == before, "finished runs were learnt again"


@pytest.mark.parametrize("method", ["random", "halving"])
def test_a_search_is_that_of_one_machine(
    cluster: Cluster, graph: rg.Graph, tmp_path: Path, method: Literal["random", "halving"]
) -> None:
    data = tmp_path / "family.tsv"
    data.write_text("".join("\t".join(row) + "\n" for row in graph.to_pandas("train").values))
    space = tmp_path / "space.toml"
    space.write_text("[embed]\nbatch = [64, 256]\nlearning_rate = { from = 0.001, to = 0.1, scale = \"log\" }\n")
    settings = {"embed.epochs": 2, "embed.evaluate_every": 1, "embed.dimension": 8}

    def found(out: str) -> dict[str, Any]:
        return many.search(
            data, "complex", out=tmp_path / out, trials=3, space=space, method=method, settings=settings, progress=False
        )

    report = found("many")
    finished = [one for one in report["trials"] if one["state"] == "finished"]
    assert len(report["trials"]) == 3 and len(finished) == (2 if method == "halving" else 3)
    assert report["best"]["mrr"] == max(one["mrr"] for one in finished)
    given = ["sweep", data, "complex", "--space", space, "--trials", 3, "--device", "cpu", "--threads", 1]
    given += ["--search", method]
    given += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    alone = subprocess.run(
        [sys.executable, "-m", "ruleguider", *map(str, given), "--out", str(tmp_path / "alone"), "--quiet"], check=False
    )
    assert alone.returncode == 0
    table = lambda out: (tmp_path / out / "trials.tsv").read_bytes()  # noqa: E731
    assert table("many") == table("alone")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "many" / "trials").rglob("*.safetensors")}
    assert before and found("many")["trials"] == report["trials"]
    assert {path: path.stat().st_mtime_ns for path in before} == before, "trials were trained again"
    with pytest.raises(ValueError, match="method: expected random, grid or halving, found best"):
        many.search(data, "complex", out=tmp_path / "none", trials=2, method="best", progress=False)  # type: ignore[arg-type]
    with pytest.raises(many.PartFailed, match=r"trial [12]/2 failed on node .*: .*complexx"):
        many.search(data, "complexx", out=tmp_path / "none", trials=2, progress=False)


# The last one: it changes the cluster.
def test_a_node_dies_and_another_joins_in_the_middle(
    cluster: Cluster, graph: rg.Graph, mined: bytes, tmp_path: Path
) -> None:
    out = tmp_path / "rules.tsv"
    failed: list[BaseException] = []

    def work() -> None:
        try:
            many.mine(graph, out=out, parts=24, progress=False, **MINING)
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    parts = tmp_path / "rules.tsv.parts"
    while thread.is_alive() and len(list(parts.glob("part-*"))) < 3:
        time.sleep(0.05)
    victim = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
    cluster.remove_node(victim, allow_graceful=False)
    assert thread.is_alive(), "it was over before a node died"
    cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    thread.join(timeout=100)
    assert not thread.is_alive() and not failed, failed
    assert out.read_bytes() == mined
