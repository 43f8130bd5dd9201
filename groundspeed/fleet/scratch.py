"""A station's folder, and the removal of those that stations left which were ended from outside."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_PREFIX = "groundspeed-station-"


def scratch_folder() -> Path:
    """A new folder of this process's. What processes that are no more have left beside it is removed.

    Ray ends an actor at once: nothing that a station might do at its end is sure to be done.
    """
    place = Path(tempfile.gettempdir())
    for folder in place.glob(f"{_PREFIX}*"):
        found = re.fullmatch(rf"{_PREFIX}([0-9]+)-.*", folder.name)
        if found and not _is_running(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)  # it may be another user's, or another station removes it now
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
