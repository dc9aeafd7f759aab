"""Imports recorded conversations: our own export without loss, other programs' sessions in a form that works here.

Everything is read and checked first, then written in one transaction. Nothing is predicted: an imported call has the
usage that was reported, and no estimate. What the calls measured is learned when the session is opened (measuring.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, get_args

from tui.chat.conversation.history import fold_records
from tui.chat.interchange.measuring import measure_when_opened
from tui.chat.interchange.recording import MALFORMED, Recording, RecordingError
from tui.chat.store.calls import CallKind, CallRow, passes_of
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record, SessionInfo, SessionStore, storable
from tui.context.counting.digests import CHAIN_START, chain, message_digest
from tui.messages import Message, MessageKind, MessageStatus, Reasoning, Role, Usage

Price = Callable[[Usage, str, str], float | None]
"""US dollars for a usage, provider and model; None where the price is unknown."""

IMPORTED = "imported"
"""Key of the stored state: session id -> [number of messages in the file, their chained digest]."""

_PROVIDERS: Mapping[str, str] = {
    "google": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "openai-codex": "openai",
    "azure-openai-responses": "openai",
    "amazon-bedrock": "anthropic",
}
_FAMILIES = (("claude", "anthropic"), ("gpt", "openai"), ("gemini", "gemini"), ("deepseek", "deepseek"))
_CALL = tuple(field.name for field in fields(CallRow))
_call_values = attrgetter(*_CALL)


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
    "tuple[Part, ...]": (tuple,),
    "tuple[str, ...]": (tuple,),
    "tuple[BilledPass, ...]": (tuple,),
    "Usage | None": (Usage, _NONE),
}
MOST = 2**53
"""Larger numbers can't be tokens, and some do not fit the database."""
YEAR_9999 = 253_370_764_800
"""Seconds since the epoch; later times can't be shown."""

Row = TypeVar("Row", SessionInfo, Record, CallRow)


