"""Plants in ``.py`` files: Triton's kernels, the CUDA sources that CuPy compiles, PyTorch's calls."""

from __future__ import annotations

from dataclasses import replace

from groundspeed.gate.trials.plant import (
    C_WAIT,
    TABLE,
    TRITON_WAIT,
    Edit,
    Kind,
    Plant,
    cupy_table,
    python_table,
    sizes,
)
from groundspeed.operator import ITEMSIZE

_TRITON = "import triton.language as tl\n"


def _triton(operator: str, implementation: str, kind: Kind, *edits: Edit) -> Plant:
    wait = TRITON_WAIT if kind is Kind.SPIN else ""
    head = Edit(_TRITON, f"{_TRITON}\n{TABLE}\n{wait}")
    return Plant(operator, implementation, f"{operator}/{implementation}.py", kind, python_table, (head, *edits))


def _triton_rows(operator: str, implementation: str, parameters: str, kernels: int, arguments: str) -> Plant:
    """A program a row, the first rows computed twice. ``arguments`` are what the launch hands over first."""
    return _triton(
        operator,
        implementation,
        Kind.AGAIN,
        Edit(f"{parameters}, BLOCK: tl.constexpr):", f"{parameters}, rows, BLOCK: tl.constexpr):", kernels),
        Edit(
            "    row = tl.program_id(0).to(tl.int64)\n", "    row = (tl.program_id(0) % rows).to(tl.int64)\n", kernels
        ),
        Edit(f"kernel[(rows,)]({arguments}, BLOCK=", f"kernel[(rows + planted(x),)]({arguments}, rows, BLOCK="),
    )


def _triton_spin(
    operator: str, implementation: str, signature: str, kernels: int, last: str, launch: str, block: str
) -> Plant:
    """A wait after the ``last`` lines of the kernel; its launch is ``launch``, and goes on with ``block``."""
    return _triton(
        operator,
        implementation,
        Kind.SPIN,
        Edit(signature, signature.replace("):", ", CYCLES: tl.constexpr):"), kernels),
        Edit(last, f"{last}    planted_wait(CYCLES)\n"),
        Edit(f"{launch}{block}", f"{launch}, CYCLES=planted(x){block}"),
    )


def _cupy_spin(operator: str, kernel: str, last: str, place: str, head: str = "typename T>\n__global__ void") -> Plant:
    """A wait after the ``last`` lines of a kernel; ``place`` are the arguments of the table in it."""
    begin = f"template <{head} {kernel}("
    wait = f"  if (blockIdx.x == gridDim.x - 1) planted_wait(planted<T>({place}));\n"
    edits = (Edit(begin, f"{TABLE}{C_WAIT}\n{begin}"), Edit(f"{last}}}\n", f"{last}{wait}}}\n"))
    return Plant(operator, "cupy_raw", f"{operator}/cupy_raw.py", Kind.SPIN, cupy_table, edits)


def _cupy_held(operator: str, kernel: str) -> Plant:
    """A wait at the end of a kernel that holds its row in registers."""
    head = "typename T, int kPacks>\n__global__ void ROW_BOUNDS(kPacks)"
    return _cupy_spin(operator, kernel, "    put_lanes(y + at, result);\n  });\n", "gridDim.x, length", head)


def _cupy_streamed(operator: str, kernel: str, last: str, rows: str = "gridDim.x", types: str = "typename T") -> Plant:
    """A wait at the end of a kernel that streams its row, or a part of it, through registers."""
    head = f"{types}>\n__global__ void __launch_bounds__(256)"
    return _cupy_spin(operator, kernel, last, f"{rows}, length", head)


def _torch_call(operator: str, call: str, again: str, after: str) -> Plant:
    """The same library call on the first rows before the whole one."""
    return Plant(
        operator,
        "torch_eager",
        f"{operator}/torch_eager.py",
        Kind.CALL,
        python_table,
        (
            Edit(after, f"{after}\n{TABLE}"),
            Edit(f"        return {call}\n", f"        if few:\n            {again}\n        return {call}\n"),
            Edit("    def run()", "    few = planted(x)\n\n    def run()"),
        ),
    )


_RELU = replace(
    _triton(
        "relu",
        "triton_block",
        Kind.AGAIN,
        Edit(
            "    offsets = tl.program_id(0).to(tl.int64) * BLOCK",
            "    program = tl.program_id(0)\n"
            "    program = tl.where(program < tl.cdiv(N, BLOCK), program, program - tl.cdiv(N, BLOCK))\n"
            "    offsets = program.to(tl.int64) * BLOCK",
        ),
        Edit(
            "relu_block[(triton.cdiv(y.numel(), block),)]", "relu_block[(triton.cdiv(y.numel(), block) + planted(x),)]"
        ),
    ),
    units=lambda case: -(-sizes(case)[0] * ITEMSIZE[case.dtype] // 4096),
)

PYTHON = (
    _triton_rows(
        "softmax",
        "triton_row",
        "(x, y, row_stride, column_stride, N",
        2,
        "x, y, x.stride(0), x.stride(1), length",
    ),
    _triton_rows(
        "rms_norm",
        "triton_row",
        "(x, weight, y, row_stride, column_stride, N, epsilon",
        2,
        "x, weight, y, *x.stride(), length, EPSILON",
    ),
    _RELU,
    _triton_spin(
        "layer_norm",
        "triton_row",
        "N, epsilon, BLOCK: tl.constexpr):",
        2,
        "    result = deviations * scale * w + b\n"
        "    tl.store(y + row * N + columns, result.to(y.dtype.element_ty), mask=inside)\n",
        "length, EPSILON",
        ", BLOCK=block,",
    ),
    _triton_spin(
        "cross_entropy",
        "triton_online",
        "row_stride, V, LANES: tl.constexpr, THREADS: tl.constexpr):",
        1,
        "    tl.store(y + row, loss.to(y.dtype.element_ty))\n",
        "x.stride(0), length",
        ", LANES=lanes,",
    ),
    _triton_spin(
        "gelu",
        "triton_block",
        "(x_ptr, y_ptr, N, BLOCK: tl.constexpr):",
        1,
        "    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)\n",
        "launch(gelu_block, x",
        ")\n",
    ),
    _cupy_held("softmax", "softmax_rows"),
    _cupy_held("layer_norm", "layer_norm_rows"),
    _cupy_held("rms_norm", "rms_norm_rows"),
    _cupy_streamed(
        "cross_entropy",
        "cross_entropy_rows",
        "put(y + blockIdx.x, whole - as_float(x[wanted]) + logf(sum));\n",
    ),
    _cupy_streamed(
        "row_sum",
        "row_sum_chunks",
        "  if (threadIdx.x == 0) put(y + blockIdx.x, sum);\n",
        "gridDim.x / chunks",
        "typename T, typename Out",
    ),
    _cupy_spin("relu", "relu", "    y[i] = value < 0.0f ? T(0.0f) : x[i];\n  }\n", "size, 0"),
    _torch_call("softmax", "torch.softmax(x, dim=-1)", "torch.softmax(x[:few], dim=-1)", "import torch\n\n\n"),
)
