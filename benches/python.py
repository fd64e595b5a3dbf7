"""What the Python package promises, measured: `target/venv/bin/python benches/python.py` after `python/test.sh`, or in any
environment with the package. Prints one line a measurement."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy

import ruleguider as rg

QUERIES = 400


def best(work: Callable[[], object], times: int = 3) -> float:
    """The least of a few."""

    def once() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return min(once() for _ in range(times))


def ids() -> None:
    """Ten million triples as ids."""
    draw = numpy.random.default_rng(1)
    entities, relations, count = 1_000_000, 500, 10_000_000
    triples = numpy.column_stack(
        [draw.integers(0, entities, count), draw.integers(0, relations, count), draw.integers(0, entities, count)]
    )
    for split in (None, (0.8, 0.1, 0.1)):
        seconds = best(lambda: rg.Graph(triples, split=split))
        print(f"10 million triples as ids, split {split}: {seconds:.2f} s")


def threads(model: rg.Model) -> None:
    """Predictions from one thread and from two, by wall clock and by processor time."""
    queries = [(row[0], row[1]) for row in model.graph.to_pandas("test").values]
    queries = (queries * (QUERIES // len(queries) + 1))[:QUERIES]

    def ask() -> None:
        for query in queries:
            model.predict(*query)

    def both() -> None:
        pair = [threading.Thread(target=ask) for _ in range(2)]
        for thread in pair:
            thread.start()
        for thread in pair:
            thread.join()

    ask()
    one, used = best(ask), time.process_time()
    began = time.perf_counter()
    both()
    two = time.perf_counter() - began
    busy = (time.process_time() - used) / two
    print(
        f"{QUERIES} predictions in one thread: {one:.2f} s; twice as many in two threads: {two:.2f} s, "
        f"{2 * one / two:.2f} times as many a second, {busy:.2f} processors busy"
    )


STOPPED = textwrap.dedent("""
    import sys, time, ruleguider, signal
    config = {"base": sys.argv[3]} if len(sys.argv) > 3 else None
    when = []
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *given: (when.append(time.perf_counter()), handler(*given)))
    try:
        ruleguider.learn(sys.argv[1], out=sys.argv[2], minutes=10, config=config, progress=False)
    except KeyboardInterrupt:
        print(time.perf_counter() - when[0], flush=True)
""")


def interrupted(data: Path, config: str | None, after: list[float]) -> None:
    """Seconds from the signal to the exception, at several moments of a run."""
    seconds = []
    for wait in after:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", STOPPED, str(data), f"{folder}/run", *([config] if config else [])]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            time.sleep(wait)
            child.send_signal(signal.SIGINT)
            said, _ = child.communicate()
            seconds.append(float(said))
    print(f"Ctrl-C on {data.name} after {after} s: {', '.join(f'{one:.3f}' for one in seconds)} s until KeyboardInterrupt")


def answers(run: str) -> None:
    """What is asked for and what it costs: `python benches/python.py --answers RUN`."""
    model = rg.open(run)
    asked = sorted({(row[0], row[1]) for row in model.graph.to_pandas("test").values})[:QUERIES]
    began = time.perf_counter()
    found = model.evaluate(direction="tail", progress=False)
    distinct = len({(row[0], row[1]) for row in model.graph.to_pandas("test").values})
    ranking = 1000 * found.seconds / distinct
    print(f"{run}: {len(model.graph.entities):,} entities, {len(model.graph):,} facts, MRR {found.mrr:.3f}")
    print(f"ranking: {ranking:.2f} ms a query ({distinct:,} queries, {time.perf_counter() - began:.1f} s in all)")
    for top in (10, 100, 3000):
        for reasons in (False, True):
            some = asked[: QUERIES if not reasons else max(20, QUERIES // top)]
            seconds = best(lambda: model.predict_many(some, top=top, reasons=reasons, progress=False), 2)
            given = model.predict_many(some, top=top, reasons=reasons, progress=False)
            each = 1000 * seconds / len(some)
            print(
                f"predict_many(top={top}, reasons={reasons}): {each:.2f} ms a query, {each / ranking:.2f} times ranking, "
                f"{sum(map(len, given)) / len(some):.0f} answers"
            )
    for name, place in (("best answer", 0), ("tenth answer", 9)):
        facts = [(one, one.answers[place].entity) for one in model.predict_many(asked[:40], progress=False) if len(one) > place]
        times = []
        for one, entity in facts:
            began = time.perf_counter()
            model.explain(one.subject, one.relation, entity)
            times.append(1000 * (time.perf_counter() - began))
        times.sort()
        print(f"explain, {name}: {times[len(times) // 2]:.1f} ms median, {times[-1]:.1f} ms at most, {len(times)} facts")


def main() -> None:
    """All of it; arguments are data sets to be interrupted on."""
    if sys.argv[1:2] == ["--answers"]:
        for run in sys.argv[2:]:
            answers(run)
        return
    ids()
    with tempfile.TemporaryDirectory() as folder:
        config = {"system": "rules", "rules.samples": 20_000}
        learnt = rg.learn(out=f"{folder}/run", config=config, progress=False)
        for count in (1, os.cpu_count() or 1):
            print(f"with {count} threads in the model's own pool:")
            threads(rg.open(learnt.path, threads=count))
    for name in sys.argv[1:]:
        interrupted(Path(name), None, [1.0, 5.0, 12.0, 20.0])


if __name__ == "__main__":
    main()
