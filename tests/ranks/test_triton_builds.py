"""The Triton kernels that write to other ranks compile for a GPU, which takes none: stores are wide, flags ordered."""

from __future__ import annotations

import pytest

from tests.impls.judge import TREE

triton = pytest.importorskip("triton")
pytestmark = pytest.mark.slow

CONSTANTS = {"WORLD": 2, "FLAGS": 16384, "MOST": 16, "BLOCK": 8192}
KERNELS = {
    "all_reduce": ("_triton.ranks", "push_and_sum", {"SCATTER": False}),
    "reduce_scatter": ("_triton.ranks", "push_and_sum", {"SCATTER": True}),
    "all_gather": ("_triton.ranks", "stage_and_gather", {}),
    "sharded_relu": ("sharded_relu.triton_push", "sharded_relu", {}),
}


def ptx(module: str, name: str, constants: dict[str, object], rank: int) -> str:
    """Of a kernel for Hopper, its sizes multiples of 16; Triton builds an argument that is 1 into the kernel."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(TREE.load(module), name)
    known = {**CONSTANTS, **constants, **({"rank": 1} if rank == 1 else {})}
    types = {"x": "*bf16", "y": "*bf16", "addresses": "*i64", "calls": "*i32"}
    signature = {one: "constexpr" if one in known else types.get(one, "i32") for one in kernel.arg_names}
    sizes = [place for place, one in enumerate(kernel.arg_names) if signature[one] != "constexpr" and one != "rank"]
    source = ASTSource(kernel, signature, known, {(place,): [["tt.divisibility", 16]] for place in sizes})
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8}).asm["ptx"]


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("operator", sorted(KERNELS))
def test_it_compiles_with_wide_stores_and_ordered_flags(operator, rank):
    lines = ptx(*KERNELS[operator], rank).splitlines()
    assert any("st.global.v4" in line for line in lines)
    assert any("sys.release" in line or "release.sys" in line for line in lines)
    assert any("sys.acquire" in line or "acquire.sys" in line for line in lines)
