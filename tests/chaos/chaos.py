#!/usr/bin/env python3
"""Breaks RuleGuider on purpose: kills, bit flips, races, limits and HTTP attacks, drawn from a seed.

    tests/chaos/chaos.py --tool target/debug/ruleguider --seconds 300 --seed 1

Every attack states what must hold afterwards. The program may refuse with one line and exit code 2; it may not panic, be
ended by a signal it did not get, or give another result with exit code 0. A failure prints the attack, its number and the
seed: `--from NUMBER --attacks 1` with the same options repeats it. Exit code 1 if anything failed.

`--short` tries each kind of attack once, in an order that is drawn. `--old` tries, so often as `--attacks` says, only those
that aim at faults of version 0.1.0, and prints how often each succeeded.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import files
import servers
from world import Chaos, Failure

KINDS = [files.kill, files.flip, files.limit, files.race, files.damage_file, files.damage_part, files.damage_header]
KINDS += [files.damage_checkpoint, files.damage_block, files.damage_study, files.damage_split, files.damage_text]
KINDS += [files.lose_record, files.damage_record]
KINDS += [servers.attack_server, servers.kill_live, servers.damage_live, servers.damage_tokens, servers.kill_reader]
# What has many writers or files to choose from comes more often.
LONG = [*KINDS, *4 * [files.kill], *2 * [files.flip], *2 * [files.limit], files.race, servers.kill_live]
# Two conversions at once, killed conversions, lost records of a search, damaged blocks, damaged headers.
OLD = [files.race_folder, files.kill_folder, files.lose_record, files.damage_block, files.damage_header]


def drawn(kinds: list, seed: str, number: int):
    """The attack with this number: all kinds come in each round, in an order of its own."""
    order = list(kinds)
    random.Random(f"{seed}/round/{number // len(order)}").shuffle(order)
    return order[number % len(order)]


def attempt(chaos: Chaos, attack, seed: str, number: int) -> str | None:
    """What went wrong in an attack; whatever it stumbles over is its failure, so that it can be repeated."""
    # By its number, so that one attack can be repeated without those before it.
    chaos.random = random.Random(f"{seed}/{number}")
    try:
        attack(chaos)
    except Failure as failure:
        return str(failure)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", type=Path, default=Path("target/debug/ruleguider"))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--attacks", type=int)
    parser.add_argument("--only", choices=sorted({kind.__name__ for kind in KINDS}), help="attacks of this kind alone")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--short", action="store_true")
    which.add_argument("--old", action="store_true")
    asked = parser.parse_args()
    kinds = KINDS if asked.short else OLD if asked.old else LONG
    if asked.only:
        kinds = [kind for kind in KINDS if kind.__name__ == asked.only]
    attacks = asked.attacks or (len(kinds) if asked.short else sys.maxsize)
    done, found, seconds = Counter(), Counter(), Counter()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        chaos = Chaos(asked.tool.resolve(), Path(folder))
        began = time.monotonic()
        for number in range(asked.first, asked.first + attacks):
            if time.monotonic() - began >= asked.seconds:
                break
            attack, started = drawn(kinds, asked.seed, number), time.monotonic()
            wrong = attempt(chaos, attack, asked.seed, number)
            done[attack.__name__] += 1
            seconds[attack.__name__] += time.monotonic() - started
            if wrong is not None:
                found[attack.__name__] += 1
                print(f"attack {number} ({attack.__name__}, seed {asked.seed}): {wrong}", flush=True)
    for name in sorted(done):
        print(f"{name:18} {done[name]:4} attacks {found[name]:4} failures {seconds[name] / done[name]:6.1f} s each")
    print(f"{done.total()} attacks, {found.total()} failures, {time.monotonic() - began:.0f} s")
    return 1 if found or not done else 0


if __name__ == "__main__":
    sys.exit(main())
