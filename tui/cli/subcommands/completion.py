"""`chatctx completion`, and the stored sessions and models that it offers to the shell."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tui.config.paths import is_there
from tui.config.settings import ConfigError, Settings, load_settings

if TYPE_CHECKING:
    from tui.chat.store.store import SessionInfo


VARIABLE = "_CHATCTX_COMPLETE"
"""Set by the shell scripts when they request completions."""


def run(settings: Settings, *, shell: str) -> int:
    """Print the script for `shell`."""
    import click
    from click.shell_completion import get_completion_class

    from tui.cli import write

    kind = get_completion_class(shell)
    assert kind is not None, shell  # the command line accepts no other
    write(kind(click.Command("chatctx"), {}, "chatctx", VARIABLE).source().rstrip("\n"))
    return 0


def session_ids(beginning: str) -> list[tuple[str, str]]:
    """The ids of stored sessions with their titles, newest first."""
    from tui.text.cells import plain

    return [(info.id, plain(info.title)) for info in _sessions() if info.id.startswith(beginning)]


def model_names(beginning: str) -> list[str]:
    """The models of stored sessions, last used first, then "provider/" for every provider."""
    from tui.providers.registry import all_configs

    used = [f"{info.provider}/{info.model}" for info in _sessions()]
    try:
        settings = load_settings()
        providers = [f"{name}/" for name in all_configs(settings.providers, gguf=settings.gguf)]
    except (ConfigError, ValueError):  # the command itself will report the error
        providers = []
    return [name for name in dict.fromkeys([*used, *providers]) if name.startswith(beginning)]


def _sessions() -> list[SessionInfo]:
    from tui.chat.store.database import StoreError
    from tui.chat.store.store import SessionStore

    try:
        database = load_settings().database
        if not is_there(database):
            return []
        with closing(SessionStore(database)) as store:
            return [info for info in store.sessions() if info.messages]
    except (ConfigError, StoreError):  # the command itself will report the error
        return []
