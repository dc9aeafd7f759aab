"""Recorded request bodies (OpenAI Chat and Responses, Anthropic Messages) read as our `Request`, for fitting priors."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.messages import (
    Attachment,
    Message,
    Part,
    Reasoning,
    Request,
    Role,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)


@dataclass(frozen=True, slots=True)
class Row:
    """One recorded request: `actual` is the provider's count of its input, in tokens."""

    family: str  # "openai", "anthropic" (their own servers) or "others"
    api: str
    model: str
    request: Request
    actual: int
    origin: str
    visible_output: int = 0  # output tokens less reasoning
    forced: bool = False  # the model had to call a tool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that says nothing about the request's own size, and why."""

    reason: str
    model: str


class _NotOursError(Exception):
    """The request holds something whose size is not in it (a server-run tool, a remote file)."""


HOSTS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}


def read_rows(path: Path) -> Iterator[Row | Skipped]:
    """The rows of `requests.jsonl` in these dialects; those to other servers are of family "others"."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)
            family = HOSTS.get(data["host"])
            if family is None and not data["api"].endswith(("/chat/completions", "/responses")):
                continue
            family = family or "others"
            model = str(data["model"])
            if not data["input_tokens"]:
                yield Skipped("no input count", model)
                continue
            try:
                request = to_request(family, data["api"], data["request"], model)
            except _NotOursError as reason:
                yield Skipped(str(reason), model)
                continue
            origin = f"{data['path']}#{data['i']}"
            yield Row(
                family, data["api"], model, request, int(data["input_tokens"]), origin, _visible(data), _forced(data)
            )


def _visible(data: Mapping[str, Any]) -> int:
    usage = data.get("usage") or {}
    details = usage.get("output_tokens_details") or usage.get("completion_tokens_details") or {}
    hidden = details.get("reasoning_tokens") or details.get("thinking_tokens") or 0
    return int(data.get("output_tokens") or 0) - int(hidden)


def _forced(data: Mapping[str, Any]) -> bool:
    choice = data["request"].get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in ("any", "tool", "required", "function")


def to_request(family: str, api: str, body: Mapping[str, Any], model: str) -> Request:
    """One body as a `Request`."""
    if family == "anthropic":
        return _anthropic(body, model)
    if "responses" in api:
        return _responses(body, model)
    return _chat(body, model)


def _system(*texts: str) -> tuple[SystemSection, ...]:
    return tuple(SystemSection("system", "system", text) for text in texts if text)


def _schema(name: str, description: str | None, parameters: Any) -> ToolSchema:
    return ToolSchema(name, description or "", json.dumps(parameters or {}, sort_keys=True, separators=(",", ":")))


def _image(data: str, media_type: str) -> Attachment:
    raw = base64.b64decode(data)
    width, height = image_size(raw)
    return Attachment("image", "image", media_type, hashlib.sha256(raw).hexdigest(), len(raw), width, height)


def image_size(raw: bytes) -> tuple[int | None, int | None]:
    """Width and height in pixels of a PNG, GIF or JPEG; None where it can't be read."""
    if raw[:8] == b"\x89PNG\r\n\x1a\n":
        return int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if raw[:4] == b"GIF8":
        return int.from_bytes(raw[6:8], "little"), int.from_bytes(raw[8:10], "little")
    at = 2
    while raw[:2] == b"\xff\xd8" and at + 9 < len(raw) and raw[at] == 0xFF:
        if raw[at + 1] in (0xC0, 0xC1, 0xC2):
            return int.from_bytes(raw[at + 7 : at + 9], "big"), int.from_bytes(raw[at + 5 : at + 7], "big")
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None, None


def _flat(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(_flat(block.get("text", block.get("output", ""))) for block in content)


def _openai_parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Part] = []
    for block in content or []:
        kind = block.get("type")
        if kind in ("text", "input_text", "output_text"):
            parts.append(Text(block["text"]))
        elif kind == "refusal":
            parts.append(Text(block["refusal"]))
        elif kind in ("image_url", "input_image"):
            url = block["image_url"]["url"] if isinstance(block.get("image_url"), dict) else block.get("image_url", "")
            if not str(url).startswith("data:"):
                raise _NotOursError("remote image")
            head, _, data = str(url).partition(",")
            parts.append(_image(data, head[5:].partition(";")[0]))
        else:
            raise _NotOursError(f"content block {kind}")
    return parts


