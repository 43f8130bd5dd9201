"""A function under torch.jit.script, called until its profiling executor has fused what it fuses."""

import types
import warnings

import torch

CALLS_UNTIL_FUSED = 3


def unsupported(dtype, **shape):
    if not hasattr(torch.jit, "script"):
        return f"torch {torch.__version__} has no torch.jit.script"
    return None


def scripted(function, *arguments):
    """The scripted function; torch's deprecation of TorchScript is known here and says nothing about this call.

    Its executor is its own. Torch keeps one for each Python function, which fuses for the first shapes that it sees,
    for any shapes from the third on, and for none any more after a fusion that failed.
    """
    own = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        script = torch.jit.script(own)
    for _ in range(CALLS_UNTIL_FUSED):
        script(*arguments)
    return script
