"""Chat Completions at any base URL."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tui.messages import Request
from tui.providers.base import Capabilities, ProviderError
from tui.providers.capabilities import chat_capabilities
from tui.providers.config import ChatStyle
from tui.providers.dialect import DialectProvider
from tui.providers.http.client import Client
from tui.providers.http.refusals import Cause
from tui.providers.http.transport import get_json
from tui.providers.models.discovery import input_tokens
from tui.providers.openai_chat.reader import ChatReader
from tui.providers.openai_chat.wire import to_wire
from tui.providers.wire import Json

log = logging.getLogger(__name__)

_TOKENIZED = ("model", "messages", "tools", "chat_template_kwargs")  # what vLLM's route takes of a request


class OpenAIChat(DialectProvider[ChatStyle]):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"
    route = "/chat/completions"
    reader = ChatReader

    def _first_style(self, model: str) -> ChatStyle:
        return self.config.chat_style(model)

    def _body(self, request: Request, style: ChatStyle) -> Json:
        return to_wire(request, style)

    def _adapted(self, style: ChatStyle, cause: Cause, request: Request) -> ChatStyle | None:
        match cause:
            case "max_tokens_name" if request.max_output is not None:
                other = style.max_tokens_field == "max_tokens"
                return replace(style, max_tokens_field="max_completion_tokens" if other else "max_tokens")
            case "reasoning_with_tools" if request.tools:
                return replace(style, reasons_with_tools=False)
            case "missing_reasoning":
                return replace(style, needs_reasoning=True)
            case "field" if style.include_usage:
                return replace(style, include_usage=False)
            case _:
                return None

    def _after(self, error: ProviderError, style: ChatStyle, request: Request) -> ChatStyle | None:
        changed = super()._after(error, style, request)
        if changed is not None and changed.efforts == () != style.efforts:
            return replace(changed, include_usage=True)  # the unsupported field was the effort, not this one
        return changed

    def _lessons(self, style: ChatStyle, first: ChatStyle) -> tuple[str, ...]:
        lines = super()._lessons(style, first)
        if style.reasons_with_tools or not first.reasons_with_tools:
            return lines
        line = "Over Chat Completions it reasons or calls tools, not both: with tools it is asked not to reason. "
        return (*lines, f'{line}With kind = "openai" in [providers.{self.name}] it does both')

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        able = chat_capabilities(model, self.config.family)
        # Any server of a person's own may be vLLM, which counts; others answer that they have no such route.
        counts = able.count_endpoint or not (self.config.needs_key or self.config.official)
        return replace(able, count_endpoint=counts, images=able.images and self.config.images)

    async def _count(self, client: Client, body: Json) -> int | None:
        """Each kind of server has a route of its own, if any: Gemini, llama.cpp, vLLM."""
        base = client.base_url.rstrip("/")
        if self.config.family == "gemini":
            url = f"{base.removesuffix('/openai')}/models/{body['model'].removeprefix('models/')}:countTokens"
            return await input_tokens(client, url, gemini_body(body), self.name, {"x-goog-api-key": client.key})
        if self.config.family == "llamacpp":
            return await input_tokens(client, "/chat/completions/input_tokens", body, self.name)
        counted = {key: value for key, value in body.items() if key in _TOKENIZED}
        return await input_tokens(client, f"{base.removesuffix('/v1')}/tokenize", counted, self.name)

    async def check_key(self) -> None:
        """Check the key at OpenRouter's /key: its model list is public. Raises `ProviderError` of kind "auth"."""
        if self.config.family != "openrouter":
            return
        try:
            await get_json(await self.client(), "/key", self.name)
        except ProviderError as error:
            if error.kind == "auth":
                raise
            log.info("openrouter's /key says nothing of the key: %s", error)  # the first message will show


def gemini_body(body: Json) -> Json:
    """A Chat Completions body as Gemini's `countTokens` takes it (ai.google.dev/api/tokens)."""
    contents: list[Json] = []
    system: list[Json] = []
    names: dict[str, str] = {}  # of calls, by id
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            system += _parts(message["content"])
            continue
        role = "model" if message["role"] == "assistant" else "user"
        parts = _results(message, names) if message["role"] == "tool" else [*_spoken(message, names)]
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    request: Json = {"model": f"models/{body['model'].removeprefix('models/')}", "contents": contents}
    if system:
        request["systemInstruction"] = {"parts": system}
    if tools := [_declaration(tool["function"]) for tool in body.get("tools") or ()]:
        request["tools"] = [{"functionDeclarations": tools}]
    return {"generateContentRequest": request}


def _spoken(message: Json, names: dict[str, str]) -> Iterator[Json]:
    yield from _parts(message.get("content"))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        names[call["id"]] = function["name"]
        yield {"functionCall": {"name": function["name"], "args": _object(function["arguments"])}}


def _results(message: Json, names: dict[str, str]) -> list[Json]:
    name = names.get(message["tool_call_id"], "tool")
    text = "".join(part.get("text", "") for part in _parts(message["content"]))
    return [{"functionResponse": {"name": name, "response": {"output": text}}}]


def _parts(content: object) -> list[Json]:
    """Text and inline files."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    return [_part(piece) for piece in content] if isinstance(content, list) else []


def _part(piece: Json) -> Json:
    match piece:
        case {"image_url": {"url": str(url)}} | {"file": {"file_data": str(url)}}:
            kind, _, data = url.removeprefix("data:").partition(";base64,")
            return {"inlineData": {"mimeType": kind, "data": data}}
        case _:
            return {"text": str(piece.get("text") or "")}


def _declaration(function: Json) -> Json:
    """A function with its schema as JSON Schema, which Gemini takes beside its own form."""
    declaration = {"name": function["name"], "description": function.get("description", "")}
    return declaration | {"parametersJsonSchema": function.get("parameters") or {"type": "object"}}


def _object(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}
