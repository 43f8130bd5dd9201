"""Which case is profiled: by its words on the command line, or the largest one of its tier."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from groundspeed.errors import UserError
from groundspeed.operator import DTYPES, Case, Operator
from groundspeed.project import near

DEFAULT_TIER = {"cuda": "core", "cpu": "small"}


def choose_cases(operator: str, spec: Operator, words: Sequence[str], device: str) -> tuple[Case, ...]:
    """Cases that the words name, largest first.

    Words are a dtype, a shape as ``groundspeed list`` writes it (``M=4096,N=1024``) or a pattern of one
    (``M=4096,*``), or both, in any order. Bench cases come before check cases. Without words: tier core, on a CPU tier
    small. Raises UserError for words that name nothing.
    """
    parts = [part for word in words for part in word.split()]
    dtypes = [part for part in parts if part in DTYPES]
    shapes = [part for part in parts if part not in DTYPES]
    if len(dtypes) > 1 or len(shapes) > 1:
        raise UserError(f"{' '.join(parts)!r} names more than one case: give one dtype, one shape, or one of each")
    if not parts:
        return by_size(spec, spec.tier_cases(DEFAULT_TIER[device]))
    for known in (spec.bench_cases, spec.check_cases):
        found = [case for case in known if _matches(case, dtypes, shapes)]
        if found:
            return by_size(spec, found)
    labels = [case.label for case in (*spec.bench_cases, *spec.check_cases)]
    hint = near(" ".join([*dtypes, *shapes]), labels)
    raise UserError(f"{operator}: no case {' '.join(parts)!r}{hint}; type: groundspeed list {operator}")


def by_size(spec: Operator, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Largest first: by operations where the operator is compute-bound, else by bytes; narrow dtypes after wide."""
    size = spec.flop_count if spec.bound == "compute" else lambda case: spec.traffic(case).total
    return tuple(sorted(cases, key=lambda case: (size(case), spec.traffic(case).total), reverse=True))


def _matches(case: Case, dtypes: Sequence[str], shapes: Sequence[str]) -> bool:
    if dtypes and case.dtype not in dtypes:
        return False
    return not shapes or case.shape_label in shapes or fnmatch.fnmatchcase(case.shape_label, shapes[0])
