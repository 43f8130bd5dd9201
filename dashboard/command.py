"""``groundspeed dash``: serve the dashboard."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dashboard.where import checkout, checkout_of, results_folder
from groundspeed.errors import UserError
from groundspeed.locations.mirror import synchronised
from groundspeed.locations.place import READ_HELP, Location, place

HERE = ("127.0.0.1", "::1", "localhost")
THREADS = 8
FOLLOW_S = 30.0  # between two looks at a location


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed dash``."""
    parser.description = "Browse results: speedups, histories, rooflines, regressions."
    parser.add_argument("--results", type=place, metavar="PLACE", help=READ_HELP)
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=int, default=8050, help="port to bind (default: 8050); 0 takes a free one")
    parser.add_argument(
        "--base-path", default="/", help="path below which a reverse proxy hands requests on (default: /)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Raises UserError for what the user can mend."""
    from waitress import create_server

    from dashboard.app import make_app
    from dashboard.store import open_store

    base = base_path(args.base_path)
    check_address(args.host, args.port)
    results = results_folder(args)
    warning = exposure(args.host)
    if warning:
        print(warning, file=sys.stderr)
    app = make_app(open_store(results), base, checkout(args, results))
    follow(args, results)
    try:
        server = create_server(app.server, host=args.host, port=args.port, threads=THREADS, ident="groundspeed")
    except OSError as error:
        other = "--host" if error.errno == errno.EADDRNOTAVAIL else "--port"
        reason = f"cannot listen on {args.host}:{args.port}: {error.strerror}"
        raise UserError(f"{reason}; pass another {other}{' (0 takes a free one)' * (other == '--port')}") from error
    where = address(args.host, port_of(server), base)
    print(f"groundspeed dash: {where}  (results: {args.results or results}; Ctrl-C ends it)", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        server.close()
    return 0


def follow(args: argparse.Namespace, results: Path) -> None:
    """Keep the copy of a location up to date, and put there what is noted here about changes; nothing of a folder."""
    given: Path | Location | None = args.results
    if given is None or isinstance(given, Path):
        return
    root = checkout_of(args)

    def again() -> None:
        failed = ""
        while True:
            time.sleep(FOLLOW_S)
            try:
                synchronised(given, root)
                failed = ""
            except (UserError, OSError) as error:
                if str(error) != failed:  # told once, not every minute
                    failed = str(error)
                    print(f"groundspeed dash: {error}; shown is what was read before", file=sys.stderr, flush=True)

    threading.Thread(target=again, daemon=True, name="groundspeed-follow").start()


def base_path(text: str) -> str:
    """A base path with a slash at both ends. Raises UserError for anything but plain path segments."""
    inner = text.strip("/")
    if any(character in inner for character in "?#\\ %<>\"'") or ".." in inner.split("/"):
        raise UserError(f"--base-path {text!r}: expected a plain path such as /bench/")
    return f"/{inner}/" if inner else "/"


def check_address(host: str, port: int) -> None:
    """Raises UserError for a port that is none and a host that no address is known of."""
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: expected 0 to 65535")
    if not host:
        raise UserError("--host '': expected a name or an address, such as 127.0.0.1")
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UserError(f"--host {host}: no such host ({error.strerror})") from error
    except UnicodeError as error:
        raise UserError(f"--host {host}: no name of a host") from error


def port_of(server: Any) -> int:
    """The port a waitress server listens on; the first one's where the host has several addresses."""
    listening = getattr(server, "effective_listen", None)
    return int(listening[0][1] if listening else server.effective_port)


def exposure(host: str) -> str:
    """A warning when others can reach the address; "" for this machine's own."""
    try:
        local = host in HERE or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if local:
        return ""
    return (
        f"groundspeed dash: warning: {host} can be reached from other machines, and whoever reaches it can read all "
        "results and write triage notes; there is no login"
    )


def address(host: str, port: int, base: str) -> str:
    """The address to open."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}{base}"
