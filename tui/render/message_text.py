"""A message's attachments and status in words, and its text for copying."""

from __future__ import annotations

from tui.messages import Attachment, Message, Refusal, Text, ToolResult
from tui.text.clean import clean_line
from tui.text.endings import ending_line
from tui.text.numbers import plural, size_text


def copy_text(message: Message) -> str:
    """The text for copying a message: its Markdown source; for a tool message the tools' output."""
    texts = [part.text for part in message.parts if isinstance(part, Text | Refusal | ToolResult)]
    return "\n\n".join([text for text in texts if text])


def attachment_text(part: Attachment) -> str:
    """An attached file: its name, kind and size."""
    details = {
        "image": f"{part.width}×{part.height}" if part.width and part.height else "image",
        "pdf": plural(part.pages, "page") if part.pages else "PDF, ? pages",
        "text": "text",
    }[part.kind]
    return f"@ {clean_line(part.name)} · {details} · {size_text(part.size)}"


def status_text(message: Message) -> str | None:
    """The line under a message that did not end well; None if it did."""
    match message.status:
        case "cancelled" if not message.parts:
            return "■ stopped by you before anything arrived · /retry asks again"
        case "cancelled":
            return "■ stopped by you, what arrived is kept · /retry asks again"
        case "interrupted" if message.role == "tool":
            return "■ the program ended while tools ran, what they returned is kept"
        case "interrupted" if not message.parts:
            return "■ the connection ended before anything arrived · /retry asks again"
        case "interrupted" if message.error and "/retry" in message.error:
            return f"■ {clean_line(message.error)}"  # the error text says what happened, what is kept and what to do
        case "interrupted" if message.error and not message.error.startswith("the answer broke off"):
            return f"■ {clean_line(message.error).rstrip('.')} · what arrived is kept, /retry asks again"
        case "interrupted":
            return "■ the connection ended early, what arrived is kept · /retry asks again"
        case "failed":
            return f"✗ {clean_line(message.error or 'the request failed')} · /retry asks again"
        case "complete" if message.role == "assistant" and message.kind == "chat":
            ending = ending_line(message)
            return f"■ {ending}" if ending else None
        case _:
            return None
