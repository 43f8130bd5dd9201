"""From what the processes yielded to a verdict: one series is one metric of one pair on one case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from groundspeed.analysis.exact_rule import judge_exact
from groundspeed.analysis.rule import Judgement, ProcessMedians, Verdict, gateable, judge, needs_fresh
from groundspeed.analysis.significance import signed_rank_p
from groundspeed.analysis.stats import FloatArray, median
from groundspeed.analysis.tail_rule import ProcessSamples, TailComparison, compare_tails
from groundspeed.gate.config import Limit
from groundspeed.gate.metrics import Method, Metric
from groundspeed.gate.paired import PairOutcome
from groundspeed.report.units import counted

LEAST_SAMPLES = 8  # of a process: fewer have no median worth the name

Outcomes = Sequence[PairOutcome]


@dataclass(frozen=True)
class Series:
    """One metric of one pair on one case, with the threshold and the noise floor that it is judged by.

    A tail's floor is that of the medians of the same samples.
    """

    metric: Metric
    limit: Limit
    floor: float | None

    @property
    def threshold(self) -> float:
        """The first threshold that the noise floor allows, else the last."""
        allowed = [t for t in self.limit.thresholds if gateable(self.floor, t)]
        return allowed[0] if allowed else self.limit.thresholds[-1]

    @property
    def gateable(self) -> bool:
        """Whether it can fail. A tail always can: a floor switches off its medians' evidence, not its slow path's."""
        return self.metric.method is not Method.PAIRED or gateable(self.floor, self.threshold)


@dataclass(frozen=True)
class Judged:
    """A judgement with the two values it compares, in the metric's unit: medians (or p99s) over the processes."""

    judgement: Judgement
    base: float
    head: float


def presence(metric: Metric, outcomes: Outcomes) -> tuple[bool, bool]:
    """Whether base and head were measured in every process: enough samples, or the one value."""
    least = LEAST_SAMPLES if metric.quantity else 1
    return (
        all(len(metric.samples(outcome.base)) >= least for outcome in outcomes),
        all(len(metric.samples(outcome.head)) >= least for outcome in outcomes),
    )


def too_few(metric: Metric, outcomes: Outcomes) -> str:
    """What is missing where a side was measured, but not often enough in every process; else ""."""
    if not metric.quantity:
        return ""
    for name in ("base", "head"):
        counts = [len(metric.samples(getattr(outcome, name))) for outcome in outcomes]
        if any(counts) and min(counts) < LEAST_SAMPLES:
            wanted = f"expected {LEAST_SAMPLES} at least of each"
            return f"{metric.label}: {min(counts)} samples of {name} from a process, {wanted}"
    return ""


def is_suspect(series: Series, first: Outcomes) -> bool:
    """Whether fresh processes must decide. The series must be present on both sides in every process."""
    if series.metric.method is Method.EXACT or not series.gateable:
        return False
    if series.metric.method is Method.TAIL:
        return any(tail.suspect(series.threshold, series.floor) for tail in _tails(series, first))
    medians = _medians(series.metric, first)
    return not _within_slack(series.metric, medians) and needs_fresh(medians, series.threshold, series.floor)


def judge_series(series: Series, first: Outcomes, fresh: Outcomes) -> Judged:
    """The verdict. ``fresh`` is empty unless ``is_suspect``; raises ``ValueError`` when a suspect comes without."""
    return _JUDGES[series.metric.method](series, first, fresh)


def log_ratios(metric: Metric, outcomes: Outcomes) -> list[float]:
    """ln(head / base) of each process's medians: what an A/A run leaves for the noise floor."""
    return [float(value) for value in _medians(metric, outcomes).log_ratios]


def _judge_paired(series: Series, first: Outcomes, fresh: Outcomes) -> Judged:
    medians = _medians(series.metric, first)
    again = _medians(series.metric, fresh) if fresh else None
    deciding = again if again is not None else medians
    if _within_slack(series.metric, medians):
        # A difference too small to matter is no difference, however sure: judged as if T were out of reach.
        judgement = judge(medians, None, math.inf, None)
        deciding = medians
    else:
        judgement = judge(medians, again, series.threshold, series.floor)
    return Judged(judgement, median(deciding.base), median(deciding.head))


