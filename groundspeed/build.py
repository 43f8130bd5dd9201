"""One ``.cu`` file to one loaded extension, cached by everything that decides what comes out.

The key is the content of the file's include closure, the flags, torch, nvcc and the GPU architecture. An object
built against one torch is not loaded by another, so there is nothing to install: build where it runs. The namespace
that the operator registers under is made from the key too, which is why base's and head's version of one file load
side by side.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from groundspeed import digest
from groundspeed.caches import cache_folder
from groundspeed.cores import usable_cores
from groundspeed.errors import UserError
from groundspeed.records import KernelResources

_FLAGS = re.compile(r"^//\s*nvcc:\s*(.+)$", re.MULTILINE)
# Hidden, because the loader joins equal inline functions and their statics over all libraries of a process: without it
# head's file was found to call base's copy of a header. Registration with torch runs on loading and needs no symbol.
_VISIBILITY = ("-Xcompiler", "-fvisibility=hidden")
_BASE_FLAGS = (
    *("-std=c++20", "-O3", "-shared", "-Xcompiler", "-fPIC", *_VISIBILITY),
    *("-DUSE_CUDA", "-lineinfo", "-Xptxas", "-v"),
)
_NO_GPU_ARCHITECTURE = "9.0"


class BuildError(Exception):
    """nvcc refused a file: the message is nvcc's own, with the file it spoke of."""


@dataclass(frozen=True)
class Toolchain:
    """The compiler and what it compiles for. ``capability`` as ``"9.0"``; ``torch_root`` holds include/ and lib/."""

    nvcc: Path
    version: str
    torch_root: Path
    torch_version: str
    capability: str

    @property
    def has_cuda_torch(self) -> bool:
        return (self.torch_root / "lib" / "libtorch_cuda.so").exists()

    @property
    def architecture(self) -> str:
        """``90a`` on Hopper: wgmma and setmaxnreg exist only under the architecture-specific target."""
        digits = self.capability.replace(".", "")
        return digits + "a" if int(digits) >= 90 else digits


@dataclass(frozen=True)
class Extension:
    """A built file: the shared object, its torch namespace and what ptxas said of its kernels."""

    binary: Path
    namespace: str
    resources: tuple[KernelResources, ...]


def find_toolchain(capability: str | None = None) -> Toolchain:
    """The nvcc on the PATH or under CUDA_HOME and the torch of this interpreter. Raises UserError without either.

    Finding torch does not import it; without a capability the code is compiled for Hopper.
    """
    nvcc = _find_nvcc()
    if nvcc is None:
        raise UserError("nvcc is not on the PATH nor under CUDA_HOME: install the CUDA toolkit to build cuda_* files")
    root, version = _find_torch()
    return Toolchain(nvcc, _nvcc_version(nvcc), root, version, capability or _NO_GPU_ARCHITECTURE)


def build(tree_root: Path, source: Path, toolchain: Toolchain, cache: Path | None = None) -> Extension:
    """Compile one file, or find it compiled. Raises BuildError with nvcc's message, or why the cache cannot hold it."""
    try:
        return _built(tree_root, source, toolchain, cache or default_cache())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise BuildError(f"{source.name}: cannot be built: {where}{error.strerror or error}") from error


def _built(tree_root: Path, source: Path, toolchain: Toolchain, cache: Path) -> Extension:
    key = cache_key(tree_root, source, toolchain)
    folder = cache / key
    library, log = folder / "extension.so", folder / "ptxas.txt"
    namespace = f"groundspeed_{key}"
    if not (library.exists() and log.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            fresh = Path(scratch) / "extension.so"
            said = _compile(_command(source, toolchain, namespace, fresh), source)
            # The log first: a library that is there has its log beside it.
            (Path(scratch) / "ptxas.txt").write_text(said, encoding="utf-8")
            os.replace(Path(scratch) / "ptxas.txt", log)
            os.replace(fresh, library)
    return Extension(library, namespace, parse_resources(log.read_text(encoding="utf-8")))


def build_all(
    tree_root: Path,
    sources: Iterable[Path],
    toolchain: Toolchain,
    cache: Path | None = None,
    workers: int | None = None,
    done: Callable[[Path], None] = lambda path: None,
) -> dict[Path, Extension | BuildError]:
    """Compile many at once, one nvcc a core; a file that fails is its error and stops no other."""
    return build_each([(tree_root, source) for source in sources], toolchain, cache, workers, done)


def build_each(
    sources: Iterable[tuple[Path, Path]],
    toolchain: Toolchain,
    cache: Path | None = None,
    workers: int | None = None,
    done: Callable[[Path], None] = lambda path: None,
) -> dict[Path, Extension | BuildError]:
    """``build_all`` for files of several trees, each with its tree's root; what is equal in two trees is built once."""

    def attempt(same: list[tuple[Path, Path]]) -> list[Extension | BuildError]:
        return [attempt_one(*each) for each in same]  # the second finds what the first left in the cache

    def attempt_one(root: Path, source: Path) -> Extension | BuildError:
        try:
            return build(root, source, toolchain, cache)
        except BuildError as error:
            return error
        finally:
            done(source)

    groups: dict[str, list[tuple[Path, Path]]] = {}
    for root, source in sources:
        groups.setdefault(_key_or_path(root, source, toolchain), []).append((root, source))
    with ThreadPoolExecutor(workers or usable_cores()) as pool:
        built = pool.map(attempt, groups.values())
        return {
            source: one
            for same, found in zip(groups.values(), built, strict=True)
            for (_, source), one in zip(same, found, strict=True)
        }


def _key_or_path(root: Path, source: Path, toolchain: Toolchain) -> str:
    """What tells files apart that must be built each; a file that cannot be read is built by itself, and fails so."""
    try:
        return cache_key(root, source, toolchain)
    except OSError:
        return str(source)


def cache_key(tree_root: Path, source: Path, toolchain: Toolchain) -> str:
    """20 hex digits over the include closure, flags, torch, nvcc and architecture."""
    parts = [
        digest.implementation_digest(tree_root, [source]),
        *_BASE_FLAGS,
        *extra_flags(source),
        toolchain.version,
        toolchain.torch_version,
        toolchain.architecture,
    ]
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:20]


