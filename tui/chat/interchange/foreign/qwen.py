"""Chats of qwen-code: one record a line, a tree by `uuid` and `parentUuid`, with Gemini's content parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tui.chat.interchange.foreign.gemini import contents
from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, ancestors, seconds
from tui.chat.interchange.recording import Recording
from tui.messages import Message, Text
from tui.providers.usage_reading import read_usage
from tui.providers.wire import find_count

SOURCE, NAME = "qwen-code", "qwen-code"
PROVIDER = "qwen"


def detect(file: SourceFile) -> bool:
    """Whether `file` is a chat: like Claude Code's, but with `message.parts`."""
    return any(
        "parentUuid" in line and isinstance(line.get("message"), dict) and "parts" in line["message"]
        for line in file.lines[:5]
    )


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`: every branch; all but the last are set aside."""
    lines = [line for line in file.lines if not line.get("isSidechain")]
    parents = {str(line.get("uuid")): str(line.get("parentUuid") or "") for line in lines}
    path = set(ancestors(parents, next(reversed(parents), "")))
    chat = Builder()
    aside: list[str] = []
    answers: dict[str, int] = {}  # uuid -> position of the answer that began with it

    def add(line: Line) -> None:
        if line.get("agentId"):
            return
        at, uuid = seconds(line.get("timestamp")), str(line.get("uuid"))
        if line.get("type") == "system" and line.get("subtype") == "chat_compression":
            history = contents((line.get("systemPayload") or {}).get("compressedHistory") or [], PROVIDER)
            if uuid in path:
                chat.compact([Text("\n\n".join(message.text for message in history if message.text))], at)
            return
        chat.window = find_count(line, "contextWindowSize", least=1) or chat.window
        for message in _messages(line, at):
            if message.role == "assistant" and uuid in answers:
                before = chat.messages[answers[uuid]]
                usage = message.usage or before.usage
                chat.messages[answers[uuid]] = replace(before, parts=(*before.parts, *message.parts), usage=usage)
                continue
            if message.role == "assistant":
                answers[uuid] = len(chat.messages)
            chat.messages.append(message)
            if uuid not in path:
                aside.append(message.id)

    file.feed(add, lines)
    chat.set_aside(aside)
    yield chat.recording(SOURCE, file.stem, unscored="no usage in this chat")


def _messages(line: Line, at: float) -> list[Message]:
    """The messages that a record stands for; records of the program itself stand for none."""
    message, kind = line.get("message"), line.get("type")
    if not isinstance(message, dict) or kind not in ("user", "assistant", "tool_result"):
        return []
    content = {"role": "model" if kind == "assistant" else "user", "parts": message.get("parts") or []}
    return contents([content], PROVIDER, at, str(line.get("model") or ""), read_usage(line.get("usageMetadata")))
