"""The operator spec: what is computed, on which inputs, and how right an answer must be.

A spec is a module ``impls/<operator>/spec.py`` with one module-level ``SPEC = Operator(...)``. It imports this
module and nothing else of groundspeed, and it imports torch only inside its functions: listing what there is to
measure must not cost three seconds of ``import torch``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundspeed.errors import UserError

DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8")
TIERS = ("small", "core", "full")
BOUNDS = ("memory", "compute", "link", "peer")
ITEMSIZE = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1}

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class Role(enum.Enum):
    """Whether an implementation may transform an input outside the timed region."""

    DATA = "data"
    WEIGHT = "weight"


@dataclass(frozen=True)
class Input:
    """One tensor handed to every implementation, the role it plays, and whether it lies in the host's memory."""

    tensor: Any
    role: Role
    host: bool = False


def data(tensor: Any) -> Input:
    """Mark a tensor that changes from call to call: converting or padding it is run time."""
    return Input(tensor, Role.DATA)


def host_data(tensor: Any) -> Input:
    """Mark data that lies in the host's memory, page-locked where there is a GPU: bringing it over is run time."""
    return Input(tensor, Role.DATA, host=True)


def weight(tensor: Any) -> Input:
    """Mark a tensor that stays for many calls: ``prepare`` may fold, pack or convert it."""
    return Input(tensor, Role.WEIGHT)


@dataclass(frozen=True)
class Traffic:
    """Bytes the mathematical function must move: each input read once, each output written once."""

    read: int
    write: int

    @property
    def total(self) -> int:
        return self.read + self.write


@dataclass(frozen=True)
class Tolerance:
    """How far an output may lie from the float64 reference.

    Every element must satisfy ``|out - ref| <= atol + rtol * |ref|``, and the whole ``||out - ref|| <= norm * ||ref||``
    in the Euclidean norm. The second test is what catches an output of zeros under a generous ``atol``; it defaults
    to ``rtol``.
    """

    rtol: float
    atol: float
    norm: float | None = None

    @property
    def norm_bound(self) -> float:
        return self.rtol if self.norm is None else self.norm


@dataclass(frozen=True, order=True)
class Case:
    """One dtype and one shape of an operator. ``shape`` keeps the order in which the spec wrote it."""

    dtype: str
    shape: tuple[tuple[str, int | str], ...]

    @classmethod
    def of(cls, dtype: str, shape: Mapping[str, int | str]) -> Case:
        return cls(dtype, tuple(shape.items()))

    @property
    def dims(self) -> dict[str, int | str]:
        return dict(self.shape)

    @property
    def shape_label(self) -> str:
        """``M=4096,N=1024``: the words a case goes by in asv's parameters, on the command line and on screens."""
        return ",".join(f"{name}={value}" for name, value in self.shape)

    @property
    def label(self) -> str:
        return f"{self.dtype} {self.shape_label}"


def case(dtype: str, **shape: int | str) -> Case:
    """Name a case in a spec's tiers: ``case("float16", M=8192, N=8192)``."""
    return Case.of(dtype, shape)


Inputs = Callable[..., Mapping[str, Input]]
Reference = Callable[..., Any]


