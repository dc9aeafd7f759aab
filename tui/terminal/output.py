"""Filters what the command line writes: control characters in untrusted text are made visible."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from tui.text.clean import clean_text

ERASE_LINE = "\r\x1b[K"


class CleanWriter:
    """A text stream that writes control characters as symbols. Everything else is delegated to the stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text`, cleaned; returns its length."""
        self._stream.write(clean_text(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write each, cleaned."""
        for line in lines:
            self.write(line)

    def write_raw(self, text: str) -> None:
        """Write `text` unchanged: the program's control sequences, or an answer to a file or a pipe."""
        self._stream.write(text)


def write_raw(stream: TextIO, text: str) -> None:
    """Write `text` to `stream` unchanged, even if that is a `CleanWriter`."""
    getattr(stream, "write_raw", stream.write)(text)


@contextmanager
def clean_streams() -> Iterator[None]:
    """Filter control characters on standard output and standard error while the body runs."""
    before = sys.stdout, sys.stderr
    setattr(sys, "stdout", CleanWriter(before[0]))  # noqa: B010
    setattr(sys, "stderr", CleanWriter(before[1]))  # noqa: B010
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
