"""Errors that a user can mend: one clear line, exit status 2, never a traceback."""

import re

# An escape sequence of a terminal (CSI of ECMA-48), and the control characters that neither part lines nor are a tab.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
# A traceback that is told in a message, Python's own or TorchScript's, and the line that it ends with.
_TRACEBACK = re.compile(r"Traceback .*\(most recent call last\):")
_RAISED = re.compile(r"[\w.]*(?:Error|Exception): +\S")


class UserError(Exception):
    """Something the user typed, wrote or lacks: the message says what was expected, what was found, what to type."""


class OutputLost(Exception):
    """Whoever read standard output went away, and all else is done: ``status`` is the command's exit status."""

    def __init__(self, status: int) -> None:
        super().__init__("the reader of standard output went away")
        self.status = status


def uncoloured(text: str) -> str:
    """What somebody else's program wrote for a terminal, without colours and control characters."""
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def first_line(error: BaseException) -> str:
    """What an error says, in a line: its first that is not blank, or the name of its kind where it says nothing.

    Where that one only heads a traceback, as TorchScript's does, it is the line that the traceback ends with.
    """
    lines = [line.rstrip() for line in uncoloured(str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    told = any(_TRACEBACK.match(line) for line in lines[:2])
    return (_raised(lines) if told else lines[0]).strip()


def _raised(lines: list[str]) -> str:
    """The end of a traceback. It is not the last line where a compiler's error has the whole source below it."""
    return next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1])


def kind_and_line(error: BaseException) -> str:
    """The kind of an error and its first line: ``ValueError: expected 3``."""
    kind, said = type(error).__name__, first_line(error)
    return said if said == kind or said.startswith(f"{kind}: ") else f"{kind}: {said}"
