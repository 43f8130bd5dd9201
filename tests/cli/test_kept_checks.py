"""What a check keeps, in pieces, and the page made of it."""

from __future__ import annotations

from pathlib import Path

from groundspeed.commands.standing import still_there
from groundspeed.records import Environment, Footer, Header, Measurement, Record, check_path, write_record
from groundspeed.report.kept_checks import changed_since, kept_checks, markdown
from groundspeed.tree import Tree
from tests.cli import toy_project
from tests.cli.toy_project import ROOT, groundspeed

GPU = Environment("cuda", "NVIDIA Test", "3.12", "Linux 6", driver="580.1", torch="2.11.0", triton="3.6.0")


def row(name: str, n: int, status: str = "ok", **more: str) -> Measurement:
    return Measurement(name, "float32", {"N": n}, status, **more)  # type: ignore[arg-type]


def keep(
    results: Path, run_id: str, operator: str, *rows: Measurement, commit: str = "0123456789", **more: bool
) -> None:
    header = Header(run_id, operator, "m", "2026-01-02T03:04:05+00:00", GPU, commit=commit, **more)  # type: ignore[arg-type]
    write_record(check_path(results, "m", run_id, operator), Record(header, rows, Footer(len(rows))))


def all_there(operator: str, row: Measurement) -> bool:
    return True


def test_what_is_gone_is_left_out_and_what_a_library_said_is_plain(tmp_path: Path):
    root = toy_project.make(tmp_path / "p", double={})
    tree = Tree(root / "impls")
    case = tree.spec("double").check_cases[0]
    said = "\x1b[91merror\x1b[0m: no\x07"
    gone = Measurement("torch_eager", "float32", {"N": 31337}, "ok")
    rows = [
        Measurement("torch_eager", case.dtype, case.dims, "failed", failure="error", reason=said),
        Measurement("triton_old", case.dtype, case.dims, "ok"),
        gone,
    ]
    keep(tmp_path, "1", "double", *rows)
    keep(tmp_path, "1", "retired", row("torch_eager", 1))
    kept, problems = kept_checks(tmp_path, "m", still_there(tree))
    assert not problems
    ((operator, (left,)),) = kept.entries.items()
    assert (operator, left.implementation, left.shape) == ("double", "torch_eager", case.dims)
    assert left.reason == "error: no"


def test_pieces_are_put_together_and_the_newest_row_stands(tmp_path: Path):
    keep(tmp_path, "1", "relu", row("torch_eager", 1), row("triton_b", 1, "failed", failure="incorrect", reason="off"))
    keep(tmp_path, "2", "relu", row("triton_b", 1), row("cuda_v", 1, "skipped", reason="needs sm_90"))
    keep(tmp_path, "2", "add", row("torch_eager", 1), row("cupy_raw", 5, "failed", failure="error", reason="a | b"))
    kept, problems = kept_checks(tmp_path, "m", all_there)
    text = "\n".join(markdown(kept))
    assert not problems
    assert text.startswith("NVIDIA Test, driver 580.1, torch 2.11.0, Triton 3.6.0; 2026-01-02; commit `01234567`.")
    assert "3 checks passed, 1 failed, 1 skipped." in text
    assert "| add | 1: 1 of 1 | – | – | 1: 0 of 1 |" in text
    assert "| relu | 1: 1 of 1 | 1: skipped | 1: 1 of 1 | – |" in text
    assert "off" not in text and "error: a | b" in text and "needs sm_90" in text


def test_who_is_skipped_later_keeps_what_the_same_code_was_found_to_be(tmp_path: Path):
    judged = [row("numba_a", 1, implementation_digest="a"), row("quack_b", 1, "failed", implementation_digest="b")]
    keep(tmp_path, "1", "relu", *judged, row("torch_jit", 1, "skipped", reason="no script"))
    absent = row("numba_a", 1, "skipped", reason="numba-cuda is not installed")
    narrowed = row("quack_b", 1, "skipped", reason="odd rows", implementation_digest="b2")
    keep(tmp_path, "2", "relu", absent, narrowed, row("torch_jit", 1, "skipped", reason="no torch.jit"))
    rows = {entry.implementation: entry for entry in kept_checks(tmp_path, "m", all_there)[0].entries["relu"]}
    assert rows["numba_a"].status == "ok", "the library is not there any more, and was right"
    assert rows["quack_b"].reason == "odd rows", "the code has changed, and does not take this case"
    assert rows["torch_jit"].reason == "no torch.jit"


def test_rows_of_code_that_has_changed_are_counted(tmp_path: Path):
    old = [row("a", n, implementation_digest="old") for n in (1, 2)]
    skipped = row("a", 3, "skipped", implementation_digest="old")
    keep(tmp_path, "1", "relu", *old, skipped, row("b", 1, implementation_digest="b"), row("c", 1))
    kept = kept_checks(tmp_path, "m", all_there)[0]
    assert changed_since(kept, lambda operator, name: {"a": "new", "b": "b", "c": "c"}[name]) == {"relu/a": 2}


def test_libraries_share_a_column_where_there_are_any(tmp_path: Path):
    keep(tmp_path, "1", "relu", row("torch_eager", 1), row("jax_jit", 1), row("numba_thread", 2))
    keep(tmp_path, "1", "add", row("torch_eager", 1))
    lines = markdown(kept_checks(tmp_path, "m", all_there)[0])
    assert "| operator | PyTorch | CUDA C++ | Triton | CuPy | libraries |" in lines
    assert "| relu | 1: 1 of 1 | – | – | – | 2: 2 of 2 |" in lines and "| add | 1: 1 of 1 | – | – | – | – |" in lines


def test_a_damaged_piece_is_named_and_the_others_stand(tmp_path: Path):
    keep(tmp_path, "1", "relu", row("torch_eager", 1))
    keep(tmp_path, "2", "add", row("torch_eager", 1), commit="ffffffffff", dirty=True)
    check_path(tmp_path, "m", "1", "relu").write_bytes(b"\x1f\x8b")
    kept, (problem,) = kept_checks(tmp_path, "m", all_there)
    assert "relu" in problem and list(kept.entries) == ["add"]
    assert "commit `ffffffff+`" in markdown(kept)[0]


def test_the_command_keeps_and_prints(tmp_path: Path):
    root = toy_project.make(tmp_path / "p", double={})
    none = groundspeed("check", "--stored", cwd=root)
    assert none.returncode == 2 and "groundspeed check --keep" in none.stderr
    done = groundspeed("check", "--keep", cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode in (0, 1), done.stderr
    page = groundspeed("check", "--stored", cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert page.returncode == 0 and "| double |" in page.stdout
    assert groundspeed("check", "--stored", "double", cwd=root).returncode == 2
    assert groundspeed("check", "--machine", "x", cwd=root).returncode == 2


def test_a_dtype_that_no_case_has_is_one_line(tmp_path: Path):
    root = toy_project.make(tmp_path / "p", double={})
    done = groundspeed("check", "double", "--dtype", "bfloat16", cwd=root, GROUNDSPEED_DEVICE="cpu")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.splitlines() == [
        "groundspeed: no check case of double is of bfloat16: there are float32, float16"
    ]


def test_the_page_says_what_the_committed_checks_say():
    """docs/correctness.md is printed by ``groundspeed check --stored --machine nvidia-h200``."""
    kept, problems = kept_checks(ROOT / "results", "nvidia-h200", still_there(Tree(ROOT / "impls")))
    page = (ROOT / "docs" / "correctness.md").read_text(encoding="utf-8")
    assert not problems and "\n".join(markdown(kept)) in page
