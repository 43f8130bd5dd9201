"""What a run compiles is compiled beforehand; what was is not again, and what fails stops nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from groundspeed import rehearsal, session
from groundspeed.compiler_caches import Note, cache_of
from groundspeed.errors import UserError
from groundspeed.measure.lane import CPU, UNATTENDED, open_lane
from groundspeed.measure.supervisor import Outcome
from groundspeed.records import Measurement, read_record
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
    parts = rehearsal.parts_of(opened(tmp_path, ("relu", "matmul", "all_reduce"), tier="core"), "a GPU")
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
    compiled, built = rehearsal.parts_of(runs, "a GPU")
    first, *others = compiled.cases
    (one,) = compiled.implementations
    compiled.notes[one.name, first].leave()
    left = rehearsal.parts_of(runs, "a GPU")
    assert [part.compiled for part in left] == [True, False]
    assert left[0].cases == tuple(others)
    assert (left[1].implementations, left[1].cases) == (built.implementations, built.cases)
    for case in others:
        compiled.notes[one.name, case].leave()
    assert [part.compiled for part in rehearsal.parts_of(runs, "a GPU")] == [False]
    assert len(rehearsal.parts_of(runs, "another GPU")) == 2


def test_a_spec_that_cannot_be_used_is_left_for_its_turn(scratch, tmp_path):
    (scratch / "impls" / "broken" / "spec.py").write_text("raise RuntimeError('broken')\n")
    (run,) = opened(tmp_path, ("double",), root=scratch).values()
    runs = {"broken": replace(run, selection=replace(run.selection, operators=("broken",))), "double": run}
    assert [part.operator for part in rehearsal.parts_of(runs, "a GPU")] == ["double"]


@pytest.mark.parametrize(("parts", "cores", "worth"), [(2, 16, True), (1, 16, False), (2, 2, False), (0, 16, False)])
def test_side_by_side_takes_two_parts_and_cores_for_them(parts, cores, worth):
    assert rehearsal.is_worth_it([None] * parts, cores) is worth


def test_a_rehearsal_fills_the_caches_and_what_fails_stops_nothing(scratch, tmp_path, caches):
    runs = opened(tmp_path, ("double", "broken"), tier="core", root=scratch)
    parts = rehearsal.parts_of(runs, "cpu")
    assert [(part.operator, part.pairs) for part in parts] == [("double", 2), ("broken", 2)]
    seen = []
    with open_lane(CPU, UNATTENDED) as lane:
        done = rehearsal.rehearse(parts, [lane], tmp_path, lambda part, share: seen.append((part.operator, share)))
        assert (done.done, done.failed) == (2, 2)
        assert {operator for operator, _ in seen} == {"double", "broken"}
        assert seen[-1][1] == pytest.approx(1.0)
        assert any((caches / "torch").rglob("*.py"))  # Inductor's code
        before = set((caches / "torch").rglob("*.py"))
        assert [part.operator for part in rehearsal.parts_of(runs, "cpu")] == ["broken"]
        path = session.measure_operator(runs["double"], "double", lane=lane, tunings=tmp_path)
    assert {row.status for row in read_record(path).measurements} == {"ok"}
    assert set((caches / "torch").rglob("*.py")) == before  # found, not written anew


def test_a_cache_that_cannot_be_written_to_costs_a_note_and_nothing_else(scratch, tmp_path, caches):
    runs = opened(tmp_path, ("double",), tier="core", root=scratch)
    (part,) = rehearsal.parts_of(runs, "cpu")
    rows = {(n, "torch_compile"): Measurement("torch_compile", "float32", {}, "ok") for n in range(len(part.cases))}
    (caches / "torch").write_text("a file where the folder should be")
    assert rehearsal._noted(part, Outcome(rows=rows)) == rehearsal.Rehearsed(done=2)
    assert len(rehearsal.parts_of(runs, "cpu")) == 1
