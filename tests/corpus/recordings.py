"""Reads a recorded stream on its own, without the program's code: what a careful person would write down from it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Dialect: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "other"]


@dataclass
class Recording:
    """What is in the file. `input`/`output` are the tokens as its last usage names them."""

    dialect: Dialect
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)  # name and arguments
    signatures: list[str] = field(default_factory=list)  # signatures, redacted data, encrypted content
    input: int | None = None
    output: int | None = None
    ended: str | None = None  # as the provider wrote it
    failed: bool = False


def payloads(path: Path) -> list[Any]:
    """The JSON values of a file: bare lines, or the data fields of server-sent events."""
    text = path.read_text(encoding="utf-8")
    if path.name.endswith(".chunks.txt"):
        lines = text.splitlines()
    else:
        lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def answers(path: Path) -> list[tuple[bytes, Recording]]:
    """Each answer in a file: the bytes as a server sends them, and what is in them.

    One file of bare lines holds several Responses one after the other.
    """
    values = payloads(path)
    if not path.name.endswith(".chunks.txt"):
        return [(path.read_bytes(), read(values))]
    groups: list[list[Any]] = []
    for value in values:
        if not groups or value.get("type") == "response.created":
            groups.append([])
        groups[-1].append(value)
    return [(b"".join(_event(value) for value in group), read(group)) for group in groups]


def _event(value: Any) -> bytes:
    name = value.get("type")
    return ((f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n").encode()


def read(values: list[Any]) -> Recording:
    """Dialect and content of one answer."""
    kinds = {value.get("type") for value in values}
    if "message_start" in kinds:
        return _anthropic(values)
    if any(isinstance(kind, str) and kind.startswith("response.") for kind in kinds):
        return _responses(values)
    if any("choices" in value for value in values):
        return _chat(values)
    return Recording("other")


def _chat(values: list[Any]) -> Recording:
    recording = Recording("openai-chat")
    calls: dict[Any, list[str]] = {}
    last: Any = None
    for value in values:
        if value.get("error"):
            recording.failed = True
            break  # nothing is read after an error
        choice = value["choices"][0] if value.get("choices") else {}
        delta = choice.get("delta") or {}
        content = delta.get("content")
        pieces: list[Any] = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for piece in pieces:
            if piece["type"] == "thinking":
                recording.reasoning += "".join(part["text"] for part in piece["thinking"])
            else:
                recording.text += piece["text"]
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if not thought:
            thought = "".join(
                item.get("text") or item.get("summary") or "" for item in delta.get("reasoning_details") or []
            )
        recording.reasoning += thought
        for call in delta.get("tool_calls") or []:
            key = call.get("index", call.get("id"))
            key = last if key is None else key
            last = key
            name, arguments = calls.setdefault(key, ["", ""])
            function = call.get("function") or {}
            calls[key] = [name or function.get("name") or "", arguments + (function.get("arguments") or "")]
        usage = value.get("usage") or choice.get("usage") or (value.get("x_groq") or {}).get("usage")
        if usage:
            recording.input, recording.output = usage["prompt_tokens"], usage["completion_tokens"]
            hidden = usage.get("total_tokens", 0) - recording.input
            recording.output = max(recording.output, hidden)
        recording.ended = choice.get("finish_reason") or recording.ended
    recording.calls = [(name, arguments) for name, arguments in calls.values()]
    return recording


def _anthropic(values: list[Any]) -> Recording:
    recording = Recording("anthropic")
    blocks: dict[int, dict[str, Any]] = {}
    order: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}
    for value in values:
        match value["type"]:
            case "message_start":
                usage.update({k: v for k, v in value["message"]["usage"].items() if v is not None})
            case "content_block_start":
                block = {**value["content_block"], "json": ""}
                blocks[value["index"]] = block
                order.append(block)
            case "content_block_delta":
                block, delta = blocks[value["index"]], value["delta"]
                for name in ("text", "thinking", "signature"):
                    if name in delta and delta["type"] == f"{name}_delta":
                        block[name] = block.get(name, "") + delta[name]
                block["json"] += delta.get("partial_json", "")
            case "message_delta":
                usage.update({k: v for k, v in value["usage"].items() if v is not None})
                recording.ended = value["delta"].get("stop_reason") or recording.ended
                details = value["delta"].get("stop_details") or {}
                recording.refusal = details.get("explanation") or recording.refusal
            case "error":
                recording.failed = True
                break
    for block in order:
        match block["type"]:
            case "text":
                recording.text += block["text"]
            case "thinking":
                recording.reasoning += block["thinking"]
                recording.signatures += [block["signature"]] if block.get("signature") else []
            case "redacted_thinking":
                recording.signatures.append(block["data"])
            case "tool_use":
                recording.calls.append((block["name"], block["json"] or json.dumps(block["input"])))
    passes = [item for item in usage.get("iterations") or [] if item["type"] in ("message", "fallback_message")]
    source = passes[-1] if passes else usage
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    recording.input = sum(source.get(name) or 0 for name in names)
    recording.output = source["output_tokens"]
    return recording


def _responses(values: list[Any]) -> Recording:
    recording = Recording("openai-responses")
    items: list[Any] = []
    for value in values:
        match value["type"]:
            case "response.output_item.done":
                items.append(value["item"])
            case "response.completed" | "response.incomplete":
                response = value["response"]
                usage = response.get("usage") or {}
                recording.input, recording.output = usage.get("input_tokens"), usage.get("output_tokens")
                recording.ended = (response.get("incomplete_details") or {}).get("reason") or response["status"]
            case "response.failed" | "error":
                recording.failed = True
                break
    for item in items:
        match item["type"]:
            case "message":
                recording.text += "".join(part.get("text", "") for part in item["content"])
            case "function_call":
                recording.calls.append((item["name"], item["arguments"]))
            case "reasoning":
                parts = item.get("summary") or item.get("content") or []
                recording.reasoning += "\n\n".join(part["text"] for part in parts)
                recording.signatures += [item["encrypted_content"]] if item.get("encrypted_content") else []
    return recording
