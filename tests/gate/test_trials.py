"""Planted slowdowns: each plant fits its file, compiles, computes the same; a campaign finds, keeps and counts them."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from groundspeed.build import find_toolchain
from groundspeed.errors import UserError
from groundspeed.gate.trials import __main__ as campaign
from groundspeed.gate.trials import record, summary
from groundspeed.gate.trials.assignment import DTYPES, SIZES, sizes_of_round
from groundspeed.gate.trials.calibration import amount_for, first_amount
from groundspeed.gate.trials.catalog import CATALOG, OPERATORS, plants_of
from groundspeed.gate.trials.intervals import clopper_pearson
from groundspeed.gate.trials.plant import AnchorLost, Kind
from groundspeed.gate.trials.record import Done, Point, Trial
from groundspeed.tree import Tree
from tests.gate.clock import Steps
from tests.gate.trials_engine import TimesFromTables

IMPLS = Path(__file__).parents[2] / "impls"
TREE = Tree(IMPLS)
PAGE = f"before\n{summary.BEGIN}\n{summary.END}\nafter\n"


def cases_of(plant):
    return [case for case in TREE.spec(plant.operator).bench_cases if case.dtype in DTYPES]


@pytest.fixture
def planted_tree(tmp_path):
    """A copy of the operators with every plant in it, in every case a few units."""
    impls = tmp_path / "impls"
    shutil.copytree(IMPLS, impls, ignore=shutil.ignore_patterns("__pycache__"))
    for plant in CATALOG:
        plant.write(impls, {case: 3 + number for number, case in enumerate(cases_of(plant))})
    return Tree(impls)


@pytest.fixture
def project(tmp_path):
    """A project with the operators that trials plant in, and a page for the tables; no repository."""
    root = tmp_path / "project"
    shared = [folder.name for folder in IMPLS.iterdir() if folder.name.startswith("_")]
    for name in ("softmax", "gelu", *shared):
        shutil.copytree(IMPLS / name, root / "impls" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "asv.conf.json").write_text("{}")
    (root / "pyproject.toml").write_text("")
    (root / "docs").mkdir()
    (root / "docs/gating.md").write_text(PAGE)
    return root


def run(project, *words, **engine):
    fake = TimesFromTables(TREE, **engine)
    status = campaign.main(["--project", str(project), "--device", "cpu", *words], lambda: fake)
    (lines,) = record.read(project / "results").values()
    return status, lines, fake


@pytest.mark.parametrize("plant", CATALOG, ids=lambda plant: plant.name)
def test_a_plant_fits_its_file_and_a_changed_file_refuses_it(plant):
    text = (IMPLS / plant.file).read_text()
    amounts = dict.fromkeys(cases_of(plant), 7)
    planted = plant.apply(text, amounts)
    assert planted.count("planted") > 2 and "@TABLE@" not in planted
    for edit in plant.edits:
        with pytest.raises(AnchorLost, match=f"{plant.name}: the plant expects {edit.times}×"):
            plant.apply(text.replace(edit.anchor, ""), amounts)
    with pytest.raises(AnchorLost):
        plant.apply(planted, amounts)  # twice is once too often


def test_the_catalog_is_wide_enough():
    assert len(OPERATORS) >= 6 and {plant.backend for plant in CATALOG} == {"cuda", "triton", "cupy", "torch"}
    real = {plant.backend for plant in CATALOG if plant.kind is Kind.AGAIN}
    assert {"cuda", "triton"} <= real  # more work in a real .cu and a real Triton file, not only waiting
    groups = [size for turn in range(len(SIZES)) for op in OPERATORS for size in _sizes(op, turn)]
    assert all(groups.count(size) == len(CATALOG) * len(DTYPES) for size in SIZES)


def _sizes(operator, turn):
    return sizes_of_round(plants_of(operator), turn).values()


@pytest.mark.slow
def test_planted_cuda_files_compile(planted_tree):
    """As far as PTX: the compiler has read host and device code by then, in a third of the time."""
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    toolchain = find_toolchain()
    flags = ["-std=c++20", "-ptx", "-o", "/dev/null", "-DUSE_CUDA", "-DGROUNDSPEED_NAMESPACE=planted"]
    for source in (planted_tree.root / plant.file for plant in CATALOG if plant.backend == "cuda"):
        words = [
            toolchain.nvcc,
            *flags,
            f"-arch=sm_{toolchain.architecture}",
            f"-I{toolchain.torch_root}/include",
            source,
        ]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


POINTERS = {"x", "y", "weight", "bias", "x_ptr", "y_ptr"}


@pytest.mark.slow
@pytest.mark.parametrize("plant", [p for p in CATALOG if p.backend == "triton"], ids=lambda plant: plant.name)
def test_planted_triton_kernels_compile_for_a_gpu(planted_tree, plant):
    """Without one: to PTX and on to machine code."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    module = planted_tree.load(f"{plant.operator}.{plant.implementation}")
    own = {name: value for name, value in vars(module).items() if isinstance(value, triton.runtime.JITFunction)}
    # What the file imports, such as an activation, is no kernel of its own.
    kernels = {
        name: kernel
        for name, kernel in own.items()
        if not name.startswith("planted") and kernel.fn.__module__ == module.__name__ and POINTERS & {*kernel.arg_names}
    }
    assert kernels
    for kernel in kernels.values():
        constants = {"BLOCK": 1024, "CYCLES": 500, "LANES": 4, "THREADS": 128}
        given = {name: value for name, value in constants.items() if name in kernel.arg_names}
        signature = {name: "constexpr" if name in given else _triton_type(name) for name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=given)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        spins = plant.kind is Kind.SPIN and not {"long", "strided"} & {*kernel.__name__.split("_")}
        assert ("%clock64" in compiled.asm["ptx"]) == spins and "cubin" in compiled.asm


