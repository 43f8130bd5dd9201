"""A branch of a git repository as a place of results: what is put there becomes one commit on top of what is there.

The repository's working tree and index are left alone. A branch that moved meanwhile makes the push fail, and
``push_branch`` begins again on top of what others pushed.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from groundspeed.errors import UserError
from groundspeed.locations.kinds import NOTES, union
from groundspeed.locations.place import Branch, redacted
from groundspeed.locations.shelf import Held

ATTEMPTS = 20
_MOVED = re.compile(r"non-fast-forward|fetch first|rejected\]|cannot lock ref|but expected|stale info")
_REFUSED = re.compile(r"pre-receive hook|protected branch|permission|denied", re.IGNORECASE)


class BranchShelf:
    """Of the branch as it was when this was made; what is added is staged until ``commit``.

    ``repository`` is where git keeps its objects, ``remote`` a name or URL it fetches from and pushes to; with None
    the branch is the repository's own.
    """

    def __init__(self, branch: Branch, repository: Path, remote: str | None, shallow: bool = False) -> None:
        self._branch, self._repository, self._remote = branch, repository, remote
        self._staged: dict[str, Path | bytes | None] = {}
        self._ref = f"refs/groundspeed/{branch.branch}" if remote else f"refs/heads/{branch.branch}"
        if remote:
            self._fetch(remote, shallow)
        self.tip = self._git("rev-parse", "--verify", "--quiet", f"{self._ref}^{{commit}}", may_fail=True).strip()
        self._blobs = dict(self._listed()) if self.tip else {}

    def held(self) -> Mapping[str, Held]:
        return {path: Held(size, None, f"blob:{blob}") for path, (blob, size) in self._blobs.items() if path != NOTES}

    def read(self, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        if not paths:
            return
        asked = "".join(f"{self._blobs[path][0]}\n" for path in paths).encode()
        output = self._run(["cat-file", "--batch"], asked)
        at = 0
        for path in paths:
            start = output.index(b"\n", at) + 1
            at = start + self._blobs[path][1] + 1
            yield path, output[start : at - 1]

    def add(self, files: Mapping[str, Path]) -> set[str]:
        self._staged.update(files)
        return set()

    def replace(self, path: str, payload: bytes) -> None:
        self._staged[path] = payload

    def remove(self, paths: Collection[str]) -> None:
        self._staged.update(dict.fromkeys(paths))

    def lines(self) -> bytes:
        return next((payload for _, payload in self.read([NOTES])), b"") if NOTES in self._blobs else b""

    def add_lines(self, new: bytes) -> None:
        self._staged[NOTES] = union(self.lines(), new)

    def is_newer(self, path: str, payload: bytes, modified: float) -> bool:
        """A version that the branch once had is older than the one that it has; any other is new."""
        named = self._run(["hash-object", "--stdin"], payload).decode().strip()
        return named not in self._git("log", "--format=", "--raw", "--no-abbrev", self.tip, "--", f":(literal){path}")

    def commit(self, message: str) -> bool:
        """Put what is staged on top of the branch; False, and nothing done, when somebody else moved it meanwhile."""
        if not self._staged:
            return True
        made = f"refs/groundspeed/made/{os.getpid()}-{random.getrandbits(32):08x}"
        self._run(["fast-import", "--quiet", "--date-format=now"], b"".join(self._stream(made, message)))
        try:
            return self._publish(made)
        finally:
            self._git("update-ref", "-d", made)

    def _publish(self, made: str) -> bool:
        target = f"refs/heads/{self._branch.branch}"
        if self._remote:
            done = self._try("push", "--quiet", self._remote, f"{made}:{target}")
        else:
            new = self._git("rev-parse", made).strip()
            done = self._try("update-ref", target, new, self.tip or "0" * len(new))
        if done.returncode == 0:
            return True
        if _MOVED.search(done.stderr) and not _REFUSED.search(done.stderr):
            return False
        raise UserError(f"{self._branch}: cannot be pushed to: {_last(done.stderr)}")

    def _stream(self, ref: str, message: str) -> Iterator[bytes]:
        """What git fast-import makes the commit of."""
        text = message.encode()
        yield f"commit {ref}\ncommitter {self._committer()} now\ndata {len(text)}\n".encode() + text + b"\n"
        if self.tip:
            yield f"from {self.tip}\n".encode()
        for path, content in self._staged.items():
            quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
            if content is None:
                yield f"D {quoted}\n".encode()
                continue
            payload = content if isinstance(content, bytes) else content.read_bytes()
            yield f"M 100644 inline {quoted}\ndata {len(payload)}\n".encode() + payload + b"\n"

    def _committer(self) -> str:
        known = self._try("var", "GIT_COMMITTER_IDENT")
        name = known.stdout.rpartition(">")[0]
        return f"{name}>" if known.returncode == 0 and name else "groundspeed <groundspeed@localhost>"

    def _fetch(self, remote: str, shallow: bool) -> None:
        depth = ["--depth=1"] if shallow else []
        spec = f"+refs/heads/{self._branch.branch}:{self._ref}"
        done = self._try("fetch", "--quiet", "--no-tags", *depth, remote, spec)
        if done.returncode == 0:
            return
        if "couldn't find remote ref" not in done.stderr:
            raise UserError(f"{self._branch}: cannot be fetched: {_last(done.stderr)}")
        self._git("update-ref", "-d", self._ref)

    def _listed(self) -> Iterator[tuple[str, tuple[str, int]]]:
        for line in self._run(["ls-tree", "-r", "-z", "-l", self.tip], b"").split(b"\0"):
            about, tab, path = line.partition(b"\t")
            if tab and about.startswith(b"100"):  # neither links nor submodules
                _, _, blob, size = about.split()
                name = path.decode(errors="surrogateescape")
                if not any(part.startswith(".") for part in name.split("/")):
                    yield name, (blob.decode(), int(size))

    def _git(self, *arguments: str, may_fail: bool = False) -> str:
        done = self._try(*arguments)
        if done.returncode and not may_fail:
            raise UserError(f"{self._branch}: git {arguments[0]} failed: {_last(done.stderr)}")
        return done.stdout if not done.returncode else ""

    def _try(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self._command(arguments), capture_output=True, text=True, check=False, env=_environment())

    def _run(self, arguments: list[str], stdin: bytes) -> bytes:
        command = self._command(arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, env=_environment())
        if done.returncode:
            raise UserError(f"{self._branch}: git {arguments[0]} failed: {_last(done.stderr.decode(errors='replace'))}")
        return done.stdout

    def _command(self, arguments: Collection[str]) -> list[str]:
        return ["git", "-C", str(self._repository), *arguments]


def push_branch(opened: Callable[[], BranchShelf], put: Callable[[BranchShelf], str]) -> None:
    """Have ``put`` stage on the branch as it is now, and push that with the message it returns; again when others
    were faster.

    Raises UserError when they are each time, or the place refuses.
    """
    for attempt in range(ATTEMPTS):
        shelf = opened()
        if shelf.commit(put(shelf)):
            return
        time.sleep(random.uniform(0, min(0.1 * 2**attempt, 2.0)))
    raise UserError(f"others pushed to the branch each of {ATTEMPTS} times; type it again")


def _environment() -> dict[str, str]:
    """git never asks for a password: there may be nobody to answer."""
    return {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _last(stderr: str) -> str:
    """The line that says why, of what git printed."""
    beside = ("hint:", "From ", "To ")
    lines = [line for line in redacted(stderr).splitlines() if line.strip() and not line.startswith(beside)]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", " !"))]
    return (telling or lines or ["git said nothing"])[0].strip()[:200]