class AlreadyHereError(RecordingError):
    """The conversation is `info`, without `more` messages in the file. `str()` says what to do."""

    def __init__(self, info: SessionInfo, more: int) -> None:
        title = " ".join(info.title.split())[:60] or "(no title)"
        if more:
            text = f"its first {info.messages:,} messages are here already, as {title!r} ({info.id}), {more:,} are new"
        else:
            text = f"it is here already, as {title!r} ({info.id})"
        super().__init__(f"{text}: --again imports it as another conversation, whose calls count once more in /usage")
        self.info = info
        self.more = more


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported session.

    `copy_of` is the id in the file if a session with that id was here already; `not_in_file` are the tokens of the
    other program's system prompt and tools, which are not in its file and not sent from here.
    """

    info: SessionInfo
    calls: int
    source: str
    not_in_file: int = 0
    copy_of: str = ""


def import_session(
    store: SessionStore,
    recording: Recording,
    *,
    providers: Collection[str],
    price: Price,
    again: bool = False,
) -> Imported:
    """Add `recording` as a new session in one transaction. `providers` are the available names.

    Raises `RecordingError` for damaged content, `AlreadyHereError` for a conversation that was imported before, unless
    `again`, and `StoreError`.
    """
    messages = checked_messages(recording.messages)
    exported = None if recording.info is None else checked_row(recording.info)
    recording = replace(
        recording,
        info=exported,
        records=checked_records(recording.records),
        calls=tuple(map(checked_row, recording.calls)),
    )
    digests = _chained(messages)
    if not again:
        _check_new(store, exported, digests)
    for digest, data in recording.blobs.items():
        if hashlib.sha256(data).hexdigest() != digest:
            raise RecordingError(f"damaged: attachment {digest[:12]} does not have the content its hash names")
    if exported is None:
        messages = [_without_missing(_renamed(message, providers)) for message in messages]
    recording = replace(recording, messages=tuple(messages), title=storable(recording.title) or "")
    if exported is None and not recording.model[1]:
        raise RecordingError("no model has answered in it")
    if exported is None:
        recording = replace(recording, calls=tuple(_calls(recording, price)))
    with store.transaction():
        info = import_recording(recording, store)
        not_in_file = measure_when_opened(store, info.id, recording)
        store.change_state(IMPORTED, lambda imported: {**imported, info.id: (len(messages), digests[-1])})
    copy_of = exported.id if exported is not None and exported.id != info.id else ""
    return Imported(info, len(recording.calls), recording.source, 0 if exported else not_in_file or 0, copy_of)


def import_recording(recording: Recording, store: SessionStore) -> SessionInfo:
    """Store `recording`. An id that is in use is replaced by a new one."""
    info = _info(recording)
    if store.session(info.id) is not None:
        info = replace(info, id=new_id())
    with store.transaction() as db:
        store.create_session(info)
        for sha256, data in recording.blobs.items():
            store.put_blob(sha256, data)
        for message in recording.messages:
            # A message that was streaming when it was exported is final.
            store.add_message(
                info.id, replace(message, status="interrupted") if message.status == "streaming" else message
            )
        db.executemany(
            "INSERT INTO records (session, id, kind, at, data) VALUES (?, ?, ?, ?, ?)",
            [(info.id, r.id, r.kind, r.at, json.dumps(r.data, separators=(",", ":"))) for r in recording.records],
        )
        used_ids = {
            call.id for call in recording.calls if db.execute("SELECT 1 FROM calls WHERE id = ?", (call.id,)).fetchone()
        }
        db.executemany(
            f"INSERT INTO calls ({', '.join(_CALL)}) VALUES ({', '.join('?' * len(_CALL))})",
            [_call_values(_call(call, info, recording, used_ids)) for call in recording.calls],
        )
    return replace(info, messages=len(recording.messages))


def _info(recording: Recording) -> SessionInfo:
    if recording.info is not None:
        return recording.info
    provider, model = recording.model
    times = [message.created_at for message in recording.messages if message.created_at]
    return SessionInfo(new_id(), recording.title, provider, model, min(times, default=0.0), max(times, default=0.0))


def _call(call: CallRow, info: SessionInfo, recording: Recording, used_ids: AbstractSet[str]) -> CallRow:
    """A call of the session it is now in; where that is a second copy, or the id is taken, under an id of its own."""
    if recording.info is not None and recording.info.id == info.id and call.id not in used_ids:
        return call
    return replace(call, id=new_id(), session=info.id)


def provider_name(provider: str, model: str, providers: Collection[str]) -> str:
    """The name of another program's provider here; unknown ones get the name of a generic provider."""
    name = _PROVIDERS.get(provider, provider)
    if name in providers:
        return name
    return next((ours for start, ours in _FAMILIES if model.startswith(start)), "openrouter")


def _renamed(message: Message, providers: Collection[str]) -> Message:
    """`message` with our provider's name, also in its reasoning, which is sent back only to its provider."""
    if message.role != "assistant":
        return message
    name = provider_name(message.provider, message.model, providers)
    if name == message.provider:
        return message
    parts = tuple(
        replace(part, provider=name) if isinstance(part, Reasoning) and part.provider == message.provider else part
        for part in message.parts
    )
    return replace(message, provider=name, parts=parts)


def _without_missing(message: Message) -> Message:
    """`message` without reasoning whose encrypted content is not in the file: it can't be sent back."""
    missing = {part for part in message.parts if isinstance(part, Reasoning) and part.encrypted == ""}
    if not missing:
        return message
    parts = (part for part in message.parts if part not in missing or part.text)
    return replace(message, parts=tuple(replace(p, encrypted=None) if p in missing else p for p in parts))


def _calls(recording: Recording, price: Price) -> Iterator[CallRow]:
    """The calls of another program as they would be logged here, without a prediction: nobody made one."""
    for _, reply, usage in recording.answers:
        kind: CallKind = "compaction" if reply.kind == "summary" else "chat"
        passes, name = passes_of(usage), (reply.provider, reply.model)
        yield CallRow(
            new_id(), "", reply.id, kind, *name, reply.created_at, "success", None, None, None, None, None,
            usage.input_total, usage.input_cached, usage.input_cache_write, usage.output_total, usage.reasoning,
            usage.source, finish_reason=storable(reply.finish_reason), cost=price(usage, *name),
            passes_input=passes.input, passes_cached=passes.cached, passes_output=passes.output,
        )  # fmt: skip


