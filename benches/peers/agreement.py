"""Agreement and intervals of `judge report` beside the packages `krippendorff` and `statsmodels`.

usage: agreement.py RULEGUIDER STUDY.db [STUDIES]
Copies the study STUDIES times (20), lets three to five made-up judges vote at random in each copy, some of them not to the end,
and compares what `RULEGUIDER judge report --json` says with what the packages make of the same votes. The copies are thrown
away: random votes test the arithmetic and judge no path.
"""

import json
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import krippendorff
import numpy as np
from statsmodels.stats.inter_rater import fleiss_kappa
from statsmodels.stats.proportion import proportion_confint

CHOICES = ["left", "right", "both", "neither"]


def vote(path, seed):
    """Random votes; for each judge, what each item got: 0 first, 1 second, 2 both, 3 neither."""
    draw = random.Random(seed)
    database = sqlite3.connect(path)
    items = [number for (number,) in database.execute("SELECT number FROM items ORDER BY number")]
    chosen, sided, repeated = [], [0, 0], [0, 0]
    taste = {item: draw.choice([0, 0, 1, 2, 3]) for item in items}
    for judge in range(1, draw.randint(3, 5) + 1):
        database.execute("INSERT INTO judges VALUES (?, ?)", (judge, f"sum {judge}"))
        screens = [(item, 0) for item in draw.sample(items, len(items))]
        screens += [(item, 1) for item in draw.sample(items, max(1, len(items) // 20))]
        until = len(screens) if draw.random() < 0.6 else draw.randint(1, len(screens))
        own = {}
        for position, (item, again) in enumerate(screens):
            left = draw.randint(0, 1)
            database.execute("INSERT INTO screens VALUES (?, ?, ?, ?, ?)", (judge, position, item, again, left))
            if position >= until:
                continue
            verdict = taste[item] if draw.random() < 0.6 else draw.randrange(4)
            choice = CHOICES[verdict] if verdict > 1 else ["right", "left"][(verdict == 0) == bool(left)]
            database.execute("INSERT INTO votes VALUES (?, ?, ?, ?, 0)", (judge, position, choice, draw.uniform(1, 60)))
            if verdict < 2:
                sided[0] += choice == "left"
                sided[1] += 1
            if again:
                repeated[0] += min(own[item], 2) == min(verdict, 2)
                repeated[1] += 1
            else:
                own[item] = verdict
        chosen.append(own)
    database.commit()
    database.close()
    return items, [own for own in chosen if own], sided, repeated


def alpha(rows):
    return krippendorff.alpha(reliability_data=np.array(rows, dtype=float), level_of_measurement="nominal")


def expected(items, chosen, sided, repeated):
    three = [[min(own[item], 2) if item in own else np.nan for item in items] for own in chosen]
    four = [[own.get(item, np.nan) for item in items] for own in chosen]
    complete = [item for item in items if all(item in own for own in chosen)]
    table = [[sum(min(own[item], 2) == verdict for own in chosen) for verdict in range(3)] for item in complete]
    winners = [row.index(max(row)) for row in table if row.count(max(row)) == 1]
    figures = {"alpha": alpha(three), "alpha_four": alpha(four), "kappa": fleiss_kappa(np.array(table)) if len(table) > 1 else None}
    shares = [("first_better", winners.count(0), len(winners)), ("second_better", winners.count(1), len(winners)),
              ("draw", winners.count(2), len(winners)), ("left", *sided), ("self_agreement", *repeated)]
    for name, count, of in shares:
        if of:
            low, high = proportion_confint(count, of, method="wilson")
            figures[name] = [count / of, low, high]
    return figures


def found(report):
    pair = report["pairs"][0]
    figures = {name: pair["agreement"][name] for name in ("alpha", "alpha_four", "kappa")}
    for name in ("first_better", "second_better", "draw", "left", "self_agreement"):
        ratio = pair.get(name) or report.get(name)
        if ratio["of"]:
            figures[name] = [ratio["share"], *ratio["interval"]]
    return figures


program, study = sys.argv[1:3]
worst, compared = {}, 0
with tempfile.TemporaryDirectory() as folder:
    for seed in range(int(sys.argv[3]) if len(sys.argv) > 3 else 20):
        copy = pathlib.Path(folder) / f"{seed}.db"
        shutil.copy(study, copy)
        wanted = expected(*vote(copy, seed))
        said = subprocess.run([program, "judge", "report", str(copy), "--json"], check=True, capture_output=True).stdout
        ours = found(json.loads(said))
        assert wanted.keys() == ours.keys(), (wanted.keys(), ours.keys())
        for name, value in wanted.items():
            if value is None or ours[name] is None:
                continue
            apart = np.max(np.abs(np.array(value) - np.array(ours[name])))
            assert apart < 1e-9, (seed, name, value, ours[name])
            worst[name] = max(worst.get(name, 0.0), apart)
            compared += 1
print(f"{compared} figures compared; largest differences:")
for name, apart in worst.items():
    print(f"  {name}: {apart:.1e}")
