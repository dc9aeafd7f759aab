"""What every slash command may need: a word to the person, the session if it is ready, a list to choose from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui.screens.items import Source

if TYPE_CHECKING:
    from tui.screens.chat.chat_parts import ChatParts
    from tui.screens.ports import WorkspaceLike
    from tui.screens.session_ports import SessionLike
    from tui.screens.tools.tools import ToolsPanel


class CommandBase:
    """Holds the chat screen the commands act on."""

    tools_panel: ToolsPanel | None = None  # while it is open

    def __init__(self, screen: ChatParts) -> None:
        self.screen = screen

    def say(self, text: str) -> None:
        """A line in the conversation."""
        self.screen.transcript.add_notice("info", text)

    def refuse(self, text: str) -> None:
        """A line that says why not."""
        self.screen.transcript.add_notice("warning", text)

    def ready(self) -> SessionLike | None:
        """The session, or a word that there is none yet."""
        if self.screen.session is None:
            self.refuse("Still starting: try again in a moment.")
        return self.screen.session

    def idle(self) -> SessionLike | None:
        """The session if no turn runs, or a word that one does."""
        session = self.ready()
        if session is not None and self.screen.turns.busy:
            self.refuse("An answer is still coming: Esc stops it, then try again.")
            return None
        return session

    def workspace(self) -> WorkspaceLike | None:
        """The workspace, or a word that there is none yet."""
        if self.screen.workspace is None:
            self.refuse("Still starting: try again in a moment.")
        return self.screen.workspace

    def pick(
        self,
        title: str,
        source: Source,
        done: Callable[[str | None], None],
        placeholder: str,
        preview: Callable[[str], None] | None = None,
    ) -> None:
        """Let the person choose. Panels are imported when they are opened: the first frame does not wait for them."""
        from tui.screens.picker import Picker

        self.screen.app.push_screen(Picker(title, source, placeholder=placeholder, preview=preview), done)

    def recounted(self) -> None:
        """Something changed the numbers: status and marks follow."""
        self.screen.refresh_status(counts=True)
        if self.screen.session is not None:
            self.screen.transcript.set_not_sent(self.screen.session.not_sent)
