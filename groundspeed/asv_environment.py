"""The asv plugin: an environment that runs a commit's implementations under today's harness, specs and lists.

Named in asv.conf.json (``"plugins": [".groundspeed.asv_environment"]``, ``"environment_type": "groundspeed"``).
Nothing is built or installed: the interpreter is the one asv runs in, with its torch; a matrix alone installs what it
names (groundspeed.asv_matrix). Of the commit only ``impls/`` is checked out; the benchmarks, groundspeed and the specs
are the working tree's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.environment import Environment, EnvironmentUnavailable

from groundspeed import asv_checkout, asv_inventory, asv_machine, asv_matrix, asv_sweep
from groundspeed.errors import UserError
from groundspeed.selection import Selection
from groundspeed.tree import Tree

ROOT = Path(__file__).resolve().parents[1]
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def setup() -> None:
    """asv calls this when it loads the plugin, whichever command is run."""
    try:
        asv_machine.introduce(ROOT / "results")
    except UserError as error:
        raise util.UserError(str(error)) from error
    except OSError as error:
        log.warning(f"asv's description of this machine cannot be kept, and asv run will stop at that: {error}")


class SharedInterpreter(Environment):
    """asv's ``groundspeed`` environment. Its name, ``groundspeed-py3.12``, is that of the result files.

    What a matrix asks for is added to the name, as asv does: ``groundspeed-py3.12-torch2.11.0``.
    """

    tool_name = "groundspeed"
    matches_python_fallback = False
    _is_setup: bool

    def __init__(self, conf: Any, python: str, requirements: dict[str, str], tagged_env_vars: dict[Any, str]) -> None:
        if not self.matches(python):
            raise EnvironmentUnavailable(f"groundspeed benchmarks in asv's interpreter, Python {PYTHON}, not {python}")
        self._python, self._requirements = PYTHON, requirements  # asv's __init__ uses them before it sets them
        super().__init__(conf, PYTHON, requirements, tagged_env_vars)
        self._folder = Path(self._path)
        self._run_file = self._folder / "run"
        self._variables = {
            asv_sweep.RESULTS: os.path.abspath(conf.results_dir),
            asv_sweep.RUN_FILE: str(self._run_file),
            asv_sweep.MATRIX: self.name.removeprefix(f"{self.tool_name}-py{PYTHON}").lstrip("-"),
        }

    @property
    def _interpreter(self) -> str:
        return str(asv_matrix.interpreter(self._folder)) if self._requirements else sys.executable

    @classmethod
    def matches(cls, python: str) -> bool:
        return python in ("same", PYTHON)

    @property
    def installed_commit_hash(self) -> None:
        """No commit stays installed: asv asks for its files again in every run."""
        return

    def check_presence(self) -> bool:
        return self._folder.is_dir()

    def create(self) -> None:
        """Fix what is asked for, and say what cannot be. asv calls this once before anything else, in each process."""
        if self._is_setup:
            return
        tree = Tree(ROOT / "impls")
        try:
            Selection.from_environment().check(tree)
        except UserError as error:
            raise util.UserError(str(error)) from error
        inventory = asv_inventory.take(tree)
        for line in inventory.broken:
            log.error(line)
        self._install()
        fixed = self._folder / "inventory.json"
        asv_inventory.write(fixed, inventory)
        os.environ[asv_inventory.VARIABLE] = str(fixed)  # for the suite in asv's processes and in this one
        self._is_setup = True

    def _install(self) -> None:
        """What the matrix asks for, in an interpreter of its own; nothing without one."""
        if not self._requirements:
            return
        try:
            asv_matrix.make(self._folder, self._requirements)
        except UserError as error:
            raise util.UserError(str(error)) from error

    def install_project(self, conf: Any, repo: Any, commit_hash: str) -> None:
        """Check the commit's implementations out; the sweep learns of them through its variables."""
        self._set_commit_hash(commit_hash)
        try:
            # A folder for each commit: bytecode cached for one must not be taken for another's. asv gives a
            # repository's path no public name.
            impls = asv_checkout.check_out(Path(repo._path), commit_hash, self._folder / "commits" / commit_hash)
        except UserError as error:
            raise util.UserError(str(error)) from error
        self._variables |= {
            asv_sweep.IMPLS: str(impls),
            asv_sweep.COMMIT: commit_hash,
        }
        self._run_file.unlink(missing_ok=True)

    def run(self, args: list[str], **kwargs: Any) -> Any:
        """Start asv's runner script in this interpreter; a replay is answered without it."""
        match args[1:2]:
            case ["setup_cache"]:
                return self._sweep(args, **kwargs)
            case ["run"]:
                from groundspeed import asv_answer  # imports the suite

                printed = asv_answer.answer(asv_answer.RunAction(*args[2:]), Path(kwargs["cwd"]))
                if printed is not None:
                    return printed, "", 0
        return self.run_executable("python", args, **kwargs)

    def _sweep(self, args: list[str], **kwargs: Any) -> Any:
        """Run ``setup_cache``, a dot for every line of its progress, then say what the tables will not."""
        from groundspeed import asv_answer, asv_remarks

        done = self.run_executable("python", args, **{**kwargs, "dots": True})
        swept = asv_answer.read_cache(Path(kwargs["cwd"]))
        if isinstance(swept, asv_sweep.Swept) and (said := asv_remarks.remarks_on(swept)):
            with log.indent():
                log.warning(said)
        return done

    def run_executable(self, executable: str, args: list[str], **kwargs: Any) -> Any:
        env = {**(kwargs.pop("env", None) or os.environ), **self._global_env_vars, **self._variables}
        # The interpreter is this one, and so are its paths: asv's own scripts drop PYTHONPATH unless told to keep it.
        if "PYTHONPATH" in env:
            env.setdefault("ASV_PYTHONPATH", env["PYTHONPATH"])
        program = self._interpreter if executable == "python" else executable
        return util.check_output([program, *args], env=env, **kwargs)
