"""What compilers are counted to have done: on fakes that look as they do."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

pytest.importorskip("torch")

from groundspeed.backends.triton_kernels import Kernel
from groundspeed.measure import compiling


def test_who_compiled_is_who_has_more_than_before():
    before = {"Triton": {"a": 1, "b": 2}, "torch.compile": {"a": 5, "b": 5}}
    assert compiling.since(before, before) == {}
    assert compiling.since(before, {**before, "Triton": {"a": 1, "b": 3}}) == {
        "b": "Triton compiled inside the timed region"
    }
    assert set(compiling.since(before, {**before, "torch.compile": {"a": 6, "b": 6}})) == {"a", "b"}
    assert set(compiling.since({}, {"Triton": {"a": 0, "b": 1}})) == {"b"}, "it was imported in between"


def test_variants_of_all_devices_and_tuned_keys_count():
    jitted = SimpleNamespace(device_caches={0: ({"x": 1, "y": 2}, {}), 1: ({"x": 1}, {})})
    tuner = SimpleNamespace(configs=[1, 2], cache={("k",): 1})
    assert compiling.variants(Kernel("a.b", (tuner, jitted, lambda: None))) == 4
    assert compiling.variants(Kernel("a.b", (jitted, lambda: None))) == 3
    assert compiling.variants(Kernel("a.b", (SimpleNamespace(), lambda: None))) == 0, "the interpreter compiles none"


def test_a_kernel_of_this_triton_looks_like_that():
    triton = pytest.importorskip("triton")

    @triton.jit
    def kernel(x):
        pass

    tuned = triton.autotune(configs=[triton.Config({})], key=[])(kernel)
    assert isinstance(kernel.device_caches, dict) and tuned.cache == {}
    assert compiling.variants(Kernel("a.b", (tuned, kernel, kernel.fn))) == 0


def test_nvrtc_is_counted_by_a_method_that_stays(monkeypatch):
    class Program:
        def compile(self, options=()):
            return "ptx", options

    module = ModuleType("cupy.cuda.compiler")
    module._NVRTCProgram = Program
    monkeypatch.setitem(sys.modules, "cupy.cuda.compiler", module)
    contender = SimpleNamespace(name="cupy_x", tree=None, implementation=None)
    monkeypatch.setattr(compiling, "_kernels_of", lambda contender: ())
    before = compiling.tally([contender])
    method = Program.compile
    assert Program().compile(("-O3",)) == ("ptx", ("-O3",))
    assert compiling.since(before, compiling.tally([contender])) == {"cupy_x": "CuPy compiled inside the timed region"}
    assert Program.compile is method


def test_jax_tells_of_its_compilations(monkeypatch):
    jax = pytest.importorskip("jax")
    contender = SimpleNamespace(name="jax_x", tree=None, implementation=None)
    monkeypatch.setattr(compiling, "_kernels_of", lambda contender: ())
    double = jax.jit(lambda x: x * 2)
    compiling.tally([contender])
    before = compiling.tally([contender])
    double(1.0)
    between = compiling.tally([contender])
    double(2.0)
    assert list(compiling.since(before, between)) == ["jax_x"]
    assert compiling.since(between, compiling.tally([contender])) == {}
