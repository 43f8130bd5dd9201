"""Joining a Ray cluster: the one this machine belongs to, one at an address, or a new one of this machine alone."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import groundspeed
from groundspeed.errors import UserError, first_line

AUTO = "auto"
_CLIENT_PORT = 10001  # of ray://, unless another is named
_ANSWER_SECONDS = 10.0
_SHUTDOWN_SECONDS = 15.0
_HEAD_PATIENCE = "RAY_gcs_rpc_server_reconnect_timeout_s"
_STORE = 100 * 2**20  # bytes of Ray's object store on a cluster of this machine alone: records are small


@dataclass
class Connection:
    """A cluster that this process is connected to. ``stuck`` once it would not let go: its head is gone."""

    where: str
    stuck: bool = False

    def leave(self, status: int) -> int:
        """The exit status, returned; or the end of this process with it, where Ray would keep that from ending."""
        if self.stuck:
            _end(status)
        return status


@contextlib.contextmanager
def connected(address: str) -> Iterator[Connection]:
    """Connected to a cluster until the end.

    The package is shipped to every node as it is here. Raises UserError when Ray is not installed, and when there is
    no cluster at an address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Else Ray ends this process when the head is gone, with status 1, which of a gate means "regressed".
    os.environ.update({_HEAD_PATIENCE: "600"})
    ray = _ray()
    connection = Connection(_connect(ray, address))
    try:
        yield connection
    finally:
        ending = Thread(target=ray.shutdown, daemon=True)
        ending.start()
        ending.join(_SHUTDOWN_SECONDS)
        if ending.is_alive():
            connection.stuck = True
            atexit.register(_end, 2)  # of an error: whoever knows better calls ``leave``


def _end(status: int) -> None:
    """End this process without Ray's own clearing up, which waits for a head that is gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        install = f"{shlex.quote(sys.executable)} -m pip install 'groundspeed[fleet]'"
        raise UserError(f"--fleet needs ray; type: {install}") from error
    return ray


def _connect(ray: Any, address: str) -> str:
    if address != AUTO:
        _check_answers(address)
    package = Path(groundspeed.__file__).parent
    how = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "runtime_env": {"py_modules": [str(package)], "excludes": ["__pycache__", "*.pyc"]},
    }
    try:
        ray.init(address=address, **how)
    except ConnectionError as error:
        if address != AUTO:
            raise UserError(f"--fleet {address}: no cluster answers there: {first_line(error)}") from error
        return _own(ray, how)
    except (ValueError, RuntimeError, OSError) as error:
        raise UserError(f"--fleet {address}: {first_line(error)}") from error
    return f"the cluster at {address if address != AUTO else ray.get_runtime_context().gcs_address}"


def _check_answers(address: str) -> None:
    """Ray itself takes up to two minutes to say that nobody does. Raises UserError."""
    found = re.fullmatch(r"(?:(ray)://)?([^/:\s]+|\[[0-9a-fA-F:]+\])(?::([0-9]{1,5}))?/?", address)
    if found is None or not (found[1] or found[3]):
        raise UserError(f"--fleet {address}: expected auto, ray://HOST:PORT, or HOST:PORT of a cluster's head")
    port = int(found[3] or _CLIENT_PORT)
    try:
        socket.create_connection((found[2].strip("[]"), port), timeout=_ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"--fleet {address}: no cluster answers there ({error}); see docs/fleet.md") from error


def _own(ray: Any, how: dict[str, object]) -> str:
    from groundspeed.machine import visible_gpu_count

    ray.init(num_gpus=visible_gpu_count(), include_dashboard=False, object_store_memory=_STORE, **how)
    return "this machine alone: no cluster runs here"
