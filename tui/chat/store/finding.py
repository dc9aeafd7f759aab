"""Which stored session a person means."""

from __future__ import annotations

from tui.chat.store.store import SessionInfo, SessionStore


class UsageError(Exception):
    """What was asked for does not exist or can't be meant so. `str()` is one line with the next step."""


def find_session(store: SessionStore, ident: str) -> SessionInfo:
    """The session of this id, or of this beginning of one. Raises `UsageError`."""
    if (found := store.session(ident)) is not None:
        return found
    if ident and sum(info.id.startswith(ident) for info in store.sessions()) > 1:
        raise UsageError(f"several sessions begin with {ident!r}: write more of the id (chatctx sessions)")
    raise UsageError(f"no session {ident!r}; list them with: chatctx sessions")


def last_session(store: SessionStore) -> SessionInfo | None:
    """The session that was used last; None where nothing was ever said. Every start leaves an empty one for a day."""
    return next((info for info in store.sessions() if info.messages), None)
