"""A back end that is somebody else's package: its implementations take torch's tensors and run on torch's stream."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from groundspeed.backends import patches
from groundspeed.backends.base import ChangesTorch, Opened, Unusable, prepare_of, torch_outputs, unsupported_of
from groundspeed.errors import kind_and_line
from groundspeed.installed import version_of
from groundspeed.tree import Implementation, Tree


@dataclass(frozen=True)
class Conflict:
    """Releases that fail together though neither's metadata says so: requirements, and what goes wrong."""

    ours: str
    theirs: str
    why: str

    def found(self) -> str | None:
        """What is installed of both, where the two are in conflict."""
        from packaging.requirements import Requirement

        ours, theirs = Requirement(self.ours), Requirement(self.theirs)
        versions = version_of(ours.name), version_of(theirs.name)
        if not all(versions) or not (ours.specifier.contains(versions[0]) and theirs.specifier.contains(versions[1])):
            return None
        return f"{ours.name} {versions[0]} fails with {theirs.name} {versions[1]} ({self.why})"


@dataclass(frozen=True)
class Library:
    """A package whose implementations are called ``<name>_<idea>``.

    title
        What people call it.
    distribution
        The wheel that must be installed, and whose version the records keep.
    beside
        Further wheels that do its work, such as its compiler: the records keep their versions where they are installed.
    inside
        What is no wheel of its own, by the name in the records, and how it tells its version once it is in use.
    extra
        What brings it: ``pip install 'groundspeed[extra]'``.
    devices
        Where it can be timed, of "cuda" and "cpu".
    environment
        Variables that must be set before it is imported; one that is set already stays.
    alone
        Why it needs a worker of its own: what it changes of torch for everybody in its process. Empty where nothing.
    conflicts
        Installed releases beside which it cannot work.
    own_memory
        Why torch's allocator does not see what it allocates; its peak memory is then not measured.
    """

    title: str
    distribution: str
    extra: str
    devices: frozenset[str] = frozenset({"cuda"})
    environment: Mapping[str, str] = field(default_factory=dict)
    alone: str = ""
    own_memory: str = ""
    beside: tuple[str, ...] = ()
    inside: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()

    def absent(self, device: str) -> str | None:
        """Why it cannot be timed on a device here, or None. Imports nothing of it."""
        if device not in self.devices:
            return f"{self.title} is timed on a {'GPU' if device == 'cpu' else 'CPU'} alone"
        if not self.version():
            return f"{self.distribution} is not installed: pip install 'groundspeed[{self.extra}]'"
        for conflict in self.conflicts:
            if found := conflict.found():
                return f"{found}: pip install 'groundspeed[{self.extra}]'"
        return None

    def open_implementation(self, tree: Tree, implementation: Implementation) -> Opened:
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        before = patches.seen()
        try:
            module = tree.load(f"{implementation.operator}.{implementation.name}")
        except Exception as error:
            self._refuse_changes(before, implementation, f" and fails with {kind_and_line(error)}")
            if _own_fault(error, tree):
                raise
            what = f"{self.distribution} {self.version()} is installed, and cannot be imported here"
            raise Unusable(f"{what}: {kind_and_line(error)}") from error
        self._refuse_changes(before, implementation)
        return Opened(
            prepare=prepare_of(module),
            unsupported=unsupported_of(module),
            to_torch=torch_outputs,
            own_memory=self.own_memory,
        )

    def _refuse_changes(self, before: patches.Seen, implementation: Implementation, then: str = "") -> None:
        """Raise ChangesTorch where torch is not what it was, unless that is declared."""
        changed = patches.since(before)
        if changed and not self.alone:
            raise ChangesTorch(
                f"{implementation.operator}/{implementation.name}: importing it changes torch for every other "
                f"implementation{then}: {', '.join(changed[:3])}; declare {self.title} alone in backends/libraries.py"
            )

    def version(self) -> str:
        """Of the wheel that is installed; empty where none is."""
        return version_of(self.distribution)

    def versions(self) -> dict[str, str]:
        """By name, of all that does its work and is installed."""
        wheels = {name: version_of(name) for name in (self.distribution, *self.beside)}
        found = {**wheels, **{name: tell() for name, tell in self.inside.items()}}
        return {name: version for name, version in found.items() if version}


def _own_fault(error: Exception, tree: Tree) -> bool:
    """Whether a file of the tree raised it by itself: no package was missing or older, none raised it when imported."""
    if isinstance(error, ImportError) and error.name:
        return error.name.partition(".")[0] == tree.package
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).resolve().is_relative_to(tree.root.resolve())
