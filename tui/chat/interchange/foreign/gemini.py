"""Session files of Gemini CLI: one JSON object, or since 2026 one record a line, and chats saved by `/chat save`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, Line, SourceFile, as_json, seconds
from tui.chat.interchange.recording import Recording
from tui.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage
from tui.providers.wire import find_count

SOURCE, NAME = "gemini-cli", "Gemini CLI"
PROVIDER = "google"


def detect(file: SourceFile) -> bool:
    """Whether `file` is a session in either form, or a checkpoint of `/chat save`."""
    document = file.document
    if isinstance(document, dict) and "sessionId" in document and isinstance(document.get("messages"), list):
        return True
    if _checkpoint(document) is not None:
        return True
    return any(
        ("sessionId" in line and "projectHash" in line)
        or (line.get("type") in ("user", "gemini") and {"id", "timestamp", "content"} <= line.keys())
        for line in file.lines[:5]
    )


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation in `file`; notices of the program are left out."""
    document = file.document
    history = _checkpoint(document)
    chat = Builder()
    if history is not None:
        chat.messages += contents(history, PROVIDER)
        yield chat.recording(SOURCE, file.stem, unscored="a saved chat has no usage")
        return
    several = isinstance(document, dict) and "messages" in document

    def add(entry: Mapping[str, Any]) -> None:
        at = seconds(entry.get("timestamp"))
        if entry.get("type") == "user":
            chat.add("user", [Text(_text(entry.get("content")))], at)
        elif entry.get("type") == "gemini":
            _reply(chat, entry, at)

    file.feed(add, document["messages"] if several else _replayed(file.lines))
    yield chat.recording(SOURCE, file.stem)


def _replayed(lines: Sequence[Line]) -> list[Line]:
    """The messages as they stand at the end of a file that is only appended to.

    A message is written again whenever it changes: the last line with an id counts, at the place of the first.
    """
    entries: dict[str, Line] = {}
    for number, line in enumerate(lines):
        if "$rewindTo" in line:
            order = list(entries)
            target = str(line["$rewindTo"])
            for key in order[order.index(target) if target in entries else 0 :]:
                del entries[key]
        elif isinstance(line.get("$set"), dict):
            if isinstance(line["$set"].get("messages"), list):  # a checkpoint: written when the chat is compressed
                entries = {str(entry.get("id", i)): entry for i, entry in enumerate(line["$set"]["messages"])}
        elif "type" in line:
            entries[str(line.get("id", number))] = line
    return list(entries.values())


def _checkpoint(document: Any) -> list[Any] | None:
    """The API contents (`{role, parts}`) of a saved chat; None where `document` is something else."""
    history = document.get("history") if isinstance(document, dict) else document
    if not isinstance(history, list) or not history:
        return None
    fits = all(isinstance(entry, dict) and "parts" in entry and "role" in entry for entry in history)
    return history if fits else None


def contents(
    entries: Sequence[Mapping[str, Any]], provider: str, at: float = 0.0, model: str = "", usage: Usage | None = None
) -> list[Message]:
    """Messages from the API's contents; their calls may have no ids, then results follow in the order of the calls."""
    chat = Builder()
    calls = 0
    waiting: dict[str, str] = {}  # id and tool of the calls that no result has answered yet
    for content in entries:
        parts: list[Part] = []
        for piece in content["parts"]:
            if piece.get("text"):
                thought = piece.get("thought")
                parts.append(Reasoning(str(piece["text"]), provider) if thought else Text(str(piece["text"])))
            elif "functionCall" in piece:
                call = piece["functionCall"]
                calls += 1
                ident, name = str(call.get("id") or f"call-{calls}"), str(call.get("name", ""))
                waiting[ident] = name
                parts.append(ToolCall(ident, name, as_json(call.get("args") or {})))
            elif "functionResponse" in piece:
                answer = piece["functionResponse"]
                name = str(answer.get("name", ""))
                ident = next((call for call, tool in waiting.items() if tool == name), str(answer.get("id") or ""))
                waiting.pop(ident, None)
                parts.append(ToolResult(ident, name, _response(answer.get("response"))))
        role = "assistant" if content["role"] == "model" else "user"
        chat.add_entry(role, parts, at, provider=provider, model=model, usage=usage)
    return chat.messages


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(piece.get("text", "")) for piece in content or [] if isinstance(piece, dict))


def _reply(chat: Builder, entry: Mapping[str, Any], at: float) -> None:
    model = str(entry.get("model", ""))
    parts: list[Part] = []
    for thought in entry.get("thoughts") or []:
        text = f"{thought.get('subject', '')}: {thought.get('description', '')}"
        parts.append(Reasoning(text, PROVIDER, model))
    if text := _text(entry.get("content")):
        parts.append(Text(text))
    results: list[Part] = []
    for call in entry.get("toolCalls") or []:
        ident, tool = str(call["id"]), str(call["name"])
        parts.append(ToolCall(ident, tool, as_json(call.get("args"))))
        answers = ((piece.get("functionResponse") or {}).get("response") for piece in call.get("result") or [])
        text = "\n".join(_response(answer) for answer in answers if answer is not None)
        results.append(ToolResult(ident, tool, text, call.get("status") == "error"))
    names = ("input", "output", "cached", "thoughts")
    read, output, cached, thoughts = (find_count(entry, f"tokens.{name}") or 0 for name in names)
    usage = Usage(read, output + thoughts, cached, reasoning=thoughts) if read else None
    chat.add("assistant", parts, at, provider=PROVIDER, model=model, usage=usage)
    chat.add("tool", results, at)


def _response(response: Any) -> str:
    """A response object as the model gets it: its text, or JSON where there is more. The server writes no escapes."""
    if isinstance(response, dict) and len(response) == 1:
        (value,) = response.values()
        if isinstance(value, str):
            return value
    return as_json(response)
