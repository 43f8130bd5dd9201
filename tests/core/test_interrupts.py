"""An interrupt that falls into a finalizer still ends what goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from groundspeed import interrupts
from tests.paths import python_path

# It says when it is inside the finalizer, and then sleeps for a minute unless the interrupt comes through.
PROGRAM = """
import contextlib, sys, time, weakref
from groundspeed import interrupts

def linger():
    print("inside", flush=True)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        pass

class Finalized:
    def __del__(self):
        linger()

class Plain:
    pass

def free(how):
    if how == "finalizer":
        Finalized()
    else:
        one = Plain()
        seen = weakref.ref(one, lambda _: linger())
        del one

try:
    with {context}:
        free({how!r})
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def run(program: str, number: signal.Signals, *, background: bool = False) -> tuple[int, str, str]:
    """Send the signal while a finalizer runs; ``background`` is how a shell's ``&`` begins a process."""
    # A test's own process may ignore it, as those of xdist do.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if background else signal.SIG_DFL)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": python_path()},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None and process.stdout.readline() == "inside\n"
    process.send_signal(number)
    said, wrong = process.communicate(timeout=30)
    return process.returncode, said, wrong


@pytest.mark.parametrize("how", ["finalizer", "weak reference"])
def test_an_interrupt_inside_a_finalizer_is_raised_outside_of_it(how):
    program = PROGRAM.format(context="interrupts.kept()", how=how)
    assert run(program, signal.SIGINT) == (130, "interrupted\n", "")


def test_python_alone_loses_it():
    """If it ever does not, groundspeed.interrupts has no purpose any more."""
    program = PROGRAM.replace("time.sleep(60)", "sys.exit(7)").format(
        context="contextlib.nullcontext()", how="finalizer"
    )
    status, _, wrong = run(program, signal.SIGINT)
    assert status == 7 and "Exception ignored" in wrong and "KeyboardInterrupt" in wrong


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_inside_a_finalizer_is_raised_outside_of_it(background):
    program = PROGRAM.format(context="interrupts.on_sigterm()", how="finalizer")
    assert run(program, signal.SIGTERM, background=background) == (130, "interrupted\n", "")


def test_another_exception_of_a_finalizer_is_told_as_before():
    program = PROGRAM.format(context="interrupts.kept()", how="finalizer").replace(
        "def linger():", "def linger():\n    1 / 0\ndef unused():"
    )
    done = subprocess.run(
        [sys.executable, "-c", program.replace("time.sleep(60)", "sys.exit(7)")],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7 and "ZeroDivisionError" in done.stderr


STATUS_OF = """
import sys, time
from groundspeed import interrupts

def main():
    try:
        print("inside", flush=True)  # whoever reads it interrupts at once: nothing may be between it and the try
        time.sleep({seconds})
    finally:
        print("cleared up", flush=True)
    return 3

sys.exit(interrupts.status_of(main, {advice!r}))
"""


@pytest.mark.parametrize(
    ("number", "advice", "line"),
    [
        (signal.SIGINT, "", "groundspeed: interrupted"),
        (signal.SIGTERM, "all is kept", "groundspeed: interrupted; all is kept"),
    ],
)
def test_a_program_that_is_interrupted_clears_up_says_so_in_a_line_and_ends_with_130(number, advice, line):
    program = STATUS_OF.format(seconds=60, advice=advice)
    assert run(program, number) == (130, "cleared up\n", f"\n{line}\n")


def test_a_program_that_is_not_ends_with_its_own_status_and_gives_the_handlers_back():
    done = subprocess.run(
        [sys.executable, "-c", STATUS_OF.format(seconds=0, advice="")],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (3, "")
    before = signal.getsignal(signal.SIGTERM)
    assert interrupts.status_of(lambda: 0) == 0 and signal.getsignal(signal.SIGTERM) is before


def test_the_command_ends_by_sigterm_as_by_ctrl_c():
    """A time limit and a cancelled job send SIGTERM: what was made in temporary folders must not stay."""
    program = """
import sys, time
from groundspeed import cli

def linger(argv):
    print("inside", flush=True)
    time.sleep(60)

cli._dispatch = linger
sys.exit(cli.main([]))
"""
    status, _, error = run(program, signal.SIGTERM)
    assert status == 130 and error.strip() == "groundspeed: interrupted"


def test_outside_the_main_thread_nobody_asks_for_sigterm():
    from concurrent.futures import ThreadPoolExecutor

    def inside():
        with interrupts.on_sigterm():
            return signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == signal.getsignal(signal.SIGTERM)
