"""Learning curves and figures in Weights & Biases: `python with_wandb.py`; `WANDB_MODE=offline` needs no account."""

import ruleguider as rg
import wandb

VECTORS = {"system": "embedding", "embed": {"model": "complex", "dimension": 32, "epochs": 10, "evaluate_every": 2}}

with wandb.init(project="ruleguider", config=VECTORS["embed"]) as run:

    def log(stage, step, figures):
        if "epoch" in figures:
            numbers = {name: value for name, value in figures.items() if isinstance(value, (int, float))}
            run.log({f"{stage}/{name}": value for name, value in numbers.items()})

    model = rg.learn(out="runs/wandb", config=VECTORS, progress=log)
    run.summary["test_mrr"] = model.evaluate(progress=False).mrr
