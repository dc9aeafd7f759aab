"""What the slash commands do, on the chat screen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from tui.commands import registry as commands
from tui.screens.chat.compact_commands import CompactCommands
from tui.screens.chat.conversation_commands import ConversationCommands
from tui.screens.chat.import_command import ImportCommand
from tui.screens.chat.mcp_commands import McpCommands
from tui.screens.chat.memory_commands import MemoryCommands
from tui.screens.chat.message_commands import MessageCommands
from tui.screens.chat.model_commands import ModelCommands
from tui.screens.chat.paste_command import PasteCommand
from tui.screens.chat.provider_commands import ProviderCommands
from tui.screens.chat.tool_commands import ToolCommands
from tui.screens.editor import EditorError, edit
from tui.screens.items import Item, filtered
from tui.widgets.composer.completion import Choice
from tui.widgets.composer.composer import PromptArea
from tui.widgets.transcript.transcript import Transcript

if TYPE_CHECKING:
    from tui.context.usage.usage import ContextUsage
    from tui.screens.help import Key

log = logging.getLogger(__name__)


class ChatCommands(
    CompactCommands,
    ConversationCommands,
    MessageCommands,
    ModelCommands,
    MemoryCommands,
    ImportCommand,
    McpCommands,
    PasteCommand,
    ProviderCommands,
    ToolCommands,
):
    """The actions of one chat screen; implements `commands.Chat`."""

    # -- context -------------------------------------------------------------------------------------------------

    async def show_context(self, _args: str) -> None:
        """Open the panel."""
        if (session := self.ready()) is None:
            return
        from tui.screens.context.panel import ContextPanel

        panel = ContextPanel(session, self.screen.workspace, hints=self.hints, changed=self.recounted)
        self.screen.context_panel = panel
        self.screen.app.push_screen(panel, self._context_closed)

    def _context_closed(self, wish: str | None) -> None:
        self.screen.context_panel = None
        if wish == "compact":
            self.screen.action_command("compact")
        elif wish is not None:
            how, _, message_id = wish.partition(":")
            self.screen.transcript.choose(message_id, unfold=how == "unfold")

    def hints(self, usage: ContextUsage) -> dict[str, str]:
        """What can be done about each row, only what works here."""
        hints = {"messages": "m  list messages"}
        if self.screen.session is not None and (plan := self.screen.session.tools.plan).deferred:
            from tui.views.mcp_lines import deferred_words

            hints["tools"] = deferred_words(len(plan.deferred), plan.tokens)
        if usage.compaction_buffer:
            hints["buffer"] = "kept free; c compacts now"
        rolling = self.screen.session is not None and self.screen.session.rolling
        if any(row.key == "tool_results" for row in usage.rows):
            hints["tool_results"] = "trimmed when it gets tight" if rolling else "t  trims old ones when it gets tight"
        if usage.over:
            hints["over"] = "c compacts, t trims" if not rolling else "c compacts"
        return hints

    async def rolling(self, args: str) -> None:
        """`/rolling-context [on|off]`."""
        if (session := self.ready()) is None:
            return
        match args.lower():
            case "" | "toggle":
                on = not session.rolling
            case "on":
                on = True
            case "off":
                on = False
            case other:
                self.refuse(f"/rolling-context takes on or off, not {other!r}.")
                return
        await session.set_rolling(on)
        await session.refresh_usage()
        self.recounted()
        self.say(
            "Rolling context is on: old content is left out when it gets tight. Nothing is deleted."
            if on
            else "Rolling context is off: old content is summarised when it gets tight."
        )

    # -- around the conversation ---------------------------------------------------------------------------------

    async def pick_theme(self, args: str) -> None:
        """`/theme [name]`: the list with live preview, or the theme that was named."""
        app = self.screen.app
        await self.screen.theming.load()
        if args:
            if args not in app.available_themes:
                self.refuse(f"There is no theme {args!r}: /theme lists what there is.")
                return
            await self.screen.theming.use(args)
            return
        before = app.theme

        def preview(name: str) -> None:
            app.theme = name

        def chosen(name: str | None) -> None:
            if name is None:
                app.theme = before
            else:
                self.screen.action_command(f"theme {name}")

        self.pick("Themes", filtered(self._theme_items), chosen, "search themes", preview)

    async def _theme_items(self) -> list[Item]:
        present = self.screen.app.theme
        themes = self.screen.app.available_themes.values()
        own = [theme for theme in themes if "context-system" in theme.variables]
        others = [theme for theme in themes if "context-system" not in theme.variables]
        items = []
        for theme in [*own, *sorted(others, key=lambda theme: theme.name)]:
            kind = "terminal colours" if theme.ansi else "dark" if theme.dark else "light"
            items.append(Item(theme.name, theme.name, kind, theme.name == present, kind.split()[0]))
        return items

    async def help(self, _args: str) -> None:
        """`/help`."""
        from tui.screens.help import HelpPanel

        self.screen.app.push_screen(HelpPanel(commands.COMMANDS, await asyncio.to_thread(self.keys)))

    def keys(self) -> dict[str, list[Key]]:
        """All keys that have a name, as the person has set them."""
        from tui.screens.base import Panel
        from tui.screens.context.fits import FitsPanel
        from tui.screens.context.history import HistoryPanel
        from tui.screens.context.messages import MessagesPanel
        from tui.screens.context.panel import ContextPanel
        from tui.screens.help import HelpPanel, keys_of
        from tui.screens.pager import Pager
        from tui.screens.sessions import SessionPicker
        from tui.screens.summary.summary import SummaryPanel
        from tui.screens.tools.approval import ApprovalPanel
        from tui.screens.tools.mcp import McpPanel
        from tui.screens.tools.tools import ToolsPanel
        from tui.screens.usage import UsagePanel

        keymap = self.screen.keymap
        return {
            "Writing": keys_of([PromptArea], keymap),
            "Conversation": keys_of([type(self.screen), type(self.screen.app)], keymap),
            "A chosen message": keys_of([Transcript], keymap),
            "/sessions": keys_of([SessionPicker], keymap),
            "/compact --preview, /summary": keys_of([SummaryPanel], keymap),
            "/context": keys_of([ContextPanel, MessagesPanel, HistoryPanel, FitsPanel], keymap),
            "/mcp": keys_of([McpPanel], keymap),
            "/tools": keys_of([ToolsPanel], keymap),
            "A call that asks": keys_of([ApprovalPanel], keymap),
            "A whole text": keys_of([Pager], keymap),
            "Panels": keys_of([Panel, HelpPanel, UsagePanel], keymap),
        }

    def key_problems(self) -> list[str]:
        """What is wrong with the keys that the person set, a line each."""
        from tui.screens.keymap import keymap_problems

        known = {key.id for section in self.keys().values() for key in section}
        return keymap_problems(self.screen.keymap, known)

    async def quit(self, _args: str) -> None:
        """`/quit`."""
        await self.screen.app.action_quit()

    async def edit(self, _args: str) -> None:
        """`/edit`: the draft in the person's own editor, while the screen waits."""
        if self.idle() is None:
            return
        composer, problem = self.screen.composer, ""
        try:
            with self.screen.app.suspend():
                try:
                    composer.value = edit(composer.value)
                except EditorError as error:  # not out of `suspend`: it would not take the terminal back
                    problem = str(error)
        except SuspendNotSupported:
            problem = "There is no terminal here that an editor could use."
        if problem:
            self.refuse(problem)
        composer.focus_prompt()

    async def complete_themes(self, _args: str) -> Sequence[Choice]:
        """Themes by name."""
        await self.screen.theming.load()
        return [Choice(item.key, item.label, item.detail) for item in await self._theme_items()]
