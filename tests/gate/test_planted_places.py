"""The faults that only a GPU can show are planted in files that anybody may change: their places are looked at here."""

import pytest

from tests.gate.test_faults_gpu import FAULTS, IMPLS


@pytest.mark.parametrize(("file", "old", "new"), FAULTS, ids=[file for file, *_ in FAULTS])
def test_each_fault_has_its_place(file, old, new):
    text = (IMPLS / "softmax" / file).read_text()
    assert text.count(old) == 1, f"impls/softmax/{file} has changed: mend its fault in test_faults_gpu.py"
    assert text.replace(old, new) != text
