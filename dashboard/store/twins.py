"""asv's copies of our own measurements: its answers are replayed from our records, and would count twice."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from dashboard.store.schema import RUNS, empty

QUESTIONS = frozenset({"device_time", "call_time", "first_call", "peak_memory", "error"})  # the modules of benchmarks/

SWEEP = ("machine", "commit", "operator")
_OURS = rf"^(?:{'|'.join(sorted(QUESTIONS))})\.([^.]+)"


def sweeps(runs: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """The sweeps that our records hold."""
    ours = (pl.col("project") == "groundspeed") & (pl.col("commit") != "")
    return pl.concat([empty(RUNS).select(SWEEP), *(each.filter(ours).select(SWEEP) for each in runs)])


def operator_of(benchmark: str) -> str:
    """The operator that one of our asv benchmarks asks about (``device_time.softmax.cold``); "" for any other."""
    question, _, rest = benchmark.partition(".")
    return rest.partition(".")[0] if question in QUESTIONS else ""


def may_hold(runs: pl.DataFrame, known: pl.DataFrame) -> bool:
    """Whether asv measured, in these runs, a machine's commit of which our records hold something."""
    of_asv = runs.lazy().filter(pl.col("project") == "asv")
    return not of_asv.join(known.lazy(), on=["machine", "commit"], how="semi").limit(1).collect().is_empty()


def asked(rows: pl.LazyFrame) -> pl.DataFrame:
    """The distinct (machine, commit, operator) of a chunk's asv rows that could be copies; ``operator`` as asv has it.

    Made once a chunk: the set of names is small, whatever the number of rows.
    """
    ours = pl.col("operator").cast(pl.String).str.contains(_OURS)
    return rows.filter(pl.col("project") == "asv").select(SWEEP).unique().filter(ours).collect()


def copies(candidates: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Those of ``asked`` whose sweep our records hold."""
    words = known.with_columns(pl.col("operator").cast(pl.String).alias("about"))
    about = pl.col("operator").cast(pl.String).str.extract(_OURS)
    on = ["machine", "commit", "about"]
    return candidates.with_columns(about=about).join(words, on=on, how="semi").select(SWEEP).sort(SWEEP)


def without(rows: pl.LazyFrame, found: pl.DataFrame) -> pl.LazyFrame:
    """The rows that are no copies."""
    return rows.join(found.lazy(), on=list(SWEEP), how="anti", maintain_order="left")
