"""A station: the process that holds one GPU of a fleet and works off what it is handed, one piece at a time."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from time import monotonic

from groundspeed.errors import UserError
from groundspeed.fleet.work import About, Bench, Ended, Look, Unfit

_SET_BY_RAY = "OMP_NUM_THREADS"  # to the CPUs of an actor's resources: one thread, where a local run has all

Make = Callable[[object, str], Bench]
"""Makes a station's bench of what all stations are given and of the seat's name."""


class Station:
    """Becomes an actor. ``look`` is called while ``work`` runs, from another thread."""

    def __init__(self, make: Make, argument: object, seat: str, environment: Mapping[str, str]) -> None:
        """``environment`` is what the driver's has of what matters here."""
        os.environ.pop(_SET_BY_RAY, None)
        os.environ.update(environment)
        self._node = _node()
        self._bench = make(argument, seat)
        self._look = Look()

    def about(self) -> tuple[str, About]:
        """The id of Ray's node, and what the bench says."""
        return self._node, self._bench.about()

    def look(self) -> Look:
        return self._look

    def work(self, name: str, order: object) -> Ended:
        """Never raises: an error is an ending, so that whatever does raise is the fleet's."""
        began = monotonic()

        def tell(said: str, share: float) -> None:
            self._look = Look(name, said, share)

        tell("starting", 0.0)
        try:
            return Ended("ok", self._bench.work(order, tell), seconds=monotonic() - began)
        except Unfit as unfit:
            return Ended("unfit", reason=str(unfit), seconds=monotonic() - began)
        except UserError as error:
            return Ended("problem", reason=str(error), seconds=monotonic() - began)
        except Exception as error:
            said = traceback.format_exception_only(error)[-1].strip()
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{said} ({os.path.basename(where.filename)}:{where.lineno})"
            return Ended("raised", reason=reason, seconds=monotonic() - began)


def _node() -> str:
    """Ray's id of the node that this actor is on; empty outside Ray."""
    ray = sys.modules.get("ray")
    return str(ray.get_runtime_context().get_node_id()) if ray and ray.is_initialized() else ""
