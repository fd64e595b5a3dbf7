"""Given facts, doubt and reasons, measured: the tables of docs/score.md, docs/doubt.md, docs/reasons.md.

    python3 benches/given.py relations RUN…                    the relation of each test fact, ranked among all relations
    python3 benches/given.py classify RUN…                     triple classification of the test split
    python3 benches/given.py calibration RUN…                  errors of the probabilities, overall, above 0.2 and by relation
    python3 benches/given.py faithful RUN… [--queries 150]     do the facts of the reasons carry the answer?
    python3 benches/given.py doubt DATA… [--set KEY=VALUE …]   3 % of the training facts are replaced by false ones
    python3 benches/given.py score RUN [--facts 100000]        time and memory of `score` on random facts
    python3 benches/given.py predict RUN… --against COMMAND    CPU seconds of `predict --file`, in turns with another program

Every part asks the command line (--command, by default target/release/ruleguider) and prints a table in Markdown.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path


class Tool:
    def __init__(self, command: str) -> None:
        self.command = command

    def said(self, *words: object) -> str:
        done = subprocess.run([self.command, *map(str, words), "--quiet"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: object) -> dict:
        return json.loads(self.said(*words, "--json"))


def table(names: list[str], rows: list[list[object]]) -> None:
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|")
    for row in rows:
        print("| " + " | ".join(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row) + " |", flush=True)


def relations(tool: Tool, runs: list[Path], _: argparse.Namespace) -> None:
    keys = ["facts", "relations", "hits@1", "hits@3", "hits@10", "mrr"]
    figures = [tool.json("evaluate", run, "--predict-relations") for run in runs]
    table(["run", *keys], [[run.name, *(one[key] for key in keys)] for run, one in zip(runs, figures)])


def classify(tool: Tool, runs: list[Path], _: argparse.Namespace) -> None:
    keys = ["facts", "accuracy", "f1", "auc", "average_precision"]
    figures = [tool.json("evaluate", run, "--classify") for run in runs]
    table(["run", *keys], [[run.name, *(one[key] for key in keys)] for run, one in zip(runs, figures)])


def calibration(tool: Tool, runs: list[Path], _: argparse.Namespace) -> None:
    rows, by_relation = [], []
    for run in runs:
        of = tool.json("evaluate", run)["calibration"]
        above = of["above_0.2"]
        rows.append([run.name, of["ece"], of["error_above_0.2"], above["answers"], above["predicted"], above["observed"]])
        for relation, of in of["by_relation_above_0.2"].items():
            low, high = of["interval"]
            shown = f"{of['observed']:.3f} [{low:.3f}, {high:.3f}]"
            outside = max(low - of["predicted"], of["predicted"] - high, 0.0)
            by_relation.append([run.name, relation, of["answers"], f"{of['predicted']:.3f}", shown, f"{outside:.3f}"])
    table(["run", "error over all", "error above 0.2", "answers above 0.2", "mean probability", "share true"], rows)
    print()
    table(["run", "relation", "answers above 0.2", "mean probability", "share true", "outside the interval"], by_relation)


def faithful(tool: Tool, runs: list[Path], options: argparse.Namespace) -> None:
    def shown(of: dict) -> str:
        return f"{100 * of['value']:.1f} [{100 * of['low']:.1f}, {100 * of['high']:.1f}]"

    rows = []
    for run in runs:
        asked = ("evaluate", run, "--direction", "both", "--faithfulness", "--queries", options.queries)
        of = tool.json(*asked)["faithfulness"]
        ratio = of.get("ratio_to_random")
        rows.append([run.name, of["answers"], f"{of['facts']:.1f}", shown(of["deletion"]), shown(of["deletion_random"]),
                     "–" if ratio is None else f"{ratio:.0f}", shown(of["kept_place"]), shown(of["sufficiency"])])
    names = ["run", "answers", "facts", "score that goes, %", "without others", "at least times", "keep their place, %",
             "enough alone, %"]
    table(names, rows)


def doubt(tool: Tool, data: list[Path], options: argparse.Namespace) -> None:
    rows = []
    for one in data:
        with tempfile.TemporaryDirectory() as folder:
            wrong, run = Path(folder) / "wrong", Path(folder) / "run"
            tool.said("generate", "errors", one, "--share", "0.03", "--seed", "1", "--out", wrong)
            learn = [word for one in options.set for word in ("--set", one)] or ["--minutes", options.minutes]
            tool.said("run", wrong, "--out", run, "--seed", "1", *learn)
            said = tool.json("doubt", run, "--top", "1", "--errors", wrong / "errors.tsv")
        figures = said["figures"]
        for name in ("doubt", "embedding"):
            if figures.get(name):
                of = figures[name]
                rows.append([one.name, said["asked"], figures["errors"], name, of["precision_first_percent"], of["average_precision"]])
        rows.append([one.name, said["asked"], figures["errors"], "random", figures["random"], figures["random"]])
    table(["data", "facts", "false", "by", "precision of the first 1 %", "average precision"], rows)


def measured(command: list[str]) -> tuple[dict, dict]:
    """What a command says, its processor time and its peak memory in kB. It is started by a small program, since a process
    is counted with the memory of the one that started it."""
    program = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([json.loads(done.stdout), {'processor': used.ru_utime + used.ru_stime, 'peak': used.ru_maxrss}]))"
    )
    done = subprocess.run([sys.executable, "-c", program, *command], stdout=subprocess.PIPE, text=True, check=True)
    said, used = json.loads(done.stdout)
    return said, used


def score(tool: Tool, runs: list[Path], options: argparse.Namespace) -> None:
    rows = []
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            known, given = Path(folder) / "known.tsv", Path(folder) / "given.tsv"
            tool.said("convert", run / "data.rg", known)
            facts = [line.split("\t") for line in known.read_text().splitlines()]
            drawn = random.Random(1)
            with given.open("w") as file:
                for _ in range(options.facts):
                    # The ends of two facts: mostly false, rarely a fact of the graph.
                    file.write("\t".join([*drawn.choice(facts)[:2], drawn.choice(facts)[2]]) + "\n")
            out = ("--threshold", "none", "--out", str(Path(folder) / "scored.tsv"), "--json", "--quiet")
            done, used = measured([tool.command, "score", str(run), "--file", str(given), *out])
        rows.append([run.name, done["facts"], f"{done['seconds']:.0f}", f"{used['processor']:.0f}", f"{used['peak'] / 1024:.0f}"])
    table(["run", "facts", "seconds", "seconds of processors", "peak memory in MB"], rows)


def predict(tool: Tool, runs: list[Path], options: argparse.Namespace) -> None:
    def processor(command: str, run: Path, queries: Path) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        Tool(command).said("predict", run, "--file", queries, "--threads", "1")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    rows = []
    for run in runs:
        with tempfile.TemporaryDirectory() as folder:
            splits, queries = Path(folder) / "splits", Path(folder) / "queries.tsv"
            tool.said("convert", run / "data.rg", splits)
            facts = [line.split("\t") for line in (splits / "test.tsv").read_text().splitlines()]
            asked = sorted({(head, relation) for head, relation, _ in facts})[: options.queries]
            queries.write_text("".join(f"{head}\t{relation}\n" for head, relation in asked))
            turns = [[processor(command, run, queries) for command in (options.against, tool.command)] for _ in range(5)]
        before, after = (sorted(turn[which] for turn in turns)[2] for which in (0, 1))
        rows.append([run.name, len(asked), f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}"])
    table(["run", "queries", "seconds before", "seconds after", "ratio"], rows)


def main() -> None:
    parts = {part.__name__: part for part in (relations, classify, calibration, faithful, doubt, score, predict)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--command", default="target/release/ruleguider")
    parser.add_argument("--queries", type=int, default=150)
    parser.add_argument("--minutes", type=float, default=0.5, help="for learning, without settings")
    parser.add_argument("--set", action="append", default=[], help="a setting for learning, instead of a time")
    parser.add_argument("--against", default="ruleguider", help="the program that predict is compared with")
    parser.add_argument("--facts", type=int, default=100_000)
    options = parser.parse_args()
    parts[options.part](Tool(options.command), options.paths, options)


if __name__ == "__main__":
    main()
