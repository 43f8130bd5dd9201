"""What a foreign result's names and parameters are called in a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from groundspeed.operator import DTYPES

_OPERATOR = ("operator",)
_IMPLEMENTATION = ("implementation", "impl", "backend", "provider")
_DTYPE = ("dtype", "datatype", "type", "t")
_NVBENCH_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_NVBENCH_TYPES |= {"I64": "int64", "I32": "int32", "U8": "uint8"}


@dataclass(frozen=True)
class Named:
    """Parameters by what they mean. Parts that no parameter gives are empty; the rest is the shape."""

    operator: str
    implementation: str
    dtype: str
    shape: dict[str, int | str]


def named(parameters: Mapping[str, object]) -> Named:
    """Sort parameters by their names, whatever the case: operator, implementation, dtype (where it is one of ours).

    >>> named({"dtype": "torch.float16", "impl": "fused", "N": "4096"})
    Named(operator='', implementation='fused', dtype='float16', shape={'N': 4096})
    """
    left = {str(name): str(value) for name, value in parameters.items()}
    operator = _take(left, _OPERATOR, str)
    implementation = _take(left, _IMPLEMENTATION, str)
    return Named(operator, implementation, _take(left, _DTYPE, dtype_of), {n: _number(v) for n, v in left.items()})


def dtype_of(text: str) -> str:
    """A dtype as ours are called, of ``torch.float16``, ``numpy.float32``, ``F16``; empty where it is none of them."""
    plain = _NVBENCH_TYPES.get(text, text.rpartition(".")[2])
    return plain if plain in DTYPES else ""


def slug(text: str) -> str:
    """A name that is a file's too: at most 80 small letters, digits and single underscores, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return (plain if plain[:1].isalpha() else f"x_{plain}")[:80].rstrip("_")


def slugs(names: Iterable[str], short: Callable[[str], str] = str) -> dict[str, str]:
    """A slug of the short form of each name, no two alike: ``sum`` and ``sum_2`` where two come down to one."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain, number = slug(short(name)), 1
        while (each := plain if number == 1 else f"{plain}_{number}") in found.values():
            number += 1
        found[name] = each
    return found


def _take(left: dict[str, str], wanted: tuple[str, ...], meaning: Callable[[str], str]) -> str:
    for name in [name for word in wanted for name in left if name.lower() == word]:
        value = meaning(left[name])
        if value:
            del left[name]
            return value
    return ""


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?(0|[1-9]\d{0,17})", text) else text
