"""Where the user's caches are kept."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """groundspeed's folder in the user's cache. An empty XDG_CACHE_HOME counts as none, as its specification has it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "groundspeed"


def cache_folder() -> Path:
    """GROUNDSPEED_CACHE, or the user's: for what can be made again."""
    named = os.environ.get("GROUNDSPEED_CACHE")
    return Path(named) if named else user_cache()
