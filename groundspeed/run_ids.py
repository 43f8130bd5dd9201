"""Names of runs: what their folders of records, logs and ledgers are called."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime


def new_run_id(commit: str) -> str:
    """Sorts by time; the commit is for people, the random end for two runners that start in one second."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{commit[:8] or 'nocommit'}-{secrets.token_hex(2)}"
