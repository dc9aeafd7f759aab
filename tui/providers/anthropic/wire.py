"""A request in the words of Anthropic Messages. Pure."""

from __future__ import annotations

from tui.messages import Attachment, Message, Part, Reasoning, Request, ToolCall, ToolResult
from tui.providers.capabilities import claude
from tui.providers.wire import (
    Json,
    ToolIds,
    arguments_object,
    attachment_text,
    encoded,
    missing_text,
    own_reasoning,
    plain_text,
    result_text,
    results_with_parts,
    schema_object,
    usual_tool_ids,
)

DEFAULT_MAX_OUTPUT = 8192  # tokens; the field is required, and every model from 3.5 on takes this much
MIN_BUDGET = 1024  # tokens; the least a thinking budget may be
_BUDGET_SHARE = {"low": 0.2, "medium": 0.5, "high": 0.8}  # of the answer's tokens, for models that take a budget
_CACHE: Json = {"type": "ephemeral"}


def to_wire(request: Request, *, cache: bool = True, types: frozenset[str] | None = None) -> Json:
    """The JSON body of POST /v1/messages, streaming.

    With `cache` two marks are set: after the system prompt (which outlives a trimmed conversation) and at the end.
    `types` are the values of `thinking.type` that the server says the model takes; None goes by its name.
    """
    ids = usual_tool_ids()
    messages: list[Json] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request, ids)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message_body in messages:
        if message_body["role"] == "user":  # results come first, directly behind their calls
            message_body["content"].sort(key=lambda block: block["type"] != "tool_result")
    if messages and messages[-1]["role"] == "assistant" and messages[-1]["content"][-1]["type"] == "text":
        last = messages[-1]["content"][-1]  # an answer to be continued must not end with blanks
        last["text"] = last["text"].rstrip()
    system = [{"type": "text", "text": section.text} for section in request.system if section.text.strip()]
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": schema_object(tool.parameters)}
        for tool in request.tools
    ]
    if cache:
        _mark(system or tools)
        if messages:
            _mark([block for block in messages[-1]["content"] if "thinking" not in block["type"]])
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_output or DEFAULT_MAX_OUTPUT,
        "messages": messages,
        "stream": True,
    }
    if system:
        body["system"] = system
    if tools:
        body["tools"] = tools
    if request.server_edits:
        body["context_management"] = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    if types is None and (kind := claude(request.model)) is not None:
        types = kind.thinking_types
    return body | thinking(types, request.reasoning, body["max_tokens"])


def thinking(types: frozenset[str] | None, wanted: str | None, max_tokens: int) -> Json:
    """How thinking is asked for: adaptive with an effort where the model takes that, else a budget (tokens).

    `types` are the values of `thinking.type` that it takes; None is unknown.
    """
    if types is None:
        return {} if wanted is None else _budgeted(wanted, max_tokens)
    if "adaptive" in types:
        if wanted is None or wanted == "off":
            if "disabled" not in types:  # it thinks anyway; "summarized" lets a person see it
                effort: Json = {"output_config": {"effort": "low"}} if wanted == "off" else {}
                return {"thinking": {"type": "adaptive", "display": "summarized"}} | effort
            return {} if wanted is None else {"thinking": {"type": "disabled"}}
        return {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": wanted}}
    if wanted is None or "enabled" not in types:
        return {}
    return _budgeted(wanted, max_tokens)


def _budgeted(wanted: str, max_tokens: int) -> Json:
    budget = int(max_tokens * _BUDGET_SHARE.get(wanted, 0.5))
    if wanted == "off" or max_tokens <= MIN_BUDGET:
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "enabled", "budget_tokens": max(MIN_BUDGET, budget)}}


def _mark(blocks: list[Json]) -> None:
    if blocks:
        blocks[-1]["cache_control"] = dict(_CACHE)


def _blocks(message: Message, request: Request, ids: ToolIds) -> list[Json]:
    if message.role == "tool":
        return [_result(result, more, request, ids) for result, more in results_with_parts(message)]
    blocks: list[Json] = []
    for part in message.parts:
        match part:
            case Reasoning():
                if message.role == "assistant" and own_reasoning(part, request):
                    blocks += _reasoning(part)
            case ToolCall():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": ids.call(part.id),
                        "name": part.name,
                        "input": arguments_object(part.arguments),
                    }
                )
            case ToolResult():
                blocks.append(_result(part, [], request, ids))
            case Attachment():
                blocks.append(_attachment(part, request))
            case _ if (text := plain_text(part)).strip():
                blocks.append({"type": "text", "text": text})
    if message.role == "assistant" and all("thinking" in block["type"] for block in blocks):
        return []  # an answer of nothing but thinking is refused as empty
    return blocks


def _reasoning(part: Reasoning) -> list[Json]:
    if part.redacted is not None:
        return [{"type": "redacted_thinking", "data": part.redacted}]
    if part.signature is None:
        return []  # a cancelled thought: no signature, no way back
    return [{"type": "thinking", "thinking": part.text, "signature": part.signature}]


def _result(part: ToolResult, more: list[Part], request: Request, ids: ToolIds) -> Json:
    content: str | list[Json] = result_text(part, more)
    if files := [_attachment(file, request) for file in more if isinstance(file, Attachment)]:
        content = [{"type": "text", "text": content}, *files]
    block: Json = {"type": "tool_result", "tool_use_id": ids.result(part.call_id), "content": content}
    return block | {"is_error": True} if part.is_error else block


def _attachment(part: Attachment, request: Request) -> Json:
    if part.kind == "text":
        return {"type": "text", "text": attachment_text(part)}
    blob = request.blobs.get(part.sha256)
    if blob is None:
        return {"type": "text", "text": missing_text(part)}
    source = {"type": "base64", "media_type": part.media_type, "data": encoded(blob)}
    return {"type": "document" if part.kind == "pdf" else "image", "source": source}
