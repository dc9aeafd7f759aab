"""Validates a file's content before anything is written: all that the store and the projection rely on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from tui.chat.conversation.history import fold_records
from tui.chat.interchange.recording import MALFORMED, RecordingError
from tui.chat.store.calls import CallRow
from tui.chat.store.store import Record, SessionInfo, storable
from tui.messages import Message, MessageKind, MessageStatus, Part, Role

_ROLES, _KINDS, _STATUSES = get_args(Role), get_args(MessageKind), get_args(MessageStatus)
_NONE = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, _NONE),
    "int": (int,),
    "int | None": (int, _NONE),
    "bool": (bool,),
    "float": (int, float),
    "float | None": (int, float, _NONE),
    "dict[str, Any]": (dict,),
}
MOST = 2**53
"""Larger numbers can't be tokens, and some do not fit the database."""
YEAR_9999 = 253_370_764_800
"""Seconds since the epoch; later times can't be shown."""

Row = TypeVar("Row", SessionInfo, Record, CallRow)


def checked_messages(messages: Sequence[Message]) -> list[Message]:
    """`messages` as they can be stored. One that was still being written counts as interrupted.

    Raises `RecordingError` for an invalid message.
    """
    checked: list[Message] = []
    ids: set[str] = set()
    for number, message in enumerate(messages, 1):
        reason = _fault(message) or ("its id occurs twice" if message.id in ids else "")
        if reason:
            raise RecordingError(f"damaged: message {number}: {reason}")
        ids.add(message.id)
        if message.status == "streaming":
            message = replace(message, status="interrupted", error="it was still being written when it was exported")
        checked.append(
            replace(
                message,
                provider=storable(message.provider) or "",
                model=storable(message.model) or "",
                finish_reason=storable(message.finish_reason),
                error=storable(message.error),
            )
        )
    return checked


def checked_row(row: Row) -> Row:
    """A row of the session or its calls as it can be stored. Raises `RecordingError` if invalid."""
    texts: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if not isinstance(value, _TYPES.get(str(field.type), (str,))):
            raise RecordingError(f"damaged: {field.name} of a {type(row).__name__} is {type(value).__name__}")
        if isinstance(value, int | float) and not (_is_time(value) if field.name in _TIMES else -MOST < value < MOST):
            raise RecordingError(f"damaged: {field.name} of a {type(row).__name__} is {value!r:.20}")
        if isinstance(value, str):
            texts[field.name] = storable(value)
    return replace(row, **texts)


def checked_records(records: Sequence[Record]) -> tuple[Record, ...]:
    """Records that can be folded, each checked by itself. Raises `RecordingError`."""
    for record in records:
        for name, value in record.data.items():
            texts = value if name in _LISTS and isinstance(value, list | tuple) else [value]
            if name in _TEXTS | _LISTS and not all(isinstance(text, str) for text in texts):
                raise RecordingError(f"damaged: {name} of a record {record.kind!r:.40} is no text")
    try:
        fold_records(records)
    except MALFORMED as error:
        raise RecordingError(f"damaged: a record can't be read ({type(error).__name__}: {error})") from None
    return tuple(map(checked_row, records))


_TEXTS = {"id", "record", "text", "frontier", "name", "message", "sha256"}
_TEXTS |= {"compaction", "summary", "first", "last", "answer"}  # of checkpoints
_LISTS = {"ids", "names", "kept"}
_TIMES = ("at", "created_at", "updated_at")


def _is_time(value: float) -> bool:
    return 0 <= value < YEAR_9999


def _fault(message: Message) -> str:
    """What is wrong with a message; "" for nothing."""
    if not _is(message.id, str) or not message.id:
        return "it has no id"
    for name, allowed in (("role", _ROLES), ("kind", _KINDS), ("status", _STATUSES)):
        if getattr(message, name) not in allowed:
            return f"{name} is {getattr(message, name)!r}"
    if not _is(message.created_at, int, float) or not _is_time(message.created_at):
        return "created_at is no time"
    for name in ("provider", "model", "finish_reason", "error"):
        value = getattr(message, name)
        if not _is(value, str, *((_NONE,) if name in ("finish_reason", "error") else ())):
            return f"{name} is no text"
    usage = message.usage
    if usage is not None:
        counts = {field.name for field in fields(usage)} - {"source", "cost", "terms", "passes"}
        if any(not _is(getattr(usage, name), int, _NONE) for name in counts):
            return "its usage is no number of tokens"
        if not _is(usage.cost, int, float, _NONE):
            return "its cost is no number"
        if not all(_is(term, str) for term in usage.terms):
            return "the terms of its price are no text"
    return next((reason for part in message.parts if (reason := _part_fault(part))), "")


def _is(value: object, *kinds: type) -> bool:
    """A type check at run time: a file's values need not match the declared types."""
    return isinstance(value, kinds)


def _part_fault(part: Part) -> str:
    for field in fields(part):
        allowed = _TYPES.get(str(field.type), (str,))
        if not isinstance(getattr(part, field.name), allowed):
            return f"{field.name} of a {type(part).__name__} is {type(getattr(part, field.name)).__name__}"
    return ""
