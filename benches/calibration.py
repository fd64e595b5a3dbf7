#!/usr/bin/env python3
"""How reliable scores and probabilities are: python3 benches/calibration.py RULEGUIDER RUN DATA [FACTS]

Asks the tail and the head query of up to FACTS (4,000) facts of DATA's test split, each query once, and takes the ten
best answers of each. The expected calibration error (ten bins of equal width) is that of `evaluate`: answers of the
validation split are not counted. A score above 1 or below 0 counts as 1 or 0, as whoever took it for a probability
would have to.
"""
import gzip
import json
import pathlib
import subprocess
import sys


def triples(folder, name):
    for path in sorted(pathlib.Path(folder).glob(name + ".*")):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt") as file:
            return [tuple(line.rstrip("\n").split("\t")) for line in file if line.strip()]
    raise SystemExit(f"{folder}: no {name}")


def calibration_error(answers):
    bins = [[0, 0.0, 0] for _ in range(10)]
    for value, true in answers:
        value = min(max(value, 0.0), 1.0)
        one = bins[min(int(10 * value), 9)]
        one[0] += 1
        one[1] += value
        one[2] += true
    return sum(abs(total - true) for _, total, true in bins) / max(len(answers), 1)


def main():
    program, run, data = sys.argv[1:4]
    most = int(sys.argv[4]) if len(sys.argv) > 4 else 4000
    test, valid = triples(data, "test"), set(triples(data, "valid"))
    true = set(test)
    step = max(len(test) / most, 1.0)
    asked = [test[int(at * step)] for at in range(int(len(test) / step))]
    queries = dict.fromkeys(q for h, r, t in asked for q in ((h, r), (t, "~" + r)))
    lines = "".join(f"{subject}\t{relation}\n" for subject, relation in queries)
    command = [program, "predict", run, "--file", "-", "--top", "10", "--json", "--quiet"]
    said = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    scores, probabilities = [], []
    for line in said.splitlines():
        row = json.loads(line)
        for answer in row["answers"]:
            pair = (answer["entity"], row["subject"]) if row["inverse"] else (row["subject"], answer["entity"])
            fact = (pair[0], row["relation"], pair[1])
            if fact in valid and fact not in true:
                continue
            scores.append((answer["score"], fact in true))
            probabilities.append((answer["probability"], fact in true))
    high = [is_true for score, is_true in scores if score >= 0.9]
    print(f"{len(queries)} queries, {len(scores)} answers, {sum(t for _, t in scores)} true")
    print(f"score taken for a probability: error {calibration_error(scores):.4f}", end="")
    print(f"; {len(high)} with at least 0.9, {100 * sum(high) / max(len(high), 1):.1f} % of them true")
    likely = [is_true for probability, is_true in probabilities if probability >= 0.9]
    print(f"probability: error {calibration_error(probabilities):.4f}", end="")
    print(f"; {len(likely)} with at least 0.9, {100 * sum(likely) / max(len(likely), 1):.1f} % of them true")


main()
