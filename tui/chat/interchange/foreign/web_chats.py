"""Exports of chats in a browser: ChatGPT, Claude.ai and Open WebUI. One file holds many conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tui.chat.conversation.history import RecordKind
from tui.chat.interchange.foreign.source import SourceFile
from tui.chat.interchange.recording import Recording, first_words, seconds
from tui.chat.store.ids import new_id
from tui.chat.store.store import Record
from tui.messages import Attachment, Message, Part, Text, Usage

SOURCE, NAME = "web-chat", "ChatGPT, Claude.ai or Open WebUI"

UNSCORED = "this export has no usage"
_BRANCHES = 100_000  # messages of one conversation at most: parents may go in a circle


def detect(file: SourceFile) -> bool:
    """Whether `file` is an export of one of them, of one conversation or of a list."""
    return any(_kind(chat) for chat in _chats(file))


def read(file: SourceFile) -> list[Recording]:
    """Every conversation with messages."""
    recordings = []
    for chat in _chats(file):
        match _kind(chat):
            case "chatgpt":
                recordings.append(_chatgpt(chat, file.stem))
            case "claude-ai":
                recordings.append(_claude_ai(chat, file.stem))
            case "open-webui":
                recordings.append(_open_webui(chat, file.stem))
    return [recording for recording in recordings if recording.messages]


def _chats(file: SourceFile) -> Sequence[Mapping[str, Any]]:
    document = file.document
    chats = document if isinstance(document, list) else [document]
    return [chat for chat in chats if isinstance(chat, dict)]


def _kind(chat: Mapping[str, Any]) -> str:
    if isinstance(chat.get("mapping"), dict):
        return "chatgpt"
    if isinstance(chat.get("chat_messages"), list):
        return "claude-ai"
    inner = chat.get("chat")
    history = inner.get("history") if isinstance(inner, dict) else None
    return "open-webui" if isinstance(history, dict) and isinstance(history.get("messages"), dict) else ""


def _path(nodes: Mapping[str, Any], leaf: Any, parent: str) -> list[str]:
    """Ids from the root to `leaf`, which may name no node: then the last one with no child."""
    if leaf not in nodes:
        parents = {str(node.get(parent)) for node in nodes.values()}
        leaf = next((ident for ident in reversed(list(nodes)) if ident not in parents), None)
    path: list[str] = []
    while leaf in nodes and leaf not in path and len(path) < _BRANCHES:
        path.append(str(leaf))
        leaf = nodes[leaf].get(parent)
    return path[::-1]


def _recording(
    title: Any, messages: Sequence[tuple[str, Message]], path: Sequence[str], fallback: str, unscored: str
) -> Recording:
    """The conversation on `path`; the messages of other branches come along and are set aside."""
    on_path = set(path)
    aside = [message.id for ident, message in messages if ident not in on_path]
    all_messages = tuple(message for _, message in messages)
    records = (Record(new_id(), RecordKind.SET_ASIDE, all_messages[-1].created_at, {"ids": aside}),) if aside else ()
    return Recording(
        SOURCE, str(title or "") or first_words(all_messages, fallback), all_messages, records, unscored=unscored
    )


def _ordered(nodes: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """Other branches first, then the active one, so that a reader of the transcript ends where the person did."""
    on_path = set(path)
    return [ident for ident in nodes if ident not in on_path] + list(path)


def _chatgpt(chat: Mapping[str, Any], fallback: str) -> Recording:
    nodes = chat["mapping"]
    path = _path(nodes, chat.get("current_node"), "parent")
    messages: list[tuple[str, Message]] = []
    for ident in _ordered(nodes, path):
        data = nodes[ident].get("message") or {}
        about = data.get("metadata") or {}
        if about.get("is_visually_hidden_from_conversation"):
            continue
        content = data.get("content") or {}
        pieces = content.get("parts") or [content.get("text") or ""]
        text = "\n".join(piece for piece in pieces if isinstance(piece, str)).strip()
        role = (data.get("author") or {}).get("role")
        at = float(data.get("create_time") or 0)
        if text and role == "user":
            messages.append((ident, Message("user", (Text(text),), id=new_id(), created_at=at)))
        elif text and role in ("assistant", "tool"):
            model = str(about.get("model_slug") or about.get("default_model_slug") or "gpt")
            messages.append((ident, _answer((Text(text),), at, "openai", model)))
    return _recording(chat.get("title"), messages, path, fallback, UNSCORED)


def _claude_ai(chat: Mapping[str, Any], fallback: str) -> Recording:
    nodes = {str(entry.get("uuid") or number): entry for number, entry in enumerate(chat["chat_messages"])}
    tree = any(entry.get("parent_message_uuid") in nodes for entry in nodes.values())
    path = _path(nodes, chat.get("current_leaf_message_uuid"), "parent_message_uuid") if tree else list(nodes)
    messages: list[tuple[str, Message]] = []
    for ident in _ordered(nodes, path):
        entry = nodes[ident]
        blocks = entry.get("content") or []
        text = "\n\n".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text").strip()
        attached = [file for file in entry.get("attachments") or [] if file.get("extracted_content")]
        parts: list[Part] = [_attached(file) for file in attached]
        text = text or str(entry.get("text") or "").strip()
        parts += [Text(text)] if text else []
        at = seconds(entry.get("created_at"))
        if parts and entry.get("sender") == "human":
            messages.append((ident, Message("user", tuple(parts), id=new_id(), created_at=at)))
        elif parts:
            messages.append((ident, _answer(tuple(parts), at, "anthropic", "claude")))
    return _recording(chat.get("name"), messages, path, fallback, UNSCORED)


def _attached(file: Mapping[str, Any]) -> Attachment:
    text, name = str(file["extracted_content"]), str(file.get("file_name") or "file")
    raw = text.encode("utf-8", "surrogateescape")
    return Attachment("text", name, "text/plain", hashlib.sha256(raw).hexdigest(), len(raw), text=text)


def _open_webui(chat: Mapping[str, Any], fallback: str) -> Recording:
    history = chat["chat"]["history"]
    nodes = history["messages"]
    path = _path(nodes, history.get("currentId"), "parentId")
    messages: list[tuple[str, Message]] = []
    for ident in _ordered(nodes, path):
        entry = nodes[ident]
        content = entry.get("content")
        text = content if isinstance(content, str) else ""
        at = float(entry.get("timestamp") or 0)
        if text and entry.get("role") == "user":
            messages.append((ident, Message("user", (Text(text),), id=new_id(), created_at=at)))
        elif text:
            answer = _answer((Text(text),), at, "open-webui", str(entry.get("model") or "unknown"))
            messages.append((ident, _with_usage(answer, entry.get("usage"))))
    unscored = "" if any(message.usage for _, message in messages) else UNSCORED
    title = chat.get("title") or chat["chat"].get("title")
    return _recording(title, messages, path, fallback, unscored)


def _answer(parts: tuple[Part, ...], at: float, provider: str, model: str, usage: Usage | None = None) -> Message:
    return Message("assistant", parts, id=new_id(), created_at=at, provider=provider, model=model, usage=usage)


def _with_usage(message: Message, data: Any) -> Message:
    """The usage as the provider or Ollama wrote it. llama.cpp's `cache_n` is inside `prompt_tokens`."""
    if not isinstance(data, Mapping):
        return message
    total = data.get("prompt_tokens") or data.get("input_tokens") or data.get("prompt_eval_count")
    output = data.get("completion_tokens") or data.get("output_tokens") or data.get("eval_count")
    if not isinstance(total, int):
        return message
    usage = Usage(total, output if isinstance(output, int) else None)
    return _answer(message.parts, message.created_at, message.provider, message.model, usage)
