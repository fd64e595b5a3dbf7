"""The same with PyKEEN: `task_pykeen.py DATA EPOCHS HEAD RELATION`. It has no reasons to give."""

import sys

from pykeen.pipeline import pipeline
from pykeen.predict import predict_target
from pykeen.triples import TriplesFactory

data, epochs, head, relation = sys.argv[1:]
training = TriplesFactory.from_path(f"{data}/train.txt")
ids = {"entity_to_id": training.entity_to_id, "relation_to_id": training.relation_to_id}
result = pipeline(
    training=training,
    validation=TriplesFactory.from_path(f"{data}/valid.txt", **ids),
    testing=TriplesFactory.from_path(f"{data}/test.txt", **ids),
    model="ComplEx",
    model_kwargs={"embedding_dim": 200},
    optimizer_kwargs={"lr": 0.01},
    training_kwargs={"num_epochs": int(epochs), "batch_size": 1024},
    random_seed=1,
    device="cpu",
)
print(predict_target(model=result.model, head=head, relation=relation, triples_factory=training).df.head(3))
print("MRR, both directions:", result.get_metric("both.realistic.inverse_harmonic_mean_rank"))
