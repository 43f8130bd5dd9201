"""Places to push to, for tests: a real S3-compatible server, and real git repositories."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECRET = "correct-horse-battery-staple"

IDENTITY = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


@contextmanager
def s3_server(**environment: str) -> Iterator[str]:
    """moto's server in a process of its own; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while not _answers(f"{address}/moto-api/data.json"):
            assert server.poll() is None and time.monotonic() < end, "moto's server did not start"
            time.sleep(0.05)
        yield address
    finally:
        server.terminate()
        server.wait(20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def credentials(address: str) -> dict[str, str]:
    """The environment in which s3:// means that server."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "tester",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def make_bucket(address: str) -> str:
    """A new, empty bucket; its name."""
    name = f"results-{uuid.uuid4().hex[:8]}"
    request = urllib.request.Request(f"{address}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=20):
        return name


def git(folder: Path, *arguments: str) -> str:
    """A git command that must succeed; its output."""
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **IDENTITY})
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def groundspeed(folder: Path, *typed: str, **environment: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "groundspeed", *typed],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
