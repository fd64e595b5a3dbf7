"""Load a graph, learn, predict with reasons, evaluate: `task_ruleguider.py DATA MINUTES HEAD RELATION`."""

import sys

import ruleguider as rg

data, minutes, head, relation = sys.argv[1:]
model = rg.learn(data, minutes=float(minutes), out="runs/task", seed=1)
print(model.predict(head, relation, top=3))
print("MRR, both directions:", model.evaluate(direction="both").mrr)
