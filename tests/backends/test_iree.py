"""IREE on the CPU: every iree_* implementation against its oracle."""

from __future__ import annotations

import pytest

pytest.importorskip("iree.compiler", reason="IREE is not installed: pip install 'groundspeed[iree]'")

from tests.backends.live import implementations, label, wrong_cases

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("implementation", implementations("iree"), ids=label)
def test_is_right_on_every_check_case_that_it_takes_and_reads_the_live_inputs(implementation):
    wrong, right = wrong_cases(implementation, leave_out={"float16"})  # IREE compiles it as it does bfloat16
    assert not wrong and right >= 8


def test_there_are_some():
    assert len(implementations("iree")) >= 4
