"""The commands on a toy project, each as a user types it. Nothing here measures; test_measuring.py does."""

from __future__ import annotations

import json

import pytest

from groundspeed.cli import COMMANDS
from groundspeed.errors import UserError
from tests.cli import toy_project
from tests.cli.records_for_tests import bad, ok, record, store
from tests.cli.toy_project import ADD, groundspeed


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return toy_project.make(tmp_path_factory.mktemp("toy") / "p", double={"torch_add": ADD}, twice={})


def one_line(done, status=2):
    """The single line of an error, without a traceback."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lst"], ["unknown command 'lst'", "'list'"]),
        (["list", "dubble"], ["unknown operator 'dubble'", "'double'"]),
        (["run", "--only", "duble"], ["unknown operator 'duble'", "'double'"]),
        (["run", "--only", "double/torch_ad"], ["double: no implementation matches 'torch_ad'", "'torch_add'"]),
        (["run", "--dtype", "flot32"], ["unknown dtype 'flot32'", "'float32'"]),
        (["run", "--tier", "smal"], ["--tier", "'smal'", "small"]),
        (["run", "--resume", "nothing"], ["no run 'nothing'"]),
        (["run", "--resume", "x" * 400], ["no run 'xxx"]),
        (["run", "--results", "asv.conf.json"], ["asv.conf.json is a file", "--results DIR"]),
        (["run", "--results", "/proc/x"], ["/proc/x", "cannot be written to", "--results DIR"]),
        (["calibrate", "--results", "/proc/x"], ["/proc/x", "cannot be written to"]),
        (["profile", "double/torch_add", "--results", "/proc/x"], ["/proc/x", "cannot be written to"]),
        (
            ["run", "--only", "double", "--dtype", "float16"],
            ["tier small has no float16 case of double", "small: float32; core: float32, float16", "add --tier core"],
        ),
        (["run", "--dtype", "int32"], ["tier small has no int32 case of double, twice; there are small: float32"]),
        (["run", "--wrong"], ["--wrong"]),
        (["check", "double/cuda_*"], ["double: no implementation matches 'cuda_*'"]),
        (["table"], ["no records", "groundspeed run"]),
        (["table", "--check"], ["--readme"]),
        (["--project", "/nowhere", "list"], ["/nowhere", "asv.conf.json"]),
    ],
)
def test_bad_input_is_one_clear_line_and_status_2(project, arguments, words):
    line = one_line(groundspeed(*arguments, cwd=project))
    assert line.startswith("groundspeed: ")
    for word in words:
        assert word in line


def test_outside_a_checkout_it_says_what_to_do(tmp_path):
    assert "--project DIR" in one_line(groundspeed("list", cwd=tmp_path))


def test_the_project_is_found_from_a_folder_inside_it(project):
    done = groundspeed("list", cwd=project / "impls" / "double")
    assert done.returncode == 0 and "double" in done.stdout and "2 operators, 3 implementations" in done.stdout
    assert groundspeed("--project", str(project), "list", cwd="/").stdout == done.stdout


def test_list_shows_one_implementation_alone(project):
    shown = groundspeed("list", "double/torch_add", cwd=project).stdout
    assert "double/torch_add" in shown and "impls/double/torch_add.py" in shown and "list double" in shown
    assert "torch_eager" not in shown and "bench cases" not in shown


def test_list_shows_one_operator_in_full(project):
    shown = groundspeed("list", "double", cwd=project).stdout
    for part in ("Twice x.", "torch_add", "An addition in place", "N=1048576", "float16 (c)", "check cases  6"):
        assert part in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_broken_spec_is_named_and_hides_no_other(tmp_path):
    root = toy_project.make(tmp_path / "p", double={}, broken={"spec": "SPEC = 3 +"})
    done = groundspeed("list", cwd=root)
    assert done.returncode == 0
    assert "broken spec" in done.stdout and "broken/spec.py" in done.stdout and "double" in done.stdout
    assert "SyntaxError" in one_line(groundspeed("list", "broken", cwd=root))


def test_help_of_every_command_fits_80_columns(project):
    assert groundspeed("--help", cwd=project).returncode == 0
    for command in COMMANDS:
        done = groundspeed(command, "--help", cwd=project)
        assert done.returncode == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80
        assert "groundspeed " + command in done.stdout


def test_no_command_shows_the_help_and_is_wrong_use(project):
    done = groundspeed(cwd=project)
    assert done.returncode == 2 and "commands:" in done.stdout


def test_machine_says_its_name_and_as_json(project):
    name = groundspeed("machine", cwd=project).stdout.splitlines()[0]
    told = json.loads(groundspeed("machine", "--json", cwd=project).stdout)
    assert told["machine"] == name and told["packages"]["torch"]


def test_a_reader_that_goes_away_is_no_error(project):
    import subprocess
    import sys

    command = f"{sys.executable} -m groundspeed list double | head -n 1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], cwd=project, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(toy_project.ROOT)})  # fmt: skip
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    assert done.returncode in (0, 141)  # by who is faster; never that something failed


@pytest.mark.parametrize("run_id", ["", ".", "..", "another", "x" * 400])
def test_only_a_run_that_is_there_is_gone_on_with(tmp_path, run_id):
    from groundspeed import git, session

    (tmp_path / "records" / "20260101T000000Z-a").mkdir(parents=True)
    with pytest.raises(UserError, match="no run"):
        session._check_resumed(tmp_path / "records", run_id, git.NO_COMMIT)


@pytest.mark.parametrize("arguments", [["list", "double"], ["machine"], ["table", "--runs", "--machine", "é→"]])
def test_output_that_nobody_takes_is_no_traceback(project, arguments):
    """A full disk, a closed standard output, a terminal whose encoding lacks most of what we print."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "groundspeed", *arguments]
    basis = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(toy_project.ROOT)}
    for shell, environment in (
        ('exec "$@" >/dev/full', {}),
        ('exec "$@" >&-', {}),
        ('exec "$@" >&- 2>&-', {}),
        ('exec "$@"', {"PYTHONIOENCODING": "ascii"}),
    ):
        typed = ["bash", "-c", shell, "_", *command]
        done = subprocess.run(typed, cwd=project, capture_output=True, text=True, env={**basis, **environment})
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
        assert done.returncode in (0, 2)


