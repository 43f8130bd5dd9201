"""torch.jit.script of eager's one operation, which leaves its fuser nothing to join.

Bound by memory: N elements read, N written. Prediction: level with eager on large tensors; on small ones TorchScript's
interpreter costs the host little more than Python's call.
"""

from .._torch.scripted import scripted, unsupported
from .torch_eager import relu

__all__ = ["prepare", "unsupported"]


def prepare(x):
    script = scripted(relu, x)

    def run():
        return script(x)

    return run
