"""Whose kernels ran: an implementation named ``cuda_*`` or ``triton_*`` launches its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from groundspeed.kernel_names import qualified_name

_DRIVER = ("Memcpy", "Memset")  # copies and fills by the driver are nobody's kernel
_TORCH = ("at::", "c10::", "at_cuda_detail::")  # no implementation can compile one of these


def foreign_kernel(launched: Iterable[str], own: Collection[str]) -> str:
    """The first kernel that is none of the implementation's own; empty when all are.

    ``own`` are bare function names. They are compared whole: a kernel of one's own called ``kernel`` must not cover
    every library's that has the word in its name.
    """
    for kernel in launched:
        if kernel.startswith(_DRIVER):
            continue
        qualified = qualified_name(kernel)
        bare = re.split(r"::|\.", qualified)[-1]
        if qualified.startswith(_TORCH) or bare not in own:
            return kernel
    return ""
