"""Recognises conversations that were imported before, by their content, whatever the file's name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from tui.chat.interchange.recording import RecordingError
from tui.chat.store.store import SessionInfo, SessionStore
from tui.context.counting.digests import CHAIN_START, chain, message_digest
from tui.messages import Message

IMPORTED = "imported"
"""Key of the stored state: session id -> [number of messages in the file, their chained digest]."""


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


def chained(messages: Sequence[Message]) -> list[str]:
    """A digest for each beginning of a conversation: of its content and its measured usage."""
    digests = (sha256(message_digest(message).full + repr(message.usage).encode()).digest() for message in messages)
    return [digest.hex() for digest in chain(CHAIN_START, digests)]


def check_new(store: SessionStore, exported: SessionInfo | None, messages: Sequence[Message]) -> None:
    """Raises `AlreadyHereError` if the conversation, or a beginning of it, was imported or exported here.

    `exported` is the row of the exported session.
    """
    links = chained(messages)
    if exported is not None and _is_here(store, exported.id):
        stored = chained(store.messages(exported.id))
        both = min(len(stored), len(links))
        if both and stored[both - 1] == links[both - 1]:
            _say(store, exported.id, len(links) - both)
    for session, (count, digest) in reversed(_imported(store).items()):
        if 0 < count <= len(links) and links[count - 1] == digest and _is_here(store, session):
            _say(store, session, len(links) - count)


def _say(store: SessionStore, session: str, more: int) -> None:
    info = store.session(session)
    if info is not None:
        raise AlreadyHereError(info, more)


def _is_here(store: SessionStore, session: str) -> bool:
    """Whether it is listed: a deleted one may be imported again."""
    return bool(store.query("SELECT 1 FROM sessions WHERE id = ? AND deleted_at IS NULL", (session,)))


def _imported(store: SessionStore) -> dict[str, tuple[int, str]]:
    text = store.get_state(IMPORTED)
    imported: dict[str, tuple[int, str]] = {} if text is None else json.loads(text)
    return imported


def remember(store: SessionStore, session: str, messages: Sequence[Message]) -> None:
    """Record that a file with these `messages` is `session`."""
    entry = (len(messages), chained(messages)[-1])
    store.change_state(IMPORTED, lambda imported: {**imported, session: entry})
