"""The paths of a study as files of predictions, one a system, for a new study beside new reasons.

    python3 benches/judged_paths.py results/judgement/fb15k-237.db --out judged
    ruleguider judge prepare RUN judged/ruleguider-complex.jsonl judged/multihop-complex.jsonl \\
        --names "New reasons,RuleGuider (ComplEx),MultiHop (ComplEx)" --triples 100 --seed 1 --out table4.db

RUN is any run over the same data whose validation split is the same: its reasons are compared with the paths that were
shown before, on the facts of the old study. `judge measure` takes the same files.
"""

import argparse
import json
import re
import sqlite3
from pathlib import Path


def systems(study: sqlite3.Connection) -> dict[str, dict[tuple[str, str], list[dict]]]:
    """For each system, the answers to each query, each with the path that the study shows."""
    names = dict(study.execute("SELECT number, name FROM systems"))
    ends = {number: [names[first], names[second]] for number, first, second in study.execute("SELECT number, first, second FROM pairs")}
    paths: dict[str, dict[tuple[str, str], list[dict]]] = {name: {} for name in names.values()}
    items = study.execute("SELECT pair, head, relation, tail, first_path, second_path FROM items ORDER BY number")
    for pair, head, relation, tail, *both in items:
        for name, path in zip(ends[pair], both):
            answers = paths[name].setdefault((head, relation), [])
            if all(answer["entity"] != tail for answer in answers):
                answers.append({"entity": tail, "path": json.loads(path)})
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--out", type=Path, default=Path("judged"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    study = sqlite3.connect(f"file:{options.study}?mode=ro", uri=True)
    for name, queries in systems(study).items():
        file = options.out / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".jsonl")
        with file.open("w") as out:
            for (subject, relation), answers in queries.items():
                out.write(json.dumps({"subject": subject, "relation": relation, "answers": answers}) + "\n")
        print(f"{name}: {sum(map(len, queries.values()))} paths in {file}")


if __name__ == "__main__":
    main()
