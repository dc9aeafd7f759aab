"""`TokenCounter`: tokens of a message, a tool or a text; each distinct content is counted once.

There are two layers. `RawCount` is what the tokenizer counted in one message body, and depends on nothing else: it is
cached by (tokenizer, `PROJECTION_VERSION`, digest). `MessageCount` adds the family's markup and images, which is
arithmetic and may change between releases without a recount.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any, Literal, NamedTuple

from tui.context.counting.digests import Cache, CountCache, message_digest, system_digest, tool_digest
from tui.context.counting.families import family_of, plain_name, prior_of
from tui.context.counting.tokenizers import Tokenizer, get_tokenizer
from tui.context.counting.words import LATIN, pack, total, unpack
from tui.messages import (
    Attachment,
    Message,
    ProviderItem,
    Reasoning,
    Refusal,
    Source,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)
from tui.text.json_text import parse_json

PROJECTION_VERSION = 7  # raise this when `_raw_count` counts different text of a message, or `CLASSES` change


class RawCount(NamedTuple):
    """Tokens of one message as the tokenizer counts them, by kind of part.

    `calls`, `arguments` (of those calls) and `results` are numbers of things. `classes` are the tokens by class of
    text, packed, but for those of reasoning, which are `reasoning_classes`.
    """

    text: int
    reasoning: int
    tool_calls: int
    tool_results: int
    files: int
    calls: int
    arguments: int
    results: int
    classes: int = 0
    reasoning_classes: int = 0


class MessageCount(NamedTuple):
    """The estimated tokens of one message, before learning.

    `split` is by kind of content ("text", "reasoning", "tool_calls", "tool_results", "attachments") and adds up to
    `size`; a message's markup goes to its largest kind but reasoning. Of `size`, `markup` is what roles and wrappers
    cost, `media` images and PDFs by formula, `fixed` reasoning whose tokens the provider reported; the rest is content
    that the tokenizer counted, by class of text in `classes` (`words.CLASSES`), packed.
    """

    size: float
    split: Mapping[str, float]
    markup: float = 0.0
    media: float = 0.0
    fixed: float = 0.0
    classes: int = 0

    @property
    def content(self) -> float:
        """Tokens of the text that was counted by the tokenizer."""
        return max(0.0, self.size - self.markup - self.media - self.fixed)


def reasoning_tokens(message: Message) -> int | None:
    """Tokens of the reasoning in `message` as reported by its provider; 0 without any, None where unknown."""
    blocks = [part for part in message.parts if isinstance(part, Reasoning)]
    if not blocks:
        return 0
    reported = [block.tokens for block in blocks]
    if all(tokens is not None for tokens in reported):
        return sum(tokens or 0 for tokens in reported)
    return message.usage.reasoning if message.usage else None


class TokenCounter:
    """Counts content with the tokenizer of a model, each once. Safe to use from several threads."""

    def __init__(self, stored: CountCache | None = None) -> None:
        self._messages = Cache(stored, PROJECTION_VERSION, RawCount._make)
        self._texts: Cache[tuple[int, ...]] = Cache(stored, PROJECTION_VERSION, tuple)

    def count_text(self, text: str, model: str) -> int:
        """Tokens of `text` for `model`. Not cached."""
        return get_tokenizer(model).count(text)

    def count_message(self, message: Message, model: str) -> MessageCount:
        """The tokens of `message` in a request to `model`."""
        (raw,) = self.raw_counts([message], model, [message_digest(message).full])
        return with_markup(message, raw, model)

    def raw_counts(self, messages: Sequence[Message], model: str, digests: Sequence[bytes]) -> list[RawCount]:
        """What the model's tokenizer counts in `messages`; `digests` are their full ones."""
        tokenizer = get_tokenizer(model)
        counts = self._messages.get(tokenizer.name, digests)
        if len(counts) < len(digests):
            fresh: dict[bytes, RawCount] = {}
            for digest, message in zip(digests, messages, strict=True):
                if digest not in counts:
                    counts[digest] = fresh[digest] = _raw_count(message, tokenizer)
            if tokenizer.error is None:  # those of a vocabulary that can't be read are not kept: it may be repaired
                self._messages.put(tokenizer.name, fresh)
        return [counts[digest] for digest in digests]

    def count_section(self, section: SystemSection, model: str) -> int:
        """Tokens of one section of the system prompt."""
        return self._text_tokens(section.text, model, system_digest(section))

    def count_tool(self, tool: ToolSchema, model: str) -> int:
        """Tokens of one tool's schema, without the family's fixed cost of having tools at all."""
        prior = prior_of(model)
        style = prior.schema_style
        tokens = self._text_tokens(schema_text(tool, style), model, tool_digest(tool) + style.encode())
        return max(1, round(prior.per_tool + tokens * prior.schema_factor))

    def _text_tokens(self, text: str, model: str, digest: bytes) -> int:
        tokenizer = get_tokenizer(model)
        if count := self._texts.get(tokenizer.name, [digest]).get(digest):
            return count[0]
        tokens = tokenizer.count(text)
        if tokenizer.error is None:
            self._texts.put(tokenizer.name, {digest: (tokens,)})
        return tokens


