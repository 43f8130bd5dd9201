"""Whether an implementation keeps its hands off memory that is not its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groundspeed.measure.referee import fences
from groundspeed.measure.referee.bits import overlap
from groundspeed.measure.referee.trial import Complaint, Trial, same_outputs


def inputs_unchanged(trial: Trial) -> Complaint | None:
    """The inputs hold what they held, bit for bit."""
    names = trial.touched or trial.sheet.modified()
    return Complaint("inputs unchanged", f"modified input {', '.join(map(repr, names))}") if names else None


def fences_intact(trial: Trial) -> Complaint | None:
    """Nothing was written right before or behind an input."""
    for name, tensor in trial.sheet.held.items():
        where = fences.broken(tensor)
        if where:
            return Complaint("bounds", f"memory {where} input {name!r} was written to")
    return None


def fresh_memory(trial: Trial) -> Complaint | None:
    """Outputs held at once share no memory with each other nor with an input."""
    held: list[tuple[str, torch.Tensor]] = [(f"input {name!r}", tensor) for name, tensor in trial.sheet.held.items()]
    for outputs in (trial.first, *trial.repeats):
        for out in outputs:
            for label, other in held:
                if overlap(out, other):
                    message = f"the output shares memory with {label}: return a new tensor each call"
                    return Complaint("fresh memory", message)
        held += [("an earlier output", out) for out in outputs]
    return None


def settled(trial: Trial) -> Complaint | None:
    """The output was complete for whoever reads it next on the current stream."""
    if not trial.late:
        return None
    return Complaint(
        "late", "the output was written after the call: work on another stream or thread is not waited for"
    )


def kept(trial: Trial) -> Complaint | None:
    """Later calls left the first output alone."""
    if same_outputs(trial.first, trial.early):
        return None
    return Complaint("kept", "an output changed after it was returned: its memory was freed or is used again")


def growing(grown: Sequence[int], output_bytes: int) -> Complaint | None:
    """``grown`` are bytes by which memory in use grew over the trials, with every output dropped again.

    Caches may fill once; what grows in every trial has no end. An output's worth is what a leak would be; less than
    4 KiB may be the C library's own.
    """
    least = max(4096, output_bytes)
    if len(grown) < 2 or min(grown) < least:
        return None
    return Complaint("growing memory", f"keeps more memory with every call: {min(grown)} bytes or more in each trial")
