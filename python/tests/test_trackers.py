"""The examples for MLflow, Weights & Biases and TensorBoard, run offline with the real packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import skip

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def run(name: str, folder: Path, **environment: str) -> None:
    if find_spec(name) is None:
        skip(name, f"the example for {name}, which is not installed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"with_{name}.py")],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_mlflow_has_curves_and_figures(tmp_path: Path) -> None:
    store = (tmp_path / "mlruns").as_uri()
    run("mlflow", tmp_path, MLFLOW_TRACKING_URI=store, MLFLOW_ALLOW_FILE_STORE="true")
    metrics = {path.name: path.read_text().splitlines() for path in tmp_path.glob("mlruns/*/*/metrics/*")}
    assert len(metrics["embeddings.loss"]) == 10 and len(metrics["test.mrr"]) == 1
    assert 0 < float(metrics["test.mrr"][0].split()[1]) <= 1


def test_wandb_has_curves_and_figures(tmp_path: Path) -> None:
    run("wandb", tmp_path, WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(tmp_path))
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = log.read_bytes()
    assert b"embeddings/loss" in content and b"test_mrr" in content


def test_tensorboard_reads_the_run(tmp_path: Path) -> None:
    run("tensorboard", tmp_path)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (events,) = {path.parent for path in tmp_path.rglob("events.out.tfevents.*")}
    read = EventAccumulator(str(events))
    read.Reload()
    tags = read.Tags()["scalars"]
    losses = [tag for tag in tags if "loss" in tag]
    assert losses and len(read.Scalars(losses[0])) == 10, tags
    assert json.loads((tmp_path / "runs" / "tensorboard" / "results.json").read_text())["mrr"] > 0
