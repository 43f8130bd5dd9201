from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from dashboard import best_command
from dashboard.pages.operator_charts import growing_batch
from groundspeed.errors import UserError
from tests.dashboard.make_results import COMMITS, seconds


def best(*words: str) -> int:
    parser = argparse.ArgumentParser()
    best_command.add_arguments(parser)
    return best_command.run(parser.parse_args(words))


def test_the_table_names_the_fastest_of_every_case(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert best("relu", "--results", str(results)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "relu on synthetic-gpu (GPU: Synthetic GPU), by Device time, cold L2"
    assert len(lines) == 2 + 15
    assert all("cuda_vec4" in line for line in lines[2:])


def test_the_dispatch_table_holds_what_was_measured(results: Path, tmp_path: Path) -> None:
    path = tmp_path / "softmax.json"
    assert best("softmax", "--results", str(results), "--json", str(path)) == 0
    table = json.loads(path.read_text())
    assert (table["operator"], table["machine"], table["unit"]) == ("softmax", "synthetic-gpu", "s")
    first = table["dtypes"]["float16"][0]
    assert first["shape"] == {"M": 4096, "N": 128}
    assert first["implementation"] == "triton_row"  # cuda_vec4 is incorrect there
    expected = seconds("softmax", "triton_row", "float16", {"M": 4096, "N": 128}, COMMITS - 1)
    assert first["value"] == pytest.approx(expected, rel=0.02)
    assert [case["bytes"] for case in table["dtypes"]["float32"]] == sorted(
        c["bytes"] for c in table["dtypes"]["float32"]
    )


@pytest.mark.parametrize("words", [("nope",), ("relu", "--machine", "x"), ("relu", "--metric", "speed")])
def test_unknown_names_list_the_known(results: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r": (there are|did you mean) "):
        best(*words, "--results", str(results))


def rows(*shapes: dict[str, int], items: str) -> list[dict[str, object]]:
    return [{"facets": json.dumps(shape), "items": shape[items]} for shape in shapes]


def test_the_batch_is_the_dimension_that_items_follow() -> None:
    found = growing_batch(rows(*({"B": b, "N": 64} for b in (8, 1, 32)), {"B": 1, "N": 128}, items="B"))
    assert found[:2] == ("B", "N=64")
    assert [row["items"] for row in found[2]] == [1, 8, 32]


def test_no_batch_where_other_dimensions_grow_along() -> None:
    assert growing_batch(rows(*({"M": n, "N": n} for n in (1, 2, 4)), items="M")) == ("", "", [])
    assert growing_batch([]) == ("", "", [])


def test_a_table_fits_80_columns_and_keeps_its_shapes() -> None:
    case = {"dtype": "bfloat16", "implementation": "cuda_of_a_long_name", "second": "triton_of_a_long_name"}
    shape = "B=4,H=32,S=4096,D=128,W=1024,causal=1"
    numbers = {"value": 1.5e-5, "margin": 1.05}
    lines = best_command._lines([{**case, **numbers, "shape": shape, "tie": tie} for tie in (False, True)], "s")
    assert max(map(len, lines)) <= 80
    assert sum(shape in line for line in lines) == 2
    assert [line.split()[-1] for line in lines if line.startswith("    cuda")] == ["%", "tie"]
    assert lines[-1] == "tie: the 99 % intervals of the two touch"
