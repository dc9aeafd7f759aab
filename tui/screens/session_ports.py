"""What the screens need of a conversation, as a protocol: the session implements it, tests fake it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.chat.conversation.events import SessionEvent
from tui.messages import Attachment, Message

if TYPE_CHECKING:
    from tui.chat.memory_files import MemoryFiles
    from tui.context.usage.usage import ContextUsage
    from tui.providers.base import Capabilities
    from tui.screens.summary.summary_subject import SummariesLike
    from tui.screens.tool_ports import SessionToolsLike


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

    @property
    def reasoning_sent(self) -> str | None:
        """The effort that goes out for it."""
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
