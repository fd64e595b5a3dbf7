"""Work on many machines: it is divided into parts, which Ray runs wherever there is room.

`pip install "ruleguider[ray]"`. The parts are the library's own (`ruleguider mine --shard 3/16`, …), so the result is that
of one process, byte for byte. The graph, or the run, is put into Ray's object store once; a node fetches it once, and its
workers read it from shared memory. Finished parts are written beside the result as they arrive, so that the same call,
after Ctrl-C or a crash of the driver, computes only the missing ones. A part whose worker or node dies is computed again
elsewhere. Call `ray.init` first, unless Ray should start with its defaults.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy
import ray

from . import _ruleguider
from ._inputs import Entities, Names, entities, on_path, pairs, plain
from ._progress import shown
from .graph import Data, Graph, _reading
from .model import Model, Name, PathName, learn
from .results import Completed, Evaluation
from .rules import Rules, _mining

__all__ = ["PartFailed", "complete", "evaluate", "mine", "predict_many", "search", "sweep"]

# The default number of parts per processor: enough that the last one does not take long.
_PARTS_PER_CPU = 4
# A run does not need these folders to answer.
_LEFT_OUT = ("checkpoints", "tensorboard")

Remote = Callable[..., tuple[str, Any]]


class PartFailed(_ruleguider.Error):
    """A part of the work failed; the message says which, on which node, and why."""


def mine(
    graph: Data,
    *,
    out: PathName,
    parts: int | None = None,
    cpus_per_part: int = 1,
    retries: int = 3,
    progress: bool = True,
    **mining: Any,
) -> Rules:
    """Mines on all nodes, writes the rule file `out` and reads it. `mining` is as in `ruleguider.mine`, with `samples` or
    `saturate`: mining limited by time cannot be divided into parts. Confidence is the standard one.
    """
    read = Graph.of(graph)
    options = _mining(**mining)
    if options["confidence"] not in (None, "standard"):
        raise ValueError("confidence: parts are counted by the standard confidence; use ruleguider.mine for the others")
    if options["samples"] is None and not options["saturate"]:
        raise ValueError("give samples or saturate=True: a time limit is not repeatable")
    packed = _Packed.graph(read)
    work = _Work("mining", out, (packed.key, options), parts, cpus_per_part, 0, retries, progress)
    work.merged(_mine_part, packed.put(), options)
    return Rules.read(out, read)


def complete(
    model: Model | PathName,
    relation: str | Sequence[str] | None = None,
    *,
    out: PathName,
    top: int | None = None,
    min_probability: float | None = None,
    held_out: Literal["hide", "show", "only"] = "hide",
    subjects: Entities | None = None,
    objects: Entities | None = None,
    through: Names = (),
    without: Names = (),
    max_hops: int | None = None,
    parts: int | None = None,
    cpus_per_part: int = 1,
    gpus_per_part: float = 0,
    retries: int = 3,
    progress: bool = True,
) -> Completed:
    """The missing facts, as `Model.complete` writes them to `out`."""
    relations = [relation] if isinstance(relation, str) else list(relation or [])
    wanted = (_listed(subjects), _listed(objects), on_path(through, without, max_hops))
    asked = (relations, top, min_probability, held_out, wanted)
    packed = _Packed.run(model)
    work = _Work("completing", out, (packed.key, asked), parts, cpus_per_part, gpus_per_part, retries, progress)
    return Completed(json.loads(work.merged(_complete_part, packed.put(), gpus_per_part > 0, *asked)))


def evaluate(
    model: Model | PathName,
    split: Literal["test", "valid"] = "test",
    *,
    out: PathName,
    direction: str | None = None,
    ties: str = "realistic",
    leave_out_unseen: bool = False,
    all_queries: bool = False,
    parts: int | None = None,
    cpus_per_part: int = 1,
    gpus_per_part: float = 0,
    retries: int = 3,
    progress: bool = True,
) -> Evaluation:
    """Ranks the true answers of a split; the figures are also written to `out`, as `ruleguider evaluate --json` prints
    them. The seconds are those of all parts together."""
    asked = (split, direction, ties, leave_out_unseen, all_queries)
    packed = _Packed.run(model)
    work = _Work("ranking", out, (packed.key, asked), parts, cpus_per_part, gpus_per_part, retries, progress)
    return Evaluation(json.loads(work.merged(_evaluate_part, packed.put(), gpus_per_part > 0, *asked)))


def predict_many(
    model: Model | PathName,
    queries: Iterable[tuple[Name, Name]] | Any,
    *,
    out: PathName,
    top: int = 10,
    among: Entities | None = None,
    not_among: Entities | None = None,
    through: Names = (),
    without: Names = (),
    max_hops: int | None = None,
    parts: int | None = None,
    cpus_per_part: int = 1,
    gpus_per_part: float = 0,
    retries: int = 3,
    progress: bool = True,
) -> Path:
    """Answers many queries into `out`, one JSON object per line, as `ruleguider predict --file` prints them; returns `out`."""
    lines = [f"{subject}\t{relation}" for subject, relation in pairs(queries)]
    for number, line in enumerate(lines):
        if line.count("\t") != 1 or "\n" in line:
            raise ValueError(f"query {number}: names with tabs or line breaks cannot be asked in parts")
    text = "\n".join(lines).encode()
    packed = _Packed.run(model)
    wanted = (_listed(among), _listed(not_among), on_path(through, without, max_hops))
    inputs = (packed.key, hashlib.sha256(text).hexdigest(), top, wanted)
    work = _Work("predicting", out, inputs, parts, cpus_per_part, gpus_per_part, retries, progress)
    work.merged(_predict_part, packed.put(), gpus_per_part > 0, ray.put(text), top, wanted)
    return Path(out)


def _listed(given: Entities | None) -> str | list[str] | None:
    """Entities as they are sent to other nodes, which do not have this one's files."""
    named = entities(given)
    if isinstance(named, str) and Path(named).is_file():
        return [line.rstrip() for line in Path(named).read_text(encoding="utf-8").splitlines() if line.strip()]
    return named


