"""The process under compute-sanitizer: one implementation's ``run`` on some check cases, and nothing else.

Started as ``python -m groundspeed.sanitizer.child REQUEST EVENTS``, two files. No timer, no flush, no referee: their
kernels would be watched too. Inputs are drawn on the CPU and copied, so that no kernel of torch's runs either; they are
not laid between the referee's fences, which would make memory beside them legal to read.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch

from groundspeed.backends import backend
from groundspeed.backends.base import Opened
from groundspeed.errors import kind_and_line
from groundspeed.guests import tree_with_guests
from groundspeed.measure.referee.bits import reach
from groundspeed.operator import Case, Operator
from groundspeed.sanitizer.protocol import Began, Declined, Event, Finished, Raised, Ran, Request
from groundspeed.tree import Tree

Tell = Callable[[Event], None]


def run_cases(request: Request, tell: Tell) -> None:
    """Run every case once, or the first that is taken, telling of each.

    After one that raises the device may be lost, so it is the last.
    """
    tree = tree_with_guests(Path(request.tree))
    spec = tree.spec(request.operator)
    try:
        opened = _open(tree, request)
    except Exception as error:
        tell(Raised("", _shown(error)))
        return
    for case in request.case_list():
        tell(Began(case.label))
        try:
            reason = opened.unsupported(case)
            if reason is None:
                _run(opened, device_inputs(spec, case, request.device, request.seed), request.device)
        except Exception as error:
            traceback.print_exc()
            tell(Raised(case.label, _shown(error)))
            return
        tell(Ran(case.label) if reason is None else Declined(case.label, reason))
        if request.first_only and reason is None:
            break
    tell(Finished())


def device_inputs(spec: Operator, case: Case, device: str, seed: int) -> Mapping[str, torch.Tensor]:
    """The case's inputs on a device: same values, shape, strides and offset in memory of just the bytes they span."""
    generator = torch.Generator().manual_seed(seed)
    made = spec.inputs(generator, getattr(torch, case.dtype), torch.device("cpu"), **case.dims)
    return {name: copied(value.tensor, device, value.host) for name, value in made.items()}


def copied(tensor: torch.Tensor, device: str, host: bool = False) -> torch.Tensor:
    """A copy on a device by one transfer of bytes, gaps between elements and bytes before the first included.

    ``Tensor.to`` would pack a strided tensor, and drop the offset that makes a pointer misaligned. ``host`` asks for
    the host's memory instead, page-locked where the device is a GPU.
    """
    if tensor.numel() == 0:
        return tensor.to(device)
    offset = tensor.storage_offset()
    whole = tensor.as_strided((offset + reach(tensor),), (1,), 0)
    if host:
        whole = whole.pin_memory() if device == "cuda" else whole.clone()
    else:
        whole = whole.to(device, copy=True)
    return whole.as_strided(tensor.shape, tensor.stride(), offset)


def _open(tree: Tree, request: Request) -> Opened:
    implementation = tree.implementation(request.operator, request.implementation)
    if implementation.backend == "cupy":
        import cupy

        cupy.cuda.set_allocator(None)  # its memory pool hides what lies outside an array, as torch's does
    return backend(implementation.backend).open_implementation(tree.home(implementation), implementation)


def _run(opened: Opened, tensors: Mapping[str, torch.Tensor], device: str) -> None:
    output: Any = opened.prepare(tensors)()
    if device == "cuda":
        torch.cuda.synchronize()
    del output


def _shown(error: Exception) -> str:
    return kind_and_line(error)[:300]


def main() -> None:
    request = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Request)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    with open(sys.argv[2], "wb", buffering=0) as events:

        def tell(event: Event) -> None:
            events.write(msgspec.json.encode(event) + b"\n")

        run_cases(request, tell)
    # Exit status 0 whatever happened, which the events say: another one would be an error more in the tool's log.


if __name__ == "__main__":
    main()
