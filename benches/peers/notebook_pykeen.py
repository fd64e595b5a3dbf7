"""PyKEEN on the split of examples/how_good.ipynb: `notebook_pykeen.py SECONDS OUT.json`, in an environment with PyKEEN and
ruleguider. ComplEx of dimension 64, all candidates as negatives, for as many epochs as fit into so many seconds of
processor time; none of it tuned."""

import functools
import json
import sys
import time

import pykeen
import torch
from pykeen.pipeline import pipeline
from pykeen.triples import CoreTriplesFactory

import ruleguider as rg

torch.set_num_threads(1)
seconds, out = float(sys.argv[1]), sys.argv[2]
graph = rg.Graph.demonstration()
entities, relations = len(graph.entities), len(graph.relations)
small = functools.partial(torch.nn.init.normal_, std=0.1)


def split(name):
    ids = torch.as_tensor(graph.triples(name).astype("int64"))
    return CoreTriplesFactory(ids, num_entities=entities, num_relations=relations, create_inverse_triples=name == "train")


def run(epochs):
    began = time.process_time()
    result = pipeline(
        training=split("train"),
        validation=split("valid"),
        testing=split("test"),
        model="ComplEx",
        model_kwargs={"embedding_dim": 64, "entity_initializer": small, "relation_initializer": small},
        optimizer="Adagrad",
        optimizer_kwargs={"lr": 0.1},
        training_loop="lcwa",
        loss="crossentropy",
        training_kwargs={"num_epochs": epochs, "batch_size": 256, "use_tqdm": False},
        evaluation_kwargs={"use_tqdm": False},
        random_seed=1,
        device="cpu",
    )
    return result, time.process_time() - began


_, few = run(5)
_, more = run(15)
epochs = max(5, int(15 + (seconds - more) / max((more - few) / 10, 1e-3)))
result, took = run(epochs)
metric = lambda name: result.get_metric(f"both.realistic.{name}")  # noqa: E731
figures = {
    "model": "PyKEEN " + pykeen.__version__ + ", ComplEx 64",
    "epochs": epochs,
    "processor_seconds": round(took, 1),
    "mrr": metric("inverse_harmonic_mean_rank"),
    "hits@1": metric("hits_at_1"),
    "hits@10": metric("hits_at_10"),
    "amri": metric("adjusted_arithmetic_mean_rank_index"),
}
with open(out, "w") as file:
    json.dump(figures, file, indent=2)
print(json.dumps(figures, indent=2))
