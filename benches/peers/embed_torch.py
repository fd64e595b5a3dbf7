"""ComplEx against all entities in plain PyTorch: the peer of benches/embed.rs. Prints the seconds of a step.

usage: embed_torch.py FACTS.tsv ENTITIES RELATIONS EPOCHS THREADS
"""
import collections
import sys
import time

import torch
import torch.nn.functional as F

path, entities, relations, epochs, threads = sys.argv[1], *map(int, sys.argv[2:6])
torch.set_num_threads(threads)
torch.manual_seed(1)
DIM, BATCH, DROPOUT, SMOOTHING, RATE = 200, 512, 0.3, 0.1, 0.003

answers = collections.defaultdict(set)
for line in open(path):
    head, relation, tail = map(int, line.split())
    answers[head, 2 * relation].add(tail)
    answers[tail, 2 * relation + 1].add(head)
queries = torch.tensor(list(answers))
lists = [torch.tensor(sorted(found)) for found in answers.values()]

entity = torch.nn.Embedding(entities, 2 * DIM)
relation = torch.nn.Embedding(2 * relations, 2 * DIM)
for table in (entity, relation):
    torch.nn.init.xavier_normal_(table.weight)
optimiser = torch.optim.Adam([*entity.parameters(), *relation.parameters()], lr=RATE)


def step(numbers):
    subject, link = queries[numbers].T
    a, b = F.dropout(entity(subject), DROPOUT).chunk(2, 1)
    u, v = F.dropout(relation(link), DROPOUT).chunk(2, 1)
    query = torch.cat([a * u - b * v, a * v + b * u], 1)
    scores = query @ entity.weight.T
    labels = torch.full_like(scores, SMOOTHING / entities)
    rows = torch.cat([torch.full((len(lists[n]),), i) for i, n in enumerate(numbers)])
    labels[rows, torch.cat([lists[n] for n in numbers])] += 1 - SMOOTHING
    loss = F.binary_cross_entropy_with_logits(scores, labels)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()


steps, began = 0, time.perf_counter()
for _ in range(epochs):
    order = torch.randperm(len(queries))
    for start in range(0, len(order), BATCH):
        step(order[start:start + BATCH].tolist())
        steps += 1
print((time.perf_counter() - began) / steps)
