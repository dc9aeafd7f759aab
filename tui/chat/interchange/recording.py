"""Recordings: the content of a conversation file, our own format (JSONL), and checks of what can be stored."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tui.chat.conversation.history import fold_records
from tui.chat.store.calls import CallRow
from tui.chat.store.codec import MALFORMED, dump, message_from_dict
from tui.chat.store.store import Record, SessionInfo, storable
from tui.errors import ExpectedError
from tui.messages import Message, MessageKind, MessageStatus, Role, Usage
from tui.providers.wire import object_of
from tui.text.clean import abbreviated

Row = TypeVar("Row", SessionInfo, Record, CallRow, Message)


class RecordingError(ExpectedError):
    """A file that can't be read as a conversation. `str()` is one line with the cause."""

    exit_code = 2


class NoMessagesError(RecordingError):
    """A session file of a known program without messages."""


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

    source: str  # `OURS`, or the `SOURCE` of a module in `foreign`
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


def first_words(messages: Iterable[Message]) -> str:
    """The beginning of what the person wrote first, as a title; "" for nothing."""
    for message in messages:
        words = message.text.split() if message.role == "user" and message.kind == "chat" else []
        if words and not words[0].startswith("<"):
            return abbreviated(" ".join(words), 80)
    return ""


# -- our own format: JSONL, without loss ------------------------------------------------------------------------------

OURS, FORMAT, VERSION = "chatctx", "chatctx-session", 1
KINDS = ("session", "message", "record", "call", "blob")


def write_jsonl(
    info: SessionInfo,
    messages: Iterable[Message],
    records: Iterable[Record],
    calls: Iterable[CallRow],
    blobs: Iterable[tuple[str, bytes]],
) -> Iterator[str]:
    """One JSON object per line: the session, its messages, records, calls, and attachments in base64."""

    def line(kind: str, data: dict[str, Any]) -> str:
        return dump({"type": kind, **data})

    yield line("session", {"format": FORMAT, "version": VERSION, **asdict(info)})
    for message in messages:
        yield line("message", {"message": message})
    for record in records:
        yield line("record", asdict(record))
    for call in calls:
        yield line("call", asdict(call))
    for sha256, data in blobs:
        yield line("blob", {"sha256": sha256, "data": base64.b64encode(data).decode()})


def read_jsonl(lines: Sequence[Mapping[str, Any]], name: str) -> Recording:
    """The inverse of `write_jsonl`; `info` is None where the session's line is missing.

    Raises `RecordingError` for a file that was cut or is of a later version, `MALFORMED` for damaged lines.
    """
    for line in lines:
        if line.get("type") not in KINDS or line.get("version", VERSION) != VERSION:
            raise RecordingError(f"{name}: damaged, or written by a later version of chatctx: update it")

    def of_kind(kind: str) -> Iterator[Mapping[str, Any]]:
        return (line for line in lines if line.get("type") == kind)

    info = next((_row(SessionInfo, line) for line in of_kind("session")), None)
    messages = tuple(message_from_dict(line["message"]) for line in of_kind("message"))
    if info is not None and info.messages > len(messages):
        raise RecordingError(f"{name}: cut off, only {len(messages):,} of {info.messages:,} messages are there")
    return Recording(
        OURS,
        info.title if info is not None else first_words(messages) or name,
        messages,
        tuple(Record(str(r["id"]), str(r["kind"]), float(r["at"]), dict(r["data"])) for r in of_kind("record")),
        {str(blob["sha256"]): base64.b64decode(blob["data"]) for blob in of_kind("blob")},
        info,
        tuple(_row(CallRow, line) for line in of_kind("call")),
    )


def is_ours(line: Mapping[str, Any]) -> bool:
    """Whether a line is the first of an export, or a message of one without its first line."""
    return line.get("format") == FORMAT or (line.get("type") == "message" and "parts" in object_of(line.get("message")))


def _row(kind: type[Row], line: Mapping[str, Any]) -> Row:
    """A row with the fields that this version has."""
    return kind(**{field.name: line[field.name] for field in fields(kind) if field.name in line})


# -- checks ------------------------------------------------------------------------------------------------------------

MAX_NUMBER = 2**53
"""Larger numbers can't be tokens, and some do not fit the database."""
MAX_ID = 40
"""Characters of a session's id. It is printed in commands to copy, so it is letters and digits only."""
YEAR_9999 = 253_370_764_800
"""Seconds since the epoch; later times can't be shown."""
_ALLOWED = {"role": get_args(Role), "kind": get_args(MessageKind), "status": get_args(MessageStatus)}
_TEXTS = {"id", "record", "text", "frontier", "name", "message", "sha256"}
_TEXTS |= {"compaction", "summary", "first", "last", "answer"}  # of checkpoints
_LISTS = {"ids", "names", "kept"}
_TIMES = ("at", "created_at", "updated_at")


