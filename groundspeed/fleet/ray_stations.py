"""Stations as Ray actors: one a GPU, which it has to itself, or one a node where no node has a GPU.

The only module that imports Ray; imported when a fleet is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from groundspeed.errors import UserError
from groundspeed.fleet.driver import HeadLost
from groundspeed.fleet.ground import machine_here
from groundspeed.fleet.station import Make, Station
from groundspeed.fleet.work import Finished, Happening, Look, Lost, Opened, Piece

_NODES_EVERY = 1.0  # seconds
_LOOK_EVERY = 0.5
_HEAD_SILENT = 30.0  # seconds; Ray ends the process by itself after 60
_NODE_ANSWERS = 120.0
_MOST_OPENINGS = 3  # stations in a row that died on one seat before they did anything


@dataclass(frozen=True)
class Node:
    """A node of the cluster that is alive: its id, its host's name, and how many stations it has room for."""

    id: str
    host: str
    gpus: int
    cpus: int


@dataclass
class _Seat:
    """One seat, and the station on it if there is one. ``awaited`` is what is asked of it: about, or work."""

    node: Node
    actor: Any = None
    awaited: Any = None
    opened: bool = False
    failures: int = 0
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
    without
        Hosts that get no station.
    """

    def __init__(
        self,
        make: Make,
        argument: object,
        device: str,
        environment: Mapping[str, str],
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._make, self._device, self._without = make, device, without
        self._environment = dict(environment)
        self._argument = ray.put(argument)  # once, however many stations there are
        self._actor_class = ray.remote(Station)
        self._seats: dict[str, _Seat] = {}
        self._watch = _Watch()
        self._looked = 0.0

    def poll(self, seconds: float) -> list[Happening]:
        """Raises HeadLost when the cluster has been silent for too long."""
        nodes = self._watch.nodes()
        happened = self._close_left(nodes)
        self._open_new(nodes)
        awaited = {seat.awaited: name for name, seat in self._seats.items() if seat.awaited is not None}
        if awaited:
            ready, _ = ray.wait(list(awaited), num_returns=len(awaited), timeout=0)
            if not ready:
                ready, _ = ray.wait(list(awaited), num_returns=1, timeout=seconds)
            happened += self._take_all([awaited[reference] for reference in ready])
        else:
            self._watch.wait(seconds)
        return happened

    def begin(self, seat: str, piece: Piece) -> None:
        one = self._seats[seat]
        one.look, one.looked, one.busy = Look(piece.name), None, True
        one.awaited = one.actor.work.remote(piece.name, piece.order)

    def retire(self, seat: str) -> None:
        self._seats[seat].retired = True
        self._seats[seat].awaited = None

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
        self._watch.stop()
        for seat in self._seats.values():
            if seat.actor is not None:
                ray.kill(seat.actor)
        self._seats.clear()

    def _open_new(self, nodes: Mapping[str, Node]) -> None:
        for node in nodes.values():
            if node.host in self._without:
                continue
            rooms = node.gpus if self._device == "cuda" else min(node.cpus, 1)
            for room in range(rooms):
                seat = self._seats.setdefault(f"{node.id}/{room}", _Seat(node))
                if seat.actor is None and not seat.retired:
                    self._open(f"{node.id[:6]}/{room}", seat)

    def _open(self, name: str, seat: _Seat) -> None:
        """Ask for a station on its node, whenever there is room: another driver may have it."""
        whole = {"num_gpus": 1, "num_cpus": 0} if self._device == "cuda" else {"num_cpus": seat.node.cpus}
        seat.opened, seat.busy, seat.looked = False, False, None
        seat.actor = self._actor_class.options(
            **whole,
            max_concurrency=2,  # work, and a look at how far it is
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(seat.node.id, soft=False),
        ).remote(self._make, self._argument, name, self._environment)
        seat.awaited = seat.actor.about.remote()

    def _close_left(self, nodes: Mapping[str, Node]) -> list[Happening]:
        """Seats on nodes that are gone."""
        gone = [name for name, seat in self._seats.items() if seat.node.id not in nodes]
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
            self._watch.ask_anew()
            happened += [self._lose(name, error) for name, error in errors.items()]
        return happened

    def _take(self, name: str) -> Happening:
        seat = self._seats[name]
        value = ray.get(seat.awaited)
        seat.awaited = None
        seat.failures = 0 if seat.opened else seat.failures
        if seat.opened:
            seat.busy = False
            return Finished(name, value)
        seat.opened = True
        return Opened(name, value)

    def _lose(self, name: str, error: RayError) -> Happening:
        seat = self._seats[name]
        left = not self._watch.is_alive(seat.node.id)
        seat.failures += 1
        seat.actor = seat.awaited = None
        seat.busy = False
        why = "its node left the fleet" if left else "its process died"
        if not seat.opened and not left:
            why = f"no station could be opened: {_first_line(error)}"
        seat.retired = seat.failures >= _MOST_OPENINGS
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


class _Watch:
    """Asks the head which nodes are alive, in a thread of its own: the question may never be answered."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._heard = monotonic()
        self._lock = Lock()
        self._stopped = Event()
        self._news = Event()
        self._ask()
        Thread(target=self._go_on, daemon=True, name="nodes").start()

    def nodes(self) -> dict[str, Node]:
        """By id. Raises HeadLost when the head has been silent for too long."""
        with self._lock:
            silent = monotonic() - self._heard
            if silent > _HEAD_SILENT:
                raise HeadLost(f"the cluster's head has not answered for {silent:.0f} s")
            return dict(self._nodes)

    def ask_anew(self) -> None:
        """Wait a moment for an answer younger than this call: a node that is gone takes its stations along."""
        self._news.clear()
        self._news.wait(2 * _NODES_EVERY)

    def is_alive(self, node: str) -> bool:
        with self._lock:
            return node in self._nodes

    def wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def stop(self) -> None:
        self._stopped.set()

    def _go_on(self) -> None:
        while not self._stopped.wait(_NODES_EVERY):
            try:
                self._ask()
            except Exception:  # noqa: S112 - of any kind: what counts is that there was no answer
                continue

    def _ask(self) -> None:
        found = _alive()
        with self._lock:
            self._nodes, self._heard = found, monotonic()
        self._news.set()


