"""Progress as tqdm shows it, on a console and in a notebook."""

from __future__ import annotations

import warnings
from typing import Any


class Bars:
    """One bar a stage. The library calls it from the thread that waits for it, ten times a second."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # A notebook without widgets has bars of text; that needs no remark.
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
        """So much of it is done."""
        if self._bar is not None:
            self._bar.n = done
            self._bar.set_postfix_str(figures, refresh=False)
            self._bar.refresh()

    def end(self, summary: str) -> None:
        """It is over."""
        if self._bar is not None:
            if self._bar.total:
                self._bar.total = max(self._bar.n, 1)
            self._bar.set_postfix_str(summary, refresh=True)
        self.close()

    def close(self) -> None:
        """Leaves what is shown as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class shown:
    """`with shown(True) as bars:` has bars, or `None` where nobody wants to see any."""

    def __init__(self, progress: bool) -> None:
        self._bars = Bars() if progress else None

    def __enter__(self) -> Bars | None:
        return self._bars

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.close()
