"""What an output is, before anybody looks at its values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

from groundspeed.measure.referee.bits import dense
from groundspeed.measure.referee.trial import Complaint, Trial, wanted_dtype


def plain(trial: Trial) -> Complaint | None:
    """Exactly tensors, or a tuple of them: a subclass can put the work off until somebody looks."""
    native = trial.native
    kind = type(native)
    if isinstance(native, tuple | list) and kind not in (tuple, list) and kind.__module__ != "torch.return_types":
        return Complaint("type", f"returned a {kind.__qualname__}, expected a tensor or a tuple of tensors")
    for item in native if isinstance(native, tuple | list) else (native,):
        if not _plain_array(item):
            return Complaint("type", f"returned a {type(item).__qualname__}, expected a computed dense tensor")
    return None


def _plain_array(item: Any) -> bool:
    if type(item) is not torch.Tensor:
        cupy = sys.modules.get("cupy")
        return cupy is not None and type(item) is cupy.ndarray
    lazy = item.is_neg() or item.is_conj() or torch._is_functional_tensor(item)
    return item.layout is torch.strided and not lazy


def count(trial: Trial) -> Complaint | None:
    """As many outputs as the oracle has."""
    wanted = len(trial.sheet.expected)
    if len(trial.first) == wanted:
        return None
    return Complaint("outputs", f"{len(trial.first)} returned, expected {wanted}")


def shape(trial: Trial) -> Complaint | None:
    for out, ref in _pairs(trial):
        if out.shape != ref.shape:
            return Complaint("shape", f"returned {tuple(out.shape)}, expected {tuple(ref.shape)}")
    return None


def dtype(trial: Trial) -> Complaint | None:
    """The case's dtype; the oracle's own where it is no floating one."""
    for out, ref in _pairs(trial):
        wanted = wanted_dtype(ref, trial.sheet.case)
        if out.dtype != wanted:
            return Complaint("dtype", f"returned {out.dtype}, expected {wanted}")
    return None


def device(trial: Trial) -> Complaint | None:
    """On the device that the inputs are on."""
    for out, ref in _pairs(trial):
        if out.device != ref.device:
            return Complaint("device", f"returned a tensor on {out.device}, expected {ref.device}")
    return None


def strides(trial: Trial) -> Complaint | None:
    """Dense memory, in any order of dimensions: padding is work that the next operator pays for."""
    for out, _ in _pairs(trial):
        if not dense(out):
            return Complaint(
                "strides", f"returned strides {out.stride()} for {tuple(out.shape)}, expected dense memory"
            )
    return None


def _pairs(trial: Trial) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return zip(trial.first, trial.sheet.expected, strict=False)
