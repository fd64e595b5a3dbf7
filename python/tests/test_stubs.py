"""The types that are promised are those that are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def test_the_stubs_say_what_the_module_has() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "ruleguider", "--mypy-config-file", str(PACKAGE / "pyproject.toml")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed() -> None:
    command = [sys.executable, "-m", "mypy", "ruleguider"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE)
    assert done.returncode == 0, done.stdout + done.stderr
