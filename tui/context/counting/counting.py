"""`TokenCounter`: tokens of a message, a tool or a text; each distinct content is counted once.

There are two layers. `RawCount` is what the tokenizer counted in one message body, and depends on nothing else: it is
cached by (tokenizer, `PROJECTION_VERSION`, digest). `MessageCount` adds the family's markup and images, which is
arithmetic and may change between releases without a recount.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from tui.context.counting.classes import LATIN, pack, total, unpack
from tui.context.counting.digests import message_digest, system_digest, tool_digest
from tui.context.counting.families import prior_of
from tui.context.counting.images import attachment_tokens
from tui.context.counting.schemas import schema_text
from tui.context.counting.tokenizers import Tokenizer, get_tokenizer, heuristic_count
from tui.context.counting.words import TokenizerError
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

PROJECTION_VERSION = 5  # raise this when `_raw_count` counts different text of a message, or `CLASSES` change
MEMORY_ENTRIES = 65_536  # counts of messages in memory, over all tokenizers; when there are more, it begins anew


class CountCache(Protocol):
    """Persistent storage for counts. Values are small tuples of integers."""

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> Mapping[bytes, tuple[int, ...]]:
        """The stored values of `digests`; those without one are left out."""
        ...

    def put_many(self, tokenizer: str, version: int, values: Mapping[bytes, tuple[int, ...]]) -> None:
        """Store `values`, replacing earlier ones. The store may drop old entries at any time."""
        ...

    def clear(self, tokenizer: str) -> None:
        """Remove all values stored under `tokenizer`."""
        ...


class RawCount(NamedTuple):
    """Tokens of one message as the tokenizer counts them, by kind of part.

    `calls`, `arguments` (of those calls) and `results` are numbers of things. `failed` is 1 where the tokenizer could
    not count and the character heuristic stands in. `classes` are the tokens by class of text, packed, but for those
    of reasoning, which are `reasoning_classes`.
    """

    text: int
    reasoning: int
    tool_calls: int
    tool_results: int
    files: int
    calls: int
    arguments: int
    results: int
    failed: int = 0
    classes: int = 0
    reasoning_classes: int = 0


class MessageCount(NamedTuple):
    """The estimated tokens of one message, before learning.

    `split` is by kind of content ("text", "reasoning", "tool_calls", "tool_results", "attachments") and adds up to
    `size`; a message's markup goes to its largest kind but reasoning. Of `size`, `markup` is what roles and wrappers
    cost, `media` images and PDFs by formula, `fixed` reasoning whose tokens the provider reported; the rest is content
    that the tokenizer counted, by class of text in `classes` (see `tui.context.counting.classes`). `tokens` is `size`
    rounded, or None where the tokenizer failed; `size` then comes from the character heuristic.
    """

    size: float
    split: Mapping[str, float]
    markup: float = 0.0
    media: float = 0.0
    fixed: float = 0.0
    failed: bool = False
    classes: int = 0

    @property
    def content(self) -> float:
        """Tokens of the text that was counted by the tokenizer."""
        return max(0.0, self.size - self.markup - self.media - self.fixed)

    @property
    def tokens(self) -> int | None:
        """Tokens, at least 1; None where the tokenizer failed."""
        return None if self.failed else max(1, round(self.size))


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
    """Counts content with the tokenizer of a model. Safe to use from several threads."""

    def __init__(self, cache: CountCache | None = None) -> None:
        self._cache = cache
        self._messages: dict[str, dict[bytes, RawCount]] = {}  # by tokenizer and digest
        self._texts: dict[tuple[str, bytes], int] = {}  # of sections and tools
        self._lock = Lock()

    def count_text(self, text: str, model: str) -> int | None:
        """Tokens of `text` for `model`, or None where counting failed. Not cached."""
        try:
            return get_tokenizer(model).count(text)
        except TokenizerError:
            return None

    def count_message(self, message: Message, model: str) -> MessageCount:
        """The tokens of `message` in a request to `model`."""
        return self.count_messages([message], model)[0]

    def count_messages(self, messages: Sequence[Message], model: str) -> list[MessageCount]:
        """The tokens of each of `messages` in a request to `model`."""
        raws = self.raw_counts(messages, model, [message_digest(message).full for message in messages])
        return [price(message, raw, model) for message, raw in zip(messages, raws, strict=True)]

    def raw_counts(self, messages: Sequence[Message], model: str, digests: Sequence[bytes]) -> list[RawCount]:
        """What the model's tokenizer counts in `messages`; `digests` are their full ones."""
        tokenizer = get_tokenizer(model)
        with self._lock:
            remembered = self._messages.setdefault(tokenizer.name, {})
            counts = {digest: remembered[digest] for digest in digests if digest in remembered}
        missing = {digest: message for digest, message in zip(digests, messages, strict=True) if digest not in counts}
        if missing:
            stored = self._stored(tokenizer, list(missing))
            read = {digest: RawCount._make(stored[digest]) for digest in missing if digest in stored}
            fresh = {d: _raw_count(message, tokenizer) for d, message in missing.items() if d not in read}  # in order
            sure = {digest: raw for digest, raw in fresh.items() if not raw.failed}
            self._remember(remembered, read | sure)
            self._store(tokenizer, sure)
            counts |= read | fresh
        return [counts[digest] for digest in digests]

    def _remember(self, remembered: dict[bytes, RawCount], counts: Mapping[bytes, RawCount]) -> None:
        with self._lock:
            if len(counts) + sum(map(len, self._messages.values())) > MEMORY_ENTRIES:
                for others in self._messages.values():
                    others.clear()
            remembered.update(counts)

    def count_section(self, section: SystemSection, model: str) -> int | None:
        """Tokens of one section of the system prompt, or None where counting failed."""
        return self._text_count(get_tokenizer(model), system_digest(section), section.text)

    def count_tool(self, tool: ToolSchema, model: str) -> int | None:
        """Tokens of one tool's schema, without the family's fixed cost of having tools at all; None where it failed."""
        tokenizer, prior = get_tokenizer(model), prior_of(model)
        style = prior.schema_style
        key = tool_digest(tool) + style.encode()
        raw = self._text_count(tokenizer, key, schema_text(tool, style))
        return None if raw is None else max(1, round(prior.per_tool + raw * prior.schema_factor))

    def _text_count(self, tokenizer: Tokenizer, digest: bytes, text: str) -> int | None:
        count = self._texts.get((tokenizer.name, digest))
        if count is None:
            stored = self._stored(tokenizer, [digest]).get(digest)
            try:
                count = tokenizer.count(text) if stored is None else stored[0]
            except TokenizerError:
                return None
            self._texts[tokenizer.name, digest] = count
            if stored is None:
                self._store(tokenizer, {digest: (count,)})
        return count

    def _stored(self, tokenizer: Tokenizer, digests: Sequence[bytes]) -> Mapping[bytes, tuple[int, ...]]:
        return {} if self._cache is None else self._cache.get_many(tokenizer.name, PROJECTION_VERSION, digests)

    def _store(self, tokenizer: Tokenizer, values: Mapping[bytes, tuple[int, ...]]) -> None:
        if values and self._cache is not None:
            self._cache.put_many(tokenizer.name, PROJECTION_VERSION, values)


