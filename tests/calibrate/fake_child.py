"""A process of a calibration that measures nothing: it keeps to the protocol, writes down when it does what, and fails
as FAKE_FAULTS says: a JSON object from a process's number to the step at which it dies.
"""

from __future__ import annotations

import json
import os
import sys
import time

import msgspec

from groundspeed.calibrate.protocol import GO, Done, Found, Loaded, Loading, Ready, Step, Task
from groundspeed.calibrate.schema import Clocked, Reading
from groundspeed.records import Environment

_PAUSE = 0.05


def main() -> None:
    stream = os.fdopen(int(sys.argv[1]), "wb")

    def tell(event) -> None:
        stream.write(msgspec.json.encode(event) + b"\n")
        stream.flush()

    def note(what: str, task: Task) -> None:
        with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
            log.write(json.dumps([what, task.process, time.monotonic()]) + "\n")

    began = time.monotonic()
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=Task)
    fault = json.loads(os.environ.get("FAKE_FAULTS", "{}")).get(str(task.process))

    def may_die(step: str) -> None:
        if fault == step:
            print(f"dying at {step}", flush=True)
            os._exit(7)

    with open(os.environ["FAKE_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(["starting", task.process, began]) + "\n")
    time.sleep(_PAUSE)
    may_die("start")
    note("ready", task)
    tell(Ready(Environment(device="cpu", device_name="fake", python="3", os="any")))
    assert sys.stdin.buffer.readline() == GO
    note("measuring", task)
    for method in task.peers:
        tell(Step(method))
        may_die(method)
        tell(Found(readings=(Reading(method, "p", task.process, 1.0, 1, 0.1),)))
    time.sleep(_PAUSE)
    note("idle", task)
    tell(Loading())
    time.sleep(_PAUSE)
    may_die("load")
    tell(Loaded("clock"))
    assert sys.stdin.buffer.readline() == GO
    note("measuring", task)
    tell(Step("clock"))
    may_die("clock")
    time.sleep(_PAUSE)
    tell(Found(readings=(Reading("clock", "p", task.process, 2.0, 1, 0.1),)))
    tell(Found(clocked=(Clocked("p", task.process, 1980, 100.0),)))
    note("idle", task)
    tell(Done({"probes": 0.5}))


if __name__ == "__main__":
    main()
