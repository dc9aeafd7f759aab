"""Messages that come from a file: what the store and the projection rely on, checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import get_args

from tui.chat.recording import RecordingError
from tui.chat.store import storable
from tui.messages import Message, MessageKind, MessageStatus, Part, Role

_ROLES, _KINDS, _STATUSES = get_args(Role), get_args(MessageKind), get_args(MessageStatus)
_NONE = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, _NONE),
    "int": (int,),
    "int | None": (int, _NONE),
    "bool": (bool,),
}


def checked_messages(messages: Sequence[Message]) -> list[Message]:
    """`messages` as they can be stored. One that was still being written counts as interrupted.

    Raises `RecordingError` for a message that can't be one.
    """
    found: list[Message] = []
    seen: set[str] = set()
    for number, message in enumerate(messages, 1):
        reason = _fault(message) or ("its id stands twice" if message.id in seen else "")
        if reason:
            raise RecordingError(f"damaged: message {number}: {reason}")
        seen.add(message.id)
        if message.status == "streaming":
            message = replace(message, status="interrupted", error="it was still being written when it was exported")
        found.append(
            replace(
                message,
                provider=storable(message.provider) or "",
                model=storable(message.model) or "",
                finish_reason=storable(message.finish_reason),
                error=storable(message.error),
            )
        )
    return found


def _fault(message: Message) -> str:
    """What is wrong with a message; "" where nothing is."""
    if not _is(message.id, str) or not message.id:
        return "it has no id"
    for name, allowed in (("role", _ROLES), ("kind", _KINDS), ("status", _STATUSES)):
        if getattr(message, name) not in allowed:
            return f"{name} is {getattr(message, name)!r}"
    if not _is(message.created_at, int, float):
        return "created_at is no number"
    for name in ("provider", "model", "finish_reason", "error"):
        value = getattr(message, name)
        if not _is(value, str, *((_NONE,) if name in ("finish_reason", "error") else ())):
            return f"{name} is no text"
    usage = message.usage
    if usage is not None and any(
        not _is(getattr(usage, f.name), int, _NONE) for f in fields(usage) if f.name not in ("source", "passes")
    ):
        return "its usage is no number of tokens"
    return next((reason for part in message.parts if (reason := _part_fault(part))), "")


def _is(value: object, *kinds: type) -> bool:
    """A check at run time: what a file holds need not be what the types say."""
    return isinstance(value, kinds)


def _part_fault(part: Part) -> str:
    for field in fields(part):
        allowed = _TYPES.get(str(field.type), (str,))
        if not isinstance(getattr(part, field.name), allowed):
            return f"{field.name} of a {type(part).__name__} is {type(getattr(part, field.name)).__name__}"
    return ""
