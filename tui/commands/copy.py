"""`/copy`: copy the last answer."""

from __future__ import annotations

from tui.commands import UI, Chat, CommandError, command


@command("copy the last answer", "view")
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Copy its Markdown source."""
    messages = chat.session.messages
    answer = next((message for message in reversed(messages) if message.role == "assistant" and message.text), None)
    if answer is None:
        raise CommandError("There is no answer to copy yet.")
    await ui.copy(answer.text)