def _raw_count(message: Message, tokenizer: Tokenizer) -> RawCount:
    count = tokenizer.classes
    classes = reasoning_classes = 0

    def add(text: str) -> int:
        """Tokens, added to `classes`."""
        nonlocal classes
        counted = count(text)
        classes += counted
        return round(total(counted))

    text = reasoning = tool_calls = tool_results = files = calls = arguments = results = 0
    for part in message.parts:
        match part:
            case Text() | Refusal():
                text += add(part.text)
            case Reasoning():
                counted = _reasoning_classes(part, count(part.text))
                reasoning_classes += counted
                reasoning += round(total(counted))
            case ToolCall():
                tool_calls += add(part.name) + add(_arguments_as_read(part.arguments, tokenizer.name))
                calls += 1
                arguments += _argument_count(part.arguments)
            case ToolResult():
                tool_results += add(part.text)
                results += 1
            case Attachment():
                files += add(part.text_sent)
            case ProviderItem():
                tool_results += add(part.data)
            case Source():
                pass  # never sent
    return RawCount(
        text, reasoning, tool_calls, tool_results, files, calls, arguments, results, classes, reasoning_classes
    )


# Bytes of an encrypted block that are not reasoning: in 700 recorded blocks Claude's signatures have 165 to 185.
ENVELOPE_BYTES = 175
BYTES_PER_TOKEN = 4.3  # of encrypted reasoning; English prose in o200k_base


def _reasoning_classes(part: Reasoning, visible: int) -> int:
    """Tokens of a reasoning block by class, packed; `visible` are those of its text.

    Its text may be a summary, or missing: the encrypted original says how long it is. That (signature, redacted or
    encrypted content) is base64 of the whole reasoning and about `ENVELOPE_BYTES`.
    """
    encrypted = part.redacted or part.encrypted or part.signature or ""
    original = len(encrypted) * 3 // 4 - ENVELOPE_BYTES
    shown = len(part.text.encode("utf-8", "surrogatepass"))
    if original <= shown:
        return visible
    if not shown:
        return pack({LATIN: original / BYTES_PER_TOKEN})
    return pack({kind: tokens * original / shown for kind, tokens in unpack(visible)})


_RAW_ARGUMENTS = ("claude", "glm", "minimax")
"""Families whose template writes arguments between marks: published for GLM and MiniMax, measured for Claude."""

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _arguments_as_read(arguments: str, tokenizer: str) -> str:
    """The arguments of a call as a template writes them: as JSON, or without its escapes."""
    if "\\" not in arguments or not tokenizer.startswith(_RAW_ARGUMENTS):
        return arguments
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPED.get(m[2], m[2]), arguments)


def _argument_count(arguments: str) -> int:
    """Number of arguments of a call; 0 for text that is not a JSON object."""
    if not arguments.startswith("{") or arguments == "{}":
        return 0
    try:
        values = parse_json(arguments)
    except ValueError:
        return 1
    return len(values) if isinstance(values, dict) else 0


