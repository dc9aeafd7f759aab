"""Task folders of Cline, Roo Code and Kilo Code: `api_conversation_history.json`, with usage in `ui_messages.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, SourceFile, loaded, seconds, usage_apart
from tui.chat.interchange.recording import Recording
from tui.messages import Usage
from tui.providers.wire import find_count

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


def read(file: SourceFile) -> Iterator[Recording]:
    """The conversation of a task."""
    history = SourceFile(file.path / HISTORY) if file.path.is_dir() else file
    screen = SourceFile(history.path.with_name(SCREEN))
    document = screen.document if screen.path.is_file() else None
    shown: list[Any] = document if isinstance(document, list) else []
    usages = _usages(shown)
    chat = Builder()
    file.feed(lambda entry: _add(chat, entry), history.document or [])
    messages = chat.messages
    answers = [i for i, message in enumerate(messages) if message.role == "assistant"]
    if not any(messages[i].usage for i in answers) and len(usages) == len(answers):
        for index, usage in zip(answers, usages, strict=True):
            messages[index] = replace(messages[index], usage=usage)
    for entry in reversed(shown):  # the newest range is not sent any more
        bounds = entry.get("conversationHistoryDeletedRange") if isinstance(entry, dict) else None
        if isinstance(bounds, list) and len(bounds) == 2:
            first, last = map(int, bounds)
            chat.set_aside(message.id for message in messages[first : last + 1])
            break
    yield chat.recording(SOURCE, history.path.parent.name, unscored=UNSCORED)


def _add(chat: Builder, entry: Mapping[str, Any]) -> None:
    about = entry.get("modelInfo") or {}
    provider, model = str(about.get("providerId") or ""), str(about.get("modelId") or "unknown")
    parts = chat.parts(entry.get("content"), provider, model)
    tokens = (entry.get("metrics") or {}).get("tokens")  # since 2026; `prompt` includes cached tokens
    prompt, output, cached = (find_count(tokens, name) for name in ("prompt", "completion", "cached"))
    usage = Usage(prompt, output or 0, cached or 0) if prompt else None
    chat.add_entry(entry.get("role"), parts, seconds(entry.get("ts")), provider=provider, model=model, usage=usage)


def _usages(shown: Sequence[Any]) -> list[Usage | None]:
    """The usage of every request that was finished. `tokensIn` leaves out the cache for Anthropic's protocol."""
    usages: list[Usage | None] = []
    for entry in shown:
        if not isinstance(entry, dict) or entry.get("say") != "api_req_started" or entry.get("partial"):
            continue
        data = loaded(entry.get("text"))
        usage = usage_apart(data, "tokensIn", "tokensOut", "cacheReads", "cacheWrites")
        if usage is not None and data.get("apiProtocol") == "openai":
            total = find_count(data, "tokensIn", least=1)
            usage = replace(usage, input_total=total) if total else None
        usages.append(usage)
    return usages
