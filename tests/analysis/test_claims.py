"""What records say to a claim."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.claims import QUANTITIES, ROUNDING, Claim, Shelf, answers
from groundspeed.analysis.claims.shelf import LOOK_BACK
from groundspeed.records import (
    Ceilings,
    Environment,
    Footer,
    Header,
    KernelResources,
    Measurement,
    Record,
    record_path,
    write_record,
)

CLAIM = Claim(
    source="001",
    claim="twice as fast",
    gpu="V100",
    published=(2.0, 2.0),
    operator="relu",
    implementation="cuda_branch",
    dtype="float32",
)
CEILINGS = Ceilings(copy=4e12, read=4e12, write=4e12, matmul={"float32": 40e12})


def claim(**changes) -> Claim:
    return msgspec.structs.replace(CLAIM, **changes)


def row(name: str, shape: int = 1, dtype: str = "float32", **fields) -> Measurement:
    samples = {
        quantity: [fields.pop(quantity)] * 9
        for quantity in ("device_cold", "device_hot", "call", "host")
        if quantity in fields
    }
    return Measurement(name, dtype, {"N": shape}, "ok", samples=samples, **fields)


def record(*rows: Measurement, gpu="NVIDIA H200", started="2026-01-01", operator="relu", ceilings=CEILINGS, **times):
    """Rows as given, and of each keyword one a value: its device times on N=1, 2, …"""
    environment = Environment("cuda", gpu, "3.12", "Linux")
    timed = tuple(
        row(name, n, device_cold=value) for name, values in times.items() for n, value in enumerate(values, start=1)
    )
    header = Header(
        "run",
        operator,
        "nvidia-h200",
        started,
        environment,
        ceilings=ceilings,
        command=f"groundspeed run --only {operator}",
    )
    return Record(header, (*rows, *timed), Footer(len(rows) + len(timed)))


def with_command(one: Record, command: str) -> Record:
    return msgspec.structs.replace(one, header=msgspec.structs.replace(one.header, command=command))


def answer(one: Claim, *records: Record):
    (found,) = answers([one], Shelf.of(records))
    return found


def test_a_ratio_is_the_geometric_mean_over_the_cases_of_both():
    found = answer(CLAIM, record(torch_eager=[400.0, 400.0, 5.0], cuda_branch=[100.0, 400.0]))
    assert found.ours == pytest.approx(2.0) and found.relative == pytest.approx(1.0)
    assert found.cases == (("float32 N=1", pytest.approx(4.0)), ("float32 N=2", pytest.approx(1.0)))
    assert found.verdict == "reproduced" and found.command == "groundspeed run --only relu"


@given(st.floats(0.01, 100.0))
def test_the_verdict_follows_the_published_range(ratio):
    found = answer(CLAIM, record(torch_eager=[100.0 * ratio], cuda_branch=[100.0]))
    expected = "exceeded" if ratio > 2 * (1 + ROUNDING) else "reproduced" if ratio >= 2 * (1 - ROUNDING) else ""
    assert found.verdict == (expected or "not reproduced")
    assert found.relative == pytest.approx(ratio / 2)


@pytest.mark.parametrize(
    ("quantity", "ours", "verdict"),
    [
        ("launch", 4.0, "exceeded"),
        ("launch", 5.0, "reproduced"),
        ("launch", 20.0, "reproduced"),
        ("launch", 22.0, "not reproduced"),
        ("intensity", 4.0, "not reproduced"),
        ("intensity", 12.0, "reproduced"),
        ("intensity", 22.0, "not reproduced"),
        ("rate", 22.0, "exceeded"),
        ("rate", 4.0, "not reproduced"),
    ],
)
def test_lower_higher_or_neither_is_better(quantity, ours, verdict):
    fields = {
        "launch": {"host": ours * 1e3, "kernels": ["k"]},
        "intensity": {"flops": int(ours * 100), "bytes_read": 60, "bytes_written": 40},
        "rate": {"device_cold": 1.0, "flops": int(ours * 1e3)},
    }
    found = answer(claim(quantity=quantity, published=(5.0, 20.0)), record(row("cuda_branch", **fields[quantity])))
    assert found.ours == pytest.approx(ours) and found.verdict == verdict


def test_the_newest_record_that_has_an_answer_gives_it():
    old = record(torch_eager=[200.0], cuda_branch=[100.0])
    new = record(started="2026-02-01", torch_eager=[600.0], cuda_branch=[100.0])
    narrowed = record(started="2026-03-01", torch_eager=[600.0], torch_clamp=[1.0])
    assert answer(CLAIM, new, old).ours == pytest.approx(6.0)
    assert answer(CLAIM, old, narrowed, new).ours == pytest.approx(6.0)


def test_it_looks_back_a_few_records_and_reads_no_more_than_it_needs(tmp_path):
    paths = []
    for number in range(LOOK_BACK + 2):
        paths.append(record_path(tmp_path, "m", f"run{number}", "relu"))
        write_record(paths[-1], record(torch_eager=[200.0]))
    shelf = Shelf({"relu": paths})
    paths[-1].write_bytes(b"never read")
    assert answers([CLAIM], shelf)[0].verdict == "not measured" and not shelf.problems
    paths[0].write_bytes(b"damaged")
    shelf = Shelf({"relu": paths})
    assert answers([claim(implementation="torch_eager", quantity="bandwidth")], shelf)[0].ours is None
    assert len(shelf.problems) == 1 and str(paths[0]) in str(shelf.problems[0])


def test_energy_is_measured_again_by_a_run_that_is_asked_for_it():
    energy = claim(quantity="energy")
    assert answer(energy).command == "groundspeed run --only relu --tier core --energy"
    one = record(row("torch_eager", energy_nj=200.0), row("cuda_branch", energy_nj=100.0))
    assert answer(energy, one).command == "groundspeed run --only relu --energy"
    asked = with_command(one, "groundspeed run --only relu --tier core --energy --timer cupti")
    assert answer(energy, asked).command == asked.header.command


def test_a_command_that_repeats_itself_is_shown_without_that():
    one = record(torch_eager=[400.0], cuda_branch=[100.0])
    said = "--only relu/torch_eager --only relu/torch_eager --only 'relu/numba_*' --only relu/torch_eager"
    found = answer(CLAIM, with_command(one, f"groundspeed run {said} --tier core"))
    assert found.command == "groundspeed run --only relu/torch_eager --only 'relu/numba_*' --tier core"
    assert answer(CLAIM, with_command(one, "")).command == "groundspeed run --only relu --tier core"


def test_another_gpu_is_said_and_the_figure_shown_all_the_same():
    one = record(torch_eager=[200.0], cuda_branch=[100.0])
    other, same, unnamed = (answer(claim(gpu=gpu), one) for gpu in ("V100", "H200", ""))
    assert other.other_gpu and other.ours is not None and not same.other_gpu and unnamed.other_gpu


@pytest.mark.parametrize("records", [[], [record(torch_eager=[1.0])], [record(cuda_branch=[1.0])]])
def test_what_was_not_measured_is_not_made_up(records):
    found = answer(CLAIM, *records)
    assert found.ours is None and found.verdict == "not measured" and found.cases == ()
    assert found.command == "groundspeed run --only relu --tier core"
    assert "--tier full" in answer(claim(tier="full")).command


def test_a_reason_stands_for_what_nothing_of_ours_can_answer():
    found = answer(claim(operator="", implementation="", reason="another processor"), record(torch_eager=[1.0]))
    assert found.verdict == "not measured" and found.command == ""


def test_of_several_implementations_the_best_stands_for_all_on_each_case():
    one = record(torch_eager=[400.0, 400.0], cuda_a=[100.0, 400.0], cuda_b=[200.0, 50.0], triton_x=[1.0, 1.0])
    found = answer(claim(implementation="cuda_a,cuda_b"), one)
    assert [value for _, value in found.cases] == [pytest.approx(4.0), pytest.approx(8.0)]
    assert answer(claim(implementation="cuda_*, triton_*"), one).ours == pytest.approx(400.0)


def test_a_dtype_a_case_or_another_implementation_as_the_baseline():
    one = record(
        row("torch_eager", 1, "float16", device_cold=50.0, items=8),
        row("torch_eager", 1, "float32", device_cold=100.0, items=8),
        row("torch_eager", 8, "float32", device_cold=200.0, items=64),
        row("torch_other", 8, "float32", device_cold=600.0, items=64),
    )
    eager = claim(implementation="torch_eager")
    half = msgspec.structs.replace(eager, dtype="float16", baseline_dtype="float32", cases="N=1")
    assert answer(half, one).cases == (("float16 N=1", pytest.approx(2.0)),)
    batch = msgspec.structs.replace(eager, quantity="throughput", cases="N=8", baseline_cases="N=1")
    assert answer(batch, one).cases == (("float32 N=8", pytest.approx(4.0)),)
    assert answer(claim(implementation="torch_eager", baseline="torch_other"), one).ours == pytest.approx(3.0)


def test_over_all_operators_each_counts_once():
    relu = record(torch_eager=[400.0, 400.0], triton_x=[100.0, 100.0])
    softmax = record(torch_eager=[100.0], triton_y=[100.0], operator="softmax")
    found = answer(claim(operator="*", implementation="triton_*"), relu, softmax, record(operator="none"))
    assert found.cases == (("relu", pytest.approx(4.0)), ("softmax", pytest.approx(1.0)))
    assert found.ours == pytest.approx(2.0) and found.command == "groundspeed run --tier core"


FIELDS = {
    "device_cold": 1000.0,
    "device_hot": 800.0,
    "call": 2000.0,
    "host": 6000.0,
    "flops": 8_000_000,
    "bytes_read": 1_000_000,
    "bytes_written": 1_000_000,
    "items": 4,
    "peak_memory_bytes": 100,
    "energy_nj": 50.0,
    "kernels": ["conv", "norm", "add", "add", "norm", "mul"],
    "kernel_ns": [10.0, 20.0, 30.0, 40.0, 50.0, 50.0],
    "resources": [KernelResources("a", 24), KernelResources("b", 40)],
}


@pytest.mark.parametrize(
    ("quantity", "more", "ours"),
    [
        ("rate", {}, 8.0),
        ("bandwidth", {}, 2000.0),
        ("ceiling", {}, 50.0),
        ("bandwidth ceiling", {}, 50.0),
        ("launch", {}, 1.0),
        ("registers", {}, 40.0),
        ("intensity", {}, 4.0),
        ("ridge", {}, 10.0),
        ("device bandwidth", {}, 4000.0),
        ("device rate", {}, 40.0),
        ("launch share", {}, 60.0),
        ("compute share", {}, 10.0),
        ("memory share", {}, 30.0),
        ("kernel share", {"kernels": "norm"}, 35.0),
        ("kernel share", {"kernels": "norm", "part": 1}, 35.0),
        ("kernel share", {"kernels": "norm", "part": 2}, 25.0),
        ("kernel count", {"kernels": "add|mul"}, 1.0),
    ],
)
def test_each_quantity_from_a_measurement(quantity, more, ours):
    found = answer(claim(quantity=quantity, **more), record(row("cuda_branch", **FIELDS)))
    assert found.ours == pytest.approx(ours)
    assert found.quantity.unit in found.quantity.show(found.ours)


@pytest.mark.parametrize(("quantity", "ratio"), [("memory", 3.0), ("energy", 4.0), ("call speedup", 5.0)])
def test_each_ratio_from_two(quantity, ratio):
    eager = {**FIELDS, "peak_memory_bytes": 300, "energy_nj": 200.0, "call": 10_000.0}
    one = record(row("torch_eager", **eager), row("cuda_branch", **FIELDS))
    assert answer(claim(quantity=quantity), one).ours == pytest.approx(ratio)


def passes(forward: dict[str, float], backward: dict[str, float], field="device_cold") -> list[Record]:
    """A record of relu and one of its backward pass, on one case."""
    return [
        record(*(row(name, **{field: value}) for name, value in values.items()), operator=operator)
        for operator, values in (("relu", forward), ("relu_backward", backward))
    ]


TRAINED = claim(quantity="training speedup")


def test_a_training_speedup_is_of_both_passes_together():
    found = answer(
        TRAINED, *passes({"torch_eager": 300.0, "cuda_branch": 100.0}, {"torch_eager": 100.0, "cuda_branch": 100.0})
    )
    assert found.cases == (("float32 N=1", pytest.approx(2.0)),) and found.verdict == "reproduced"
    assert (
        found.command == "groundspeed run --only relu --only relu_backward --tier core" and found.gpu == "NVIDIA H200"
    )


def test_the_larger_pass_is_what_training_needs_of_memory():
    sides = passes(
        {"torch_eager": 300, "cuda_branch": 100}, {"torch_eager": 500, "cuda_branch": 200}, "peak_memory_bytes"
    )
    assert answer(claim(quantity="training memory"), *sides).ours == pytest.approx(2.5)
    only_forward = passes(
        {"torch_eager": 900, "cuda_branch": 100}, {"torch_eager": 5, "cuda_branch": 200}, "peak_memory_bytes"
    )
    assert answer(claim(quantity="training memory"), *only_forward).ours == pytest.approx(4.5)


def test_a_pass_is_joined_with_one_of_its_own_family():
    sides = passes(
        {"torch_formula": 900.0, "cuda_row": 10.0, "triton_row": 90.0},
        {"torch_formula": 900.0, "torch_eager": 1.0, "cuda_block": 170.0, "triton_block": 10.0},
    )
    families = claim(
        quantity="training speedup",
        implementation="cuda_*,triton_*",
        baseline="torch_formula",
    )
    assert answer(families, *sides).ours == pytest.approx(18.0)
    named = msgspec.structs.replace(families, implementation="cuda_row", backward="cuda_block")
    assert answer(named, *sides).ours == pytest.approx(10.0)
    other = msgspec.structs.replace(named, baseline_backward="torch_eager")
    assert answer(other, *sides).ours == pytest.approx(901 / 180)
    missing = msgspec.structs.replace(named, backward="cuda_none")
    assert answer(missing, *sides).ours is None


def test_the_newest_pair_of_records_that_have_a_case_together_answers():
    old = passes({"torch_eager": 300.0, "cuda_branch": 100.0}, {"torch_eager": 300.0, "cuda_branch": 100.0})
    newer = record(row("torch_eager", 2, device_cold=1.0), row("cuda_branch", 2, device_cold=1.0), started="2026-02-01")
    alone = record(cuda_branch=[1.0], started="2026-03-01", operator="relu_backward")
    assert answer(TRAINED, *old, newer, alone).cases == (("float32 N=1", pytest.approx(3.0)),)
    assert answer(TRAINED, old[0]).ours is None and answer(TRAINED, old[1]).ours is None


def test_beside_a_source_without_a_figure_ours_is_only_shown():
    found = answer(claim(published=None), record(torch_eager=[200.0], cuda_branch=[100.0]))
    assert found.verdict == "measured" and found.ours == pytest.approx(2.0)
    assert found.published == "no figure" and found.relative is None and not found.other_gpu
    assert answer(claim(published=None)).verdict == "not measured"


@pytest.mark.parametrize("quantity", [name for name in QUANTITIES if not name.startswith("kernel ")])
def test_a_quantity_that_was_not_measured_is_not_made_up(quantity):
    bare = record(row("cuda_branch", kernels=[]), row("torch_eager", kernels=[]), ceilings=None)
    assert answer(claim(quantity=quantity), bare).ours is None


def test_parts_of_a_call_add_up():
    one = record(row("cuda_branch", **{**FIELDS, "call": 700.0}))
    shares = [answer(claim(quantity=f"{part} share"), one).ours for part in ("launch", "compute", "memory")]
    assert shares[0] == 0.0 and sum(shares) == pytest.approx(100.0)
