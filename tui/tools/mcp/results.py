"""Results of MCP servers as text and images: of tool calls, resources, prompts. All of it is untrusted text."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.text.json_text import parse_json
from tui.tools.base import ToolImage, ToolOutput

if TYPE_CHECKING:
    import mcp.types as types


@dataclass(frozen=True, slots=True)
class Content:
    """The text and images of a resource or a prompt."""

    text: str
    images: tuple[ToolImage, ...] = ()


def output_of(result: types.CallToolResult) -> ToolOutput:
    """A call's result. Structured content is used only if there is no text."""
    content = content_of(result.content)
    parts = [content.text] if result.content else []
    structured = result.structured_content
    if structured is not None and not _says(content.text, structured, len(result.content)):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    return ToolOutput("\n\n".join(filter(None, parts)), is_error=bool(result.is_error), images=content.images)


def _says(text: str, structured: Mapping[str, Any], blocks: int) -> bool:
    """Whether `text`, of so many blocks, is `structured` written down: whole, or the "result" that SDKs wrap it in."""
    value = structured["result"] if structured.keys() == {"result"} else structured
    if text == value or (blocks == 0 and not structured):
        return True
    if isinstance(value, list) and value and all(isinstance(e, dict) and e.get("type") == "text" for e in value):
        return text == "\n".join(str(item.get("text")) for item in value)  # content blocks, once more
    if isinstance(value, list) and blocks == len(value) > 1:  # a block for each item
        written = "\n".join(item if isinstance(item, str) else _json(item) for item in value)
        return text == written or _json([_parsed(line) for line in text.split("\n")]) == _json(value)
    return _json(_parsed(text)) in (_json(structured), _json(value))


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _parsed(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return text


def error_output(error: types.ErrorData) -> ToolOutput:
    """What a tool answered with an error of the protocol, whole: the model can mend a call by it."""
    data = error.data
    more = "" if data is None else data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=1)
    return ToolOutput("\n".join(filter(None, (error.message or f"Error {error.code}", more))), is_error=True)


def content_of(blocks: Iterable[types.ContentBlock]) -> Content:
    """The texts, joined, and the images; other content is described with its size."""
    texts: list[str] = []
    images: list[ToolImage] = []
    for block in blocks:
        match block.type:
            case "text":
                texts.append(block.text)
            case "image":
                _add_binary(texts, images, block.data, block.mime_type, "image")
            case "audio":
                _add_binary(texts, images, block.data, block.mime_type, "audio")
            case "resource":
                _add_resource(texts, images, block.resource)
            case "resource_link":
                about = f": {block.description}" if block.description else ""
                texts.append(f"[resource {block.uri} ({block.name}){about}]")
    return Content("\n".join(texts), tuple(images))


def resource_content(contents: Iterable[types.TextResourceContents | types.BlobResourceContents]) -> Content:
    """The content of a resource."""
    texts: list[str] = []
    images: list[ToolImage] = []
    for item in contents:
        if (text := getattr(item, "text", None)) is not None:
            texts.append(text)
        else:
            _add_binary(texts, images, getattr(item, "blob", ""), item.mime_type or "", item.uri)
    return Content("\n".join(texts), tuple(images))


def prompt_text(messages: Iterable[types.PromptMessage]) -> Content:
    """A prompt's messages as one text for the composer; assistant messages are marked."""
    texts: list[str] = []
    images: list[ToolImage] = []
    for message in messages:
        content = content_of([message.content])
        images += content.images
        if content.text:
            texts.append(content.text if message.role == "user" else f"[assistant]\n{content.text}\n[/assistant]")
    return Content("\n\n".join(texts), tuple(images))


def _add_resource(
    texts: list[str], images: list[ToolImage], item: types.TextResourceContents | types.BlobResourceContents
) -> None:
    if (text := getattr(item, "text", None)) is not None:
        texts.append(f"[resource {item.uri}]\n{text}")
    else:
        _add_binary(texts, images, getattr(item, "blob", ""), item.mime_type or "", item.uri)


def _add_binary(texts: list[str], images: list[ToolImage], data: str, media_type: str, what: str) -> None:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        texts.append(f"[{what}: {media_type or 'unknown type'}, not valid base64, left out]")
        return
    if media_type.startswith("image/"):
        images.append(ToolImage(media_type, content))
    else:
        texts.append(f"[{what}: {media_type or 'unknown type'}, {len(content):,} bytes, left out]")
