"""Recordings: the content of a conversation file, and helpers for its readers."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from tui.chat.conversation.history import RecordKind
from tui.chat.store.calls import CallRow
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record, SessionInfo
from tui.context.reduction.checkpoints import CompactionRecord, checkpoint_to_json
from tui.messages import Attachment, Message, Usage

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors raised by reading a file in the wrong format."""


class RecordingError(Exception):
    """A file that can't be read as a conversation. `str()` is one line with the cause."""


class NoMessagesError(RecordingError):
    """A session file of a known program without messages."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A conversation from a file.

    `messages` are oldest first; assistant messages have the usage reported by their provider. `records` are compactions
    and the like, as in our own store. `info` and `calls` only come from our own export. `window` is the context window
    named in the file, in tokens; `unscored` says why `chatctx replay` can't score a file without usage per call,
    `skipped` what could not be read.

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

    def believed(self, reply: Message, usage: Usage) -> Usage:
        """The usage of `reply` to go by: as reported, or corrected."""
        tokens = self.corrected.get(reply.id)
        return usage if tokens is None else replace(usage, input_total=tokens)

    @property
    def model(self) -> tuple[str, str]:
        """Provider and model of the last answer; two empty strings if there is none."""
        for message in reversed(self.messages):
            if message.role == "assistant" and message.model:
                return message.provider, message.model
        return "", ""


def compaction(at: float, first: str, last: str, summary: str, verbatim: Sequence[str], messages: int) -> Record:
    """A record: `summary` replaces the messages from `first` to `last`, except those kept `verbatim`."""
    ident = new_id()
    record = CompactionRecord(ident, at, 0, 0, messages, first, last, summary, tuple(verbatim))
    return Record(ident, RecordKind.CHECKPOINT, at, dict(checkpoint_to_json(record)))


def clearing(at: float, cleared: Sequence[tuple[str, str]]) -> Record:
    """A record: tool results (message id, call id) are sent as a fixed line from now on."""
    ident = new_id()
    record = CompactionRecord(ident, at, 0, 0, 0, cleared=tuple(cleared))
    return Record(ident, RecordKind.CHECKPOINT, at, dict(checkpoint_to_json(record)))


def seconds(stamp: Any) -> float:
    """An ISO time or a number of milliseconds as seconds since the epoch; 0 for anything else."""
    if isinstance(stamp, int | float):
        return float(stamp) / 1000
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def picture(media_type: str, data: str, blobs: dict[str, bytes]) -> list[Attachment]:
    """The attachment for an image or document in base64, its bytes added to `blobs`; none if it can't be decoded."""
    try:
        raw = base64.b64decode(data)
    except binascii.Error:
        return []
    digest = hashlib.sha256(raw).hexdigest()
    blobs[digest] = raw
    kind: Literal["image", "pdf"] = "pdf" if media_type == "application/pdf" else "image"
    return [Attachment(kind, kind, media_type, digest, len(raw))]


def first_words(messages: Sequence[Message], fallback: str) -> str:
    """A title: the first words of the person."""
    for message in messages:
        words = message.text.split() if message.role == "user" and message.kind == "chat" else []
        if words and not words[0].startswith("<"):
            return " ".join(words)[:80]
    return fallback
