"""The program under attack, and what attacks begin from: data sets, runs, parts of jobs, each made when it is first named."""

import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

# How long a command may take on a machine that does much else.
PATIENCE_S = 300


class Failure(Exception):
    """Something that must hold does not."""


class Chaos:
    """The program, a folder with material, and the random numbers of the current attack."""

    def __init__(self, tool: Path, folder: Path) -> None:
        self.tool, self.folder, self.random = tool, folder, random.Random(0)
        self.made: set[str] = set()
        self.known: dict[str, tuple[float, dict[str, bytes]]] = {}
        self.answers: dict[tuple[str, ...], tuple[int, bytes]] = {}

    def need(self, *names: str) -> None:
        """Makes material that is not there yet, with what it is made of."""
        for name in names:
            if name not in MATERIAL or name in self.made:
                continue
            self.made.add(name)
            making = MATERIAL[name]
            if callable(making):
                making(self)
            else:
                self.done(*making)

    def spawn(self, *arguments: str, limit: str = "", environment: dict[str, str] | None = None) -> subprocess.Popen:
        self.need(*arguments)
        command = [str(self.tool), *arguments]
        if limit:
            command = ["bash", "-c", f'{limit}; exec "$0" "$@"', *command]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, env=environment, **pipes)

    def ended(self, child: subprocess.Popen) -> tuple[int, bytes, str]:
        """Waits for the end of a process: its exit code and what it wrote."""
        try:
            out, err = child.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Failure(f"{child.args[1:]}: did not end within {PATIENCE_S} s") from None
        return child.returncode, out, err.decode(errors="replace")

    def run(self, *arguments: str, limit: str = "", ends: tuple[int, ...] = (0, 1, 2)) -> tuple[int, bytes]:
        """Exit code and output; a panic, a signal or a refusal without a sentence is a failure."""
        code, out, said = self.ended(self.spawn(*arguments, limit=limit))
        if code not in ends or "panicked" in said:
            raise Failure(f"{arguments}: exit code {code}: {said[-400:]}")
        if code == 2 and not said.strip():
            raise Failure(f"{arguments}: refused without a word")
        return code, out

    def done(self, *arguments: str) -> bytes:
        return self.run(*arguments, ends=(0,))[1]

    def answer(self, *arguments: str) -> tuple[int, bytes]:
        """What a reader says to undamaged files; it is asked once."""
        if arguments not in self.answers:
            self.answers[arguments] = self.run(*arguments)
        return self.answers[arguments]

    def kill_within(self, seconds: float, *arguments: str) -> None:
        """Starts the program and kills it at a random moment."""
        child = self.spawn(*arguments)
        try:
            # Most of what can go wrong goes wrong late, while results are written.
            child.communicate(timeout=seconds * self.random.random() ** 0.5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()

    def damaged(self, whole: bytes) -> bytes:
        """The same with a flipped bit, or cut off."""
        if self.random.random() < 0.3:
            return whole[: self.random.randrange(len(whole))]
        flipped = bytearray(whole)
        flipped[self.random.randrange(len(flipped))] ^= 1 << self.random.randrange(8)
        return bytes(flipped)

    def undisturbed(self, name: str) -> tuple[float, dict[str, bytes]]:
        """How long a writer takes if nothing happens to it, and what it writes; seen when it is first asked for."""
        if name not in self.known:
            arguments, result = WRITERS[name]
            self.need(*arguments)
            self.clear(result)
            began = time.monotonic()
            self.done(*arguments)
            self.known[name] = (time.monotonic() - began, self.contents(result))
        return self.known[name]

    def whole(self, name: str) -> dict[str, bytes]:
        return self.undisturbed(name)[1]

    def clear(self, result: str) -> None:
        for path in (self.folder / f"{result}{ending}" for ending in ("", ".blocks", ".training")):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def contents(self, result: str) -> dict[str, bytes]:
        """The visible files of a result, without those that tell times and places."""
        place = self.folder / result
        if place.is_file():
            return {"": place.read_bytes()}
        files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else []
        kept = {str(path.relative_to(place)): path for path in files}
        return {name: path.read_bytes() for name, path in kept.items() if not name.startswith(".") and Path(name).name not in UNSTABLE}


class Server:
    """`serve`, which is killed at the end of a `with`; a panic is a failure then."""

    def __init__(self, chaos: Chaos, *arguments: str) -> None:
        self.process = chaos.spawn("serve", *arguments, "--bind", "127.0.0.1:0")
        self.said = ""
        # One that says nothing for so long is ended, and then has no port.
        watch = threading.Timer(PATIENCE_S, self.process.kill)
        watch.start()
        self.line = self.process.stdout.readline().decode()
        watch.cancel()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.said += self.process.communicate()[1].decode(errors="replace")
        if "panicked" in self.said:
            raise Failure(f"serve: {self.said[-300:]}")

    @property
    def port(self) -> int:
        """Where it listens; it is a failure if it does not."""
        if not self.line:
            self.process.kill()
            self.said = self.process.communicate()[1].decode(errors="replace")
            raise Failure(f"serve does not start: {self.said[-300:]}")
        return int(self.line.strip().rstrip("/").rsplit(":", 1)[1])


def train_of(folder: str, name: str) -> Callable[[Chaos], None]:
    """The training split of a data set as one file."""

    def copied(chaos: Chaos) -> None:
        chaos.need(folder)
        shutil.copy(chaos.folder / folder / "train.tsv", chaos.folder / name)

    return copied


def queries(chaos: Chaos) -> None:
    chaos.need("set1")
    heads = [line.split("\t")[0] for line in (chaos.folder / "set1/test.tsv").read_text().splitlines()]
    (chaos.folder / "queries.tsv").write_text("".join(f"{head}\tuncle_of\n" for head in heads[:40]))


def facts(chaos: Chaos) -> None:
    chaos.need("set1")
    lines = (chaos.folder / "set1/test.tsv").read_text().splitlines(keepends=True)
    (chaos.folder / "facts.tsv").write_text("".join(lines[:40]))


def newer(chaos: Chaos) -> None:
    """A newer version of the first data set, to learn from again."""
    chaos.need("set1", "set2")
    (chaos.folder / "new").mkdir()
    for name in ("train.tsv", "valid.tsv", "test.tsv"):
        shutil.copy(chaos.folder / "set1" / name, chaos.folder / "new")
    with (chaos.folder / "new/train.tsv").open("a") as train:
        train.writelines((chaos.folder / "set2/train.tsv").read_text().splitlines(keepends=True)[:30])


def unsealed(chaos: Chaos) -> None:
    """The first data set, with labels, without its checksums."""
    chaos.need("set1")
    shutil.copytree(chaos.folder / "set1", chaos.folder / "unsealed", ignore=lambda *_: ["splits.sha256"])


def weights(chaos: Chaos) -> None:
    """Weights of a universal propagator."""
    chaos.done("run", "small.tsv", "--instant", *settings("rules.samples=2000"), "--out", "instant", "--quiet")
    shutil.copy(chaos.folder / "instant/universal.safetensors", chaos.folder / "w.safetensors")


def written(name: str, text: str) -> Callable[[Chaos], None]:
    return lambda chaos: (chaos.folder / name).write_text(text) and None


def family(people: int, seed: int, out: str) -> list[str]:
    return ["generate", "family", "--people", str(people), "--seed", str(seed), "--out", out, "--quiet"]


def settings(*given: str) -> list[str]:
    return [part for one in given for part in ("--set", one)]


# Jobs that are divided into parts.
JOBS = {
    "rules": ["mine", "set1", "--samples", "20000"],
    "answers": ["predict", "run", "--file", "queries.tsv"],
    "scores": ["score", "run", "--file", "facts.tsv"],
    "ranks": ["evaluate", "run"],
    "missing": ["complete", "run", "--top", "200"],
}


def part(job: str, number: int, out: str) -> list[str]:
    return [*JOBS[job], "--shard", f"{number}/2", "--out", out, "--quiet"]


PRETRAIN = """
minutes = 0.01
warm_up = 3
rank_every = 0.0
[network]
width = 8
layers = 2
relation_layers = 2
[[train]]
path = "set1"
share = 1.0
batch = 8
"""
EMBEDDING = settings("embed.dimension=8", "embed.evaluate_every=1")
SEARCH = ["sweep", "set1", "complex", "--space", "space.toml", "--trials", "2", *settings("embed.epochs=3"), *EMBEDDING]
RULES = settings("system=rules", "rules.samples=20000")
BLEND = settings("system=blend", "rules.samples=2000", "embed.epochs=2", "propagate.epochs=1", "propagate.width=8", "propagate.epoch_queries=50")

# By the name under which it stands in the folder. An argument of a command that has such a name is made before the command.
MATERIAL: dict[str, list[str] | Callable[[Chaos], None]] = {
    "set1": family(120, 1, "set1"),
    "set2": family(120, 2, "set2"),
    "large": family(700, 1, "large"),
    "small": family(60, 1, "small"),
    "one.tsv": train_of("set1", "one.tsv"),
    "small.tsv": train_of("small", "small.tsv"),
    "queries.tsv": queries,
    "facts.tsv": facts,
    "new": newer,
    "unsealed": unsealed,
    "pretrain.toml": written("pretrain.toml", PRETRAIN),
    "space.toml": written("space.toml", "[embed]\nbatch = [16, 64]\n"),
    "run": ["run", "set1", *RULES, "--out", "run", "--quiet"],
    "other": ["run", "set1", *settings("system=rules", "rules.max_length=2", "rules.samples=2000"), "--out", "other", "--quiet"],
    "blend": ["run", "small", *BLEND, *EMBEDDING, "--out", "blend", "--quiet"],
    # Large enough that its completion has several blocks.
    "large-run": ["run", "large", *settings("system=rules", "rules.samples=500"), "--out", "large-run", "--quiet"],
    "mined.tsv": ["mine", "set1", "--samples", "20000", "--out", "mined.tsv", "--quiet"],
    "study.db": ["judge", "prepare", "run", "other", "--triples", "10", "--out", "study.db", "--quiet"],
    "w.safetensors": weights,
    "one.rg": ["convert", "set1", "one.rg", "--quiet"],
    "answers.jsonl": ["merge", "answers-1.shard", "answers-2.shard", "--out", "answers.jsonl", "--quiet"],
    "sweep": [*SEARCH, "--out", "sweep", "--quiet"],
    **{f"{job}-{number}.shard": part(job, number, f"{job}-{number}.shard") for job in JOBS for number in (1, 2)},
}

# Files of a run that hold times, or are written for people only.
UNSTABLE = {"results.json", "stages.json", "run.json", "metrics.jsonl", "report.html", "lock"}
UNSTABLE |= {"sweep.html", "trial.json", "trials.json"}

# Everything that writes: the command, and where its result is.
WRITERS = {
    "generate": (["generate", "family", "--people", "300", "--out", "g", "--force", "--quiet"], "g"),
    "convert folder": (["convert", "set2", "c", "--force", "--to", "csv", "--quiet"], "c"),
    "convert file": (["convert", "one.tsv", "one.parquet", "--force", "--quiet"], "one.parquet"),
    "data file": (["convert", "set2", "two.rg", "--force", "--quiet"], "two.rg"),
    "run": (["run", "set1", *RULES, "--out", "r", "--quiet"], "r"),
    "instant": (["run", "one.tsv", "--instant", *settings("rules.samples=2000"), "--out", "i", "--quiet"], "i"),
    "learn all": (["run", "set1", "--learn-all", *settings("system=rules", "rules.samples=2000"), "--out", "l", "--quiet"], "l"),
    "update": (["run", "new", "--update", "run", "--out", "u", "--quiet"], "u"),
    "train": (["run", "set1", *settings("system=embedding", "embed.epochs=200"), *EMBEDDING, "--out", "t", "--quiet"], "t"),
    "embed": (["embed", "set1", *settings("dimension=8", "epochs=100"), "--out", "e.safetensors", "--quiet"], "e.safetensors"),
    "mine": (["mine", "set1", "--samples", "20000", "--out", "rules.tsv", "--quiet"], "rules.tsv"),
    "apply": (["apply", "set1", "--rules", "mined.tsv", "--predictions", "a.txt", "--quiet"], "a.txt"),
    "complete": (["complete", "large-run", "--top", "200", "--out", "m.jsonl", "--quiet"], "m.jsonl"),
    "score": (["score", "run", "--file", "facts.tsv", "--out", "s.tsv"], "s.tsv"),
    "explain": (["explain", "run", "--file", "facts.tsv", "--out", "x.tsv", "--quiet"], "x.tsv"),
    "doubt": (["doubt", "run", "--top", "20", "--out", "d.tsv", "--quiet"], "d.tsv"),
    "export": (["export", "answers.jsonl", "--to", "kgx", "--out", "x", "--quiet"], "x"),
    "report": (["report", "run", "other", "--out", "page", "--quiet"], "page"),
    "judge prepare": (["judge", "prepare", "run", "other", "--triples", "10", "--out", "j.db", "--quiet"], "j.db"),
    "merge": (["merge", "rules-1.shard", "rules-2.shard", "--out", "merged.tsv", "--quiet"], "merged.tsv"),
    "sweep": ([*SEARCH, "--out", "w", "--quiet"], "w"),
    "pretrain": (["pretrain", "pretrain.toml", "--data", ".", "--out", "u.safetensors", "--quiet"], "u.safetensors"),
    **{f"part of {job}": (part(job, 1, f"{job}.shard"), f"{job}.shard") for job in JOBS},
}

# What has minutes instead of steps, a secret of its own, or tells how long it took, is another file each time; it has to be
# readable by this.
PROBES = {
    "pretrain": ["pretrain", "pretrain.toml", "--data", ".", "--weights", "u.safetensors", "--minutes", "0"],
    "judge prepare": ["judge", "report", "j.db"],
    "embed": ["embed", "set1", "--weights", "e.safetensors", "--quiet"],
    "part of ranks": ["merge", "ranks.shard", "ranks-2.shard", "--out", "merged.tsv", "--quiet"],
}

# What reads a run, and has to notice that it was changed.
READERS = {
    "run": [
        ["predict", "run", "--file", "queries.tsv", "--top", "5", "--quiet"],
        ["score", "run", "--file", "facts.tsv"],
        ["report", "run", "--out", "page"],
    ],
    "blend": [["evaluate", "blend", "--queries", "20", "--json", "--quiet"], ["report", "blend", "--out", "page"]],
}