def with_markup(message: Message, raw: RawCount, model: str) -> MessageCount:
    """The count of `message`, whose text was counted as `raw`, with the markup and images of the model's family."""
    prior, classes = prior_of(model), raw.classes
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):  # most are, and this takes a third of the time
        size = raw.text + prior.per_message
        return MessageCount(size, {"text": size}, prior.per_message, classes=classes)
    is_results = raw.results and message.role == "tool"
    markup = 0.0 if is_results else prior.per_message
    reasoning: int | None = 0
    media = fixed = 0.0
    for part in message.parts:
        if isinstance(part, Attachment):
            media += attachment_tokens(part, model)
        elif isinstance(part, Reasoning):
            reasoning = reasoning_tokens(message)
    split: dict[str, float] = {}
    if raw.text:
        split["text"] = float(raw.text)
    if reasoning is None:
        split["reasoning"] = float(raw.reasoning)
        classes += raw.reasoning_classes
    elif reasoning:
        split["reasoning"] = fixed = float(reasoning)
    if raw.calls:
        wrapped = raw.calls * prior.per_call + raw.arguments * prior.per_argument
        split["tool_calls"] = raw.tool_calls + wrapped
        markup += wrapped
    if raw.results:
        split["tool_results"] = raw.tool_results + raw.results * prior.per_result
        markup += raw.results * prior.per_result
    if media or raw.files:
        split["attachments"] = raw.files + media
    if not is_results:
        shown = [kind for kind in split if kind != "reasoning"]  # may be dropped while the message stays
        largest = max(shown, key=split.__getitem__, default="text")
        split[largest] = split.get(largest, 0.0) + prior.per_message
    return MessageCount(sum(split.values()), split, markup, media, fixed, classes)


# -- images ------------------------------------------------------------------------------------------------------------

# By the provider's published pixel and page formulas, never by bytes: Anthropic "Vision" (patches of 28 px), OpenAI
# "Images and vision" (patches of 32 px or tiles of 512 px, by model), Google Gemini "Understand images" (258 a tile of
# 768 px). Where nothing is published the patch formula of OpenAI serves, and the learned factor corrects it.

UNKNOWN_SIDE = 1024  # pixels: side of the square that an image of unknown size is counted as
PDF_PAGE_TEXT = 2_000  # tokens: Anthropic names 1,500 to 3,000 a page of text
PDF_PAGE = (1_241, 1_754)  # pixels: A4 at 150 dpi; each page is also sent as an image


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI patch models: squares of 32 px, at most `budget` of them (None: no limit), times `multiplier`."""

    budget: int | None
    multiplier: float = 1.0


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI tile models, detail high: `base`, plus `tile` for each square of 512 px after scaling to 2048 / 768 px."""

    base: int
    tile: int


_OPENAI: tuple[tuple[str, Patches | Tiles], ...] = (
    ("gpt-5.6", Patches(None)),
    ("gpt-6", Patches(None)),
    ("gpt-5.5", Patches(10_000)),
    ("gpt-5.4-mini", Patches(1_536, 1.62)),
    ("gpt-5.4-nano", Patches(1_536, 2.46)),
    ("gpt-5.4", Patches(2_500)),
    ("gpt-5.2", Patches(1_536)),
    ("gpt-5-mini", Patches(1_536, 1.62)),
    ("gpt-5-nano", Patches(1_536, 2.46)),
    ("gpt-4.1-mini", Patches(1_536, 1.62)),
    ("gpt-4.1-nano", Patches(1_536, 2.46)),
    ("o4-mini", Patches(1_536, 1.72)),
    ("gpt-4o-mini", Tiles(2_833, 5_667)),
    ("gpt-5", Tiles(70, 140)),
    ("gpt-4", Tiles(85, 170)),
    ("o1", Tiles(75, 150)),
    ("o3", Tiles(75, 150)),
    ("computer-use", Tiles(65, 129)),
)


def has_image_formula(model: str) -> bool:
    """Whether what `model` needs for an image is published."""
    return "claude" in model.lower() or plain_name(model).startswith(("gemini", "gemma", *dict(_OPENAI)))


