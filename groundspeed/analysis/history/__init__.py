"""Where the level of a stored series changed: steps and drifts, the commits they lie between, how settled they are.

Stored results never gate a merge: runs hours apart differ by more than their intervals. Here they point at commits that
are worth a look. Needs the package ``ruptures`` (extra ``dashboard``), imported when the first series is looked at.
"""

from groundspeed.analysis.history.changes import PROVISIONAL, SMALLEST, Change, find_changes
from groundspeed.analysis.history.levels import SHORTEST
from groundspeed.analysis.history.memory import Memory

__all__ = ["PROVISIONAL", "SHORTEST", "SMALLEST", "Change", "Memory", "find_changes"]
