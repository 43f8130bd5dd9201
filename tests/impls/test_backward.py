"""The backward passes: their oracles are autograd's derivatives, take what was saved as given, and refuse faults."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
import torch
from torch.nn import functional

from groundspeed.measure.referee.errors import Errors
from groundspeed.operator import Case
from tests.impls.judge import TREE, tensors

Tensors = Mapping[str, torch.Tensor]
Answer = tuple[torch.Tensor, ...]

DTYPES = ("float32", "float16", "bfloat16")
DIMS: dict[str, dict[str, int | str]] = {
    "rms_norm_backward": {"M": 33, "N": 264},
    "layer_norm_backward": {"M": 33, "N": 264},
    "softmax_backward": {"M": 33, "N": 264},
    "cross_entropy_backward": {"M": 33, "V": 264},
    "swiglu_mlp_backward": {"T": 96, "D": 64, "H": 168},
    "attention_backward": {"B": 1, "H": 2, "S": 160, "D": 64, "causal": 1},
}


def parts(answer: torch.Tensor | Answer) -> Answer:
    return answer if isinstance(answer, tuple) else (answer,)


def held(operator: str, dtype: str = "float32", seed: int = 0) -> dict[str, torch.Tensor]:
    return tensors(TREE.spec(operator), Case.of(dtype, DIMS[operator]), seed)


def wide(inputs: Tensors) -> dict[str, torch.Tensor]:
    return {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}


def accepted(operator: str, dtype: str, outs: Answer, expected: Answer) -> bool:
    """As the referee judges: element by element, and in the norm of all outputs together."""
    tolerance = TREE.spec(operator).tolerance[dtype]
    rounded = [out.to(getattr(torch, dtype)) for out in outs]
    errors = Errors.of(rounded, expected, tolerance)
    bounds = errors.accuracy.tolerance_used <= 1 and errors.accuracy.norm <= tolerance.norm_bound
    return bounds and not errors.not_finite and not errors.not_equal


def derivatives(output: torch.Tensor, of: list[torch.Tensor], grad_output: torch.Tensor) -> Answer:
    return torch.autograd.grad(output, of, grad_output)


def rms_norm(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    values, weight = x["x"].requires_grad_(), x["weight"].requires_grad_()
    rstd = torch.rsqrt(values.square().mean(dim=-1) + 1e-6)
    return {"rstd": rstd}, derivatives(values * rstd[:, None] * weight, [values, weight], x["grad_output"])


def layer_norm(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    values, weight = x["x"].requires_grad_(), x["weight"].requires_grad_()
    bias = torch.zeros_like(weight, requires_grad=True)
    y = functional.layer_norm(values, weight.shape, weight, bias, 1e-5)
    variance, mean = torch.var_mean(values, dim=-1, correction=0)
    saved = {"mean": mean, "rstd": torch.rsqrt(variance + 1e-5)}
    return saved, derivatives(y, [values, weight, bias], x["grad_output"])


def softmax(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    logits = x["y"].log().requires_grad_()
    y = torch.softmax(logits, dim=-1)
    return {"y": y}, derivatives(y, [logits], x["grad_output"])


def cross_entropy(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    logits = x["x"].requires_grad_()
    loss = functional.cross_entropy(logits, x["target"], reduction="none")
    return {"lse": torch.logsumexp(logits, dim=-1)}, derivatives(loss, [logits], x["grad_output"])


def swiglu_mlp(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    leaves = [x[name].requires_grad_() for name in ("x", "gate", "up", "down")]
    values, gate, up, down = leaves
    z, u = values @ gate, values @ up
    return {"z": z, "u": u}, derivatives((functional.silu(z) * u) @ down, leaves, x["grad_output"])


def attention(x: Tensors) -> tuple[dict[str, torch.Tensor], Answer]:
    leaves = [x[name].requires_grad_() for name in ("q", "k", "v")]
    q, k, v = leaves
    hidden = torch.ones((q.shape[-2],) * 2, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(hidden, float("-inf"))
    out = torch.softmax(scores, dim=-1) @ v
    saved = {"out": out, "lse": torch.logsumexp(scores, dim=-1)}
    return saved, derivatives(out, leaves, x["grad_output"])


FORWARD: dict[str, Callable[[Tensors], tuple[dict[str, torch.Tensor], Answer]]] = {
    "rms_norm_backward": rms_norm,
    "layer_norm_backward": layer_norm,
    "softmax_backward": softmax,
    "cross_entropy_backward": cross_entropy,
    "swiglu_mlp_backward": swiglu_mlp,
    "attention_backward": attention,
}


@pytest.mark.parametrize("operator", DIMS)
def test_the_oracle_is_autograds_derivative_in_float64(operator: str) -> None:
    inputs = wide(held(operator))
    saved, expected = FORWARD[operator](inputs)
    found = parts(TREE.spec(operator).reference(**{**inputs, **saved}))
    for gradient, derivative in zip(found, expected, strict=True):
        torch.testing.assert_close(gradient, derivative, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("operator", DIMS)
def test_what_inputs_save_is_what_the_forward_pass_has(operator: str) -> None:
    inputs = held(operator)
    saved, _ = FORWARD[operator](wide(inputs))
    for name, values in saved.items():
        torch.testing.assert_close(inputs[name].double(), values.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", DIMS)
def test_the_exact_answer_is_accepted_and_one_without_an_output_is_not(operator: str, dtype: str) -> None:
    expected = parts(TREE.spec(operator).reference(**wide(held(operator, dtype))))
    assert accepted(operator, dtype, expected, expected)
    for gone in range(len(expected)):
        outs = tuple(out * (place != gone) for place, out in enumerate(expected))
        assert not accepted(operator, dtype, outs, expected), gone


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", DIMS)
def test_eager_takes_what_was_saved_as_given(operator: str, dtype: str) -> None:
    """From the live buffers, and where it is not what the inputs would have led to: the referee changes elements."""
    inputs = held(operator, dtype)
    run = TREE.load(f"{operator}.torch_eager").prepare(**inputs)
    before = parts(run())
    names = ("rstd", "mean", "y", "lse", "z", "u", "out")
    for name in [name for name in names if name in inputs]:
        inputs[name].mul_(1.25)
    after, expected = parts(run()), parts(TREE.spec(operator).reference(**wide(inputs)))
    assert accepted(operator, dtype, after, expected)
    assert not accepted(operator, dtype, before, expected)


def faults_of_rms_norm(x: Tensors, true: Answer) -> dict[str, Answer]:
    normal = x["x"] * x["rstd"][:, None]
    plain = x["grad_output"] * x["weight"] * x["rstd"][:, None]
    return {
        "no average": (plain, true[1]),
        "a row missing from the sums": (true[0], true[1] - x["grad_output"][-1] * normal[-1]),
        "the weight twice": (true[0] * x["weight"], true[1]),
        "values not normalised": (true[0], (x["grad_output"] * x["x"] * 1.01).sum(dim=0)),
    }


def faults_of_layer_norm(x: Tensors, true: Answer) -> dict[str, Answer]:
    normal = (x["x"] - x["mean"][:, None]) * x["rstd"][:, None]
    scaled = x["grad_output"] * x["weight"]
    slope = (scaled * normal).mean(dim=-1, keepdim=True)
    rstd = x["rstd"][:, None]
    return {
        "no average of g": ((scaled - normal * slope) * rstd, *true[1:]),
        "no average of g·h": ((scaled - scaled.mean(dim=-1, keepdim=True)) * rstd, *true[1:]),
        "no mean": (true[0], (x["grad_output"] * x["x"] * rstd).sum(dim=0), true[2]),
        "a row missing from the bias": (*true[:2], true[2] - x["grad_output"][-1]),
    }


def faults_of_softmax(x: Tensors, true: Answer) -> dict[str, Answer]:
    grad, y = x["grad_output"], x["y"]
    return {
        "no sum": (y * grad,),
        "the last elements missing from the sum": (y * (grad - (grad * y)[:, :-8].sum(dim=-1, keepdim=True)),),
        "a sum over the gradient alone": (y * (grad - grad.mean(dim=-1, keepdim=True)),),
    }


def faults_of_cross_entropy(x: Tensors, true: Answer) -> dict[str, Answer]:
    p = torch.exp(x["x"] - x["lse"][:, None])
    one = functional.one_hot(x["target"], p.shape[1]).double()
    return {
        "no target": (p * x["grad_output"][:, None],),
        "the target's neighbour": ((p - one.roll(1, dims=1)) * x["grad_output"][:, None],),
        "no gradient": (p - one,),
        "the average of the losses": (true[0] / len(p),),
    }


def faults_of_swiglu_mlp(x: Tensors, true: Answer) -> dict[str, Answer]:
    s = torch.sigmoid(x["z"])
    grad_h = x["grad_output"] @ x["down"].T
    grad_z, grad_u = grad_h * x["u"] * s, grad_h * x["z"] * s
    return {
        "half of silu's derivative": (
            grad_z @ x["gate"].T + grad_u @ x["up"].T,
            x["x"].T @ grad_z,
            *true[2:],
        ),
        "one part of grad_x": (grad_u @ x["up"].T, *true[1:]),
        "gate and up exchanged": (true[0], true[2], true[1], true[3]),
        "a token missing": (*true[:3], true[3] - torch.outer((x["z"] * s * x["u"])[-1], x["grad_output"][-1])),
    }


def faults_of_attention(x: Tensors, true: Answer) -> dict[str, Answer]:
    def formula(hidden_from: int = 1, with_delta: bool = True, scale: float = 0.125) -> Answer:
        hidden = torch.ones((x["q"].shape[-2],) * 2, dtype=torch.bool).triu(hidden_from)
        weights = torch.exp(x["q"] @ x["k"].transpose(-2, -1) * 0.125 - x["lse"][..., None]).masked_fill(hidden, 0.0)
        delta = (x["grad_output"] * x["out"]).sum(dim=-1, keepdim=True) * with_delta
        scores = weights * (x["grad_output"] @ x["v"].transpose(-2, -1) - delta)
        turned = scores.transpose(-2, -1)
        return scores @ x["k"] * 0.125, turned @ x["q"] * scale, weights.transpose(-2, -1) @ x["grad_output"]

    for mine, theirs in zip(formula(), true, strict=True):
        torch.testing.assert_close(mine, theirs)
    return {
        "no delta": formula(with_delta=False),
        "a mask off by one": formula(hidden_from=2),
        "no mask": formula(hidden_from=10**6),
        "another scale": formula(scale=0.12),
    }


FAULTS: dict[str, Callable[[Tensors, Answer], dict[str, Answer]]] = {
    "rms_norm_backward": faults_of_rms_norm,
    "layer_norm_backward": faults_of_layer_norm,
    "softmax_backward": faults_of_softmax,
    "cross_entropy_backward": faults_of_cross_entropy,
    "swiglu_mlp_backward": faults_of_swiglu_mlp,
    "attention_backward": faults_of_attention,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operator", DIMS)
def test_faults_of_gradients_are_refused(operator: str, dtype: str) -> None:
    inputs = wide(held(operator, dtype))
    expected = parts(TREE.spec(operator).reference(**inputs))
    faults = FAULTS[operator](inputs, expected)
    assert not [name for name, outs in faults.items() if accepted(operator, dtype, outs, expected)]


@pytest.mark.parametrize("operator", DIMS)
def test_cases_are_few(operator: str) -> None:
    spec = TREE.spec(operator)
    assert len(spec.check_shapes) <= 8 and len(spec.bench_shapes) <= 5
    assert len(spec.tiers["small"]) == 1 and len(spec.tiers["core"]) == 2
