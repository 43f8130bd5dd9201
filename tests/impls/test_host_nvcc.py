"""The stand-in for nvcc and a GPU tells what a GPU would not survive, and shows what it would hide by luck."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import torch

from tests.impls.host_cupy import Fault
from tests.impls.host_nvcc import Operators, Order, compiled

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="compiles kernels for the CPU: no g++ here")

TURN = """
#include "../_cuda/elementwise.cuh"
#include "../_cuda/mma.cuh"

namespace {

using namespace groundspeed;

// Two warps turn 16 x 16 halves around, or do something wrong. Warp 0 stores; the other copies for it in 12 and 13.
__global__ void turn(const __half* x, __half* y, int fault) {
  extern __shared__ __align__(16) unsigned char tile[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const __half* source = x + lane * 8 + (fault == 1) * 256 + (fault == 2);
  const uint32_t place = shared_address(tile) + lane * 16 + (fault == 3) * 16;
  if (warp == (fault == 12 || fault == 13)) copy_async16(place, source, true);
  commit_copies();
  if (fault != 4) wait_copies<0>();
  if (fault != 13) __syncthreads();
  if (fault == 5 && lane == 5) return;
  if (fault == 6 && warp == 1) __syncthreads();
  if (fault == 7 && lane % 2 == 0) __syncwarp();
  uint32_t words[4];
  load_matrices_transposed(words, shared_address(tile) + lane % 16 * 32 + lane / 16 * 16 + (fault == 8) * 8);
  if (fault == 14 && warp == 0) {  // over what is still read
    copy_async16(shared_address(tile) + lane * 16, x, true);
    commit_copies();
  }
  if (fault == 14) load_matrices_transposed(words, shared_address(tile) + lane % 16 * 32 + lane / 16 * 16);
  wait_copies<0>();
  if (warp == 1) return;
  const int row = lane / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; ++i) {
    __half* at = y + (row + i / 2 * 8) * 16 + column + i % 2 * 8 + (fault == 9) + (fault == 10) * 256;
    *reinterpret_cast<uint32_t*>(at) = words[i];
  }
}

Tensor run(Tensor x, Tensor faults) {
  const int fault = static_cast<int>(faults.numel());
  const Tensor y = torch::stable::empty_like(x);
  const auto kernel = turn;
  const int bytes = fault == 11 ? 50000 : 512;
  kernel<<<1, 64, bytes, current_stream(x)>>>(input_pointer<__half>(x), output_pointer<__half>(y), fault);
  check_launch("turn");
  return y;
}

}  // namespace

GROUNDSPEED_OPERATOR("run(Tensor x, Tensor faults) -> Tensor", run)
"""
LATE, EAGER, BACKWARDS = Order(), Order(eager=True), Order(backwards=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stand-in") / "turn"
    folder.mkdir()
    (folder / "cuda_turn.cu").write_text(TURN)
    return compiled(folder / "cuda_turn.cu", folder / "made")


def turns(library: Any, fault: int, order: Order) -> bool:
    x = torch.arange(256, dtype=torch.float16).reshape(16, 16)
    return torch.equal(Operators(library, order).run(x, torch.zeros(fault)), x.T)


@pytest.mark.parametrize("order", [LATE, EAGER, BACKWARDS])
@pytest.mark.parametrize("copied_by_the_other_warp", [0, 12])
def test_what_is_right_is_right_in_every_order(library, order, copied_by_the_other_warp):
    assert turns(library, copied_by_the_other_warp, order)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (1, "outside of every array"),  # read by a copy, when it is waited for
        (2, "from no multiple of 16"),
        (3, "outside of shared memory"),
        (5, "of their warp which do not come"),
        (6, "not every thread comes to"),
        (7, "at different instructions"),
        (8, "of shared memory at no multiple of 16"),
        (9, "misaligned"),
        (10, "outside of every array"),  # written
        (11, "more shared memory than was allowed"),
    ],
)
def test_what_a_gpu_would_not_survive_is_told(library, fault, said):
    with pytest.raises(Fault, match=said):
        turns(library, fault, LATE)


def test_a_missing_wait_shows_where_copies_are_late(library):
    assert turns(library, 4, EAGER)
    assert not turns(library, 4, LATE)


def test_a_missing_barrier_shows_in_one_order_of_warps(library):
    assert turns(library, 13, BACKWARDS)
    assert not turns(library, 13, LATE)


def test_a_copy_over_what_is_still_read_shows_where_copies_are_at_once(library):
    assert turns(library, 14, LATE)
    assert not turns(library, 14, EAGER)
