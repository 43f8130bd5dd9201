"""Published figures beside ours: the claims ledger, and what stored records say to each claim.

Most claims were made for another GPU. Our ratio is shown all the same, and the verdict says which kind of answer it is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from groundspeed.analysis.speedup import Row, speedup_table
from groundspeed.analysis.stats import geometric_mean
from groundspeed.records import Record

Verdict = Literal["reproduced", "exceeded", "not reproduced", "not measured"]


class LedgerError(ValueError):
    """A ledger that cannot be used: names the file and the fault."""


# A published factor is given to one or two digits: what rounds to it reproduces it.
ROUNDING = 0.05


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published figure. ``published`` is the lowest and highest factor over the baseline that it names."""

    source: str
    claim: str
    gpu: str
    published: tuple[float, float]
    operator: str
    implementation: str
    baseline: str = "torch_eager"
    dtype: str = ""


@dataclass(frozen=True)
class Answer:
    """What our records say to a claim.

    ``ratio`` is the geometric mean over the cases that both sides ran, ``cases`` those cases' own ratios by label;
    ``gpu`` is the device they were measured on.
    """

    claim: Claim
    verdict: Verdict
    ratio: float | None
    cases: tuple[tuple[str, float], ...]
    gpu: str
    command: str

    @property
    def other_gpu(self) -> bool:
        """Whether ours is not the GPU that the claim was made for."""
        return bool(self.gpu) and self.claim.gpu.casefold() not in self.gpu.casefold()


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The ledger's claims in its order. Raises LedgerError naming the file and the fault."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
        return tuple(msgspec.convert(table, Claim) for table in tables)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise LedgerError(f"{path} cannot be used: {error}") from error


def answers(claims: Iterable[Claim], records: Sequence[Record]) -> tuple[Answer, ...]:
    """Each claim with the newest record of its operator among ``records``, in the claims' order."""
    newest = {record.header.operator: record for record in sorted(records, key=lambda record: record.header.started)}
    return tuple(_answer(claim, newest.get(claim.operator)) for claim in claims)


def _answer(claim: Claim, record: Record | None) -> Answer:
    command = f"groundspeed run --only {claim.operator} --tier core"
    if record is None:
        return Answer(claim, "not measured", None, (), "", command)
    rows = [row for row in speedup_table(record, claim.baseline) if _concerns(claim, row) and row.speedup is not None]
    cases = tuple((f"{row.dtype} {row.shape_label}", row.speedup.value) for row in rows if row.speedup is not None)
    ratio = geometric_mean([value for _, value in cases]) if cases else None
    gpu = record.header.environment.device_name
    return Answer(claim, _verdict(claim, ratio), ratio, cases, gpu, record.header.command or command)


def _concerns(claim: Claim, row: Row) -> bool:
    return row.implementation == claim.implementation and claim.dtype in ("", row.dtype)


def _verdict(claim: Claim, ratio: float | None) -> Verdict:
    low, high = claim.published
    if ratio is None:
        return "not measured"
    if ratio > high * (1 + ROUNDING):
        return "exceeded"
    return "reproduced" if ratio >= low * (1 - ROUNDING) else "not reproduced"