def _judge_tail(series: Series, first: Outcomes, fresh: Outcomes) -> Judged:
    threshold, floor = series.threshold, series.floor
    suspect = any(tail.suspect(threshold, floor) for tail in _tails(series, first))
    if suspect and not fresh:
        raise ValueError("a suspect is judged on fresh processes, none were given")
    deciding = fresh if suspect else first
    slower, faster = _tails(series, deciding)
    verdict, reason = Verdict.UNCHANGED, ""
    if suspect and slower.convicts(threshold, floor):
        verdict, reason = Verdict.REGRESSED, _tail_evidence(slower, threshold)
    elif suspect and faster.convicts(threshold, floor):
        verdict, reason = Verdict.IMPROVED, _tail_evidence(faster, threshold, "base")
    elif suspect and (slower.suspect(threshold, floor) or faster.suspect(threshold, floor)):
        verdict = Verdict.AMBIGUOUS
        reason = f"{counted(slower.slower_head, 'slow sample')} against {slower.slower_base}: too few to tell"
    elif not gateable(floor, threshold) and any(tail.may_be_shifted(threshold) for tail in (slower, faster)):
        verdict, reason = Verdict.AMBIGUOUS, f"the median shifted, its noise floor {floor:.2%} is over 0.7 T"
    ratios = [_p99(each.head) / _p99(each.base) for each in _process_samples(series.metric, deciding)]
    judgement = Judgement(
        verdict, slower.ratio, min(ratios), max(ratios), _tail_p(slower, faster, threshold), len(deciding), reason
    )
    base = _p99(np.concatenate([each.base for each in _process_samples(series.metric, deciding)]))
    return Judged(judgement, base, base * slower.ratio)


def _tail_evidence(worse: TailComparison, threshold: float, side: str = "head") -> str:
    """What convicted: ``side`` is the one with the slow end."""
    if worse.has_slow_path(threshold):
        counts = f"{counted(worse.slower_head, 'slow sample')} against {worse.slower_base}"
        return f"{counts}, more in {worse.spread:.0%} of the processes" if side == "head" else counts
    return f"{side} is {math.expm1(float(worse.medians.shift)):+.1%} in the median, and its p99 with it"


def _tail_p(slower: TailComparison, faster: TailComparison, threshold: float) -> float:
    """Two-sided: of the counts, or of the medians where these convicted."""
    by_counts = min(1.0, 2 * min(slower.p, faster.p))
    if any(tail.is_shifted(threshold) and not tail.has_slow_path(threshold) for tail in (slower, faster)):
        return signed_rank_p(slower.medians.log_ratios)
    return by_counts


def _judge_exact(series: Series, first: Outcomes, fresh: Outcomes) -> Judged:
    medians = [[median(series.metric.samples(side)) for side in (o.base, o.head)] for o in first]
    base, head = np.array(medians).T
    judgement = judge_exact(base, head, series.threshold, series.metric.slack)
    return Judged(judgement, median(base), median(head))


_JUDGES: dict[Method, Callable[[Series, Outcomes, Outcomes], Judged]] = {
    Method.PAIRED: _judge_paired,
    Method.TAIL: _judge_tail,
    Method.EXACT: _judge_exact,
}


def _medians(metric: Metric, outcomes: Outcomes) -> ProcessMedians:
    base = np.array([median(metric.samples(outcome.base)) for outcome in outcomes])
    head = np.array([median(metric.samples(outcome.head)) for outcome in outcomes])
    return ProcessMedians(base, head)


def _within_slack(metric: Metric, medians: ProcessMedians) -> bool:
    return abs(float(np.median(medians.head - medians.base))) < metric.slack


def _process_samples(metric: Metric, outcomes: Outcomes) -> list[ProcessSamples]:
    return [ProcessSamples(np.array(metric.samples(o.base)), np.array(metric.samples(o.head))) for o in outcomes]


def _tails(series: Series, outcomes: Outcomes) -> tuple[TailComparison, TailComparison]:
    """Head against base, and base against head."""
    processes = _process_samples(series.metric, outcomes)
    swapped = [ProcessSamples(each.head, each.base) for each in processes]
    return compare_tails(processes, series.threshold), compare_tails(swapped, series.threshold)


def _p99(samples: FloatArray) -> float:
    return float(np.quantile(samples, 0.99))
