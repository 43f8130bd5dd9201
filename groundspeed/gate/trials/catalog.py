"""Every plant: real files of row-wise and elementwise operators, in CUDA C++, Triton, CuPy and PyTorch."""

from __future__ import annotations

from groundspeed.gate.trials.catalog_cuda import CUDA
from groundspeed.gate.trials.catalog_python import PYTHON
from groundspeed.gate.trials.plant import Plant

CATALOG: tuple[Plant, ...] = (*CUDA, *PYTHON)
OPERATORS = tuple(dict.fromkeys(plant.operator for plant in CATALOG))


def plants_of(operator: str) -> tuple[Plant, ...]:
    return tuple(plant for plant in CATALOG if plant.operator == operator)
