"""Session files of pi: a `session` line, then entries, one JSON object a line; since version 2 they form a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, ancestors, seconds, texts_in, usage_apart
from tui.chat.interchange.recording import Recording
from tui.messages import Attachment, MessageStatus, Text, ToolCall, ToolResult

SOURCE, NAME = "pi", "pi"

_STATUS: Mapping[str, MessageStatus] = {"aborted": "cancelled", "error": "failed"}


def detect(file: SourceFile) -> bool:
    """Whether it begins with a session's header, or has entries of a tree."""
    return any(
        line.get("type") == "session" or ("parentId" in line and isinstance(line.get("message"), dict))
        for line in file.lines[:5]
    )


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`: every branch; all but the last are set aside.

    A compaction keeps the entries from `firstKeptEntryIndex` (since version 2: `firstKeptEntryId`) on verbatim.
    """
    path = _path(file.lines)
    chat = Builder()
    aside: list[str] = []  # messages of branches that were left
    first_from: dict[int | str, int] = {}  # number or id of an entry -> position of the first message from there on

    def add(numbered: tuple[int, Line]) -> None:
        number, line = numbered
        count = first_from[number] = len(chat.messages)
        if "id" in line:
            first_from[str(line["id"])] = count
        active = path is None or number in path
        if line.get("type") == "compaction":
            if not active:
                return
            first_kept = line.get("firstKeptEntryIndex", line.get("firstKeptEntryId", number))
            begin = first_from.get(first_kept if isinstance(first_kept, int) else str(first_kept), count)
            summary = Text(f"Summary of the conversation so far:\n\n{line.get('summary', '')}")
            chat.compact([summary], seconds(line.get("timestamp")), verbatim=chat.context_from(begin))
        elif _add(chat, line) and not active:
            aside.append(chat.messages[-1].id)

    file.feed(add, enumerate(file.lines))
    chat.set_aside(aside)
    answered = {part.call_id for message in chat.messages for part in message.parts if isinstance(part, ToolResult)}
    for number, message in enumerate(chat.messages):
        if message.status in ("cancelled", "failed"):  # pi never ran their unfinished calls, and never sent them back
            parts = (part for part in message.parts if not isinstance(part, ToolCall) or part.id in answered)
            chat.messages[number] = replace(message, parts=tuple(parts))
    yield chat.recording(SOURCE, file.stem)


def _path(lines: Sequence[Line]) -> set[int] | None:
    """The numbers of the lines from the last entry back to the root; None where entries name no parents."""
    entries = {str(line["id"]): number for number, line in enumerate(lines) if "id" in line and "parentId" in line}
    if not entries:
        return None
    parents = {ident: str(lines[number].get("parentId")) for ident, number in entries.items()}
    return {entries[ident] for ident in ancestors(parents, max(entries, key=lambda ident: entries[ident]))}


def _add(chat: Builder, line: Line) -> str:
    """Add the message that an entry puts into the context; returns its id, "" for an entry that adds none."""
    at = seconds(line.get("timestamp"))
    match line.get("type"):
        case "message":
            return _message(chat, line["message"], at)
        case "custom_message":
            return chat.add("user", chat.parts(line.get("content")), at, kind="injected")
        case "branch_summary":
            text = Text(f"Summary of a branch that was abandoned:\n\n{line.get('summary', '')}")
            return chat.add("user", [text], at, kind="injected")
        case _:
            return ""


def _message(chat: Builder, data: Mapping[str, Any], at: float) -> str:
    provider, model = str(data.get("provider", "")), str(data.get("model", ""))
    parts = chat.parts(data.get("content"), provider, model)
    match data.get("role"):
        case "user":
            return chat.add("user", parts, at)
        case "toolResult":
            name, failed = str(data.get("toolName", "")), bool(data.get("isError"))
            result = ToolResult(str(data["toolCallId"]), name, texts_in(parts, "\n"), failed)
            return chat.add("tool", [result, *(part for part in parts if isinstance(part, Attachment))], at)
        case "assistant":
            stop = str(data.get("stopReason", ""))
            return chat.add(
                "assistant", parts, at, provider=provider, model=model, status=_STATUS.get(stop, "complete"),
                usage=usage_apart(data.get("usage"), "input", "output", "cacheRead", "cacheWrite"),
                finish_reason=stop, error=data.get("errorMessage"),
            )  # fmt: skip
        case "bashExecution" if not data.get("excludeFromContext"):
            text = f"Ran `{data.get('command', '')}`\n```\n{data.get('output', '')}\n```"
            return chat.add("user", [Text(text)], at, kind="injected")
        case _:
            return ""
