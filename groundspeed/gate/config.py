"""``[tool.groundspeed.gate]`` of pyproject.toml: thresholds, budgets, and what counts as the harness."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from groundspeed.analysis.rule import FRESH_PROCESSES, LEAST_FRESH, PROCESSES, ROUNDS
from groundspeed.analysis.tail_rule import TAIL_ROUNDS
from groundspeed.errors import UserError
from groundspeed.gate.metrics import METRICS, Metric

LEAST = {"processes": 5, "fresh_processes": LEAST_FRESH, "rounds": 8, "tail_rounds": 8}
# What measures and all that it imports, which tests/architecture/test_harness.py follows. What judges is not in it.
HARNESS = (
    "groundspeed/measure/*",
    "groundspeed/backends/*",
    "groundspeed/__init__.py",
    "groundspeed/analysis/__init__.py",
    "groundspeed/analysis/roofline.py",
    "groundspeed/analysis/shares.py",
    "groundspeed/analysis/stats.py",
    "groundspeed/build.py",
    "groundspeed/caches.py",
    "groundspeed/cores.py",
    "groundspeed/digest.py",
    "groundspeed/errors.py",
    "groundspeed/gate/__init__.py",
    "groundspeed/gate/paired.py",
    "groundspeed/guests.py",
    "groundspeed/installed.py",
    "groundspeed/kernel_names.py",
    "groundspeed/machine.py",
    "groundspeed/nvml.py",
    "groundspeed/operator.py",
    "groundspeed/records.py",
    "groundspeed/selection.py",
    "groundspeed/tree.py",
    "groundspeed/whole_files.py",
)


@dataclass(frozen=True)
class Override:
    """A threshold, or report only, for the series that all its patterns match. They are the shell's patterns."""

    operator: str = "*"
    implementation: str = "*"
    dtype: str = "*"
    metric: str = "*"
    threshold: float | None = None
    report_only: bool | None = None

    def matches(self, operator: str, implementation: str, dtype: str, metric: str) -> bool:
        return (
            fnmatchcase(operator, self.operator)
            and fnmatchcase(implementation, self.implementation)
            and fnmatchcase(dtype, self.dtype)
            and fnmatchcase(metric, self.metric)
        )


@dataclass(frozen=True)
class Limit:
    """The thresholds to try for one series, and whether it may fail the gate at all."""

    thresholds: tuple[float, ...]
    report_only: bool = False


@dataclass(frozen=True)
class Config:
    """The policy of one gate run.

    metrics
        Which of ``metrics.METRICS`` are judged.
    thresholds
        By metric, for all series; ``overrides`` come after, the last that matches wins.
    budget_seconds
        What is not measured by then could not be measured.
    untouched
        "fail" (exit 2) or "pass" when the change touches nothing that is measured.
    removed
        "fail" or "report" when head lacks an implementation or a case that base has.
    allow_list
        A TOML file of accepted regressions, relative to the project; it need not exist.
    harness
        Patterns of the files that measure: a change of one measures everything. "*" crosses folders.
    """

    metrics: tuple[str, ...] = tuple(METRICS)
    thresholds: Mapping[str, float] | None = None
    overrides: tuple[Override, ...] = ()
    processes: int = PROCESSES
    fresh_processes: int = FRESH_PROCESSES
    rounds: int = ROUNDS
    tail_rounds: int = TAIL_ROUNDS
    tier: str = ""
    budget_seconds: float = 1800.0
    untouched: str = "fail"
    removed: str = "fail"
    accept_trailers: bool = True
    allow_list: str = "perf-accepted.toml"
    harness: tuple[str, ...] = HARNESS

    def limit(self, operator: str, implementation: str, dtype: str, metric: Metric, device: str) -> Limit:
        """What one series is held to. On a CPU, device time starts at the last of its default thresholds."""
        thresholds = metric.thresholds[-1:] if device == "cpu" else metric.thresholds
        if self.thresholds and metric.name in self.thresholds:
            thresholds = (self.thresholds[metric.name],)
        report_only = False
        for override in self.overrides:
            if override.matches(operator, implementation, dtype, metric.name):
                if override.threshold is not None:
                    thresholds = (override.threshold,)
                if override.report_only is not None:
                    report_only = override.report_only
        return Limit(thresholds, report_only)


