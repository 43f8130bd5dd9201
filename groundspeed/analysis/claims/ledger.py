"""The claims ledger ``impls/claims.toml``: reading it, and refusing what makes no sense."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from groundspeed.analysis.claims.quantities import QUANTITIES, RATIOS, TRAINING

BASELINE = "torch_eager"

Family = tuple[str, str]
"""Patterns of a forward and a backward implementation that belong together."""


class LedgerError(ValueError):
    """A ledger that cannot be used: names the file and the fault."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One published figure, and what of ours it is compared with.

    source, url, claim, gpu, shape
        Who says it and where, what it says in short, for which GPU and which shape; empty where that is not told.
    quantity, published
        What the figure is (``QUANTITIES``), and its lowest and highest value in that quantity's unit; not given where a
        source names a thing and tells no figure of it.
    operator
        Our operator; ``*`` stands for all of them.
    implementation, dtype, cases
        Patterns of implementations, separated by commas, of which the best stands for all on each case; the dtype, and
        a pattern of shape labels (``B=8,*``), both empty for all.
    baseline, baseline_dtype, baseline_cases
        Of a ratio: what it is taken over, where that differs; ``torch_eager`` when none of the three is given.
    backward, baseline_backward
        Of a training quantity: patterns of the backward operator's implementations, one for each of ``implementation``
        and of the baseline, whose family it is; the same names when not given.
    kernels, part
        Of a kernel share or count: a regular expression for names of kernels. With ``part`` 0 those that match are
        meant, with n all between the n-th that matches and the next one.
    tier
        The tier that its cases are in: what to run for an answer.
    reason
        Why nothing of ours can answer; operator and implementation are then empty.
    """

    source: str
    claim: str
    published: tuple[float, float] | None = None
    gpu: str = ""
    url: str = ""
    shape: str = ""
    quantity: str = "speedup"
    operator: str = ""
    implementation: str = ""
    dtype: str = ""
    cases: str = ""
    baseline: str = ""
    baseline_dtype: str = ""
    baseline_cases: str = ""
    backward: str = ""
    baseline_backward: str = ""
    kernels: str = ""
    part: int = 0
    tier: str = "core"
    reason: str = ""

    def __post_init__(self) -> None:
        fault = _fault(self)
        if fault:
            raise ValueError(f"{self.source}, {self.claim!r}: {fault}")

    @property
    def is_ratio(self) -> bool:
        return self.quantity in RATIOS

    @property
    def is_training(self) -> bool:
        return self.quantity in TRAINING

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that an answer needs records of."""
        return (self.operator, f"{self.operator}_backward") if self.is_training else (self.operator,)

    @property
    def families(self) -> tuple[Family, ...]:
        return _families(self.implementation, self.backward)

    @property
    def over_families(self) -> tuple[Family, ...]:
        return _families(self.over, self.baseline_backward)

    @property
    def over(self) -> str:
        """The implementation that a ratio is taken over: its own where only the case or the dtype differs."""
        if self.baseline:
            return self.baseline
        return self.implementation if self.baseline_dtype or self.baseline_cases else BASELINE

    @property
    def subject(self) -> str:
        """``matmul_gelu/triton_* float16 M=4096,*``"""
        of = f"{self.operator}/{self.implementation}"
        if self.is_training:
            of += f" with {self.operators[1]}/{self.backward or self.implementation}"
        return " ".join(filter(None, (of, self.dtype, self.cases)))

    @property
    def taken_over(self) -> str:
        """``torch_eager float32``: what a ratio is taken over, and nothing for another quantity."""
        if not self.is_ratio:
            return ""
        over = self.over + (f" with {self.baseline_backward}" if self.baseline_backward else "")
        return " ".join(filter(None, (over, self.baseline_dtype, self.baseline_cases)))


def patterns_of(text: str) -> list[str]:
    """Patterns that stand separated by commas."""
    return [pattern.strip() for pattern in text.split(",")]


def _families(forward: str, backward: str) -> tuple[Family, ...]:
    return tuple(zip(patterns_of(forward), patterns_of(backward or forward), strict=True))


def _fault(claim: Claim) -> str:
    low, high = claim.published or (1.0, 1.0)
    if claim.quantity not in QUANTITIES:
        return f"unknown quantity {claim.quantity!r}, expected one of {', '.join(QUANTITIES)}"
    if not 0 < low <= high:
        return f"published is {[low, high]}, expected [lowest, highest] above 0"
    if bool(claim.reason) == bool(claim.operator and claim.implementation):
        return "expected either operator and implementation, or the reason why there are none"
    if claim.kernels and not _compiles(claim.kernels):
        return f"kernels is {claim.kernels!r}, expected a regular expression"
    if bool(claim.kernels) != claim.quantity.startswith("kernel ") and not claim.reason:
        return "kernels belongs to a kernel share or count, and to nothing else"
    return _training_fault(claim)


def _training_fault(claim: Claim) -> str:
    given = bool(claim.backward or claim.baseline_backward)
    if not claim.is_training:
        return "backward belongs to a training quantity, and to nothing else" if given else ""
    if "*" in claim.operator or claim.baseline_dtype or claim.baseline_cases:
        return "a training quantity is of one operator, on the same case on both sides"
    pairs = ((claim.implementation, claim.backward), (claim.over, claim.baseline_backward))
    if any(back and back.count(",") != ahead.count(",") for ahead, back in pairs):
        return "expected a backward implementation for each forward one"
    return ""


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The ledger's claims in its order. Raises LedgerError naming the file and the fault."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("claim", [])
        return tuple(msgspec.convert(table, Claim) for table in tables)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise LedgerError(f"{path} cannot be used: {error}") from error
