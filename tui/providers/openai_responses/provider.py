"""OpenAI Responses at any base URL, stateless: all items are sent again, nothing is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from tui.messages import Attachment, Message, Part, Reasoning, Request, Text, ToolCall, ToolResult
from tui.providers.base import Capabilities
from tui.providers.capabilities import gpt_version, openai_efforts, responses_capabilities
from tui.providers.dialect import DialectProvider, Style
from tui.providers.http.client import Client
from tui.providers.http.refusals import Cause
from tui.providers.models.discovery import input_tokens
from tui.providers.openai_responses.reader import ResponsesReader
from tui.providers.wire import (
    Json,
    arguments_text,
    as_object,
    attached_files,
    attachment_text,
    data_url,
    files_after_results,
    own_reasoning,
    plain_text,
    result_text,
    results_with_parts,
    system_text,
    tool_id,
)

# Fields of a request that the counting route accepts.
_COUNTED = ("model", "input", "instructions", "tools", "reasoning")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesStyle(Style):
    """How a server's Responses API differs. `official`: OpenAI's own servers; others support fewer fields."""

    official: bool = True
    summaries: bool = True  # reasoning summaries may be asked for
    streams: bool = True


class OpenAIResponses(DialectProvider[ResponsesStyle]):
    """One server that speaks Responses."""

    dialect = "openai-responses"
    route = "/responses"
    reader = ResponsesReader

    def _first_style(self, model: str) -> ResponsesStyle:
        efforts = openai_efforts(model)
        if efforts is None and self.config.official:
            efforts = ()  # not a reasoning model of OpenAI
        return ResponsesStyle(official=self.config.official, efforts=efforts)

    def _body(self, request: Request, style: ResponsesStyle) -> Json:
        return to_wire(request, style)

    async def _count(self, client: Client, body: Json) -> int | None:
        counted = {key: value for key, value in body.items() if key in _COUNTED}
        return await input_tokens(client, "/responses/input_tokens", counted)

    def _adapted(self, style: ResponsesStyle, cause: Cause, request: Request) -> ResponsesStyle | None:
        match cause:
            case "summaries":
                return replace(style, summaries=False)
            case "streams":
                return replace(style, streams=False)
            case _:
                return None

    def _lessons(self, style: ResponsesStyle, first: ResponsesStyle) -> tuple[str, ...]:
        lines = super()._lessons(style, first)
        if not style.summaries:
            lines += ("Its reasoning is not summarized: OpenAI does that for verified organizations",)
        if not style.streams:
            lines += ("Its answers come whole: OpenAI streams them to verified organizations",)
        return lines

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return responses_capabilities(model, official=self.config.official)


def to_wire(request: Request, style: ResponsesStyle) -> Json:
    """The JSON body of POST /responses, streaming."""
    official = style.official
    messages = request.messages if official else files_after_results(request.messages)
    items = [item for message in messages for item in _items(message, request, official=official)]
    body: Json = {"model": request.model, "input": items, "store": False, "stream": style.streams}
    if system := system_text(request.system):
        body["instructions"] = system
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": as_object(tool.parameters),
                "strict": False,
            }
            for tool in map(style.tool, request.tools)
        ]
    if request.max_output is not None:
        body["max_output_tokens"] = request.max_output
    if official and request.session:
        body["prompt_cache_key"] = request.session
    return body | _reasoning_fields(request, style)


def _reasoning_fields(request: Request, style: ResponsesStyle) -> Json:
    """Fields for reasoning models; OpenAI's other models answer 400 to them."""
    if style.official and not style.efforts and not openai_efforts(request.model):
        return {}
    fields: Json = {}
    if style.official:
        fields["include"] = ["reasoning.encrypted_content"]
        if style.summaries:
            fields["reasoning"] = {"summary": "auto"}
    if (effort := style.effort(request.reasoning)) is not None:
        fields["reasoning"] = fields.get("reasoning", {}) | {"effort": "none" if effort == "off" else effort}
    return fields


def _items(message: Message, request: Request, *, official: bool) -> list[Json]:
    if message.role == "assistant":
        return _assistant(message, request, official=official)
    if message.role == "tool":
        answered = results_with_parts(message)
        return [_result(part, more, _files(more, request) if official else []) for part, more in answered]
    results = [_result(part, [], []) for part in message.parts if isinstance(part, ToolResult)]
    content: list[Json] = []
    for part in message.parts:
        if isinstance(part, Attachment):
            content.append(_attachment(part, request))
        elif text := plain_text(part):
            content.append({"type": "input_text", "text": text})
    return [*results, {"type": "message", "role": "user", "content": content}] if content else results


def _result(part: ToolResult, more: list[Part], files: list[Json]) -> Json:
    output: str | list[Json] = result_text(part, more)
    if files:
        output = [{"type": "input_text", "text": output}, *files]
    return {"type": "function_call_output", "call_id": tool_id(part.call_id), "output": output}


def _files(parts: list[Part], request: Request) -> list[Json]:
    return [_attachment(part, request) for part in attached_files(parts)]


def _attachment(part: Attachment, request: Request) -> Json:
    if (text := attachment_text(part, request)) is not None:
        return {"type": "input_text", "text": text}
    url = data_url(part, request)
    if part.kind == "pdf":
        return {"type": "input_file", "filename": part.name, "file_data": url}
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _assistant(message: Message, request: Request, *, official: bool) -> list[Json]:
    """An answer's items in order; reasoning stays directly before the item it led to."""
    items: list[Json] = []
    last_call = max((at for at, part in enumerate(message.parts) if isinstance(part, ToolCall)), default=-1)
    version = gpt_version(request.model)
    same_model = (message.provider, message.model) == (request.provider, request.model)  # its phases are stored
    phased = version is not None and version >= (5, 4) and not same_model
    for at, part in enumerate(message.parts):
        match part:
            case Reasoning():
                if own_reasoning(part, request):
                    items += _reasoning(part)
            case ToolCall():
                items.append(
                    {
                        "type": "function_call",
                        "call_id": tool_id(part.id),
                        "name": part.name,
                        "arguments": arguments_text(part.arguments),
                    }
                )
            case _ if text := plain_text(part):
                item: Json = {"type": "message", "role": "assistant", "content": text}
                phase = part.phase if isinstance(part, Text) else None
                if phase is None and phased:  # text before a call, and text at the end
                    phase = "commentary" if at < last_call else "final_answer"
                if phase is not None and official:
                    item["phase"] = phase
                items.append(item)
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # reasoning without its following item is refused
    return items


def _reasoning(part: Reasoning) -> list[Json]:
    if part.encrypted is not None:
        try:
            summary = json.loads(part.details or "null")
        except ValueError:
            summary = None
        if not isinstance(summary, list):
            summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        item: Json = {"type": "reasoning", "summary": summary, "encrypted_content": part.encrypted}
        return [item | {"id": part.item_id} if part.item_id else item]
    if not part.text:
        return []
    # Servers that keep nothing and encrypt nothing (llama.cpp, LM Studio) take the plain text.
    content = [{"type": "reasoning_text", "text": part.text}]
    return [{"type": "reasoning", "id": part.item_id or "", "summary": [], "content": content, "encrypted_content": ""}]
