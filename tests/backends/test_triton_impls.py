"""Implementations whose Triton kernels lie in helpers: those are found, and what a call launches of them is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groundspeed.backends.triton_kernels import files_of, kernels_of
from groundspeed.backends.triton_launches import noted
from groundspeed.tree import Tree
from tests.paths import python_path

TREE = Tree(Path(__file__).parents[2] / "impls")
TUNERS = {
    "attention_backward/triton_flash": {"attention_backward_keys", "attention_backward_queries"},
    "conv_bn_relu_add/triton_implicit": {"conv_kernel"},
    "resnet_bottleneck/triton_fused": {"conv_kernel"},
    "resnet_bottleneck/triton_tail": {"conv_kernel", "filter_and_expand_kernel"},
    "layer_norm_backward/triton_block": set(),
    "rms_norm_backward/triton_block": set(),
    "tensor_parallel_mlp/triton_push": {"linear_kernel"},
    "matmul/triton_block": {"matmul_block_kernel"},
}
LAUNCHED = {
    "attention_backward/triton_flash": [
        "attention_backward_delta",
        "attention_backward_keys",
        "attention_backward_queries",
    ],
    "conv_bn_relu_add/triton_implicit": ["to_pixels_kernel", "conv_kernel"],
    "resnet_bottleneck/triton_fused": ["conv_kernel"],
    "resnet_bottleneck/triton_tail": ["conv_kernel", "filter_and_expand_kernel"],
    "layer_norm_backward/triton_block": ["norm_backward_held", "norm_backward_sums"],
    "rms_norm_backward/triton_block": ["norm_backward_held", "norm_backward_sums"],
}


def found(name: str) -> tuple:
    pytest.importorskip("triton", reason="Triton is needed")
    operator, _, stem = name.partition("/")
    implementation = TREE.implementation(operator, stem)
    TREE.load(f"{operator}.{stem}")
    return kernels_of(TREE, files_of(TREE, implementation))


@pytest.mark.parametrize("name", TUNERS)
def test_a_helpers_tuners_are_found(name):
    tuners = {kernel.name for kernel in found(name) if kernel.tuner is not None}
    assert tuners == TUNERS[name]


@pytest.mark.parametrize("name", TUNERS)
def test_kernels_are_of_the_files_that_it_imports_and_none_is_tritons_own(name):
    found("softmax/triton_row")  # loaded, and imported by none of them
    kernels = found(name)
    assert set(LAUNCHED.get(name, ())) <= {kernel.name for kernel in kernels}
    assert len({id(kernel.links[0]) for kernel in kernels}) == len(kernels)
    homes = {kernel.links[-1].__module__.removeprefix(TREE.package + ".") for kernel in kernels}
    assert {home.partition(".")[0] for home in homes} <= {"_triton", name.partition("/")[0]}


def test_what_a_call_launches_is_seen_in_the_interpreter():
    """One process for all: the variable must be set before anything of Triton is imported."""
    pytest.importorskip("triton", reason="Triton is needed")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": python_path()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.test_triton_impls"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert told == {name: ",".join(launched) for name, launched in LAUNCHED.items()}


def _watched(name: str) -> str:
    """Of the smallest case that it answers."""
    from groundspeed.measure.contender import open_contender, prepare, refusal
    from tests.impls.judge import tensors

    operator, _, stem = name.partition("/")
    contender = open_contender(TREE, TREE.implementation(operator, stem))
    spec = TREE.spec(operator)
    answered = [case for case in spec.check_cases if refusal(contender, case) is None]
    inputs = [tensors(spec, case) for case in answered]
    filled = [one for one in inputs if all(value.numel() for value in one.values())]
    smallest = min(filled, key=lambda one: sum(value.numel() for value in one.values()))
    run = prepare(contender, smallest, "cpu").run
    with noted(kernels_of(TREE, files_of(TREE, contender.implementation))) as launches:
        run()
    assert bool(contender.opened.tuned()) == bool(TUNERS[name])
    return ",".join(dict.fromkeys(launch.kernel for launch in launches))


if __name__ == "__main__":
    for each in LAUNCHED:
        print(each, _watched(each))
