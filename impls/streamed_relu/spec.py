"""ReLU of a vector that lies in page-locked host memory, the result on the device. Bound by the link between them.

The link is one or two orders slower than the device's memory: over PCIe 5 an element takes some forty times as long to
copy as its ReLU takes. A pipeline hides the ReLU of one piece behind the copy of the next, so the most it can win over
copying everything first is the ReLU's own small share; what it must not do is lose more to the many small copies. The
ceiling is the rate of a plain copy from page-locked memory, measured in the same session.

``x`` is data in the host's memory (``host_data``). The result stays on the device, where the next operator wants it.
Kernels and copies on streams of one's own are welcome; the current stream must wait for them before ``run`` returns.

No step of a ReLU rounds, hence the tolerance: the output must be exact in every dtype. There is no empty check case, as
no memory of no size can be page-locked. ``strided`` has gaps between neighbours, which no plain copy can bridge:
packing it is the host's work and run time; ``offset`` starts one element into its buffer.
"""

from groundspeed.operator import Operator, Tolerance, Traffic, case, host_data

EXACT = Tolerance(rtol=0.0, atol=0.0)


def inputs(generator, dtype, device, N, layout="contiguous", values="normal"):
    from .._specs.vectors import vector

    return {"x": host_data(vector(generator, dtype, device, N, layout, values))}


def reference(x):
    import torch

    return torch.relu(x)


def flops(N, layout="contiguous", values="normal"):
    return N


def traffic(itemsize, N, layout="contiguous", values="normal"):
    return Traffic(read=N * itemsize, write=N * itemsize)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=flops,
    bytes=traffic,
    dtypes=("float32", "float16", "bfloat16"),
    tolerance={"float32": EXACT, "float16": EXACT, "bfloat16": EXACT},
    check_shapes=(
        {"N": 1},
        {"N": 12345},
        {"N": 530001},  # more than one piece in each dtype, and no whole number of vectors
        {"N": 5000, "layout": "strided"},
        {"N": 5000, "layout": "offset"},
        {"N": 5000, "values": "special"},
    ),
    bench_shapes=(
        {"N": 262144},  # 1 MiB of float32: one piece
        {"N": 4194304},
        {"N": 16777216},
        {"N": 67108864},  # 256 MiB of float32
    ),
    tiers={
        "small": (case("float32", N=262144),),
        "core": (case("float32", N=262144), case("float32", N=16777216), case("float16", N=16777216)),
    },
    bound="link",
    ladders={"pipeline": ("torch_eager", "torch_streams", "cuda_streams", "cuda_mapped")},
)
