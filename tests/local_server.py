"""The embedded server for tests and benches that have no event loop, or one that must not be used."""

from __future__ import annotations

from tui.providers.local import LocalServer, _read_answer


def start(server: LocalServer) -> str:
    """`LocalServer.start`, blocking."""
    return server._started(_read_answer(server._spawn()))
