"""The referee's parts by themselves: kernels' names, the data sheet's bound, errors against a slow oracle."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.kernel_names import qualified_name
from groundspeed.measure.referee import foreign_kernel, impossible
from groundspeed.measure.referee.bits import dense, overlap, reach
from groundspeed.measure.referee.errors import Errors
from groundspeed.measure.referee.memory import growing
from groundspeed.operator import Tolerance

EAGER_RELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar("
    "at::TensorIteratorBase&, c10::Scalar, c10::Scalar, at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
    "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int, at::native::"
    "(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar))"
)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("relu_block", "relu_block"),
        ("void (anonymous namespace)::relu<float>(float const*, float*, long)", "relu"),
        ("void gs_1a::(anonymous namespace)::rows<__half, 4>(__half const*)", "gs_1a::::rows"),
        ("(anonymous namespace)::plain(float*)", "plain"),
        (EAGER_RELU, "at::native::vectorized_elementwise_kernel"),
        ("void cub::CUB_200_NS::DeviceReduceKernel<int>(int*)", "cub::CUB_200_NS::DeviceReduceKernel"),
        ("sm80_xmma_gemm_f32f32_tn", "sm80_xmma_gemm_f32f32_tn"),
    ],
)
def test_a_kernel_goes_by_the_name_before_its_arguments(kernel, name):
    assert qualified_name(kernel) == name


@pytest.mark.parametrize(
    ("launched", "own", "foreign"),
    [
        (["relu_block"], {"relu_block"}, ""),
        (["Memset (Device)", "relu_block", "Memcpy DtoD (Device -> Device)"], {"relu_block"}, ""),
        (["void (anonymous namespace)::relu<float>(float*)"], {"relu"}, ""),
        (["void cub::CUB_200_NS::DeviceReduceKernel<int>(int*)"], {"DeviceReduceKernel"}, ""),
        (["relu_block", EAGER_RELU], {"relu_block"}, EAGER_RELU),
        ([EAGER_RELU], {"kernel", "relu", "clamp", "elementwise"}, EAGER_RELU),
        ([EAGER_RELU], {"vectorized_elementwise_kernel"}, EAGER_RELU),
        (["sm80_xmma_gemm_f32f32_tn"], {"gemm"}, "sm80_xmma_gemm_f32f32_tn"),
        (["nvjet_hsh_128x256", "block"], {"block"}, "nvjet_hsh_128x256"),
        ([], {"relu"}, ""),
    ],
)
def test_a_kernel_is_ones_own_by_its_whole_name(launched, own, foreign):
    assert foreign_kernel(launched, own) == foreign


MIB = 1 << 20


@pytest.mark.parametrize(
    ("read", "written", "flops", "ns", "possible"),
    [
        (256 * MIB, 256 * MIB, 0, 112_000, True),  # 537 MB in 112 µs: 4.79 TB/s
        (256 * MIB, 256 * MIB, 0, 98_000, False),  # 5.48, and still 4.84 without the 60 MiB that the L2 may hold
        (256 * MIB, 256 * MIB, 0, 100_500, True),  # 5.34, and 4.72 without them
        (64 * MIB, 64 * MIB, 0, 1_000, True),  # within 4 × L2 bandwidth says nothing
        (0, 512 * MIB, 0, 90_000, False),
        (1, 1, 2 * 4096**3, 139_000, True),  # 988.8 TFLOP/s
        (1, 1, 2 * 4096**3, 138_000, False),
    ],
)
def test_nothing_beats_the_data_sheet_of_an_h200(read, written, flops, ns, possible):
    assert (impossible(read, written, 60 * MIB, flops, ns, 4.8e12, 989.4e12) == "") == possible


def test_where_no_peak_is_known_nothing_is_impossible():
    assert impossible(1 << 40, 1 << 40, 0, 1 << 60, 1.0, 0.0, 0.0) == ""


@pytest.mark.parametrize(
    ("grown", "size", "complains"),
    [
        ((80_000, 80_000, 40_000), 40_000, True),
        ((80_000, 0, 40_000), 40_000, False),
        ((80_000,), 40_000, False),
        ((), 40_000, False),
        ((4000, 4000), 4, False),
        ((5000, 5000), 4, True),
        ((39_000, 39_000), 40_000, False),
    ],
)
def test_only_memory_that_grows_in_every_trial_is_a_leak(grown, size, complains):
    assert (growing(grown, size) is not None) == complains


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=30), st.sampled_from([0.0, 1e-3, 1.0]))
def test_errors_are_what_a_loop_over_elements_finds(pairs, atol):
    allowed = Tolerance(rtol=1e-2, atol=atol)
    out = torch.tensor([pair[0] for pair in pairs], dtype=torch.float32)
    ref = torch.tensor([pair[1] for pair in pairs], dtype=torch.float64)
    found = Errors.of((out,), (ref,), allowed)
    usable = [(o, r) for o, r in pairs if math.isfinite(o) and math.isfinite(r)]
    largest = torch.finfo(torch.float32).max
    overflow = [(o, r) for o, r in pairs if math.isinf(o) and abs(r) >= largest and (o > 0) == (r > 0)]
    assert found.not_finite == sum(not math.isfinite(o) and math.isfinite(r) for o, r in pairs) - sum(
        math.isfinite(r) for _, r in overflow
    )
    assert found.not_equal == sum(
        not math.isfinite(r) and o != r and not (math.isnan(o) and math.isnan(r)) for o, r in pairs
    )
    assert found.accuracy.max_abs == max((abs(o - r) for o, r in usable), default=0.0)
    used = [abs(o - r) / (atol + 1e-2 * abs(r)) if atol or r else math.inf for o, r in usable if o != r]
    assert found.accuracy.tolerance_used == pytest.approx(max(used, default=0.0))
    square, size = sum((o - r) ** 2 for o, r in usable), sum(r * r for _, r in usable)
    if size and math.isfinite(square / size):
        assert found.accuracy.norm == pytest.approx(math.sqrt(square / size))


@pytest.mark.parametrize(
    ("size", "stride", "is_dense"),
    [
        ((), (), True),
        ((4, 6), (6, 1), True),
        ((4, 6), (1, 4), True),
        ((4, 1), (1, 77), True),
        ((0, 5), (9, 2), True),
        ((4, 6), (8, 1), False),
        ((4,), (2,), False),
        ((4, 6), (0, 1), False),
        ((1, 512, 512, 3), (2097152, 4096, 8, 1), False),  # what torch.compile's fp16 normalize_color once returned
    ],
)
def test_dense_memory(size, stride, is_dense):
    room = 1 + sum(max(0, n - 1) * s for n, s in zip(size, stride, strict=True))
    assert dense(torch.empty(room).as_strided(size, stride)) == is_dense


def test_ranges_of_memory():
    room = torch.empty(10)
    assert reach(room[::3]) == 10 and reach(room[:0]) == 0
    assert overlap(room[:6], room[5:]) and not overlap(room[:5], room[5:])
    assert not overlap(room[3:3], room)
