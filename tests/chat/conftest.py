from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tui.chat.store.store import SessionStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    """An empty database."""
    with closing(SessionStore(tmp_path / "chatctx.db")) as store:
        yield store
