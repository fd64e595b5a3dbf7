"""maturin, but where there is no Rust it says what to do: maturin would try to download a toolchain of its own, and where that is
impossible pip shows a page of traceback."""

from __future__ import annotations

import importlib
import shutil
import sys
from typing import Any

MESSAGE = (
    "ruleguider: building from source needs Rust, and there is no `cargo` on the PATH; "
    "install it from https://rustup.rs and run pip again, or install a wheel: `pip install ruleguider`"
)


def _maturin(hook: str, *given: Any) -> Any:
    """Calls maturin's hook of this name."""
    if shutil.which("cargo") is None:
        sys.exit(MESSAGE)
    return getattr(importlib.import_module("maturin"), hook)(*given)


def get_requires_for_build_wheel(config_settings: Any = None) -> Any:
    return _maturin("get_requires_for_build_wheel", config_settings)


def get_requires_for_build_editable(config_settings: Any = None) -> Any:
    return _maturin("get_requires_for_build_editable", config_settings)


def get_requires_for_build_sdist(config_settings: Any = None) -> Any:
    return _maturin("get_requires_for_build_sdist", config_settings)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> Any:
    return _maturin("prepare_metadata_for_build_wheel", metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: Any = None) -> Any:
    return _maturin("prepare_metadata_for_build_editable", metadata_directory, config_settings)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> Any:
    return _maturin("build_wheel", wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> Any:
    return _maturin("build_editable", wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> Any:
    return _maturin("build_sdist", sdist_directory, config_settings)
