"""Builds Chat Completions requests. Pure."""

from __future__ import annotations

import json
from typing import Any

from tui.messages import Attachment, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from tui.providers.config import ChatStyle
from tui.providers.wire import (
    Json,
    arguments_text,
    as_object,
    attachment_text,
    chat_tool_id,
    data_url,
    files_after_results,
    own_reasoning,
    plain_text,
    result_text,
    results_with_parts,
    system_text,
)

NO_THOUGHT = " "
"""Placeholder for required but missing reasoning: DeepSeek V4 Pro refuses an empty text (hermes-agent, issue 17341)."""


def to_wire(request: Request, style: ChatStyle) -> Json:
    """The JSON body of POST /chat/completions, streaming."""
    messages: list[Json] = []
    if system := system_text(request.system):
        messages.append({"role": "system", "content": system})
    for message in files_after_results(request.messages):  # only user messages may have images in this dialect
        for wire in _message(message, request, style):
            _append(messages, wire)
    body: Json = {"model": request.model, "messages": messages, "stream": True}
    if style.include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.max_output is not None:
        body[style.max_tokens_field] = request.max_output
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": as_object(tool.parameters),
                },
            }
            for tool in map(style.tool, request.tools)
        ]
    if style.cache_key and request.session:
        body["prompt_cache_key"] = request.session
    return body | _effort(request, style)


def _append(messages: list[Json], wire: Json) -> None:
    """Add a message; two consecutive ones of a role are merged, since many chat templates require alternation."""
    last = messages[-1] if messages else {}
    same = last.get("role") == wire["role"] and wire["role"] in ("user", "assistant")
    one, other = last.get("content"), wire.get("content")
    if not same or wire.keys() | last.keys() > {"role", "content"} or one is None or other is None:
        messages.append(wire)
    elif isinstance(one, str) and isinstance(other, str):
        messages[-1] = {**last, "content": f"{one}\n\n{other}"}
    else:
        messages[-1] = {**last, "content": _pieces(one) + _pieces(other)}


def _pieces(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _effort(request: Request, style: ChatStyle) -> Json:
    if request.tools and not style.reasons_with_tools:
        return {"reasoning_effort": "none"}
    level = style.effort(request.reasoning)
    if level is None:
        return {}
    off = level == "off"
    match style.effort_style:
        case "openrouter":
            return {"reasoning": {"enabled": False} if off else {"effort": level}}
        case "thinking":  # DeepSeek refuses an effort beside "disabled"
            return {"thinking": {"type": "disabled" if off else "enabled"}} | (
                {} if off else {"reasoning_effort": level}
            )
        case "effort":
            return {"reasoning_effort": "none" if off else level}


def _message(message: Message, request: Request, style: ChatStyle) -> list[Json]:
    if len(message.parts) == 1 and isinstance(message.parts[0], Text) and message.role != "tool":
        return _text_alone(message.role, message.parts[0].text, request, style)  # most messages: not the long way
    match message.role:
        case "assistant":
            return _assistant(message, request, style)
        case "tool":
            return [_result(part, more, style) for part, more in results_with_parts(message)]
        case "user":
            results = [_result(part, [], style) for part in message.parts if isinstance(part, ToolResult)]
            content = _content(message, request)
            return [*results, {"role": "user", "content": content}] if content else results


def _result(part: ToolResult, more: list[Part], style: ChatStyle) -> Json:
    call = chat_tool_id(part.call_id, short=style.short_tool_ids)
    return {"role": "tool", "tool_call_id": call, "content": result_text(part, more)}


def _text_alone(role: str, text: str, request: Request, style: ChatStyle) -> list[Json]:
    wire: Json = {"role": role, "content": text}
    if role == "assistant" and style.needs_reasoning and request.tools:
        wire[style.reasoning_field] = NO_THOUGHT
    return [wire] if text else []


def _content(message: Message, request: Request) -> str | list[Json]:
    """A plain string if there is only text: the form that every server accepts."""
    pieces: list[Json] = []
    for part in message.parts:
        if isinstance(part, Attachment):
            pieces.append(_attachment(part, request))
        elif text := plain_text(part):
            pieces.append({"type": "text", "text": text})
    if all(piece["type"] == "text" for piece in pieces):
        return "\n\n".join(piece["text"] for piece in pieces)
    return pieces


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "text", "text": text}
    url = data_url(part, request)
    if part.kind == "pdf":
        return {"type": "file", "file": {"filename": part.name, "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(message: Message, request: Request, style: ChatStyle) -> list[Json]:
    wire: Json = {"role": "assistant"}
    text = "".join(plain_text(part) for part in message.parts)
    same_provider = message.provider == request.provider
    calls = [_call(part, style, same_provider=same_provider) for part in message.parts if isinstance(part, ToolCall)]
    if not text and not calls:
        return []  # an answer with nothing but reasoning is refused as empty
    wire["content"] = text or None
    thoughts = [part for part in message.parts if isinstance(part, Reasoning) and own_reasoning(part, request)]
    details: list[Any] = []
    for part in thoughts:
        details += _details(part)
    if details:
        wire["reasoning_details"] = details
    elif (reasoning := "".join(part.text for part in thoughts)) or (style.needs_reasoning and request.tools):
        wire[style.reasoning_field] = reasoning or NO_THOUGHT
    if calls:
        wire["tool_calls"] = calls
    return [wire]


def _details(part: Reasoning) -> list[Any]:
    try:
        value = json.loads(part.details or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def _call(part: ToolCall, style: ChatStyle, *, same_provider: bool) -> Json:
    """A call; metadata to be echoed (Gemini's signature) is sent to its own provider only."""
    wire: Json = {
        "id": chat_tool_id(part.id, short=style.short_tool_ids),
        "type": "function",
        "function": {"name": part.name, "arguments": arguments_text(part.arguments)},
    }
    if same_provider and (extra := as_object(part.extra)):
        wire["extra_content"] = extra
    return wire