def sweep(
    graph: Data,
    configs: Mapping[str, str | Mapping[str, Any]],
    seeds: Iterable[int] = (1,),
    *,
    out: PathName,
    minutes: float | None = None,
    cpus_per_run: int = 1,
    gpus_per_run: float = 0,
    retries: int = 3,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Learns with every configuration and every seed, each in a run directory `NAME-SEED` in the folder `out`. Returns all
    results, in the order of configurations and seeds, with the configuration's name as `config`; finished runs are not
    learnt again."""
    packed = _Packed.graph(Graph.of(graph))
    folder = Path(out)
    runs = [(name, seed) for name, seed in itertools.product(configs, seeds)]
    place = {run: folder / f"{run[0]}-{run[1]}" for run in runs}
    key = {run: _sum((packed.key, configs[run[0]], minutes, run[1])) for run in runs}
    todo = [run for run in runs if not _is_learnt(place[run], key[run])]
    shared = packed.put() if todo else None

    def submit(run: tuple[str, int]) -> Any:
        task = _remote(_learn_run, cpus_per_run, gpus_per_run, retries)
        return task.remote(shared, configs[run[0]], run[1], minutes, cpus_per_run, gpus_per_run > 0)

    def keep(run: tuple[str, int], files: Any) -> None:
        # What an earlier call left unfinished, or learnt with other settings.
        shutil.rmtree(place[run], ignore_errors=True)
        _untar(memoryview(files), place[run])
        _write(place[run] / "sweep.json", key[run].encode())

    _gather("learning", "runs", todo, len(runs), submit, keep, lambda run: f"run {run[0]}-{run[1]}", cpus_per_run, progress)
    results = [json.loads((place[run] / "results.json").read_text()) for run in runs]
    return [{"config": run[0], **result} for run, result in zip(runs, results)]


def search(
    data: PathName,
    system: str,
    *,
    out: PathName,
    trials: int,
    space: PathName | None = None,
    method: Literal["random", "grid", "halving"] = "random",
    seed: int = 1,
    settings: Mapping[str, Any] | None = None,
    cpus_per_trial: int = 1,
    gpus_per_trial: float = 0,
    retries: int = 3,
    progress: bool = True,
) -> dict[str, Any]:
    """Tunes settings on the validation split, as `ruleguider sweep` does; every trial is a task. Returns what the command
    prints as JSON; the folder `out` has the table, the page and the best configuration. `space` is the name of a space or
    a file; `settings` apply to all trials. `data`, `space` and `out` must be on a disk that all nodes see, by the same
    paths. Finished trials are not trained again.
    With `halving`, all trials of a rung are trained before the next one begins."""
    if method not in ("random", "grid", "halving"):
        raise ValueError(f"method: expected random, grid or halving, found {method}")
    if trials < 1:
        raise ValueError(f"trials: expected at least 1, found {trials}")
    folder = Path(out).absolute()
    command = ["sweep", str(Path(data).absolute()), system, "--trials", str(trials), "--search", method]
    command += ["--seed", str(seed), "--out", str(folder), "--device", "cuda" if gpus_per_trial > 0 else "cpu"]
    if space is not None:
        command += ["--space", str(Path(space).absolute() if Path(space).exists() else space)]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    command += ["--json", "--quiet"]

    def submit(number: int) -> Any:
        task = _remote(_train_trial, cpus_per_trial, gpus_per_trial, retries)
        return task.remote([*command, "--trial", str(number), "--threads", str(cpus_per_trial)])

    # A pass trains every trial for its next rung: `random` and `grid` have one, `halving` goes on with those that advanced.
    rungs = dict.fromkeys(range(1, trials + 1), 0)
    waiting = list(rungs)

    def keep(number: int, record: str) -> None:
        told = json.loads(record)
        advanced = len(told["rungs"]) > rungs[number] and not told["finished"] and not told["failed"]
        rungs[number] = len(told["rungs"])
        if advanced:
            waiting.append(number)

    said = lambda number: f"trial {number}/{trials}"  # noqa: E731
    while waiting:
        now, waiting = waiting, []
        _gather("searching", "trials", now, len(now), submit, keep, said, cpus_per_trial, progress)
    return dict(json.loads(_run_command([*command, "--threads", "1"])))


# ---- the driver ----------------------------------------------------------------------------------------------------


class _Work:
    """A job in parts: which parts there are, and which are done."""

    def __init__(
        self,
        stage: str,
        out: PathName,
        inputs: Any,
        parts: int | None,
        cpus: int,
        gpus: float,
        retries: int,
        progress: bool,
    ) -> None:
        if parts is not None and parts < 1:
            raise ValueError(f"parts: expected at least 1, found {parts}")
        if cpus < 1:
            raise ValueError(f"cpus_per_part: expected at least 1, found {cpus}")
        self.stage, self.cpus, self.gpus, self.retries, self.progress = stage, cpus, gpus, retries, progress
        self.out = os.fspath(out)
        self.folder = Path(f"{self.out}.parts")
        self.inputs = _sum((_ruleguider.VERSION, inputs))
        note = self.folder / "work.json"
        before = json.loads(note.read_text()) if note.exists() else {}
        if before.get("inputs") != self.inputs:
            shutil.rmtree(self.folder, ignore_errors=True)
            before = {}
        # A resumed job keeps its number of parts, even if the cluster has changed.
        wanted = parts or before.get("parts") or max(1, _slots(cpus) * _PARTS_PER_CPU)
        self.count = int(wanted)
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(note, json.dumps({"inputs": self.inputs, "parts": self.count}).encode())

    def part(self, index: int) -> Path:
        return self.folder / f"part-{index}-of-{self.count}.shard.zst"

    def run(self, remote: Remote, *arguments: Any) -> list[str]:
        """Computes the missing parts; returns the paths of all of them."""
        indices = range(1, self.count + 1)
        todo = [index for index in indices if not _ruleguider.is_whole(os.fspath(self.part(index)))]

        def submit(index: int) -> Any:
            task = _remote(remote, self.cpus, self.gpus, self.retries)
            return task.remote(f"{index}/{self.count}", self.cpus, *arguments)

        def keep(index: int, rows: Any) -> None:
            _write(self.part(index), memoryview(rows))

        said = lambda index: f"part {index}/{self.count}"  # noqa: E731
        _gather(self.stage, "parts", todo, self.count, submit, keep, said, self.cpus, self.progress)
        return [os.fspath(self.part(index)) for index in indices]

    def merged(self, remote: Remote, *arguments: Any) -> str:
        """Computes the missing parts, merges all and removes them; returns the summary as JSON."""
        said = _ruleguider.merge(self.run(remote, *arguments), self.out)
        shutil.rmtree(self.folder, ignore_errors=True)
        return said


def _gather(
    stage: str,
    unit: str,
    todo: Iterable[Any],
    total: int,
    submit: Callable[[Any], Any],
    keep: Callable[[Any, Any], None],
    said: Callable[[Any], str],
    cpus: int,
    progress: bool,
) -> None:
    """Runs all tasks, as many at a time as there is room for, and keeps each result as it arrives."""
    waiting = list(todo)
    done, nodes, pending = total - len(waiting), set[str](), dict[Any, Any]()
    with shown(progress) as bars:
        if bars is not None:
            bars.begin(stage, unit, total)
            bars.advance(done, "")
        try:
            while waiting or pending:
                # Nodes may join and leave, so the capacity is checked every time.
                while waiting and len(pending) < 2 * _slots(cpus):
                    item = waiting.pop(0)
                    pending[submit(item)] = item
                ready, _ = ray.wait(list(pending), timeout=1.0)
                for reference in ready:
                    item = pending.pop(reference)
                    node, rows = _outcome(reference, said(item))
                    keep(item, rows)
                    done += 1
                    nodes.add(node)
                    if bars is not None:
                        bars.advance(done, f"{len(nodes)} nodes")
        except BaseException:
            for reference in pending:
                ray.cancel(reference)
            raise
        if bars is not None:
            bars.end(f"{total} {unit}")


def _outcome(reference: Any, what: str) -> tuple[str, Any]:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise PartFailed(f"{what} failed on {error.cause}") from error
    except ray.exceptions.RayError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        said = " ".join(lines) or type(error).__name__
        raise PartFailed(f"{what} failed repeatedly, because its worker or node died: {said}") from error


def _remote(function: Any, cpus: int, gpus: float, retries: int) -> Any:
    """A task that is retried if its worker or node dies, but not if it raises an exception."""

    def told(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            place = f"node {ray.util.get_node_ip_address()} (process {os.getpid()})"
            raise _Told(f"{place}: {error}") from None

    return ray.remote(told).options(num_cpus=cpus, num_gpus=gpus, max_retries=retries, retry_exceptions=False)


def _slots(cpus: int) -> int:
    """How many tasks with `cpus` processors each fit into the cluster at a time."""
    if not ray.is_initialized():
        ray.init()
    return max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus)


class _Told(Exception):
    """An error in a worker, with the node and process."""


class _Packed:
    """The data that all workers read: bytes, and the checksum of their content."""

    def __init__(self, data: bytes, key: str) -> None:
        self.data, self.key = data, key

    @staticmethod
    def graph(graph: Graph) -> _Packed:
        data = graph._graph.pack()
        return _Packed(data, hashlib.sha256(data).hexdigest())

    @staticmethod
    def run(model: Model | PathName) -> _Packed:
        """The files of a run, its data among them: other nodes need not have any."""
        run = model.path if isinstance(model, Model) else Path(model)
        packed, sums = io.BytesIO(), []
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(path for path in run.rglob("*") if path.is_file()):
                name = str(path.relative_to(run))
                if not name.startswith(_LEFT_OUT) and not name.startswith("."):
                    content = path.read_bytes()
                    sums.append((name, hashlib.sha256(content).hexdigest()))
                    _add(archive, name, content)
        return _Packed(packed.getvalue(), _sum(sums))

    def put(self) -> tuple[str, list[Any]]:
        # As an array, which workers of a node read in place. Ray does not resolve a reference inside a list.
        return self.key, [ray.put(numpy.frombuffer(self.data, dtype=numpy.uint8))]


def _sum(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=plain).encode()).hexdigest()


def _write(path: Path, data: bytes | memoryview) -> None:
    """Writes a file atomically, by renaming a temporary one."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _untar(data: memoryview | bytes, folder: Path) -> None:
    """Unpacks files into a folder, which appears only once it is complete. One that is there stays: somebody may be reading it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive.getmembers():
            path = aside / entry.name
            content = archive.extractfile(entry)
            if content is None or ".." in Path(entry.name).parts or path.is_absolute() != aside.is_absolute():
                raise ValueError(f"{entry.name}: not a file of a run")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    try:
        aside.rename(folder)
    except OSError:
        # Another worker of this node was faster.
        shutil.rmtree(aside, ignore_errors=True)
        if not folder.exists():
            raise


def _is_learnt(run: Path, key: str) -> bool:
    try:
        return (run / "sweep.json").read_text() == key and (run / "results.json").exists()
    except OSError:
        return False


# ---- the workers ---------------------------------------------------------------------------------------------------

# What this process has opened, by its checksum: it computes one part after another.
_opened: dict[str, Any] = {}


def _once(shared: tuple[str, list[Any]], opening: Callable[[str, Any], Any]) -> Any:
    key, [reference] = shared
    if key not in _opened:
        _opened.clear()
        _opened[key] = opening(key, ray.get(reference))
    return _opened[key]


def _graph(shared: tuple[str, list[Any]]) -> _ruleguider.Graph:
    return _once(shared, lambda _, data: _ruleguider.Graph.unpack("graph", data.tobytes()))


def _mapped(shared: tuple[str, list[Any]]) -> _ruleguider.Graph:
    def opening(key: str, data: Any) -> _ruleguider.Graph:
        # One file per node, which all its workers map, so that none has its own copy of the graph.
        file = _on_this_node(f"{key}.rg")
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            _write(file, memoryview(data))
        return _ruleguider.Graph.read(os.fspath(file), None, 0, _reading(), None)

    return _once(shared, opening)


def _on_this_node(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"ruleguider-{os.getuid()}" / name


def _model(shared: tuple[str, list[Any]], cuda: bool, cpus: int) -> _ruleguider.Model:
    def opening(key: str, data: Any) -> _ruleguider.Model:
        run = _on_this_node(key)
        if not run.exists():
            _untar(memoryview(data), run)
        return _ruleguider.Model.open(os.fspath(run), "cuda" if cuda else "cpu", cpus, None)

    return _once(shared, opening)


def _part(cpus: int, make: Callable[[str], object]) -> tuple[str, Any]:
    """The node, and the rows of the part that `make` writes."""
    # Must be set before the first job of this process: as many threads as the part has processors.
    os.environ.setdefault("RAYON_NUM_THREADS", str(cpus))
    with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
        out = Path(folder) / "part.shard.zst"
        make(os.fspath(out))
        return _here(), numpy.frombuffer(out.read_bytes(), dtype=numpy.uint8)


def _here() -> str:
    return str(ray.get_runtime_context().get_node_id())


def _mine_part(shard: str, cpus: int, shared: Any, options: dict[str, Any]) -> tuple[str, Any]:
    return _part(cpus, lambda out: _ruleguider.mine_shard(_mapped(shared), options, shard, out, None))


def _complete_part(
    shard: str,
    cpus: int,
    shared: Any,
    cuda: bool,
    relations: list[str],
    top: int | None,
    least: float | None,
    held_out: str,
    wanted: _ruleguider._Wanted,
) -> tuple[str, Any]:
    asked = (relations, top, least, held_out, wanted)
    return _part(cpus, lambda out: _model(shared, cuda, cpus).complete_shard(*asked, shard, out))


def _evaluate_part(
    shard: str, cpus: int, shared: Any, cuda: bool, split: str, direction: str | None, ties: str, unseen: bool, whole: bool
) -> tuple[str, Any]:
    asked = (split, direction, ties, unseen, whole)
    return _part(cpus, lambda out: _model(shared, cuda, cpus).evaluate_shard(*asked, shard, out))


def _predict_part(
    shard: str, cpus: int, shared: Any, cuda: bool, queries: bytes, top: int, wanted: _ruleguider._Wanted
) -> tuple[str, Any]:
    def make(out: str) -> None:
        file = Path(out).with_name("queries.tsv")
        file.write_bytes(queries)
        _model(shared, cuda, cpus).predict_shard(os.fspath(file), top, wanted, shard, out)

    return _part(cpus, make)


def _learn_run(
    shared: Any, config: Any, seed: int, minutes: float | None, cpus: int, cuda: bool
) -> tuple[str, Any]:
    os.environ.setdefault("RAYON_NUM_THREADS", str(cpus))
    with tempfile.TemporaryDirectory(prefix="ruleguider-") as folder:
        run = Path(folder) / "run"
        learn(
            Graph._wrap(_graph(shared)),
            minutes=minutes,
            out=run,
            seed=seed,
            config=config,
            device="cuda" if cuda else "cpu",
            threads=cpus,
            progress=False,
        )
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(run.rglob("*")):
                name = str(path.relative_to(run))
                if path.is_file() and not name.startswith("."):
                    _add(archive, name, path.read_bytes())
        return _here(), numpy.frombuffer(packed.getvalue(), dtype=numpy.uint8)


def _train_trial(command: list[str]) -> tuple[str, Any]:
    return _here(), _run_command(command)


def _run_command(arguments: list[str]) -> str:
    """What the command prints, in a process of its own: it may be killed with its trial."""
    done = subprocess.run([sys.executable, "-m", "ruleguider", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _ruleguider.Error(done.stderr.strip().removeprefix("ruleguider: ") or f"exit code {done.returncode}")
    return done.stdout
