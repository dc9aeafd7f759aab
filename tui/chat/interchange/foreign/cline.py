"""Task folders of Cline, Roo Code and Kilo Code: `api_conversation_history.json`, with usage in `ui_messages.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.foreign.source import SourceFile
from tui.chat.interchange.recording import Recording, first_words, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

SOURCE, NAME = "cline", "Cline, Roo Code or Kilo Code"

HISTORY, SCREEN = "api_conversation_history.json", "ui_messages.json"
UNSCORED = "no usage per call in this task"


def detect(file: SourceFile) -> bool:
    """Whether `file` is a task folder, or the history in one."""
    if file.path.is_dir():
        return (file.path / HISTORY).is_file()
    document = file.document
    return (
        isinstance(document, list)
        and bool(document)
        and all(isinstance(entry, dict) and "role" in entry and "content" in entry for entry in document)
    )


def read(file: SourceFile) -> list[Recording]:
    """The conversation of a task."""
    history = SourceFile(file.path / HISTORY) if file.path.is_dir() else file
    screen = SourceFile(history.path.with_name(SCREEN))
    shown = screen.document if screen.path.is_file() else None
    usages = _usages(shown) if isinstance(shown, list) else []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for entry in history.document or []:
        messages += _messages(entry, names)
    answers = [i for i, message in enumerate(messages) if message.role == "assistant"]
    if not any(messages[i].usage for i in answers) and len(usages) == len(answers):
        for index, usage in zip(answers, usages, strict=True):
            messages[index] = replace(messages[index], usage=usage)
    records = [_left_out(shown, messages)] if isinstance(shown, list) and _range(shown) else []
    fallback = history.path.parent.name
    unscored = "" if any(message.usage for message in messages) else UNSCORED
    title = first_words(messages, fallback)
    return [Recording(SOURCE, title, tuple(messages), tuple(records), unscored=unscored)]


def _messages(entry: Mapping[str, Any], names: dict[str, str]) -> list[Message]:
    content = entry.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    at = seconds(entry.get("ts"))
    about = entry.get("modelInfo") or {}
    provider, model = str(about.get("providerId") or ""), str(about.get("modelId") or "unknown")
    parts: list[Part] = []
    results: list[Part] = []
    for block in blocks:
        match block.get("type"):
            case "text" if block.get("text"):
                parts.append(Text(str(block["text"])))
            case "thinking":
                signature = block.get("signature") or None
                parts.append(Reasoning(str(block.get("thinking") or ""), provider, model, signature=signature))
            case "tool_use":
                names[str(block["id"])] = str(block.get("name", ""))
                arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
                parts.append(ToolCall(str(block["id"]), str(block.get("name", "")), arguments))
            case "tool_result":
                results.append(_result(block, names))
    messages: list[Message] = []
    if results:
        messages.append(Message("tool", tuple(results), id=new_id(), created_at=at))
    if parts and entry.get("role") == "assistant":
        tokens = (entry.get("metrics") or {}).get("tokens")
        messages.append(
            Message(
                "assistant", tuple(parts), id=new_id(), created_at=at, provider=provider, model=model,
                usage=_metrics(tokens),
            )
        )  # fmt: skip
    elif parts:
        messages.append(Message("user", tuple(parts), id=new_id(), created_at=at))
    return messages


def _result(block: Mapping[str, Any], names: Mapping[str, str]) -> ToolResult:
    call, content = str(block.get("tool_use_id")), block.get("content") or ""
    pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(str(piece.get("text", "")) for piece in pieces if piece.get("type") == "text")
    return ToolResult(call, names.get(call, ""), text, bool(block.get("is_error")))


def _metrics(tokens: Any) -> Usage | None:
    """Usage beside the message (2026): `prompt` includes cached tokens."""
    if not isinstance(tokens, Mapping) or not tokens.get("prompt"):
        return None
    return Usage(int(tokens["prompt"]), int(tokens.get("completion") or 0), int(tokens.get("cached") or 0))


def _usages(shown: Sequence[Any]) -> list[Usage | None]:
    """The usage of every request that was finished. `tokensIn` leaves out the cache for Anthropic's protocol."""
    usages: list[Usage | None] = []
    for entry in shown:
        if not isinstance(entry, dict) or entry.get("say") != "api_req_started" or entry.get("partial"):
            continue
        try:
            data = json.loads(entry.get("text") or "{}")
        except ValueError:
            data = {}
        read, write = int(data.get("cacheReads") or 0), int(data.get("cacheWrites") or 0)
        total = int(data.get("tokensIn") or 0)
        if data.get("apiProtocol") != "openai":
            total += read + write
        usages.append(Usage(total, int(data.get("tokensOut") or 0), read, write) if total else None)
    return usages


def _range(shown: Sequence[Any]) -> list[int] | None:
    """The newest `conversationHistoryDeletedRange`: positions of messages that are not sent any more."""
    for entry in reversed(shown):
        bounds = entry.get("conversationHistoryDeletedRange") if isinstance(entry, dict) else None
        if isinstance(bounds, list) and len(bounds) == 2:
            return [int(bound) for bound in bounds]
    return None


def _left_out(shown: Sequence[Any], messages: Sequence[Message]) -> Record:
    first, last = _range(shown) or [0, -1]
    ids = [message.id for message in messages[first : last + 1]]
    return Record(new_id(), RecordKind.SET_ASIDE, messages[-1].created_at, {"ids": ids})
