"""Exports of chats in a browser: ChatGPT, Claude.ai and Open WebUI. One file holds many conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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
        title = chat.get("title")
        match _kind(chat):
            case "chatgpt":
                tree, add = _Tree(chat["mapping"], chat.get("current_node"), "parent"), _add_chatgpt
            case "claude-ai":
                tree, add, title = _claude_ai(chat), _add_claude_ai, chat.get("name")
            case "open-webui":
                history = chat["chat"]["history"]
                tree, add = _Tree(history["messages"], history.get("currentId"), "parentId"), _add_open_webui
                title = title or chat["chat"].get("title")
            case _:
                continue
        file.feed(partial(add, tree), tree.entries())
        yield tree.recording(SOURCE, file.stem, title, unscored=UNSCORED)


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


class _Tree(Builder):
    """The messages of a conversation with its branches, by id. `path` is the active branch, from the root on.

    `leaf` may name no node: then it is the last one with no child.
    """

    def __init__(self, nodes: Mapping[str, Any], leaf: Any, parent: str) -> None:
        super().__init__()
        parents = {ident: node.get(parent) for ident, node in nodes.items() if isinstance(node, dict)}
        if not isinstance(leaf, str) or leaf not in parents:
            inner = set(map(str, parents.values()))
            leaf = next((ident for ident in reversed(list(parents)) if ident not in inner), None)
        self.path = ancestors(parents, leaf)[::-1]
        self.nodes = nodes

    def entries(self) -> Iterator[Any]:
        """Other branches first, so that a reader of the transcript ends where the person did; they are set aside."""
        on_path = set(self.path)
        yield from (node for ident, node in self.nodes.items() if ident not in on_path)
        others = [message.id for message in self.messages]
        yield from (self.nodes[ident] for ident in self.path)
        self.set_aside(others)


def _add_chatgpt(tree: Builder, entry: Mapping[str, Any]) -> None:
    data = entry.get("message") or {}
    about, content = data.get("metadata") or {}, data.get("content") or {}
    role = (data.get("author") or {}).get("role")
    if about.get("is_visually_hidden_from_conversation") or role not in ("user", "assistant", "tool"):
        return
    pieces = content.get("parts") or [content.get("text") or ""]
    text = "\n".join(piece for piece in pieces if isinstance(piece, str)).strip()
    model = str(about.get("model_slug") or about.get("default_model_slug") or "gpt")
    at = seconds(data.get("create_time"))
    role = "user" if role == "user" else "assistant"
    tree.add_entry(role, [Text(text)] if text else [], at, provider="openai", model=model)


def _claude_ai(chat: Mapping[str, Any]) -> _Tree:
    entries = [entry for entry in chat["chat_messages"] if isinstance(entry, dict)]
    nodes = {str(entry.get("uuid") or number): entry for number, entry in enumerate(entries)}
    tree = _Tree(nodes, chat.get("current_leaf_message_uuid"), "parent_message_uuid")
    if not any(entry.get("parent_message_uuid") in nodes for entry in nodes.values()):
        tree.path = list(nodes)  # an older export: no branches
    return tree


def _add_claude_ai(tree: Builder, entry: Mapping[str, Any]) -> None:
    parts: list[Part] = []
    for file in entry.get("attachments") or []:
        if content := file.get("extracted_content"):
            raw, name = str(content).encode("utf-8", "surrogateescape"), str(file.get("file_name") or "file")
            digest = hashlib.sha256(raw).hexdigest()
            parts.append(Attachment("text", name, "text/plain", digest, len(raw), text=str(content)))
    text = text_of(entry.get("content") or [], "\n\n").strip() or str(entry.get("text") or "").strip()
    parts += [Text(text)] if text else []
    role = "user" if entry.get("sender") == "human" else "assistant"
    tree.add_entry(role, parts, seconds(entry.get("created_at")), provider="anthropic", model="claude")


def _add_open_webui(tree: Builder, entry: Mapping[str, Any]) -> None:
    content, at = entry.get("content"), seconds(entry.get("timestamp"))
    parts = [Text(content)] if isinstance(content, str) and content else []
    model, usage = str(entry.get("model") or "unknown"), read_usage(entry.get("usage"))
    role = "user" if entry.get("role") == "user" else "assistant"
    tree.add_entry(role, parts, at, provider="open-webui", model=model, usage=usage)
