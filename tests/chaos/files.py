"""Attacks on what writes and on what is written: kills, flipped bits, races of two writers, too little of something."""

import shutil
import signal
import time

from world import JOBS, PROBES, READERS, SEARCH, WRITERS, Chaos, Failure, settings


def kill(chaos: Chaos) -> str:
    """A writer that is killed a few times and then left alone gives what an undisturbed one gives."""
    return killed(chaos, chaos.random.choice(sorted(WRITERS)))


def killed(chaos: Chaos, name: str) -> str:
    arguments, result = WRITERS[name]
    seconds, whole = chaos.undisturbed(name)
    chaos.clear(result)
    if name == "convert folder":
        # Over another data set: never a mixture of both.
        chaos.need("set1")
        shutil.copytree(chaos.folder / "set1", chaos.folder / "c")
    for _ in range(chaos.random.randint(1, 3)):
        chaos.kill_within(1.2 * seconds, *arguments)
        if name in ("convert folder", "generate"):
            check_folder(chaos, result, name)
        if name in PROBES and (chaos.folder / result).exists():
            chaos.run(*PROBES[name], ends=(0, 1))
    if name in PROBES:
        # One that was made whole before it was killed is not made again.
        chaos.clear(result)
    chaos.done(*arguments)
    if name in PROBES:
        chaos.run(*PROBES[name], ends=(0, 1))
        whole = chaos.contents(result)
    if name == "convert folder":
        whole = whole | {"planted_rules.tsv": (chaos.folder / "set1/planted_rules.tsv").read_bytes()}
    if chaos.contents(result) != whole:
        raise Failure(f"{name}: another result after kills")
    left = [path.name for path in chaos.folder.glob(f".{result}.*.partial")]
    if left:
        raise Failure(f"{name}: left behind: {left}")
    return name


def kill_folder(chaos: Chaos) -> str:
    """A conversion over another data set that is killed leaves one of both."""
    return killed(chaos, "convert folder")


def check_folder(chaos: Chaos, result: str, name: str) -> None:
    """A folder of a data set is the old one, the new one, or refused."""
    folder = chaos.folder / result
    if not folder.is_dir() or chaos.run("stats", result, "--quiet")[0] == 2:
        return
    splits = {path.name: path.read_bytes() for path in folder.iterdir() if path.name.split(".")[0] in ("train", "valid", "test")}
    chaos.need("set1")
    old = {path.name: path.read_bytes() for path in (chaos.folder / "set1").iterdir() if path.name in splits}
    new = {key: value for key, value in chaos.whole(name).items() if key.split(".")[0] in ("train", "valid", "test")}
    if splits not in (old, new):
        raise Failure(f"{name}: a mixture of data sets is accepted: {sorted(splits)}")


def flip(chaos: Chaos) -> str:
    """A bit of a file of a run is flipped: the same answers, or a refusal."""
    run = chaos.random.choice(sorted(READERS))
    for reader in READERS[run]:
        chaos.answer(*reader)
    files = sorted(path for path in (chaos.folder / run).rglob("*") if path.is_file() and path.stat().st_size)
    path = chaos.random.choice(files)
    before = path.read_bytes()
    damaged = bytearray(before)
    damaged[chaos.random.randrange(len(damaged))] ^= 1 << chaos.random.randrange(8)
    path.write_bytes(damaged)
    try:
        for reader in READERS[run]:
            code, said = chaos.run(*reader)
            # The last two are for people only: must not stop anything from working.
            if code != 2 and (code, said) != chaos.answer(*reader) and path.name not in ("metrics.jsonl", "report.html"):
                raise Failure(f"{path.name}: a flipped bit changes `{' '.join(reader)}`")
    finally:
        path.write_bytes(before)
    return path.name


