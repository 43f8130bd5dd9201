"""Which implementations use torch.compile, by their code: for the others the compiler's imports are waste."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

_NAMES = frozenset({"compile", "_dynamo", "_inductor"})
_WORDS = tuple(name.encode() for name in _NAMES)

Imported = Mapping[str, bool]
"""Name that an import binds → whether it is torch."""


def uses_compiler(files: Iterable[Path]) -> bool:
    """Whether the code of one of these files does; one that cannot be parsed is taken to."""
    return any(_does(file.read_bytes()) for file in files if file.suffix == ".py")


def _does(text: bytes) -> bool:
    if not any(word in text for word in _WORDS):
        return False  # most files: none is parsed in vain
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return True
    imported = {name: is_torch for node in nodes for name, is_torch in _bound(node)}
    return any(_imports_it(node) or _speaks_of_it(node, imported) for node in nodes)


def _bound(node: ast.AST) -> Iterable[tuple[str, bool]]:
    """Names that an import statement binds."""
    if isinstance(node, ast.Import):
        for one in node.names:
            bound = one.asname or one.name.partition(".")[0]
            yield bound, _is_torchs(one.name) if one.asname else bound == "torch"
    elif isinstance(node, ast.ImportFrom):
        for one in node.names:
            yield one.asname or one.name, not node.level and _is_torchs(node.module or "")


def _imports_it(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(_is_compilers(one.name) for one in node.names)
    if isinstance(node, ast.ImportFrom) and not node.level:
        names = {f"{node.module}.{one.name}" for one in node.names}
        return any(_is_compilers(name) for name in names) or "torch.*" in names
    return False


def _speaks_of_it(node: ast.AST, imported: Imported) -> bool:
    """``torch.compile`` and the like, and ``anything.compile`` that may be a module of torch.nn: not ``re.compile``."""
    if not isinstance(node, ast.Attribute) or node.attr not in _NAMES:
        return False
    root = _root(node)
    return not isinstance(root, ast.Name) or imported.get(root.id, True)


def _root(node: ast.expr) -> ast.expr:
    """``a`` of ``a.b(c).d[e]``."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _is_compilers(name: str) -> bool:
    first, _, rest = name.partition(".")
    return first == "torch" and rest.partition(".")[0] in _NAMES


def _is_torchs(name: str) -> bool:
    return name.partition(".")[0] == "torch"
