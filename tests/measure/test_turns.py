"""Autotuners of several processes take turns, and an autotuner that asks another has one turn for both."""

import inspect
import subprocess
import sys
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from groundspeed.measure import turns as module
from groundspeed.measure.turns import Turns, autotuners_wait

HOLDER = """
import sys, time
from pathlib import Path
from groundspeed.measure.turns import Turns
with Turns(Path(sys.argv[1])).turn():
    print("mine", flush=True)
    sys.stdin.read(1)
    print(time.monotonic_ns(), flush=True)
"""


def test_another_process_waits_for_the_turn(tmp_path):
    lock = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "mine\n"
        queue = Turns(lock)
        with pytest.raises(BlockingIOError):
            module.fcntl.flock(queue._descriptor, module.fcntl.LOCK_EX | module.fcntl.LOCK_NB)
        holder.stdin.write("x")
        holder.stdin.flush()
        with queue.turn():
            had = time.monotonic_ns()
        assert had > int(holder.stdout.readline())
    finally:
        holder.kill()
        holder.communicate()


def test_a_turn_may_be_taken_again_inside_and_ends_with_the_outer_one(tmp_path):
    queue, other = Turns(tmp_path / "lock"), Turns(tmp_path / "lock")

    def is_free():
        try:
            module.fcntl.flock(other._descriptor, module.fcntl.LOCK_EX | module.fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        module.fcntl.flock(other._descriptor, module.fcntl.LOCK_UN)
        return True

    with queue.turn():
        with queue.turn():
            assert not is_free()
        assert not is_free()
    assert is_free()


def test_it_knows_how_long_it_had_and_waited_for_turns(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    queue = Turns(tmp_path / "lock")
    taken = iter([False, False, True])

    def look():
        now[0] += 2.0
        return next(taken)

    monkeypatch.setattr(queue, "_taken", look)
    with queue.turn(), queue.turn():
        now[0] += 5.0
    assert (queue.waited_s, queue.had_s) == (6.0, 5.0)


def test_who_waits_gives_a_sign_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SIGN", 0.02)
    signs = []

    def alive():
        signs.append(time.monotonic())
        if len(signs) == 3:
            module.fcntl.flock(holder._descriptor, module.fcntl.LOCK_UN)

    holder = Turns(tmp_path / "lock")
    module.fcntl.flock(holder._descriptor, module.fcntl.LOCK_EX)
    with Turns(tmp_path / "lock", alive).turn():
        assert len(signs) == 3
    assert all(later - earlier >= 0.02 for earlier, later in pairwise(signs))


def test_the_turn_ends_when_a_candidate_cannot_run(tmp_path):
    queue = Turns(tmp_path / "lock")

    def broken():
        raise RuntimeError("out of shared memory")

    with pytest.raises(RuntimeError, match="out of shared memory"):
        queue.in_turn(broken)()
    assert Turns(tmp_path / "lock").in_turn(lambda: "free")() == "free"


def test_triton_and_every_benchmarker_that_inductor_has_wait(tmp_path, monkeypatch):
    held = []

    class Queue(Turns):
        def in_turn(self, function):
            def noted(*arguments, **named):
                held.append(function.__name__)
                return function(*arguments, **named)

            return noted

    class TritonBenchmarker:
        def benchmark_gpu(self, call):
            return do_bench(call)

    class InductorBenchmarker(TritonBenchmarker):
        def benchmark_gpu(self, call):
            return super().benchmark_gpu(call) + 1

    def do_bench(call, warmup=25, rep=100):
        lengths.append((warmup, rep))
        return call()

    class Autotuner:
        _bench = None

    lengths = []
    fakes = {
        "triton.runtime.autotuner": SimpleNamespace(Autotuner=Autotuner),
        "triton.testing": SimpleNamespace(do_bench=do_bench),
        "torch._inductor.runtime.benchmarking": SimpleNamespace(
            TritonBenchmarker=TritonBenchmarker, InductorBenchmarker=InductorBenchmarker
        ),
    }
    monkeypatch.setattr(module.importlib, "import_module", fakes.__getitem__)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    autotuners_wait(Queue(tmp_path / "lock"), compiler=True)
    assert InductorBenchmarker().benchmark_gpu(lambda: 1) == 2
    assert held == ["benchmark_gpu", "benchmark_gpu"]
    assert fakes["triton.testing"].do_bench(lambda: 3) == 3
    assert held[2:] == ["do_bench"]
    fakes["triton.testing"].do_bench(lambda: 3, rep=7)
    assert lengths[1:] == [(5, 20), (5, 7)]


class Tuner:
    """As much of Triton's Autotuner as times a candidate; notes what is compiled and what is timed."""

    def __init__(self, fails=False):
        self.fails, self.noted, self.fn = fails, [], self

    def run(self, *arguments, warmup, **named):
        self.noted.append(("compiled" if warmup else "launched", arguments, named))
        if self.fails:
            raise ValueError("no such tile")

    def _bench(self, *arguments, config, **named):
        self.noted.append(("timed", arguments, named))
        return [float("inf")] if self.fails else [1.0]


CONFIG = SimpleNamespace(all_kwargs=lambda: {"BLOCK": 64, "num_warps": 4}, pre_hook=None)


def test_a_candidate_is_compiled_before_its_turn():
    tuner = Tuner()
    bench = module.compiled_first(Tuner._bench)
    assert bench(tuner, "x", config=CONFIG, grid=(1,), warmup=False) == [1.0]
    assert tuner.noted == [
        ("compiled", ("x",), {"grid": (1,), "BLOCK": 64, "num_warps": 4}),
        ("timed", ("x",), {"grid": (1,), "warmup": False}),
    ]


def test_a_candidates_own_hook_comes_before_it_is_compiled():
    """Descriptors are given the candidate's tiles there, and do not fit it before."""
    tuner = Tuner()
    tuner.nargs = {"x": "a descriptor"}
    hook = SimpleNamespace(all_kwargs=CONFIG.all_kwargs, pre_hook=lambda named: tuner.noted.append(("hook", named, {})))
    module.compiled_first(Tuner._bench)(tuner, "x", config=hook, grid=(1,), warmup=False)
    assert [what for what, *_ in tuner.noted] == ["hook", "compiled", "timed"]
    assert tuner.noted[0][1] == {"x": "a descriptor", "grid": (1,), "warmup": False, "BLOCK": 64, "num_warps": 4}


def test_what_cannot_be_compiled_is_the_tuners_to_judge():
    tuner = Tuner(fails=True)
    assert module.compiled_first(Tuner._bench)(tuner, config=CONFIG, grid=(1,), warmup=False) == [float("inf")]
    assert [what for what, *_ in tuner.noted] == ["compiled", "timed"]


def test_this_triton_compiles_a_candidate_as_it_is_expected_to():
    """Its internals may be renamed: then compiling would be in the turn again, or launch what it should not."""
    autotuner = pytest.importorskip("triton.runtime.autotuner")
    jit = pytest.importorskip("triton.runtime.jit")
    assert inspect.signature(autotuner.Autotuner._bench).parameters["config"].kind is inspect.Parameter.KEYWORD_ONLY
    assert inspect.signature(jit.JITFunction.run).parameters["warmup"].kind is inspect.Parameter.KEYWORD_ONLY
    assert {"warmup", "rep"} <= set(inspect.signature(pytest.importorskip("triton.testing").do_bench).parameters)


def test_this_torch_has_what_is_replaced():
    """Inductor's internals may be renamed: then tuning side by side would time two candidates at once, unseen."""
    benchmarking = pytest.importorskip("torch._inductor.runtime.benchmarking")
    found = [name for name in module._CLASSES if hasattr(benchmarking, name)]
    methods = {method for name in found for method in vars(getattr(benchmarking, name)) if "benchmark_gpu" in method}
    assert {"TritonBenchmarker", "InductorBenchmarker"} <= set(found)
    assert methods <= set(module._METHODS)
    others = {
        name
        for name, value in vars(benchmarking).items()
        if isinstance(value, type)
        and any("benchmark_gpu" in method for method in vars(value))
        and name != "Benchmarker"
    }
    assert others <= set(module._CLASSES)
