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
_FLAGS = re.compile(rb"//[ \t]*nvcc:[^\n]*")  # a comment that says how to compile: see groundspeed.build
# Literals as they are, comments, and spaces. An apostrophe behind a digit or a letter parts digits, as in 1'000.
_CUDA_TOKEN = re.compile(
    rb"""(?P<literal>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+')
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
    |(?P<space>[ \t\r\f\v]+)""",
    re.DOTALL | re.VERBOSE,
)
_ENTRIES = ("inputs", "reference")  # the first two fields of Operator


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
        text = path.read_text(encoding="utf-8", errors="replace")
        included = [(path.parent / name).resolve() for name in _INCLUDE.findall(text)]
        return [file for file in included if root in file.parents]
    if path.suffix != ".py":
        return []
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return []  # loading it will report the error; its bytes alone are its digest
    return [file for node in _relative_imports(tree) for file in _imported_files(root, path, node)]


def _relative_imports(tree: ast.AST) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 0]


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
    """A file without comments and layout, Python without docstrings too; byte for byte what is neither it nor C++."""
    source = path.read_bytes()
    if path.suffix in _CUDA_SUFFIXES:
        return _without_comments(source)
    if path.suffix != ".py":
        return source
    try:
        return canonical(_without_docstrings(ast.parse(source))).encode()
    except (SyntaxError, ValueError):
        return source


def _without_comments(source: bytes) -> bytes:
    """C++ without comments, but those that give flags; lines stay, since the preprocessor goes by them."""
    text = _CUDA_TOKEN.sub(_kept, source)
    return b"\n".join(line for line in (line.strip(b" ") for line in text.split(b"\n")) if line)


def _kept(token: re.Match[bytes]) -> bytes:
    if token["literal"] is not None:
        return token["literal"].replace(b"\n", b"\0")  # lines of a raw string keep their layout
    flags = token["comment"] is not None and _FLAGS.fullmatch(token["comment"])
    return token["comment"].rstrip() if flags else b" "


def canonical(node: object) -> str:
    """A syntax tree as text that every supported Python writes alike.

    ``ast.dump`` does not: 3.12 gave functions ``type_params`` and 3.13 leaves empty lists out. What is empty or absent
    is left out here too, so a field that a later Python adds changes no digest until it is used.
    """
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields)
        said = ",".join(f"{name}={canonical(value)}" for name, value in fields if value is not None and value != [])
        return f"{type(node).__name__}({said})"
    if isinstance(node, list):
        return f"[{','.join(map(canonical, node))}]"
    return repr(node)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _computation(root: Path, spec_file: Path) -> bytes:
    """What ``inputs=`` and ``reference=`` reach: definitions in the order of the file, and files of the tree.

    A spec that gives them in another way than as arguments of ``SPEC = Operator(...)`` counts whole.
    """
    tree = _without_docstrings(ast.parse(spec_file.read_bytes()))
    entries = _entries(tree)
    if len(entries) < len(_ENTRIES):
        members = sorted(closure(root, spec_file))
        return b"\n".join(_essence(member) for member in members)
    reached: dict[ast.stmt, None] = {}
    todo = [name for entry in entries for name in _names(entry)]
    seen: set[str] = set()
    definitions = _definitions(tree)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            for statement in definitions.get(name, ()):
                reached[statement] = None
                todo.extend(_names(statement))
    parts = [canonical(entry) for entry in entries]
    parts += [canonical(statement) for statement in tree.body if statement in reached]
    stars = definitions.get("*", [])
    wanted = [node for part in [*entries, *reached, *stars] for node in _relative_imports(part)]
    for file in sorted({file for node in wanted for file in _imported_files(root, spec_file, node)}):
        parts += [_essence(member).decode(errors="replace") for member in sorted(closure(root, file))]
    return "\n".join(parts).encode()


def _entries(tree: ast.Module) -> list[ast.expr]:
    """The values that ``SPEC = Operator(...)`` gives for inputs and reference, by name or by place."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            is_spec = any(isinstance(target, ast.Name) and target.id == "SPEC" for target in targets)
            if is_spec and isinstance(statement.value.func, ast.Name) and statement.value.func.id == "Operator":
                named = {keyword.arg: keyword.value for keyword in statement.value.keywords}
                given = dict(zip(_ENTRIES, statement.value.args, strict=False)) | named
                return [given[name] for name in _ENTRIES if name in given]
    return []


def _definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The top-level statements that bind each name: functions, classes, imports, assignments of any form."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            found.setdefault(name, []).append(statement)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    targets: list[ast.AST] = [statement]
    if isinstance(statement, ast.Assign):
        targets = [*statement.targets]  # and not the variables of a comprehension in its value
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


def _names(node: ast.AST) -> list[str]:
    return [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
