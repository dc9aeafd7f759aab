"""What the screens need of a conversation, as protocols: session and workspace implement them, tests fake them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.chat.events import SessionEvent
from tui.context.limits import ModelLimits
from tui.messages import Attachment, Message

if TYPE_CHECKING:
    from tui.chat.memory_files import MemoryFiles
    from tui.chat.model_list import Listing
    from tui.chat.provider_setup import ProviderSetup
    from tui.chat.usage_report import Call
    from tui.context.trimming import TrimLog
    from tui.context.usage import ContextUsage
    from tui.providers.base import Capabilities
    from tui.screens.mcp_ports import ServersLike
    from tui.screens.summary_subject import SummariesLike
    from tui.screens.tool_ports import SessionToolsLike


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


class SessionLike(Protocol):
    """One conversation."""

    @property
    def id(self) -> str:
        """Its id in the store."""
        ...

    @property
    def title(self) -> str:
        """What it is called; "" before anything was said."""
        ...

    @property
    def provider(self) -> str:
        """The provider's name."""
        ...

    @property
    def model(self) -> str:
        """The model's name, without the provider."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What the model takes."""
        ...

    @property
    def messages(self) -> Sequence[Message]:
        """The whole history, oldest first."""
        ...

    @property
    def usage(self) -> ContextUsage | None:
        """The latest numbers."""
        ...

    @property
    def rolling(self) -> bool:
        """Whether rolling context is on."""
        ...

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        ...

    @property
    def not_sent(self) -> Mapping[str, str]:
        """Message id -> why it is not sent any more: "trimmed", "compacted" or "excluded"."""
        ...

    def send(self, text: str, attachments: Sequence[Attachment] = ()) -> AsyncIterator[SessionEvent]:
        """A turn."""
        ...

    def retry(self) -> AsyncIterator[SessionEvent]:
        """The last turn again, or what was interrupted of it."""
        ...

    def compact(self, instructions: str = "") -> AsyncIterator[SessionEvent]:
        """Summarise what is old."""
        ...

    @property
    def summaries(self) -> SummariesLike:
        """Summaries to look at before a compaction is made, and to change afterwards."""
        ...

    @property
    def tools(self) -> SessionToolsLike:
        """Its tools."""
        ...

    def cancel(self) -> None:
        """End the running turn; what arrived is kept."""
        ...

    async def measured_for(self, full_name: str) -> ContextUsage:
        """The numbers as they would be with another model; changes nothing. Raises as `set_model`."""
        ...

    def compact_for(self, full_name: str) -> AsyncIterator[SessionEvent]:
        """Summarise with the model in use until the rest fits another one, then go on with that."""
        ...

    async def set_model(self, full_name: str) -> None:
        """Change the model ("provider/model"). Raises an error whose text is one line for a person."""
        ...

    async def set_rolling(self, on: bool) -> None:
        """Turn rolling context on or off."""
        ...

    async def refresh_usage(self) -> ContextUsage:
        """Count again."""
        ...

    def draft_tokens(self, text: str) -> int | None:
        """What `text` would cost, in tokens; None is unknown. May take long: call it off the event loop."""
        ...

    @property
    def system(self) -> str:
        """The system prompt, without memory files."""
        ...

    async def set_system(self, text: str) -> None:
        """Use another system prompt from now on."""
        ...

    @property
    def memory(self) -> MemoryFiles:
        """The memory files, those that are switched off included, and what is to be said of them."""
        ...

    async def switch_memory(self, name: str, on: bool) -> None:
        """Send a memory file from now on, or no longer."""
        ...

    @property
    def reasoning(self) -> str | None:
        """The wanted effort; None is the provider's default."""
        ...

    async def set_reasoning(self, effort: str | None) -> None:
        """Ask for this effort from now on."""
        ...

    async def rename(self, title: str) -> None:
        """Set the title."""
        ...

    async def export(self, path: Path) -> None:
        """Write the whole history; the ending says the form. Raises OSError or ValueError, one line."""
        ...

    @property
    def draft(self) -> str:
        """The draft as last saved."""
        ...

    async def save_draft(self, text: str) -> None:
        """Keep the draft."""
        ...

    async def cost(self) -> float | None:
        """Dollars spent on this conversation; None is unknown."""
        ...

    async def count_exactly(self) -> int | None:
        """The server's own count of the next request, in tokens; None where it has no such endpoint."""
        ...

    async def set_window(self, tokens: int | None) -> None:
        """Set this model's window, in tokens; None forgets set and learned values."""
        ...

    @property
    def pinned(self) -> AbstractSet[str]:
        """Ids of messages that are never trimmed."""
        ...

    async def pin(self, message_id: str, on: bool) -> None:
        """Pin or unpin a message."""
        ...

    async def exclude(self, message_id: str, on: bool) -> None:
        """Leave a message out of the request, or take it back in."""
        ...

    async def rewind(self, message_id: str) -> None:
        """Set a message and all that follows it aside: kept, not sent."""
        ...

    async def undo(self) -> str | None:
        """Take the last compaction back; a line that says what came back, None where there is none."""
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

    async def calls(self, session_id: str | None = None) -> Sequence[Call]:
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
