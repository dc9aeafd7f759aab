"""What every dialect's `to_wire` needs: system text, tool ids, arguments, attachments. Pure.

Requests come from a projection: the ids of their calls are unique, and each result follows its call.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any, TypeAlias

from tui.context.counting.digests import text_digest
from tui.messages import (
    Attachment,
    Message,
    Part,
    Reasoning,
    Refusal,
    Request,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
)
from tui.text.json_text import parse_json, parse_object

Json: TypeAlias = dict[str, Any]

MAX_TOKENS = 10**12
"""Larger numbers can't be token counts, and would not fit the store."""

_COUNT = re.compile(r"[0-9]{1,12}")

EMPTY_RESULT = "[no output]"
"""Text for a block that must not be empty."""


def system_text(sections: tuple[SystemSection, ...]) -> str:
    """The system prompt and the memory files as one text."""
    return "\n\n".join(section.text for section in sections if section.text.strip())


def plain_text(part: Part) -> str:
    """The text of a text or refusal part; empty for other parts, and for a server's explanation of a refusal."""
    if isinstance(part, Refusal) and part.from_server:
        return ""
    return part.text if isinstance(part, Text | Refusal) else ""


def own_reasoning(part: Reasoning, request: Request) -> bool:
    """Whether `part` was made by the provider and model of the request."""
    return part.provider == request.provider and part.model == request.model


def results_with_parts(message: Message) -> list[tuple[ToolResult, list[Part]]]:
    """The results in a message, each with the parts that follow it in a tool message: images, or text in place."""
    results: list[tuple[ToolResult, list[Part]]] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            results.append((part, []))
        elif results and message.role == "tool":
            results[-1][1].append(part)
    return results


def result_text(result: ToolResult, more: list[Part]) -> str:
    """A result's text including the text parts that follow it, never empty."""
    texts = [result.text, *map(plain_text, more)]
    return "\n".join(text for text in texts if text.strip()) or EMPTY_RESULT


def attachment_text(part: Attachment, request: Request) -> str | None:
    """A text file as it is written into the prompt, or the placeholder for an attachment whose bytes are missing.

    None for an image or PDF that can be sent.
    """
    if part.kind == "text":
        return part.text_sent
    return None if part.sha256 in request.blobs else f"[attachment {part.name} is not available any more]"


def attached_files(parts: Sequence[Part]) -> list[Attachment]:
    """The attachments among `parts`."""
    return [part for part in parts if isinstance(part, Attachment)]


def count_of(value: object) -> int | None:
    """A number of tokens as servers write it, also as text or float; None if it is not a count."""
    match value:
        case bool():
            return None
        case int() | float() if 0 <= value <= MAX_TOKENS:
            return int(value)
        case str() if _COUNT.fullmatch(value.strip()):
            return int(value)
        case _:
            return None


def text_of(value: object) -> str:
    """`value` if it is text, else ""."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Json:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Json]:
    """The objects in `value` if it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def at_path(body: object, path: str) -> object:
    """The value at `path`, whose dots lead into inner objects; None if there is none."""
    for name in path.split("."):
        body = body.get(name) if isinstance(body, Mapping) else None
    return body


def find_count(body: object, *paths: str, least: int = 0) -> int | None:
    """The count in the first of `paths` (see `at_path`) that has one of at least `least`."""
    counts = (count_of(at_path(body, path)) for path in paths)
    return next((count for count in counts if count is not None and count >= least), None)


def data_url(part: Attachment, request: Request) -> str:
    """The attachment as a data URL."""
    return f"data:{part.media_type};base64,{encoded(part, request)}"


def encoded(part: Attachment, request: Request) -> str:
    """The attachment's bytes in base64, as text."""
    return base64.b64encode(request.blobs[part.sha256]).decode("ascii")


def arguments_object(arguments: str) -> Json:
    """A tool call's arguments as a JSON object; other text is wrapped, so that the call can be sent."""
    with suppress(ValueError):
        return parse_object(arguments)
    with suppress(ValueError):
        return {"value": parse_json(arguments)}
    return {"invalid_json": arguments}


@lru_cache(maxsize=256)  # asked for with each measure of a running turn, 4 ms for a megabyte
def arguments_text(arguments: str) -> str:
    """A tool call's arguments as text: as written by the model if that is a JSON object, else repaired."""
    value = arguments_object(arguments)
    try:
        unchanged = json.loads(arguments) == value  # False for numbers that JSON doesn't have
    except (ValueError, RecursionError):
        unchanged = False
    return arguments if unchanged else json.dumps(value, ensure_ascii=False)


def received_arguments(value: object) -> str:
    """The arguments of a received tool call as text; some servers send the object itself. "" for anything else."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else text_of(value)


def as_object(text: str | None) -> Json:
    """JSON text as an object; empty for anything else."""
    try:
        return object_of(parse_json(text or "{}"))
    except ValueError:
        return {}


def as_objects(text: str | None) -> list[Json]:
    """The objects in JSON text if it is a list, else none."""
    try:
        return objects_of(parse_json(text or "[]"))
    except ValueError:
        return []


_TOOL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_CHAT_ID = re.compile(r"[!-~]{1,40}")
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")


def own_call_ids(request: Request) -> frozenset[str]:
    """The ids of the calls that the model of `request` made: they go back as they came.

    LiteLLM appends Gemini's thought signature to them, without which Gemini refuses the call (BerriAI/litellm#37849).
    """
    return frozenset(
        part.id
        for message in request.messages
        if message.role == "assistant" and (message.provider, message.model) == (request.provider, request.model)
        for part in message.parts
        if isinstance(part, ToolCall) and part.id
    )


def tool_id(original: str, own_ids: Collection[str] = ()) -> str:
    """The id of a call, and of its result, for Anthropic and OpenAI's Responses: letters, digits, "_" and "-".

    Those in `own_ids` are not changed.
    """
    if original in own_ids or _TOOL_ID.fullmatch(original):
        return original
    return f"call_{text_digest(original)[:24]}"


def chat_tool_id(original: str, own_ids: Collection[str] = (), *, short: bool) -> str:
    """The same for Chat Completions: at most 40 characters for OpenAI; Kimi's `functions.name:0` must not change.

    `short`: exactly nine letters or digits, for Mistral.
    """
    if short:
        return original if _SHORT_ID.fullmatch(original) else text_digest(original)[:9]
    if original in own_ids or _CHAT_ID.fullmatch(original):
        return original
    return f"call_{text_digest(original)[:24]}"


def tool_name(original: str) -> str:
    """The name of a call as every API takes it back.

    Models make up others (`multi_tool_use.parallel`), and so do other programs: one of them makes OpenAI and Anthropic
    refuse the whole conversation.
    """
    return _NOT_IN_NAMES.sub("_", original)[:64] or "unnamed"


def files_after_results(messages: Sequence[Message]) -> Iterator[Message]:
    """`messages` for dialects whose results are text alone: their files follow in a user message.

    It comes after all results of a step. The text before a file, which names the tool, goes with it.
    """
    files: list[Part] = []
    for message in messages:
        if message.role == "tool":
            results: list[Part] = []
            for part, following in zip_longest(message.parts, message.parts[1:]):
                with_file = isinstance(part, Text) and isinstance(following, Attachment)
                (files if with_file or isinstance(part, Attachment) else results).append(part)
            yield replace(message, parts=tuple(results)) if len(results) < len(message.parts) else message
            continue
        if files:
            yield Message("user", tuple(files))
            files = []
        yield message
    if files:
        yield Message("user", tuple(files))
