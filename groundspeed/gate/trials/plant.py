"""A plant: a small patch of one implementation's file that adds a known amount of time to each of its cases.

The patch is a list of edits with anchors. An anchor that is not in the file as often as it should be is an error that
names it: a plant never goes quietly into a file that has changed.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.operator import Case

TABLE = "@TABLE@"  # in a replacement: what is added, by case, in the file's own language
MARK = "planted: what is added"
Amounts = Mapping[Case, int]


class Kind(enum.StrEnum):
    """What a plant adds.

    AGAIN: rows (or blocks) that are computed a second time in the same launch; an amount is their number.
    SPIN: the last block waits at its end; an amount is clock cycles.
    CALL: a second library call on the first rows; an amount is their number.
    """

    AGAIN = "work done twice"
    SPIN = "spin"
    CALL = "one more call"


class AnchorLost(UserError):
    """A file is not what a plant was written for."""


@dataclass(frozen=True)
class Edit:
    """Replace a text that occurs so many times."""

    anchor: str
    replacement: str
    times: int = 1


@dataclass(frozen=True)
class Plant:
    """A patch of one file.

    file
        Relative to the folder of operators.
    table
        Writes the amounts in the language of the file; ``edits`` place it where they say ``TABLE``.
    units
        How many rows or blocks a case has, of which AGAIN and CALL add some.
    """

    operator: str
    implementation: str
    file: str
    kind: Kind
    table: Callable[[Amounts], str]
    edits: tuple[Edit, ...]
    units: Callable[[Case], int] = lambda case: sizes(case)[0]

    @property
    def name(self) -> str:
        return f"{self.operator}/{self.implementation}"

    @property
    def backend(self) -> str:
        return self.implementation.partition("_")[0]

    def apply(self, text: str, amounts: Amounts) -> str:
        """The file's text with the plant in it. Raises AnchorLost; amounts must be positive."""
        if any(amount <= 0 for amount in amounts.values()):
            raise ValueError(f"{self.name}: amounts must be positive: {amounts}")
        if MARK in text:
            raise AnchorLost(f"{self.name}: {self.file} is planted already")
        for edit in self.edits:
            found = text.count(edit.anchor)
            if found != edit.times:
                raise AnchorLost(
                    f"{self.name}: the plant expects {edit.times}× {edit.anchor!r} in {self.file}, found {found}: "
                    "mend it in groundspeed/gate/trials"
                )
            text = text.replace(edit.anchor, edit.replacement)
        return text.replace(TABLE, self.table(amounts))

    def write(self, impls: Path, amounts: Amounts) -> None:
        """Plant it in a checkout's folder of operators, whose file must be unplanted."""
        path = impls / self.file
        if not path.is_file():
            raise AnchorLost(f"{self.name}: there is no {self.file}: mend the plant in groundspeed/gate/trials")
        path.write_text(self.apply(path.read_text(encoding="utf-8"), amounts), encoding="utf-8")


def sizes(case: Case) -> tuple[int, ...]:
    """The numbers of a case's shape, in the spec's order: the shape of the first input of the operators planted in."""
    return tuple(value for _, value in case.shape if isinstance(value, int))


def python_table(amounts: Amounts) -> str:
    """A function ``planted(x)`` for torch's tensors and CuPy's arrays."""
    entries = "".join(f"    ({case.dtype!r}, {sizes(case)}): {amount},\n" for case, amount in amounts.items())
    return f"""# {MARK}, by dtype and shape
PLANTED = {{
{entries}}}


def planted(x):
    return PLANTED.get((str(x.dtype).removeprefix("torch."), tuple(x.shape)), 0)
"""


_C_TYPES = {
    "float32": "std::is_same_v<T, float>",
    "float16": "std::is_same_v<T, __half>",
    "bfloat16": "std::is_same_v<T, __nv_bfloat16>",
}


def cuda_table(amounts: Amounts) -> str:
    """A function ``planted<T>(first, second)`` for host and device; a shape of one number has 0 for the second."""
    return _c_table("__host__ __device__", _C_TYPES, amounts)


def cupy_table(amounts: Amounts) -> str:
    """The same for CuPy's run-time compiler, which has no type traits; CuPy has no bfloat16."""
    return _c_table("__device__", {"float32": "sizeof(T) == 4", "float16": "sizeof(T) == 2"}, amounts)


def _c_table(space: str, types: Mapping[str, str], amounts: Amounts) -> str:
    lines = []
    for case, amount in amounts.items():
        first, second = (*sizes(case), 0)[:2]
        lines.append(f"  if ({types[case.dtype]} && first == {first} && second == {second}) return {amount};\n")
    return (
        f"// {MARK}, by element type and shape\n"
        "template <typename T>\n"
        f"{space} inline long long planted(long long first, long long second) {{\n{''.join(lines)}  return 0;\n}}\n"
    )


C_WAIT = """
// planted: the last block waits so many clock cycles
__device__ inline void planted_wait(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}
"""

TRITON_WAIT = """
@triton.jit
def planted_clock():
    return tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def planted_wait(CYCLES: tl.constexpr):
    if CYCLES > 0:
        if tl.program_id(0) == tl.num_programs(0) - 1:
            begin = planted_clock()
            now = begin
            while now - begin < CYCLES:
                now = planted_clock()
"""
