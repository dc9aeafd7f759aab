from __future__ import annotations

import pytest


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sign-ins are stored in files."""
    monkeypatch.setattr("tui.tools.mcp.oauth._keyring", lambda: None)
