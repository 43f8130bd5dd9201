"""Errors that a user can mend: one clear line, exit status 2, never a traceback."""


class UserError(Exception):
    """Something the user typed, wrote or lacks: the message says what was expected, what was found, what to type."""


def first_line(error: BaseException) -> str:
    """What an error says, in a line: its first that is not blank, or the name of its kind where it says nothing."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def kind_and_line(error: BaseException) -> str:
    """The kind of an error and its first line: ``ValueError: expected 3``."""
    kind, said = type(error).__name__, first_line(error)
    return kind if said == kind else f"{kind}: {said}"
