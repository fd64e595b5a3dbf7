"""Reviewing simulated by dates: how many true facts 500 verdicts find, by the order in which suggestions are looked at.

    python3 benches/review.py DATED.tsv.gz --before 2023-01-01 [--verdicts 500] [--command target/release/ruleguider]

DATED has a head, a relation, a tail and a day a line. Learns by rules from what was stated before the day. A reviewer looks
at ten suggestions at a time and accepts those that were stated later; all others count as false, also those that nobody
has looked into yet. Every order starts with a log of its own and writes its verdicts to a server, which answers from them:

- queue: what `GET live/queue` gives;
- most probable: the missing facts of all relations by their probability, found again every 50 verdicts;
- random: drawn from the 5,000 most probable ones;
- popularity: by the product of how many facts of the relation have the head and how many have the tail.
"""

import argparse
import gzip
import json
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from live import Server

Fact = tuple[str, str, str]
AT_ONCE = 10


def split(path: str, day: str) -> tuple[set[Fact], set[Fact]]:
    """The facts before the day, and those after it about the same entities and relations."""
    rows = [line.rstrip("\n").split("\t") for line in gzip.open(path, "rt")]
    before = {(head, relation, tail) for head, relation, tail, date in rows if date < day}
    named = {name for head, _, tail in before for name in (head, tail)}
    after = {(head, relation, tail) for head, relation, tail, date in rows if date >= day and head in named and tail in named}
    return before, after - before


def missing(server: Server, api: str, relations: list[str]) -> list[Fact]:
    """The 5,000 most probable missing facts, best first."""
    found = []
    for relation in relations:
        after = 0
        while after is not None:
            page = server.done("GET", f"{api}/facts?relation={quote(relation)}&limit=1000&after={after}")
            found += [(item["probability"] or 0.0, (item["head"], item["relation"], item["tail"])) for item in page["items"]]
            after = page["next"]
    found.sort(key=lambda one: -one[0])
    return [fact for _, fact in found[:5000]]


def by_popularity(before: set[Fact]) -> list[Fact]:
    heads, tails = Counter(fact[:2] for fact in before), Counter(fact[1:] for fact in before)
    best = []
    for relation in {fact[1] for fact in before}:
        subjects = [(head, count) for (head, of), count in heads.most_common() if of == relation][:1000]
        objects = [(tail, count) for (of, tail), count in tails.most_common() if of == relation][:1000]
        best += [(a * b, (head, relation, tail)) for head, a in subjects for tail, b in objects if (head, relation, tail) not in before]
    best.sort(key=lambda one: (-one[0], one[1]))
    return [fact for _, fact in best[:5000]]


def review(server: Server, api: str, truth: set[Fact], verdicts: int, order: Callable[[int], list[Fact]]) -> Iterator[int]:
    """How many true facts were found after each verdict."""
    found, done = 0, 0
    while done < verdicts:
        lines = []
        for head, relation, tail in order(done)[:AT_ONCE]:
            found += (head, relation, tail) in truth
            done += 1
            yield found
            verdict = "accept" if (head, relation, tail) in truth else "reject"
            lines.append(json.dumps({"subject": head, "relation": relation, "object": tail, "verdict": verdict}))
        server.done("POST", f"{api}/live/verdicts", "\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dated")
    parser.add_argument("--before", default="2023-01-01")
    parser.add_argument("--verdicts", type=int, default=500)
    parser.add_argument("--command", default="target/release/ruleguider")
    given = parser.parse_args()
    before, truth = split(given.dated, given.before)
    relations = sorted({fact[1] for fact in before})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "before.tsv").write_text("".join("\t".join(fact) + "\n" for fact in sorted(before)))
        run = f"{folder}/run"
        learn = ["run", f"{folder}/before.tsv", "--set", "system=rules", "--set", "rules.seconds=20", "--out", run, "--quiet"]
        subprocess.run([given.command, *learn], check=True, stdout=subprocess.DEVNULL)
        # Held-out facts are known to the program and no suggestions.
        print(f"before {given.before}: {len(before)} facts; {len(truth)} later ones about the same entities")
        print("| order | " + " | ".join(str(at) for at in range(100, given.verdicts + 1, 100)) + " |")
        for name in ("queue", "most probable", "random", "popularity"):
            server = Server(given.command, run, f"{folder}/{name}.db")
            api = f"/api/v1/{quote(server.run['name'])}"
            kept: list[Fact] = []
            drawn = random.Random(1)

            def order(done: int) -> list[Fact]:
                nonlocal kept
                if name == "queue":
                    items = server.done("GET", f"{api}/live/queue?limit={AT_ONCE}")["items"]
                    return [(item["fact"]["head"], item["fact"]["relation"], item["fact"]["tail"]) for item in items]
                if name == "popularity":
                    kept = kept or by_popularity(before)
                elif done % 50 == 0:
                    kept = missing(server, api, relations)
                    if name == "random":
                        drawn.shuffle(kept)
                kept, now = kept[AT_ONCE:], kept[:AT_ONCE]
                return now

            counts = list(review(server, api, truth, given.verdicts, order))
            print(f"| {name} | " + " | ".join(str(counts[at - 1]) for at in range(100, given.verdicts + 1, 100)) + " |", flush=True)
            server.end()


if __name__ == "__main__":
    main()
