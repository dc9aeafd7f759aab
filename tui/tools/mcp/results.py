"""Converts what an MCP server sends: results, resources, prompts, URI templates. All of it is untrusted text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from tui.text.json_text import parse_json
from tui.tools.base import ToolImage, ToolOutput

if TYPE_CHECKING:
    import mcp.types as types


LONGEST_NAME = 64  # characters: OpenAI and Anthropic take `^[a-zA-Z0-9_-]{1,64}$`
SEPARATOR = "__"
_VARIABLE = re.compile(r"\{([+#./;?&]?)([\w.]+)(?:[^\w.{}][^{}]*)?\}")  # at most, for any template
_RESERVED = ":/?#[]@!$&'()*+,;="  # left unescaped in the value of {+name} (RFC 6570, section 3.2.3)


@dataclass(frozen=True, slots=True)
class ServerResource:
    """A resource offered by a server, named `@server:name`."""

    server: str
    name: str
    uri: str
    description: str
    media_type: str


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument of a prompt."""

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class ServerPrompt:
    """A prompt offered by a server, for `/prompt server:name`."""

    server: str
    name: str
    description: str
    arguments: tuple[PromptArgument, ...]


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as described by its server. `read_only` is the server's claim: it counts only if the server is trusted."""

    name: str
    description: str
    parameters: str  # canonical JSON
    read_only: bool


@dataclass(frozen=True, slots=True)
class CachedOffer:
    """What a server offered in its last run, and how it said that is used."""

    tools: tuple[ServerTool, ...] = ()
    instructions: str = ""

    def to_json(self) -> dict[str, object]:
        """For the store."""
        return {"tools": [asdict(tool) for tool in self.tools], "instructions": self.instructions}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CachedOffer:
        """The inverse of `to_json`. Raises KeyError, TypeError."""
        return cls(tuple(ServerTool(**tool) for tool in data["tools"]), str(data.get("instructions", "")))


NOTHING_CACHED = CachedOffer()


@dataclass(frozen=True, slots=True)
class Content:
    """The text and images of a resource or a prompt."""

    text: str
    images: tuple[ToolImage, ...] = ()


def server_tool(tool: types.Tool) -> ServerTool:
    """A tool whose schema is an object with properties, as every provider requires."""
    schema = dict(tool.input_schema)
    schema.pop("$schema", None)  # names the JSON schema dialect; unused
    if schema.get("type") != "object":
        schema["type"] = "object"
    schema.setdefault("properties", {})
    description = inspect.cleandoc(tool.description or tool.title or "")
    return ServerTool(
        tool.name, description, canonical(schema), bool(tool.annotations and tool.annotations.read_only_hint)
    )


def canonical(value: Mapping[str, Any]) -> str:
    """JSON text that is equal for equal values: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


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


def offered_names(server: str, tools: Sequence[str]) -> list[str]:
    """A name for each of `tools`, in order.

    A name that had to be changed to be valid or short ends in six letters of the original's hash: so it depends on
    nothing but the server's and the tool's own name.
    """
    return [_name(server, tool) for tool in tools]


def _name(server: str, tool: str) -> str:
    plain = f"{server}{SEPARATOR}{tool}"
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    if clean == plain and len(plain) <= LONGEST_NAME and SEPARATOR not in f"{server}_" and tool:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{clean[: LONGEST_NAME - 7]}_{mark}"


# -- URI templates (RFC 6570) of resources that a server does not list -------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServerPattern:
    """A server's URI template, for `@server:...`."""

    server: str
    template: str
    description: str

    @property
    def head(self) -> str:
        """The beginning that all its addresses share."""
        return self.template.partition("{")[0]


@dataclass(frozen=True, slots=True)
class Gap:
    """The variable of a URI template that is being typed.

    `before` is the address up to it, `value` what has been typed of it, `filled_in` are the variables before it,
    `after` is the text that follows it in the template. `last`: no variable follows.
    """

    variable: str
    before: str
    value: str
    filled_in: Mapping[str, str]
    after: str
    last: bool
    reserved: bool = False

    def filled(self, value: str) -> str:
        """The address with `value` filled in, up to the next variable."""
        return f"{self.before}{quote(value, safe=_RESERVED if self.reserved else '')}{self.after}"


def gap(template: str, uri: str) -> Gap | None:
    """The variable at which `uri` stops following `template`; None if it does not follow it, or is complete."""
    pieces = _VARIABLE.split(template)  # text, operator, name, text, operator, name, ..., text
    values: dict[str, str] = {}
    at = 0
    for start in range(0, len(pieces) - 1, 3):
        text, operator, name, after = pieces[start : start + 4]
        if not uri.startswith(text, at):
            return None
        at += len(text)
        end = uri.find(after, at) if after else -1
        if end < 0:
            last = start + 4 == len(pieces)
            return Gap(name, uri[:at], unquote(uri[at:]), values, after, last, operator == "+")
        values[name] = unquote(uri[at:end])
        at = end
    return None
