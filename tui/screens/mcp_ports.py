"""What the screens need of the MCP servers and of a conversation's tools, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Protocol

from tui.messages import Attachment

if TYPE_CHECKING:
    from tui.chat.server_files import ProjectFile
    from tui.chat.servers import ServerLine
    from tui.tools.mcp.patterns import Gap, ServerPattern
    from tui.tools.mcp.results import Content, ServerPrompt, ServerResource


class ServersLike(Protocol):
    """The MCP servers of the running program."""

    @property
    def lines(self) -> Sequence[ServerLine]:
        """Every server, by name."""
        ...

    @property
    def project(self) -> ProjectFile | None:
        """The working directory's own file, where there is one."""
        ...

    @property
    def resources(self) -> Sequence[ServerResource]:
        """What can be read."""
        ...

    @property
    def readers(self) -> AbstractSet[str]:
        """The servers that have resources, listed or by pattern."""
        ...

    @property
    def patterns(self) -> Sequence[ServerPattern]:
        """Of resources that are not listed."""
        ...

    async def complete(self, pattern: ServerPattern, found: Gap) -> Sequence[str]:
        """What a server offers for the gap in an address."""
        ...

    @property
    def prompts(self) -> Sequence[ServerPrompt]:
        """What can be put into the draft."""
        ...

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a server's name when its status has changed."""
        ...

    def news(self) -> Sequence[str]:
        """Lines a person should hear of, each once."""
        ...

    async def agree(self, yes: bool) -> None:
        """The person's word on the project's file."""
        ...

    async def switch(self, name: str, on: bool) -> None:
        """Start or end a server. Raises an error whose text is one line."""
        ...

    async def restart(self, name: str) -> None:
        """End a server and start it anew. Raises an error whose text is one line."""
        ...

    async def attach(self, resource: ServerResource) -> Sequence[Attachment]:
        """A resource's content, to send along. Raises an error whose text is one line."""
        ...

    async def prompt(self, prompt: ServerPrompt, arguments: Mapping[str, str]) -> Content:
        """A prompt's messages as one text. Raises an error whose text is one line."""
        ...
