"""Reviewing simulated by dates: how many true facts 500 verdicts find, by the order in which suggestions are looked at.

    python3 benches/review.py DATED.tsv.gz --before 2023-01-01 [--verdicts 500] [--command target/release/ruleguider]

DATED has a head, a relation, a tail and a day a line. Learns by rules from what was stated before the day, and takes the
5,000 most probable missing facts (`complete`). A reviewer looks at ten at a time and accepts those that were stated later;
all others count as false, also those that nobody has looked into yet. The orders:

- queue: that of `GET live/queue` (`queued` in cli/src/live/review.rs): by the probability after the verdicts on the same
  subject and on the same object, and every fourth the one that teaches most;
- most probable: as `complete` gives them;
- random: drawn from the 5,000;
- popularity: facts of all pairs, by the product of how many facts of the relation have the head and how many have the tail.

The model is not learnt again meanwhile.
"""

import argparse
import gzip
import json
import math
import random
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

Fact = tuple[str, str, str]
AT_ONCE, PRIOR, TEACHES = 10, 5.0, 4


def split(path: str, day: str) -> tuple[set[Fact], set[Fact]]:
    """The facts before the day, and those after it about the same entities."""
    rows = [line.rstrip("\n").split("\t") for line in gzip.open(path, "rt")]
    before = {(head, relation, tail) for head, relation, tail, date in rows if date < day}
    named = {name for head, _, tail in before for name in (head, tail)}
    after = {(head, relation, tail) for head, relation, tail, date in rows if date >= day and head in named and tail in named}
    return before, after - before


def by_popularity(before: set[Fact]) -> list[Fact]:
    heads, tails = Counter(fact[:2] for fact in before), Counter(fact[1:] for fact in before)
    best = []
    for relation in sorted({fact[1] for fact in before}):
        subjects = [(head, count) for (head, of), count in heads.items() if of == relation]
        objects = [(tail, count) for (of, tail), count in tails.items() if of == relation]
        pairs = ((a * b, (head, relation, tail)) for head, a in subjects for tail, b in objects)
        best += [(count, fact) for count, fact in pairs if fact not in before]
    best.sort(key=lambda one: (-one[0], one[1]))
    return [fact for _, fact in best[:5000]]


class Queue:
    """The order of the server's queue."""

    def __init__(self, suggestions: list[dict]) -> None:
        self.rows = [((row["head"], row["relation"], row["tail"]), row["probability"], (row["rule"] or {}).get("text")) for row in suggestions]
        self.said: dict[tuple, list[int]] = defaultdict(lambda: [0, 0])

    def share(self, fact: Fact, share: float) -> float:
        for key in (("subject", *fact[:2]), ("object", *fact[1:])):
            accepted, rejected = self.said[key]
            share = (PRIOR * share + accepted) / (PRIOR + accepted + rejected)
        return share

    def next(self) -> list[Fact]:
        alike = Counter(rule for *_, rule in self.rows)
        shares = [self.share(fact, share) for fact, share, _ in self.rows]
        worth = [share * (1 - share) * math.log(alike[row[2]]) for share, row in zip(shares, self.rows, strict=True)]
        orders = [iter(sorted(range(len(by)), key=lambda at: -by[at])) for by in (shares, worth)]
        taken: list[int] = []
        while len(taken) < AT_ONCE:
            order = orders[len(taken) % TEACHES == TEACHES - 1]
            taken.append(next(at for at in order if at not in taken))
        facts = [self.rows[at][0] for at in taken]
        self.rows = [row for at, row in enumerate(self.rows) if at not in taken]
        return facts

    def hear(self, fact: Fact, accepted: bool) -> None:
        for key in (("subject", *fact[:2]), ("object", *fact[1:])):
            self.said[key][not accepted] += 1


def review(truth: set[Fact], verdicts: int, following: Callable[[], list[Fact]], hear: Callable[[Fact, bool], None]) -> list[int]:
    """How many true facts were found after each verdict."""
    counts = [0]
    while len(counts) <= verdicts:
        for fact in following():
            counts.append(counts[-1] + (fact in truth))
            hear(fact, fact in truth)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dated")
    parser.add_argument("--before", default="2023-01-01")
    parser.add_argument("--verdicts", type=int, default=500)
    parser.add_argument("--command", default="target/release/ruleguider")
    given = parser.parse_args()
    before, truth = split(given.dated, given.before)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "before.tsv").write_text("".join("\t".join(fact) + "\n" for fact in sorted(before)))
        learn = ["run", "before.tsv", "--set", "system=rules", "--set", "rules.seconds=20", "--out", "run", "--quiet"]
        for arguments in (learn, ["complete", "run", "--top", "5000", "--out", "missing.jsonl", "--quiet"]):
            subprocess.run([Path(given.command).resolve(), *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        suggestions = [json.loads(line) for line in (folder / "missing.jsonl").open()]
    facts = [(row["head"], row["relation"], row["tail"]) for row in suggestions]
    print(f"before {given.before}: {len(before)} facts; {len(truth)} later ones about the same entities, {len(truth & set(facts))} of them suggested")
    queue, marks = Queue(suggestions), range(100, given.verdicts + 1, 100)
    print("| order | " + " | ".join(map(str, marks)) + " |")
    lists = {"most probable": facts, "random": random.Random(1).sample(facts, len(facts)), "popularity": by_popularity(before)}
    orders = {"queue": (queue.next, queue.hear)}
    for order, listed in lists.items():
        places = iter(listed)
        orders[order] = (lambda places=places: [next(places) for _ in range(AT_ONCE)], lambda fact, accepted: None)
    for order, (following, hear) in orders.items():
        counts = review(truth, given.verdicts, following, hear)
        print(f"| {order} | " + " | ".join(str(counts[at]) for at in marks) + " |", flush=True)


if __name__ == "__main__":
    main()
