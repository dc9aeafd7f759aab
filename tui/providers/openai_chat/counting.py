"""Where servers that speak Chat Completions count a request: each has a route of its own, if any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tui.providers.config import ProviderConfig
from tui.providers.http.client import Client
from tui.providers.models.discovery import input_tokens
from tui.providers.wire import Json

_TOKENIZED = ("model", "messages", "tools", "chat_template_kwargs")  # what vLLM's route takes of a request


async def count_body(client: Client, config: ProviderConfig, body: Json) -> int | None:
    """The server's count of the input of `body`, in tokens; None where it has no route. Raises `ProviderError`."""
    base = client.base_url.rstrip("/")
    if config.name == "gemini":
        url = f"{base.removesuffix('/openai')}/models/{body['model'].removeprefix('models/')}:countTokens"
        return await input_tokens(client, url, gemini_body(body), config.name, {"x-goog-api-key": client.key})
    if config.family == "local":
        return await input_tokens(client, "/chat/completions/input_tokens", body, config.name)
    asked = {key: value for key, value in body.items() if key in _TOKENIZED}
    return await input_tokens(client, f"{base.removesuffix('/v1')}/tokenize", asked, config.name)


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
