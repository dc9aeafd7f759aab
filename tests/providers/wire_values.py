"""Plain requests to put on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.messages import assistant, tool, user
from tui.messages import Attachment, Message, Reasoning, Request, ToolCall, ToolResult, ToolSchema

IMAGE = Attachment("image", "cat.png", "image/png", "aa", 3, 10, 10)
PDF = Attachment("pdf", "paper.pdf", "application/pdf", "bb", 3, pages=1)
NOTE = Attachment("text", "note.txt", "text/plain", "cc", 5, text="a note")
GONE = Attachment("image", "gone.png", "image/png", "dd", 3)
TOOL = ToolSchema("look", "Look at a file", '{"properties":{"path":{"type":"string"}},"type":"object"}')


def request(*messages: Message, **changes: Any) -> Request:
    base = Request("p", "m", messages, blobs={"aa": b"img", "bb": b"pdf"})
    return replace(base, **changes)


def thought(text: str = "hm", **fields: Any) -> Reasoning:
    return Reasoning(text, fields.pop("provider", "p"), fields.pop("model", "m"), **fields)


TOOL_TURN = (
    user("Read both"),
    assistant("Looking.", ToolCall("c1", "look", '{"path": "a"}'), ToolCall("c2", "look", '{"path": "b"}')),
    tool(ToolResult("c1", "look", "A"), ToolResult("c2", "look", "", is_error=True)),
    user("Thanks"),
)
