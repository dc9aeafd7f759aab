"""Expected errors: what may go wrong without a bug in the program."""

from __future__ import annotations


class ExpectedError(Exception):
    """`str()` is one line for a person: what went wrong, and what to do. `exit_code` is that of the command line."""

    exit_code = 1


class UsageError(ExpectedError):
    """Something requested does not exist or is invalid. `str()` is one line with the next step."""

    exit_code = 2
