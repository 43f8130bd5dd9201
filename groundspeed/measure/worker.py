"""A worker: one process, one operator, all its implementations and cases, warm.

Forked from a nursery, or started by the supervisor as ``python -m groundspeed.measure.worker FD PARENT``: the job comes
on standard input, events go to the file descriptor FD, PARENT is the supervisor's process id. Whatever libraries print
goes to the log that the supervisor keeps.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import BinaryIO, NoReturn

import msgspec

from groundspeed.cores import CORES_BESIDE_OTHERS, cpu_threads
from groundspeed.measure import preload
from groundspeed.measure.ending import end_with
from groundspeed.measure.protocol import CaseDone, Channel, Done, Dying, Job, Phase, Ready, Row, Teller

_LOST, _REFUSED = 70, 2  # exit status of a worker whose device is gone, and of one that cannot do such a job


def main() -> NoReturn:
    end_with(int(sys.argv[2]))
    serve(int(sys.argv[1]), sys.stdin.buffer)


def serve(events: int, jobs: BinaryIO) -> NoReturn:
    """Read a job, do it, tell of it on the descriptor ``events``, and end this process."""
    began = perf_counter()
    os.set_inheritable(events, False)
    channel = Channel(os.fdopen(events, "wb"))
    channel.send(Phase("start", 180.0))
    # Before the job is read: a worker that was started early has its imports behind it when its turn comes.
    preload.work()
    import torch

    from groundspeed.errors import UserError
    from groundspeed.measure.bench import DeviceLost
    from groundspeed.measure.opening import Spoiled

    torch.set_grad_enabled(False)
    waiting = perf_counter()
    job = msgspec.json.decode(jobs.read(), type=Job)
    began += perf_counter() - waiting
    try:
        channel.send(Done(work(job, channel, began)))
        status = 0
    except DeviceLost as lost:
        channel.send(Dying(str(lost)))
        status = _LOST
    except Spoiled as spoiled:
        channel.send(Dying(spoiled.reason, "error"))
        status = _REFUSED
    except UserError as error:
        channel.send(Dying(str(error)))
        status = _REFUSED
    sys.stdout.flush()
    sys.stderr.flush()
    # No tear-down: it would touch a lost device, costs seconds with torch, and waits for threads that never end.
    os._exit(status)


def work(job: Job, channel: Channel, began: float) -> dict[str, float]:
    """Do the job. Returns seconds of wall time by phase, the first of them since ``began``."""
    import torch

    from groundspeed.guests import tree_with_guests
    from groundspeed.measure.attempt import Attempt, Steps
    from groundspeed.measure.bench import Fault, fault_row, memory_shortage
    from groundspeed.measure.case import measure_case
    from groundspeed.measure.compiler_use import uses_compiler
    from groundspeed.measure.contender import Contender
    from groundspeed.measure.device import make_bench, session_ceilings
    from groundspeed.measure.environment import describe, free_memory
    from groundspeed.measure.judging import check_case
    from groundspeed.measure.opening import entries, open_all
    from groundspeed.measure.rehearsal import rehearse_case
    from groundspeed.measure.sides import adopt_tolerance, share_tunings, takes_part
    from groundspeed.measure.turns import HAD, WAITED, Turns, autotuners_wait
    from groundspeed.tree import Tree

    if job.device == "cpu":
        torch.set_num_threads(cpu_threads())  # else it is whatever torch or its libraries find
    specs = tree_with_guests(Path(job.specs))
    tree = specs if job.specs == job.tree else Tree(Path(job.tree), specs=specs)
    chosen = [one for _, _, one in entries(job, tree)]
    spec = adopt_tolerance(tree.spec(job.operator), job.tolerance)
    compiler = uses_compiler(file for one in chosen for file in one.files)
    if compiler:
        _import_compiler(job.device, forks=bool(spec.world), alone=not (job.turns or job.check_only))
    if spec.world:
        from groundspeed.measure.ranks.work import work as spread

        spent = {"start": perf_counter() - began}
        spread(job, tree, spec, channel, spent)
        return spent
    teller = Teller(channel)
    bench = make_bench(job, teller.begin)
    seconds = bench.seconds
    seconds["start"] = perf_counter() - began

    start = perf_counter()
    ceilings = session_ceilings(job, spec, bench.timer)
    channel.send(Ready(describe(job.device, {one.backend for one in chosen}), ceilings))
    seconds["ceilings"] = perf_counter() - start

    start = perf_counter()
    opened = open_all(job, tree, lambda name: channel.send(Phase("load", 900.0, -1, name)))
    seconds["load"] = perf_counter() - start

    opened = share_tunings(opened, job.tunings)
    contenders = [one for one in opened.values() if isinstance(one, Contender)]
    steps: Steps = check_case if job.check_only else measure_case
    turns = Turns(Path(job.turns), teller.again) if job.turns else None
    if turns:
        autotuners_wait(turns, compiler)
        steps = partial(rehearse_case, turns)
    for number, one in enumerate(job.case_list()):
        teller.case = number
        digest = tree.case_digest(job.operator, one)
        part = takes_part(job, one)
        faults = {name: fault for name, fault in opened.items() if isinstance(fault, Fault) and name in part}
        shortage = memory_shortage(spec, one, free_memory(job.device))
        if shortage:
            faults |= {contender.name: Fault(None, shortage) for contender in contenders if contender.name in part}
        for name, fault in faults.items():
            channel.send(Row(number, fault_row(name, one, digest, fault)))
        able = [] if shortage else [contender for contender in contenders if contender.name in part]
        asked = dataclasses.replace(bench, energy=number in job.energy)
        measure = Attempt(steps, asked, teller, job.operator, spec, one, digest)
        if job.solo and number == 0:
            for contender in able:
                measure.alone(contender)
        for row in measure.rows(able):
            channel.send(Row(number, row))
        channel.send(CaseDone(number))
        if job.device == "cuda":
            torch.cuda.empty_cache()
    return {**seconds, HAD: turns.had_s, WAITED: turns.waited_s} if turns else dict(seconds)


def _import_compiler(device: str, forks: bool, alone: bool) -> None:
    """Else the first case that is compiled would pay for all.

    A worker that is not ``alone`` leaves cores to others: Inductor's own processes are for one that waits for them.

    Where ranks are to be forked they import most of it themselves: that may initialise CUDA (PyTorch asks the runtime
    whether there are devices), which forked processes cannot use after their parent.
    """
    if device != "cuda":
        preload.compiler()
    elif forks:
        preload.front_end()
    else:
        preload.compiler()
        preload.compiling_processes(None if alone else CORES_BESIDE_OTHERS)


if __name__ == "__main__":
    main()
