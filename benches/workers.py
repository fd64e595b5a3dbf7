#!/usr/bin/env python3
"""Mining on a Ray cluster of 1, 2 and 4 workers beside the model of docs/scale.md, and what the workers hold in memory.

    benches/workers.py DATA [--workers 1,2,4] [--parts 16] [--rounds 3] [key=value …]

Settings are those of `ruleguider.mine`, such as `samples=10000`; without any, mining goes to saturation. Every worker is a
node with one processor, all on this machine, so no more than its processors run at once and the model is asked for that
many. It needs the package with Ray in its environment, built for release (`pip install "./python[ray]"`).

What is measured first is what the model is made of: I (making the index), F and W (opening the index and counting the
parts, one after another in one process), i (the largest part over the mean), the merge with reading the rules, s (an empty task, from being sent
to being fetched) and b/B (the index into the object store and from there into the file that the workers map). Of several
rounds the best counts. In one more round, which is not timed, the memory of the workers is read from /proc (Pss): what the
largest has for itself, and what all of them together hold of the index.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"
# Ray's workers stand back behind everything else otherwise.
os.environ["RAY_worker_niceness"] = "0"

import ray  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402

import ruleguider as rg  # noqa: E402
import ruleguider.ray as many  # noqa: E402
from ruleguider import _ruleguider  # noqa: E402
from ruleguider.rules import _mining  # noqa: E402


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Alone:
    """The pieces of the work in this process, one thread."""

    def __init__(self, graph: rg.Graph, options: dict[str, Any], parts: int, folder: Path) -> None:
        data = folder / "data.rg"
        self.index = seconds(lambda: data.write_bytes(graph._graph.pack()))
        self.bytes = data.stat().st_size
        began = time.perf_counter()
        opened = _ruleguider.Graph.read(os.fspath(data), None, 0, None)
        self.opening = time.perf_counter() - began
        made = [folder / f"{part}.shard.zst" for part in range(1, parts + 1)]
        for file in made:
            file.unlink(missing_ok=True)
        self.parts = [
            seconds(lambda: _ruleguider.mine_shard(opened, options, f"{part}/{parts}", os.fspath(file), None))
            for part, file in enumerate(made, 1)
        ]
        out = folder / "merged.tsv"
        began = time.perf_counter()
        _ruleguider.merge([os.fspath(file) for file in made], os.fspath(out))
        rg.Rules.read(out, graph)
        self.merge = time.perf_counter() - began
        self.rules = out.read_bytes()


class Memory(threading.Thread):
    """Looks at the workers' memory while they work."""

    def __init__(self, index: str) -> None:
        super().__init__(daemon=True)
        self.index, self.done = index, threading.Event()
        self.own, self.mapped, self.sharing = 0, 0, 0

    def run(self) -> None:
        while not self.done.wait(0.2):
            found = [self._of(pid) for pid in os.listdir("/proc") if pid.isdigit()]
            mapping = [one for one in found if one is not None]
            self.sharing = max(self.sharing, len(mapping))
            self.own = max([self.own, *(own for own, _ in mapping)])
            self.mapped = max(self.mapped, sum(mapped for _, mapped in mapping))

    def _of(self, pid: str) -> tuple[int, int] | None:
        """kB of a process that has mapped the data: all that it is charged with but the data, and the data."""
        try:
            lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
        except OSError:
            return None
        own, mapped, here, maps = 0, 0, False, False
        for line in lines:
            if "-" in line.split(" ", 1)[0]:
                here = line.endswith(self.index)
                maps |= here
            elif line.startswith("Pss:"):
                pss = int(line.split()[1])
                own, mapped = (own, mapped + pss) if here else (own + pss, mapped)
        return (own, mapped) if maps else None


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """So many nodes of one processor each, and a head that does no work."""
    store = 256 << 20
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": store})
    for _ in range(workers):
        nodes.add_node(num_cpus=1, object_store_memory=store)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    try:
        yield
    finally:
        ray.shutdown()
        nodes.shutdown()


def empty(*_: Any) -> tuple[str, Any]:
    return "", b""


def scheduling(count: int = 200) -> float:
    """Seconds of an empty task when many are sent, after the workers have started and imported the package."""
    task = many._remote(empty, 1, 0, 0)
    ray.get([task.remote(rg.__name__) for _ in range(16)])
    return seconds(lambda: ray.get([task.remote(rg.__name__) for _ in range(count)])) / count


def transfer(packed: Any, key: str) -> float:
    """Seconds in which the data comes from the driver to the file of a node."""

    def fetch(shared: Any) -> tuple[str, Any]:
        many._on_this_node(f"{shared[0]}.rg").unlink(missing_ok=True)
        many._opened.clear()
        many._mapped(shared)
        return "", b""

    fresh = many._Packed(packed.data, key)
    return seconds(lambda: ray.get(many._remote(fetch, 1, 0, 0).remote(fresh.put())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("settings", nargs="*", metavar="key=value")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    mining = {key: json.loads(value) for key, value in (one.split("=", 1) for one in asked.settings)} or {"saturate": True}
    graph, options = rg.Graph(asked.data), _mining(**mining)
    cores = os.cpu_count() or 1

    with tempfile.TemporaryDirectory(prefix="workers-") as name:
        folder = Path(name)
        rounds = [Alone(graph, options, asked.parts, folder) for _ in range(asked.rounds)]
        parts = [min(of) for of in zip(*(one.parts for one in rounds))]
        index, opening, merge = (min(getattr(one, key) for one in rounds) for key in ("index", "opening", "merge"))
        counting, imbalance = sum(parts), max(parts) * len(parts) / sum(parts)
        print(
            f"one process, one thread: I {index:.3f} s ({rounds[0].bytes / 1e6:.1f} MB), F {opening:.3f} s, "
            f"W {counting:.2f} s in {asked.parts} parts, i {imbalance:.2f}, merge {merge:.3f} s"
        )
        print("| workers | s | b/B | predicted | measured | mapped by | a worker's own memory | the data in all of them |")
        print("|---|---|---|---|---|---|---|---|")
        for workers in [int(count) for count in asked.workers.split(",")]:
            with cluster(workers):
                empty_task = scheduling()
                packed = many._Packed.graph(graph)
                moved = transfer(packed, packed.key)
                out = folder / "rules.tsv"

                def work() -> None:
                    out.unlink(missing_ok=True)
                    many.mine(graph, out=out, parts=asked.parts, progress=False, **mining)

                best = min(seconds(work) for _ in range(asked.rounds))
                assert out.read_bytes() == rounds[0].rules, "the workers gave something else than one process"
                memory = Memory(f"{packed.key}.rg")
                memory.start()
                work()
                memory.done.set()
                memory.join()
                at_once = min(workers, cores)
                # The parts come as workers are free, so the last one is waited for, not the largest of n.
                last = max(parts) if at_once > 1 else 0.0
                model = index + moved + asked.parts * empty_task + opening + (counting - last) / at_once + last + merge
                print(
                    f"| {workers} | {1e3 * empty_task:.1f} ms | {moved:.3f} s | {model:.2f} s | {best:.2f} s "
                    f"| {memory.sharing} | {memory.own / 1e3:.0f} MB | {memory.mapped / 1e3:.1f} MB |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
