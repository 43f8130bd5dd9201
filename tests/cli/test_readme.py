"""README: its speed table is generated and not stale, and what it tells a newcomer to do works."""

from __future__ import annotations

import re
import shutil

import msgspec
import pytest

from groundspeed.errors import UserError
from groundspeed.report.readme import BEGIN, END, replace_table, speed_table
from groundspeed.report.standing import standing
from tests.cli import toy_project
from tests.cli.records_for_tests import ENVIRONMENT, bad, ok, record, store
from tests.cli.toy_project import ROOT, groundspeed

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_speed_table_is_not_stale():
    done = groundspeed("table", "--readme", "--check", cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def stored(tmp_path):
    spec = re.sub(r"N=(4096|1 << 20)", "M=64, N=64", toy_project.SPEC).replace("M=64, N=64", "M=8192, N=8192", 1)
    names = ("torch_compile", "triton_row", "triton_two", "cupy_raw")
    root = toy_project.make(tmp_path / "p", softmax={"spec": spec, **dict.fromkeys(names, "")})
    (root / "README.md").write_text(f"before\n{BEGIN}\nstale figures\n{END}\nafter\n")
    rows = [ok("torch_eager", 254), ok("torch_compile", 300), ok("triton_row", 127), ok("triton_two", 200)]
    store(root / "results", record(*rows, bad("cupy_raw", "failed", "x", "error"), machine="nvidia-h200"))
    return root


def test_writing_checking_and_noticing_that_it_is_stale(stored):
    assert groundspeed("table", "--readme", "--check", cwd=stored).returncode == 1
    assert "stale figures" in (stored / "README.md").read_text()
    assert groundspeed("table", "--readme", cwd=stored).returncode == 0
    text = (stored / "README.md").read_text()
    assert text.startswith(f"before\n{BEGIN}\n") and text.endswith(f"{END}\nafter\n") and "stale figures" not in text
    assert groundspeed("table", "--readme", "--check", cwd=stored).returncode == 0
    store(stored / "results", record(ok("torch_eager", 9), machine="nvidia-h200", run_id="2027"))
    assert groundspeed("table", "--readme", "--check", cwd=stored).returncode == 1


def test_the_table_is_left_as_it_is_where_there_is_no_run(stored, tmp_path):
    empty = tmp_path / "empty"
    before = (stored / "README.md").read_text()
    done = groundspeed("table", "--readme", "--results", str(empty), cwd=stored)
    assert done.returncode == 2 and not done.stdout and (stored / "README.md").read_text() == before
    assert f"{empty}/nvidia-h200 holds no run of tier core or full" in done.stderr
    done = groundspeed("table", "--readme", "--results", str(stored / "results"), cwd=tmp_path / "p" / "impls")
    assert f"written from {stored}/results/nvidia-h200" in done.stdout


def test_a_row_a_case_and_the_fastest_of_each_back_end(stored):
    groundspeed("table", "--readme", cwd=stored)
    row = next(line for line in (stored / "README.md").read_text().splitlines() if "M=8192" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "softmax", "float16 M=8192,N=8192", "254 µs", "0.847×", "–", "2.00×", "–", "–", "`triton_row`", "53 %",
    ]  # fmt: skip


def test_readme_has_the_largest_case_and_the_page_all_of_them(stored):
    (stored / "docs").mkdir()
    (stored / "docs" / "speed.md").write_text(f"{BEGIN}\n{END}\n")
    rows = [ok("torch_eager", 9, M=64, N=64), ok("torch_eager", 254)]
    store(stored / "results", record(*rows, machine="nvidia-h200", run_id="2027"))
    done = groundspeed("table", "--readme", cwd=stored)
    assert done.stdout.startswith("README.md and docs/speed.md: speed table written")
    readme, page = ((stored / name).read_text() for name in ("README.md", "docs/speed.md"))
    assert "M=8192" in readme and "M=64" not in readme
    assert "M=8192" in page and "M=64" in page
    (stored / "docs" / "speed.md").write_text(f"{BEGIN}\nstale\n{END}\n")
    done = groundspeed("table", "--readme", "--check", cwd=stored)
    assert done.returncode == 1 and "docs/speed.md: the speed table is stale" in done.stderr


def test_libraries_have_a_column_of_their_own():
    found = standing([record(ok("torch_eager", 300), ok("jax_jit", 200), ok("liger_row", 100))])
    text = speed_table({"softmax": found}, "m")
    assert "| 3.00× | `liger_row` |" in text


def test_the_caption_says_on_what_and_at_which_commit():
    clean, dirty = record(ok("torch_eager", 1)), record(ok("torch_eager", 1), operator="relu", dirty=True)
    text = speed_table({"softmax": standing([clean]), "relu": standing([dirty])}, "m")
    assert "NVIDIA Test, driver 580.1, torch 2.11.0, Triton 3.6.0" in text
    assert "`01234567`, `01234567` with changes" in text and "2026-01-01" in text


def test_a_narrowed_run_takes_nothing_from_the_table_and_the_caption_names_both(stored):
    environment = msgspec.structs.replace(ENVIRONMENT, torch="2.12.0")
    newer = {"run_id": "2027", "started": "2027-02-03T00:00:00Z", "commit": "f" * 40, "environment": environment}
    rows = [ok("torch_eager", 508), ok("triton_two", 100)]
    store(stored / "results", record(*rows, machine="nvidia-h200", **newer))
    groundspeed("table", "--readme", cwd=stored)
    text = (stored / "README.md").read_text()
    row = next(line for line in text.splitlines() if "M=8192" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == ["508 µs", "0.847×", "–", "5.08×", "–", "–", "`triton_two`", "67 %"]
    assert "torch 2.12.0 and 2.11.0, Triton 3.6.0" in text
    assert "2026-01-01 to 2027-02-03, commit `ffffffff`, `01234567`." in text


def test_a_run_of_smaller_cases_alone_is_no_source_of_the_largest(stored):
    rows = [ok("torch_eager", 9, M=64, N=64)]
    store(stored / "results", record(*rows, machine="nvidia-h200", run_id="2027", commit="f" * 40))
    groundspeed("table", "--readme", cwd=stored)
    assert "ffffffff" not in (stored / "README.md").read_text()


def test_implementations_and_cases_that_are_gone_are_not_shown(stored):
    rows = [ok("torch_eager", 254), ok("cuda_gone", 1), ok("torch_eager", 9, M=9999, N=9999)]
    store(stored / "results", record(*rows, machine="nvidia-h200", run_id="2027"))
    groundspeed("table", "--readme", cwd=stored)
    text = (stored / "README.md").read_text()
    assert "M=8192" in text and "cuda_gone" not in text and "M=9999" not in text


def test_small_runs_and_other_machines_are_not_shown(stored):
    newer = {"run_id": "2028", "operator": "softmax"}
    store(stored / "results", record(ok("torch_eager", 1), machine="cpu-x", **newer))
    store(stored / "results", record(ok("torch_eager", 1), machine="nvidia-h200", tier="small", **newer))
    groundspeed("table", "--readme", cwd=stored)
    assert "254 µs" in (stored / "README.md").read_text()


def test_without_results_it_says_so_and_shows_no_figure():
    text = speed_table({}, "nvidia-h200")
    assert "no result" in text and not re.search(r"\d (µs|ms)|\d×", text)


@pytest.mark.parametrize("readme", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"])
def test_marks_that_are_not_there_once_are_an_error(readme):
    with pytest.raises(UserError, match="once each"):
        replace_table(readme, "x")


@pytest.mark.slow
def test_the_implementation_it_shows_is_right_when_added_as_it_says(tmp_path):
    """As a newcomer: each command of the section in order; between the first check and the next the file is written."""
    section = README.partition("## Add an implementation")[2].partition("\n## ")[0]
    name, code = re.search(r"`(impls/\S+\.py)`:\n\n```python\n(.*?)```", section, re.DOTALL).groups()
    assert len(code.strip().splitlines()) <= 10
    first, again, measure = re.findall(r"^groundspeed (.+)$", section, re.MULTILINE)
    project = tmp_path / "p"
    shutil.copytree(ROOT / "impls", project / "impls")
    (project / "asv.conf.json").write_text("{}")

    def type_in(command):
        return groundspeed(*command.split(), cwd=project, GROUNDSPEED_DEVICE="cpu")

    assert not (project / name).exists()
    assert type_in(first).returncode == 0 and (project / name).exists()
    skeleton = type_in(again)
    assert f"`groundspeed {again}` says so" in section
    assert skeleton.returncode == 1 and f"{name}:" in skeleton.stdout, skeleton.stdout
    (project / name).write_text(code)
    done = type_in(again)
    assert done.returncode == 0 and "checks passed" in done.stdout, done.stdout
    assert type_in(measure).returncode == 0


def test_every_command_it_names_exists():
    from groundspeed.cli import COMMANDS

    blocks = "\n".join(re.findall(r"```\n(.*?)```", README, re.DOTALL))
    named = set(re.findall(r"`groundspeed ([a-z]+)", README)) | set(re.findall(r"^groundspeed ([a-z]+)", blocks, re.M))
    assert named <= set(COMMANDS)
    assert set(COMMANDS) <= named, "a command is not in README"


def test_every_file_it_links_exists():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = set()
    for page in pages:
        named |= set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named and named <= targets
