#!/usr/bin/env python3
"""What work in parts costs: the CPU seconds of all parts against those of one process, the largest part against the mean.

    benches/shards.py --work "NAME: mine DATA --saturate" --work "NAME: complete RUN --top 3" … [--parts 1,2,16]
        [--rounds 3] [--at-once 1] [--program target/release/ruleguider]

A work is what follows `ruleguider`, of `mine`, `complete`, `evaluate` or `predict`. Every process has one thread. CPU
seconds are user and system time of the process itself, as the kernel has them when it ends (wait4), so other work on the
machine disturbs them less than it disturbs a clock; they still grow by it (caches, sibling threads), so of several rounds
the best counts, for one process and for every part. The index of `mine` is made by the first part, which pays for it.
With `--at-once 4` every process makes four parts, and what is said of parts is said of these processes.
Parts are merged, which is counted too, and what comes out is compared with what one process gave, byte for byte (of an
evaluation all but the seconds).
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path


def cpu_seconds(command, printed=subprocess.DEVNULL):
    """User and system seconds of one process, which prints into the file `printed`."""
    process = subprocess.Popen(command, stdout=printed)
    _, status, usage = os.wait4(process.pid, 0)
    # Popen must not wait for it again.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: exit {process.returncode}")
    return usage.ru_utime + usage.ru_stime


class Work:
    """One work, by one process or in parts, in a folder of its own."""

    def __init__(self, program, command, at_once, folder):
        self.program, self.command, self.at_once, self.folder = program, command, at_once, folder
        self.verb = command[0]
        self.ending = "tsv" if self.verb in ("mine", "complete") else "json"

    def whole(self):
        """The seconds of one process, and what it gave."""
        return self._into("whole", [self.program, *self.command, "--threads", "1", "--quiet"], self.verb == "predict")

    def parts(self, count):
        """The seconds of every part and, last, of merging them; and what came out."""
        parts = [self.folder / f"{part}-{count}.shard.zst" for part in range(1, count + 1)]
        for old in parts:
            old.unlink(missing_ok=True)
        made = [self.program, *self.command, "--threads", "1", "--quiet"]
        out = self.folder / f"{{}}-{count}.shard.zst"
        shares = [(first, min(first + self.at_once - 1, count)) for first in range(1, count + 1, self.at_once)]
        seconds = [cpu_seconds([*made, "--shard", f"{first}-{last}/{count}", "--out", out]) for first, last in shares]
        merging, merged = self._into("merged", [self.program, "merge", *parts, "--quiet"], False)
        return [*seconds, merging], merged

    def _into(self, name, command, prints):
        """Runs the command so that what it gives is in a file of this name."""
        out = self.folder / f"{name}.{self.ending}"
        out.unlink(missing_ok=True)
        if self.verb == "evaluate":
            with out.open("wb") as file:
                seconds = cpu_seconds([*command, "--json"], file)
            figures = json.loads(out.read_text())
            figures.pop("seconds")
            return seconds, figures
        if prints:
            with out.open("wb") as file:
                return cpu_seconds(command, file), out.read_bytes()
        return cpu_seconds([*command, "--out", out]), out.read_bytes()


def best(rounds):
    """Of every number the least over all rounds."""
    return [min(numbers) for numbers in zip(*rounds)]


def measured(work, counts, rounds):
    """The seconds of one process, and for every count those of its parts and of merging them."""
    alone, shared = [], {count: [] for count in counts}
    for _ in range(rounds):
        seconds, whole = work.whole()
        alone.append(seconds)
        for count in counts:
            parts, merged = work.parts(count)
            if merged != whole:
                sys.exit(f"{shlex.join(work.command)}: {count} parts gave something else than one process")
            shared[count].append(parts)
    return min(alone), {count: best(parts) for count, parts in shared.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="append", required=True, metavar="NAME: COMMAND")
    parser.add_argument("--parts", default="16", help="how many parts, such as 2,16")
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many counts")
    parser.add_argument("--at-once", type=int, default=1, help="parts that a process makes")
    parser.add_argument("--program", default="target/release/ruleguider")
    asked = parser.parse_args()
    print("| work | parts | one process | parts and merge | ratio | largest / mean | first part | mean of the others | merge |")
    print("|---|---|---|---|---|---|---|---|---|")
    for given in asked.work:
        name, _, command = given.partition(":")
        with tempfile.TemporaryDirectory(prefix="shards-") as folder:
            work = Work(asked.program, shlex.split(command), asked.at_once, Path(folder))
            one, shared = measured(work, [int(count) for count in asked.parts.split(",")], asked.rounds)
        for count, (first, *others, merging) in shared.items():
            together = first + sum(others) + merging
            alike = others or [first]
            mean = sum(alike) / len(alike)
            largest = max(first, *alike)
            print(
                f"| {name} | {count} | {one:.3g} s | {together:.3g} s | {together / one:.2f} | {largest / mean:.2f} "
                f"| {first:.3g} s | {mean:.3g} s | {merging:.3g} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
