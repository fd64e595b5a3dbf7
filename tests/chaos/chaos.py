#!/usr/bin/env python3
"""Breaks RuleGuider on purpose: kills, bit flips, races, limits and HTTP attacks, drawn from a seed.

    tests/chaos/chaos.py --tool target/debug/ruleguider --seconds 300 --seed 1

Every attack states what must hold afterwards. The program may refuse with one line and exit code 2; it may not panic, be
ended by a signal it did not get, or give another result with exit code 0. A failure prints the attack, its number and the
seed: `--from NUMBER --attacks 1` with the same seed repeats it. Exit code 1 if anything failed.
"""

import argparse
import http.client
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import http_attacks


class Failure(Exception):
    """Something that must hold does not."""


class Chaos:
    """The program, a folder with material made once, and the random numbers of the current attack."""

    def __init__(self, tool: Path, folder: Path) -> None:
        self.tool, self.folder, self.random = tool, folder, random.Random(0)

    def spawn(self, *arguments: str, limit: str = "", cwd: Path | None = None) -> subprocess.Popen:
        command = [str(self.tool), *arguments]
        if limit:
            command = ["bash", "-c", f'{limit}; exec "$0" "$@"', *command]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=cwd or self.folder, **pipes)

    def run(self, *arguments: str, limit: str = "", ends: tuple[int, ...] = (0, 1, 2)) -> tuple[int, bytes]:
        """Exit code and output; a panic, a signal or a refusal without a sentence is a failure."""
        child = self.spawn(*arguments, limit=limit)
        try:
            out, err = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise Failure(f"{arguments}: did not end") from None
        said = err.decode(errors="replace")
        if child.returncode not in ends or "panicked" in said:
            raise Failure(f"{arguments}: exit code {child.returncode}: {said[-400:]}")
        if child.returncode == 2 and not said.strip():
            raise Failure(f"{arguments}: refused without a word")
        return child.returncode, out

    def done(self, *arguments: str) -> bytes:
        return self.run(*arguments, ends=(0,))[1]

    def kill_within(self, seconds: float, *arguments: str) -> None:
        """Starts the program and kills it at a random moment."""
        child = self.spawn(*arguments)
        try:
            # Most of what can go wrong goes wrong late, while results are written.
            child.communicate(timeout=seconds * self.random.random() ** 0.5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()

    def prepare(self) -> None:
        """What attacks begin from: two data sets, a run, and what undisturbed work gives."""
        for seed in ("1", "2"):
            self.done("generate", "family", "--people", "120", "--seed", seed, "--out", f"set{seed}", "--quiet")
        (self.folder / "one.tsv").write_bytes((self.folder / "set1/train.tsv").read_bytes())
        self.done("run", "set1", "--set", "system=rules", "--set", "rules.samples=20000", "--out", "run", "--quiet")
        heads = [line.split("\t")[0] for line in (self.folder / "set1/test.tsv").read_text().splitlines()]
        (self.folder / "queries.tsv").write_text("".join(f"{head}\tuncle_of\n" for head in heads[:40]))
        self.done("run", "set1", "--set", "system=rules", "--set", "rules.max_length=2", "--set", "rules.samples=2000", "--out", "other", "--quiet")
        self.done("judge", "prepare", "run", "other", "--triples", "10", "--out", "study.db", "--quiet")
        facts = (self.folder / "set1/test.tsv").read_text().splitlines(keepends=True)
        (self.folder / "facts.tsv").write_text("".join(facts[:40]))
        (self.folder / "pretrain.toml").write_text(PRETRAIN)
        # The parts of three jobs, and answers to export; a newer version of the data, to learn from again.
        for job, arguments in JOBS.items():
            for part in ("1", "2"):
                self.done(*arguments, "--shard", f"{part}/2", "--out", f"{job}-{part}.shard", "--quiet")
        self.done("merge", "answers-1.shard", "answers-2.shard", "--out", "answers.jsonl", "--quiet")
        (self.folder / "new").mkdir()
        for name in ("train.tsv", "valid.tsv", "test.tsv"):
            shutil.copy(self.folder / "set1" / name, self.folder / "new")
        with (self.folder / "new/train.tsv").open("a") as train:
            train.writelines((self.folder / "set2/train.tsv").read_text().splitlines(keepends=True)[:30])
        # Large enough that its completion has several blocks.
        self.done("generate", "family", "--people", "700", "--out", "large", "--quiet")
        self.done("run", "large", "--set", "system=rules", "--set", "rules.samples=500", "--out", "large-run", "--quiet")
        (self.folder / "space.toml").write_text("[embed]\nbatch = [16, 64]\n")
        # Weights of a universal propagator, and a data file that is asked without a run.
        self.done("run", "one.tsv", "--instant", "--out", "instant", "--quiet")
        shutil.copy(self.folder / "instant/universal.safetensors", self.folder / "w.safetensors")
        self.done("convert", "set1", "one.rg", "--quiet")
        head = heads[0]
        self.asked = {
            "one.rg": ["ask", "one.rg", head, "uncle_of", "--json"],
            "w.safetensors": ["run", "one.tsv", "--set", "system=universal", "--set", WEIGHTS, "--out", "by-weights", "--quiet"],
        }
        self.files = {name: (self.run(*reader)[1], (self.folder / name).read_bytes()) for name, reader in self.asked.items()}
        self.known = {}
        self.answers = [self.run(*reader) for reader in READERS]

    def undisturbed(self, name: str) -> tuple[float, dict[str, bytes]]:
        """How long a writer takes if nothing happens to it, and what it writes; seen when it is first asked for."""
        if name not in self.known:
            arguments, result = WRITERS[name]
            self.clear(result)
            began = time.monotonic()
            self.done(*arguments)
            self.known[name] = (time.monotonic() - began, self.contents(result))
        return self.known[name]

    def whole(self, name: str) -> dict[str, bytes]:
        return self.undisturbed(name)[1]

    def clear(self, result: str) -> None:
        for path in (self.folder / result, self.folder / f"{result}.blocks"):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def clear_live(self) -> None:
        for path in self.folder.glob("live.db*"):
            path.unlink()

    def contents(self, result: str) -> dict[str, bytes]:
        """The visible files of a result, without those that tell times and places."""
        place = self.folder / result
        if place.is_file():
            return {"": place.read_bytes()}
        files = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else []
        kept = {str(path.relative_to(place)): path for path in files}
        return {name: path.read_bytes() for name, path in kept.items() if not name.startswith(".") and Path(name).name not in UNSTABLE}


# Files of a run that hold times, or are written for people only.
UNSTABLE = {"results.json", "stages.json", "run.json", "metrics.jsonl", "report.html", "lock"}
UNSTABLE |= {"sweep.html", "trial.json", "trials.json"}

EMBEDDING = ["--set", "embed.dimension=8", "--set", "embed.evaluate_every=1"]
SEARCH = ["sweep", "set1", "complex", "--space", "space.toml", "--trials", "2", "--set", "embed.epochs=3", *EMBEDDING]
TRAINING = ["run", "set1", "--set", "system=embedding", "--set", "embed.epochs=200", *EMBEDDING]
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

# Jobs that are divided into parts.
JOBS = {
    "rules": ["mine", "set1", "--samples", "20000"],
    "answers": ["predict", "run", "--file", "queries.tsv"],
    "scores": ["score", "run", "--file", "facts.tsv"],
}
MERGE = ["merge", "rules-1.shard", "rules-2.shard", "--out", "merged.tsv", "--quiet"]

# Everything that writes: the command, and where its result is.
WRITERS = {
    "generate": (["generate", "family", "--people", "300", "--out", "g", "--force", "--quiet"], "g"),
    "convert folder": (["convert", "set2", "c", "--force", "--to", "csv", "--quiet"], "c"),
    "convert file": (["convert", "one.tsv", "one.parquet", "--force", "--quiet"], "one.parquet"),
    "run": (["run", "set1", "--set", "system=rules", "--set", "rules.samples=20000", "--out", "r", "--quiet"], "r"),
    "complete": (["complete", "large-run", "--top", "200", "--out", "m.jsonl", "--quiet"], "m.jsonl"),
    "mine": (["mine", "set1", "--samples", "20000", "--out", "rules.tsv", "--quiet"], "rules.tsv"),
    "instant": (["run", "one.tsv", "--instant", "--set", "rules.samples=2000", "--out", "i", "--quiet"], "i"),
    "data file": (["convert", "set2", "two.rg", "--force", "--quiet"], "two.rg"),
    "shard": ([*JOBS["rules"], "--shard", "1/2", "--out", "1.shard", "--quiet"], "1.shard"),
    "predict": ([*JOBS["answers"], "--shard", "1/2", "--out", "p.shard", "--quiet"], "p.shard"),
    "merge": (MERGE, "merged.tsv"),
    "score": (["score", "run", "--file", "facts.tsv", "--out", "s.tsv"], "s.tsv"),
    "doubt": (["doubt", "run", "--top", "20", "--out", "d.tsv", "--quiet"], "d.tsv"),
    "export": (["export", "answers.jsonl", "--to", "kgx", "--out", "x", "--quiet"], "x"),
    "update": (["run", "new", "--update", "run", "--out", "u", "--quiet"], "u"),
    "train": ([*TRAINING, "--out", "t", "--quiet"], "t"),
    "sweep": ([*SEARCH, "--out", "w", "--quiet"], "w"),
    "pretrain": (["pretrain", "pretrain.toml", "--data", ".", "--out", "u.safetensors", "--quiet"], "u.safetensors"),
}

# What has minutes, not steps, gives another result each time; it has to be readable by this.
TIMED = {"pretrain": ["pretrain", "pretrain.toml", "--data", ".", "--weights", "u.safetensors", "--minutes", "0"]}

WEIGHTS = "members.universal.weights='w.safetensors'"

# What reads a run, a part or a study, and has to notice that it was changed.
READERS = [
    ["predict", "run", "--file", "queries.tsv", "--top", "5", "--quiet"],
    ["score", "run", "--file", "facts.tsv"],
    ["report", "run", "--out", "page"],
]


def kill(chaos: Chaos) -> str:
    """A writer that is killed a few times and then left alone gives what an undisturbed one gives."""
    name = chaos.random.choice(sorted(WRITERS))
    arguments, result = WRITERS[name]
    seconds, whole = chaos.undisturbed(name)
    chaos.clear(result)
    if name == "convert folder":
        # Over another data set: never a mixture of both.
        shutil.copytree(chaos.folder / "set1", chaos.folder / "c")
    for _ in range(chaos.random.randint(1, 3)):
        chaos.kill_within(1.2 * seconds, *arguments)
        if name in ("convert folder", "generate"):
            check_folder(chaos, result, name)
        if name in TIMED and (chaos.folder / result).exists():
            chaos.done(*TIMED[name])
    chaos.done(*arguments)
    if name in TIMED:
        chaos.done(*TIMED[name])
        whole = chaos.contents(result)
    if name == "convert folder":
        whole = whole | {"planted_rules.tsv": (chaos.folder / "set1/planted_rules.tsv").read_bytes()}
    if chaos.contents(result) != whole:
        raise Failure(f"{name}: another result after kills")
    left = [path.name for path in chaos.folder.glob(f".{result}.*.partial")]
    if left:
        raise Failure(f"{name}: left behind: {left}")
    return name


def check_folder(chaos: Chaos, result: str, name: str) -> None:
    """A folder of a data set is the old one, the new one, or refused."""
    folder = chaos.folder / result
    if not folder.is_dir() or chaos.run("stats", result, "--quiet")[0] == 2:
        return
    splits = {path.name: path.read_bytes() for path in folder.iterdir() if path.name.split(".")[0] in ("train", "valid", "test")}
    old = {path.name: path.read_bytes() for path in (chaos.folder / "set1").iterdir() if path.name in splits}
    new = {key: value for key, value in chaos.whole(name).items() if key.split(".")[0] in ("train", "valid", "test")}
    if splits not in (old, new):
        raise Failure(f"{name}: a mixture of data sets is accepted: {sorted(splits)}")


def flip(chaos: Chaos) -> str:
    """A bit of a file of a run is flipped: the same answers, or a refusal."""
    files = sorted(path for path in (chaos.folder / "run").rglob("*") if path.is_file() and path.stat().st_size)
    path = chaos.random.choice(files)
    before = path.read_bytes()
    damaged = bytearray(before)
    damaged[chaos.random.randrange(len(damaged))] ^= 1 << chaos.random.randrange(8)
    path.write_bytes(damaged)
    try:
        for reader, answer in zip(READERS, chaos.answers, strict=True):
            if path.name in ("metrics.jsonl", "report.html"):
                chaos.run(*reader)  # For people only: must not stop anything from working.
            elif chaos.run(*reader) not in (answer,) and chaos.run(*reader)[0] != 2:
                raise Failure(f"{path.name}: a flipped bit changes `{' '.join(reader)}`")
    finally:
        path.write_bytes(before)
    return path.name


def damage_file(chaos: Chaos) -> str:
    """A data file with flipped bits is refused. Weights with flipped bits are other weights: refused, or used without a
    panic; cut-off ones are refused."""
    name = chaos.random.choice(sorted(chaos.asked))
    answer, whole = chaos.files[name]
    path, cut = chaos.folder / name, chaos.random.random() < 0.3
    damaged = bytearray(whole[: chaos.random.randrange(len(whole))] if cut else whole)
    for _ in range(0 if cut else chaos.random.choice([1, 1, 20])):
        damaged[chaos.random.randrange(len(damaged))] ^= 1 << chaos.random.randrange(8)
    path.write_bytes(damaged)
    shutil.rmtree(chaos.folder / "by-weights", ignore_errors=True)
    try:
        code, said = chaos.run(*chaos.asked[name])
    finally:
        path.write_bytes(whole)
    if code == 0 and said != answer and (cut or name == "one.rg"):
        raise Failure(f"{name}: damage changes the answers")
    if code == 0 and cut:
        raise Failure(f"{name}: is accepted though it was cut off")
    return name


def damaged(chaos: Chaos, whole: bytes) -> bytes:
    """The same with a flipped bit, or cut off."""
    if chaos.random.random() < 0.3:
        return whole[: chaos.random.randrange(len(whole))]
    flipped = bytearray(whole)
    flipped[chaos.random.randrange(len(flipped))] ^= 1 << chaos.random.randrange(8)
    return bytes(flipped)


def damage_part(chaos: Chaos) -> str:
    """A job's parts are merged, but not if one has a flipped bit, in its rows or its header, or is cut off."""
    job = chaos.random.choice(sorted(JOBS))
    parts = [f"{job}-1.shard", f"{job}-2.shard"]
    merge = ["merge", *parts, "--out", "merged.jsonl" if job == "answers" else "merged.tsv", "--quiet"]
    chaos.done(*merge)
    path = chaos.folder / chaos.random.choice(parts)
    whole = path.read_bytes()
    path.write_bytes(damaged(chaos, whole))
    try:
        if chaos.run(*merge)[0] == 0:
            raise Failure(f"{path.name}: a damaged part is merged")
    finally:
        path.write_bytes(whole)
    return job


def damage_checkpoint(chaos: Chaos) -> str:
    """A training that was interrupted and whose checkpoint was damaged gives the same run, or is refused."""
    arguments, result = WRITERS["train"]
    whole = chaos.whole("train")
    chaos.clear(result)
    child, begun = chaos.spawn(*arguments), chaos.folder / result / "metrics.jsonl"
    while child.poll() is None and not (begun.is_file() and begun.stat().st_size):
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    child.communicate()
    for checkpoint in (chaos.folder / result).glob("checkpoints/*/checkpoint.safetensors"):
        checkpoint.write_bytes(damaged(chaos, checkpoint.read_bytes()))
    if chaos.run(*arguments)[0] == 0 and chaos.contents(result) != whole:
        raise Failure("a damaged checkpoint changes what is learnt")
    return "checkpoint"


def damage_study(chaos: Chaos) -> str:
    """A study with flipped bits, or cut off, is reported or refused."""
    path = chaos.folder / "study.db"
    whole = path.read_bytes()
    path.write_bytes(damaged(chaos, whole))
    try:
        chaos.run("judge", "report", "study.db")
    finally:
        for left in chaos.folder.glob("study.db-*"):
            left.unlink()
        path.write_bytes(whole)
    return "study"


def damage_block(chaos: Chaos) -> str:
    """A completion that was killed and whose blocks were damaged gives the same file."""
    arguments, result = WRITERS["complete"]
    chaos.undisturbed("complete")
    chaos.clear(result)
    blocks, child = chaos.folder / f"{result}.blocks", chaos.spawn(*arguments)
    while child.poll() is None and not any(blocks.glob("block-*")):
        time.sleep(0.002)
    child.kill()
    child.communicate()
    for block in blocks.glob("block-*"):
        whole = bytearray(block.read_bytes())
        if whole and chaos.random.random() < 0.6:
            whole[chaos.random.randrange(len(whole))] ^= 1 << chaos.random.randrange(8)
        else:
            whole = whole[: chaos.random.choice([0, len(whole) // 2])]
        block.write_bytes(whole)
    chaos.done(*arguments)
    if chaos.contents(result) != chaos.whole("complete"):
        raise Failure("a damaged block changes what is completed")
    return "block"


def lose_record(chaos: Chaos) -> str:
    """A search that was killed before it wrote the record of a trial gives the same table."""
    search = [*SEARCH, "--out", "sweep", "--quiet"]
    table = chaos.folder / "sweep/trials.tsv"
    chaos.done(*search)
    before = table.read_bytes()
    records = sorted((chaos.folder / "sweep/trials").glob("*/trial.json"))
    chaos.random.choice(records).unlink()
    chaos.done(*search)
    if table.read_bytes() != before:
        raise Failure("a search that continues gives another table")
    return "record"


def race(chaos: Chaos) -> str:
    """Several writers at one place: one of them wins whole, the others say so."""
    name = chaos.random.choice(["generate", "convert folder", "complete"])
    arguments, result = WRITERS[name]
    alone = chaos.whole(name)
    chaos.clear(result)
    rivals = [arguments, list(arguments)]
    if name == "convert folder":
        rivals[1] = ["convert", "set1", "c", "--force", "--to", "tsv", "--quiet"]
    children = [chaos.spawn(*one) for one in rivals]
    ended = [(child.communicate(timeout=120), child.returncode) for child in children]
    for (_, err), code in ended:
        if code not in (0, 2) or (code == 2 and b"another process" not in err):
            raise Failure(f"{name}: {code}: {err.decode(errors='replace')[-300:]}")
    if all(code != 0 for _, code in ended):
        raise Failure(f"{name}: nobody won")
    left = chaos.contents(result)
    if name == "convert folder":
        chaos.done("convert", "set1", "c1", "--force", "--to", "tsv", "--quiet")
        whole = [alone, chaos.contents("c1")]
    else:
        whole = [alone]
    if left not in whole:
        raise Failure(f"{name}: a mixture is left: {sorted(left)}")
    return name


def limit(chaos: Chaos) -> str:
    """With too little of something, the program refuses in a sentence or works."""
    drawn = chaos.random.choice(
        [
            f"ulimit -v {chaos.random.randint(30_000, 400_000)}",
            f"ulimit -n {chaos.random.randint(4, 24)}",
            f"ulimit -s {chaos.random.choice([64, 128, 256])}",
            f"ulimit -f {chaos.random.randint(0, 60)}",
        ]
    )
    arguments, result = WRITERS[chaos.random.choice(sorted(WRITERS))]
    chaos.clear(result)
    # The shell itself may fail to start what has too little memory.
    chaos.run(*arguments, "--threads", "2", limit=drawn, ends=(0, 1, 2, 126, 127, 153))
    return drawn


def port_of(server: subprocess.Popen) -> int:
    """Where a server listens."""
    return int(server.stdout.readline().decode().strip().rstrip("/").rsplit(":", 1)[1])


def attack_server(chaos: Chaos) -> str:
    """Odd and hostile requests: the server answers others, and its memory does not grow. Half of the servers take facts."""
    arguments = ["serve", "run", "--bind", "127.0.0.1:0", "--in-flight-mb", "32", "--timeout-s", "5"]
    live = chaos.random.random() < 0.5
    chaos.clear_live()
    server = chaos.spawn(*arguments, *(["--live", "live.db"] if live else []))
    try:
        wrong = http_attacks.attack(port_of(server), server.pid, "run", chaos.random)
    finally:
        server.kill()
        said = server.communicate()[1].decode(errors="replace")
    if wrong or "panicked" in said:
        raise Failure(f"serve: {wrong or said[-300:]}")
    return "serve"


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    """A request to a server, and its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, f"/api/v1/run/{path}", body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def write_live(chaos: Chaos) -> list[dict]:
    """Writes requests to a server until it is killed at a random moment; the log of a next server has every request that
    was answered, whole, and no part of any other. Returns the log."""
    server = chaos.spawn("serve", "run", "--bind", "127.0.0.1:0", "--live", "live.db", "--quiet")
    answered, sent = [], []
    try:
        port, until = port_of(server), chaos.random.randint(3, 15)
        killer = threading.Timer(0.05 + 0.5 * chaos.random.random(), server.kill)
        for number in range(1000):
            if number == until:
                killer.start()
            facts = [{"subject": f"n{number}", "relation": "uncle_of", "object": f"m{at}"} for at in range(chaos.random.choice([1, 20]))]
            sent.append(len(facts))
            try:
                status, _ = ask(port, "POST", "live/facts", "\n".join(map(json.dumps, facts)))
            except (OSError, http.client.HTTPException):
                break
            if status != 200:
                raise Failure(f"live: status {status}")
            answered.append(len(facts))
    finally:
        server.kill()
        said = server.communicate()[1].decode(errors="replace")
    if "panicked" in said:
        raise Failure(f"live: {said[-300:]}")
    server = chaos.spawn("serve", "run", "--bind", "127.0.0.1:0", "--live", "live.db", "--quiet")
    try:
        port, log, after = port_of(server), [], 0
        while page := json.loads(ask(port, "GET", f"live/changes?limit=1000&after={after}")[1])["items"]:
            log, after = log + page, page[-1]["seq"]
    finally:
        server.kill()
        server.communicate()
    kept = len(log)
    if kept not in (sum(answered), sum(sent)):
        raise Failure(f"live: {kept} entries are left of {sum(answered)} that were answered and {sum(sent)} that were sent")
    return log


def kill_live(chaos: Chaos) -> str:
    """Kills under writes lose nothing that was answered, and keep no request in part."""
    chaos.clear_live()
    write_live(chaos)
    return "live"


def damage_live(chaos: Chaos) -> str:
    """A log with flipped bits, or cut off, is exported, served and learnt from, or refused."""
    path = chaos.folder / "live.db"
    chaos.clear_live()
    write_live(chaos)
    # All of it into the one file.
    log = sqlite3.connect(path)
    log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    path.write_bytes(damaged(chaos, path.read_bytes()))
    chaos.run("live", "export", "live.db", "--format", chaos.random.choice(["tsv", "jsonl", "rdf"]))
    server = chaos.spawn("serve", "run", "--bind", "127.0.0.1:0", "--live", "live.db", "--quiet")
    line = server.stdout.readline().decode()
    try:
        if line:
            try:
                status = ask(int(line.strip().rstrip("/").rsplit(":", 1)[1]), "GET", "live/changes")[0]
            except OSError:
                # It may end where it reads the log, in a sentence, which is looked for below.
                status, line = (500, "") if server.wait(timeout=10) == 2 else (-1, line)
            if status not in (200, 500, 503):
                raise Failure(f"live: status {status} from a damaged log")
    finally:
        server.kill()
        said = server.communicate()[1].decode(errors="replace")
    if "panicked" in said or not (line or said.strip()):
        raise Failure(f"live: {said[-300:] or 'refused without a word'}")
    return "live"


def damage_tokens(chaos: Chaos) -> str:
    """A damaged file of tokens is refused, or the tokens in it that are whole allow what they did, and no more."""
    chaos.clear_live()
    path = chaos.folder / "tokens"
    path.unlink(missing_ok=True)
    chaos.done("live", "token", "ada", "--role", "read", "--tokens", "tokens")
    path.write_bytes(damaged(chaos, path.read_bytes()))
    server = chaos.spawn("serve", "run", "--bind", "127.0.0.1:0", "--live", "live.db", "--tokens", "tokens", "--quiet")
    line = server.stdout.readline().decode()
    try:
        if line and ask(int(line.strip().rstrip("/").rsplit(":", 1)[1]), "GET", "live")[0] != 401:
            raise Failure("tokens: a stranger is let in")
    finally:
        server.kill()
        said = server.communicate()[1].decode(errors="replace")
    if "panicked" in said or not (line or said.strip()):
        raise Failure(f"tokens: {said[-300:] or 'refused without a word'}")
    return "tokens"


ATTACKS = [damage_part, kill, flip, limit, damage_file, race, damage_study, kill, damage_block, attack_server]
ATTACKS += [kill_live, damage_live, damage_tokens, kill_live, damage_live]
ATTACKS += [damage_part, limit, damage_checkpoint, flip, kill, lose_record, race, damage_file, kill, limit]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", type=Path, default=Path("target/debug/ruleguider"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--attacks", type=int, default=sys.maxsize)
    asked = parser.parse_args()
    failures, done = [], {}
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        chaos = Chaos(asked.tool.resolve(), Path(folder))
        chaos.prepare()
        # Preparing may take longer than a short attack, and is none.
        began = time.monotonic()
        for number in range(asked.first, asked.first + asked.attacks):
            if time.monotonic() - began >= asked.seconds:
                break
            # By its number, so that one attack can be repeated without those before it.
            chaos.random = random.Random(f"{asked.seed}/{number}")
            attack = ATTACKS[number % len(ATTACKS)]
            try:
                attack(chaos)
            except Failure as failure:
                failures.append(failure)
                print(f"attack {number} ({attack.__name__}, seed {asked.seed}): {failure}", flush=True)
            done[attack.__name__] = done.get(attack.__name__, 0) + 1
    counts = ", ".join(f"{count} {name}" for name, count in sorted(done.items()))
    print(f"{sum(done.values())} attacks ({counts}), {len(failures)} failures, {time.monotonic() - began:.0f} s")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
