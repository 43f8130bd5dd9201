"""What people decided about changes: an append-only file of events beside the results.

``results/triage.jsonl`` holds one JSON object a line and is only ever appended to, one whole line in one write under a
lock: two people who edit at once both keep what they wrote, and the last event of a change is its state. Two branches
merge by keeping both sides' lines (``merge=union`` in .gitattributes); the events' times put them in order.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from groundspeed.errors import UserError

FILE = "triage.jsonl"
VERSION = 1
STATES = ("new", "acknowledged", "expected", "fixed", "noise")
OPEN = ("new", "acknowledged")
NEEDS_NOTE = ("expected", "noise")  # muting a change needs a reason
LONGEST_NOTE = 2000
_KEY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Event:
    """One decision: who set which state of which change when, and why. ``about`` says the change in words."""

    key: str
    state: str
    note: str
    who: str
    when: str
    about: str = ""
    version: int = VERSION


def append(results: Path, key: str, state: str, note: str, who: str, about: str = "") -> Event:
    """Record one decision. Raises UserError for an unknown state or a muting without a reason, OSError as it comes."""
    note, who = note.strip()[:LONGEST_NOTE], who.strip()[:80]
    if not _KEY.fullmatch(key):
        raise UserError(f"{key!r} is no change's key")
    if state not in STATES:
        raise UserError(f"unknown state {state!r}: expected one of {', '.join(STATES)}")
    if state in NEEDS_NOTE and not note:
        raise UserError(f"{state}: say why in the note; a change is muted only with a reason")
    event = Event(key, state, note, who, datetime.now(UTC).isoformat(timespec="microseconds"), about[:200])
    line = json.dumps(asdict(event), ensure_ascii=False) + "\n"
    handle = os.open(results / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return event


def read(results: Path) -> tuple[list[Event], list[str]]:
    """All events in order of time, and what is wrong with lines that could not be read."""
    path = results / FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return [], []
    events, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            if fields.get("version") != VERSION:
                problems.append(f"{path}:{number}: version {fields.get('version')!r}, expected {VERSION}")
                continue
            events.append(Event(**fields))
        except (ValueError, TypeError, AttributeError) as error:
            problems.append(f"{path}:{number}: {error}")
    return sorted(events, key=lambda event: event.when), problems


def current(results: Path) -> dict[str, Event]:
    """The last event of every change."""
    return {event.key: event for event in read(results)[0]}


def state_of(states: Mapping[str, Event], key: str) -> str:
    """The state of a change: "new" until somebody says otherwise."""
    return states[key].state if key in states else "new"