def _triton_type(name):
    if name in POINTERS:
        return "*fp32"
    return {"target": "*i64", "epsilon": "fp32"}.get(name, "i32")


TWICE = """
import sys
from pathlib import Path
import torch
from groundspeed.tree import Tree
original, planted = (Tree(Path(root)) for root in sys.argv[1:3])
for name in sys.argv[3:]:
    operator = name.partition(".")[0]
    shape = (8192,) if operator == "relu" else (32, 64)
    x = torch.randn(shape)
    inputs = (x, torch.ones(64)) if operator == "rms_norm" else (x,)
    module = planted.load(name)
    module.PLANTED = {("float32", shape): 2}
    assert module.planted(x) == 2
    assert torch.equal(module.prepare(*inputs)(), original.load(name).prepare(*inputs)()), name
    print(name)
"""


@pytest.mark.slow
def test_work_that_is_done_twice_gives_the_same_answer(planted_tree):
    """In Triton's interpreter, which a process has for good or not at all."""
    pytest.importorskip("triton")
    plants = [plant for plant in CATALOG if plant.kind is not Kind.SPIN and plant.backend in ("triton", "torch")]
    names = [f"{plant.operator}.{plant.implementation}" for plant in plants]
    words = [sys.executable, "-c", TWICE, str(IMPLS), str(planted_tree.root), *names]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(words, env=environment, cwd=IMPLS.parent, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == names, done.stderr


def test_first_amounts_are_felt():
    assert first_amount(Kind.AGAIN, 8192, 0) == round(0.06 * 8192)
    assert first_amount(Kind.SPIN, 1, 0) > 1000


def point(amount, effect, base=100_000.0):
    return Point("o", "i", "float32", "N=1", amount, base, base + effect)


@pytest.mark.parametrize(
    ("kind", "points", "wanted", "amount"),
    [
        (Kind.AGAIN, [point(100, 5000)], 2500, 50),
        (Kind.AGAIN, [point(100, 5000), point(200, 10000)], 8500, 170),
        (Kind.AGAIN, [point(100, 0)], 2500, None),  # hidden in the last wave: it cannot be said
        (Kind.AGAIN, [point(100, 400)], 2500, None),  # more than half of the rows
        (Kind.SPIN, [point(1900, 500)], 1500, 3800),
        (Kind.SPIN, [point(2000, 800), point(4000, 1800)], 1300, 3000),
        (Kind.SPIN, [point(2000, 800), point(2200, 700)], 1700, 3905),  # too near each other for a line
        (Kind.CALL, [point(100, 2000), point(300, 4000)], 3000, 200),
        (Kind.CALL, [point(100, 2000), point(300, 4000)], 500, None),  # less than one more launch takes
    ],
)
def test_an_amount_is_found_from_what_amounts_were_seen_to_add(kind, points, wanted, amount):
    assert amount_for(kind, wanted, points, 1000) == amount


def test_a_campaign_plants_commits_finds_and_keeps(project):
    status, lines, fake = run(project, "--only", "softmax")
    assert status == 0
    trials = [line for line in lines if isinstance(line, Trial)]
    assert {trial.implementation for trial in trials} == {"cuda_block", "triton_row", "cupy_raw", "torch_eager"}
    hit = [trial for trial in trials if summary.on_target(trial)]
    assert len(hit) > 20 and {trial.size for trial in hit} == set(SIZES)
    assert all(trial.verdict == "regressed" and trial.processes == 10 for trial in hit)
    assert all(trial.threshold == (0.02 if trial.size == 0.02 else 0.03) for trial in hit)
    controls = [trial for trial in trials if summary.is_control(trial)]
    assert controls and {trial.verdict for trial in controls} == {"unchanged"}
    assert all(abs(trial.ratio - trial.true_ratio) < 0.01 for trial in trials)
    assert [(line.round, line.operator) for line in lines if isinstance(line, Done)] == [(0, "softmax")]
    assert any(isinstance(line, Point) for line in lines)
    gate = [request for request in fake.requests if request.first_process < 1000]
    assert {request.processes for request in gate} == {5, 10}
    assert all(pair.base.tree != pair.head.tree for request in gate for pair in request.pairs)
    page = (project / "docs/gating.md").read_text()
    assert page.startswith("before") and page.endswith("after\n") and "| 3% | 3." in page and "missed" not in page


def test_a_budget_that_is_spent_begins_no_operator(project, capsys):
    words = ["--project", str(project), "--device", "cpu", "--only", "gelu", "--budget", "0.000001s"]
    assert campaign.main(words, lambda: TimesFromTables(TREE)) == 0
    assert (
        "not done yet: gelu of round 0; run it again" in capsys.readouterr().out and not (project / "results").exists()
    )


def test_an_interrupted_campaign_keeps_what_is_finished_and_writes_the_tables(project, capsys):
    fake = TimesFromTables(TREE)

    def engine(request):
        if request.operator == "gelu":  # the second
            raise KeyboardInterrupt
        yield from fake(request)

    words = ["--project", str(project), "--device", "cpu", "--only", "softmax", "--only", "gelu"]
    assert campaign.main(words, lambda: engine) == 130
    assert capsys.readouterr().err.endswith("interrupted; what was judged is kept: type it again to go on\n")
    (lines,) = record.read(project / "results").values()
    assert [line.operator for line in lines if isinstance(line, Done)] == ["softmax"]
    assert "| 3% | 3." in (project / "docs/gating.md").read_text()


def test_an_operator_that_was_quick_before_is_begun_after_one_that_takes_long(project, monkeypatch):
    run(project, "--only", "softmax", "--only", "gelu")
    monkeypatch.setattr(campaign, "time", Steps(400.0, 1.0))
    words = ["--only", "softmax", "--only", "gelu", "--rounds", "2", "--budget", "500s"]
    _, lines, _ = run(project, *words)
    assert [(line.round, line.operator) for line in lines if isinstance(line, Done)][2:] == [
        (1, "softmax"),
        (1, "gelu"),
    ]


def test_what_is_done_is_not_done_again(project, capsys):
    run(project, "--only", "gelu")
    _, lines, fake = run(project, "--only", "gelu", "--rounds", "2")
    assert [line.round for line in lines if isinstance(line, Done)] == [0, 1]
    assert all(request.first_process < 2000 for request in fake.requests)  # what amounts add is known: no calibration
    first, second = ([t for t in lines if isinstance(t, Trial) and t.round == turn] for turn in (0, 1))
    assert {t.size for t in first if t.dtype == "float32"} != {t.size for t in second if t.dtype == "float32"}
    capsys.readouterr()
    run(project, "--only", "gelu", "--rounds", "2")
    assert "caught" not in capsys.readouterr().out


def test_a_plant_that_adds_nothing_is_off_its_size_and_not_counted(project):
    _, lines, _ = run(project, "--only", "softmax", blind=("cupy_raw",))
    spins = [t for t in lines if isinstance(t, Trial) and t.implementation == "cupy_raw" and t.size]
    assert spins and not any(map(summary.on_target, spins))
    assert "cupy: spin" not in summary.section({"fake": lines})


def test_a_plant_that_does_not_run_is_said_aloud(project, capsys):
    _, lines, _ = run(project, "--only", "softmax", broken=("cupy_raw",))
    assert "softmax/cupy_raw: NOT MEASURED: float32 M=4096,N=256: build: no such T" in capsys.readouterr().err
    assert "cupy_raw" not in {t.implementation for t in lines if isinstance(t, Trial) and t.size}


def test_the_clone_of_a_repository_is_planted_in_and_the_repository_is_not(project):
    def git(*words):
        return subprocess.run(["git", *words], cwd=project, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("-c", "user.name=t", "-c", "user.email=t@example.org", "add", "-A")
    git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "Start")
    _, lines, _ = run(project, "--only", "gelu")
    assert {line.commit for line in lines if isinstance(line, Trial)} == {git("rev-parse", "HEAD")}
    assert git("status", "--porcelain", "impls") == "" and git("rev-list", "--count", "HEAD") == "1"


def test_a_changed_file_ends_the_campaign_with_its_name(project, capsys):
    path = project / "impls/gelu/triton_block.py"
    path.write_text(path.read_text().replace("launch(gelu_block, x)", "launch(gelu_block, x, **{})"))
    assert (
        campaign.main(["--project", str(project), "--device", "cpu", "--only", "gelu"], lambda: TimesFromTables(TREE))
        == 2
    )
    assert "gelu/triton_block: the plant expects" in capsys.readouterr().err


def test_an_unknown_operator_and_a_damaged_file_are_named(project, capsys):
    assert campaign.main(["--project", str(project), "--only", "nope"]) == 2
    assert "--only nope" in capsys.readouterr().err
    damaged = record.trials_folder(project / "results", "m") / "a.jsonl.gz"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no gzip")
    with pytest.raises(UserError, match=r"a\.jsonl\.gz"):
        record.read(project / "results")


def test_a_file_that_was_cut_off_between_members_is_read(tmp_path):
    path = record.trials_folder(tmp_path, "m") / "a.jsonl.gz"
    record.append(path, [point(1, 2)])
    record.append(path, [point(3, 4)])
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 2
    assert [line.amount for line in record.read(tmp_path)["m"]] == [1, 3]


TRIAL = Trial(
    round=0,
    commit="c",
    device="d",
    operator="o",
    implementation="cuda_a",
    dtype="float32",
    shape="N=1",
    kind=Kind.SPIN,
    amount=5,
    size=0.03,
    threshold=0.03,
    base_ns=20_000.0,
    true_ratio=1.031,
    true_low=1.03,
    true_high=1.032,
    true_processes=3,
    verdict="regressed",
    ratio=1.03,
    low=1.02,
    high=1.04,
    processes=10,
    reason="",
)


def trial(**more):
    return msgspec.structs.replace(TRIAL, **more)


def test_the_table_counts_what_was_missed_and_names_it():
    lines = [trial() for _ in range(31)]
    lines += [trial(verdict="ambiguous", ratio=1.0195), trial(true_ratio=1.01), trial(size=0.0, true_ratio=1.001)]
    text = summary.section({"m": lines})
    assert "| 31/32 (84–100 %) |" in text
    assert "- missed: o/cuda_a float32 N=1, 20.0 µs, truly +3.10%" in text and "ambiguous at +1.95%" in text
    assert "Plants that came out off their size, and are not counted above: 1, of which 1 were caught" in text
    assert "planted: 1, with 1 false verdicts" in text


# Clopper and Pearson's limits, from tables: Newcombe, Statistics in Medicine 17 (1998), table I, method 5.
@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_intervals_are_the_published_ones(hits, of, low, high):
    assert clopper_pearson(hits, of) == pytest.approx((low, high), abs=5e-5)
    assert clopper_pearson(of - hits, of) == pytest.approx((1 - high, 1 - low), abs=5e-5)


def test_the_sizes_move_on_over_the_series():
    plants = plants_of("softmax")
    rounds = [sizes_of_round(plants, turn) for turn in range(4)]
    for group in rounds[0]:
        assert {sizes[group] for sizes in rounds} == set(SIZES)
    assert replace(plants[0], edits=()).name == "softmax/cuda_block"
