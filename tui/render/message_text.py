"""A message's attachments and its end in words, and its text as copying gives it."""

from __future__ import annotations

from tui.messages import Attachment, Message, Refusal, Text, ToolResult
from tui.text.clean import clean_line
from tui.text.numbers import plural, size_text


def copy_text(message: Message) -> str:
    """What copying a message gives: its words as they were written; of a tool message what the tools returned."""
    texts = [part.text for part in message.parts if isinstance(part, Text | Refusal | ToolResult)]
    return "\n\n".join([text for text in texts if text])


def attachment_text(part: Attachment) -> str:
    """A file that went along: its name, what it is, its size."""
    details = {
        "image": f"{part.width}×{part.height}" if part.width and part.height else "image",
        "pdf": plural(part.pages, "page") if part.pages else "PDF",
        "text": "text",
    }[part.kind]
    return f"@ {clean_line(part.name)} · {details} · {size_text(part.size)}"


_NO_ROOM = '■ cut off: the room kept for an answer is used up · write "go on", or set reserve_output higher'
_CUT = {  # by the provider's own word for the end
    "length": _NO_ROOM,  # Chat Completions
    "max_tokens": _NO_ROOM,  # Messages
    "max_output_tokens": _NO_ROOM,  # Responses
    "model_context_window_exceeded": "■ cut off: the window is full · /compact or /rolling-context on makes room",
    "repetition": "■ cut off: the answer began to repeat itself · /retry asks again",  # vLLM
    "content_filter": "■ cut off by the provider's content filter",
    "sensitive": "■ cut off by the provider's content filter",  # Z.ai
}


def status_text(message: Message) -> str | None:
    """What to say under a message that did not end well; None when it did."""
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
            return f"■ {clean_line(message.error)}"  # it says itself what happened, what is kept and what to do
        case "interrupted":
            return "■ the connection ended early, what arrived is kept · /retry asks again"
        case "failed":
            return f"✗ {clean_line(message.error or 'the request failed')} · /retry asks again"
        case "complete":
            return _CUT.get(message.finish_reason or "")
        case _:
            return None
