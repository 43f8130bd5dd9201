"""The columns of tables by back end: one for each of the four kept by hand, one for everybody else's libraries."""

from __future__ import annotations

TITLES = {"torch": "PyTorch", "cuda": "CUDA C++", "triton": "Triton", "cupy": "CuPy"}
LIBRARIES = "libraries"


def column_of(backend: str) -> str:
    """The column that an implementation of a back end stands in."""
    return backend if backend in TITLES else LIBRARIES
