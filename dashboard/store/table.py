"""Builds frames of the store's schemas from blocks of rows: values that a block shares are given once.

A list of dicts costs microseconds a value; here a shared value costs nothing a row, a row's own label one look-up in a
dictionary, and a column that a block leaves out nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dashboard.store.schema import TIME


class _Codes(dict[str, int]):
    """Label -> its number, given out as labels are first asked for."""

    def __missing__(self, label: str) -> int:
        code = self[label] = len(self)
        return code


class _Labels:
    """A Categorical column as codes into its own dictionary; "" where nothing was put."""

    def __init__(self) -> None:
        self._codes = _Codes({"": 0})
        self._parts: list[npt.NDArray[np.uint32]] = []
        self._runs: list[tuple[int, int]] = []  # (code, count), not yet a part
        self._end = 0

    def repeat(self, start: int, count: int, label: str | None) -> None:
        self._fill(start)
        self._runs.append((self._codes[label or ""], count))
        self._end = start + count

    def extend(self, start: int, labels: Sequence[str]) -> None:
        self._fill(start)
        self._flush()
        codes = map(self._codes.__getitem__, labels)
        self._parts.append(np.fromiter(codes, np.uint32, len(labels)))
        self._end = start + len(labels)

    def _fill(self, to: int) -> None:
        if to > self._end:
            self._runs.append((0, to - self._end))

    def _flush(self) -> None:
        if self._runs:
            codes, counts = np.array(self._runs, np.uint32).T
            self._parts.append(np.repeat(codes, counts))
            self._runs.clear()

    def series(self, name: str, dtype: pl.DataType, rows: int) -> pl.Series:
        self._fill(rows)
        self._flush()
        codes = np.concatenate(self._parts) if self._parts else np.empty(0, np.uint32)
        return pl.Series(name, list(self._codes), dtype).gather(codes)


class _Numbers:
    """A numeric, Boolean or time column; null where nothing, None or NaN was put."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, npt.NDArray[np.float64]]] = []

    def repeat(self, start: int, count: int, value: float | None) -> None:
        if value is not None:
            self._parts.append((start, np.full(count, value, np.float64)))

    def extend(self, start: int, values: Sequence[float | None] | npt.NDArray[np.float64]) -> None:
        self._parts.append((start, np.asarray(values, np.float64)))

    def series(self, name: str, dtype: pl.DataType, rows: int) -> pl.Series:
        if not self._parts:
            return pl.Series(name, [], dtype).extend_constant(None, rows)
        values = np.full(rows, np.nan)
        for start, part in self._parts:
            values[start : start + len(part)] = part
        series = pl.Series(name, values, nan_to_null=True)
        # Milliseconds of any year that a result names are whole and exact in a float64. Out of range is unknown: null.
        return series.cast(pl.Int64).cast(dtype) if dtype == TIME else series.cast(dtype, strict=False)


class Table:
    """Rows under construction."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = schema
        self._columns: dict[str, _Labels | _Numbers] = {
            name: _Labels() if isinstance(dtype, pl.Categorical) else _Numbers() for name, dtype in schema.items()
        }
        self.rows = 0

    def add(self, count: int, shared: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> None:
        """``count`` rows: ``shared`` holds one value for all of them, ``own`` a sequence of ``count`` values.

        A column in neither is "" (labels) or null (numbers and times); one in both is the row's own.
        """
        own = own or {}
        for name, value in shared.items():
            if name not in own:
                self._columns[name].repeat(self.rows, count, value)
        for name, values in own.items():
            self._columns[name].extend(self.rows, values)
        self.rows += count

    def frame(self) -> pl.DataFrame:
        """The rows so far, in the schema's columns and types."""
        return pl.DataFrame(
            [self._columns[name].series(name, dtype, self.rows) for name, dtype in self._schema.items()]
        )
