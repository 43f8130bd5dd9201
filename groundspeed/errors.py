"""Errors that a user can mend: one clear line, exit status 2, never a traceback."""


class UserError(Exception):
    """Something the user typed, wrote or lacks: the message says what was expected, what was found, what to type."""
