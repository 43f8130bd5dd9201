"""What a link asks for, resolved against the results there are."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dashboard.components.numbers import quantity
from dashboard.components.palette import BASELINE
from dashboard.frames import Frames
from dashboard.state import State
from dashboard.store import METRICS, Metric

OUR_PROJECT = "groundspeed"
DEFAULT_METRIC = "device_cold"
CPU_LABELS = {  # a CPU has no device clock and no L2 of a GPU's kind: its times are wall times
    "device_cold": "Wall time, cold caches",
    "device_hot": "Wall time, hot caches",
    "device_cold_p99": "Wall time, p99",
    "device_cold_p95": "Wall time, p95",
    "device_hot_p99": "Wall time, hot caches, p99",
}


@dataclass(frozen=True)
class View:
    """One page's question: a machine, a kind of results, a metric, a baseline, a dtype ("" = every one)."""

    state: State
    frames: Frames
    machine: str
    project: str
    metric: Metric
    baseline: str
    dtype: str
    device: dict[str, Any]  # what is known of the machine
    notes: tuple[str, ...] = ()  # what the link asked for and the results lack

    @property
    def ours(self) -> bool:
        """Whether these are groundspeed's own records, with implementations and cases."""
        return self.project == OUR_PROJECT

    @property
    def unit(self) -> str:
        return "1" if self.metric.name == "roofline" else self.metric.unit

    def show(self, value: float | None, unit: str = "") -> str:
        """A value of the metric with its unit; ``unit`` for foreign rows, which bring their own."""
        return quantity(value, unit or self.unit)

    def latest(self) -> pl.DataFrame:
        """Newest rows of the machine, in the chosen dtype."""
        return self._in_dtype(self.frames.latest(self.machine, self.project))

    def speedups(self) -> pl.DataFrame:
        """The same with baseline_value, speedup and paired."""
        return self._in_dtype(self.frames.speedups(self.machine, self.project, self.metric.name, self.baseline))

    def operators(self) -> tuple[str, ...]:
        return self.frames.choices(self.machine, self.project, "operator")

    def operator(self) -> str:
        """The operator that the link names, else the first."""
        names = self.operators()
        asked = self.state.get("operator")
        return asked if asked in names else names[0] if names else ""

    def _in_dtype(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("dtype") == self.dtype) if self.dtype else frame


def resolve(state: State, frames: Frames) -> View | None:
    """The view of a link; None when there are no results at all. Unknown names fall back and are told."""
    machines = machine_names(frames)
    if not machines:
        return None
    notes: list[str] = []
    machine = _pick("machine", state.get("machine"), machines, machines[0], notes)
    details = machine_details(frames, machine)
    projects = project_names(frames, machine)
    first = OUR_PROJECT if OUR_PROJECT in projects else projects[0]
    project = _pick("results", state.get("project"), projects, first, notes)
    metrics = {metric.name: metric for metric in frames.metrics(machine, project)}
    usual = DEFAULT_METRIC if project == OUR_PROJECT or not metrics else next(iter(metrics))
    asked = _pick("metric", state.get("metric"), tuple(METRICS), usual, notes)
    if asked not in metrics and metrics:
        if state.get("metric"):
            notes.append(f"{machine} has no values of {metric_on(details, asked).label.lower()}.")
        asked = usual if usual in metrics else next(iter(metrics))
    implementations = frames.choices(machine, project, "implementation")
    usual_baseline = BASELINE if BASELINE in implementations else next(iter(implementations), "")
    baseline = _pick("baseline", state.get("baseline"), implementations, usual_baseline, notes)
    dtype = _pick("dtype", state.get("dtype"), frames.choices(machine, project, "dtype"), "", notes)
    return View(state, frames, machine, project, metric_on(details, asked), baseline, dtype, details, tuple(notes))


def unknown_operator(view: View, instead: str) -> str | None:
    """What to tell of a link that names an operator of which there is nothing, and shows ``instead``; None for others.

    ``instead`` is "" where a page shows nothing in its place.
    """
    asked = view.state.get("operator")
    if not asked or asked in view.operators():
        return None
    shown = f"; {instead} is shown" if instead else ""
    return f"The link asks for operator “{asked}”, which these results do not have{shown}."


def machine_names(frames: Frames) -> tuple[str, ...]:
    """Machines with rows: ours before other projects', GPUs before CPUs, then the one measured last first."""

    def make() -> tuple[str, ...]:
        rows = frames.snapshot.machines.filter(pl.col("rows") > 0).to_dicts()
        rows.sort(key=lambda row: row["last"].timestamp() if row["last"] else 0, reverse=True)
        ours = set(frames.snapshot.runs.filter(pl.col("project") == OUR_PROJECT).get_column("machine").to_list())
        rows.sort(key=lambda row: (row["machine"] not in ours, is_cpu(machine_details(frames, row["machine"]))))
        return tuple(row["machine"] for row in rows)

    return frames.once(("machines",), make)


def project_names(frames: Frames, machine: str) -> tuple[str, ...]:
    """Kinds of results of one machine. Rows count, not files: what asv keeps of our own runs is not shown twice."""

    def make() -> tuple[str, ...]:
        rows = frames.snapshot.latest.filter(pl.col("machine") == machine)
        return tuple(sorted(rows.get_column("project").cast(pl.String).unique().to_list()))

    return frames.once(("projects", machine), make)


def machine_details(frames: Frames, machine: str) -> dict[str, Any]:
    """What machine.json says of a machine, and over it what our newest run there saw itself."""

    def make() -> dict[str, Any]:
        rows = frames.snapshot.machines.filter(pl.col("machine") == machine).to_dicts()
        runs = frames.snapshot.runs.filter((pl.col("machine") == machine) & (pl.col("project") == OUR_PROJECT))
        newest = runs.sort("started", descending=True, nulls_last=True).head(1).to_dicts()
        return {**(_object(rows[0]["details"]) if rows else {}), **(_object(newest[0]["details"]) if newest else {})}

    return frames.once(("details", machine), make)


def is_cpu(details: dict[str, Any]) -> bool:
    """Whether a machine's timings are a CPU's: ours say so, and a foreign project names no GPU."""
    return str(details.get("device", "")) == "cpu" or not (details.get("device") or details.get("gpu"))


def metric_on(details: dict[str, Any], name: str) -> Metric:
    """A metric as it is called on a machine of these details."""
    metric = METRICS[name]
    return replace(metric, label=CPU_LABELS.get(name, metric.label)) if is_cpu(details) else metric


def device_label(details: dict[str, Any]) -> str:
    """What the times were measured on, in words: never left out, so that no CPU time passes for a GPU's."""
    name = str(details.get("device_name") or details.get("gpu") or details.get("cpu") or "unknown device")
    return f"CPU: {name}" if is_cpu(details) else f"GPU: {name}"


def _object(text: str | None) -> dict[str, Any]:
    loaded = json.loads(text) if text else {}
    return loaded if isinstance(loaded, dict) else {}


def _pick(what: str, asked: str, known: tuple[str, ...], default: str, notes: list[str]) -> str:
    if asked and asked not in known:
        notes.append(
            f"The link asks for {what} “{asked}”, which these results do not have; {default or 'all'} is shown."
        )
        return default
    return asked or default
