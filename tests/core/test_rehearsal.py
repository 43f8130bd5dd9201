"""What a run compiles is compiled beforehand; what was is not again, and what fails stops nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from groundspeed import session
from groundspeed.compiler_caches import Note, cache_of, tunings_of
from groundspeed.errors import UserError
from groundspeed.measure.claim import GpuBusy
from groundspeed.measure.lane import CPU, UNATTENDED, Lane, Place, open_lane
from groundspeed.measure.neighbours import Neighbours
from groundspeed.measure.supervisor import Outcome
from groundspeed.nvml import Gpu
from groundspeed.records import Measurement, read_record
from groundspeed.rehearsal import occasion, performance
from groundspeed.rehearsal.parts import parts_of
from groundspeed.rehearsal.performance import Rehearsed
from groundspeed.selection import Selection
from tests.core.scratch import make_tree
from tests.paths import ROOT

VARIABLES = {
    "torch": "TORCHINDUCTOR_CACHE_DIR",
    "triton": "TRITON_CACHE_DIR",
    "cuda": "GROUNDSPEED_CACHE",
    "cupy": "CUPY_CACHE_DIR",
}


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    for backend, variable in VARIABLES.items():
        monkeypatch.setenv(variable, str(tmp_path / backend))
    return tmp_path


COMPILED = '''"""A multiplication, compiled."""

import torch


def prepare(x):
    compiled = torch.compile(lambda: x * 2, dynamic=False)
    return compiled
'''
BROKEN = '''"""Cannot be compiled."""

import torch


def prepare(x):
    compiled = torch.compile(lambda: x * 2, dynamic=False)
    raise RuntimeError(f"{compiled} has no answer")
'''


def opened(tmp_path, operators, patterns=(), tier="small", root=ROOT):
    """operator → the run narrowed to it."""
    run = session.open_run(root, tmp_path / "results", Selection(operators, patterns, (), tier), device="cpu")
    return {name: replace(run, selection=replace(run.selection, operators=(name,))) for name in operators}


@pytest.fixture
def scratch(tmp_path):
    """A project of two operators, of which ``broken`` cannot be compiled."""
    make_tree(
        tmp_path / "scratch" / "impls",
        {"double": {"torch_compile": COMPILED}, "broken": {"torch_compile": BROKEN}},
    )
    return tmp_path / "scratch"


def names(part):
    return [one.name for one in part.implementations]


def test_the_cache_of_a_back_end_is_where_its_variable_says(caches, monkeypatch):
    assert {backend: cache_of(backend) for backend in VARIABLES} == {
        backend: caches / backend / ("build" if backend == "cuda" else "") for backend in VARIABLES
    }
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert cache_of("torch") == Path(default_cache_dir())
    with pytest.raises(UserError, match="'jax'"):
        cache_of("jax")


def test_a_note_is_of_one_version_on_one_device_and_gone_with_its_cache(caches):
    note = Note("torch", "implementation", "case", "NVIDIA H200")
    assert not note.is_there()
    note.leave()
    assert note.is_there()
    others = [("other", "case", "NVIDIA H200"), ("implementation", "other", "NVIDIA H200")]
    others += [("implementation", "case", "NVIDIA H100")]
    assert not any(Note("torch", *words).is_there() for words in others)
    assert not Note("triton", "implementation", "case", "NVIDIA H200").is_there()
    assert note.path.is_relative_to(caches / "torch")


def test_parts_are_what_compiles_products_case_by_case_beside_what_is_built(tmp_path):
    parts = parts_of(opened(tmp_path, ("relu", "matmul", "all_reduce"), tier="core"), "a GPU")
    assert not [part for part in parts if part.operator == "all_reduce"]  # spread over several
    shown = [(part.operator, len(part.cases), part.compiled) for part in parts]
    assert [part for part in shown if part[2]] == [("matmul", 1, True)] * 4 + [("relu", 4, True)]
    assert [part for part in shown if not part[2]] == [("relu", 4, False), ("matmul", 4, False)]
    assert [compiled for _, _, compiled in shown] == [True, False, True, True, False, True, True]
    compiled = {name for part in parts if part.compiled for name in names(part)}
    assert "torch_compile" in compiled
    assert "torch_eager" not in compiled
    built = {name.partition("_")[0] for part in parts if not part.compiled for name in names(part)}
    assert built == {"cuda", "triton", "cupy"}


def test_what_has_a_note_is_not_rehearsed_again(tmp_path):
    runs = opened(tmp_path, ("relu",), ("torch_compile", "triton_*"), tier="core")
    compiled, built = parts_of(runs, "a GPU")
    first, *others = compiled.cases
    (one,) = compiled.implementations
    compiled.notes[one.name, first].leave()
    left = parts_of(runs, "a GPU")
    assert [part.compiled for part in left] == [True, False]
    assert left[0].cases == tuple(others)
    assert (left[1].implementations, left[1].cases) == (built.implementations, built.cases)
    for case in others:
        compiled.notes[one.name, case].leave()
    assert [part.compiled for part in parts_of(runs, "a GPU")] == [False]
    assert len(parts_of(runs, "another GPU")) == 2


def test_a_spec_that_cannot_be_used_is_left_for_its_turn(scratch, tmp_path):
    (scratch / "impls" / "broken" / "spec.py").write_text("raise RuntimeError('broken')\n")
    (run,) = opened(tmp_path, ("double",), root=scratch).values()
    runs = {"broken": replace(run, selection=replace(run.selection, operators=("broken",))), "double": run}
    assert [part.operator for part in parts_of(runs, "a GPU")] == ["double"]


GPU = Place(Gpu("A GPU", 141 << 30, "GPU-1"), "GPU 0")


@pytest.mark.parametrize(
    ("place", "cores", "interpreted", "operators", "count"),
    [
        (GPU, 16, "0", ("relu", "softmax"), 4),
        (GPU, 3, "0", ("relu", "softmax"), 0),
        (GPU, 16, "1", ("relu", "softmax"), 0),
        (CPU, 16, "0", ("relu", "softmax"), 0),
    ],
)
def test_there_is_one_on_a_gpu_with_cores_and_compilers(
    place, cores, interpreted, operators, count, tmp_path, monkeypatch
):
    monkeypatch.setattr(occasion, "usable_cores", lambda: cores)
    monkeypatch.setenv("TRITON_INTERPRET", interpreted)
    assert len(occasion.worthwhile(opened(tmp_path, operators), place)) == count


def test_one_part_alone_is_compiled_in_its_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(occasion, "usable_cores", lambda: 16)
    assert occasion.worthwhile(opened(tmp_path, ("relu",), ("triton_*",)), GPU) == []


class Watching:
    """A lane whose GPU others use."""

    def __init__(self, utilisation, busy=False):
        self.utilisation, self.busy = utilisation, busy

    def before(self, say):
        if self.busy:
            raise GpuBusy("GPU 0 is not ours alone")
        return Neighbours(processes=1, utilisation=self.utilisation)


def test_nothing_is_tuned_beside_the_work_of_others():
    said = []
    assert occasion.undisturbed([Watching(0), Watching(0)], said.append)
    assert said == []
    assert not occasion.undisturbed([Watching(0), Watching(90)], said.append)
    assert said == ["nothing is compiled and tuned beforehand: autotuners would choose by times that others disturb"]
    assert not occasion.undisturbed([Watching(0), Watching(0, busy=True)], said.append)
    with pytest.raises(GpuBusy):
        occasion.undisturbed([Watching(0, busy=True)], said.append)


def test_as_many_workers_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(performance, "usable_cores", lambda: 32)
    small = Place(Gpu("Small", 16 << 30, "GPU-2"), "GPU 0")
    assert performance._workers([Lane(GPU, None)]) == 20
    assert performance._workers([Lane(GPU, None)] * 2) == 16
    assert performance._workers([Lane(small, None)]) == 8


def test_a_rehearsal_fills_the_caches_and_what_fails_stops_nothing(scratch, tmp_path, caches):
    runs = opened(tmp_path, ("double", "broken"), tier="core", root=scratch)
    parts = parts_of(runs, "cpu")
    assert [(part.operator, part.pairs) for part in parts] == [("double", 2), ("broken", 2)]
    seen = []
    with open_lane(CPU, UNATTENDED) as lane:
        done = performance.rehearse(parts, [lane], tmp_path, lambda part, share: seen.append((part.operator, share)))
        assert (done.done, done.failed) == (2, 2)
        assert {operator for operator, _ in seen} == {"double", "broken"}
        assert seen[-1][1] == pytest.approx(1.0)
        assert any((caches / "torch").rglob("*.py"))  # Inductor's code
        before = set((caches / "torch").rglob("*.py"))
        assert parts_of(runs, "cpu") == []  # an error would be the same again
        path = session.measure_operator(
            runs["double"], "double", lane=lane, prepared=session.Preparation(tmp_path, 12.3456)
        )
    record = read_record(path)
    assert {row.status for row in record.measurements} == {"ok"}
    assert record.header.rehearsal_s == 12.346
    assert set((caches / "torch").rglob("*.py")) == before  # found, not written anew


def test_a_cache_that_cannot_be_written_to_costs_a_note_and_nothing_else(scratch, tmp_path, caches):
    runs = opened(tmp_path, ("double",), tier="core", root=scratch)
    (part,) = parts_of(runs, "cpu")
    rows = {
        (n, "torch_compile"): Measurement("torch_compile", "float32", {}, "ok", prepare_ns=1.0)
        for n in range(len(part.cases))
    }
    (caches / "torch").write_text("a file where the folder should be")
    assert performance._noted(part, Outcome(rows=rows)) == Rehearsed(done=2)
    assert len(parts_of(runs, "cpu")) == 1


@pytest.mark.parametrize(
    ("row", "settled"),
    [
        ({"status": "ok", "prepare_ns": 1.0}, True),
        ({"status": "skipped", "prepare_ns": 0.0, "reason": "it refuses rows of no elements"}, True),
        ({"status": "skipped", "reason": "needs about 90.0 GB, 3.0 GB is free"}, False),
        ({"status": "skipped", "reason": "cupy is not installed"}, False),
        ({"status": "failed", "failure": "error"}, True),
        ({"status": "failed", "failure": "build"}, True),
        ({"status": "failed", "failure": "oom"}, False),
        ({"status": "failed", "failure": "timeout"}, False),
        ({"status": "failed", "failure": "crash"}, False),
    ],
)
def test_what_would_end_the_same_again_is_noted(row, settled, tmp_path, scratch):
    (part,) = parts_of(opened(tmp_path, ("double",), root=scratch), "cpu")
    found = Measurement("torch_compile", "float32", {}, **row)
    performance._noted(part, Outcome(rows={(0, "torch_compile"): found}))
    assert part.notes["torch_compile", part.cases[0]].is_there() is settled


def test_a_worker_that_cannot_be_started_is_a_problem_of_its_part(tmp_path, scratch, monkeypatch):
    def full(*of, **how):
        raise OSError(28, "No space left on device", "/tmp/log")

    monkeypatch.setattr(performance, "supervise", full)
    parts = parts_of(opened(tmp_path, ("double", "broken"), root=scratch), "cpu")
    with open_lane(CPU, UNATTENDED, nursery=False) as lane:
        done = performance.rehearse(parts, [lane], tmp_path / "tunings", lambda part, share: None)
    assert (done.done, done.failed) == (0, 2)
    assert sorted(problem.partition(":")[0] for problem in done.problems) == ["broken", "double"]
    assert all("No space left" in problem for problem in done.problems)


def test_choices_are_kept_for_a_kind_of_gpu_beside_the_kernels_they_are_of(caches):
    assert tunings_of("NVIDIA H200").is_relative_to(caches / "triton")
    assert tunings_of("NVIDIA H200") != tunings_of("NVIDIA H100")


def test_a_user_without_a_name_has_a_cache_as_torch_has_it(monkeypatch):
    import torch._inductor.runtime.cache_dir_utils as torchs

    def nobody():
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    monkeypatch.setattr("getpass.getuser", nobody)
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert cache_of("torch").name == "torchinductor_uid_54321"
    assert torchs.default_cache_dir() == str(cache_of("torch"))
