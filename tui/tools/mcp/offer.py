"""What an MCP server offers and answers, in this program's terms. All of it is untrusted text."""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from tui.context.counting.digests import text_digest
from tui.text.json_text import parse_json
from tui.tools.base import ToolImage, ToolOutput

if TYPE_CHECKING:
    import mcp.types as types


MAX_TOOL_NAME = 64  # characters: OpenAI and Anthropic take `^[a-zA-Z0-9_-]{1,64}$`
SEPARATOR = "__"
MAX_RESOURCE_NAME = 200  # characters
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
    """The tools and instructions of a server in its last run."""

    tools: tuple[ServerTool, ...] = ()
    instructions: str = ""


def server_tool(tool: types.Tool) -> ServerTool:
    """A tool whose schema has properties, as every provider requires."""
    schema = {"properties": {}, **tool.input_schema}
    schema.pop("$schema", None)  # names the JSON schema dialect; unused
    parameters = json.dumps(schema, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    description = inspect.cleandoc(tool.description or tool.title or "")
    return ServerTool(tool.name, description, parameters, bool(tool.annotations and tool.annotations.read_only_hint))


def server_resources(server: str, resources: Iterable[types.Resource]) -> tuple[ServerResource, ...]:
    """Resources that can be named; by their URI if their name can't be written in a draft."""
    return tuple(
        ServerResource(server, _mentionable(item), item.uri, item.description or "", item.mime_type or "")
        for item in resources
        if item.uri.isprintable()
    )


def _mentionable(item: types.Resource) -> str:
    usable = item.name.isprintable() and '"' not in item.name and 0 < len(item.name) <= MAX_RESOURCE_NAME
    return item.name if usable else item.uri


def resource_templates(server: str, templates: Iterable[types.ResourceTemplate]) -> tuple[ResourceTemplate, ...]:
    """URI templates that can be written in a draft."""
    return tuple(
        ResourceTemplate(server, item.uri_template, item.description or item.name)
        for item in templates
        if item.uri_template.isprintable() and '"' not in item.uri_template
    )


def server_prompts(server: str, prompts: Iterable[types.Prompt]) -> tuple[ServerPrompt, ...]:
    """Prompts that can be named."""
    return tuple(
        ServerPrompt(
            server,
            item.name,
            item.description or "",
            tuple(PromptArgument(a.name, a.description or "", bool(a.required)) for a in item.arguments or ()),
        )
        for item in prompts
        if item.name.isprintable()
    )


def offered_name(server: str, tool: str) -> str:
    """The name under which the model is offered a server's tool.

    A name that had to be changed to be valid or short ends in six letters of the original's hash: so it depends on
    nothing but the server's and the tool's own name.
    """
    plain = f"{server}{SEPARATOR}{tool}"
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    if clean == plain and len(plain) <= MAX_TOOL_NAME and SEPARATOR not in f"{server}_" and tool:
        return plain
    mark = text_digest(f"{server}\0{tool}")[:6]
    return f"{clean[: MAX_TOOL_NAME - 7]}_{mark}"


# -- URI templates (RFC 6570) of resources that a server does not list -------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """The URI template of resources that a server does not list, for `@server:...`."""

    server: str
    template: str
    description: str

    @property
    def head(self) -> str:
        """The beginning that all its addresses share."""
        return self.template.partition("{")[0]


@dataclass(frozen=True, slots=True)
class TemplateVariable:
    """The variable of a URI template that is being typed.

    `before` is the address up to it, `value` what has been typed of it, `filled_in` are the variables before it,
    `after` is the text that follows it in the template. `last`: no variable follows.
    """

    name: str
    before: str
    value: str
    filled_in: Mapping[str, str]
    after: str
    last: bool
    reserved: bool = False

    def filled(self, value: str) -> str:
        """The address with `value` filled in, up to the next variable."""
        return f"{self.before}{quote(value, safe=_RESERVED if self.reserved else '')}{self.after}"


def open_variable(template: str, uri: str) -> TemplateVariable | None:
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
            return TemplateVariable(name, uri[:at], unquote(uri[at:]), values, after, last, operator == "+")
        values[name] = unquote(uri[at:end])
        at = end
    return None


# -- results -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Content:
    """The text and images of a resource or a prompt."""

    text: str
    images: tuple[ToolImage, ...] = ()


def output_of(result: types.CallToolResult) -> ToolOutput:
    """A call's result. Structured content is used only if the texts don't say the same."""
    content = content_of(result.content)
    parts = [content.text] if result.content else []
    structured = result.structured_content
    texts = [block.text for block in result.content if block.type == "text"]
    if structured is not None and not _says(texts, structured):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=1))
    return ToolOutput("\n\n".join(filter(None, parts)), is_error=bool(result.is_error), images=content.images)


