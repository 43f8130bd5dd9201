"""Interrupts that are not lost.

Ctrl-C raises KeyboardInterrupt at whatever line the main thread is at. Where that line belongs to a finalizer (a
``__del__``, a weakref's callback, the garbage collector's) Python prints the exception and goes on as if nobody had
asked: a long run would measure to its end. Whoever frees many objects, as Ray's handles are, meets that often.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator

STATUS = 130  # a shell's for a program that Ctrl-C ended

_AGAIN_AFTER = 0.01  # seconds, by which the finalizer has most likely ended; if it has not, it is lost and sent again


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Inside, a KeyboardInterrupt that a finalizer swallowed is raised again a moment later, outside of it."""
    before = sys.unraisablehook

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
            # Not from here: the hook runs inside the finalizer still.
            again = threading.Timer(_AGAIN_AFTER, _interrupt)
            again.daemon = True
            again.start()
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


@contextlib.contextmanager
def on_sigterm() -> Iterator[None]:
    """Inside, SIGTERM ends what goes on as Ctrl-C does, so that it leaves neither a process nor a folder behind.

    Only a main thread can say so; elsewhere, and where SIGTERM is ignored or another's already, that stays as it is.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        with kept():
            yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with kept():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def status_of(run: Callable[[], int], advice: str = "") -> int:
    """The exit status of a program: what ``run`` returns, or after Ctrl-C or SIGTERM a line that says so and STATUS.

    ``advice`` says what is kept and what to do next. SIGTERM is another's where ``run`` gives it a handler.
    """
    try:
        with on_sigterm():
            return run()
    except KeyboardInterrupt:
        print(f"\ngroundspeed: interrupted{advice and f'; {advice}'}", file=sys.stderr)
        return STATUS


def _interrupt() -> None:
    """Send the main thread the signal that raises KeyboardInterrupt there: only a real one ends a wait.

    SIGINT is ignored where a shell began this process by ``&``.
    """
    main = threading.main_thread().ident
    for number in (signal.SIGINT, signal.SIGTERM):
        if main is not None and signal.getsignal(number) is signal.default_int_handler:
            signal.pthread_kill(main, number)
            return
