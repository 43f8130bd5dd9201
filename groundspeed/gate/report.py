"""What a gate run found, as data: every output is made from this, and ``--json`` writes exactly this.

``groundspeed gate --schema`` prints the JSON Schema of ``Report``. Times are in ns, memory in bytes; a number that
does not exist is null.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from groundspeed.analysis.rule import Verdict
from groundspeed.errors import UserError
from groundspeed.gate.plain import plain

SCHEMA = 1
FAILING = (Verdict.REGRESSED, Verdict.BROKEN, Verdict.REMOVED)
STATUS = "status"  # the "metric" of findings about a whole case or implementation

Result = Literal["pass", "regressed", "could not measure"]
# A metric may be one that this groundspeed does not know, but not any text. "$" alone lets a newline follow.
MetricName = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*(?!\n)$", max_length=64)]
EXIT_STATUS: dict[Result, int] = {"pass": 0, "regressed": 1, "could not measure": 2}


class Touched(msgspec.Struct, frozen=True):
    """An implementation that is measured, and why."""

    operator: str
    implementation: str
    why: str


class Unmeasured(msgspec.Struct, frozen=True):
    """Something that should have been compared and was not. Empty parts mean all of them."""

    operator: str
    implementation: str
    case: str
    reason: str


class Step(msgspec.Struct, frozen=True):
    """What one of the two steps cost: its processes, wall seconds, and those that the processes spent by phase."""

    step: str  # "first" or "fresh"
    processes: int
    seconds: float
    phases: dict[str, float]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One verdict.

    metric
        A metric's name, or "status" for a case or implementation as a whole (new, removed, broken, fixed).
    threshold
        T, as a share; null for a status.
    base, head
        Medians over the deciding processes, in ``unit``.
    ratio, low, high
        Head over base, and its interval.
    p, q
        Two-sided p of the processes' log-ratios and its Benjamini-Hochberg q over all findings. A p over 0.05 in fresh
        processes stops a conviction by process medians (ambiguous); q is shown only.
    gateable
        False where the noise floor is too high for the threshold: such a series never fails.
    report_only
        Configured never to fail.
    cause
        What differs that can explain the change, such as an autotuner's choice.
    accepted
        Who accepted it and why; such a finding does not fail.
    """

    operator: str
    implementation: str
    metric: MetricName
    verdict: Verdict
    dtype: str = ""
    shape: str = ""
    base_implementation: str = ""
    unit: str = ""
    threshold: float | None = None
    base: float | None = None
    head: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    processes: int = 0
    gateable: bool = True
    report_only: bool = False
    reason: str = ""
    cause: str = ""
    accepted: str = ""
    reproduce: str = ""
    file: str = ""

    @property
    def fails(self) -> bool:
        return self.verdict in FAILING and not self.accepted and not self.report_only

    @property
    def series(self) -> str:
        return f"{self.operator}/{self.implementation}" if self.implementation else self.operator

    @property
    def case(self) -> str:
        return f"{self.dtype} {self.shape}".strip()


class OperatorVerdict(msgspec.Struct, frozen=True):
    """What became of one operator: ``result`` by the rule that the whole run's goes by.

    verdict
        The worst of its findings, one that fails before one that does not; null where there is none.
    counts
        Its findings by verdict.
    excused
        How many would fail, were they not accepted or report only.
    """

    operator: str
    result: Result
    verdict: Verdict | None
    counts: dict[Verdict, int]
    excused: int = 0
    unmeasured: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One gate run.

    compared
        Series (case and metric) with a verdict from both sides.
    identical
        Cases left out because base and head run the same code.
    not_applicable
        Cases that neither side can run here, each with its reason in ``remarks``.
    seconds, steps
        Wall time of everything, and of both steps of measuring.
    """

    schema: int = SCHEMA
    result: Result
    summary: str
    base: str
    head: str
    base_label: str = ""
    head_label: str = ""
    aa: bool = False
    machine: str = ""
    device: str = ""
    started: str = ""
    seconds: float = 0.0
    steps: list[Step] = []
    compared: int = 0
    identical: int = 0
    not_applicable: int = 0
    touched: list[Touched] = []
    operators: list[OperatorVerdict] = []
    findings: list[Finding] = []
    unmeasured: list[Unmeasured] = []
    remarks: list[str] = []

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.result]

    @property
    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.fails]

    def with_verdict(self, *verdicts: Verdict) -> list[Finding]:
        return [finding for finding in self.findings if finding.verdict in verdicts]


def encode(report: Report) -> bytes:
    """The report as JSON, indented; infinite numbers become null, which JSON has instead."""
    return msgspec.json.format(msgspec.json.encode(_encodable(msgspec.to_builtins(report))), indent=2) + b"\n"


def _encodable(value: object) -> object:
    """With what UTF-8 cannot hold (bytes of a file's name that are no text) spelt as escapes."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def read_report(path: Path) -> Report:
    """Read what ``--json`` wrote. Raises UserError naming the file and what is wrong with it.

    The report may come from someone else's machine: every field is checked against its type, and nothing else is read.
    A verdict that is not known here is refused, since nothing says whether it fails; a metric need only have a name's
    form. All other text is anything: the outputs make it harmless.
    """
    try:
        report = msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is no report of groundspeed gate --json: {plain(str(error))}") from error
    if report.schema != SCHEMA:
        raise UserError(f"{path}: schema {report.schema}, this groundspeed reads {SCHEMA}")
    return report


def schema() -> bytes:
    """The JSON Schema of a report."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Report)), indent=2) + b"\n"
