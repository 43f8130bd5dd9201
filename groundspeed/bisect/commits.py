"""The commits between a good and a bad one that can have changed an implementation, and its files at each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from groundspeed.digest import closure
from groundspeed.errors import UserError
from groundspeed.gate import git as gate_git
from groundspeed.gate.plan import IMPLS, Diff, renamed_from
from groundspeed.git import git
from groundspeed.tree import Tree


@dataclass(frozen=True)
class Version:
    """One implementation as a commit has it, unpacked into a folder of its own.

    implementation
        Its name there, which a later rename may have changed; empty where the commit has none.
    files
        Its import and include closure, relative to ``impls/``.
    digest
        Of that closure, or of all of ``impls/`` where the closure does not tell: what has one digest is the same code.
    """

    commit: str
    tree: Path | None = None
    implementation: str = ""
    files: frozenset[str] = frozenset()
    digest: str = ""


@dataclass(frozen=True)
class Row:
    """What is searched, oldest first; the last one is what the bad commit has.

    whole
        The closure did not change, so that these are all commits that touch ``impls/``.
    """

    versions: tuple[Version, ...]
    whole: bool = False


class Versions:
    """Unpacks commits under ``folder``, each once. ``implementation`` is its name at the commit ``bad``."""

    def __init__(self, project: Path, operator: str, implementation: str, bad: str, folder: Path) -> None:
        self.project, self.operator, self.implementation = project, operator, implementation
        self._bad, self._folder = bad, folder
        self._known: dict[str, Version] = {}

    def of(self, commit: str) -> Version:
        """Raises UserError where git does not hand all files of a commit over."""
        if commit not in self._known:
            self._known[commit] = self._unpack(commit)
        return self._known[commit]

    def _unpack(self, commit: str) -> Version:
        target = self._folder / commit
        target.mkdir()
        if not gate_git.extract(self.project, commit, IMPLS, target):
            return Version(commit)
        tree = Tree(target / IMPLS)
        found = {one.name: one for one in tree.implementations(self.operator)}
        name = self.implementation if self.implementation in found else self._older_name(tree, commit)
        if not name:
            return Version(commit, tree.root)
        members = frozenset[Path]().union(*(closure(tree.root, file) for file in found[name].files))
        files = frozenset(path.relative_to(tree.root).as_posix() for path in members)
        return Version(commit, tree.root, name, files, tree.implementation_digest(found[name]))

    def _older_name(self, tree: Tree, commit: str) -> str:
        newest = None if commit == self._bad else self.of(self._bad).tree
        if newest is None:
            return ""
        diff = Diff.of(gate_git.changes(self.project, commit, self._bad), ())
        return renamed_from(self.operator, Tree(newest), tree, diff).get(self.implementation, "")


def ancestors_only(project: Path, good: str, bad: str) -> None:
    """Raises UserError unless the bad commit descends from the good one: no line leads from one to the other."""
    if good == bad:
        raise UserError(f"good and bad are one commit, {good[:12]}: there is nothing between them")
    if git(project, "merge-base", "--is-ancestor", good, bad) is not None:
        return
    if git(project, "merge-base", "--is-ancestor", bad, good) is not None:
        raise UserError(f"bad {bad[:12]} comes before good {good[:12]}: the older commit is the first of the two")
    fork = git(project, "merge-base", good, bad)
    advice = f"; they part at {fork[:12]}: if that is good, begin there" if fork else ""
    raise UserError(f"bad {bad[:12]} does not descend from good {good[:12]}{advice}")


def row_of(versions: Versions, good: str, bad: str) -> Row:
    """The versions after ``good`` up to ``bad`` on the line of first parents, each other code than the one before.

    A merge stands for what it merges. Only files of the closure can change the closure, so commits that touch no file
    of any closure seen so far need not be looked at; the closures that are found decide which others do.
    """
    first, last = versions.of(good), versions.of(bad)
    if first.digest == last.digest:
        return _whole_row(versions, good, bad)
    files: frozenset[str] = frozenset()
    found = [first, last]
    while True:
        more = files.union(*(version.files for version in found))
        if more == files:
            break
        files = more
        found = [versions.of(commit) for commit in _touching(versions.project, good, bad, sorted(files))]
    if not found or found[-1].digest != last.digest:
        found.append(last)
    return Row(tuple(_changing(first.digest, found)))


def _whole_row(versions: Versions, good: str, bad: str) -> Row:
    """Every commit that changes ``impls/``: what an implementation reads may be hidden from its imports."""
    commits = _touching(versions.project, good, bad, ["."])
    found = [replace(versions.of(each), digest=_whole_digest(versions.project, each)) for each in commits]
    return Row(tuple(_changing(_whole_digest(versions.project, good), found)), whole=True)


def _whole_digest(project: Path, commit: str) -> str:
    return git(project, "rev-parse", f"{commit}:./{IMPLS}") or ""


def _touching(project: Path, good: str, bad: str, files: Iterable[str]) -> list[str]:
    paths = [f":(literal){IMPLS}/{file}" for file in files]
    listed = git(project, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}", "--", *paths)
    if listed is None:
        raise UserError(f"{project}: git cannot list the commits of {good[:12]}..{bad[:12]}")
    return listed.split()


def _changing(digest: str, found: Iterable[Version]) -> Iterable[Version]:
    for version in found:
        if version.digest != digest:
            digest = version.digest
            yield version
