"""The claims ledger: reading it, and what records say to a claim."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundspeed.analysis.claims import ROUNDING, Claim, LedgerError, answers, read_claims
from groundspeed.records import Environment, Footer, Header, Measurement, Record
from groundspeed.tree import Tree

LEDGER = Path(__file__).parents[2] / "impls" / "claims.toml"
CLAIM = Claim("001", "twice as fast", "V100", (2.0, 2.0), "relu", "cuda_branch", dtype="float32")


def record(gpu: str = "NVIDIA H200", started: str = "2026-01-01", **times: list[float]) -> Record:
    environment = Environment("cuda", gpu, "3.12", "Linux")
    rows = tuple(
        Measurement(name, "float32", {"N": n + 1}, "ok", samples={"device_cold": [value] * 9})
        for name, values in times.items()
        for n, value in enumerate(values)
    )
    header = Header("run", "relu", "nvidia-h200", started, environment, command="groundspeed run --only relu")
    return Record(header, rows, Footer(len(rows)))


def test_the_ratio_is_the_geometric_mean_over_the_cases_of_both():
    (answer,) = answers([CLAIM], [record(torch_eager=[400.0, 400.0, 5.0], cuda_branch=[100.0, 400.0])])
    assert answer.ratio == pytest.approx(2.0)
    assert answer.cases == (("float32 N=1", pytest.approx(4.0)), ("float32 N=2", pytest.approx(1.0)))
    assert answer.verdict == "reproduced" and answer.command == "groundspeed run --only relu"


@given(st.floats(0.01, 100.0))
def test_the_verdict_follows_the_published_range(ratio):
    (answer,) = answers([CLAIM], [record(torch_eager=[100.0 * ratio], cuda_branch=[100.0])])
    expected = "exceeded" if ratio > 2 * (1 + ROUNDING) else "reproduced" if ratio >= 2 * (1 - ROUNDING) else ""
    assert answer.verdict == (expected or "not reproduced")


def test_the_newest_record_answers():
    old, new = (
        record(torch_eager=[200.0], cuda_branch=[100.0]),
        record(started="2026-02-01", torch_eager=[600.0], cuda_branch=[100.0]),
    )
    (answer,) = answers([CLAIM], [new, old])
    assert answer.ratio == pytest.approx(6.0) and answer.verdict == "exceeded"


def test_another_gpu_is_said_and_the_ratio_shown_all_the_same():
    records = [record(torch_eager=[200.0], cuda_branch=[100.0])]
    (other,) = answers([CLAIM], records)
    (same,) = answers([msgspec.structs.replace(CLAIM, gpu="H200")], records)
    assert other.other_gpu and other.ratio is not None and not same.other_gpu


@pytest.mark.parametrize("records", [[], [record(torch_eager=[1.0])], [record(cuda_branch=[1.0])]])
def test_what_was_not_measured_is_not_made_up(records):
    (answer,) = answers([CLAIM], records)
    assert answer.ratio is None and answer.verdict == "not measured" and answer.cases == ()


def test_a_faulty_ledger_is_one_clear_line(tmp_path):
    for text in ("[[claim]]\nsource = 1", "[[claim", '[[claim]]\nsource = "a"\nspeedup = 2'):
        ledger = tmp_path / "claims.toml"
        ledger.write_text(text, encoding="utf-8")
        with pytest.raises(LedgerError, match=r"claims\.toml cannot be used") as caught:
            read_claims(ledger)
        assert "\n" not in str(caught.value)
    with pytest.raises(LedgerError, match="No such file"):
        read_claims(tmp_path / "none.toml")


def test_every_claim_of_the_ledger_is_about_something_there_is():
    tree = Tree(LEDGER.parent)
    claims = read_claims(LEDGER)
    assert claims
    for claim in claims:
        names = {implementation.name for implementation in tree.implementations(claim.operator)}
        assert {claim.implementation, claim.baseline} <= names
        assert claim.dtype in ("", *tree.spec(claim.operator).dtypes)
        assert 0 < claim.published[0] <= claim.published[1]
