"""Building ``.cu`` files: what the cache's key covers, what a compiler's complaint costs, what ptxas said.

Most of it runs a script in nvcc's place; nvcc itself, where it is installed, is run on files without torch's headers.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundspeed import build
from groundspeed.backends.cuda_backend import _kernel_name
from groundspeed.build import BuildError, Extension, Toolchain
from groundspeed.errors import UserError
from groundspeed.records import KernelResources

FAKE_NVCC = """#!/bin/sh
# Copies its source to its output, slowly; refuses one with the word REFUSE in it.
echo "$@" >> "{log}"
while [ $# -gt 0 ]; do
  case "$1" in -o) shift; out=$1;; *.cu) source=$1;; esac
  shift
done
if grep -q REFUSE "$source"; then
  echo "remark: just a remark"
  echo "$source(3): error: identifier \\"zork\\" is undefined" >&2
  exit 2
fi
sleep {seconds}
cp "$source" "$out"
echo "ptxas info    : Compiling entry function '_Z5plainPi' for 'sm_90a'"
echo "ptxas info    : Used 72 registers, used 0 barriers"
"""
HAS_NVCC = pytest.mark.skipif(build._find_nvcc() is None, reason="nvcc is not installed")


@pytest.fixture
def tool(tmp_path):
    return fake_toolchain(tmp_path)


def fake_toolchain(folder: Path, seconds: float = 0.0) -> Toolchain:
    nvcc = folder / "nvcc"
    nvcc.write_text(FAKE_NVCC.format(log=folder / "calls.log", seconds=seconds))
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IEXEC)
    return Toolchain(nvcc, "13.0.88", folder, "2.11.0+cu130", "9.0")


def compilations(folder: Path) -> int:
    log = folder / "calls.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def tree(root: Path, **sources: str) -> Path:
    (root / "relu").mkdir(parents=True)
    (root / "_cuda").mkdir()
    (root / "_cuda" / "shared.cuh").write_text("constexpr int lanes = 32;\n")
    for name, text in sources.items():
        (root / "relu" / f"cuda_{name}.cu").write_text('#include "../_cuda/shared.cuh"\n' + text)
    return root


# the key


def test_the_key_covers_content_includes_flags_torch_nvcc_and_architecture(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n")
    source = root / "relu" / "cuda_a.cu"
    keys = [build.cache_key(root, source, tool)]
    for change in ({"version": "13.1"}, {"torch_version": "2.13.0"}, {"capability": "8.0"}):
        keys.append(build.cache_key(root, source, dataclasses.replace(tool, **change)))
    source.write_text(source.read_text() + "int b;\n")
    keys.append(build.cache_key(root, source, tool))
    source.write_text(source.read_text() + "// nvcc: --use_fast_math\n")
    keys.append(build.cache_key(root, source, tool))
    (root / "_cuda" / "shared.cuh").write_text("constexpr int lanes = 64;\n")
    keys.append(build.cache_key(root, source, tool))
    assert len(set(keys)) == len(keys) and all(len(key) == 20 for key in keys)


def test_the_key_does_not_depend_on_the_place_or_on_where_nvcc_lies(tmp_path, tool):
    keys = {
        build.cache_key(root, root / "relu" / "cuda_a.cu", dataclasses.replace(tool, nvcc=Path(name), torch_root=root))
        for name in ("one", "two")
        for root in [tree(tmp_path / name, a="int a;\n")]
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", []),
        ("// nvcc: --use_fast_math\n", ["--use_fast_math"]),
        ("int x;\n//  nvcc:  -maxrregcount=32   -lcublas\n// nvcc: -G\n", ["-maxrregcount=32", "-lcublas", "-G"]),
        ("/* nvcc: -G */\n", []),
        ("int x; // nvcc: -G\n", []),
    ],
)
def test_a_file_asks_for_flags_in_a_comment_of_its_own(tmp_path, text, flags):
    (tmp_path / "a.cu").write_text(text)
    assert build.extra_flags(tmp_path / "a.cu") == flags


@pytest.mark.parametrize(("capability", "name"), [("8.0", "80"), ("8.9", "89"), ("9.0", "90a"), ("10.0", "100a")])
def test_the_architecture_is_the_specific_one_from_hopper_on(tool, capability, name):
    assert dataclasses.replace(tool, capability=capability).architecture == name


# building


def test_what_is_built_is_found_again_by_whoever_has_the_same_content(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n")
    first = build.build(root, root / "relu" / "cuda_a.cu", tool, tmp_path / "cache")
    assert first.resources == (KernelResources("plain(int*)", 72, 0, 0),)
    assert first.binary.read_text().endswith("int a;\n")
    assert f"-DGROUNDSPEED_NAMESPACE={first.namespace}" in (tmp_path / "calls.log").read_text()
    other = tree(tmp_path / "elsewhere", a="int a;\n")
    assert build.build(other, other / "relu" / "cuda_a.cu", tool, tmp_path / "cache") == first
    assert compilations(tmp_path) == 1
    (other / "_cuda" / "shared.cuh").write_text("constexpr int lanes = 64;\n")
    changed = build.build(other, other / "relu" / "cuda_a.cu", tool, tmp_path / "cache")
    assert changed.binary != first.binary and changed.namespace != first.namespace and compilations(tmp_path) == 2


def test_a_cache_that_lost_a_file_is_filled_again(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n")
    source = root / "relu" / "cuda_a.cu"
    built = build.build(root, source, tool, tmp_path / "cache")
    for lost in (built.binary, built.binary.with_name("ptxas.txt")):
        lost.unlink()
        assert build.build(root, source, tool, tmp_path / "cache") == built and lost.exists()


def test_one_file_that_does_not_compile_fails_alone_with_the_compilers_words(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n", bad="REFUSE\n", c="int c;\n")
    sources = list(build.cuda_sources(root))
    told: list[Path] = []
    built = build.build_all(root, sources, tool, tmp_path / "cache", done=told.append)
    assert [type(built[source]).__name__ for source in sources] == ["Extension", "BuildError", "Extension"]
    message = str(built[sources[1]])
    assert message.startswith("cuda_bad.cu: nvcc: ") and 'error: identifier "zork" is undefined' in message
    assert "remark" not in message and sorted(told) == sources
    assert not list((tmp_path / "cache").rglob("*/tmp*"))


def test_a_failure_is_not_remembered(tmp_path, tool):
    root = tree(tmp_path / "tree", a="REFUSE\n")
    source = root / "relu" / "cuda_a.cu"
    with pytest.raises(BuildError):
        build.build(root, source, tool, tmp_path / "cache")
    tool.nvcc.write_text(tool.nvcc.read_text().replace("REFUSE", "OTHERWISE"))
    assert build.build(root, source, tool, tmp_path / "cache").binary.exists()


@pytest.mark.quiet
def test_many_are_compiled_side_by_side(tmp_path):
    tool = fake_toolchain(tmp_path, seconds=0.4)
    root = tree(tmp_path / "tree", **{name: f"int {name};\n" for name in "abcdef"})
    began = time.monotonic()
    built = build.build_all(root, build.cuda_sources(root), tool, tmp_path / "cache", workers=6)
    assert len(built) == 6 and all(isinstance(one, Extension) for one in built.values())
    assert time.monotonic() - began < 6 * 0.4


@pytest.mark.quiet
def test_two_versions_are_compiled_side_by_side_and_what_they_share_once(tmp_path):
    tool = fake_toolchain(tmp_path, seconds=0.5)
    base = tree(tmp_path / "base", a="int a;\n", same="int same;\n", bad="REFUSE\n")
    head = tree(tmp_path / "head", a="int changed;\n", same="int same;\n", bad="int mended;\n")
    sources = [(root, source) for root in (base, head) for source in build.cuda_sources(root)]
    began = time.monotonic()
    built = build.build_each(sources, tool, tmp_path / "cache", workers=6)
    assert time.monotonic() - began < 4 * 0.5  # four compilations that succeed, one that is refused at once
    assert compilations(tmp_path) == 5 and set(built) == {source for _, source in sources}
    found = {(root.name, source.stem): built[source] for root, source in sources}
    assert (
        found["base", "cuda_same"] == found["head", "cuda_same"] != found["head", "cuda_a"] != found["base", "cuda_a"]
    )
    assert isinstance(found["base", "cuda_bad"], BuildError) and isinstance(found["head", "cuda_bad"], Extension)


def test_two_that_build_the_same_file_at_once_both_get_it_whole(tmp_path):
    tool = fake_toolchain(tmp_path, seconds=0.2)
    root = tree(tmp_path / "tree", a="int a;\n")
    found: list[Extension] = []
    source = root / "relu" / "cuda_a.cu"

    def one() -> None:
        found.append(build.build(root, source, tool, tmp_path / "cache"))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(found)) == 1 and found[0].binary.read_text() == source.read_text()


def test_a_cache_that_cannot_be_written_fails_the_file_and_not_the_run(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n")
    (tmp_path / "cache").write_text("a file, not a folder")
    built = build.build_all(root, build.cuda_sources(root), tool, tmp_path / "cache")
    (message,) = map(str, built.values())
    assert message.startswith("cuda_a.cu: cannot be built: ") and "cache" in message and "\n" not in message


def test_an_nvcc_that_is_gone_fails_the_file_and_not_the_run(tmp_path, tool):
    root = tree(tmp_path / "tree", a="int a;\n")
    tool.nvcc.unlink()
    with pytest.raises(BuildError, match=r"cuda_a\.cu: cannot be built: .*nvcc: No such file"):
        build.build(root, root / "relu" / "cuda_a.cu", tool, tmp_path / "cache")


def test_shared_folders_hold_no_implementations(tmp_path):
    root = tree(tmp_path / "tree", a="", b="")
    (root / "_cuda" / "cuda_helper.cu").write_text("")
    assert [path.name for path in build.cuda_sources(root)] == ["cuda_a.cu", "cuda_b.cu"]


# finding the tools


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"GROUNDSPEED_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c/build"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/groundspeed/build"),
        ({"HOME": "/h"}, "/h/.cache/groundspeed/build"),
        ({"XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/groundspeed/build"),
        ({"GROUNDSPEED_CACHE": "", "HOME": "/h"}, "/h/.cache/groundspeed/build"),
    ],
)
def test_where_the_cache_lies(monkeypatch, environment, expected):
    for name in ("GROUNDSPEED_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert build.default_cache() == Path(expected)


def test_groundspeed_cache_is_where_things_are_built(tmp_path, tool, monkeypatch):
    monkeypatch.setenv("GROUNDSPEED_CACHE", str(tmp_path / "named"))
    root = tree(tmp_path / "tree", a="int a;\n")
    library = build.build(root, root / "relu" / "cuda_a.cu", tool).binary
    assert (tmp_path / "named" / "build") in library.parents


def test_without_nvcc_there_is_one_line_to_act_on(monkeypatch, tmp_path):
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="nvcc is not on the PATH nor under CUDA_HOME: install"):
        build.find_toolchain()


def test_cuda_homes_nvcc_comes_before_the_paths(monkeypatch, tmp_path, tool):
    (tmp_path / "bin").mkdir()
    tool.nvcc.rename(tmp_path / "bin" / "nvcc")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert build._find_nvcc() == tmp_path / "bin" / "nvcc"


def test_torch_is_found_without_importing_it(tmp_path):
    import subprocess
    import sys

    code = "import sys; from groundspeed import build; print(build._find_torch()); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd())
    assert done.returncode == 0 and "PosixPath" in done.stdout, done.stderr


# ptxas

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN36_GLOBAL__N__89b8bf71_4_t_cu_3c7ab8be5scaleIfEEvPT_i' for 'sm_90a'
ptxas info    : Function properties for _ZN36_GLOBAL__N__89b8bf71_4_t_cu_3c7ab8be5scaleIfEEvPT_i
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 6.331 ms
ptxas info    : Compiling entry function '_Z5plainPi' for 'sm_90a'
ptxas info    : Function properties for _Z5plainPi
    400 bytes stack frame, 48 bytes spill stores, 52 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 400 bytes cumulative stack size
"""


