"""Progress bars by tqdm, on a console and in a notebook."""

from __future__ import annotations

import warnings
from typing import Any


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


class shown:
    """`with shown(progress) as bars:` gives bars, or `None` if `progress` is false."""

    def __init__(self, progress: bool) -> None:
        self._bars = Bars() if progress else None

    def __enter__(self) -> Bars | None:
        return self._bars

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.close()
