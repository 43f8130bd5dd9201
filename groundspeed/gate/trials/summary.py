"""The tables of what the gate caught, for docs/gating.md, with exact intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from groundspeed.analysis.rule import Verdict
from groundspeed.analysis.stats import median
from groundspeed.gate.trials.assignment import SIZES
from groundspeed.gate.trials.intervals import clopper_pearson
from groundspeed.gate.trials.record import Done, Line, Trial
from groundspeed.report.marks import replace_between

BEGIN, END = "<!-- trials: begin; written by `make gate-trials`, do not edit -->", "<!-- trials: end -->"
DURATIONS = ((5, 10), (10, 30), (30, 100), (100, 300), (300, 1000))  # µs, the upper end not included but for the last
ON_TARGET = (0.90, 1.30)  # of the size: what came out otherwise is counted apart, whatever the gate said of it
UNCHANGED = 0.005  # a control whose true ratio is further from 1 is none


def on_target(trial: Trial) -> bool:
    """Whether what was planted came out as it should, by what was measured apart."""
    low, high = ON_TARGET
    return trial.size > 0 and low * trial.size <= trial.true_ratio - 1 <= high * trial.size


def caught(trial: Trial) -> bool:
    return trial.verdict == Verdict.REGRESSED


def is_control(trial: Trial) -> bool:
    return trial.size == 0 and abs(trial.true_ratio - 1) <= UNCHANGED


def share(trials: Sequence[Trial]) -> str:
    """``31/32 (84–100 %)``, or a dash where there is none."""
    if not trials:
        return "–"
    hits = sum(map(caught, trials))
    low, high = clopper_pearson(hits, len(trials))
    return f"{hits}/{len(trials)} ({100 * low:.0f}–{100 * high:.0f} %)"


def section(lines: Mapping[str, Sequence[Line]]) -> str:
    """All of it in Markdown, a part a machine."""
    if not lines:
        return "No slowdown has been planted on a GPU yet."
    return "\n\n".join(_machine(machine, found) for machine, found in sorted(lines.items()))


def _machine(machine: str, lines: Sequence[Line]) -> str:
    trials = [line for line in lines if isinstance(line, Trial)]
    hit = [trial for trial in trials if on_target(trial)]
    tables = [_by_duration(hit), _by_kind(hit)] if hit else []
    parts = [_caption(machine, lines, hit), *tables, _rest(trials)]
    missed = _missed(hit)
    return "\n\n".join([*parts, *([missed] if missed else [])])


def _caption(machine: str, lines: Sequence[Line], hit: Sequence[Trial]) -> str:
    operators, backends = {t.operator for t in hit}, {t.implementation.partition("_")[0] for t in hit}
    runs = [line for line in lines if isinstance(line, Done)]
    minutes = sum(line.seconds for line in runs) / 60
    times = [trial.base_ns / 1000 for trial in hit]
    spread = f", device times from {min(times):.1f} to {max(times):.0f} µs" if times else ""
    return (
        f"**{machine}.** Planted slowdowns: {len(hit)}, in {len(operators)} operators and {len(backends)} back ends "
        f"({', '.join(sorted(backends)) or 'none'}){spread}; planted commits: {len(runs)}, in {minutes:.0f} minutes."
    )


def _by_duration(trials: Sequence[Trial]) -> str:
    titles = ["size", "true ratio, median (range)", "T", *(f"{low}–{high} µs" for low, high in DURATIONS), "all"]
    rows = []
    for size in SIZES:
        own = [trial for trial in trials if trial.size == size]
        if own:
            ratios = [trial.true_ratio - 1 for trial in own]
            true = f"{median(ratios):.1%} ({min(ratios):.1%}–{max(ratios):.1%})"
            limits = ", ".join(sorted({f"{trial.threshold:.0%}" for trial in own}))
            cells = [share([trial for trial in own if _within(trial, span)]) for span in DURATIONS]
            rows.append([f"{size:.0%}", true, limits, *cells, share(own)])
    return _table(titles, rows)


def _within(trial: Trial, span: tuple[int, int]) -> bool:
    low, high = (1000 * end for end in span)
    return low <= trial.base_ns < high or (span == DURATIONS[-1] and trial.base_ns >= high)


def _by_kind(trials: Sequence[Trial]) -> str:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(f"{trial.implementation.partition('_')[0]}: {trial.kind}", []).append(trial)
    rows = [
        [name, *(share([trial for trial in own if trial.size == size]) for size in SIZES)]
        for name, own in sorted(groups.items())
    ]
    return _table(["what was planted", *(f"{size:.0%}" for size in SIZES)], rows)


def _rest(trials: Sequence[Trial]) -> str:
    controls = [trial for trial in trials if is_control(trial)]
    alarms = [trial for trial in controls if trial.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
    off = [trial for trial in trials if trial.size > 0 and not on_target(trial)]
    hit = [trial for trial in trials if on_target(trial) and trial.ratio is not None]
    apart = max((abs((trial.ratio or 0) - trial.true_ratio) for trial in hit), default=0.0)
    return (
        f"Cases of the same files in which nothing was planted: {len(controls)}, with {len(alarms)} false verdicts. "
        f"Plants that came out off their size, and are not counted above: {len(off)}, of which {sum(map(caught, off))} "
        f"were caught. Gate and the measurement apart differ by at most {100 * apart:.2f} percentage points."
    )


def _missed(trials: Sequence[Trial]) -> str:
    missed = [trial for trial in trials if not caught(trial)]
    return "\n".join(
        f"- missed: {trial.operator}/{trial.implementation} {trial.dtype} {trial.shape}, {trial.base_ns / 1000:.1f} µs,"
        f" truly {trial.true_ratio - 1:+.2%} ({trial.true_low - 1:+.2%} to {trial.true_high - 1:+.2%}), T = "
        f"{trial.threshold:.0%}: {trial.verdict} {_estimate(trial)}"
        for trial in missed
    )


def _estimate(trial: Trial) -> str:
    return f"at {trial.ratio - 1:+.2%}" if trial.ratio is not None else trial.reason


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = [f"| {' | '.join(titles)} |", "|---|" + "--:|" * (len(titles) - 1)]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def operator_line(lines: Sequence[Line]) -> str:
    """What one operator came to, for the terminal."""
    trials = [line for line in lines if isinstance(line, Trial)]
    done = next(line for line in lines if isinstance(line, Done))
    hit = [trial for trial in trials if on_target(trial)]
    sizes = ", ".join(
        f"{size:.0%} {sum(caught(t) for t in hit if t.size == size)}/{sum(t.size == size for t in hit)}"
        for size in SIZES
    )
    off = sum(trial.size > 0 for trial in trials) - len(hit)
    controls = [trial for trial in trials if is_control(trial)]
    alarms = sum(trial.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) for trial in controls)
    return (
        f"round {done.round} {done.operator}: caught {sizes}; {off} off their size; "
        f"{alarms} false of {len(controls)} controls; gate {done.gate_seconds:.0f} s, all {done.seconds:.0f} s"
    )


def update_page(page: Path, lines: Mapping[str, Sequence[Line]]) -> None:
    """Write the tables between the marks of a page. Raises UserError where the page has no marks."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    page.write_text(replace_between(text, BEGIN, END, f"\n\n{section(lines)}\n\n", str(page)), encoding="utf-8")