def checked(recording: Recording) -> Recording:
    """`recording` as it can be stored. Raises `RecordingError` for the first thing that is damaged."""
    for digest, data in recording.blobs.items():
        if hashlib.sha256(data).hexdigest() != digest:
            raise RecordingError(f"damaged: attachment {digest[:12]} does not have the content its hash names")
    info = None if recording.info is None else checked_row(recording.info)  # first: the title is from there
    if info is not None and not (info.id.isascii() and info.id.isalnum() and len(info.id) <= MAX_ID):
        raise RecordingError("damaged: the session's id has other characters than letters and digits")
    return replace(
        recording,
        info=info,
        title=storable(recording.title) or "",
        messages=tuple(checked_messages(recording.messages)),
        records=checked_records(recording.records),
        calls=tuple(map(checked_row, recording.calls)),
    )


def checked_messages(messages: Sequence[Message]) -> Iterator[Message]:
    """`messages` as they can be stored. One that was still being written counts as interrupted.

    Raises `RecordingError` for an invalid message.
    """
    ids: set[str] = set()
    for number, message in enumerate(messages, 1):
        place = f"message {number}: "
        for value in (message.usage, *message.parts):
            _check(value, place)
        message = checked_row(message, place)
        for name, allowed in _ALLOWED.items():
            if getattr(message, name) not in allowed:
                raise RecordingError(f"damaged: {place}{name} is {getattr(message, name)!r}")
        if not message.id or message.id in ids:
            raise RecordingError(f"damaged: {place}{'its id occurs twice' if message.id else 'it has no id'}")
        ids.add(message.id)
        if message.status == "streaming":
            message = replace(message, status="interrupted", error="it was still being written when it was exported")
        yield message


def checked_row(row: Row, place: str = "") -> Row:
    """A row as it can be stored. Raises `RecordingError` if it is invalid, with its `place` in the file."""
    _check(row, place)
    texts: dict[str, Any] = {
        one.name: storable(text) for one in fields(row) if isinstance(text := getattr(row, one.name), str)
    }
    return replace(row, **texts)


def checked_records(records: Sequence[Record]) -> tuple[Record, ...]:
    """Records that can be folded, each checked by itself. Raises `RecordingError`."""
    for record in records:
        for name, value in record.data.items():
            texts = value if name in _LISTS and isinstance(value, list | tuple) else [value]
            if name in _TEXTS | _LISTS and not all(isinstance(text, str) for text in texts):
                raise RecordingError(f"damaged: {name} of a record {record.kind!r:.40} is not text")
        try:
            fold_records([record])
        except MALFORMED as error:
            raise RecordingError(f"damaged: a record can't be read ({type(error).__name__}: {error})") from None
    return tuple(map(checked_row, records))


def _check(value: Any, place: str = "") -> None:
    """Raises `RecordingError` if a dataclass has a value that is not of its declared type, or no possible number."""
    for name, types, low, high in _rules(value.__class__) if value is not None else ():
        content = getattr(value, name)
        if not isinstance(content, types):
            raise RecordingError(f"damaged: {place}{name} of a {type(value).__name__} is {type(content).__name__}")
        if isinstance(content, int | float) and not low <= content < high:
            raise RecordingError(f"damaged: {place}{name} of a {type(value).__name__} is {content!r:.20}")
    if isinstance(value, Usage) and not all(isinstance(term, str) for term in value.terms):
        raise RecordingError(f"damaged: {place}terms of a Usage is not text")


@cache
def _rules(kind: type[Any]) -> list[tuple[str, tuple[type, ...], int, int]]:
    """For each field of a dataclass its name, the allowed types, the least number, and the first that is too large."""
    rules = []
    for name, hint in get_type_hints(kind).items():
        least = 0 if kind is Usage or name in _TIMES else -MAX_NUMBER
        rules.append((name, _types(hint), least, YEAR_9999 if name in _TIMES else MAX_NUMBER))
    return rules


def _types(hint: Any) -> tuple[type, ...]:
    """The types of the values that an annotation allows; those of a `Literal` are texts, of any content."""
    origin = get_origin(hint)
    if origin is UnionType:
        return tuple(kind for part in get_args(hint) for kind in _types(part))
    return (int, float) if hint is float else (str,) if origin is Literal else (origin or hint,)