def _says(texts: list[str], structured: Mapping[str, Any]) -> bool:
    """Whether `texts` are `structured` written down: whole, or the "result" that SDKs wrap it in, or each of its items.

    Items may be content blocks, once more.
    """
    if not texts:
        return not structured
    value = structured["result"] if structured.keys() == {"result"} else structured
    if isinstance(value, list) and len(value) == len(texts):
        items = [e.get("text") if isinstance(e, dict) and e.get("type") == "text" else e for e in value]
        if all(text == item or _parsed(text) == item for text, item in zip(texts, items, strict=True)):
            return True
    return len(texts) == 1 and (texts[0] == value or _parsed(texts[0]) in (value, structured))


def _parsed(text: str) -> object:
    try:
        return parse_json(text)
    except ValueError:
        return text


def error_output(error: types.ErrorData) -> ToolOutput:
    """The result of a call that was answered with a protocol error, in full: it may tell the model what to correct."""
    data = error.data
    more = "" if data is None else data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=1)
    return ToolOutput("\n".join(filter(None, (error.message or f"Error {error.code}", more))), is_error=True)


def content_of(blocks: Iterable[types.ContentBlock]) -> Content:
    """The texts, joined, and the images; other content is described with its size."""
    return _joined("\n", map(_block, blocks))


def resource_content(contents: Iterable[types.TextResourceContents | types.BlobResourceContents]) -> Content:
    """The content of a resource."""
    return _joined("\n", map(_resource, contents))


def prompt_text(messages: Iterable[types.PromptMessage]) -> Content:
    """A prompt's messages as one text for the composer; assistant messages are marked."""
    pieces = []
    for message in messages:
        content = _block(message.content)
        if message.role != "user" and content.text:
            content = replace(content, text=f"[assistant]\n{content.text}\n[/assistant]")
        pieces.append(content)
    return _joined("\n\n", filter(lambda piece: piece.text or piece.images, pieces))


def _joined(separator: str, pieces: Iterable[Content]) -> Content:
    pieces = list(pieces)
    texts = [piece.text for piece in pieces if not piece.images]
    return Content(separator.join(texts), tuple(image for piece in pieces for image in piece.images))


def _block(block: types.ContentBlock) -> Content:
    match block.type:
        case "text":
            return Content(block.text)
        case "resource":
            content, is_text = _resource(block.resource), hasattr(block.resource, "text")
            return Content(f"[resource {block.resource.uri}]\n{content.text}") if is_text else content
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return Content(f"[resource {block.uri} ({block.name}){about}]")
        case kind:
            return _binary(block.data, block.mime_type, kind)


def _resource(item: types.TextResourceContents | types.BlobResourceContents) -> Content:
    if (text := getattr(item, "text", None)) is not None:
        return Content(text)
    return _binary(getattr(item, "blob", ""), item.mime_type or "", item.uri)


def _binary(data: str, media_type: str, label: str) -> Content:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Content(f"[{label}: {media_type or 'unknown type'}, not valid base64, left out]")
    if media_type.startswith("image/"):
        return Content("", (ToolImage(media_type, content),))
    return Content(f"[{label}: {media_type or 'unknown type'}, {len(content):,} bytes, left out]")
