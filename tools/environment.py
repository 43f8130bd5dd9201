"""Make the interpreter that `make` runs everything with; print its path. Standard library only.

    python3 tools/environment.py --venv .venv --extras dev

On a machine without a GPU, and on one with a GPU whose python3 has no torch, this is a fresh virtual environment with
the package installed in it (torch held to a CPU build by constraints/cpu.txt where there is no GPU).

On a GPU machine whose python3 already has torch, that torch is the one that must be measured: the environment
borrows the interpreter's packages, and only what is missing is installed, from the folder $GROUNDSPEED_WHEELS if it is
set, else from the index. Without either, what is there is used: measuring needs torch, numpy and msgspec alone.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)
INDISPENSABLE = ("torch", "numpy", "msgspec")
STAMP = "groundspeed.stamp"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--extras", default="", help="extras of pyproject.toml, separated by commas")
    parser.add_argument("--cuda", default="cuda", choices=("cuda", "cuda12"), help="the extra for a GPU without torch")
    arguments = parser.parse_args()
    extras = tuple(extra for extra in arguments.extras.split(",") if extra)
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        found = ".".join(map(str, sys.version_info[:3]))
        return _give_up(f"Python {found} at {sys.executable}: 3.11 to 3.13 is needed; type: make PYTHON=python3.12 ...")
    gpu = has_gpu()
    borrow = gpu and importlib.util.find_spec("torch") is not None
    venv: Path = arguments.venv.resolve()
    if gpu and not borrow:
        extras = (*extras, arguments.cuda)
    wanted = fingerprint(extras, gpu, borrow)
    if wanted not in _stamps(venv):
        problem = borrow_environment(venv, extras, wanted) if borrow else fresh_environment(venv, extras, gpu, wanted)
        if problem:
            return _give_up(problem)
    print(interpreter(venv))
    return 0


def has_gpu() -> bool:
    """Whether the driver shows an NVIDIA GPU."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    return listed.returncode == 0 and "GPU 0" in listed.stdout


def fingerprint(extras: tuple[str, ...], gpu: bool, borrow: bool) -> str:
    """``<interpreter>-<contents>``: contents are installed again when requirements or constraints change."""
    base = hashlib.sha256(repr((sys.executable, sys.version, borrow)).encode()).hexdigest()[:8]
    files = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints/cpu.txt")]
    contents = hashlib.sha256(b"\0".join([*files, repr((extras, gpu)).encode()])).hexdigest()[:12]
    return f"{base}-{contents}"


def fresh_environment(venv: Path, extras: tuple[str, ...], gpu: bool, wanted: str) -> str | None:
    """Make the environment and install the package; returns what went wrong, or None."""
    base = wanted.partition("-")[0]
    if not any(stamp.startswith(base) for stamp in _stamps(venv)):
        made = _run([sys.executable, "-m", "venv", "--clear", str(venv)])
        if made:
            return f"the virtual environment {venv} cannot be made: {made}"
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    limits = [] if gpu else ["-c", str(ROOT / "constraints" / "cpu.txt")]
    print(f"environment: installing {target} into {venv}", file=sys.stderr, flush=True)
    failed = _run([str(interpreter(venv)), "-m", "pip", "install", "-qq", *limits, "-e", target])
    if failed:
        return f"the requirements of {target} cannot be installed: {failed}"
    _add_stamp(venv, wanted)
    return None


def borrow_environment(venv: Path, extras: tuple[str, ...], wanted: str) -> str | None:
    """An environment over this interpreter's own packages; returns what went wrong, or None."""
    made = _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)])
    if made:
        return f"the virtual environment {venv} cannot be made: {made}"
    site = venv / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    shared = [path for path in dict.fromkeys([*_python_path(), *_site_folders()]) if Path(path).is_dir()]
    # Through site, so that .pth files among the borrowed packages are heeded too.
    added = [f"import site; site.addsitedir({path!r})" for path in shared]
    (site / "borrowed.pth").write_text("\n".join([str(ROOT), *added]) + "\n", encoding="utf-8")
    _write_script(venv)
    folders = [*shared, str(site)]
    missing = _missing(requirements(extras), folders)
    failed = _install_into(site, missing, folders) if missing else None
    names = [_name(requirement) for requirement in _missing(missing, folders)]
    needed = [name for name in names if name in INDISPENSABLE]
    if needed:
        return f"{', '.join(needed)} missing and not to be installed ({failed}); put wheels into $GROUNDSPEED_WHEELS"
    if names:  # no stamp: the next call tries again
        print(f"environment: going on without {', '.join(names)}: not to be installed here", file=sys.stderr)
    else:
        _add_stamp(venv, wanted)
    return None


def requirements(extras: tuple[str, ...]) -> list[str]:
    """The requirements of pyproject.toml with these extras, extras of our own unfolded."""
    import tomllib  # here, so that a Python too old for it still gets the line that says so

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core: list[str] = project["dependencies"]
    found = list(core)
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"groundspeed\[(.+)\]", requirement)
            found += requirements(tuple(own.group(1).split(",")))[len(core) :] if own else [requirement]
    return list(dict.fromkeys(found))


def interpreter(venv: Path) -> Path:
    return venv / "bin" / "python"


def _install_into(site: Path, missing: list[str], folders: list[str]) -> str | None:
    """Install all, and where that fails what is indispensable; returns the last failure, or None."""
    wheels = os.environ.get("GROUNDSPEED_WHEELS")
    source = ["--no-index", "--find-links", wheels] if wheels else ["--timeout", "5", "--retries", "0"]
    command = [sys.executable, "-m", "pip", "install", "-qq", *source, "--target", str(site)]
    failed = _run([*command, *missing])
    if failed:
        needed = [requirement for requirement in _missing(missing, folders) if _name(requirement) in INDISPENSABLE]
        for requirement in needed:
            _run([*command, "--no-deps", requirement])
    return failed


def _missing(wanted: list[str], folders: list[str]) -> list[str]:
    """Those of which no version is installed in these folders."""
    return [r for r in wanted if not any(True for _ in metadata.distributions(name=_name(r), path=folders))]


def _write_script(venv: Path) -> None:
    script = venv / "bin" / "groundspeed"
    body = "import sys\n\nfrom groundspeed.cli import main\n\nsys.exit(main())\n"
    script.write_text(f"#!{interpreter(venv)}\n{body}", encoding="utf-8")
    script.chmod(0o755)


def _stamps(venv: Path) -> list[str]:
    stamp = venv / STAMP
    return stamp.read_text(encoding="utf-8").split() if stamp.is_file() and interpreter(venv).is_file() else []


def _add_stamp(venv: Path, wanted: str) -> None:
    (venv / STAMP).write_text("\n".join([*_stamps(venv), wanted]) + "\n", encoding="utf-8")


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return found.group()


def _site_folders() -> list[str]:
    """Where this interpreter finds its packages: its own folders and, in an environment, those it was made over."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


def _run(command: list[str]) -> str | None:
    """Run with its output on our standard error (standard output carries the answer); returns the failure, or None."""
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    return None if done.returncode == 0 else f"{' '.join(command[:4])} ... exited with {done.returncode}"


def _give_up(problem: str) -> int:
    print(f"environment: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
