"""Exports of chats in a browser: ChatGPT, Claude.ai and Open WebUI. One file holds many conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui.chat.interchange.foreign.reading import Builder, SourceFile, ancestors, seconds, text_of
from tui.chat.interchange.recording import Recording
from tui.messages import Attachment, Part, Text
from tui.providers.usage_reading import read_usage

SOURCE, NAME = "web-chat", "ChatGPT, Claude.ai or Open WebUI"

UNSCORED = "this export has no usage"


def detect(file: SourceFile) -> bool:
    """Whether `file` is an export of one of them, of one conversation or of a list."""
    return any(_kind(chat) for chat in _chats(file))


def read(file: SourceFile) -> Iterator[Recording]:
    """Every conversation."""
    for chat in _chats(file):
        match _kind(chat):
            case "chatgpt":
                yield _chatgpt(chat, file.stem)
            case "claude-ai":
                yield _claude_ai(chat, file.stem)
            case "open-webui":
                yield _open_webui(chat, file.stem)


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


class _Tree:
    """The messages of a conversation with its branches, by id. `path` is the active branch, from the root on.

    `leaf` may name no node: then it is the last one with no child.
    """

    def __init__(self, nodes: Mapping[str, Any], leaf: Any, parent: str) -> None:
        parents = {ident: node.get(parent) for ident, node in nodes.items()}
        if leaf not in nodes:
            inner = set(map(str, parents.values()))
            leaf = next((ident for ident in reversed(list(nodes)) if ident not in inner), None)
        self.path = ancestors(parents, leaf)[::-1]
        self.nodes = nodes
        self.chat = Builder()

    def entries(self) -> Iterator[Any]:
        """Other branches first, so that a reader of the transcript ends where the person did; they are set aside."""
        on_path = set(self.path)
        for ident in self.nodes:
            if ident not in on_path:
                yield self.nodes[ident]
        others = [message.id for message in self.chat.messages]
        for ident in self.path:
            yield self.nodes[ident]
        self.chat.set_aside(others)


def _chatgpt(chat: Mapping[str, Any], fallback: str) -> Recording:
    tree = _Tree(chat["mapping"], chat.get("current_node"), "parent")
    for node in tree.entries():
        data = node.get("message") or {}
        about = data.get("metadata") or {}
        if about.get("is_visually_hidden_from_conversation"):
            continue
        content = data.get("content") or {}
        pieces = content.get("parts") or [content.get("text") or ""]
        text = "\n".join(piece for piece in pieces if isinstance(piece, str)).strip()
        role = (data.get("author") or {}).get("role")
        at = float(data.get("create_time") or 0)
        if text and role == "user":
            tree.chat.add("user", [Text(text)], at)
        elif text and role in ("assistant", "tool"):
            model = str(about.get("model_slug") or about.get("default_model_slug") or "gpt")
            tree.chat.add("assistant", [Text(text)], at, provider="openai", model=model)
    return tree.chat.recording(SOURCE, fallback, chat.get("title"), unscored=UNSCORED)


def _claude_ai(chat: Mapping[str, Any], fallback: str) -> Recording:
    nodes = {str(entry.get("uuid") or number): entry for number, entry in enumerate(chat["chat_messages"])}
    tree = _Tree(nodes, chat.get("current_leaf_message_uuid"), "parent_message_uuid")
    if not any(entry.get("parent_message_uuid") in nodes for entry in nodes.values()):
        tree.path = list(nodes)  # an older export: no branches
    for entry in tree.entries():
        text = text_of(entry.get("content") or [], "\n\n").strip()
        attached = [file for file in entry.get("attachments") or [] if file.get("extracted_content")]
        parts: list[Part] = [_attached(file) for file in attached]
        text = text or str(entry.get("text") or "").strip()
        parts += [Text(text)] if text else []
        at = seconds(entry.get("created_at"))
        if entry.get("sender") == "human":
            tree.chat.add("user", parts, at)
        elif parts:
            tree.chat.add("assistant", parts, at, provider="anthropic", model="claude")
    return tree.chat.recording(SOURCE, fallback, chat.get("name"), unscored=UNSCORED)


def _attached(file: Mapping[str, Any]) -> Attachment:
    text, name = str(file["extracted_content"]), str(file.get("file_name") or "file")
    raw = text.encode("utf-8", "surrogateescape")
    return Attachment("text", name, "text/plain", hashlib.sha256(raw).hexdigest(), len(raw), text=text)


def _open_webui(chat: Mapping[str, Any], fallback: str) -> Recording:
    history = chat["chat"]["history"]
    tree = _Tree(history["messages"], history.get("currentId"), "parentId")
    for entry in tree.entries():
        content = entry.get("content")
        parts = [Text(content)] if isinstance(content, str) and content else []
        at = float(entry.get("timestamp") or 0)
        if entry.get("role") == "user":
            tree.chat.add("user", parts, at)
        elif parts:
            model, usage = str(entry.get("model") or "unknown"), read_usage(entry.get("usage"))
            tree.chat.add("assistant", parts, at, provider="open-webui", model=model, usage=usage)
    title = chat.get("title") or chat["chat"].get("title")
    return tree.chat.recording(SOURCE, fallback, title, unscored=UNSCORED)
