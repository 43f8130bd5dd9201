"""What a call launches of a set of Triton kernels: which compiled variants, and as which autotuner's choice.

Triton keeps every variant that it has compiled, those that a tuner tried and those of earlier cases too, and keeps no
account of which one it launches. ``run`` of a kernel does, whether it is an autotuner's, a heuristic's or a jitted
function's own: it returns the variant. So for the length of a call that nobody times it stands behind a function that
takes note; a tuner's candidates run inside its ``run``, and are not noted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundspeed.backends.triton_kernels import Kernel
from groundspeed.records import CHOICES_BY, KernelResources


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    chosen
        The configuration that its autotuner chose for it, in words; empty without one.
    resources
        What the compiler gave the variant; None where there is none, as in the interpreter.
    """

    kernel: str
    chosen: str
    resources: KernelResources | None


@dataclass
class _Notes:
    launches: list[Launch] = field(default_factory=list)
    busy: bool = False  # inside a launch: what that launches itself is its own affair, a tuner's candidates say
    closed: bool = False  # whoever kept a noting function is served without notes


@contextlib.contextmanager
def noted(kernels: Sequence[Kernel]) -> Iterator[list[Launch]]:
    """Inside, launches of these kernels are put down in the list, in their order; afterwards all is as before."""
    notes = _Notes()
    with contextlib.ExitStack() as undo:
        for kernel in kernels:
            for at, link in enumerate(kernel.links[:-1]):
                undo.enter_context(_run_replaced(link, _noting(notes, kernel, at)))
        undo.callback(setattr, notes, "closed", True)
        yield notes.launches


def resources_of(launches: Sequence[Launch]) -> tuple[KernelResources, ...]:
    """Of every variant that was launched, in the order of its first launch."""
    return tuple(dict.fromkeys(launch.resources for launch in launches if launch.resources is not None))


def choices_of(launches: Sequence[Launch]) -> str:
    """The autotuners' choices in words: one a kernel, or one a launch of it where they differ.

    Where several kernels have been tuned, each choice stands in brackets behind its kernel's name.
    """
    chosen: dict[str, list[str]] = {}
    for launch in launches:
        if launch.chosen:
            chosen.setdefault(launch.kernel, []).append(launch.chosen)
    told = {name: choices[:1] if len(set(choices)) == 1 else choices for name, choices in chosen.items()}
    if len(told) == 1:
        return CHOICES_BY.join(*told.values())
    return CHOICES_BY.join(f"{name}({choice})" for name, choices in told.items() for choice in choices)


@contextlib.contextmanager
def _run_replaced(link: Any, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    before = vars(link).get("run")  # where somebody else has replaced it
    link.run = make(link.run)
    try:
        yield
    finally:
        if before is None:
            del link.run
        else:
            link.run = before


def _noting(notes: _Notes, kernel: Kernel, at: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a link's ``run`` take notes. A tuner outside the link was not asked, so its choice is none of this."""
    tuner = next((link for link in kernel.links[at:] if hasattr(link, "configs")), None)

    def noting(bare: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            if notes.busy or notes.closed or named.get("warmup"):
                return bare(*arguments, **named)
            notes.busy = True
            try:
                compiled = bare(*arguments, **named)
            finally:
                notes.busy = False
            chosen = "" if tuner is None else str(tuner.best_config)
            notes.launches.append(Launch(kernel.name, chosen, _resources(compiled)))
            return compiled

        return run

    return noting


def _resources(compiled: Any) -> KernelResources | None:
    registers = getattr(compiled, "n_regs", None)
    if registers is None:
        return None
    return KernelResources(
        name=compiled.name,
        registers=int(registers),
        shared_bytes=int(getattr(compiled.metadata, "shared", 0)),
        spill_bytes=4 * int(getattr(compiled, "n_spills", 0) or 0),
    )
