"""Tables for pandas, polars and notebooks."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any


class Table:
    """A result with columns."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The table as columns, all of the same length."""

    def to_pandas(self) -> Any:
        """The table as a pandas frame."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The table as a polars frame."""
        import polars

        return polars.DataFrame(self.columns(), strict=False, infer_schema_length=None)


def rows(columns: dict[str, list[Any]], most: int) -> str:
    """The first rows as text, with aligned columns."""
    names = list(columns)
    count = len(columns[names[0]]) if names else 0
    lines = [names] + [[said(columns[name][row]) for name in names] for row in range(min(count, most))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    if count > most:
        text.append(f"… and {count - most:,} more")
    return "\n".join(text)


def said(value: Any) -> str:
    """A value as the text of a cell."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value).replace("\n", " ")
    return text if len(text) <= 90 else text[:89] + "…"
