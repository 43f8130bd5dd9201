"""`groundspeed profile` as a user types it: for real on the CPU, and with a program in ncu's place."""

from __future__ import annotations

import os
import re
import sys

import pytest

from groundspeed.commands import profile as command
from groundspeed.errors import UserError
from groundspeed.profiling import run
from groundspeed.profiling.ncu import METRICS
from groundspeed.profiling.protocol import Answer, Ask
from groundspeed.profiling.run import Refused, Seen, find_tool
from tests.cli import toy_project
from tests.cli.toy_project import ADD, RAISES, TRITON, groundspeed
from tests.profiling import tables

TWO = '''"""Two operators of the framework."""


def prepare(x):
    return lambda: (x + x).clone()


def unsupported(dtype, N):
    return "no float16" if dtype == "float16" else None
'''
# Answers for the process that it should have run; `mode` beside it says how it behaves.
FAKE = f"""#!{sys.executable}
import json, os, sys
arguments = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
mode = open(os.path.join(here, "mode")).read()
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0 (build 36398880)")
    sys.exit()
table = arguments[arguments.index("--log-file") + 1]
asked = arguments[arguments.index("--metrics") + 1].split(",")
with open(os.path.join(here, "asked"), "a") as file:
    file.write(f"{{len(asked)}}\\n")
ask, answer = arguments[-2:]
dtype, shape = json.load(open(ask))["cases"][0]
environment = {{"device": "cuda", "device_name": "NVIDIA Test", "python": "3", "os": "Linux", "capability": "9.0"}}
reply = {{"case": [dtype, shape], "environment": environment, "call_ns": [1.0]}}
unknown = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
if mode != "crash" and not (mode == "older" and unknown in asked):
    json.dump(reply, open(answer, "w"))
if mode == "works" or (mode in ("old", "older") and unknown not in asked):
    open(table, "w").write(open(os.path.join(here, "table")).read())
elif mode in ("old", "older"):
    open(table, "w").write(f"==ERROR== Failed to find metric {{unknown}}\\n")
elif mode == "refuses":
    open(table, "w").write("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\\n")
else:
    print("Segmentation fault")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    dies = "import ctypes\n\n\ndef prepare(x):\n    ctypes.string_at(0)\n"
    files = {"torch_add": ADD, "torch_two": TWO, "torch_dies": dies, "torch_raises": RAISES, "triton_double": TRITON}
    root = toy_project.make(tmp_path_factory.mktemp("toy") / "p", double=files)
    folder = root.parent / "bin"
    folder.mkdir()
    (folder / "ncu").write_text(FAKE)
    (folder / "ncu").chmod(0o755)
    (folder / "table").write_text(tables.ncu_csv(*[(tables.VEC4, tables.STREAMING)] * 3))
    return root


def profile(project, *arguments: str, device: str = "cpu", mode: str = ""):
    (project.parent / "bin" / "mode").write_text(mode)
    path = f"{project.parent / 'bin'}:{os.environ['PATH']}"
    return groundspeed("profile", *arguments, cwd=project, PATH=path, GROUNDSPEED_DEVICE=device)


@pytest.mark.slow
def test_on_a_cpu_torch_profiles_the_largest_case_of_tier_small(project):
    done = profile(project, "double/torch_add")
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert out.startswith("double/torch_add, float32 N=4096\n")
    assert re.search(r"A call over 32 KiB takes \S+ [nµm]?s: \S+ .?B/s and \S+ .?FLOP/s\.", " ".join(out.split()))
    assert re.search(r"operator 1: aten::add\n  duration +\S+ [nµm]?s", out)
    assert max(map(len, out[: out.index("Page  ")].splitlines())) <= 80
    (page,) = (project / "results").rglob("*.md")
    assert str(page.relative_to(project)) in out
    assert re.fullmatch(r"float32-N=4096-nocommit-torch\.md", page.name)
    assert page.parts[-4:-1] == ("profiles", "double", "torch_add")
    text = page.read_text()
    assert text.startswith("# double/torch\\_add, float32 N=4096\n") and "## operator 1: aten::add\n" in text


@pytest.mark.slow
def test_a_case_is_asked_for_and_another_place(project, tmp_path):
    done = profile(project, "double/torch_two", "N=1048576", "--with", "torch", "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("double/torch_two, float32 N=1048576\n")
    assert "One call runs 2 operators" in " ".join(done.stdout.split()) or "operators; aten::" in done.stdout
    assert len(list(tmp_path.rglob("float32-N=1048576-*-torch.md"))) == 1
    again = profile(project, "double/torch_two", "float32 N=12345", "--results", str(tmp_path))
    assert again.returncode == 0 and "N=12345" in again.stdout, "check cases can be profiled too"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["double/torch_two", "float16"], "double/torch_two cannot be profiled here: float16 N=1048576: no float16"),
        (["double/triton_double"], "double/triton_double cannot be profiled here: Triton needs a GPU"),
        (["double/torch_raises"], "double/torch_raises: the profiled process ended early: ValueError: no such luck"),
        (["double/torch_dies"], "double/torch_dies: the profiled process died of SIGSEGV: "),
    ],
)
def test_one_that_cannot_run_is_one_line(project, arguments, said):
    done = profile(project, *arguments)
    assert done.returncode == 2 and done.stdout == "" and said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["double"], "'double' is not one implementation: there are torch_add"),
        (["double/torch_*"], "'double/torch_*' is not one implementation"),
        (["double/torch_ad"], "did you mean 'torch_add'"),
        (["double/torch_add", "N=5"], "double: no case 'N=5'"),
        (
            ["double/torch_add", "--with", "ncu"],
            "ncu profiles NVIDIA GPUs, and this runs on the CPU; or profile --with",
        ),
        (["double/torch_add", "--with", "nsys"], "nsys profiles NVIDIA GPUs"),
    ],
)
def test_a_mistake_is_one_line(project, arguments, said):
    done = profile(project, *arguments)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_with_ncu_the_page_shows_what_it_counted(project, tmp_path):
    done = profile(project, "double/torch_add", "--results", str(tmp_path), device="cuda", mode="works")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "DRAM bounds it: 91 % of peak" in done.stdout and "kernel 1: relu_vec4<float,4>" in done.stdout
    assert "NVIDIA Test, ncu 2025.3.1.0, 3 calls" in done.stdout
    (page,) = tmp_path.rglob("*.md")
    assert page.name == "float16-N=1048576-nocommit-ncu.md", "the largest case of tier core"


@pytest.mark.parametrize("mode", ["old", "older"])
def test_an_ncu_that_lacks_a_counter_is_asked_without_it(project, tmp_path, mode):
    """Whether it runs the program all the same or not."""
    asked = project.parent / "bin" / "asked"
    asked.unlink(missing_ok=True)
    done = profile(project, "double/torch_add", "--results", str(tmp_path), device="cuda", mode=mode)
    assert done.returncode == 0, done.stderr
    assert asked.read_text().split() == [str(len(METRICS)), str(len(METRICS) - 1)]


def test_ncu_that_may_not_read_counters_says_what_to_do(project):
    done = profile(project, "double/torch_add", "--with", "ncu", device="cuda", mode="refuses")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "ERR_NVGPUCTRPERM" in done.stderr and "run as root" in done.stderr and "--with torch" in done.stderr


def test_a_process_that_dies_under_ncu_is_one_line(project):
    done = profile(project, "double/torch_add", "--with", "ncu", device="cuda", mode="crash")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "double/torch_add: the profiled process ended early: Segmentation fault" in done.stderr


ASK = Ask("impls", "relu", "cuda_vec4", (), "cuda", 1)
SEEN = Seen("torch", "2.11.0", 10, Answer(), ())


def test_without_ncu_it_is_torch_with_the_reason(monkeypatch, capsys):
    tried = []

    def refuses_ncu(ask: Ask, tool: str) -> Seen:
        tried.append(tool)
        if tool == "ncu":
            raise Refused("ncu is not on the PATH")
        return SEEN

    monkeypatch.setattr(run, "profile", refuses_ncu)
    assert command._seen(ASK, None) == (SEEN, "Not with ncu: ncu is not on the PATH.")
    assert tried == ["ncu", "torch"] and "ncu is not on the PATH" in capsys.readouterr().err
    with pytest.raises(UserError, match="ncu is not on the PATH; or profile --with torch"):
        command._seen(ASK, "ncu")


def test_a_tool_that_is_not_there_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(run, "_PLACES", {"ncu": "/nowhere/ncu", "nsys": "/nowhere/nsys"})
    with pytest.raises(Refused, match=r"^nsys is not on the PATH nor under CUDA_HOME: install Nsight Systems$"):
        find_tool("nsys")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ncu").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "ncu").chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_tool("ncu") == tmp_path / "bin" / "ncu"
