"""How a cheater knows where it is called from."""

import sys


def inside(function):
    """Whether a function of this name is among the callers."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None
