"""What a back end offers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from groundspeed.errors import UserError
from groundspeed.operator import Case
from groundspeed.records import KernelResources
from groundspeed.tree import Implementation, Tree

Run = Callable[[], Any]


@dataclass(frozen=True)
class Opened:
    """A loaded implementation.

    prepare
        Takes the case's torch tensors by input name, hands them over in the native array type without a copy, and
        returns the timed ``run``.
    unsupported
        A reason why it has no answer for a case, or None.
    to_torch
        A native output as torch tensors over the same memory.
    own_kernels
        Substrings, one of which every device kernel that it launches must contain; None where any may be launched.
    watch
        Entered around the first run of a case, which launches what each timed call of it does.
    resources
        What the compiler gave the kernels that were launched under ``watch``; or all it has, where it cannot tell.
    tuned
        The configurations that autotuners chose for the launches under ``watch``, or an empty string.
    tuning, adopt_tuning
        What an autotuner has learnt so far, by kernel, as JSON can hold it; and taking over what another copy of the
        same kernels learnt, in this process or another.
    own_memory
        Why torch's allocator does not see what it allocates; its peak memory is then not measured.
    """

    prepare: Callable[[Mapping[str, Any]], Run]
    unsupported: Callable[[Case], str | None]
    to_torch: Callable[[Any], tuple[Any, ...]]
    own_kernels: Callable[[], frozenset[str] | None] = lambda: None
    watch: Callable[[], AbstractContextManager[None]] = nullcontext
    resources: Callable[[], tuple[KernelResources, ...]] = lambda: ()
    tuned: Callable[[], str] = lambda: ""
    tuning: Callable[[], Mapping[str, Any]] = dict
    adopt_tuning: Callable[[Mapping[str, Any]], None] = lambda learnt: None
    own_memory: str = ""


class Unusable(Exception):
    """What an implementation is written with is installed and cannot be imported here; the message says why."""


class ChangesTorch(UserError):
    """Loading an implementation has changed torch for everybody in this process, and that cannot be taken back."""


class Backend(Protocol):
    """A module of this package, or a Library."""

    def absent(self, device: str) -> str | None:
        """Why this back end cannot be timed on a device ("cuda" or "cpu") here, or None."""

    def open_implementation(self, tree: Tree, implementation: Implementation) -> Opened:
        """Load it. Raises whatever its file raises, BuildError when it does not compile, Unusable and ChangesTorch."""


def prepare_of(module: ModuleType) -> Callable[[Mapping[str, Any]], Run]:
    """A file's ``prepare``, held to its contract: it raises TypeError, with what was expected, where that is broken."""

    def prepare(tensors: Mapping[str, Any]) -> Run:
        function = getattr(module, "prepare", None)  # not before: a file that declines all cases may have none
        if not callable(function):
            raise TypeError(
                f"{_file_of(module)} has no function prepare; it gets the operator's inputs and returns run"
            )
        try:
            inspect.signature(function).bind(**tensors)
        except TypeError as error:
            taken = inspect.signature(function)
            raise TypeError(
                f"{_file_of(module)}: prepare{taken} does not take ({', '.join(tensors)}): {error}"
            ) from None
        return checked_run(function(**tensors), module)

    return prepare


def checked_run(run: Any, module: ModuleType) -> Run:
    """What prepare returned. Raises TypeError where that cannot be called."""
    if not callable(run):
        kind = type(run).__name__
        raise TypeError(f"{_file_of(module)}: prepare returned {kind}; expected run, a function without arguments")
    found: Run = run
    return found


def _file_of(module: ModuleType) -> str:
    """``relu/torch_eager.py``."""
    return "/".join(Path(module.__file__ or module.__name__).parts[-2:])


def unsupported_of(module: ModuleType | None) -> Callable[[Case], str | None]:
    """A file's ``unsupported(dtype, **shape)``, or one that supports everything."""
    function = getattr(module, "unsupported", None)
    if function is None:
        return lambda case: None
    return lambda case: function(case.dtype, **case.dims)


def torch_outputs(output: Any) -> tuple[Any, ...]:
    """One tensor or a tuple of them, as a tuple."""
    return tuple(output) if isinstance(output, tuple | list) else (output,)
