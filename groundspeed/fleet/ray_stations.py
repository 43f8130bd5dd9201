"""Stations as Ray actors: one a GPU, which it has to itself, or one a node where no node has a GPU.

This module and ray_nodes are the only ones that import Ray; they are imported when a fleet is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from groundspeed.errors import first_line
from groundspeed.fleet.driver import HeadLost
from groundspeed.fleet.ray_nodes import Node, NodeWatch
from groundspeed.fleet.station import Make, Station
from groundspeed.fleet.work import Finished, Happening, Look, Lost, Opened, Piece

_LOOK_EVERY = 0.5  # seconds
_MOST_FAILURES = 12  # stations of one kind in a row that died before any of them ended a piece


@dataclass
class _Seat:
    """A station, or the place for one that is asked for. ``awaited`` is what is asked of it: about, or work.

    kind
        Of its GPU, or the id of its node where that has none.
    node
        The id of the node that it is on, once it is there.
    """

    kind: str
    node: str = ""
    actor: Any = None
    awaited: Any = None
    opened: bool = False
    retired: bool = False
    looked: Any = None
    look: Look = field(default_factory=Look)
    busy: bool = False


class RayStations:
    """The stations of a cluster that this process is connected to; groundspeed.fleet.connect connects it.

    make, argument
        What makes the bench of each station.
    device
        "cuda" for a station a GPU, "cpu" for one a node, which takes all of the node's CPUs.
    most
        Stations of one kind at a time: more than there is work for would keep GPUs from others.
    without
        Hosts that get no station.

    Which of the free GPUs a station gets is Ray's to say: this driver does not know which ones others hold.
    """

    def __init__(
        self,
        make: Make,
        argument: object,
        device: str,
        most: int,
        environment: Mapping[str, str],
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._make, self._device, self._most, self._without = make, device, most, without
        self._environment = dict(environment)
        self._argument = ray.put(argument)  # once, however many stations there are
        self._actor_class = ray.remote(Station)
        self._seats: dict[str, _Seat] = {}
        self._failures: Counter[str] = Counter()  # by kind, since the last station of it that did something
        self._number = count(1)
        self._closed_to_new = False
        self._watch = NodeWatch()
        self._looked = 0.0

    def poll(self, seconds: float) -> list[Happening]:
        """Raises HeadLost when the cluster has been silent for too long."""
        try:
            return self._poll(seconds)
        except ConnectionError as error:  # of ray://
            raise HeadLost(f"the connection to the cluster is gone: {first_line(error)}") from error

    def _poll(self, seconds: float) -> list[Happening]:
        nodes = self._watch.nodes()
        happened = self._drop_left(nodes)
        self._ask_for(nodes)
        awaited = {seat.awaited: name for name, seat in self._seats.items() if seat.awaited is not None}
        if not awaited:
            self._watch.wait(seconds)
            return happened
        ready, _ = ray.wait(list(awaited), num_returns=len(awaited), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(awaited), num_returns=1, timeout=seconds)
        return happened + self._take_all([awaited[reference] for reference in ready])

    def begin(self, seat: str, piece: Piece) -> None:
        one = self._seats[seat]
        one.look, one.looked, one.busy = Look(piece.name), None, True
        one.awaited = one.actor.work.remote(piece.name, piece.order)

    def retire(self, seat: str) -> None:
        if seat in self._seats:
            self._seats[seat].retired, self._seats[seat].awaited = True, None

    def release(self, seat: str) -> None:
        self._closed_to_new = True
        ray.kill(self._seats.pop(seat).actor)
        for name in [name for name, one in self._seats.items() if not one.opened]:
            ray.kill(self._seats.pop(name).actor)

    def recall(self) -> None:
        self._closed_to_new = False

    def looks(self) -> dict[str, Look]:
        busy = {name: seat for name, seat in self._seats.items() if seat.busy and seat.actor is not None}
        asked = {seat.looked: seat for seat in busy.values() if seat.looked is not None}
        if asked:
            ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
            for reference in ready:
                self._take_look(asked[reference], reference)
        if monotonic() - self._looked >= _LOOK_EVERY:
            self._looked = monotonic()
            for seat in busy.values():
                if seat.looked is None:
                    seat.looked = seat.actor.look.remote()
        return {name: seat.look for name, seat in busy.items()}

    def waiting(self) -> int:
        return sum(not seat.opened and not seat.retired for seat in self._seats.values())

    def close(self) -> None:
        answers = self._watch.answers()
        self._watch.stop()
        if not answers:
            return  # nobody would hear of it; the stations end with their nodes, and those without a head
        for seat in self._seats.values():
            ray.kill(seat.actor)
        self._seats.clear()

    def _ask_for(self, nodes: Mapping[str, Node]) -> None:
        """As many stations of each kind as there is room and work for; those too many that have not come are dropped.

        A GPU of which another driver has the use counts: it will be free some time.
        """
        room: Counter[str] = Counter()
        for node in nodes.values():
            if node.host not in self._without:
                room[node.kind if self._device == "cuda" else node.id] += node.rooms(self._device)
        shut = [node.id for node in nodes.values() if node.host in self._without]
        mine: dict[str, list[str]] = {}
        held: Counter[str] = Counter(seat.kind for seat in self._seats.values() if seat.retired)
        for name, seat in self._seats.items():
            if not seat.retired:
                mine.setdefault(seat.kind, []).append(name)
        for kind in room.keys() | mine.keys():
            names = mine.get(kind, [])
            wanted = min(room[kind] - held[kind], self._most)
            short = wanted > len(names) and not self._closed_to_new and self._failures[kind] < _MOST_FAILURES
            if short and self._watch.answers():  # an actor that is made while the head is gone is waited for for ever
                for _ in range(wanted - len(names)):
                    self._open(kind, nodes, shut)
            for name in [name for name in names if not self._seats[name].opened][: max(0, len(names) - wanted)]:
                ray.kill(self._seats.pop(name).actor)

    def _open(self, kind: str, nodes: Mapping[str, Node], shut: Sequence[str]) -> None:
        options: dict[str, Any] = {"max_concurrency": 2, "max_restarts": 0}  # work, and a look at how far it is
        if self._device == "cuda":
            options |= {"num_gpus": 1, "num_cpus": 0}
            options |= {"accelerator_type": kind} if kind else {}
            options |= {"label_selector": {"ray.io/node-id": f"!in({','.join(shut)})"}} if shut else {}
        else:
            options["num_cpus"] = nodes[kind].cpus
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(kind, soft=False)
        name = f"{kind[:8] or 'GPU'}/{next(self._number)}"
        seat = _Seat(kind)
        seat.actor = self._actor_class.options(**options).remote(self._make, self._argument, name, self._environment)
        seat.awaited = seat.actor.about.remote()
        self._seats[name] = seat

    def _drop_left(self, nodes: Mapping[str, Node]) -> list[Happening]:
        """Stations on nodes that are gone, and places for some on nodes that are."""
        cpu = self._device != "cuda"
        gone = [
            name for name, one in self._seats.items() if (one.kind if cpu else one.node or None) not in (None, *nodes)
        ]
        for name in gone:
            del self._seats[name]
        return [Lost(name, "its node left the fleet", node_left=True) for name in gone]

    def _take_all(self, names: list[str]) -> list[Happening]:
        happened: list[Happening] = []
        errors: dict[str, RayError] = {}
        for name in names:
            try:
                happened.append(self._take(name))
            except RayError as error:
                errors[name] = error
        if errors:
            self._watch.answers()
            happened += [self._lose(name, error) for name, error in errors.items()]
        return happened

    def _take(self, name: str) -> Happening:
        seat = self._seats[name]
        value = ray.get(seat.awaited)
        seat.awaited = None
        if seat.opened:
            self._failures[seat.kind] = 0
            seat.busy = False
            return Finished(name, value)
        seat.opened = True
        seat.node, about = value
        return Opened(name, about)

    def _lose(self, name: str, error: RayError) -> Happening:
        seat = self._seats.pop(name)
        node = seat.node or (seat.kind if self._device != "cuda" else "")
        left = bool(node) and not self._watch.is_alive(node)
        self._failures[seat.kind] += not left
        why = "its node left the fleet" if left else "its process died"
        if not seat.opened and not left:
            why = f"no station could be opened: {first_line(error)}"
        return Lost(name, why, node_left=left)

    @staticmethod
    def _take_look(seat: _Seat, reference: Any) -> None:
        seat.looked = None
        try:
            look: Look = ray.get(reference)
        except RayError:
            return  # the same is found where its work is awaited
        if look.name == seat.look.name:
            seat.look = look