def _chained(messages: Sequence[Message]) -> list[str]:
    """A digest for each beginning of a conversation: of its content and its measured usage."""
    digests = (
        hashlib.sha256(message_digest(message).full + repr(message.usage).encode()).digest() for message in messages
    )
    return [digest.hex() for digest in chain(CHAIN_START, digests)]


def _check_new(store: SessionStore, exported: SessionInfo | None, digests: Sequence[str]) -> None:
    """Raises `AlreadyHereError` if the conversation, or a beginning of it, was imported or exported here.

    `exported` is the row of the exported session, `digests` are those of `_chained`.
    """
    if exported is not None and _is_listed(store, exported.id):
        stored = _chained(store.messages(exported.id))
        both = min(len(stored), len(digests))
        if both and stored[both - 1] == digests[both - 1]:
            _refuse(store, exported.id, len(digests) - both)
    imported: dict[str, tuple[int, str]] = json.loads(store.get_state(IMPORTED) or "{}")
    for session, (count, digest) in reversed(imported.items()):
        if 0 < count <= len(digests) and digests[count - 1] == digest and _is_listed(store, session):
            _refuse(store, session, len(digests) - count)


def _refuse(store: SessionStore, session: str, more: int) -> None:
    info = store.session(session)
    if info is not None:
        raise AlreadyHereError(info, more)


def _is_listed(store: SessionStore, session: str) -> bool:
    """Whether it is in the list: a deleted one may be imported again."""
    return bool(store.query("SELECT 1 FROM sessions WHERE id = ? AND deleted_at IS NULL", (session,)))


def checked_messages(messages: Sequence[Message]) -> list[Message]:
    """`messages` as they can be stored. One that was still being written counts as interrupted.

    Raises `RecordingError` for an invalid message.
    """
    checked: list[Message] = []
    ids: set[str] = set()
    for number, message in enumerate(messages, 1):
        reason = _message_fault(message) or ("its id occurs twice" if message.id in ids else "")
        if reason:
            raise RecordingError(f"damaged: message {number}: {reason}")
        ids.add(message.id)
        if message.status == "streaming":
            message = replace(message, status="interrupted", error="it was still being written when it was exported")
        names = ("provider", "model", "finish_reason", "error")
        texts: dict[str, Any] = {name: storable(getattr(message, name)) for name in names}
        changed = any(text != getattr(message, name) for name, text in texts.items())
        checked.append(replace(message, **texts) if changed else message)
    return checked


def checked_row(row: Row) -> Row:
    """A row of the session or its calls as it can be stored. Raises `RecordingError` if invalid."""
    if fault := _fault(row):
        raise RecordingError(f"damaged: {fault}")
    values = {field.name: getattr(row, field.name) for field in fields(row)}
    texts: dict[str, Any] = {name: storable(value) for name, value in values.items() if isinstance(value, str)}
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


def _message_fault(message: Message) -> str:
    """What is wrong with a message; "" for nothing."""
    for value in (message, message.usage, *message.parts):
        if value is not None and (fault := _fault(value)):
            return fault
    for name, allowed in (("role", _ROLES), ("kind", _KINDS), ("status", _STATUSES)):
        if getattr(message, name) not in allowed:
            return f"{name} is {getattr(message, name)!r}"
    return "" if message.id else "it has no id"


def _fault(value: Any) -> str:
    """The first field of a dataclass whose value is not of its declared type, or no possible number or time."""
    for field, types, low, high in _rules(value.__class__):
        content = getattr(value, field)
        if not isinstance(content, types):
            return f"{field} of a {type(value).__name__} is {type(content).__name__}"
        if isinstance(content, int | float) and not low <= content < high:
            return f"{field} of a {type(value).__name__} is {content!r:.20}"
    if isinstance(value, Usage) and not all(isinstance(term, str) for term in value.terms):
        return "terms of a Usage is no text"
    return ""


@cache
def _rules(kind: type[Any]) -> list[tuple[str, tuple[type, ...], float, float]]:
    """For each field of a dataclass its name, the allowed types, the least number, and the first that is too large."""
    return [
        (field.name, _TYPES.get(str(field.type), (str,)), *((0, YEAR_9999) if field.name in _TIMES else (-MOST, MOST)))
        for field in fields(kind)
    ]
