"""The gated half of a transformer's MLP: silu(x·Wg) times x·Wu, element by element."""

from groundspeed.operator import Operator, Tolerance, Traffic, case, data, weight


def inputs(generator, dtype, device, M, K, N):
    import torch

    draw = lambda *size: torch.randn(*size, generator=generator, device=device, dtype=dtype)  # noqa: E731
    return {"x": data(draw(M, K)), "gate": weight(draw(K, N) / K**0.5), "up": weight(draw(K, N) / K**0.5)}


def reference(x, gate, up):
    import torch

    return torch.nn.functional.silu(x @ gate) * (x @ up)


SPEC = Operator(
    inputs=inputs,
    reference=reference,
    flops=lambda M, K, N: 4 * M * K * N,
    bytes=lambda itemsize, M, K, N: Traffic(itemsize * (M * K + 2 * K * N), itemsize * M * N),
    dtypes=("float32",),
    tolerance={"float32": Tolerance(1e-5, 1e-5)},
    check_shapes=({"M": 7, "K": 24, "N": 20},),
    bench_shapes=({"M": 7, "K": 24, "N": 20},),
    tiers={"small": (case("float32", M=7, K=24, N=20),), "core": (case("float32", M=7, K=24, N=20),)},
)
