"""`/theme`: change the colours."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tui.commands import UI, Chat, CommandError, command
from tui.config.settings import remember_theme
from tui.views.view import Menu, Option, filtered


async def complete(ui: UI, _chat: Chat, _args: str) -> Sequence[Option]:
    """Themes by name."""
    return await ui.screen.themes() if ui.screen is not None else ()


@command("change the colours", "view", when="always", args="[NAME]", complete=complete, screen_only=True)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Use the named theme, or one from the list, which previews each."""
    screen = ui.screen
    assert screen is not None
    themes = await screen.themes()
    name = args
    if not name:
        before = next((theme.key for theme in themes if theme.current), "")
        menu = Menu("Themes", filtered(screen.themes), "/theme NAME", "search themes", preview=screen.use_theme)
        name = await ui.choose(menu) or ""
        if not name:
            screen.use_theme(before)
            return
    if all(theme.key != name for theme in themes):
        raise CommandError(f"There is no theme {name!r}: /theme lists them.")
    screen.use_theme(name)
    if chat.ready:
        await asyncio.to_thread(remember_theme, chat.workspace.settings.data_dir, name)
