"""A calibration as text: for a terminal, and in Markdown for ``docs/measuring.md`` between two marks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import partial

from groundspeed.analysis.roofline import memory_time
from groundspeed.analysis.rule import NOISE_PROCESSES, noise_floor
from groundspeed.analysis.stats import median
from groundspeed.calibrate.costs import COSTS
from groundspeed.calibrate.methods import BY_KEY, METHODS
from groundspeed.calibrate.schema import Calibration
from groundspeed.calibrate.summary import Figure, Verdict, absent, figures, flush_effect, gaps, verdicts
from groundspeed.records import Ceilings
from groundspeed.report.marks import replace_between
from groundspeed.report.style import pad, width
from groundspeed.report.units import clock, duration, percent, rate, significant

BEGIN = "<!-- calibration: begin; written by `groundspeed calibrate --markdown`, do not edit -->"
END = "<!-- calibration: end -->"

_PHASES = {
    "start": "starting (the next while one loads)",
    "load": "loading our timers",
    "peers": "other projects' methods",
    "probes": "our own",
}

Table = list[list[str]]
Draw = Callable[[Table], list[str]]


def replace_calibration(page: str, text: str, name: str) -> str:
    """A page with what stands between the marks replaced. Raises UserError when they are not there once."""
    return replace_between(page, BEGIN, END, f"\n\n{text}\n\n", name)


def markdown(calibration: Calibration | None, machine: str) -> str:
    """What goes between the marks."""
    if calibration is None:
        return f"There is no calibration of `{machine}` yet: type `groundspeed calibrate` there."
    return "\n".join(_sections(calibration, _markdown_table, "**{}**", _ways(calibration)))


def terminal(calibration: Calibration, columns: int = 80) -> str:
    """The same for a terminal: tables in so many columns, without the sentences on what each method reads."""
    ways = [[row[0], *row[2:]] for row in _ways(calibration)]
    lines = _sections(calibration, partial(_text_table, columns=columns), "{}", ways)
    return "\n".join(part for line in lines for part in _wrapped(line, columns))


def _sections(calibration: Calibration, draw: Draw, strong: str, ways: Table) -> list[str]:
    lines = [_caption(calibration), "", *draw(_scatter(calibration)), ""]
    beside = _beside(calibration)
    if len(beside[0]) > 2:
        lines += [strong.format("Beside other ways of timing"), "", *draw(beside), "", *draw(ways), ""]
    effect = flush_effect(calibration)
    lines += [effect, ""] if effect else []
    lines += _list([f"{title}: no figures: {reason}" for title, reason in absent(calibration).items()])
    lines += _list(gaps(calibration))
    lines += [
        strong.format("What must hold"),
        "",
        *_list([line for one in verdicts(calibration) for line in _held(one)]),
    ]
    lines += [strong.format("Costs and ceilings"), "", *draw(_costs(calibration)), ""]
    return "\n".join(lines).rstrip().split("\n")


def _caption(calibration: Calibration) -> str:
    environment = calibration.environment
    device = environment.device_name + (f", driver {environment.driver}" if environment.driver else "")
    dirty = " with changes" if calibration.dirty else ""
    commit = f", commit `{calibration.commit[:8]}`{dirty}" if calibration.commit else ""
    ran = f"{calibration.processes} processes one after another, {calibration.rounds} rounds of two equal sides in each"
    peers = f"; other ways of timing in {calibration.beside} of them" if calibration.beside else ""
    took = f"all of it took {clock(calibration.seconds)}"
    split = ", ".join(f"{_PHASES.get(name, name)} {clock(seconds)}" for name, seconds in calibration.phases.items())
    split = f" Of the processes: {split}." if split else ""
    return f"{device}, torch {environment.torch}; {calibration.started[:10]}{commit}. {ran}{peers}; {took}.{split}"


def _scatter(calibration: Calibration) -> Table:
    """A row a probe: our value, its scatter between and within processes, hot, and the noise floor of A/A."""
    known = figures(calibration)
    ratios: dict[tuple[str, str], list[float]] = {}
    for one in calibration.ratios:
        ratios.setdefault((one.probe, one.metric), []).append(one.log_ratio)
    rows = [["probe", "cold", "CV", "within", "hot", "CV, hot", "A/A floor"]]
    for probe in calibration.probes:
        cold = known.get((probe.name, calibration.timer))
        hot = known.get((probe.name, f"{calibration.timer}_hot"))
        floor = _floor(ratios.get((probe.name, "device_cold"), []))
        within = "–" if cold is None else _share(cold.spread)
        cells = [_time(cold), _cv_of(cold), within, _time(hot), _cv_of(hot)]
        rows.append([probe.name, *cells, floor])
    return rows


def _beside(calibration: Calibration) -> Table:
    """A row a probe, a column a method: value and, where several processes ran it, its CV."""
    known = figures(calibration)
    shown = [method for method in METHODS if any((probe.name, method.key) in known for probe in calibration.probes)]
    shown = [method for method in shown if method.key != f"{calibration.timer}_hot"]
    rows = [["probe", *(method.title for method in shown)]]
    for probe in calibration.probes:
        rows.append([probe.name, *(_value_and_cv(known.get((probe.name, method.key))) for method in shown)])
    return rows


def _ways(calibration: Calibration) -> Table:
    """A row a method: what it reads, its CV over the probes, seconds a reading."""
    known = figures(calibration)
    rows = [["method", "reads", "median CV", "largest CV", "processes", "s a reading"]]
    for method in METHODS:
        own = [one for (_, key), one in known.items() if key == method.key]
        if not own:
            continue
        cvs = [one.cv for one in own if one.cv is not None]
        spent = median([one.seconds for one in own])
        took = significant(spent, 2) if spent else f"with {BY_KEY[method.with_ or method.key].title}"
        scatter = [_share(median(cvs)), _share(max(cvs))] if cvs else ["–", "–"]
        rows.append([method.title, method.what, *scatter, str(max(one.processes for one in own)), took])
    return rows


def _costs(calibration: Calibration) -> Table:
    rows = [["what", "value", "CV"]]
    for name, words in COSTS.items():
        values = [one.value_ns for one in calibration.costs if one.name == name]
        if values:
            rows.append([words, duration(median(values)), _share(_cv(values))])
    for words, values, unit in _ceilings(calibration.ceilings):
        rows.append([words, rate(median(values), unit), _share(_cv(values))])
    return rows + [[words, value, cv] for words, value, cv in _mixes(calibration.ceilings)]


def _mixes(found: Sequence[Ceilings]) -> list[tuple[str, str, str]]:
    """A row a mix: what it reaches, and how far the model's ceiling is from that."""
    rows = []
    for name in dict.fromkeys(name for one in found for name in one.mixes):
        own = [one for one in found if name in one.mixes]
        reads, writes = map(int, name.split(":"))
        gaps = [_modelled(one, reads, writes) / one.mixes[name] - 1 for one in own]
        words = f"{reads} read to {writes} written; the model of ceilings: {median(gaps):+.1%}"
        rates = [one.mixes[name] for one in own]
        rows.append((words, rate(median(rates), "B/s"), _share(_cv(rates))))
    return rows


