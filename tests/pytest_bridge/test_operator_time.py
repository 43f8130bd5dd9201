"""Device time of every implementation as a pytest-benchmark test.

    pytest --benchmark-only -k softmax
    pytest --benchmark-only -k softmax --benchmark-autosave
    pytest --benchmark-only -k softmax --benchmark-compare --benchmark-compare-fail=median:5%

Collected only with --benchmark-only (or when this file is named): a test run must not benchmark by the way.
"""

from __future__ import annotations


def test_device_time(operator_benchmark):
    operator_benchmark()
