"""What must stay what it is while implementations run: attributes of modules, classes and objects, and functions' code.

A snapshot holds what was there. To compare with it takes well under 100 ns an attribute, so that thousands can be asked
about in each trial.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter, is_
from types import CodeType, FunctionType, ModuleType
from typing import Any, Protocol

_CODE = attrgetter("__code__")


class Watched(Protocol):
    """Things that can be changed from outside, as they were when they were looked at."""

    def untouched(self) -> bool:
        """Whether all are what they were."""

    def changed(self) -> Iterator[str]:
        """Names of those that are not."""

    def put_back(self) -> None:
        """Make them what they were."""


@dataclass(frozen=True)
class Attributes:
    """Attributes that one owner itself has.

    absent
        Names that the owner must not come to have: it would hide what is behind them, a builtin or an inherited method.
    """

    owner: Any
    label: str
    values: Mapping[str, object]
    absent: frozenset[str] = frozenset()

    def untouched(self) -> bool:
        now = vars(self.owner)
        return all(map(is_, map(now.get, self.values), self.values.values())) and self.absent.isdisjoint(now)

    def changed(self) -> Iterator[str]:
        for name in (*self._replaced(), *self._added()):
            yield f"{self.label}.{name}"

    def put_back(self) -> None:
        for name in self._replaced():
            if isinstance(self.owner, type):
                setattr(self.owner, name, self.values[name])
            else:
                vars(self.owner)[name] = self.values[name]
        for name in self._added():
            delattr(self.owner, name)

    def _replaced(self) -> list[str]:
        now = vars(self.owner)
        return [name for name, value in self.values.items() if now.get(name) is not value]

    def _added(self) -> list[str]:
        return sorted(self.absent.intersection(vars(self.owner)))


class Functions:
    """The code of functions of Python: one can be given another's and stay the same object."""

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        self._functions = tuple(dict.fromkeys(functions))
        self._codes = tuple(map(_CODE, self._functions))

    def untouched(self) -> bool:
        return all(map(is_, map(_CODE, self._functions), self._codes))

    def changed(self) -> Iterator[str]:
        for function, _ in self._replaced():
            yield f"{function.__module__}.{function.__qualname__}.__code__"

    def put_back(self) -> None:
        for function, code in self._replaced():
            function.__code__ = code

    def _replaced(self) -> list[tuple[FunctionType, CodeType]]:
        pairs = zip(self._functions, self._codes, strict=True)
        return [(function, code) for function, code in pairs if function.__code__ is not code]


def of_module(module: ModuleType, absent: frozenset[str] = frozenset()) -> Iterator[Attributes]:
    """A module of the harness: its globals, and what the classes and the constant objects that it defines are made of.

    ``absent`` are names of builtins that its code must go on to find where it finds them now.
    """
    globals_ = {name: value for name, value in vars(module).items() if not _is_dunder(name)}
    yield Attributes(module, module.__name__, globals_, absent - globals_.keys())
    for name, value in globals_.items():
        if isinstance(value, type):
            if value.__module__ == module.__name__:
                yield of_class(value)
        elif _is_constant(value):
            yield Attributes(value, f"{module.__name__}.{name}", dict(vars(value)))


def of_class(kind: type) -> Attributes:
    """What a class itself defines."""
    own = {name: value for name, value in vars(kind).items() if not _is_dunder(name) or isinstance(value, FunctionType)}
    return Attributes(kind, f"{kind.__module__}.{kind.__qualname__}", own)


def named(owner: Any, known: Mapping[str, object], names: frozenset[str]) -> Attributes:
    """Of somebody else's module or class what these names mean there; ``known`` is what it had itself.

    Of a module what can be called and its submodules: its other globals are its own state, which may change.
    """
    label = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
    own = {name: value for name, value in known.items() if name in names}
    if isinstance(owner, ModuleType):
        return Attributes(
            owner, label, {name: one for name, one in own.items() if callable(one) or isinstance(one, ModuleType)}
        )
    inherited = names.intersection(dir(owner)) - own.keys()
    return Attributes(owner, label, own, inherited)


def functions_in(values: Iterable[object]) -> Iterator[FunctionType]:
    """The functions of Python among values, and those that methods, properties and decorators are made of."""
    for value in values:
        for each in _parts_of(value):
            while each is not None:
                if isinstance(each, FunctionType):
                    yield each
                each = getattr(each, "__wrapped__", None)


def names_in(functions: Iterable[FunctionType]) -> frozenset[str]:
    """Globals and attributes that their code mentions, but for names like ``__name__``."""
    mentioned = {name for function in functions for code in _codes(function.__code__) for name in code.co_names}
    return frozenset(name for name in mentioned if not _is_dunder(name))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _parts_of(value: object) -> tuple[Any, ...]:
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    return (value,)


def _is_constant(value: object) -> bool:
    """Whether it is an object that its class says never changes."""
    parameters = getattr(type(value), "__dataclass_params__", None)
    return dataclasses.is_dataclass(value) and bool(parameters and parameters.frozen) and hasattr(value, "__dict__")


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
