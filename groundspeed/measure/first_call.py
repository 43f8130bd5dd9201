"""The first call of one implementation on one case, in a process that has done nothing else.

Started as a worker is, as ``python -m groundspeed.measure.first_call FD PARENT``. The clock starts when torch is
imported and the inputs lie on the device: from there it covers all that stands between somebody with data and the first
output, be it imports, a compiler, tuning or the loading of a library.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from time import perf_counter_ns
from typing import NoReturn

import msgspec

from groundspeed.cores import cpu_threads
from groundspeed.errors import kind_and_line
from groundspeed.measure.protocol import Channel, Dying, FirstCallTimed, Job, Phase
from groundspeed.measure.worker import end_with

# Seconds. With empty caches, compilers and tuners may take as long as they like before they speak again.
_LIMITS = {"inputs": 180.0, "load": 900.0, "prepare": 600.0, "first run": 600.0}


def main() -> NoReturn:
    end_with(int(sys.argv[2]))
    os.set_inheritable(int(sys.argv[1]), False)
    channel = Channel(os.fdopen(int(sys.argv[1]), "wb"))
    channel.send(Phase("start", 180.0))
    import torch

    torch.set_grad_enabled(False)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    status = 0
    try:
        channel.send(first_call(job, channel))
    except Exception as error:
        traceback.print_exc()
        channel.send(Dying(_shown(error, job)))
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def first_call(job: Job, channel: Channel) -> FirstCallTimed:
    """Do it: the job names one implementation and one case."""
    import torch

    from groundspeed.backends import backend
    from groundspeed.guests import tree_with_guests
    from groundspeed.tree import Tree

    def begin(phase: str) -> int:
        channel.send(Phase(phase, _LIMITS[phase], 0, name))
        return perf_counter_ns()

    if job.device == "cpu":
        torch.set_num_threads(cpu_threads())
    (name,), (case,) = job.implementations, job.case_list()
    specs = tree_with_guests(Path(job.specs))
    tree = specs if job.specs == job.tree else Tree(Path(job.tree), specs=specs)
    implementation = tree.implementation(job.operator, name)
    begin("inputs")
    generator = torch.Generator(device=job.device).manual_seed(job.seed)
    spec = tree.spec(job.operator)
    made = spec.inputs(generator, getattr(torch, case.dtype), torch.device(job.device), **case.dims)
    tensors = {key: value.tensor for key, value in made.items()}
    wait = torch.cuda.synchronize if job.device == "cuda" else _nothing
    wait()
    start = begin("load")
    opened = backend(implementation.backend).open_implementation(tree.home(implementation), implementation)
    loaded = begin("prepare")
    run = opened.prepare(tensors)
    wait()
    prepared = begin("first run")
    output = run()
    wait()
    ran = perf_counter_ns()
    del output
    return FirstCallTimed(float(loaded - start), float(prepared - loaded), float(ran - prepared))


def _nothing() -> None:
    """A CPU is done when it returns."""


def _shown(error: Exception, job: Job) -> str:
    from groundspeed.measure.bench import raised_at

    line = raised_at(error, Path(job.tree), Path(job.specs))
    shown = kind_and_line(error)[:400]
    return f"{shown} ({line})" if line else shown


if __name__ == "__main__":
    main()
