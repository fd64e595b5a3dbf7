"""Learning curves in TensorBoard: `python with_tensorboard.py`, then `tensorboard --logdir runs`."""

import ruleguider as rg

VECTORS = {"system": "embedding", "embed": {"model": "complex", "dimension": 32, "epochs": 10, "evaluate_every": 2}}

# The library writes the event files itself, into the run.
model = rg.learn(out="runs/tensorboard", config=VECTORS, tensorboard=True)
print(model.evaluate())
