"""What a package needs apart from its code: licences, and a word to those who have no Rust."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["LICENSE-MIT", "LICENSE-APACHE"])
def test_the_licences_are_the_texts(name: str) -> None:
    text = (PYTHON / name).read_text()
    assert text == (PYTHON.parent / name).read_text() and len(text) > 1000


@pytest.mark.parametrize("hook", ["get_requires_for_build_wheel", "get_requires_for_build_editable"])
def test_without_rust_one_line_says_what_to_do(hook: str) -> None:
    program = f"import ruleguider_backend; ruleguider_backend.{hook}({{}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PATH": "", "PYTHONPATH": str(PYTHON / "backend")}
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "needs Rust" in done.stderr and "https://rustup.rs" in done.stderr


def test_the_backend_has_maturins_hooks() -> None:
    """pip calls a hook only if the backend has it."""
    sys.path.insert(0, str(PYTHON / "backend"))
    try:
        import ruleguider_backend
    finally:
        sys.path.pop(0)
    hooks = {name for name in vars(ruleguider_backend) if name.startswith(("build_", "get_requires_", "prepare_"))}
    kinds = ("wheel", "editable")
    assert hooks == {"build_sdist", "get_requires_for_build_sdist"}.union(
        *({f"build_{kind}", f"get_requires_for_build_{kind}", f"prepare_metadata_for_build_{kind}"} for kind in kinds)
    )
