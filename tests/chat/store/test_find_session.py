from __future__ import annotations

from pathlib import Path

import pytest

from tui.chat.store.store import SessionInfo, SessionStore, UsageError
from tui.messages import Message, Text


def test_a_session_by_its_beginning(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    for ident in ("01a2", "01a3", "02"):
        store.create_session(SessionInfo(ident, "", "local", "m", 1.0, 1.0))
    assert [store.find(text).id for text in ("01a3", "02")] == ["01a3", "02"]
    with pytest.raises(UsageError, match="several sessions begin with '01a': write more of the id"):
        store.find("01a")
    for nothing in ("03", "", "*"):
        with pytest.raises(UsageError, match="list them with: chatctx sessions"):
            store.find(nothing)
    store.close()


def test_the_last_session_is_found_behind_any_number_of_starts_without_a_word(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "chatctx.db")
    assert store.last_session() is None
    store.create_session(SessionInfo("0", "", "local", "m", 1.0, 1.0))
    store.add_message("0", Message("user", (Text("hello"),), id="1", created_at=1.0))
    for number in range(30):
        store.create_session(SessionInfo(f"{number + 1:02}", "", "local", "m", 1e10 + number, 1e10 + number))
    last = store.last_session()
    assert last is not None and last.id == "0"
    store.close()