@dataclass(frozen=True)
class Operator:
    """A mathematical function with its inputs, its oracle, its cost and its cases.

    inputs(generator, dtype, device, **shape)
        A dict of ``data(tensor)`` and ``weight(tensor)`` in the order of the function's arguments. ``dtype`` is a
        ``torch.dtype``, ``generator`` a seeded ``torch.Generator`` on ``device``. Values must be drawn from the
        generator, so that every call gives fresh ones. ``host_data(tensor)`` is made on ``device`` like the others and
        laid into page-locked host memory by the harness: implementations get it there, CuPy's as a NumPy array; the
        oracle gets it on the device, where the outputs must be. Such an input cannot be empty: no memory, no lock.
    reference(**tensors)
        The float64 oracle: it gets the inputs, floating ones upcast to float64, and returns one tensor or a tuple.
        Never timed.
    flops(**shape)
        Floating-point operations of the mathematical function.
    bytes(itemsize, **shape)
        Its ``Traffic`` in bytes; ``itemsize`` is the dtype's size.
    tolerance
        A ``Tolerance`` for each dtype, or one mapping from dtype to it.
    check_shapes
        Small and awkward shapes: empty, one element, odd, prime, non-contiguous. Each is checked in every dtype.
    bench_shapes
        The shapes that are reported, each in every dtype: tier ``full``.
    tiers
        Which of those cases belong to ``small`` (minutes on a CPU) and ``core`` (at most four cases).
    bound
        Which ceiling is the measure: ``memory`` (the device's), ``compute``, ``link`` (from host to device), or
        ``peer`` (from one GPU to another; of a case on one GPU, ``memory``).
    samples(**shape)
        Items in one call (images, rows), for samples/s. Optional.
    fewest_flops(**shape)
        Operations that a faster algorithm gets by with, where there is one whose answer the tolerance admits, such as
        Winograd's for convolutions: by these a time is called impossible. Optional.
    ladders
        Named sequences of implementations, each one idea further than the one before.
    missing
        Back ends that have no implementation here, or ``torch_compile`` where that has none, each with the reason.
    world
        Of an operator that is spread over several GPUs, the dimension of its shape that says over how many; each has a
        process of its own, a rank (``groundspeed.measure.ranks``). Empty for operators of one GPU. Where it is named,
        ``inputs`` returns one such dict for each rank, in a list, all with the same names, and ``reference`` is called
        as ``reference(rank, tensors)`` with a list of the ranks' tensors by name and answers what that rank returns;
        ``flops``, ``bytes`` and ``samples`` count one rank's share.
    bus_bytes(itemsize, **shape)
        Bytes that the busiest rank must send to the others, and as many receive: bus bandwidth is these over time, as
        NVIDIA's nccl-tests defines it (its doc/PERFORMANCE.md). Only of operators with a ``world``.
    """

    inputs: Inputs
    reference: Reference
    flops: Callable[..., int]
    bytes: Callable[..., Traffic]
    dtypes: tuple[str, ...]
    tolerance: Mapping[str, Tolerance]
    check_shapes: tuple[Mapping[str, int | str], ...]
    bench_shapes: tuple[Mapping[str, int | str], ...]
    tiers: Mapping[str, tuple[Case, ...]]
    bound: str = "memory"
    samples: Callable[..., int] | None = None
    fewest_flops: Callable[..., int] | None = None
    ladders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    world: str = ""
    bus_bytes: Callable[..., int] | None = None

    def __post_init__(self) -> None:
        _require(bool(self.dtypes), "dtypes is empty")
        _require(self.bound in BOUNDS, f"bound is {self.bound!r}, expected one of {', '.join(BOUNDS)}")
        for dtype in self.dtypes:
            _require(dtype in DTYPES, f"unknown dtype {dtype!r}, expected one of {', '.join(DTYPES)}")
            _require(dtype in self.tolerance, f"no tolerance for dtype {dtype}")
        _require(bool(self.check_shapes), "check_shapes is empty")
        _require(bool(self.bench_shapes), "bench_shapes is empty")
        _require(set(self.tiers) == {"small", "core"}, "tiers must name the cases of 'small' and of 'core'")
        _require(len(self.tiers["core"]) <= 4, f"tier core has {len(self.tiers['core'])} cases, at most 4 are allowed")
        _require(bool(self.world) or self.bound != "peer", "bound is 'peer' without a world")
        for shape in (*self.check_shapes, *self.bench_shapes) if self.world else ():
            size = shape.get(self.world)
            _require(isinstance(size, int) and size > 0, f"{self.world}, the world size, is {size!r} in a shape")
        known = set(self.bench_cases)
        for tier, cases in self.tiers.items():
            _require(bool(cases), f"tier {tier} is empty")
            for member in cases:
                _require(member in known, f"tier {tier}: {member.label} is not among dtypes × bench_shapes")

    @property
    def bench_cases(self) -> tuple[Case, ...]:
        return _product(self.dtypes, self.bench_shapes)

    @property
    def check_cases(self) -> tuple[Case, ...]:
        return _product(self.dtypes, self.check_shapes)

    def tier_cases(self, tier: str) -> tuple[Case, ...]:
        """The bench cases of a tier, in the spec's order."""
        if tier == "full":
            return self.bench_cases
        if tier not in self.tiers:
            raise UserError(f"unknown tier {tier!r}: expected one of {', '.join(TIERS)}")
        wanted = set(self.tiers[tier])
        return tuple(case for case in self.bench_cases if case in wanted)

    def traffic(self, case: Case) -> Traffic:
        return self.bytes(ITEMSIZE[case.dtype], **case.dims)

    def flop_count(self, case: Case) -> int:
        return int(self.flops(**case.dims))

    def work(self, case: Case) -> int:
        """How much a case is to do: FLOPs where the operator is bound by them, else bytes."""
        return self.flop_count(case) if self.bound == "compute" else self.traffic(case).total

    def world_size(self, case: Case) -> int:
        """How many ranks a case is spread over; 1 for an operator of one GPU."""
        return int(case.dims[self.world]) if self.world else 1

    def bus_count(self, case: Case) -> int:
        """Bytes that cross between GPUs, as ``bus_bytes`` counts them; 0 where none do."""
        return 0 if self.bus_bytes is None else int(self.bus_bytes(ITEMSIZE[case.dtype], **case.dims))

    def fewest_flop_count(self, case: Case) -> int:
        """What no implementation can do without."""
        return int((self.fewest_flops or self.flops)(**case.dims))


def strided(tensor: Any) -> Any:
    """The same values with a gap of one element between neighbours: a non-contiguous input for check shapes.

    Shape and dtype stay; the last dimension's stride becomes 2. A tensor without dimensions is returned as it is.
    """
    if tensor.dim() == 0:
        return tensor
    wide = tensor.new_empty((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    view = wide[..., ::2]
    view.copy_(tensor)
    return view


def is_name(text: str) -> bool:
    """Whether a folder or file stem can name an operator or an implementation."""
    return _NAME.fullmatch(text) is not None


def _product(dtypes: Sequence[str], shapes: Sequence[Mapping[str, int | str]]) -> tuple[Case, ...]:
    return tuple(Case.of(dtype, shape) for shape in shapes for dtype in dtypes)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise UserError(f"Operator: {message}")
