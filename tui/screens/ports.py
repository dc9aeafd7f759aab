"""What the screens need of everything behind them, as protocols: the workspace implements them, tests fake them.

What they need of one conversation stands in `session_ports`, of its tools and servers in `tool_ports`, `mcp_ports`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.context.usage.limits import ModelLimits
from tui.messages import Attachment

if TYPE_CHECKING:
    from tui.chat.models.model_list import Listing
    from tui.chat.models.provider_setup import ProviderSetup
    from tui.chat.store.calls import CallRow
    from tui.context.reduction.trimming import TrimLog
    from tui.screens.mcp_ports import ServersLike
    from tui.screens.session_ports import SessionLike


class SettingsLike(Protocol):
    """The settings the screen reads."""

    @property
    def theme(self) -> str:
        """Name of the theme to start with."""
        ...

    @property
    def keys(self) -> Mapping[str, str]:
        """Binding id -> keys, comma-separated."""
        ...

    @property
    def themes_dir(self) -> Path:
        """Where the person's own themes are."""
        ...

    @property
    def data_dir(self) -> Path:
        """Where everything is kept."""
        ...

    @property
    def log_file(self) -> Path:
        """Where errors are written."""
        ...


class SessionInfoLike(Protocol):
    """A line of the session list."""

    @property
    def id(self) -> str:
        """Id in the store."""
        ...

    @property
    def title(self) -> str:
        """What it is called."""
        ...

    @property
    def model(self) -> str:
        """The model last used."""
        ...

    @property
    def updated_at(self) -> float:
        """Last change, seconds since the epoch."""
        ...

    @property
    def messages(self) -> int:
        """How many messages it has."""
        ...

    @property
    def parent(self) -> str | None:
        """The conversation it was forked from."""
        ...


class ModelInfoLike(Protocol):
    """A model a server offers."""

    @property
    def id(self) -> str:
        """Its name, without the provider."""
        ...

    @property
    def limits(self) -> ModelLimits | None:
        """Its window, where known."""
        ...


class ModelListLike(Protocol):
    """Which models there are."""

    async def cached(self) -> Listing:
        """As it was last. Asks nobody."""
        ...

    async def ask(self) -> Listing:
        """As the servers say now."""
        ...


class WorkspaceLike(Protocol):
    """Everything behind the screen."""

    @property
    def model_list(self) -> ModelListLike:
        """The models that can be talked to."""
        ...

    @property
    def setup(self) -> ProviderSetup:
        """Where keys come from, tried out and noted."""
        ...

    async def find_model(self, name: str) -> str:
        """The full name of the model a person calls `name`; raises an error whose text is one line."""
        ...

    @property
    def servers(self) -> ServersLike:
        """The MCP servers."""
        ...

    async def new_session(self) -> SessionLike:
        """An empty conversation with the model last used."""
        ...

    async def resume(self, session_id: str | None = None) -> SessionLike:
        """A stored conversation; None is the most recent."""
        ...

    async def sessions(self, query: str = "") -> Sequence[SessionInfoLike]:
        """Stored conversations, newest first, those that match `query`."""
        ...

    async def models(self) -> Sequence[tuple[str, ModelInfoLike]]:
        """(provider, model) of everything that can be used now."""
        ...

    async def fork(self, session_id: str, message_id: str) -> SessionLike:
        """A new conversation that begins as this one stood at a message of it."""
        ...

    async def start_session(self) -> SessionLike:
        """The conversation the command line asked for: a new one, or a stored one."""
        ...

    async def prompt_history(self, limit: int) -> Sequence[str]:
        """The last `limit` prompts of all conversations, oldest first."""
        ...

    async def add_prompt(self, text: str) -> None:
        """Remember a prompt."""
        ...

    async def save_theme(self, name: str) -> None:
        """Start with this theme from now on."""
        ...

    def place(self, provider: str) -> str:
        """Where a provider's model runs, in one sentence for the first screen."""
        ...

    async def calls(self, session_id: str | None = None) -> Sequence[CallRow]:
        """The calls of a conversation, or all, oldest first."""
        ...

    async def trims(self) -> TrimLog:
        """What rolling context did so far."""
        ...

    async def attach(self, path: Path) -> Attachment:
        """Read a file to send along; raises an error whose text is one line."""
        ...

    async def import_file(
        self, path: Path, *, again: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> SessionInfoLike:
        """Take a conversation in from a file; raises an error whose text is one line.

        `progress` gets the calls measured so far and all, from another thread.
        """
        ...

    async def delete_session(self, session_id: str) -> None:
        """Take a conversation out of the list."""
        ...

    async def rename_session(self, session_id: str, title: str) -> None:
        """Set the title of a conversation that is not open."""
        ...

    async def restore_session(self, session_id: str) -> None:
        """Put it back."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...