def test_what_ptxas_said_of_each_kernel():
    first, second = build.parse_resources(LOG)
    assert first == KernelResources("void (anonymous namespace)::scale<float>(float*, int)", 10, 128, 0)
    assert second == KernelResources("plain(int*)", 255, 0, 48)
    assert build.parse_resources("") == () == build.parse_resources("nvcc warning : something\n")


def test_names_stay_mangled_where_nothing_demangles(monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    assert [one.name for one in build.parse_resources(LOG)][1] == "_Z5plainPi"


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=200))
def test_no_log_breaks_the_parser(text):
    build.parse_resources(text)
    build.parse_resources(f"{text}Compiling entry function {text}Compiling entry function '{text}' for {text}")


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("void (anonymous namespace)::relu<float>(float const*, long)", "relu"),
        ("void <unnamed>::relu<__nv_bfloat16, (int)4>(T1 *)", "relu"),
        ("plain(int*)", "plain"),
        ("void (anonymous namespace)::deep::row_sum<(int)32>(float*)", "row_sum"),
        ("_Z5plainPi", "_Z5plainPi"),
    ],
)
def test_the_part_of_a_kernels_name_that_a_profiler_shows_too(demangled, name):
    assert _kernel_name(demangled) == name


# nvcc itself

KERNEL = """#include "../_cuda/shared.cuh"
namespace {
template <typename T> __global__ void spread(T* x) {
  __shared__ T held[lanes];
  held[threadIdx.x % lanes] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = held[(threadIdx.x + 1) % lanes];
}
template __global__ void spread<float>(float*);
}  // namespace
"""


@HAS_NVCC
def test_nvccs_own_words_and_ptxas_own_figures(tmp_path):
    root = tree(tmp_path / "tree", broken="int x = zork;\n")
    (root / "relu" / "cuda_spread.cu").write_text(KERNEL)
    built = build.build_all(root, build.cuda_sources(root), build.find_toolchain(), tmp_path / "cache")
    broken, spread = (built[path] for path in build.cuda_sources(root))
    assert isinstance(broken, BuildError)
    assert "cuda_broken.cu(2)" in str(broken) and 'identifier "zork" is undefined' in str(broken)
    assert isinstance(spread, Extension), spread
    (resource,) = spread.resources
    assert _kernel_name(resource.name) == "spread"
    assert resource.registers > 0 and resource.shared_bytes == 128 and resource.spill_bytes == 0
    assert os.access(spread.binary, os.R_OK)
