"""Why a file cannot be shown."""

from __future__ import annotations


class Unreadable(Exception):
    """One clear line about a file, without its name: it becomes a row of ``problems``."""
