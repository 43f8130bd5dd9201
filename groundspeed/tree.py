"""A tree of operators: a folder like ``impls/``, loaded under a package name of its own.

Nothing is registered globally and no tree knows of another: that is what lets the gate hold the base commit's copy
beside the head's in one process. Finding what there is reads file names only; a spec is imported when it is asked
for, an implementation when it is to run.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from groundspeed import digest
from groundspeed.errors import UserError, kind_and_line
from groundspeed.operator import Case, Operator, is_name

BACKENDS = ("torch", "cuda", "triton", "cupy")
BASELINE = "torch_eager"


class SpecError(UserError):
    """A spec that cannot be used: the message names the file and the fault."""


@dataclass(frozen=True)
class Implementation:
    """One way to compute an operator, as files: ``<backend>_<idea>.py``, ``.cu``, or both under one stem."""

    operator: str
    name: str
    files: tuple[Path, ...]

    @property
    def backend(self) -> str:
        return self.name.partition("_")[0]

    @property
    def cuda_source(self) -> Path | None:
        return next((file for file in self.files if file.suffix == ".cu"), None)

    @property
    def python_source(self) -> Path | None:
        return next((file for file in self.files if file.suffix == ".py"), None)

    @property
    def idea(self) -> str:
        """The first sentence of its header; empty when it has none."""
        return _idea(self.cuda_source or self.files[0])


class Tree:
    """The operators and implementations under one folder.

    root
        The folder that holds one folder an operator.
    package
        The name its modules are imported under; made from the path when not given, so that two trees never share
        a module.
    specs
        Another tree whose specs this one is judged by: the gate runs base's implementations, and ``asv run A..B``
        past ones, under today's specs.
    guests
        Trees of installed packages (groundspeed.guests), whose operators and implementations stand beside this one's.
    """

    def __init__(
        self, root: Path, package: str | None = None, specs: Tree | None = None, guests: tuple[Tree, ...] = ()
    ) -> None:
        self.root = root.resolve()
        if not self.root.is_dir():
            raise UserError(f"{root}: no such folder of operators; run groundspeed in a checkout or pass --project")
        self.package = package or "impls_" + hashlib.sha256(str(self.root).encode()).hexdigest()[:8]
        self._specs = specs
        self._guests = guests

    def __repr__(self) -> str:
        return f"Tree({str(self.root)!r}, {self.package!r})"

    @property
    def spec_tree(self) -> Tree:
        return self._specs or self

    def operators(self) -> tuple[str, ...]:
        """Names of the folders that hold a spec, sorted."""
        specs = self.spec_tree
        own = {path.parent.name for path in specs.root.glob("*/spec.py") if is_name(path.parent.name)}
        return tuple(sorted(own.union(*(guest.operators() for guest in specs._guests))))

    def spec_file(self, operator: str) -> Path:
        return self._spec_home(operator).root / operator / "spec.py"

    def spec(self, operator: str) -> Operator:
        """The operator's spec. Raises SpecError naming the file when it cannot be imported or is no Operator."""
        tree = self._spec_home(operator)
        path = self.spec_file(operator)
        if not path.is_file():
            raise SpecError(f"unknown operator {operator!r}: {_known(self.operators())}; type: groundspeed list")
        try:
            module = tree.load(f"{operator}.spec")
            spec = module.SPEC
        except Exception as error:
            raise SpecError(f"{operator}: {path} cannot be used: {kind_and_line(error)}") from error
        if not isinstance(spec, Operator):
            raise SpecError(f"{operator}: {path}: SPEC is a {type(spec).__name__}, expected an Operator")
        return spec

    def is_spread(self, operator: str) -> bool:
        """Whether an operator's work is spread over processes. False for a spec that cannot be used."""
        try:
            return bool(self.spec(operator).world)
        except SpecError:
            return False  # said by name when its turn comes

    def implementations(self, operator: str) -> tuple[Implementation, ...]:
        """Every implementation of an operator: the baseline first, then by back end and name.

        Raises UserError when a guest has one of a name that is there already.
        """
        found: dict[str, Implementation] = {}
        for one in (one for tree in (self, *self._guests) for one in tree._own_implementations(operator)):
            if one.name in found:
                where = " and ".join(str(each.files[0]) for each in (found[one.name], one))
                raise UserError(f"{operator}/{one.name} is there twice: {where}; rename one, or uninstall its package")
            found[one.name] = one
        return tuple(sorted(found.values(), key=_order))

    def home(self, implementation: Implementation) -> Tree:
        """The tree whose file it is, this one or a guest: that is the one to load it from."""
        file = implementation.files[0].resolve()
        return next((guest for guest in self._guests if guest.root in file.parents), self)

    def _spec_home(self, operator: str) -> Tree:
        """The tree that has an operator's spec; this one's own goes before a guest's."""
        specs = self.spec_tree
        candidates = (specs, *specs._guests)
        return next((tree for tree in candidates if (tree.root / operator / "spec.py").is_file()), specs)

    def _own_implementations(self, operator: str) -> tuple[Implementation, ...]:
        folder = self.root / operator
        stems: dict[str, list[Path]] = {}
        for path in sorted([*folder.glob("*.py"), *folder.glob("*.cu")]):
            if path.name != "spec.py" and is_name(path.stem) and "_" in path.stem:
                stems.setdefault(path.stem, []).append(path)
        return tuple(Implementation(operator, name, tuple(files)) for name, files in stems.items())

    def implementation(self, operator: str, name: str) -> Implementation:
        found = {implementation.name: implementation for implementation in self.implementations(operator)}
        if name not in found:
            raise UserError(f"{operator}: unknown implementation {name!r}: {_known(found)}; type: groundspeed list")
        return found[name]

    def load(self, module: str) -> ModuleType:
        """Import ``<operator>.<stem>`` of this tree, from this tree's own file."""
        self._ensure_package(self.package, self.root)
        parent = self.package
        folder = self.root
        for part in module.split(".")[:-1]:
            parent, folder = f"{parent}.{part}", folder / part
            self._ensure_package(parent, folder)
        loaded = importlib.import_module(f"{self.package}.{module}")
        file = Path(loaded.__file__ or "").resolve()
        if self.root not in file.parents:
            raise UserError(f"{module}: loaded from {file}, expected a file under {self.root}")
        return loaded

    def implementation_digest(self, implementation: Implementation) -> str:
        return digest.implementation_digest(self.home(implementation).root, implementation.files)

    def case_digest(self, operator: str, case: Case) -> str:
        return digest.case_digest(self._spec_home(operator).root, self.spec_file(operator), case)

    @staticmethod
    def _ensure_package(name: str, folder: Path) -> None:
        """Make a package of a folder that has no ``__init__.py``: operators are folders, nothing more."""
        if name in sys.modules:
            return
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        package.__package__ = name
        package.__spec__ = importlib.util.spec_from_loader(name, loader=None, is_package=True)
        init = folder / "__init__.py"
        sys.modules[name] = package
        if init.is_file():
            try:
                exec(compile(init.read_bytes(), str(init), "exec"), package.__dict__)
            except BaseException:
                del sys.modules[name]  # or the next import would find half a package and call it whole
                raise


def _order(implementation: Implementation) -> tuple[bool, int, str]:
    backend = implementation.backend
    rank = BACKENDS.index(backend) if backend in BACKENDS else len(BACKENDS)
    return implementation.name != BASELINE, rank, implementation.name


def _known(names: object) -> str:
    listed = list(names)  # type: ignore[call-overload]
    return f"there are {', '.join(listed)}" if listed else "there are none"


def _idea(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".py":
        try:
            header = ast.get_docstring(ast.parse(text)) or ""
        except (SyntaxError, ValueError):
            header = ""
    else:
        header = _comment_header(text)
    paragraph = " ".join(header.strip().split("\n\n")[0].split())
    sentence = re.match(r".+?[.:;](?=\s|$)", paragraph)
    return (sentence.group() if sentence else paragraph).rstrip(".:;")


def _comment_header(text: str) -> str:
    block = re.match(r"\s*/\*+(.*?)\*/", text, re.DOTALL)
    if block:
        return "\n".join(line.strip().lstrip("*").strip() for line in block.group(1).splitlines())
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return "\n".join(lines)
