"""The spec type: what it accepts, its cases and tiers, and strided inputs."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest

from groundspeed.errors import UserError
from groundspeed.operator import Case, Operator, Tolerance, Traffic, case, strided

FIELDS = {
    "inputs": lambda generator, dtype, device, M, N: {},
    "reference": lambda x: x,
    "flops": lambda M, N: 3 * M * N,
    "bytes": lambda itemsize, M, N: Traffic(itemsize * M * N, itemsize * M),
    "dtypes": ("float32", "bfloat16"),
    "tolerance": {"float32": Tolerance(1e-6, 1e-6), "bfloat16": Tolerance(1e-2, 1e-2, norm=1e-3)},
    "check_shapes": ({"M": 0, "N": 1}, {"M": 3, "N": 7}),
    "bench_shapes": ({"M": 2, "N": 64}, {"M": 4, "N": 64}),
    "tiers": {
        "small": (case("float32", M=2, N=64),),
        "core": (case("bfloat16", M=4, N=64), case("float32", M=2, N=64)),
    },
}
SPEC = Operator(**FIELDS)


def test_cases_are_the_product_of_shapes_and_dtypes_in_the_specs_order():
    expected = [Case.of(d, s) for s, d in product(FIELDS["bench_shapes"], FIELDS["dtypes"])]
    assert list(SPEC.bench_cases) == list(SPEC.tier_cases("full")) == expected
    assert [one.label for one in SPEC.check_cases][:2] == ["float32 M=0,N=1", "bfloat16 M=0,N=1"]


def test_a_tier_keeps_the_specs_order_not_its_own():
    assert [one.label for one in SPEC.tier_cases("core")] == ["float32 M=2,N=64", "bfloat16 M=4,N=64"]
    with pytest.raises(UserError, match="unknown tier 'huge': expected one of small, core, full"):
        SPEC.tier_cases("huge")


def test_costs_are_asked_with_the_dtypes_size():
    one = Case.of("bfloat16", {"M": 2, "N": 64})
    assert SPEC.traffic(one) == Traffic(256, 4) and SPEC.traffic(one).total == 260
    assert SPEC.flop_count(one) == 384


def test_the_norms_bound_is_rtol_unless_said():
    assert SPEC.tolerance["float32"].norm_bound == 1e-6
    assert SPEC.tolerance["bfloat16"].norm_bound == 1e-3
    assert Tolerance(1e-3, 0.0, norm=0.0).norm_bound == 0.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dtypes": ()}, "dtypes is empty"),
        ({"dtypes": ("float8",)}, "unknown dtype 'float8'"),
        ({"dtypes": ("float32", "float16")}, "no tolerance for dtype float16"),
        ({"bound": "latency"}, "bound is 'latency', expected one of memory, compute, link"),
        ({"check_shapes": ()}, "check_shapes is empty"),
        ({"bench_shapes": ()}, "bench_shapes is empty"),
        ({"tiers": {"small": FIELDS["tiers"]["small"]}}, "tiers must name the cases of 'small' and of 'core'"),
        ({"tiers": {**FIELDS["tiers"], "small": ()}}, "tier small is empty"),
        ({"tiers": {**FIELDS["tiers"], "core": (case("float32", M=9, N=9),)}}, "float32 M=9,N=9 is not among"),
        ({"tiers": {**FIELDS["tiers"], "core": FIELDS["tiers"]["small"] * 5}}, "has 5 cases, at most 4 are allowed"),
    ],
)
def test_a_spec_that_makes_no_sense_says_why(change, said):
    with pytest.raises(UserError, match="Operator: ") as caught:
        dataclasses.replace(SPEC, **change)
    assert said in str(caught.value)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (2, 3), (2, 3, 4)])
def test_strided_keeps_the_values_and_breaks_contiguity(shape):
    torch = pytest.importorskip("torch")
    values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)
    view = strided(values)
    assert torch.equal(view, values) and view.dtype == values.dtype
    assert view.is_contiguous() is (values.numel() < 2 or len(shape) == 0)
    if shape:
        assert view.stride(-1) == 2
