"""What one rank sees of an operator that is spread over several: an operator of one device, for the referee.

A rank holds the inputs of all, drawn from one seed, since the oracle needs them; its implementation is given its own.
They are changed together, so that every rank's oracle keeps knowing what the others compute from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from groundspeed.backends.base import Run
from groundspeed.errors import UserError
from groundspeed.measure.contender import Contender
from groundspeed.operator import Case, Input, Operator

CPU_RANKS = 2
_OF = " of rank "


def view_of(spec: Operator, rank: int) -> Operator:
    """The operator as one rank computes it. Its inputs are its own, by their names, and then those of the others."""

    def inputs(generator: Any, dtype: Any, device: Any, **shape: int | str) -> Mapping[str, Input]:
        made: Any = spec.inputs(generator, dtype, device, **shape)
        wanted = shape[spec.world]
        if not isinstance(made, list | tuple) or len(made) != wanted:
            raise UserError(f"inputs() gave a {type(made).__name__}, expected a list of {wanted} dicts, one a rank")
        return joined(made, rank)

    def reference(**tensors: Any) -> Any:
        return spec.reference(rank, parted(tensors, rank))

    return dataclasses.replace(spec, inputs=inputs, reference=reference)


def joined(ranks: Sequence[Mapping[str, Any]], rank: int) -> dict[str, Any]:
    """What all ranks have by name, this rank's own first and under bare names."""
    others = {
        f"{name}{_OF}{number}": value
        for number, held in enumerate(ranks)
        if number != rank
        for name, value in held.items()
    }
    return {**ranks[rank], **others}


def parted(tensors: Mapping[str, Any], rank: int) -> list[dict[str, Any]]:
    """The reverse of ``joined``: a dict a rank."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        bare, other, number = name.partition(_OF)
        found.setdefault(int(number) if other else rank, {})[bare] = value
    return [found[number] for number in sorted(found)]


def own(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """What is a rank's own."""
    return {name: tensor for name, tensor in tensors.items() if _OF not in name}


def of_rank(contender: Contender) -> Contender:
    """A contender that is given its rank's own tensors alone."""
    opened = contender.opened

    def prepare(tensors: Mapping[str, Any]) -> Run:
        return opened.prepare(own(tensors))

    return dataclasses.replace(contender, opened=dataclasses.replace(opened, prepare=prepare))


def most_ranks(device: str, gpus: int) -> int:
    """Over how many ranks a case can be spread here: one a GPU; two on a CPU, which show that the code is right."""
    return gpus if device == "cuda" else CPU_RANKS


def too_wide(spec: Operator, case: Case, device: str, gpus: int) -> str | None:
    """Why a case has more ranks than there can be here, or None."""
    world = spec.world_size(case)
    if world <= most_ranks(device, gpus):
        return None
    if device != "cuda":
        return f"world size {world}: on a CPU the ranks share its cores, and no more than {CPU_RANKS} are started"
    seen = "1 is visible" if gpus == 1 else f"{gpus} are visible"
    return f"world size {world} needs {world} GPUs, {seen}"
