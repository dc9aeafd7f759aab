"""Imports recorded conversations: our own export without loss, other programs' sessions in a form that works here.

Everything is read and checked first, then written in one transaction. Nothing is predicted: an imported call has the
usage that was reported, and no estimate. What the calls measured is learned when the session is opened
(`replay.measure_imported`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.chat.interchange.foreign import SessionFile, read_recordings
from tui.chat.interchange.recording import OURS, Recording, RecordingError, checked
from tui.chat.interchange.replay import tokens_not_in_file
from tui.chat.store.calls import CallLog, CallRow, usage_columns
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionInfo, SessionStore, storable
from tui.context.counting.digests import CHAIN_START, chain, message_digest
from tui.messages import Message, Reasoning
from tui.providers.catalog import price
from tui.text.clean import abbreviated

_PROVIDERS: Mapping[str, str] = {
    "google": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "openai-codex": "openai",
    "azure-openai-responses": "openai",
    "amazon-bedrock": "anthropic",
}
_FAMILIES = (("claude", "anthropic"), ("gpt", "openai"), ("gemini", "gemini"), ("deepseek", "deepseek"))


class AlreadyHereError(RecordingError):
    """The conversation is `info`: the file's first `here` messages, without `more`. `str()` says what to do."""

    def __init__(self, info: SessionInfo, here: int, more: int) -> None:
        title = abbreviated(" ".join(info.title.split()), 60) or "(no title)"
        if more:
            text = f"its first {here:,} messages are here already, as {title!r} ({info.id}), {more:,} are new"
        else:
            text = f"it is here already, as {title!r} ({info.id})"
        super().__init__(f"{text}: --again imports it as another conversation, whose calls count once more in /usage")
        self.info = info
        self.here = here
        self.more = more


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported session.

    `copy_of` is the id in the file if a session with that id was here already; `not_in_file` are the tokens of the
    other program's system prompt and tools, which are not in its file and not sent from here. `skipped` says what of
    the file could not be read.
    """

    info: SessionInfo
    calls: int
    source: str
    not_in_file: int = 0
    copy_of: str = ""
    skipped: str = ""


def import_file(
    store: SessionStore, path: Path, *, providers: Collection[str], again: bool = False
) -> Iterator[Imported | RecordingError]:
    """Import every conversation of a file, each entirely or not at all. Arguments as of `import_session`.

    Raises `RecordingError` if the file can't be read, or not to its end, and `StoreError`.
    """
    try:
        status = path.stat()  # before it is read: it may grow meanwhile
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None
    complete = True
    for recording in read_recordings(path):
        outcome: Imported | RecordingError
        try:
            outcome = import_session(store, recording, providers=providers, again=again)
        except RecordingError as error:
            outcome, complete = error, complete and isinstance(error, AlreadyHereError)
        yield outcome
    if complete:
        row = (storable(str(path.absolute())), status.st_size, status.st_mtime)
        store.write("INSERT OR REPLACE INTO imported_files VALUES (?, ?, ?)", row, durable=False)


def was_imported(store: SessionStore, file: SessionFile) -> bool:
    """Whether a file was imported in its present state."""
    sql = "SELECT 1 FROM imported_files WHERE path = ? AND size = ? AND changed = ?"
    return bool(store.query(sql, (storable(str(file.path.absolute())), file.size, file.changed)))


def import_session(
    store: SessionStore, recording: Recording, *, providers: Collection[str], again: bool = False
) -> Imported:
    """Add `recording` as a new session in one transaction. `providers` are the available names.

    Raises `RecordingError` for damaged content, `AlreadyHereError` for a conversation that was imported before, unless
    `again`, and `StoreError`.
    """
    recording = checked(recording)
    exported, digests = recording.info, _chained(recording.messages)
    if not again:
        _check_new(store, exported, digests)
    if recording.source != OURS:
        recording = _adapted(recording, providers)
    tokens = tokens_not_in_file(recording)
    unmeasured = json.dumps({"not_in_file": tokens, "corrected": dict(recording.corrected)})
    with store.transaction():
        if not again:  # another program may have imported it meanwhile
            _check_new(store, exported, digests)
        info = import_recording(recording, store)
        store.write("INSERT INTO imports VALUES (?, ?, ?)", (info.id, digests[-1], unmeasured))
    copy_of = exported.id if exported is not None and exported.id != info.id else ""
    not_in_file = 0 if recording.source == OURS else tokens or 0
    return Imported(info, len(recording.calls), recording.source, not_in_file, copy_of, recording.skipped)


def import_recording(recording: Recording, store: SessionStore) -> SessionInfo:
    """Store a checked `recording`. Ids of the session and of calls that are in use are replaced by new ones."""
    info = recording.info
    if info is None:
        times = [message.created_at for message in recording.messages if message.created_at]
        info = SessionInfo("", recording.title, *recording.model, min(times, default=0.0), max(times, default=0.0))
    if not info.id or store.session(info.id) is not None:
        info = replace(info, id=new_id())
    calls = CallLog(store)
    taken = calls.stored(call.id for call in recording.calls)
    with store.transaction():
        store.create_session(info)
        for sha256, data in recording.blobs.items():
            store.put_blob(sha256, data)
        for message in recording.messages:
            store.add_message(info.id, message)
        store.add_records(info.id, recording.records)
        calls.add(
            replace(call, id=new_id() if call.id in taken else call.id, session=info.id) for call in recording.calls
        )
    return replace(info, messages=len(recording.messages))


# -- what was imported before ------------------------------------------------------------------------------------------


def _chained(messages: Sequence[Message]) -> list[str]:
    """A digest for each beginning of a conversation: of its content and its measured usage."""
    chained, digests = CHAIN_START, []
    for message in messages:
        content = message_digest(message).full + repr(message.usage).encode()
        chained = chain(chained, hashlib.sha256(content).digest())
        digests.append(chained.hex())
    return digests


def _check_new(store: SessionStore, exported: SessionInfo | None, digests: Sequence[str]) -> None:
    """Raises `AlreadyHereError` if the conversation, or a beginning of it, was imported or exported here.

    `exported` is the row of the exported session, `digests` are those of `_chained`. A deleted session may be imported
    again.
    """
    if exported is not None and store.query(
        "SELECT 1 FROM sessions WHERE id = ? AND deleted_at IS NULL", (exported.id,)
    ):
        stored = _chained(store.messages(exported.id))
        both = min(len(stored), len(digests))
        if both and stored[both - 1] == digests[both - 1]:
            raise AlreadyHereError(store.find(exported.id), both, len(digests) - both)
    sql = (
        "SELECT session, digest FROM imports JOIN sessions ON sessions.id = session WHERE deleted_at IS NULL"
        " AND digest IN (SELECT value FROM json_each(?)) ORDER BY imports.rowid DESC LIMIT 1"
    )
    for session, digest in store.query(sql, (json.dumps(digests),)):
        here = digests.index(digest) + 1
        raise AlreadyHereError(store.find(session), here, len(digests) - here)


# -- other programs' conversations -------------------------------------------------------------------------------------


def _adapted(recording: Recording, providers: Collection[str]) -> Recording:
    """Another program's conversation with the names of providers here, and its calls as they would be logged here.

    The calls have no prediction: nobody made one.
    """
    if not any(message.role == "assistant" for message in recording.messages):
        raise RecordingError("it has no answer of a model")
    recording = replace(
        recording, messages=tuple(_adapted_message(message, providers) for message in recording.messages)
    )
    calls = (
        CallRow(
            new_id(), "", reply.id, "compaction" if reply.kind == "summary" else "chat", reply.provider, reply.model,
            reply.created_at, "success", **usage_columns(usage), finish_reason=reply.finish_reason,
            cost=price(usage, reply.provider, reply.model),
        )
        for _, reply, usage in recording.answers
    )  # fmt: skip
    return replace(recording, calls=tuple(calls))


def _adapted_message(message: Message, providers: Collection[str]) -> Message:
    """`message` with a model's name and our provider's, also in its reasoning, which is sent back only to its provider.

    Reasoning whose encrypted content is not in the file is left out: it can't be sent back.
    """
    if message.role != "assistant":
        return message
    name = provider_name(message.provider, message.model, providers)
    parts = []
    for part in message.parts:
        if isinstance(part, Reasoning):
            if part.encrypted == "":
                if not part.text:
                    continue
                part = replace(part, encrypted=None)
            if part.provider == message.provider:
                part = replace(part, provider=name)
        parts.append(part)
    return replace(message, provider=name, model=message.model or "unknown", parts=tuple(parts))


def provider_name(provider: str, model: str, providers: Collection[str]) -> str:
    """The name of another program's provider here; unknown ones get the name of a generic provider."""
    name = _PROVIDERS.get(provider, provider)
    if name in providers:
        return name
    return next((ours for start, ours in _FAMILIES if model.startswith(start)), "openrouter")
