"""The themes to choose from, and the choice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tui.widgets.themes import load_themes

if TYPE_CHECKING:
    from tui.screens.chat.chat_parts import ChatParts


class Theming:
    """Loads themes when they are first asked for; the one in use was loaded at the start."""

    def __init__(self, screen: ChatParts, user_dir: Path) -> None:
        self.screen = screen
        self.user_dir = user_dir
        self._loaded = False

    async def load(self) -> None:
        """All themes of the program and of the person, once; bad files are named and skipped."""
        if self._loaded:
            return
        self._loaded = True
        app = self.screen.app
        themes, complaints = await asyncio.to_thread(load_themes, self.user_dir)
        for theme in themes:
            if theme.name != app.theme:
                app.register_theme(theme)
        for complaint in complaints:
            self.screen.transcript.add_notice("warning", complaint)

    async def use(self, name: str) -> None:
        """Change the colours, and remember that."""
        self.screen.app.theme = name
        if self.screen.workspace is not None:
            await self.screen.workspace.save_theme(name)
