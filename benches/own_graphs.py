#!/usr/bin/env python3
"""What minutes bring: `run DATA --minutes M` over graphs, minutes and seeds, as the rows of results/own-graphs.md.

    benches/own_graphs.py --binary target/release/ruleguider --out target/own-graphs
        mitre=data/mitre-attack/facts.tsv.gz fb237-v1=data/inductive/fb237-v1:data/inductive/fb237-v1-ind
        [--minutes 0.3 1 3 8] [--seeds 1] [--no-validation] [--cpu-clock 1.8]

A graph is NAME=DATA, or NAME=DATA:OTHER where the answers to the test queries of another graph count. Runs go one after
the other. Columns: MRR in per cent on the validation split and its standard error, MRR on the test split in both directions
and for tails, the calibration error above 0.2, seconds, CPU seconds, and the load of the machine when the run began. The
standard error is computed from the hits, a rank between two of their limits counting as the lower of the two. A row is also
appended to OUT/rows.jsonl, with what each member adds and which stages were cut.

A time limit makes figures depend on who else uses the machine. With `--cpu-clock RATE` the clock of the program follows its
CPU time (benches/cpu_clock.c): a second passes for every RATE seconds of CPU, as on two cores that are RATE busy in the
mean. Seconds are then those of that clock.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

LIMITS = (1, 3, 5, 10)


def error_of(figures):
    """The standard error of the MRR, from the hits."""
    square, below = 0.0, 0.0
    for limit, previous in zip(LIMITS, (1, 2, 4, 6)):
        hits = figures[f"hits@{limit}"]
        square += (hits - below) / previous**2
        below = hits
    return (max(square - figures["mrr"] ** 2, 0.0) / figures["queries"]) ** 0.5


def compiled_clock(out):
    library = out / "cpu_clock.so"
    source = Path(__file__).with_name("cpu_clock.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return library.resolve()


def spent(command, environment, log):
    """Standard output, wall seconds and CPU seconds of a command, which reports its progress to `log`."""
    before = os.times()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, env=environment, check=True)
    after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return done.stdout, after.elapsed - before.elapsed, cpu


def measured(arguments, name, data, other, minutes, seed, environment):
    binary, out = arguments.binary, arguments.out / f"{name}-{minutes:g}-{seed}"
    load = os.getloadavg()[0]
    command = [binary, "run", data, "--minutes", f"{minutes:g}", "--seed", str(seed), "--out", out, "--json"]
    with open(arguments.out / f"{out.name}.log", "w") as log:
        stdout, wall, cpu = spent([*command, *arguments.more], environment, log)
    report = json.loads(stdout)
    tests = report
    if other:
        on = [binary, "evaluate", out, "--on", other, "--direction", "both", "--json", "--quiet"]
        tests = json.loads(subprocess.run(on, stdout=subprocess.PIPE, check=True).stdout)
    valid = None
    if not arguments.no_validation:
        on = [binary, "evaluate", out, "--split", "valid", "--direction", "both", "--json", "--quiet"]
        valid = json.loads(subprocess.run(on, stdout=subprocess.PIPE, check=True).stdout)
    stages = report["stages"]
    row = {
        "graph": name,
        "minutes": minutes,
        "seed": seed,
        "valid": valid and [valid["mrr"], error_of(valid)],
        "both": tests["mrr"],
        "tails": tests["tails"]["mrr"],
        "error": error_of(tests),
        "queries": tests["queries"],
        "calibration": (report.get("calibration") or {}).get("error_above_0.2"),
        "seconds": cpu / arguments.cpu_clock if arguments.cpu_clock else wall,
        "cpu": cpu,
        "load": load,
        "stages": {stage: [round(of["seconds"], 1), of.get("cut")] for stage, of in stages.items()},
        "adds": stages.get("blending", {}).get("figures", {}).get("adds", {}),
    }
    with open(arguments.out / "rows.jsonl", "a") as rows:
        rows.write(json.dumps(row) + "\n")
    return row


def shown(row):
    per_cent = lambda value: "–" if value is None else f"{100 * value:.1f}"
    valid = "–" if row["valid"] is None else f"{100 * row['valid'][0]:.1f} ± {100 * row['valid'][1]:.1f}"
    cells = [row["graph"], f"{row['minutes']:g}", row["seed"], valid, per_cent(row["both"]), per_cent(row["tails"])]
    calibration = "–" if row["calibration"] is None else f"{row['calibration']:.3f}"
    cells += [calibration, f"{row['seconds']:.0f}", f"{row['cpu']:.0f}", f"{row['load']:.1f}"]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="NAME=DATA[:OTHER]")
    parser.add_argument("--binary", type=Path, default=Path("target/release/ruleguider"))
    parser.add_argument("--out", type=Path, required=True, help="the folder for runs and rows")
    parser.add_argument("--minutes", type=float, nargs="+", default=[0.3, 1, 3, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--no-validation", action="store_true", help="do not rank the whole validation split")
    parser.add_argument("--cpu-clock", type=float, metavar="RATE", help="time passes with CPU time")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="more arguments of `run`; the last option")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if arguments.cpu_clock:
        environment |= {"LD_PRELOAD": str(compiled_clock(arguments.out)), "CPU_RATE": str(arguments.cpu_clock)}
    heading = ["graph", "minutes", "seed", "validation", "both", "tails", "ECE above 0.2", "seconds", "CPU seconds", "load"]
    print("| " + " | ".join(heading) + " |\n|" + "---|" * len(heading))
    for graph in arguments.graphs:
        name, _, paths = graph.partition("=")
        data, _, other = paths.partition(":")
        for minutes in arguments.minutes:
            for seed in arguments.seeds:
                row = measured(arguments, name, data, other, minutes, seed, environment)
                print(shown(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
