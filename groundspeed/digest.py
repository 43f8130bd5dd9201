"""What a file depends on inside its tree, and digests of what is measured.

A digest of an implementation covers its import and include closure: it changes when the code that runs can have
changed. A digest of a case covers the part of the spec that decides what is computed on what: a comment, a
docstring, a new shape or a cost formula does not split a series.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from groundspeed.operator import Case

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_CUDA_SUFFIXES = (".cu", ".cuh", ".h", ".hpp")


def closure(root: Path, file: Path) -> frozenset[Path]:
    """The file and every file under ``root`` that it imports or includes, directly or not.

    ``root`` is the tree's folder, the package that relative imports start from. Imports that leave the tree and
    files that do not exist are ignored: the interpreter and the compiler will speak of those.
    """
    seen: set[Path] = set()
    todo = [file.resolve()]
    root = root.resolve()
    while todo:
        current = todo.pop()
        if current in seen or not current.is_file():
            continue
        seen.add(current)
        todo.extend(_dependencies(root, current))
    return frozenset(seen)


def implementation_digest(root: Path, files: Iterable[Path]) -> str:
    """16 hex digits over the contents of the files' closure, independent of where the tree lies."""
    root = root.resolve()
    members = frozenset[Path]().union(*(closure(root, file) for file in files))
    digest = hashlib.sha256()
    for path in sorted(members, key=lambda path: path.relative_to(root).as_posix()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(_essence(path) + b"\0")
    return digest.hexdigest()[:16]


def case_digest(root: Path, spec_file: Path, case: Case) -> str:
    """16 hex digits over the spec's inputs and reference, everything they use, the dtype and the shape."""
    digest = hashlib.sha256(_computation(root.resolve(), spec_file.resolve()))
    digest.update(f"{case.dtype}|{sorted(case.shape)}".encode())
    return digest.hexdigest()[:16]


def _dependencies(root: Path, path: Path) -> list[Path]:
    if path.suffix in _CUDA_SUFFIXES:
        return [(path.parent / name).resolve() for name in _INCLUDE.findall(path.read_text(encoding="utf-8"))]
    if path.suffix != ".py":
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        return []  # loading it will report the error; its bytes alone are its digest
    found: list[Path] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            found.extend(_imported_files(root, path, node))
    return found


def _imported_files(root: Path, path: Path, node: ast.ImportFrom) -> list[Path]:
    base = path.parent
    for _ in range(node.level - 1):
        base = base.parent
    if base != root and root not in base.parents:
        return []
    target = base.joinpath(*node.module.split(".")) if node.module else base
    candidates = [target.with_suffix(".py"), target / "__init__.py"]
    for alias in node.names:
        candidates += [target / f"{alias.name}.py", target / alias.name / "__init__.py"]
    return [candidate.resolve() for candidate in candidates if candidate.is_file()]


def _essence(path: Path) -> bytes:
    """A Python file without comments, layout and docstrings; any other file byte for byte."""
    source = path.read_bytes()
    if path.suffix != ".py":
        return source
    try:
        return ast.dump(_without_docstrings(ast.parse(source))).encode()
    except SyntaxError:
        return source


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _computation(root: Path, spec_file: Path) -> bytes:
    """The definitions of a spec that ``inputs=`` and ``reference=`` reach, in the order of the file."""
    tree = _without_docstrings(ast.parse(spec_file.read_bytes()))
    definitions: dict[str, ast.stmt] = {}
    imports: list[ast.ImportFrom] = []
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            definitions[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            definitions.update({t.id: statement for t in statement.targets if isinstance(t, ast.Name)})
        elif isinstance(statement, ast.ImportFrom) and statement.level > 0:
            imports.append(statement)
    reached: set[str] = set()
    todo = [name for value in _keywords(tree, ("inputs", "reference")) for name in _names(value)]
    parts = [ast.dump(value) for value in _keywords(tree, ("inputs", "reference"))]
    while todo:
        name = todo.pop()
        if name in reached or name not in definitions:
            continue
        reached.add(name)
        todo.extend(_names(definitions[name]))
    parts += [ast.dump(node) for name, node in definitions.items() if name in reached]
    for node in imports:
        for dependency in _imported_files(root, spec_file, node):
            parts += [_essence(member).decode(errors="replace") for member in sorted(closure(root, dependency))]
    return "\n".join(parts).encode()


def _keywords(tree: ast.Module, wanted: tuple[str, ...]) -> list[ast.expr]:
    """The values that ``SPEC = Operator(...)`` gives for the wanted arguments."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == "SPEC" for target in targets):
                return [keyword.value for keyword in statement.value.keywords if keyword.arg in wanted]
    return []


def _names(node: ast.AST) -> list[str]:
    return [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
