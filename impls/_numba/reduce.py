"""Reductions over a block of threads: shuffles within a warp, then 32 words of shared memory. Every thread gets the
result.
"""

from numba import cuda, float32

WARP = 32
EVERY_LANE = 0xFFFFFFFF


@cuda.jit(device=True)
def warp_sum(value):
    value += cuda.shfl_xor_sync(EVERY_LANE, value, 16)
    value += cuda.shfl_xor_sync(EVERY_LANE, value, 8)
    value += cuda.shfl_xor_sync(EVERY_LANE, value, 4)
    value += cuda.shfl_xor_sync(EVERY_LANE, value, 2)
    return value + cuda.shfl_xor_sync(EVERY_LANE, value, 1)


@cuda.jit(device=True)
def warp_max(value):
    value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, 16))
    value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, 8))
    value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, 4))
    value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, 2))
    return max(value, cuda.shfl_xor_sync(EVERY_LANE, value, 1))


@cuda.jit(device=True)
def block_sum(value):
    """Of a whole number of warps."""
    partial = cuda.shared.array(WARP, float32)
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    value = warp_sum(value)
    if lane == 0:
        partial[warp] = value
    cuda.syncthreads()
    value = partial[lane] if lane < cuda.blockDim.x // WARP else float32(0.0)
    cuda.syncthreads()  # the next reduction writes here again
    return warp_sum(value)


@cuda.jit(device=True)
def block_max(value):
    """Of a whole number of warps."""
    partial = cuda.shared.array(WARP, float32)
    lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
    value = warp_max(value)
    if lane == 0:
        partial[warp] = value
    cuda.syncthreads()
    value = partial[lane] if lane < cuda.blockDim.x // WARP else partial[0]
    cuda.syncthreads()
    return warp_max(value)
