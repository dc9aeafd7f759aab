"""The content of an unfolded row of `/context`: a text to read, or a message of the conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.messages import Attachment, ToolSchema
from tui.text.numbers import approx, plural, size_text, tokens_exact

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.rows import UsageItem

FOLDED_ROWS = frozenset({"user", "reasoning", "tool_calls", "tool_results", "summaries"})
"""Rows for parts of messages that may be folded in the conversation, and are unfolded when opened."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A text with its title and a note."""

    title: str
    text: str
    note: str = ""


def opened(session: ChatSession, row: str, item: UsageItem) -> Opened | None:
    """The text of a row's item; None for a message, which is shown in the conversation."""
    cost = f"{approx(item.source)}{tokens_exact(item.tokens)} tokens"
    match row:
        case "system":
            return Opened("System prompt", session.system, cost)
        case "memory":
            file = next((f for f in session.memory.files if f.name == item.ref), None)
            return Opened(item.ref, file.section().text, cost) if file is not None else None
        case "instructions":
            section = next((section for section in session.instructions if section.name == item.ref), None)
            return Opened(item.ref, section.text, cost) if section is not None else None
        case "tools":
            tool = next((t for t in session.tools.plan.sent if t.name == item.ref), None)
            return Opened(f"{item.ref} · {tool.origin}", tool_text(tool), cost) if tool is not None else None
        case "attachments":
            message = next((m for m in session.messages if m.id == item.ref), None)
            files = [part for part in message.parts if isinstance(part, Attachment)] if message else []
            names = ", ".join(file.name for file in files)
            return Opened(names, "\n\n".join(map(attachment_text, files)), cost) if files else None
        case _:
            return None


def tool_text(tool: ToolSchema) -> str:
    """A tool as described to the model."""
    try:
        parameters = json.dumps(json.loads(tool.parameters), indent=2, ensure_ascii=False)
    except ValueError:
        parameters = tool.parameters
    return f"{tool.description}\n\n{parameters}"


def attachment_text(file: Attachment) -> str:
    """A text as it is sent; for other kinds a description."""
    if file.kind == "text":
        return file.text or ""
    size = f", {file.width} × {file.height} pixels" if file.width and file.height else ""
    pages = f", {plural(file.pages, 'page') if file.pages else '? pages'}" if file.kind == "pdf" else ""
    return f"{file.name}\n{file.media_type}, {size_text(file.size)}{size}{pages}"
