"""Errors that a user can mend: one clear line, exit status 2, never a traceback."""

import re

# An escape sequence of a terminal (CSI of ECMA-48), and the control characters that neither part lines nor are a tab.
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")


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
    """What an error says, in a line: its first that is not blank, or the name of its kind where it says nothing."""
    lines = (line.strip() for line in uncoloured(str(error)).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def kind_and_line(error: BaseException) -> str:
    """The kind of an error and its first line: ``ValueError: expected 3``."""
    kind, said = type(error).__name__, first_line(error)
    return kind if said == kind else f"{kind}: {said}"