def _alive() -> dict[str, Node]:
    """The cluster's nodes, by id. May wait for ever where the head is gone."""
    found = {}
    for node in ray.nodes():
        if node["Alive"]:
            has = node["Resources"]
            host = str(node["NodeManagerHostname"])
            found[node["NodeID"]] = Node(node["NodeID"], host, int(has.get("GPU", 0)), int(has.get("CPU", 0)))
    return found


def machines(device: str, without: frozenset[str]) -> dict[str, int]:
    """Kinds of machine of the cluster, and how many stations each has room for, busy ones too.

    Asked of each node by a task that takes none of its resources. Raises UserError when a node does not answer.
    """
    ask = ray.remote(machine_here)
    asked = {}
    for node in _alive().values():
        rooms = node.gpus if device == "cuda" else min(node.cpus, 1)
        if rooms and node.host not in without:
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            task = ask.options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
            asked[task.remote(device)] = node, rooms
    found: dict[str, int] = {}
    for reference, (node, rooms) in asked.items():
        try:
            name = ray.get(reference, timeout=_NODE_ANSWERS)
        except RayError as error:
            raise UserError(
                f"{node.host} does not answer: {_first_line(error)}; add --fleet-without {node.host}"
            ) from error
        found[name] = found.get(name, 0) + rooms
    return found


def cluster_device() -> str:
    """What a fleet measures on: GROUNDSPEED_DEVICE, else "cuda" where any node has a GPU."""
    named = os.environ.get("GROUNDSPEED_DEVICE")
    if named:
        return named
    return "cuda" if ray.cluster_resources().get("GPU", 0) else "cpu"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
