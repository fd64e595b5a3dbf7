"""Learning curves and figures in MLflow: `python with_mlflow.py`, then `mlflow ui`."""

import mlflow
import ruleguider as rg

VECTORS = {"system": "embedding", "embed": {"model": "complex", "dimension": 32, "epochs": 10, "evaluate_every": 2}}


def log(stage, step, figures):
    if "epoch" in figures:
        numbers = {name: value for name, value in figures.items() if isinstance(value, (int, float))}
        # MLflow allows no @ in a name.
        mlflow.log_metrics({f"{stage}.{name}".replace("@", "_at_"): one for name, one in numbers.items()}, step=step)


with mlflow.start_run():
    mlflow.log_params(VECTORS["embed"])
    model = rg.learn(out="runs/mlflow", config=VECTORS, progress=log)
    mlflow.log_metric("test.mrr", model.evaluate(progress=False).mrr)
