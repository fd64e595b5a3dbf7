"""Progress: bars by tqdm, on a console and in a notebook, or a function of the caller."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, Union

# Whether to show bars, or a function that is told of the progress. It is called with the name of the stage, a step and
# figures: at the beginning of a stage and ten times a second with the steps done and `unit`, `total` and `text`; after
# every epoch of a training with the epoch, `epoch`, `seconds` and its figures. If it returns something true, the current
# stage ends early: a training keeps its best epoch.
Progress = Union[bool, Callable[[str, int, dict[str, Any]], Any]]


class Bars:
    """One bar per stage. The waiting thread calls it, ten times a second."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # tqdm warns about notebooks without widgets, where it falls back to text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        self._tqdm = tqdm
        self._bar: Any = None

    def begin(self, stage: str, unit: str, total: int | None) -> None:
        """A stage begins."""
        self.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._bar = self._tqdm(desc=stage, unit=f" {unit or 'it'}", total=total, dynamic_ncols=True)

    def advance(self, done: int, figures: str) -> None:
        """`done` units of the stage are done."""
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_postfix_str(figures, refresh=False)
            self._bar.refresh()

    def record(self, stage: str, epoch: int, seconds: float, figures: str) -> None:
        """A training has finished an epoch; bars show only the latest figures."""

    def end(self, summary: str) -> None:
        """The stage is over."""
        if self._bar is not None:
            if self._bar.total:
                self._bar.total = max(self._bar.n, 1)
            self._bar.set_postfix_str(summary, refresh=True)
        self.close()

    def close(self) -> None:
        """Closes the bar and leaves it on the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Calls:
    """Tells a function of the caller."""

    def __init__(self, call: Callable[[str, int, dict[str, Any]], Any]) -> None:
        self._call = call
        self._stage, self._unit, self._done = "", "", 0
        self._total: int | None = None

    def _tell(self, text: str) -> bool:
        figures = {"unit": self._unit, "total": self._total, "text": text}
        return bool(self._call(self._stage, self._done, figures))

    def begin(self, stage: str, unit: str, total: int | None) -> bool:
        """A stage begins."""
        self._stage, self._unit, self._total, self._done = stage, unit, total, 0
        return self._tell("")

    def advance(self, done: int, figures: str) -> bool:
        """`done` units of the stage are done."""
        self._done = done
        return self._tell(figures)

    def record(self, stage: str, epoch: int, seconds: float, figures: str) -> bool:
        """A training has finished an epoch."""
        return bool(self._call(stage, epoch, {"epoch": epoch, "seconds": seconds, **json.loads(figures)}))

    def end(self, summary: str) -> None:
        """The stage is over."""

    def close(self) -> None:
        """Nothing stays open."""


class shown:
    """`with shown(progress) as bars:` gives bars, what tells a function, or `None` if `progress` is false."""

    def __init__(self, progress: Progress) -> None:
        self._bars: Bars | Calls | None
        if callable(progress):
            self._bars = Calls(progress)
        elif isinstance(progress, bool):
            self._bars = Bars() if progress else None
        else:
            raise ValueError(f"progress: expected True, False or a function, found {progress!r}")

    def __enter__(self) -> Bars | Calls | None:
        return self._bars

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.close()
