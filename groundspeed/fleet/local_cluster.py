"""A Ray cluster of several nodes on this machine, for tests and trials: each has a CPU, or GPUs that are made up."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

STORE = 80 * 2**20  # bytes of each node's object store
# A node that died is known to be dead after about two seconds, not the twenty of a real network.
QUICK = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "500",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
}


class LocalCluster:
    """A head without room for stations, and nodes with room for one each. Raises ModuleNotFoundError without Ray.

    With ``client`` it listens at a ray:// address too.
    """

    def __init__(self, nodes: int, client: bool = False) -> None:
        os.environ.update(QUICK)
        from ray.cluster_utils import Cluster

        head: dict[str, Any] = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
        self.client = ""
        if client:
            head["ray_client_server_port"] = port = _free_port()
            self.client = f"ray://127.0.0.1:{port}"
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []
        for _ in range(nodes):
            self.add()

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int = 1, gpus: int = 0, kind: str = "") -> Any:
        """A node more. Its GPUs are there for Ray alone."""
        resources = {f"accelerator_type:{kind}": 1} if kind else {}
        node = self._cluster.add_node(num_cpus=cpus, num_gpus=gpus, resources=resources, object_store_memory=STORE)
        self.nodes.append(node)
        return node

    def remove(self, node: Any) -> None:
        """Take a node away, as a lost host is: without a word."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@contextlib.contextmanager
def local_cluster(nodes: int, client: bool = False) -> Iterator[LocalCluster]:
    """One that ends with the block."""
    cluster = LocalCluster(nodes, client)
    try:
        yield cluster
    finally:
        cluster.close()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def descendants(ancestor: int) -> dict[int, str]:
    """Process id → command line of whatever a process started, and what that started in turn."""
    parents: dict[int, int] = {}
    lines: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while it was looked at
        parents[int(folder.name)], lines[int(folder.name)] = parent, line
    return {pid: line for pid, line in lines.items() if line and _descends(pid, ancestor, parents)}


def _descends(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