def _chat(body: Mapping[str, Any], model: str) -> Request:
    system: list[str] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for message in body["messages"]:
        role = message["role"]
        if role in ("system", "developer"):
            system.append(_flat(message["content"]))
        elif role == "tool":
            call = message["tool_call_id"]
            messages.append(Message("tool", (ToolResult(call, names.get(call, ""), _flat(message["content"])),)))
        else:
            parts = _openai_parts(message.get("content")) if message.get("content") else []
            for tool_call in message.get("tool_calls") or []:
                function = tool_call["function"]
                names[tool_call["id"]] = function["name"]
                parts.append(ToolCall(tool_call["id"], function["name"], function["arguments"]))
            messages.append(Message("user" if role == "user" else "assistant", tuple(parts)))
    if body.get("response_format", {}).get("type") == "json_schema":
        raise _NotOursError("output schema")
    if body.get("web_search_options") or body.get("functions"):
        raise _NotOursError("server-run tool")
    tools = _tools(body.get("tools") or [], lambda tool: tool["function"])
    return Request("openai-chat", model, tuple(messages), _system(*system), tools)


def _tools(tools: Sequence[Mapping[str, Any]], inner: Any) -> tuple[ToolSchema, ...]:
    schemas = []
    for tool in tools:
        if tool.get("type") != "function" or tool.get("defer_loading"):
            raise _NotOursError("server-run tool")
        function = inner(tool)
        schemas.append(_schema(function["name"], function.get("description"), function.get("parameters")))
    return tuple(schemas)


def _responses(body: Mapping[str, Any], model: str) -> Request:
    system: list[str] = [body.get("instructions") or ""]
    messages: list[Message] = []
    names: dict[str, str] = {}
    if body.get("previous_response_id") or body.get("conversation"):
        raise _NotOursError("history kept by the server")
    if (body.get("text") or {}).get("format", {}).get("type") == "json_schema":
        raise _NotOursError("output schema")
    source = body["input"]
    items: Sequence[Mapping[str, Any]]
    items = [{"role": "user", "content": source}] if isinstance(source, str) else source
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            if item["role"] in ("system", "developer"):
                system.append(_flat(item["content"]))
            else:
                role: Role = "user" if item["role"] == "user" else "assistant"
                messages.append(Message(role, tuple(_openai_parts(item["content"]))))
        elif kind == "function_call":
            names[item["call_id"]] = item["name"]
            messages.append(Message("assistant", (ToolCall(item["call_id"], item["name"], item["arguments"]),)))
        elif kind == "function_call_output":
            output = item["output"]
            text = output if isinstance(output, str) else _flat(output)
            messages.append(Message("tool", (ToolResult(item["call_id"], names.get(item["call_id"], ""), text),)))
        elif kind == "reasoning":
            messages.append(Message("assistant", (Reasoning("", encrypted=item.get("encrypted_content")),)))
        else:
            raise _NotOursError(f"item {kind}")
    return Request("openai", model, tuple(messages), _system(*system), _tools(body.get("tools") or [], lambda t: t))


def _anthropic(body: Mapping[str, Any], model: str) -> Request:
    if body.get("mcp_servers") or body.get("container") or body.get("context_management"):
        raise _NotOursError("server-run tool")
    if (body.get("output_config") or {}).get("format") or body.get("output_format"):
        raise _NotOursError("output schema")
    tools = []
    for tool in body.get("tools") or []:
        if tool.get("type", "custom") != "custom" or tool.get("defer_loading"):
            raise _NotOursError("server-run tool")
        tools.append(_schema(tool["name"], tool.get("description"), tool["input_schema"]))
    system = body.get("system") or ""
    texts = [system] if isinstance(system, str) else [block["text"] for block in system]
    messages: list[Message] = []
    names: dict[str, str] = {}
    for message in body["messages"]:
        messages += _anthropic_message(message, names)
    thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    reasoning = "high" if thinks else None
    return Request("anthropic", model, tuple(messages), _system(*texts), tuple(tools), reasoning=reasoning)


def _anthropic_message(message: Mapping[str, Any], names: dict[str, str]) -> list[Message]:
    content = message["content"]
    blocks: Sequence[Mapping[str, Any]]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results: list[Part] = []
    parts: list[Part] = []
    for block in blocks:
        match block["type"]:
            case "text":
                parts.append(Text(block["text"]))
            case "thinking":
                parts.append(Reasoning(block["thinking"], signature=block.get("signature")))
            case "redacted_thinking":
                parts.append(Reasoning("", redacted=block["data"]))
            case "tool_use":
                names[block["id"]] = block["name"]
                parts.append(ToolCall(block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False)))
            case "tool_result":
                inner = block.get("content") or ""
                if not isinstance(inner, str) and any(piece.get("type") != "text" for piece in inner):
                    raise _NotOursError("result that is no text")
                call = block["tool_use_id"]
                results.append(ToolResult(call, names.get(call, ""), _flat(inner), bool(block.get("is_error"))))
            case "image":
                if block["source"]["type"] != "base64":
                    raise _NotOursError("remote image")
                parts.append(_image(block["source"]["data"], block["source"]["media_type"]))
            case kind:
                raise _NotOursError(f"content block {kind}")
    messages = [Message("tool", tuple(results))] if results else []
    if parts:
        messages.append(Message("user" if message["role"] == "user" else "assistant", tuple(parts)))
    return messages
