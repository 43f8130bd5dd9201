"""Back ends: how an implementation's file becomes something that runs, one file each, imported when first needed.

Adding one is adding a module here that offers ``absent`` and ``open_implementation`` (see ``base``) and naming it in
``MODULES``; or, for a package that takes torch's tensors, a line in ``libraries``.
"""

from __future__ import annotations

import importlib

from groundspeed.backends.base import Backend
from groundspeed.backends.libraries import LIBRARIES
from groundspeed.errors import UserError

MODULES = {
    "torch": "groundspeed.backends.torch_backend",
    "cuda": "groundspeed.backends.cuda_backend",
    "triton": "groundspeed.backends.triton_backend",
    "cupy": "groundspeed.backends.cupy_backend",
}


def backend(name: str) -> Backend:
    """The back end an implementation's name begins with. Raises UserError for one that does not exist."""
    if name in LIBRARIES:
        return LIBRARIES[name]
    if name not in MODULES:
        known = ", ".join([*MODULES, *LIBRARIES])
        raise UserError(f"unknown back end {name!r}: an implementation is named <backend>_<idea>, with one of {known}")
    module: Backend = importlib.import_module(MODULES[name])
    return module
