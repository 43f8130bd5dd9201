"""The gate's scratch repository and its fake engine, with the bisection to run on them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import pytest

from groundspeed.commands import bisect
from groundspeed.errors import UserError
from tests.gate.conftest import FakeEngine, fake_engine, repo

__all__ = ["fake_engine", "repo"]

ROW = "impls/double/triton_row.py"


@dataclass
class Bisected:
    """``status`` is 2, and ``output`` the message, for what a user must mend."""

    status: int
    output: str
    engine: FakeEngine

    @property
    def steps(self):
        return [line for line in self.output.splitlines() if line.startswith("step ")]

    @property
    def first_bad(self):
        (line,) = [line for line in self.output.splitlines() if line.startswith("first bad commit: ")]
        return line.rpartition(" ")[2]


@pytest.fixture
def bisected(repo):
    def run(*typed, engine=None):
        parser = argparse.ArgumentParser()
        parser.add_argument("--project", default=repo.root)
        bisect.add_arguments(parser)
        engine = engine or FakeEngine()
        repo.capsys.readouterr()
        try:
            status = bisect.run_with(parser.parse_args([*typed, "--device", "cpu"]), lambda: engine)
        except UserError as error:
            return Bisected(2, str(error), engine)
        return Bisected(status, repo.capsys.readouterr().out, engine)

    return run