def _raw_count(message: Message, tokenizer: Tokenizer) -> RawCount:
    failed = 0
    classes = reasoning_classes = 0

    def count(text: str) -> int:
        """Tokens by class, packed."""
        nonlocal failed
        if not text:
            return 0
        try:
            return tokenizer.classes(text)
        except TokenizerError:
            failed = 1
            return pack({LATIN: heuristic_count(text)})

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
                files += add(part.text)
            case ProviderItem():
                tool_results += add(part.data)
            case Source():
                pass  # never sent
    return RawCount(
        text, reasoning, tool_calls, tool_results, files, calls, arguments, results, failed, classes, reasoning_classes
    )


# Bytes of an encrypted block that are not reasoning: in 700 recorded blocks Claude's signatures have 165 to 185.
ENVELOPE_BYTES = 175
BYTES_PER_TOKEN = 4.3  # of encrypted reasoning; English prose in o200k_base


def _reasoning_classes(part: Reasoning, visible: int) -> int:
    """Tokens of a reasoning block by class, packed; `visible` are those of its text.

    Its text may be a summary, or missing: the encrypted original says how long it is. That (signature, redacted or
    encrypted content) is base64 of the whole reasoning and about `ENVELOPE_BYTES`.
    """
    original = _reasoning_bytes(part.redacted or part.encrypted or part.signature or "")
    shown = len(part.text.encode("utf-8", "surrogatepass"))
    if original <= shown:
        return visible
    if not shown:
        return pack({LATIN: original / BYTES_PER_TOKEN})
    return pack({kind: tokens * original / shown for kind, tokens in unpack(visible)})


def _reasoning_bytes(encrypted: str) -> int:
    """Bytes of reasoning in an encrypted block; 0 without one."""
    return max(0, len(encrypted) * 3 // 4 - ENVELOPE_BYTES)


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


def price(message: Message, raw: RawCount, model: str) -> MessageCount:
    """The count of `message`, whose text was counted as `raw`, with the markup and images of the model's family."""
    prior, classes = prior_of(model), raw.classes
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
    return MessageCount(sum(split.values()), split, markup, media, fixed, bool(raw.failed), classes)
