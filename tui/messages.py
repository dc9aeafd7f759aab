"""Messages, their parts, and requests: frozen values without behaviour, the lowest layer.

The store keeps `Message`s, the projection turns them into a `Request`, the accounting measures the `Request`, and a
provider turns it into its wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["user", "assistant", "tool"]
MessageKind: TypeAlias = Literal["chat", "summary", "injected"]
MessageStatus: TypeAlias = Literal["complete", "streaming", "cancelled", "interrupted", "failed"]
FinishKind: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "refusal", "window_full", "paused", "malformed_call", "other"
]
UsageSource: TypeAlias = Literal["provider", "estimated"]

BUILT_IN = "built-in"
"""The origin of the program's own tools."""

EFFORTS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""The reasoning levels that can be requested. Models support some of them; their provider maps the rest."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of any role. `phase` is OpenAI's label of an answer's text: "commentary" or "final_answer"."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning (thinking) block, with everything its provider needs to accept it back unchanged.

    `provider` and `model` made it: a block is sent back only to them.
    """

    text: str
    provider: str = ""
    model: str = ""
    signature: str | None = None  # Anthropic `signature`; "" is a signature (llama.cpp sends one), None is none
    redacted: str | None = None  # Anthropic `redacted_thinking.data`
    encrypted: str | None = None  # Responses `encrypted_content`
    item_id: str | None = None  # Responses item id
    details: str | None = None  # OpenRouter `reasoning_details`, as JSON text
    tokens: int | None = None  # tokens, as reported or divided among blocks; None is unknown


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call by the model. `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str
    extra: str | None = None  # provider metadata to echo (Gemini thought_signature, Responses item id), JSON text


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. `full` is the hash (hex) under which the whole text is stored, "" if this is all of
    it.

    Images returned by a tool are attachments that follow its result in the message.
    """

    call_id: str
    name: str
    text: str
    is_error: bool = False
    full: str = ""  # never sent


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, a PDF or a text file. Binary content is stored by hash (`sha256`, hex) and never counted by its length.

    `size` is in bytes, `width` and `height` in pixels; `text` only for kind "text".
    """

    kind: Literal["image", "pdf", "text"]
    name: str
    media_type: str
    sha256: str
    size: int
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text: str = ""

    @property
    def text_sent(self) -> str:
        """A text file as it is written into the prompt, under its name; "" for other kinds."""
        return f'<file name="{self.name}">\n{self.text}\n</file>' if self.kind == "text" else ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal, if the provider marks it as one.

    `from_server`: a classifier of the provider stopped the answer, and `text` is its explanation ("" for none), which
    is never sent back as the model's text. `category` is the provider's name for the reason.
    """

    text: str
    category: str | None = None
    from_server: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A source cited by an answer. Shown with a number under the answer; never sent back. `quote` is the cited text."""

    url: str
    title: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True)
class ProviderItem:
    """A part of an answer that only its provider understands: a server tool's call or result, an image, audio.

    `kind` is the provider's name for it. `data` is the item as JSON if the provider wants it back; "" is never sent.
    """

    kind: str
    provider: str = ""
    data: str = ""


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Attachment | Refusal | Source | ProviderItem


def is_sendable(part: Part) -> bool:
    """Whether a part of a message can be sent at all: not blank text, and not an explanation for the person."""
    if isinstance(part, Text | Refusal):
        is_explanation = isinstance(part, Refusal) and part.from_server
        return bool(part.text) and not part.text.isspace() and not is_explanation
    if isinstance(part, ProviderItem):
        return bool(part.data)
    return not isinstance(part, Source)


@dataclass(frozen=True, slots=True)
class BilledPass:
    """One pass of a call in which the server made several; tokens as in `Usage`. `model` "": that of the call."""

    input_total: int
    output_total: int
    input_cached: int = 0
    input_cache_write: int = 0
    cache_write_1h: int = 0
    model: str = ""
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as reported by the provider, in the same terms for every provider.

    `input_total` includes cached and cache-written tokens; `output_total` includes reasoning. None is unknown, never 0.
    `cleared` are the tokens that the provider's context editing removed before the model read the prompt (not part of
    `input_total`), `cleared_uses` the number of tool uses they belonged to. If the server made several `passes`, the
    numbers are those of the pass that read the conversation, unknown if it reported only the sum; all passes are
    billed.

    `cache_write_1h` is the part of the cache-written tokens with a lifetime of an hour or longer; `searches` are web
    searches made by the server; `cost` is the billed amount in US dollars. `terms` are further conditions of the price,
    in the provider's words: a service tier, a speed, a region.
    """

    input_total: int | None
    output_total: int | None
    input_cached: int | None = None
    input_cache_write: int | None = None
    reasoning: int | None = None
    source: UsageSource = "provider"
    cleared: int | None = None
    cleared_uses: int | None = None
    cache_write_1h: int | None = None
    searches: int | None = None
    cost: float | None = None
    terms: tuple[str, ...] = ()
    passes: tuple[BilledPass, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the history, or (inside a `Request`) its projected form.

    `id` is time-ordered and unique in the store; a projected message keeps the id of its origin.
    """

    role: Role
    parts: tuple[Part, ...]
    id: str = ""
    kind: MessageKind = "chat"
    status: MessageStatus = "complete"
    created_at: float = 0.0  # seconds since the epoch
    provider: str = ""
    model: str = ""
    finish_reason: str | None = None  # the provider's value
    usage: Usage | None = None
    error: str | None = None  # one line for a person

    @property
    def text(self) -> str:
        """All plain text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class SystemSection:
    """A section of the system prompt listed in `/context`: the prompt, a memory file, a server's instructions."""

    kind: Literal["system", "memory", "instructions"]
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool offered to the model. `parameters` is its JSON schema as canonical JSON text (sorted keys, no spaces)."""

    name: str
    description: str
    parameters: str
    origin: str = BUILT_IN  # or the MCP server's name


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the projection of a session for one provider and model.

    `max_output` is in tokens. `reasoning` is the requested effort (one of `EFFORTS`; None is the provider's default).
    `server_edits`: the provider may clear old tool results by itself. `blobs` maps attachment hashes to bytes and is
    filled only just before sending; it has no part in digests or counts.
    """

    provider: str
    model: str
    messages: tuple[Message, ...]
    system: tuple[SystemSection, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    max_output: int | None = None
    reasoning: str | None = None
    session: str = ""
    server_edits: bool = False
    blobs: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False, hash=False)
