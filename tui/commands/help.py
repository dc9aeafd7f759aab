"""`/help`: the commands, and the keys."""

from __future__ import annotations

from tui.commands.ui import UI, Chat, Command


async def run(ui: UI, chat: Chat, args: str) -> None:
    """Show every command that works here."""
    from tui.commands.registry import all_commands
    from tui.views.help_lines import HelpView

    commands = [command for command in all_commands() if ui.screen is not None or not command.screen_only]
    await ui.show(HelpView([(command.usage, command.help) for command in commands]))


COMMAND = Command("help", "commands and keys", run, "program", when="always", aliases=("?",))
