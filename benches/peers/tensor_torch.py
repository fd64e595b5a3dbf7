"""The two workloads of benches/tensor.rs in PyTorch, for the ratio.

usage: tensor_torch.py [--device cpu|cuda] [--threads 1] [--steps 10] [--only W1|W2]
W1: one training step of the two-agent policy; W2: one step of ComplEx against all entities.
"""

import argparse
import resource
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--only", default="")
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.set_float32_matmul_precision("high")
torch.manual_seed(1)
device = torch.device(options.device)
ROWS, HOPS, WIDTH, CANDIDATES, RELATIONS, ENTITIES, QUERIES, ANSWERS = 5120, 3, 200, 40, 25, 40_000, 512, 2


def synchronise():
    if device.type == "cuda":
        torch.cuda.synchronize()


def timed(step):
    for _ in range(3):
        step()
    synchronise()
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        synchronise()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[len(seconds) // 2]


class Agent(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(WIDTH, WIDTH) for _ in range(3)])
        self.first, self.second = nn.Linear(inputs * WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def walk(self, x, states):
        for index, cell in enumerate(self.cells):
            states[index] = cell(x, states[index])
            x = states[index][0]
        return x

    def query(self, *inputs):
        return self.second(F.relu(self.first(torch.cat(inputs, 1))))


def policy():
    entities, relations = nn.Embedding(ENTITIES, WIDTH).to(device), nn.Embedding(RELATIONS, WIDTH).to(device)
    by_relation, by_entity = Agent(2).to(device), Agent(4).to(device)
    modules = nn.ModuleList([entities, relations, by_relation, by_entity])
    adam = torch.optim.Adam(modules.parameters())
    draw = lambda limit, *shape: torch.randint(limit, shape, device=device)
    sources, queries = draw(ENTITIES, ROWS), draw(RELATIONS, ROWS)
    hops = [
        (draw(RELATIONS - 2, ROWS) + 2, draw(ENTITIES, ROWS), draw(ENTITIES, ROWS * CANDIDATES), draw(CANDIDATES, ROWS))
        for _ in range(HOPS)
    ]
    row = torch.arange(ROWS, device=device)
    owner = row.repeat_interleave(CANDIDATES)
    rewards = torch.rand(ROWS, device=device)

    def step():
        source, query = entities(sources), relations(queries)
        first, second = [None] * 3, [None] * 3
        total = 0.0
        for link, place, candidates, picked in hops:
            last, here = relations(link), entities(place)
            wish = by_relation.query(by_relation.walk(last, first), query)
            scores = wish @ relations.weight.T
            scores = scores.clone()
            scores[:, :2] = -1e30
            total = total + F.log_softmax(scores, 1)[row, link]
            wish = by_entity.query(here, by_entity.walk(here, second), source, query)
            scores = (wish[owner] * entities(candidates)).sum(1)
            largest = torch.full((ROWS,), -1e30, device=device)
            largest = largest.scatter_reduce(0, owner, scores.detach(), "amax", include_self=True)
            sums = torch.zeros(ROWS, device=device).index_add(0, owner, torch.exp(scores - largest[owner]))
            log_probs = scores - (largest + torch.log(sums))[owner]
            total = total + log_probs[row * CANDIDATES + picked]
        loss = -(rewards * total).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return timed(step)


def complex_():
    entities, relations = nn.Embedding(ENTITIES, 2 * WIDTH).to(device), nn.Embedding(RELATIONS, 2 * WIDTH).to(device)
    modules = nn.ModuleList([entities, relations])
    adam = torch.optim.Adam(modules.parameters())
    heads, links = torch.randint(ENTITIES, (QUERIES,), device=device), torch.randint(RELATIONS, (QUERIES,), device=device)
    answers = torch.randint(ENTITIES, (QUERIES * ANSWERS,), device=device)
    owner = torch.arange(QUERIES, device=device).repeat_interleave(ANSWERS)

    def step():
        hr, hi = entities(heads).split(WIDTH, 1)
        rr, ri = relations(links).split(WIDTH, 1)
        query = torch.cat([hr * rr - hi * ri, hr * ri + hi * rr], 1)
        labels = torch.full((QUERIES, ENTITIES), 0.1 / ENTITIES, device=device)
        labels[owner, answers] = 0.9 + 0.1 / ENTITIES
        loss = F.binary_cross_entropy_with_logits(query @ entities.weight.T, labels)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return timed(step)


for name, run in [("W1", policy), ("W2", complex_)]:
    if options.only in ("", name):
        print(f"PyTorch {torch.__version__}, {device}, {options.threads} threads, {name}: {run() * 1e3:.2f} ms a step", flush=True)
peak = torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(f"peak: {peak} MiB")
