"""The nodes of a Ray cluster: which are alive, what they have, and what their machines are called."""

from __future__ import annotations

import os
from dataclasses import dataclass
from threading import Event, Lock, Thread
from time import monotonic

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from groundspeed.errors import UserError, first_line
from groundspeed.fleet.driver import HeadLost
from groundspeed.fleet.ground import machine_here

_KIND = "accelerator_type:"  # begins the name of the resource by which Ray tells kinds of GPU apart
_NODES_EVERY = 1.0  # seconds
_HEAD_SILENT = 30.0  # seconds; Ray ends the process by itself after 60
_NODE_ANSWERS = 120.0


@dataclass(frozen=True)
class Node:
    """A node that is alive: its id, its host's name, Ray's name for its kind of GPU, and what it has."""

    id: str
    host: str
    kind: str
    gpus: int
    cpus: int

    def rooms(self, device: str) -> int:
        """How many stations it has room for."""
        return self.gpus if device == "cuda" else min(self.cpus, 1)


class NodeWatch:
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

    def answers(self) -> bool:
        """Whether the head answers within a moment. What is known of nodes is younger than this call then."""
        self._news.clear()
        return self._news.wait(2 * _NODES_EVERY)

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
        found = alive()
        with self._lock:
            self._nodes, self._heard = found, monotonic()
        self._news.set()


def alive() -> dict[str, Node]:
    """The cluster's nodes, by id. May wait for ever where the head is gone."""
    found = {}
    for node in ray.nodes():
        if node["Alive"]:
            has = node["Resources"]
            kinds = sorted(name.removeprefix(_KIND) for name in has if name.startswith(_KIND))
            found[node["NodeID"]] = Node(
                id=node["NodeID"],
                host=str(node["NodeManagerHostname"]),
                kind=kinds[0] if kinds else "",
                gpus=int(has.get("GPU", 0)),
                cpus=int(has.get("CPU", 0)),
            )
    return found


@dataclass(frozen=True)
class Machines:
    """Kinds of machine in a cluster: how many stations each has room for, busy ones too, and on which hosts."""

    rooms: dict[str, int]
    hosts: dict[str, frozenset[str]]

    def chosen(self, named: str | None) -> str:
        """The machine that was named, or the only one. Raises UserError where there is no telling."""
        known = ", ".join(f"{name} ({count})" for name, count in sorted(self.rooms.items())) or "none"
        if named:
            if named not in self.rooms:
                raise UserError(f"--fleet-machine {named}: the fleet has {known}")
            return named
        if len(self.rooms) != 1:
            raise UserError(f"the fleet has {known}: one kind of machine judges, name it by --fleet-machine NAME")
        return next(iter(self.rooms))

    def others(self, machine: str) -> frozenset[str]:
        """Hosts of other machines."""
        return frozenset(host for name, hosts in self.hosts.items() if name != machine for host in hosts)


def machines(device: str, without: frozenset[str]) -> Machines:
    """Asked of each node by a task that takes none of its resources. Raises UserError when one does not answer."""
    ask = ray.remote(machine_here)
    asked = {}
    for node in alive().values():
        rooms = node.rooms(device)
        if rooms and node.host not in without:
            strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
            task = ask.options(num_cpus=0, max_retries=0, scheduling_strategy=strategy)
            asked[task.remote(device)] = node, rooms
    found = Machines({}, {})
    for reference, (node, rooms) in asked.items():
        try:
            name = ray.get(reference, timeout=_NODE_ANSWERS)
        except RayError as error:
            why = f"{node.host} does not answer: {first_line(error)}"
            raise UserError(f"{why}; add --fleet-without {node.host}") from error
        found.rooms[name] = found.rooms.get(name, 0) + rooms
        found.hosts[name] = found.hosts.get(name, frozenset()) | {node.host}
    return found


def cluster_device() -> str:
    """What a fleet measures on: GROUNDSPEED_DEVICE, else "cuda" where any node has a GPU."""
    named = os.environ.get("GROUNDSPEED_DEVICE")
    if named:
        return named
    return "cuda" if ray.cluster_resources().get("GPU", 0) else "cpu"
