"""cuBLAS for every product, raw kernels for all between: norms, heads, softmax, bias with GELU, bias with a sum.

One projection for queries, keys and values; the scores are written by a product, replaced by their softmax in one
kernel and read by a product, in batches that keep float16: 3.5 passes, for keys that a query does not see are written
as 0 without being read. With n = B·S·D elements and F = 4D, besides: norms 4n, projection 4n, heads 6n, queries and
keys 2n, values 2n, joining heads 2n, output 2n, MLP 10n, and kernels behind three products 3n, 8n and 3n.

Predicted for float16 B=8,S=512,D=1024,H=16,F=4096: kernels between products, 26n of 8.4 MB and 1.5 passes over 67 MB,
76 µs at 4.2 TB/s; products with weights, 103 GFLOP at 600 TFLOP/s, 172 µs; those of the scores, by their traffic, 40
µs. That is twice as fast as eager's 597 µs, and 1.6 times with what fourteen short launches lose at their ends.

Reached on nvidia-h200 at 968ac8c4: 1.29 ms for float16 B=8,S=512,D=1024,H=16,F=4096, 83.0 TFLOP/s, 11 % of the compute
ceiling, 0.462 times as fast as torch_eager.
"""

import math

import cupy
import numpy

from .._cupy.batched import batched_product
from .._cupy.dtypes import unsupported
from .._cupy.heads import Heads
from .._cupy.packed_rows import held_rows
from .._cupy.products import row_packs
from .._cupy.scores import empty_scores, softmax_in_place
from ..layer_norm.cupy_raw import EPSILON
from ..layer_norm.cupy_raw import SOURCE as LAYER_NORM
from ..matmul_gelu.cupy_matmul import activation

__all__ = ["prepare", "unsupported"]

ROWS = 2  # of a thread of the sum

SOURCE = r"""
constexpr int kRows = @ROWS@;

// z + bias + residual in place of z, all [rows, columns]
template <typename T, int kLanes>
__global__ void bias_sum(T* z, const T* __restrict__ bias, const T* __restrict__ residual, int rows, int columns,
                         int across) {
  const Place at = run_place<kLanes>(across);
  if (at.column >= columns) return;
  const long long first = at.row * kRows;
  Run<T, kLanes> held[kRows], others[kRows];
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const long long place = (first + row) * columns + at.column;
    if (first + row >= rows) continue;
    held[row] = load_run<kLanes>(z + place);
    others[row] = load_run<kLanes>(residual + place);
  }
  const Run<T, kLanes> added = load_run<kLanes>(bias + at.column);
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    float sums[kLanes];
#pragma unroll
    for (int i = 0; i < kLanes; ++i) {
      sums[i] = as_float(held[row].lanes[i]) + as_float(added.lanes[i]) + as_float(others[row].lanes[i]);
    }
    if (first + row < rows) store_run<kLanes>(z + (first + row) * columns + at.column, rounded<T>(sums));
  }
}
""".replace("@ROWS@", str(ROWS))


class Kernels:
    """What runs between the products, for x [B, S, D] like that given."""

    def __init__(self, x, heads):
        batches, length, width = x.shape
        self._norm = held_rows(LAYER_NORM, "layer_norm_rows", x.reshape(-1, width))
        self._add = row_packs(SOURCE, "bias_sum", x.dtype, down=ROWS)
        self.activate = activation(x.dtype)
        self.heads = Heads(x.dtype, batches, length, heads, width // heads)
        self.softmax = softmax_in_place(length, x.dtype)

    def norm(self, x, weight, bias):
        return self._norm(cupy.empty(x.shape, dtype=x.dtype), (x, weight, bias), EPSILON)

    def add(self, product, bias, residual):
        """product + bias + residual, in place of the product."""
        self._add(*product.shape, (product, bias, residual), (numpy.int32(product.shape[0]),))
        return product


def prepare(x, heads, **p):
    count = int(heads.get()[0])
    projection = cupy.concatenate([p["query"], p["key"], p["value"]], axis=1)
    bias = cupy.concatenate([p["query_bias"], p["key_bias"], p["value_bias"]])
    batches, length, width = x.shape
    scale = 1.0 / math.sqrt(width // count)
    kernels = Kernels(x, count)

    def attend(normed):
        """Attention of [B·S, D], with its heads side by side again."""
        q, k, v = kernels.heads.split(cupy.matmul(normed, projection), bias, 3)
        scores = empty_scores(batches, count, length, x.dtype)
        batched_product(q, k, scores, transpose_b=True, alpha=scale)
        return kernels.heads.join(batched_product(kernels.softmax(scores, True), v))

    def run():
        if x.size == 0:
            return cupy.empty(x.shape, dtype=x.dtype)
        rows = cupy.ascontiguousarray(x).reshape(-1, width)
        attended = attend(kernels.norm(rows, p["norm1_weight"], p["norm1_bias"]))
        h = kernels.add(cupy.matmul(attended, p["output"]), p["output_bias"], rows)
        up = cupy.matmul(kernels.norm(h, p["norm2_weight"], p["norm2_bias"]), p["up"])
        result = cupy.matmul(kernels.activate(up, p["up_bias"]), p["down"])
        return kernels.add(result, p["down_bias"], h).reshape(x.shape)

    return run
