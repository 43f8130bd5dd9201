"""Benchmarks are collected when they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent / "test_operator_time.py"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path != BENCHMARKS:
        return None
    named = any(argument.partition("::")[0].endswith(BENCHMARKS.name) for argument in config.args)
    return None if named or config.getoption("benchmark_only", False) else True
