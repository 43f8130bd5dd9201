"""The scores of attention, [B, H, S, S], between two products: laid out for 16-byte packs, and softmax in place.

Rows begin at multiples of a pack, with a gap behind them where S is none; cuBLAS passes over it. Short rows go to a
warp each, eight to a block, longer ones to a block, both of which hold them in registers; what is longer than that is
read twice. Keys that a query does not see are not read, and written as 0.
"""

import math

import cupy
import numpy

from .dtypes import C_TYPES, CONVERSIONS
from .products import RUNS
from .rows import BLOCK_REDUCTIONS

THREADS, WARP = 256, 32
PACKS = (1, 2, 4)  # of a thread
MOST_PACKS = 8  # and where a whole block holds a row
WALKED = 0  # in place of their number: no block can hold the row

# For all kernels on such rows.
SCORE_ROWS = r"""
// The run of kLanes that begins at `at`. The last of a row may end in the gap behind it, which nobody wrote.
template <bool kWhole, int kLanes, typename T>
__device__ inline Run<T, kLanes> load_scores(const T* row, int at, int length) {
  Run<T, kLanes> run;
  if (kWhole || at + kLanes <= length) {
    run = load_run<kLanes>(row + at);
  } else {
    for (int i = 0; i < kLanes; ++i) {
      if (at + i < length) run.lanes[i] = row[at + i];
      else put(run.lanes + i, 0.0f);
    }
  }
  return run;
}
"""

SOURCE = r"""
constexpr float kLog2E = 1.44269504088896340736f;

template <int kThreads>
__device__ inline float row_max(float value) {
  if constexpr (kThreads > 32) {
    value = block_max(value);
  } else {
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

template <int kThreads>
__device__ inline float row_sum(float value) {
  if constexpr (kThreads > 32) {
    value = block_sum(value);
  } else {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  }
  return value;
}

// scores [heads, length] of rows of `pitch`, kThreads threads a row. A head's rows are `across` blocks; query i sees
// the first i + 1 keys if causal.
template <typename T, int kPacks, int kThreads, bool kWhole>
__global__ void __launch_bounds__(256) softmax_held(T* __restrict__ scores, int length, int pitch, int across,
                                                    int causal) {
  constexpr int kLanes = 16 / sizeof(T);
  const int lane = threadIdx.x % kThreads;
  const int query = blockIdx.x % across * (256 / kThreads) + threadIdx.x / kThreads;
  if (query >= length) return;  // whole warps; where a block has one row, none
  T* row = scores + (static_cast<long long>(blockIdx.x / across) * length + query) * pitch;
  const int seen = causal ? query + 1 : length;
  Run<T, kLanes> held[kPacks];
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    const int at = (pack * kThreads + lane) * kLanes;
    if (at < seen) held[pack] = load_scores<kWhole, kLanes>(row, at, length);
  }
  float values[kPacks][kLanes], top = NEGATIVE_INFINITY;
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      const bool sees = (pack * kThreads + lane) * kLanes + i < seen;
      values[pack][i] = sees ? as_float(held[pack].lanes[i]) : NEGATIVE_INFINITY;
      top = fmaxf(top, values[pack][i]);
    }
  }
  const float shift = -kLog2E * row_max<kThreads>(top);
  float sum = 0.0f;
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      values[pack][i] = exp2f(fmaf(values[pack][i], kLog2E, shift));
      sum += values[pack][i];
    }
  }
  const float inverse = 1.0f / row_sum<kThreads>(sum);
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    const int at = (pack * kThreads + lane) * kLanes;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) values[pack][i] *= inverse;
    if (at < length) store_run<kLanes>(row + at, rounded<T>(values[pack]));
  }
}

// The same, a block a row, which is read twice. Threads add up beneath maxima of their own: products with these, if
// they were rounded as above, would not cancel.
template <typename T, bool kWhole>
__global__ void __launch_bounds__(256) softmax_walked(T* __restrict__ scores, int length, int pitch, int across,
                                                      int causal) {
  constexpr int kLanes = 16 / sizeof(T);
  const int query = blockIdx.x % across;
  T* row = scores + (static_cast<long long>(blockIdx.x / across) * length + query) * pitch;
  const int seen = causal ? query + 1 : length;
  float maximum = NEGATIVE_INFINITY, sum = 0.0f;
  for (int at = threadIdx.x * kLanes; at < seen; at += blockDim.x * kLanes) {
    const Run<T, kLanes> run = load_scores<kWhole, kLanes>(row, at, length);
    float values[kLanes], top = maximum;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      values[i] = at + i < seen ? as_float(run.lanes[i]) : NEGATIVE_INFINITY;
      top = fmaxf(top, values[i]);
    }
    const float base = top == NEGATIVE_INFINITY ? 0.0f : top;
    sum *= exp2f((maximum - base) * kLog2E);
    maximum = top;
#pragma unroll
    for (int i = 0; i < kLanes; ++i) sum += exp2f((values[i] - base) * kLog2E);
  }
  const float top = block_max(maximum);
  if (maximum != NEGATIVE_INFINITY) sum *= exp2f((maximum - top) * kLog2E);
  const float inverse = 1.0f / block_sum(sum);
  for (int at = threadIdx.x * kLanes; at < length; at += blockDim.x * kLanes) {
    float values[kLanes] = {};
    if (at < seen) {
      const Run<T, kLanes> run = load_scores<kWhole, kLanes>(row, at, length);
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        if (at + i < seen) values[i] = exp2f((as_float(run.lanes[i]) - top) * kLog2E) * inverse;
      }
    }
    store_run<kLanes>(row + at, rounded<T>(values));
  }
}
"""


def empty_scores(batches, heads, length, dtype):
    """[B, H, S, S] of nothing yet, whose rows are whole packs apart; a slice of them where S is not."""
    pitch = pitch_of(length, dtype.itemsize)
    return cupy.empty((batches, heads, length, pitch), dtype=dtype)[..., :length]


def pitch_of(length, itemsize):
    """Elements from row to row."""
    lanes = 16 // itemsize
    return -(-length // lanes) * lanes


def plan(length, lanes):
    """(kPacks, kThreads) for rows of so many elements, ``lanes`` in a pack; kPacks is WALKED where none suffice."""
    packs = -(-length // lanes)
    for threads, most in ((WARP, PACKS), (THREADS, (*PACKS, MOST_PACKS))):
        for held in most:
            if packs <= held * threads:
                return held, threads
    return WALKED, THREADS


def softmax_in_place(length, dtype):
    """``launch(scores, causal)``: a causal mask and softmax over what ``empty_scores`` made, of scores times 1/√D."""
    packs, threads = plan(length, 16 // dtype.itemsize)
    pitch = pitch_of(length, dtype.itemsize)
    whole = "true" if pitch == length else "false"
    c_type = C_TYPES[dtype.name]
    name = f"softmax_held<{c_type}, {packs}, {threads}, {whole}>" if packs else f"softmax_walked<{c_type}, {whole}>"
    code = CONVERSIONS + BLOCK_REDUCTIONS + RUNS + SCORE_ROWS + SOURCE
    kernel = cupy.RawModule(code=code, options=("-std=c++17",), name_expressions=(name,)).get_function(name)
    across = -(-length * threads // THREADS)

    def launch(scores, causal):
        heads = math.prod(scores.shape[:-2])
        if scores.size:
            counts = (numpy.int32(length), numpy.int32(pitch), numpy.int32(across), numpy.int32(causal))
            kernel((heads * across,), (THREADS,), (scores, *counts))
        return scores

    return launch
