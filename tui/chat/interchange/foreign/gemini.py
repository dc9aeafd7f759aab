"""Session files of Gemini CLI: one JSON object with all messages; a reply holds its tool calls and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tui.chat.interchange.recording import Recording, first_words, seconds
from tui.chat.store.ids import new_id
from tui.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

PROVIDER = "google"


def read(data: Mapping[str, Any], name: str) -> Recording:
    """The conversation in `data`; notices of the program are left out."""
    messages: list[Message] = []
    for entry in data["messages"]:
        at = seconds(entry.get("timestamp"))
        if entry.get("type") == "user":
            messages.append(Message("user", (Text(_text(entry.get("content"))),), id=new_id(), created_at=at))
        elif entry.get("type") == "gemini":
            messages += _reply(entry, at)
    return Recording("gemini-cli", first_words(messages, name), tuple(messages))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(piece.get("text", "")) for piece in content or [] if isinstance(piece, dict))


def _reply(entry: Mapping[str, Any], at: float) -> list[Message]:
    model = str(entry.get("model", ""))
    parts: list[Part] = []
    for thought in entry.get("thoughts") or []:
        words = f"{thought.get('subject', '')}: {thought.get('description', '')}"
        parts.append(Reasoning(words, PROVIDER, model))
    text = _text(entry.get("content"))
    if text:
        parts.append(Text(text))
    results: list[Part] = []
    for call in entry.get("toolCalls") or []:
        ident, tool = str(call["id"]), str(call["name"])
        parts.append(ToolCall(ident, tool, json.dumps(call.get("args"), ensure_ascii=False)))
        results.append(ToolResult(ident, tool, _output(call), call.get("status") == "error"))
    reply = Message(
        "assistant",
        tuple(parts),
        id=new_id(),
        created_at=at,
        provider=PROVIDER,
        model=model,
        usage=_usage(entry.get("tokens")),
    )
    return [reply, Message("tool", tuple(results), id=new_id(), created_at=at)] if results else [reply]


def _output(call: Mapping[str, Any]) -> str:
    """What the tool gave back, as the model gets it: the response object as JSON."""
    found = []
    for piece in call.get("result") or []:
        response = (piece.get("functionResponse") or {}).get("response")
        if response is not None:
            found.append(json.dumps(response, ensure_ascii=False))
    return "\n".join(found)


def _usage(data: Any) -> Usage | None:
    """`input` includes cached tokens; thoughts stand beside the output."""
    if not isinstance(data, dict) or not data.get("input"):
        return None
    thoughts = int(data.get("thoughts") or 0)
    output = int(data.get("output") or 0) + thoughts
    return Usage(int(data["input"]), output, int(data.get("cached") or 0), reasoning=thoughts)