def damage_file(chaos: Chaos) -> str:
    """A data file with flipped bits is refused. Weights with flipped bits are other weights: refused, or used without a
    panic; cut-off ones are refused."""
    name = chaos.random.choice(["one.rg", "w.safetensors"])
    chaos.need(name, "set1")
    head = (chaos.folder / "set1/test.tsv").read_text().split("\t")[0]
    by_weights = ["run", "small.tsv", *settings("system=universal", "members.universal.weights='w.safetensors'"), "--out", "by-weights", "--quiet"]
    asked = ["ask", "one.rg", head, "uncle_of", "--json"] if name == "one.rg" else by_weights
    answer = chaos.answer(*asked)[1]
    path, cut = chaos.folder / name, chaos.random.random() < 0.3
    whole = path.read_bytes()
    damaged = bytearray(whole[: chaos.random.randrange(len(whole))] if cut else whole)
    for _ in range(0 if cut else chaos.random.choice([1, 1, 20])):
        damaged[chaos.random.randrange(len(damaged))] ^= 1 << chaos.random.randrange(8)
    path.write_bytes(damaged)
    shutil.rmtree(chaos.folder / "by-weights", ignore_errors=True)
    try:
        code, said = chaos.run(*asked)
    finally:
        path.write_bytes(whole)
    if code == 0 and said != answer and (cut or name == "one.rg"):
        raise Failure(f"{name}: damage changes the answers")
    if code == 0 and cut:
        raise Failure(f"{name}: is accepted though it was cut off")
    return name


def merge(chaos: Chaos, job: str, damage) -> str:
    """The parts of a job are merged, but not if one of them is damaged."""
    parts = [f"{job}-1.shard", f"{job}-2.shard"]
    ending = "jsonl" if job in ("answers", "missing") else "tsv"
    command = ["merge", *parts, "--out", f"merged.{ending}", "--quiet"]
    chaos.done(*command)
    path = chaos.folder / chaos.random.choice(parts)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    try:
        if chaos.run(*command)[0] == 0:
            raise Failure(f"{path.name}: a damaged part is merged")
    finally:
        path.write_bytes(whole)
    return job


def damage_part(chaos: Chaos) -> str:
    """A part with a flipped bit, or cut off, is not merged."""
    return merge(chaos, chaos.random.choice(sorted(JOBS)), chaos.damaged)


def damage_header(chaos: Chaos) -> str:
    """A part of mined rules with a flipped bit in its first kilobyte, where names and counts stand, is not merged."""

    def flipped(whole: bytes) -> bytes:
        damaged = bytearray(whole)
        damaged[chaos.random.randrange(min(1024, len(whole)))] ^= 1 << chaos.random.randrange(8)
        return bytes(damaged)

    return merge(chaos, "rules", flipped)


def damage_checkpoint(chaos: Chaos) -> str:
    """A training that was interrupted and whose checkpoint was damaged gives the same run, or is refused."""
    arguments, result = WRITERS["train"]
    whole = chaos.whole("train")
    chaos.clear(result)
    child, begun = chaos.spawn(*arguments), chaos.folder / result / "metrics.jsonl"
    while child.poll() is None and not (begun.is_file() and begun.stat().st_size):
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    chaos.ended(child)
    for checkpoint in (chaos.folder / result).glob("checkpoints/*/checkpoint.safetensors"):
        checkpoint.write_bytes(chaos.damaged(checkpoint.read_bytes()))
    if chaos.run(*arguments)[0] == 0 and chaos.contents(result) != whole:
        raise Failure("a damaged checkpoint changes what is learnt")
    return "checkpoint"


def damage_study(chaos: Chaos) -> str:
    """A study with flipped bits, or cut off, is reported or refused."""
    chaos.need("study.db")
    path = chaos.folder / "study.db"
    whole = path.read_bytes()
    path.write_bytes(chaos.damaged(whole))
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
    return disturbed_search(chaos, "*/trial.json", lambda path: path.unlink())


