"""The sweep of ``groundspeed run``: operators over one GPU or several, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from groundspeed import session
from groundspeed.commands import durations, rehearsing
from groundspeed.errors import UserError
from groundspeed.fleet.cut import Cut, cut, longest_first, parse_shard
from groundspeed.machine import machine_of
from groundspeed.measure.claim import GpuBusy, Patience
from groundspeed.measure.first_call_subset import chosen_case
from groundspeed.measure.handing_out import hand_out
from groundspeed.measure.lane import Lane, Place, open_lane, spread, widest_place
from groundspeed.measure.supervisor import Progress
from groundspeed.report.progress import Display, Estimate
from groundspeed.report.style import Style
from groundspeed.report.units import clock, counted
from groundspeed.session import Run, compiles
from groundspeed.tree import SpecError

_INTO_CASE = {"calls": 0.6, "time": 0.65, "memory": 0.95}

Plan = Mapping[str, tuple[str, ...]]
"""operator → patterns of its implementations, empty for all."""


def sweep(opened: Run, plan: Plan, places: Sequence[Place], patience: Patience, resume: str) -> list[str]:
    """Measure the operators that the run lacks. Returns what could not be measured and why, a line each.

    One that cannot be measured stops no other. On several places the longest operators go first, so that none of
    them is begun when the others are done; operators that are spread over several GPUs come last, one at a time on all
    of them, and are filed under the machine that has them all. ``resume`` is what to type to go on.

    Raises UserError when a GPU cannot be had to begin with.
    """
    wide = _wide_place(opened, places)
    runs = {name: _filed(narrowed(opened, name, patterns), name, wide) for name, patterns in plan.items()}
    left = {name: one for name, one in runs.items() if not one.record_path(name).exists()}
    expected = durations.expected(opened, left)
    display = Display(sys.stderr, Style.of(sys.stderr), Estimate(expected, lanes=len(places)))
    for operator in runs:
        if operator not in left:
            display.say(f"{operator}: already in run {opened.run_id}")
    if not left:
        return []
    order = list(left) if len(places) == 1 else longest_first(expected)
    spread_out = [name for name in order if wide not in places and left[name].tree.is_spread(name)]
    shown = _Shown(display, left, several=len(places) > 1 or bool(spread_out))
    busy: list[GpuBusy] = []
    parts = [([name for name in order if name not in spread_out], places), (spread_out, [wide])]
    for names, held in parts:
        try:
            busy += _sweep_on(held, names, shown, display, patience) if names else []
        except GpuBusy as last:
            if not shown.begun:  # nothing is kept that could be gone on with
                raise
            return [*shown.problems, f"{last}; {resume}"]
    for one in busy:
        display.say(str(one))
    return shown.problems


def _sweep_on(
    places: Sequence[Place], names: Sequence[str], shown: _Shown, display: Display, patience: Patience
) -> list[GpuBusy]:
    """Measure some operators on places that are held until all are done."""
    with ExitStack() as held:
        say = _once(display)
        # In one order whoever asks: two runs that wait for each other's GPU would wait for ever.
        ordered = sorted(places, key=lambda place: place.gpu.uuid if place.gpu else "")
        compiler = any(compiles(shown.runs[name], name) for name in names)
        lanes = [held.enter_context(open_lane(place, patience, say, compiler=compiler)) for place in ordered]
        for lane in lanes:
            lane.workers.warm_up()
        shown.prepared = rehearsing.rehearse({name: shown.runs[name] for name in names}, lanes, say)
        return hand_out(names, lanes, shown.measure)


def _wide_place(opened: Run, places: Sequence[Place]) -> Place:
    """Where operators that are spread over GPUs are measured: on all places; a run of the whole host has all GPUs."""
    if len(places) > 1:
        return spread(places)
    widest = widest_place(opened.device)
    return widest if widest.gpus and machine_of(widest.gpus) == opened.machine else places[0]


def _filed(run: Run, operator: str, wide: Place) -> Run:
    """An operator that is spread over GPUs is filed under the machine that has as many."""
    return replace(run, machine=machine_of(wide.gpus)) if wide.gpus and run.tree.is_spread(operator) else run


def shard_of(opened: Run, plan: Plan, typed: str) -> Cut:
    """The shard that was typed, of the whole plan. Raises UserError for one that there cannot be.

    Stored durations of this very commit do not count: another shard may have stored some before this one begins.
    """
    index, count = parse_shard(typed)
    runs = {name: narrowed(opened, name, patterns) for name, patterns in plan.items()}
    expected = durations.expected(opened, runs, apart_from=opened.commit.hash)
    return cut(expected, index, count, opened.commit.hash, opened.commit.dirty)


def shard_line(shard: Cut) -> str:
    """What a shard measures, in a line."""
    seconds = sum(shard.inventory[name] for name in shard.operators)
    whole = sum(shard.inventory.values())
    said = f"{len(shard.operators)} of {len(shard.inventory)} operators"
    return (
        f"shard {shard.label}: {said}, about {clock(seconds)} of {clock(whole)}: {', '.join(shard.operators) or 'none'}"
    )


class _Shown:
    """Measures an operator where it is told to, and shows it."""

    def __init__(self, display: Display, runs: Mapping[str, Run], several: bool) -> None:
        self._display, self.runs, self._several = display, runs, several
        self.begun = False  # whether any operator was
        self.prepared = session.Preparation()
        self._problems: dict[str, str] = {}
        self._say = _once(display)

    @property
    def problems(self) -> list[str]:
        """What could not be measured, in the order of the operators."""
        return [self._problems[name] for name in self.runs if name in self._problems]

    def measure(self, lane: Lane, operator: str) -> None:
        """Raises GpuBusy; what else the user can mend is a problem of this operator."""
        run = self.runs[operator]
        where = f" on {lane.place.label}" if self._several else ""
        self.begun = True
        self._display.begin(operator, _summary(run, operator) + (f", {lane.place.label}" if self._several else ""))
        show = partial(_show, self._display, names=durations.able_to_time(run, operator))
        try:
            session.measure_operator(run, operator, show, lane, _once(self._display), self.prepared)
        except GpuBusy:
            self._display.end(operator, "not measured" + where)
            raise
        except UserError as error:
            self._problems[operator] = str(error)
            self._display.end(operator, "could not be measured")
        else:
            self._display.end(operator, "measured" + where)
        for remark in lane.workers.remarks:
            self._say(remark)


def _once(display: Display) -> Callable[[str], None]:
    """Says each line once, although its reason is found again and again."""
    said: set[str] = set()

    def say(line: str) -> None:
        if line not in said:
            said.add(line)
            display.say(line)

    return say


def check_first_calls(opened: Run, plan: Plan) -> None:
    """First calls that were asked for, and that no implementation would have, are a typo: raises UserError."""
    runs = {name: narrowed(opened, name, patterns) for name, patterns in plan.items()} if opened.first_call else {}
    if opened.first_call and not any(_has_first_call(run, operator) for operator, run in runs.items()):
        subset = ", ".join(map(str, opened.first_call))
        where = "first_call_subset in pyproject.toml"
        raise UserError(f"--first-call: nothing in this run is one of {subset}; see {where}")


def _has_first_call(run: Run, operator: str) -> bool:
    try:
        cases = run.selection.cases(run.tree.spec(operator))
    except SpecError:
        return False  # reported by name when its turn comes
    return any(chosen_case(run.first_call, operator, name, cases) for name in durations.able_to_time(run, operator))


def narrowed(opened: Run, operator: str, patterns: tuple[str, ...]) -> Run:
    """The run as far as one operator is concerned."""
    selection = replace(opened.selection, implementations=patterns, operators=(operator,))
    return replace(opened, selection=selection)


def _show(display: Display, event: Progress, names: Sequence[str]) -> None:
    case = f"case {event.case + 1} of {event.cases}" if event.in_case else ""
    where = ", ".join(part for part in (event.implementation, case) if part)
    display.update(event.operator, event.phase, where, _share(event, names))


def _share(event: Progress, names: Sequence[str]) -> float:
    """Of an operator's work: whole cases, and how far into the present one. Roughly, for the bar."""
    if not event.in_case:
        return 0.0
    within = _INTO_CASE.get(event.phase, 0.0)
    if event.implementation in names and event.phase in ("prepare", "first run", "check"):
        within = _INTO_CASE["calls"] * names.index(event.implementation) / len(names)
    return (event.case + within) / event.cases


def _summary(opened: Run, operator: str) -> str:
    implementations, cases = durations.extent(opened, operator)
    return f"{counted(implementations, 'implementation')}, {counted(cases, 'case')} on {opened.machine}"
