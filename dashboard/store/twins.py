"""asv's copies of our own measurements: its answers are replayed from our records, and would count twice."""

from __future__ import annotations

import polars as pl

QUESTIONS = frozenset({"device_time", "call_time", "first_call", "peak_memory", "error"})  # the modules of benchmarks/

Sweep = tuple[str, str, str]  # machine, commit, operator


def sweeps(runs: pl.DataFrame) -> frozenset[Sweep]:
    """The sweeps that our records hold."""
    ours = runs.filter(pl.col("project") == "groundspeed", pl.col("commit") != "")
    return frozenset(ours.select(pl.col("machine", "commit", "operator").cast(pl.String)).iter_rows())


def operator_of(benchmark: str) -> str:
    """The operator that one of our asv benchmarks asks about (``device_time.softmax.cold``); "" for any other."""
    question, _, rest = benchmark.partition(".")
    return rest.partition(".")[0] if question in QUESTIONS else ""


def asked(measurements: pl.DataFrame) -> pl.DataFrame:
    """The distinct (machine, commit, operator) of a chunk's asv rows that could be copies; ``operator`` as asv has it.

    Made once a chunk: the set of names is small, whatever the number of rows.
    """
    rows = measurements.filter(pl.col("project") == "asv").select("machine", "commit", "operator").unique()
    return rows.filter([bool(operator_of(name)) for name in rows["operator"]])


def copies(candidates: pl.DataFrame, known: frozenset[Sweep]) -> pl.DataFrame:
    """Those of ``asked`` whose sweep our records hold."""
    keep = [(m, c, operator_of(o)) in known for m, c, o in candidates.iter_rows()]
    return candidates.filter(pl.Series(keep, dtype=pl.Boolean))


def without(measurements: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """The rows that are no copies."""
    if found.is_empty():
        return measurements
    return measurements.join(found, on=["machine", "commit", "operator"], how="anti", maintain_order="left")
