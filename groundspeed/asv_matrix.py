"""A matrix of packages in asv.conf.json: for each combination a virtual environment with these packages and no other.

All else comes from the interpreter asv runs in, whose site folders are read after the environment's own: a matrix over
two versions of torch installs torch and what it needs, once for each version, and neither asv nor groundspeed.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from asv import util

from groundspeed.errors import UserError

DONE = "requirements.json"


def interpreter(folder: Path) -> Path:
    """The interpreter of the environment in a folder."""
    return folder / "venv" / "bin" / "python"


def make(folder: Path, requirements: Mapping[str, str]) -> None:
    """Make the environment unless it is there whole. Raises UserError for a requirement that cannot be had."""
    wanted = {"python": sys.version, "requirements": dict(sorted(requirements.items()))}
    if _is_made(folder, wanted):
        return
    declarations = [_parsed(name, version) for name, version in requirements.items()]
    shutil.rmtree(folder / "venv", ignore_errors=True)
    (folder / DONE).unlink(missing_ok=True)
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")])
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "groundspeed_parent.pth").write_text("".join(map(_added, _site_folders())), encoding="utf-8")
    for declaration in declarations:
        util.construct_pip_call(lambda words: _run(_pip(folder, words)), declaration)()
    util.write_json(str(folder / DONE), wanted)


def _is_made(folder: Path, wanted: Mapping[str, object]) -> bool:
    made: bool = (folder / DONE).is_file() and util.load_json(str(folder / DONE)) == wanted
    return made


def _parsed(name: str, version: str) -> util.ParsedPipDeclaration:
    """As asv's own virtualenv has it: ``pip+torch`` and ``torch`` are the same, an empty version is the newest."""
    text = f"{name.removeprefix('pip+')} {version}".strip()
    try:
        return util.ParsedPipDeclaration(text)
    except ValueError as error:
        raise UserError(f"asv.conf.json: the matrix asks for {text!r}: {error}") from error


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")] or lines
        said = errors[0] if errors else f"exit status {done.returncode}"
        raise UserError(f"the matrix's environment cannot be made: {said}; the command: {shlex.join(command)}")


def _pip(folder: Path, words: list[str]) -> list[str]:
    return [sys.executable, "-m", "pip", "--python", str(interpreter(folder)), *words]


def _site_folders() -> list[str]:
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages") and Path(path).is_dir()]


def _added(path: str) -> str:
    """A line of a .pth file that adds a folder behind the environment's own, and follows the .pth files in it."""
    return f"import site; site.addsitedir({path!r})\n"
