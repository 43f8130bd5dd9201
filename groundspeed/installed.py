"""Versions of installed distributions, without importing any of them."""

from __future__ import annotations

import importlib.metadata


def version_of(distribution: str) -> str:
    """Of a distribution as it is installed; empty where it is not."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