def damage_record(chaos: Chaos) -> str:
    """A search whose records were damaged gives the same table, or is refused."""
    pattern = chaos.random.choice(["*/trial.json", "*/metrics.jsonl", "*/stages.json", "*/*.safetensors", "../trials.json", "../sweep.json"])
    return disturbed_search(chaos, pattern, lambda path: path.write_bytes(chaos.damaged(path.read_bytes())))


def disturbed_search(chaos: Chaos, pattern: str, disturb) -> str:
    search = [*SEARCH, "--out", "sweep", "--quiet"]
    chaos.need("sweep")
    table = chaos.folder / "sweep/trials.tsv"
    before, kept = table.read_bytes(), chaos.folder / "sweep.kept"
    shutil.copytree(chaos.folder / "sweep", kept)
    try:
        path = chaos.random.choice(sorted((chaos.folder / "sweep/trials").glob(pattern)))
        disturb(path)
        if chaos.run(*search)[0] != 2 and table.read_bytes() != before:
            raise Failure(f"{path.name}: a search that continues gives another table")
    finally:
        shutil.rmtree(chaos.folder / "sweep")
        kept.rename(chaos.folder / "sweep")
    return path.name


def damage_split(chaos: Chaos) -> str:
    """A file of a data set with checksums is damaged: the same figures, or a refusal."""
    reader = ["stats", "set1", "--json", "--quiet"]
    answer = chaos.answer(*reader)
    path = chaos.random.choice(sorted((chaos.folder / "set1").iterdir()))
    whole = path.read_bytes()
    path.write_bytes(chaos.damaged(whole))
    try:
        code, said = chaos.run(*reader)
    finally:
        path.write_bytes(whole)
    if code != 2 and (code, said) != answer:
        raise Failure(f"{path.name}: damage to a split changes the data")
    return path.name


def damage_text(chaos: Chaos) -> str:
    """What people write has no checksum: rules, labels, facts, queries, settings. Damaged, they are read or refused."""
    name, reader = chaos.random.choice(
        [
            ("mined.tsv", ["apply", "set1", "--rules", "mined.tsv", "--quiet"]),
            ("unsealed/entity_labels.tsv", ["stats", "unsealed", "--quiet"]),
            ("facts.tsv", ["score", "run", "--file", "facts.tsv"]),
            ("queries.tsv", ["predict", "run", "--file", "queries.tsv", "--quiet"]),
            ("pretrain.toml", ["pretrain", "pretrain.toml", "--data", ".", "--weights", "w.safetensors", "--minutes", "0"]),
        ]
    )
    chaos.need(*reader)
    path = chaos.folder / name
    whole = path.read_bytes()
    path.write_bytes(chaos.damaged(whole))
    try:
        chaos.run(*reader)
    finally:
        path.write_bytes(whole)
    return name


def race(chaos: Chaos) -> str:
    """Several writers at one place: one of them wins whole, the others say so."""
    return raced(chaos, chaos.random.choice(["generate", "convert folder", "complete"]))


def race_folder(chaos: Chaos) -> str:
    """Two conversions into one folder: it is one of both."""
    return raced(chaos, "convert folder")


def raced(chaos: Chaos, name: str) -> str:
    arguments, result = WRITERS[name]
    alone = chaos.whole(name)
    chaos.clear(result)
    rivals = [arguments, list(arguments)]
    if name == "convert folder":
        rivals[1] = ["convert", "set1", "c", "--force", "--to", "tsv", "--quiet"]
        chaos.need("set1")
    children = [chaos.spawn(*one) for one in rivals]
    ended = [chaos.ended(child) for child in children]
    for code, _, said in ended:
        if code not in (0, 2) or (code == 2 and "another process" not in said):
            raise Failure(f"{name}: {code}: {said[-300:]}")
    if all(code != 0 for code, _, _ in ended):
        raise Failure(f"{name}: nobody won")
    left = chaos.contents(result)
    whole = [alone]
    if name == "convert folder":
        chaos.done("convert", "set1", "c1", "--force", "--to", "tsv", "--quiet")
        whole.append(chaos.contents("c1"))
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
