"""Recordings: the content of a conversation file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tui.chat.store.calls import CallRow
from tui.chat.store.store import Record, SessionInfo
from tui.messages import Message, Usage

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors raised by reading a file in the wrong format."""


class RecordingError(Exception):
    """A file that can't be read as a conversation. `str()` is one line with the cause."""


class NoMessagesError(RecordingError):
    """A session file of a known program without messages."""


@contextmanager
def refuse_malformed(name: str) -> Iterator[None]:
    """Raise a `RecordingError` that names the file instead of an error of reading it in the wrong format."""
    try:
        yield
    except MALFORMED as error:
        raise RecordingError(f"{name}: damaged, or of an unknown version ({type(error).__name__}: {error})") from None


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation from a file.

    `messages` are oldest first; assistant messages have the usage reported by their provider. `records` are compactions
    and the like, as in our own store. `info` and `calls` only come from our own export. `window` is the context window
    named in the file, in tokens; `unscored` says why `chatctx replay` can't score a file without usage per call,
    `skipped` what could not be read, `unpredictable` which answers (by id) were made of more than the file has, and
    why, `corrected` which (by id) really had another number of input tokens.

    A `Reasoning` with an empty `encrypted` was sent back by the other program, but its content is not in the file.
    """

    source: str  # "chatctx", or the `SOURCE` of a module in `foreign`
    title: str
    messages: tuple[Message, ...]
    records: tuple[Record, ...] = ()
    blobs: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    info: SessionInfo | None = None
    calls: tuple[CallRow, ...] = ()
    window: int | None = None
    unscored: str = ""
    skipped: str = ""
    unpredictable: Mapping[str, str] = field(default_factory=dict)
    corrected: Mapping[str, int] = field(default_factory=dict)

    @property
    def answers(self) -> list[tuple[int, Message, Usage]]:
        """The answers whose input was reported: position, message, usage."""
        return [
            (index, message, message.usage)
            for index, message in enumerate(self.messages)
            if message.role == "assistant" and message.usage is not None and message.usage.input_total
        ]

    @property
    def model(self) -> tuple[str, str]:
        """Provider and model of the last answer; two empty strings if there is none."""
        for message in reversed(self.messages):
            if message.role == "assistant" and message.model:
                return message.provider, message.model
        return "", ""
