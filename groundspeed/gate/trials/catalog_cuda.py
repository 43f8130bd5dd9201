"""Plants in ``.cu`` files."""

from __future__ import annotations

from dataclasses import replace

from groundspeed.gate.trials.plant import C_WAIT, TABLE, Edit, Kind, Plant, cuda_table, sizes

_AFTER_USING = "using namespace groundspeed;\n"


def _cuda(operator: str, implementation: str, kind: Kind, *edits: Edit) -> Plant:
    wait = C_WAIT if kind is Kind.SPIN else ""
    head = Edit(_AFTER_USING, f"{_AFTER_USING}\n{TABLE}{wait}")
    return Plant(operator, implementation, f"{operator}/{implementation}.cu", kind, cuda_table, (head, *edits))


_RELU = replace(
    _cuda(
        "relu",
        "cuda_branchfree",
        Kind.AGAIN,
        Edit(
            "constexpr int kBlock = 256;\n",
            "constexpr int kBlock = 256;\n\n"
            "// planted: the threads of whole blocks that cover size elements; those beyond begin again\n"
            "__device__ inline int64_t padded(int64_t size) { return ceil_div(size, kBlock) * kBlock; }\n",
        ),
        Edit(
            "  const int64_t i = global_thread();\n",
            "  const int64_t i = global_thread() < padded(size) ? global_thread() : global_thread() - padded(size);\n",
        ),
        Edit(
            "    relu_branchfree<<<covering_grid(size, kBlock), kBlock, 0, stream>>>(in, out, size);\n",
            "    const unsigned again = planted<std::remove_pointer_t<decltype(out)>>(size, 0);\n"
            "    relu_branchfree<<<covering_grid(size, kBlock) + again, kBlock, 0, stream>>>(in, out, size);\n",
        ),
    ),
    units=lambda case: -(-sizes(case)[0] // 256),
)

CUDA = (
    _cuda(
        "softmax",
        "cuda_block",
        Kind.AGAIN,
        Edit(
            "    softmax_block_kernel(const T* __restrict__ x, T* __restrict__ y, int length) {\n",
            "    softmax_block_kernel(const T* __restrict__ x, T* __restrict__ y, int length, unsigned rows) {\n",
        ),
        Edit(
            "  const int64_t start = static_cast<int64_t>(blockIdx.x) * length;\n  float values[kElements];\n",
            "  const unsigned row = blockIdx.x < rows ? blockIdx.x : blockIdx.x - rows;\n"
            "  const int64_t start = static_cast<int64_t>(row) * length;\n  float values[kElements];\n",
        ),
        Edit(
            "  kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(warps",
            "  const unsigned again = planted<T>(rows, length);\n"
            "  kernel<<<static_cast<unsigned>(rows) + again, static_cast<unsigned>(warps",
        ),
        Edit("static_cast<int>(length));\n}\n", "static_cast<int>(length), rows);\n}\n"),
    ),
    _cuda(
        "rms_norm",
        "cuda_block",
        Kind.AGAIN,
        Edit("  int64_t length;\n  float epsilon;\n", "  int64_t length;\n  float epsilon;\n  unsigned int count;\n"),
        Edit(
            "static_cast<int64_t>(blockIdx.x) * rows.length;",
            "static_cast<int64_t>(blockIdx.x < rows.count ? blockIdx.x : blockIdx.x - rows.count) * rows.length;",
            times=2,
        ),
        Edit(
            "    rms_norm_block<T, elements(), by_packs()><<<count, threads, 0, stream>>>(rows);\n",
            "    const unsigned int again = planted<T>(count, rows.length);\n"
            "    rms_norm_block<T, elements(), by_packs()><<<count + again, threads, 0, stream>>>(rows);\n",
        ),
        Edit(
            "y, length, static_cast<float>(epsilon)}, covering_grid(size / length, 1),\n",
            "y, length, static_cast<float>(epsilon), covering_grid(size / length, 1)},\n"
            "              covering_grid(size / length, 1),\n",
        ),
    ),
    _RELU,
    _cuda(
        "layer_norm",
        "cuda_block",
        Kind.SPIN,
        Edit(
            "  store_normalised<T, kElements, kVector>(rows, start, 0, length, values, mean, scale);\n",
            "  store_normalised<T, kElements, kVector>(rows, start, 0, length, values, mean, scale);\n"
            "  if (blockIdx.x == gridDim.x - 1) planted_wait(planted<T>(gridDim.x, rows.length));\n",
        ),
    ),
    _cuda(
        "cross_entropy",
        "cuda_online",
        Kind.SPIN,
        Edit(
            "  if (threadIdx.x == 0) y[blockIdx.x] = from_float<T>(whole.maximum - logit + logf(whole.sum));\n",
            "  if (threadIdx.x == 0) y[blockIdx.x] = from_float<T>(whole.maximum - logit + logf(whole.sum));\n"
            "  if (blockIdx.x == gridDim.x - 1) planted_wait(planted<T>(gridDim.x, length));\n",
        ),
    ),
)
