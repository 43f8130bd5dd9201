"""Bad implementations in one sweep: each fails for its own reason, and all the others are measured."""

from __future__ import annotations

import pytest

from tests.core.scratch import ADD, calls, job, make_tree, rows_by_name, sweep

pytestmark = pytest.mark.slow

RAISING = {
    "torch_in_import": 'raise ImportError("no such library")\n',
    "torch_in_syntax": "def prepare(x:\n",
    "torch_in_prepare": 'def prepare(x):\n    raise ValueError("no such shape\\nsecond line")\n',
    "torch_in_run": calls('raise KeyError("no such key")'),
    "torch_in_rounds": calls('if within("collect"): raise RuntimeError("tired")'),
    "torch_without_prepare": "x = 1\n",
    "torch_bad_shape": "def prepare(x):\n    return lambda: (x * 2).reshape(1, -1)\n",
    "torch_bad_dtype": "def prepare(x):\n    return lambda: (x * 2).double()\n",
    "torch_not_a_tensor": "def prepare(x):\n    return lambda: 3\n",
    "torch_huge": calls("torch.empty(1 << 50)"),
    "torch_unsupported": 'def unsupported(dtype, N):\n    return "N is even" if N % 2 == 0 else None\n',
    "torch_loud": calls('print("loud " * (1 << 18)); print("louder " * (1 << 18), file=sys.stderr)'),
    "torch_add": ADD,
    "abacus_beads": ADD,
}
LINE = {name: RAISING[name].partition("raise")[0].count("\n") + 1 for name in ("torch_in_run", "torch_in_rounds")}
FAILURES = {
    "torch_in_import": ("error", "ImportError: no such library (double/torch_in_import.py:1)"),
    "torch_in_syntax": ("error", "SyntaxError: '(' was never closed (torch_in_syntax.py, line 1)"),
    "torch_in_prepare": ("error", "ValueError: no such shape (double/torch_in_prepare.py:2)"),
    "torch_in_run": ("error", f"KeyError: 'no such key' (double/torch_in_run.py:{LINE['torch_in_run']})"),
    "torch_in_rounds": ("error", f"RuntimeError: tired (double/torch_in_rounds.py:{LINE['torch_in_rounds']})"),
    "torch_without_prepare": ("error", "prepare"),
    "torch_bad_shape": ("incorrect", "shape: returned (1, 64), expected (64,)"),
    "torch_bad_dtype": ("incorrect", "dtype: returned torch.float64, expected torch.float32"),
    "torch_not_a_tensor": ("incorrect", "type: returned a int, expected a"),
    "torch_huge": ("oom", "memory"),
    "abacus_beads": ("error", "unknown back end 'abacus'"),
}


@pytest.fixture(scope="module")
def raising(tmp_path_factory):
    outcome = sweep(job(make_tree(tmp_path_factory.mktemp("raising"), {"double": RAISING})))
    return outcome, rows_by_name(outcome)


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_one_that_raises_or_answers_wrongly_fails_with_its_reason(raising, name):
    failure, reason = FAILURES[name]
    for row in raising[1][name]:
        assert (row.status, row.failure) == ("failed", failure), row
        assert "\n" not in row.reason
    assert reason in raising[1][name][0].reason
    assert len(raising[1][name]) == 2


def test_one_that_declines_is_skipped_with_its_own_words(raising):
    assert [(row.status, row.reason) for row in raising[1]["torch_unsupported"]] == [("skipped", "N is even")] * 2


@pytest.mark.parametrize("name", ["torch_eager", "torch_add", "torch_loud"])
def test_the_others_are_measured_together_as_if_alone(raising, name):
    rows = raising[1][name]
    assert [row.status for row in rows] == ["ok", "ok"], rows
    for row in rows:
        rounds = {quantity: len(values) for quantity, values in row.samples.items()}
        assert rounds["device_cold"] == rounds["device_hot"] >= 9 and rounds["call"] == rounds["host"] >= 3
        assert all(value > 0 for values in row.samples.values() for value in values)
        eager = next(one for one in raising[1]["torch_eager"] if one.shape == row.shape)
        assert rounds == {quantity: len(values) for quantity, values in eager.samples.items()}  # they shared them
        assert row.case_digest == eager.case_digest and row.implementation_digest
        assert row.accuracy is not None and row.accuracy.max_abs == 0.0


def test_no_worker_died_of_a_python_exception(raising):
    """One process did it all: what a worker died of would have its environment told again and its seconds missing."""
    assert raising[0].problem == ""
    assert raising[0].environment.device == "cpu"
    assert {"start", "load", "prepare", "first run", "check", "calls", "time", "memory"} <= set(raising[0].seconds)
