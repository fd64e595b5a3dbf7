#!/usr/bin/env python3
"""How work in parts scales, by simulation: the pieces that `benches/workers.py` and `benches/shards.py` measured, played
through for n nodes.

    benches/scale.py --index 0.1 --bytes 7e6 --opening 0.006 --counting 1.57 --merge 0.03 [--imbalance 1.22] [--times 10]
        [--task 0.002] [--bandwidth 1.25e9] [--parts-per-node 4] [--nodes 1,2,4,8,64,512]

The driver makes what all nodes need (`--index`, `--bytes`). Nodes fetch it from each other: whoever has it passes it on, so
the number of nodes that have it doubles with every transfer. Then a node opens it (`--opening`) and works off one part after
another. The driver hands out a part in `--task` seconds, one at a time, and merges all parts in the end. Parts differ: the
largest takes `--imbalance` times the mean. `--times` multiplies index, bytes, opening, counting and merge: a graph so many
times as large. The speed-up is against one process, which makes the index, counts and merges nothing.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random


def durations(count: int, total: float, imbalance: float) -> list[float]:
    """The seconds of so many parts, spread evenly between 2 − imbalance and imbalance times the mean, in random order."""
    spread = imbalance - 1.0
    steps = [1.0 - spread + 2.0 * spread * at / max(1, count - 1) for at in range(count)] if count > 1 else [1.0]
    random.Random(1).shuffle(steps)
    return [total * step / sum(steps) for step in steps]


def simulate(nodes: int, asked: argparse.Namespace) -> tuple[float, float]:
    """The seconds until everything is merged, and the share of them in which the nodes count."""
    scale = asked.times
    begin = asked.index * scale
    transfer = asked.bytes * scale / asked.bandwidth
    # Node k (from 0) has the index after so many rounds of passing it on.
    ready = [begin + transfer * math.ceil(math.log2(at + 2)) for at in range(nodes)] if nodes > 1 else [begin]
    free = [(at + asked.opening * scale, node) for node, at in enumerate(ready)]
    heapq.heapify(free)
    parts = durations(nodes * asked.parts_per_node, asked.counting * scale, asked.imbalance)
    driver, last = begin, 0.0
    for part in parts:
        # Parts are handed out ahead, so a node waits for one only where the driver cannot keep up.
        at, node = heapq.heappop(free)
        driver += asked.task
        done = max(driver, at) + part
        heapq.heappush(free, (done, node))
        last = max(last, done)
    took = last + asked.merge * scale
    return took, asked.counting * scale / nodes / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("index", "bytes", "opening", "counting", "merge"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--imbalance", type=float, default=1.2)
    parser.add_argument("--times", type=float, default=1.0)
    parser.add_argument("--task", type=float, default=0.002)
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second between two nodes")
    parser.add_argument("--parts-per-node", type=int, default=4)
    parser.add_argument("--nodes", default="1,2,4,8,64,512")
    asked = parser.parse_args()
    alone = (asked.index + asked.counting) * asked.times
    print("| nodes | seconds | speed-up | of which counting |")
    print("|---|---|---|---|")
    for nodes in [int(count) for count in asked.nodes.split(",")]:
        took, counting = simulate(nodes, asked)
        print(f"| {nodes} | {took:.1f} | {alone / took:.1f} | {100 * counting:.0f} % |")


if __name__ == "__main__":
    main()
