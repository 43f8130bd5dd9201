"""A rank: one process, one GPU or a share of the CPU, that does what the worker orders until it is ended."""

from __future__ import annotations

import contextlib
import os
import traceback
from multiprocessing.connection import Connection
from typing import NoReturn

import torch

from groundspeed.cores import cpu_threads
from groundspeed.measure.bench import DeviceLost, Fault, as_fault
from groundspeed.measure.ending import end_with
from groundspeed.measure.protocol import Job
from groundspeed.measure.ranks.answer import Answer
from groundspeed.measure.ranks.desk import Desk


def serve(line: Connection, log: int, parent: int, job: Job, rank: int, world: int) -> NoReturn:
    """Take orders from ``line`` until it is closed. What libraries print goes to the file descriptor ``log``."""
    end_with(parent)
    for stream in (1, 2):
        os.dup2(log, stream)
    if job.device == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, cpu_threads() // world))
    desk = Desk(job, rank, world)
    with contextlib.suppress(EOFError, OSError):  # the worker has ended, or ends this
        while True:
            order, given = line.recv()
            answer = _answer(desk, order, given, job.device)
            line.send(answer)
            if answer.over:
                break
    # No tear-down: it would wait for partners that are gone.
    os._exit(0)


def _answer(desk: Desk, order: str, given: tuple[object, ...], device: str) -> Answer:
    try:
        return Answer(getattr(desk, order)(*given))
    except DeviceLost as lost:
        return Answer(fault=Fault("crash", str(lost)), over=True)
    except Exception as error:
        traceback.print_exc()  # the log keeps where it happened, the row what happened
        try:
            return Answer(fault=as_fault(error, device, *desk.roots))
        except DeviceLost as lost:
            return Answer(fault=Fault("crash", str(lost)), over=True)