def extra_flags(source: Path) -> list[str]:
    """The flags a file asks for in a comment of its own: ``// nvcc: --use_fast_math``."""
    return [flag for line in _FLAGS.findall(source.read_text(encoding="utf-8")) for flag in line.split()]


def default_cache() -> Path:
    """GROUNDSPEED_CACHE, or the user's cache folder."""
    return cache_folder() / "build"


def parse_resources(log: str) -> tuple[KernelResources, ...]:
    """Registers, static shared memory and spills of each kernel from ``ptxas -v``, names demangled."""
    found = []
    _, *pieces = re.split(r"Compiling entry function '([^']+)'", log)
    for name, block in zip(pieces[::2], pieces[1::2], strict=True):
        found.append(
            KernelResources(
                name=name,
                registers=_number(r"Used (\d+) registers", block),
                shared_bytes=_number(r"(\d+) bytes smem", block),
                spill_bytes=_number(r"(\d+) bytes spill stores", block),
            )
        )
    names = _demangle([resource.name for resource in found])
    return tuple(
        KernelResources(name, r.registers, r.shared_bytes, r.spill_bytes) for name, r in zip(names, found, strict=True)
    )


def _command(source: Path, toolchain: Toolchain, namespace: str, output: Path) -> list[str]:
    architecture = toolchain.architecture
    lib = toolchain.torch_root / "lib"
    # Without libtorch_cuda (a CPU build of torch, as in CI) the file is still compiled and its kernels assembled.
    libraries = ["-ltorch_cpu", *(["-ltorch_cuda"] if toolchain.has_cuda_torch else []), "-ltorch", "-lc10"]
    return [
        str(toolchain.nvcc),
        *_BASE_FLAGS,
        *extra_flags(source),
        f"-gencode=arch=compute_{architecture},code=sm_{architecture}",
        f"-DGROUNDSPEED_NAMESPACE={namespace}",
        f"-I{toolchain.torch_root / 'include'}",
        str(source),
        "-o",
        str(output),
        f"-L{lib}",
        *libraries,
    ]


def _compile(command: list[str], source: Path) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    said = finished.stdout + finished.stderr
    if finished.returncode != 0:
        errors = [line for line in said.splitlines() if "error" in line or "fatal" in line] or said.splitlines()[-5:]
        raise BuildError(f"{source.name}: nvcc: " + "\n".join(errors[:8]))
    return said


def _find_nvcc() -> Path | None:
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home and (Path(home) / "bin" / "nvcc").exists():
            return Path(home) / "bin" / "nvcc"
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    return Path(found) if found else None


@functools.cache
def _nvcc_version(nvcc: Path) -> str:
    said = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"V([\d.]+)", said)
    return match.group(1) if match else said.strip()


@functools.cache
def _find_torch() -> tuple[Path, str]:
    import importlib.metadata
    import importlib.util

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise UserError("torch is not installed in this interpreter")
    return Path(spec.origin).parent, _torch_version(Path(spec.origin).parent, importlib.metadata.version("torch"))


def _torch_version(root: Path, fallback: str) -> str:
    """With its build suffix (2.11.0+cu130), which the distribution's metadata may lack."""
    with contextlib.suppress(OSError):
        match = re.search(r"__version__ = '([^']+)'", (root / "version.py").read_text(encoding="utf-8"))
        if match:
            return match.group(1)
    return fallback


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match.group(1)) if match else 0


def _demangle(names: list[str]) -> list[str]:
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    if not names or tool is None:
        return names
    said = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=False)
    lines = said.stdout.splitlines()
    return lines if len(lines) == len(names) else names


def cuda_sources(tree_root: Path) -> Iterator[Path]:
    """Every implementation's ``.cu`` file of a tree."""
    yield from sorted(path for path in tree_root.glob("*/*.cu") if not path.parent.name.startswith("_"))


def torch_has_cuda() -> bool:
    """Whether this interpreter's torch was built for CUDA, found without importing it."""
    root, _ = _find_torch()
    return (root / "lib" / "libtorch_cuda.so").exists()