def image_tokens(width: int, height: int, model: str) -> int:
    """Tokens of an image of `width` x `height` pixels for `model`, for OpenAI's at detail high or auto. At least 1."""
    name = plain_name(model)
    width, height = max(1, width), max(1, height)
    if "claude" in name:  # patches of 28 px after scaling it down to the limits of the model's tier
        side, most = (2_576, 4_784) if family_of(name) == "claude-4.7" else (1_568, 1_568)
        scale = min(1.0, side / max(width, height))
        return min(ceil(width * scale / 28) * ceil(height * scale / 28), most)
    if name.startswith(("gemini", "gemma")):  # 258 for each tile of 768 px, one where both sides are at most 384 px
        return 258 if max(width, height) <= 384 else 258 * ceil(width / 768) * ceil(height / 768)
    rule = next((rule for prefix, rule in _OPENAI if name.startswith(prefix)), Patches(1_536))
    if isinstance(rule, Tiles):
        scale = min(1.0, 2_048 / max(width, height))
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
        scale = min(1.0, 768 / min(width, height))
        return rule.base + rule.tile * ceil(width * scale / 512) * ceil(height * scale / 512)
    patches = ceil(width / 32) * ceil(height / 32)
    if rule.budget is not None and patches > rule.budget:
        scale = sqrt(32 * 32 * rule.budget / (width * height))
        across, down = width * scale / 32, height * scale / 32
        if across >= 1 and down >= 1:
            scale *= min(floor(across) / across, floor(down) / down)
        patches = min(rule.budget, max(1, ceil(width * scale / 32 - 1e-9)) * max(1, ceil(height * scale / 32 - 1e-9)))
    return ceil(patches * rule.multiplier)


def attachment_tokens(attachment: Attachment, model: str) -> int:
    """Tokens of an image or a PDF; 0 for a text file, which is counted as text."""
    match attachment.kind:
        case "image":
            return image_tokens(attachment.width or UNKNOWN_SIDE, attachment.height or UNKNOWN_SIDE, model)
        case "pdf":
            page = PDF_PAGE_TEXT + image_tokens(*PDF_PAGE, model)
            return page * max(1, attachment.pages or 1)
        case "text":
            return 0


# -- tools -------------------------------------------------------------------------------------------------------------

# OpenAI does not publish the TypeScript form; models repeat it when asked, and it explains OpenAI's counts of recorded
# requests to the token (tests/bench/fit_priors.py).

MAX_DEPTH = 8  # levels; recursive schemas are cut off here


def schema_text(tool: ToolSchema, style: Literal["json", "typescript"]) -> str:
    """The text whose tokens a tool costs."""
    if style == "json":
        return f"{tool.name}\n{tool.description}\n{tool.parameters}"
    try:
        schema = json.loads(tool.parameters)
    except ValueError:
        schema = {}
    if not isinstance(schema, dict):
        schema = {}
    named = schema.get("$defs") or schema.get("definitions")
    fields = _fields(schema, named if isinstance(named, dict) else {}, 0)
    comment = "".join(f"// {line}\n" for line in tool.description.split("\n")) if tool.description else ""
    inner = f"_: {{\n{fields}}}" if fields else ""
    return f"{comment}type {tool.name} = ({inner}) => any;\n\n"


def _fields(schema: Mapping[str, Any], named: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ""
    required = schema.get("required") or []
    lines = []
    for name, value in properties.items():
        if isinstance(value, dict) and value.get("description"):
            lines.append(f"// {value['description']}\n")
        mark = "" if name in required else "?"
        default = (
            f" // default: {json.dumps(value['default'])}" if isinstance(value, dict) and "default" in value else ""
        )
        lines.append(f"{name}{mark}: {_type(value, named, depth)},{default}\n")
    return "".join(lines)


def _type(schema: Any, named: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return "any"
    if "$ref" in schema:
        return _type(named.get(str(schema["$ref"]).rsplit("/", 1)[-1]), named, depth + 1)
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(_type(option, named, depth + 1) for option in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return _type(schema.get("items", {}), named, depth + 1) + "[]"
    if kind == "object":
        fields = _fields(schema, named, depth + 1)
        return f"{{\n{fields}}}" if fields else "object"
    return {"integer": "number"}.get(str(kind), str(kind or "any"))
