"""torch's global settings: one implementation that changes them changes how every other one computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from groundspeed.measure.referee import tools
from groundspeed.measure.referee.trial import Complaint, Trial

_Setting = tuple[Callable[[], object], Callable[[object], object]]


def _deterministic(value: object) -> None:
    torch.use_deterministic_algorithms(bool(value), warn_only=torch.is_deterministic_algorithms_warn_only_enabled())


def _cuda_matmul() -> object:
    """torch's newer switch for TF32; "none" leaves it to a default that is "ieee"."""
    precision = torch.backends.cuda.matmul.fp32_precision
    return "ieee" if precision == "none" else precision


def _set_cuda_matmul(value: object) -> None:
    torch.backends.cuda.matmul.fp32_precision = value


def _matmul_precision() -> object:
    """torch's older switch. It cannot be read while the newer one contradicts it, which is an answer too."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError as error:
        return str(error)


def _attribute(owner: object, name: str) -> _Setting:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


_ANY: Mapping[str, _Setting] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "grad mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, _deterministic),
    "cuda.matmul.fp32_precision": (_cuda_matmul, _set_cuda_matmul),  # before the older one, which it can block
    "float32 matmul precision": (_matmul_precision, torch.set_float32_matmul_precision),
}
_CUDA: Mapping[str, _Setting] = {
    "cuda.matmul.allow_fp16_reduced_precision_reduction": _attribute(
        torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"
    ),
    "cuda.matmul.allow_bf16_reduced_precision_reduction": _attribute(
        torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"
    ),
    "cudnn.benchmark": _attribute(torch.backends.cudnn, "benchmark"),
    "current stream": (torch.cuda.current_stream, torch.cuda.set_stream),
    "current device": (torch.cuda.current_device, torch.cuda.set_device),
}


def _known(device: str) -> Mapping[str, _Setting]:
    return {**_ANY, **_CUDA} if device == "cuda" else _ANY


def current(device: str) -> dict[str, object]:
    """Every setting's value now."""
    return {name: read() for name, (read, _) in _known(device).items()}


def restore(settings: Mapping[str, object], device: str) -> None:
    """Set what has changed back to these values."""
    for name, (read, write) in _known(device).items():
        if read() != settings[name]:
            write(settings[name])


def changed(settings: Mapping[str, object], device: str) -> tuple[str, ...]:
    """Names of settings that no longer have these values."""
    now = current(device)
    return tuple(name for name, before in settings.items() if now[name] != before)


def settings_unchanged(trial: Trial) -> Complaint | None:
    """Global settings are as they were before the implementation was prepared."""
    names = changed(trial.sheet.settings, trial.sheet.device)
    if not names:
        return None
    return Complaint("settings", f"left torch's {', '.join(names)} changed for every other implementation")


def tools_untouched(trial: Trial) -> Complaint | None:
    """Clocks, synchronisation and what the referee judges with are the real ones."""
    changed = tools.replaced()
    if not changed:
        return None
    return Complaint("tools", f"replaced {', '.join(changed)}, which the harness measures with")
