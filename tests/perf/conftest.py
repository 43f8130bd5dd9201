"""Benchmarks run when they are asked for: a figure taken beside other tests says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
WHY = "a benchmark; type: pytest tests/perf --benchmark-only"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skipped before their fixtures are made: thousands of result files are no one's to wait for."""
    if config.getoption("benchmark_only", False):
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=WHY))
