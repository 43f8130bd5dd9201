"""``groundspeed dash``: serve the dashboard."""

from __future__ import annotations

import argparse
import ipaddress
import sys
from pathlib import Path

from dashboard.where import checkout, results_folder
from groundspeed.errors import UserError

HERE = ("127.0.0.1", "::1", "localhost")
THREADS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``groundspeed dash``."""
    parser.description = "Browse results: speedups, histories, rooflines, regressions."
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results are (default: results/)")
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=int, default=8050, help="port to bind (default: 8050)")
    parser.add_argument(
        "--base-path", default="/", help="path below which a reverse proxy hands requests on (default: /)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted. Raises UserError for what the user can mend."""
    from waitress import create_server

    from dashboard.app import make_app
    from dashboard.store import open_store

    base = base_path(args.base_path)
    results = results_folder(args)
    warning = exposure(args.host)
    if warning:
        print(warning, file=sys.stderr)
    app = make_app(open_store(results), base, checkout(args, results))
    try:
        server = create_server(app.server, host=args.host, port=args.port, threads=THREADS, ident="groundspeed")
    except OSError as error:
        raise UserError(
            f"cannot listen on {args.host}:{args.port}: {error.strerror}; try --port {args.port + 1}"
        ) from error
    print(
        f"groundspeed dash: {address(args.host, args.port, base)}  (results: {results}; Ctrl-C ends it)",
        flush=True,
    )
    try:
        server.run()
    except KeyboardInterrupt:
        server.close()
    return 0


def base_path(text: str) -> str:
    """A base path with a slash at both ends. Raises UserError for anything but plain path segments."""
    inner = text.strip("/")
    if any(character in inner for character in "?#\\ %<>\"'") or ".." in inner.split("/"):
        raise UserError(f"--base-path {text!r}: expected a plain path such as /bench/")
    return f"/{inner}/" if inner else "/"


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