@pytest.mark.parametrize(
    "shell", ['exec "$@" 2>/dev/full', 'exec "$@" 2>&-', '{ sleep 0.3; "$@" 2>&1; echo $? >&3; } | :']
)
@pytest.mark.parametrize("arguments", [["lst"], ["gate", "--base", "HEAD", "--budget", "x"]])
def test_an_error_that_nobody_reads_has_the_status_of_an_error(project, shell, arguments):
    """A traceback's status is 1, which is a regression's."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "groundspeed", *arguments]
    typed = ["bash", "-c", f"exec 3>&1; {shell}", "_", *command]
    done = subprocess.run(
        typed,
        cwd=project,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(toy_project.ROOT)},
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert (done.stdout.strip() or str(done.returncode)) in ("2", "141")


class TestTable:
    @pytest.fixture
    def stored(self, tmp_path):
        root = toy_project.make(tmp_path / "p", double={})
        results = root / "results"
        store(results, record(ok("torch_eager", 200), ok("triton_row", 100), run_id="20260101T000000Z-a"))
        store(
            results,
            record(
                ok("torch_eager", 200),
                ok("triton_row", 50),
                bad("cupy_raw", "skipped", "CuPy has no bfloat16 arrays"),
                run_id="20260102T000000Z-b",
            ),
        )
        store(results, record(ok("torch_eager", 100), operator="double", run_id="20260102T000000Z-b"))
        return root

    def test_an_operator_whose_record_cannot_be_read_is_not_just_missing(self, stored):
        (path,) = stored.glob("results/*/records/20260102T000000Z-b/double.jsonl.gz")
        path.write_bytes(path.read_bytes()[:40])
        line = one_line(groundspeed("table", "double", cwd=stored))
        assert "holds no 'double'" in line and "double.jsonl.gz: cannot be read" in line

    def test_shows_the_newest_run(self, stored):
        done = groundspeed("table", cwd=stored)
        assert done.returncode == 0, done.stderr
        assert "20260102T000000Z-b" in done.stdout and "4.00×" in done.stdout and "double" in done.stdout
        assert "CuPy has no bfloat16 arrays" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80

    def test_shows_one_operator_of_one_run(self, stored):
        done = groundspeed("table", "softmax", "--run", "20260101T000000Z-a", cwd=stored)
        assert "2.00×" in done.stdout and "double" not in done.stdout
        assert "20260102T000000Z-b" in one_line(groundspeed("table", "--run", "20260102T000000Z-c", cwd=stored))
        assert "holds no 'softmx': did you mean 'softmax'" in one_line(groundspeed("table", "softmx", cwd=stored))

    def test_lists_runs(self, stored):
        lines = groundspeed("table", "--runs", cwd=stored).stdout.splitlines()
        assert lines[1].split() == ["20260102T000000Z-b", "core", "double,", "softmax"]

    def test_a_damaged_record_is_named_and_the_rest_shown(self, stored):
        path = stored / "results" / "nvidia-test" / "records" / "20260102T000000Z-b" / "softmax.jsonl.gz"
        path.write_bytes(path.read_bytes()[:50])
        done = groundspeed("table", cwd=stored)
        assert done.returncode == 2
        assert "softmax.jsonl.gz" in done.stderr and "Traceback" not in done.stderr
        assert "double" in done.stdout

    def test_nothing_reaches_the_terminal_as_an_escape(self, stored):
        store(
            stored / "results",
            record(ok("torch_eager", 1), bad("cupy_raw", "failed", "\x1b[31mred\rforged", "error"), run_id="2027"),
        )
        assert "\x1b" not in groundspeed("table", cwd=stored).stdout
