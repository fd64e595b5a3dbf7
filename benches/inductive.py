#!/usr/bin/env python3
"""More graphs to choose the settings of an inductive row by: parts of the full graph that look like the one asked about.

    benches/inductive.py --full data/wn18rr --learnt data/inductive/wn18rr-v1 --asked data/inductive/wn18rr-v1-ind
        --out like-v1-ind [--graphs 8] [--held-out 0.2] [--seed 7]

The validation split of wn18rr-v1-ind has 185 facts, and settings that differ by half a point cannot be told apart on it.
This cuts further graphs out of the full one, which share no entity with `--learnt`, with `--asked`, or with each other:
each grows from one entity to as many entities as `--asked` has, preferring neighbours that have many links into the graph
for the links that they have. Only relations that `--learnt` trains are kept. A fifth of the facts, as many as `--asked`
holds back, goes to its test split, no entity being left without a fact; one fact is its validation split, because a data
set must have one. A graph whose relations are not mixed as in `--asked` (the shares that both have in common are less
than half) is left out, and its entities are not used again. All of it is decided by the seed.

    ruleguider evaluate RUN --on like-v1-ind/1 --direction both
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

SPLITS = ("train", "valid", "test")


def facts_of(folder, splits=SPLITS):
    """The facts of a data set, each once, in the order of its files."""
    lines = (line for split in splits for line in (folder / f"{split}.txt").read_text().splitlines())
    return list(dict.fromkeys(tuple(line.split("\t")) for line in lines))


def entities_of(facts):
    return {entity for head, _, tail in facts for entity in (head, tail)}


def shares_of(facts):
    """The share of every relation."""
    counts = Counter(relation for _, relation, _ in facts)
    return {relation: count / len(facts) for relation, count in counts.items()}


def grown(facts, size, draw):
    """The entities of a part of the graph that grows from one of them."""
    linked = defaultdict(dict)
    for head, _, tail in facts:
        linked[head][tail] = linked[tail][head] = None
    part, links = {}, {}
    new = [draw.choice(sorted(linked))]
    while True:
        for entity in new:
            part[entity] = None
            links.pop(entity, None)
            for other in linked[entity]:
                if other not in part:
                    links[other] = links.get(other, 0) + 1
        if len(part) >= size or not links:
            return part
        weights = [count**4 / len(linked[entity]) for entity, count in links.items()]
        new = list(dict.fromkeys(draw.choices(list(links), weights, k=4)))[: size - len(part)]


def divided(facts, share, draw):
    """Facts that stay, and a share that is held back, so that no entity is left without one."""
    left = Counter(entity for head, _, tail in facts for entity in (head, tail))
    stay, back = [], []
    for fact in draw.sample(facts, len(facts)):
        head, _, tail = fact
        if len(back) < share * len(facts) and left[head] > 1 and left[tail] > 1:
            back.append(fact)
            left.subtract((head, tail))
        else:
            stay.append(fact)
    return stay, back


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", type=Path, required=True, help="the data set that parts are cut out of")
    parser.add_argument("--learnt", type=Path, required=True, help="the data set that is trained on")
    parser.add_argument("--asked", type=Path, required=True, help="the data set that parts shall look like")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", type=int, default=8)
    parser.add_argument("--held-out", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    away = entities_of(facts_of(asked.learnt) + facts_of(asked.asked))
    trained = shares_of(facts_of(asked.learnt, ["train"]))
    known = facts_of(asked.asked, ["train"])
    size, mixed = len(entities_of(known)), shares_of(known)
    rest = [fact for fact in facts_of(asked.full) if fact[1] in trained and not {fact[0], fact[2]} & away]
    draw = random.Random(asked.seed)
    made = 0
    while made < asked.graphs:
        if len(entities_of(rest)) < size:
            sys.exit(f"the full graph has enough for {made} of {asked.graphs} graphs")
        part = grown(rest, size, draw)
        facts = [fact for fact in rest if fact[0] in part and fact[2] in part]
        rest = [fact for fact in rest if fact[0] not in part and fact[2] not in part]
        common = sum(min(share, mixed.get(relation, 0)) for relation, share in shares_of(facts).items())
        if len(part) < size or common < 0.5:
            continue
        made += 1
        stay, back = divided(facts, asked.held_out, draw)
        folder = asked.out / str(made)
        folder.mkdir(parents=True, exist_ok=True)
        for split, chosen in zip(SPLITS, (stay, back[:1], back[1:])):
            (folder / f"{split}.txt").write_text("".join("\t".join(fact) + "\n" for fact in chosen))
        print(f"{folder}: {len(part)} entities, {len(facts)} facts, {len(back)} held back, relations {common:.0%} alike")


if __name__ == "__main__":
    main()
