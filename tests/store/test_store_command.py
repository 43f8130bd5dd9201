"""groundspeed store on folders that are not what it wants."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundspeed.cli import main
from tests.store import make


@pytest.mark.parametrize("action", ["verify", "compact", "prune --keep 1"])
def test_one_machine_s_folder_is_not_the_results(
    tmp_path: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make.record(tmp_path, make.measurement()).parents[2]
    assert main(["store", *action.split(), "--results", str(machine)]) == 2
    assert f"pass the one above it, --results {tmp_path}" in capsys.readouterr().err
    assert not (machine / ".cache").exists()


def test_nothing_to_verify_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "verify", "--results", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and f"no records under {tmp_path}" in err
