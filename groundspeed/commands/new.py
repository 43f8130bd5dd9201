"""Write the files of a new operator or implementation: skeletons that run, and fail their check until filled in.

groundspeed new operator NAME                         spec and baseline
groundspeed new implementation OPERATOR/BACKEND_IDEA  a file: softmax/cuda_mine

The check then points at what is still to be written. Nothing that exists is written over.
"""

from __future__ import annotations

import argparse
import inspect
import keyword
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundspeed.backends.libraries import LIBRARIES
from groundspeed.errors import UserError, kind_and_line
from groundspeed.operator import Operator, is_name
from groundspeed.project import command, find_project, near, parse_target, shown
from groundspeed.scaffold.implementation import SUFFIXES, implementation_text, need_of, suffix_of
from groundspeed.scaffold.operator import operator_files
from groundspeed.tree import Tree

RESERVED = {"calibrate": "noise floors of groundspeed calibrate are filed under it"}
Begun = tuple[str, dict[Path, str], list[str]]  # the target, its files' texts, and what else to say of them
_LONGEST_NAME = 60
_NAME_RULE = "lower-case letters, digits and single underscores, a letter first"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("operator", "implementation"), help="what to begin")
    parser.add_argument("name", metavar="NAME", help="NAME of an operator, or OPERATOR/BACKEND_IDEA")


def run(arguments: argparse.Namespace) -> int:
    tree = find_project(arguments.project).tree()
    begin = _operator if arguments.what == "operator" else _implementation
    target, files, remarks = begin(tree, arguments.name)
    _write(files)
    print("\n".join([*(f"wrote {shown(path)}" for path in files), *remarks]))
    print(f"next: fill in what is marked there, and type: {command()} check {target}")
    return 0


def _operator(tree: Tree, name: str) -> Begun:
    if not _usable(name) or keyword.iskeyword(name):
        raise UserError(f"{name!r} cannot name an operator: expected {_NAME_RULE}, as in layer_norm")
    if name in RESERVED:
        raise UserError(f"{name!r} cannot name an operator: {RESERVED[name]}; choose another name")
    return name, {tree.root / name / file: text for file, text in operator_files(name).items()}, []


def _implementation(tree: Tree, target: str) -> Begun:
    operator, slash, name = target.partition("/")
    if not slash:
        example = f"{operator if operator in tree.operators() else 'softmax'}/triton_idea"
        raise UserError(f"{target!r} names no implementation: expected OPERATOR/BACKEND_IDEA, as in {example}")
    operator = parse_target(operator, tree).operator
    backend, _, idea = name.partition("_")
    known = [*SUFFIXES, *LIBRARIES]
    if backend not in known:
        raise UserError(f"unknown back end {backend!r} in {target!r}{near(backend, known)}")
    if not _usable(name) or not idea:
        raise UserError(f"{name!r} cannot name an implementation: expected {backend}_<idea>, {_NAME_RULE}")
    if name in {one.name for one in tree.implementations(operator)}:
        raise UserError(f"{target} exists; choose another idea, or type: {command()} check {target}")
    spec = tree.spec(operator)
    text = implementation_text(operator, name, inputs_of(tree, operator, spec), spread=bool(spec.world))
    remarks = [*_missing(tree, backend), *_model(tree, operator, backend)]
    return target, {tree.root / operator / f"{name}{suffix_of(backend)}": text}, remarks


def _missing(tree: Tree, backend: str) -> list[str]:
    """What a skeleton uses and another repository's tree may lack."""
    need = need_of(backend)
    if not need or (tree.root / need).is_file():
        return []
    return [f"it uses impls/{need} of groundspeed's repository, which is not here: copy it, with what it imports"]


def _model(tree: Tree, operator: str, backend: str) -> list[str]:
    """The shortest finished file to look at where a skeleton cannot show it all: by a library, or over several GPUs."""
    spread = tree.is_spread(operator)
    if backend not in LIBRARIES and not spread:
        return []
    found = [
        (one.operator != operator, file.stat().st_size, file)
        for other in ([operator] if spread else tree.operators())
        for one in tree.implementations(other)
        if one.backend == backend
        for file in one.files[:1]
    ]
    return [f"a finished one to look at: {shown(min(found)[2])}"] if found else []


def _usable(name: str) -> bool:
    return is_name(name) and len(name) <= _LONGEST_NAME


def inputs_of(tree: Tree, operator: str, spec: Operator) -> tuple[str, ...]:
    """Names of an operator's inputs, from the oracle's signature: it takes them by name, and that needs no torch.

    The oracle of an operator over several GPUs takes all ranks' at once, so there one rank's are drawn.
    """
    if spec.world:
        return _inputs_of_a_rank(tree, operator, spec)
    parameters = inspect.signature(spec.reference).parameters.values()
    names = tuple(one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY))
    if not names:
        raise UserError(f"{operator}: {tree.spec_file(operator)}: reference() names no inputs")
    return names


def _inputs_of_a_rank(tree: Tree, operator: str, spec: Operator) -> tuple[str, ...]:
    import torch

    case = spec.check_cases[0]
    try:
        made: Any = spec.inputs(
            torch.Generator().manual_seed(0), getattr(torch, case.dtype), torch.device("cpu"), **case.dims
        )
        return tuple(made[0])
    except Exception as error:
        where = f"{operator}: {tree.spec_file(operator)}"
        raise UserError(f"{where}: inputs() gives no list of dicts, one a rank: {kind_and_line(error)}") from error


def _write(files: Mapping[Path, str]) -> None:
    """All of them or none: what exists is named before the first is written."""
    for path in files:
        if path.exists():
            hint = f"; for another implementation type: {command()} new implementation {path.parent.name}/BACKEND_IDEA"
            raise UserError(f"{shown(path)} exists and is not written over{hint}")
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
