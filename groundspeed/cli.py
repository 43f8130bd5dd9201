"""The command ``groundspeed``: finds the command's module, and turns user errors into one line and exit status 2.

Only the chosen command's module is imported, and it imports what is heavy inside: ``groundspeed list`` must answer
in a fraction of the second that ``import torch`` takes.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO

from groundspeed import __version__, interrupts
from groundspeed.errors import OutputLost, UserError

OK, FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, interrupts.STATUS, 141


@dataclass(frozen=True)
class Command:
    """A module with ``add_arguments(parser)`` and ``run(arguments) -> exit status``, and the command's line of help."""

    module: str
    help: str
    extra: str = ""  # the extra of the package that it needs


COMMANDS = {
    "list": Command("groundspeed.commands.list", "what there is to measure: operators, implementations, cases"),
    "check": Command("groundspeed.commands.check", "check implementations against the float64 reference"),
    "run": Command("groundspeed.commands.run", "measure, and print the speedup table"),
    "merge": Command("groundspeed.commands.merge", "put the shards of one run together"),
    "costs": Command("groundspeed.commands.costs", "print what fleets' GPU-seconds went to"),
    "table": Command("groundspeed.commands.table", "print the speedup table of stored records"),
    "claims": Command("groundspeed.commands.claims", "print published figures beside ours"),
    "new": Command("groundspeed.commands.new", "write the files of a new operator or implementation"),
    "machine": Command("groundspeed.commands.machine", "what this machine is called, and what it has"),
    "calibrate": Command("groundspeed.commands.calibrate", "how well this machine can be measured, and by what"),
    "profile": Command("groundspeed.commands.profile", "what bounds an implementation: one case under a profiler"),
    "shares": Command("groundspeed.commands.shares", "what a transformer layer's time goes to: parts and kinds"),
    "sanitize": Command("groundspeed.commands.sanitize", "look for memory errors and races with compute-sanitizer"),
    "gate": Command("groundspeed.gate.gate_command", "judge a change: base and head side by side on one GPU"),
    "compare": Command("groundspeed.gate.compare_command", "compare stored records of two commits, machines or files"),
    "bisect": Command("groundspeed.commands.bisect", "find the commit that made an implementation slower"),
    "import": Command("groundspeed.commands.import_results", "add results of pytest-benchmark or NVBench"),
    "store": Command("dashboard.store_command", "examine, compact or prune the stored records", "dashboard"),
    "dash": Command("dashboard.command", "serve the dashboard on this machine", "dashboard"),
    "history": Command("dashboard.history_command", "where stored results changed their level", "dashboard"),
    "best": Command("dashboard.best_command", "print which implementation wins at which size", "dashboard"),
    "export": Command("dashboard.export_command", "write the dashboard as one offline HTML file", "dashboard"),
}


class _Parser(argparse.ArgumentParser):
    """Argument errors are user errors: one line, with the nearest word that would have been right."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; type: {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 done, 1 something failed, 2 wrong use, 130 interrupted."""
    _make_printable()
    try:
        with interrupts.on_sigterm():
            return _dispatch(list(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        _tell(f"groundspeed: {error}")
        return USAGE
    except KeyboardInterrupt:
        _tell("\ngroundspeed: interrupted")
        return INTERRUPTED
    except OutputLost as lost:
        _discard_output()
        return lost.status
    except BrokenPipeError:
        # The reader went away (| head). Nothing more can be written, not even at exit; what the status would have
        # been is not known, so it is that of a program that the signal ended, and not the one that says all is well.
        _discard_output()
        _tell()
        return PIPE_CLOSED
    except OSError as error:
        # A path that cannot be, a full disk: the user's to mend, and never a status that means "regressed".
        where = f"{error.filename}: " if error.filename else ""
        _tell(f"groundspeed: {where}{error.strerror or error}")
        return USAGE


def _make_printable() -> None:
    """What the terminal's encoding lacks becomes a question mark, and what goes to a closed stream is dropped."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # it lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _tell(*lines: str) -> None:
    """The last lines of a command that failed. Where nobody reads them the status is kept all the same: by itself
    Python would end with a traceback, and with 1, the status of what regressed.
    """
    try:
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    """What is written to a stream from here on, and what it holds, goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _refuse_empty(argv: Sequence[str]) -> None:
    """Raises UserError where an argument is empty: a variable that is not set, which to most options is as good as no
    argument at all, so that everything would be measured.
    """
    for before, argument in zip(["groundspeed", *argv], argv, strict=False):
        option, equals, value = argument.partition("=")
        if not argument or (option.startswith("--") and equals and not value):
            where = f"{option}=" if argument else f"what follows {before}"
            raise UserError(f"{where} is empty: expected a value; is a variable not set? Without it leave it out")


def _dispatch(argv: list[str]) -> int:
    _refuse_empty(argv)
    arguments = _global_parser().parse_args(argv)
    if arguments.command is None:
        _global_parser().print_help()
        return USAGE
    command = COMMANDS.get(arguments.command)
    if command is None:
        raise UserError(f"unknown command {arguments.command!r}{_near(arguments.command)}; type: groundspeed --help")
    module = importlib.import_module(command.module)
    parser = _Parser(prog=f"groundspeed {arguments.command}", description=module.__doc__, formatter_class=_Help)
    parser.add_argument("--project", type=Path, default=arguments.project, metavar="DIR", help=_PROJECT_HELP)
    module.add_arguments(parser)
    parser.description = _reflow(parser.description or "")
    try:
        status: int = module.run(parser.parse_args(arguments.rest))
    except ModuleNotFoundError as missing:
        if not command.extra:
            raise
        install = f"{shlex.quote(sys.executable)} -m pip install 'groundspeed[{command.extra}]'"
        raise UserError(
            f"{arguments.command} needs {missing.name}; type: {install}, or in a checkout: make dash"
        ) from missing
    sys.stdout.flush()
    return status


_PROJECT_HELP = "the checkout to work on (default: the one around the current folder)"


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=80)


def _reflow(text: str) -> str:
    """Paragraphs filled to a terminal of 80 columns; examples (indented, or commands to type) as they are."""
    filled = []
    for paragraph in text.strip().split("\n\n"):
        example = paragraph.startswith((" ", "groundspeed "))
        filled.append(paragraph if example else textwrap.fill(" ".join(paragraph.split()), 79))
    return "\n\n".join(filled)


def _global_parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  {name:<9} {command.help}" for name, command in COMMANDS.items())
    parser = _Parser(
        prog="groundspeed",
        usage="groundspeed [--project DIR] COMMAND ...",
        description=f"Benchmark GPU operators, keep the results, compare and gate on them.\n\ncommands:\n{listing}",
        epilog="groundspeed COMMAND --help tells what a command takes",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"groundspeed {__version__}")
    parser.add_argument("--project", type=Path, metavar="DIR", help=_PROJECT_HELP)
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _near(word: str) -> str:
    close = difflib.get_close_matches(word, COMMANDS, n=1)
    return f": did you mean {close[0]!r}?" if close else ""


if __name__ == "__main__":
    sys.exit(main())