def read_config(pyproject: str, source: str = "pyproject.toml") -> Config:
    """The policy in the text of a pyproject.toml; defaults where it says nothing.

    Raises UserError for text that is no TOML, an unknown key (with the nearest known one) or a value out of range.
    """
    try:
        table = tomllib.loads(pyproject).get("tool", {}).get("groundspeed", {}).get("gate", {})
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: {error}") from error
    where = f"{source} [tool.groundspeed.gate]"
    if not isinstance(table, dict):
        raise UserError(f"{where}: expected a table, got {table!r}")
    values = dict(table)
    entries = values.pop("override", [])
    if "budget" in values:
        values["budget_seconds"] = parse_duration(values.pop("budget"), f"{where} budget")
    _check_keys(values, [field.name for field in fields(Config) if field.name != "overrides"], where)
    if not isinstance(entries, list):
        raise UserError(f"{where}: override is a list of tables: write [[tool.groundspeed.gate.override]]")
    for name in ("metrics", "harness"):
        if name in values:
            values[name] = _strings(values[name], f"{where} {name}")
    if "thresholds" in values:
        values["thresholds"] = _thresholds(values["thresholds"], where)
    config = Config(**values, overrides=tuple(_override(entry, where) for entry in entries))
    _check_values(config, where)
    return config


def parse_duration(text: object, where: str) -> float:
    """Seconds of ``90s``, ``10m``, ``1h`` or a bare number of seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", str(text).strip())
    if not match or float(match[1]) == 0:
        raise UserError(f"{where}: {text!r} is no duration, expected something like 90s, 10m or 1h")
    return float(match[1]) * {"s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}[match[2]]


def parse_threshold(text: str) -> tuple[str, float]:
    """``device_cold=0.02`` as typed on the command line."""
    name, _, number = text.partition("=")
    if name not in METRICS:
        raise UserError(f"--threshold {text}: unknown metric {name!r}{_near(name, METRICS)}")
    try:
        value = float(number)
    except ValueError:
        raise UserError(f"--threshold {text}: {number!r} is no number; 0.03 is 3 %") from None
    _check_threshold(value, f"--threshold {name}")
    return name, value


def _override(entry: object, where: str) -> Override:
    where = f"{where} override"
    if not isinstance(entry, dict):
        raise UserError(f"{where}: expected a table, got {entry!r}")
    _check_keys(entry, [field.name for field in fields(Override)], where)
    for name in ("operator", "implementation", "dtype", "metric"):
        if not isinstance(entry.get(name, ""), str):
            raise UserError(f"{where}: {name} = {entry[name]!r}, expected a pattern in quotes")
    metric = entry.get("metric", "*")
    if not any(fnmatchcase(name, metric) for name in METRICS):
        raise UserError(f"{where}: no metric matches {metric!r}: there are {', '.join(METRICS)}")
    if "threshold" in entry:
        _check_threshold(entry["threshold"], f"{where} threshold")
    if not isinstance(entry.get("report_only", False), bool):
        raise UserError(f"{where}: report_only = {entry['report_only']!r}, expected true or false")
    if "threshold" not in entry and "report_only" not in entry:
        raise UserError(f"{where}: names neither a threshold nor report_only")
    return Override(**entry)


def _thresholds(table: Any, where: str) -> dict[str, float]:
    where = f"{where} thresholds"
    if not isinstance(table, dict):
        raise UserError(f"{where}: expected a table of metric = T, got {table!r}")
    _check_keys(table, METRICS, where)
    for name, value in table.items():
        _check_threshold(value, f"{where} {name}")
    return table


def _check_threshold(value: object, where: str) -> None:
    # A percentage typed as 3 instead of 0.03 must not switch the gate off.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 2:
        raise UserError(f"{where} = {value!r}: expected a share between 0 and 2; 0.03 is 3 %")


def _check_values(config: Config, where: str) -> None:
    for name in LEAST:
        value, least = getattr(config, name), LEAST[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UserError(f"{where}: {name} = {value!r}, expected a whole number of at least {least}")
    for name, words in (("untouched", ("fail", "pass")), ("removed", ("fail", "report"))):
        if getattr(config, name) not in words:
            raise UserError(f"{where}: {name} = {getattr(config, name)!r}, expected {' or '.join(words)}")
    if config.tier not in ("", "small", "core", "full"):
        raise UserError(f"{where}: tier = {config.tier!r}, expected small, core or full")
    if not isinstance(config.accept_trailers, bool):
        raise UserError(f"{where}: accept_trailers = {config.accept_trailers!r}, expected true or false")
    if not isinstance(config.allow_list, str):
        raise UserError(f"{where}: allow_list = {config.allow_list!r}, expected a file name in quotes")
    if not config.metrics:
        raise UserError(f"{where}: metrics is empty, so nothing would be judged")
    for metric in config.metrics:
        if metric not in METRICS:
            raise UserError(f"{where}: unknown metric {metric!r}{_near(metric, METRICS)}")


def _check_keys(table: Mapping[str, object], known: Iterable[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise UserError(f"{where}: unknown key {key!r}{_near(key, known)}")


def _strings(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UserError(f"{where} = {value!r}: expected a list of strings")
    return tuple(value)


def _near(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
