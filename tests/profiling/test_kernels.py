"""Launches gathered into kernels, kernels matched with the compiler's facts, and how many of their warps fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.kernel_names import instance_name, short_name
from groundspeed.profiling.kernels import Kernel, Launch, gather, with_resources
from groundspeed.profiling.occupancy import LIMITERS, multiprocessor, theoretical
from groundspeed.records import KernelResources

H100 = multiprocessor("9.0")
A100 = multiprocessor("8.0")


@pytest.mark.parametrize(
    ("demangled", "instance", "short"),
    [
        ("void (anonymous namespace)::relu<float, 4>(float const*, float*, long)", "relu<float,4>", "relu"),
        ("void <unnamed>::relu<float, (int)4>(const T1 *, T1 *, long)", "relu<float,4>", "relu"),
        ("void <unnamed>::rows<__half, (bool)1>(const T1 *)", "rows<__half,1>", "rows"),
        ("void gs::(anonymous namespace)::rows<float const*>(float)", "rows<float*>", "rows"),
        ("relu_block", "relu_block", "relu_block"),
        ("void at::native::fill<4, at::native::F<float>>(int)", "fill<4,at::native::F<float>>", "fill"),
        ("Memset (Device)", "Memset", "Memset"),
    ],
)
def test_a_kernel_has_one_name_whoever_spells_it(demangled, instance, short):
    assert (instance_name(demangled), short_name(demangled)) == (instance, short)


def launch(name: str, ns: float, **more: object) -> Launch:
    return Launch(name, ns, (8, 1, 1), (256, 1, 1), **more)  # type: ignore[arg-type]


def test_kernels_come_by_their_share_of_the_time():
    seen = [launch("short", 10.0), launch("long", 100.0), launch("short", 30.0), launch("long", 300.0)]
    seen += [launch("short", 20.0)] * 2
    first, second = gather(seen, calls=2)
    assert (first.name, first.launches, first.duration_ns, first.time_ns) == ("long", 1.0, 200.0, 200.0)
    assert (second.name, second.launches, second.duration_ns) == ("short", 2.0, 20.0)


def test_another_grid_is_another_row_and_counters_are_medians():
    wide = Launch("k", 5.0, (16, 1, 1), (256, 1, 1))
    one, other = gather([launch("k", 9.0, counters={"a": 1.0}), launch("k", 9.0, counters={"a": 3.0}), wide], calls=1)
    assert one.counters == {"a": 2.0} and one.blocks == 8 and other.blocks == 16 and other.counters == {}


RESOURCES = (
    KernelResources("void <unnamed>::rows<float, (int)4>(const float *)", 32, 1024, 0),
    KernelResources("void <unnamed>::rows<__half, (int)8>(const __half *)", 40, 2048, 16),
    KernelResources("plain", 12, 0, 0),
)


def kernel(name: str, **more: object) -> Kernel:
    return Kernel(name, 1.0, 1.0, **more)  # type: ignore[arg-type]


def test_the_compilers_facts_are_found_by_the_whole_name():
    float_rows, half_rows, plain, foreign = with_resources(
        [
            kernel("void (anonymous namespace)::rows<float, 4>(float const*)"),
            kernel("void (anonymous namespace)::rows<__half, 8>(__half const*)", shared_bytes=4096),
            kernel("plain", registers=12),
            kernel("void at::native::fill<4>(int)"),
        ],
        RESOURCES,
    )
    assert (float_rows.registers, float_rows.shared_bytes, float_rows.spill_bytes) == (32, 1024, 0)
    assert (half_rows.registers, half_rows.shared_bytes, half_rows.spill_bytes) == (40, 4096, 16)
    assert plain.spill_bytes == 0 and foreign.spill_bytes is None and foreign.registers is None


def test_by_the_bare_name_only_where_registers_leave_no_doubt():
    sure, unsure = with_resources([kernel("rows", registers=40), kernel("rows")], RESOURCES)
    assert sure.spill_bytes == 16 and unsure.spill_bytes is None


def test_variants_of_one_name_are_told_apart_by_their_registers():
    variants = (KernelResources("row", 32, 0, 0), KernelResources("row", 255, 0, 64))
    few, many, unsure = with_resources(
        [kernel("row", registers=32), kernel("row", registers=255), kernel("row")], variants
    )
    assert (few.spill_bytes, many.spill_bytes, unsure.spill_bytes) == (0, 64, None)


@pytest.mark.parametrize(
    ("of", "threads", "registers", "shared", "blocks", "share", "limiter"),
    [
        (H100, 256, 32, 0, 8, 1.0, "warps"),
        (H100, 256, 64, 0, 4, 0.5, "registers"),
        (H100, 256, 33, 0, 6, 0.75, "registers"),
        (H100, 32, 16, 0, 32, 0.5, "blocks"),
        (H100, 1024, 65, 0, 0, 0.0, "registers"),  # the launch would fail
        (H100, 128, 168, 49152, 3, 0.1875, "registers"),  # 168·32 → 5376 a warp, 3 of them a partition
        (H100, 128, 64, 49152, 4, 0.25, "shared memory"),  # 228 KiB over 48 + 1
        (H100, 384, 168, 213 << 10, 1, 0.1875, "registers"),
        (A100, 128, 32, 49152, 3, 0.1875, "shared memory"),  # 164 KiB over 48 + 1
        (A100, 100, 20, 0, 16, 1.0, "warps"),
        (multiprocessor("8.6"), 1024, 32, 0, 1, 0.6667, "warps"),
        (multiprocessor("7.5"), 256, 32, 32 << 10, 2, 0.5, "shared memory"),
    ],
)
def test_what_fits_is_what_the_occupancy_calculator_says(of, threads, registers, shared, blocks, share, limiter):
    """Worked by hand from the limits and granularities that the module names."""
    found = theoretical(of, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.share == pytest.approx(share, abs=1e-4)


SIZES = {"threads": st.integers(1, 1024), "registers": st.integers(0, 255), "shared": st.integers(0, 227 << 10)}


@given(**SIZES, more=st.sampled_from(["threads", "registers", "shared"]), step=st.integers(1, 1 << 14))
def test_asking_for_more_never_lets_more_blocks_fit(threads, registers, shared, more, step):
    assert H100 is not None
    asked = {"threads": threads, "registers": registers, "shared": shared}
    before = theoretical(H100, **asked)
    after = theoretical(H100, **{**asked, more: asked[more] + step})
    assert after.blocks <= before.blocks
    assert 0 <= before.warps <= H100.warps and before.limiter in LIMITERS


def test_an_unknown_gpu_has_no_occupancy():
    assert multiprocessor("3.5") is None and multiprocessor("") is None