def _modelled(ceilings: Ceilings, reads: int, writes: int) -> float:
    """Bytes/s that the ceilings promise a mix."""
    size = 1 << 30
    return (reads + writes) * size / (1e-9 * (memory_time(ceilings, reads * size, writes * size) or math.inf))


def _ceilings(found: Sequence[Ceilings]) -> list[tuple[str, list[float], str]]:
    rows = [
        (f"ceiling: {kind} of device memory", [getattr(one, kind) for one in found], "B/s")
        for kind in ("copy", "read", "write")
    ]
    for dtype in dict.fromkeys(dtype for one in found for dtype in one.matmul):
        rows.append((f"ceiling: matmul 8192³, {dtype}", [one.matmul.get(dtype, 0.0) for one in found], "FLOP/s"))
    return [row for row in rows if row[1]]


def _held(verdict: Verdict) -> list[str]:
    words = {True: "holds", False: "does not hold", None: "not judged"}[verdict.held]
    return [f"{verdict.bound}: {words}: {verdict.found}", *(f"beyond it: {one}" for one in verdict.exceptions)]


def _floor(ratios: Sequence[float]) -> str:
    """The A/A floor that the gate would take; too few processes give none."""
    import numpy as np

    return percent(noise_floor(np.array(ratios))) if len(ratios) >= NOISE_PROCESSES else "–"


def _value_and_cv(one: Figure | None) -> str:
    return "–" if one is None else duration(one.value) + (f" ± {percent(one.cv)}" if one.cv is not None else "")


def _cv_of(one: Figure | None) -> str:
    return "–" if one is None else _share(one.cv)


def _time(one: Figure | None) -> str:
    return "–" if one is None else duration(one.value)


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _cv(values: Sequence[float]) -> float | None:
    import numpy as np

    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 and np.mean(values) else None


def _list(lines: Sequence[str]) -> list[str]:
    return [*(f"* {line}" for line in lines), ""] if lines else []


def _markdown_table(rows: Table) -> list[str]:
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    alignment = ["---", *["---:"] * (len(head) - 1)]
    return [f"| {' | '.join(row)} |" for row in (head, alignment, *body)]


def _text_table(rows: Table, columns: int) -> list[str]:
    """In columns, the first to the left; what is too wide goes on below, under the first column again."""
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    blocks: list[list[int]] = [[]]
    for at in range(1, len(widths)):
        if blocks[-1] and widths[0] + sum(widths[i] + 2 for i in [*blocks[-1], at]) > columns:
            blocks.append([])
        blocks[-1].append(at)
    lines: list[str] = []
    for block in blocks:
        lines += [""] if lines else []
        lines += [
            "  ".join([pad(row[0], widths[0]), *(pad(row[at], widths[at], ">") for at in block)]).rstrip()
            for row in rows
        ]
    return lines


def _wrapped(line: str, columns: int) -> list[str]:
    """Prose and lists in so many columns; rows of tables fit already."""
    if width(line) <= columns:
        return [line]
    return textwrap.wrap(line, columns, subsequent_indent="  " if line.startswith("* ") else "")
