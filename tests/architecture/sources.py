"""The project's modules and what each imports, read from the source and never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Import:
    """One import of an absolute module; ``lazy`` when it stands inside a function."""

    target: str
    lazy: bool
    line: int


def modules(*packages: str) -> dict[str, Path]:
    """Dotted name → file of every module under these top-level folders."""
    found = {}
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path) -> list[Import]:
    """What a module imports, relative imports resolved; what stands under ``if TYPE_CHECKING`` is left out."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return list(_walk(tree, package, lazy=False))


def _walk(node: ast.AST, package: str, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, lazy, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = child.module or ""
            if child.level:
                above = package.split(".")[: len(package.split(".")) - child.level + 1]
                base = ".".join([*above, *([child.module] if child.module else [])])
            members = [f"{base}.{alias.name}" for alias in child.names]
            # `from package import module` needs the module; the package only for names of its own
            if not all(_is_module(member) for member in members):
                yield Import(base, lazy, child.lineno)
            yield from (Import(member, lazy, child.lineno) for member in members)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _walk(child, package, lazy or inside)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def within(module: str, *packages: str) -> bool:
    """Whether a dotted name is one of these packages or lies in one."""
    return any(module == package or module.startswith(package + ".") for package in packages)
