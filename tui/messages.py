"""The ground floor: what a conversation is made of. Frozen values, no behaviour to speak of.

Everything above speaks in these: the store keeps `Message`s, the projection turns them into a `Request`, the
accounting reads the `Request`, a provider turns it into its wire format.
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

EFFORTS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
"""The levels of reasoning that can be asked for. Models take some of them; their provider maps the rest."""


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text of any role. `phase` is OpenAI's label of an answer's text: "commentary" or "final_answer"."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning (thinking) block, with everything its provider needs to take it back unchanged.

    `provider` and `model` name who made it: a block is sent back only to the same pair.
    """

    text: str
    provider: str = ""
    model: str = ""
    signature: str | None = None  # Anthropic `signature`; "" is a signature (llama.cpp sends one), None is none
    redacted: str | None = None  # Anthropic `redacted_thinking.data`
    encrypted: str | None = None  # Responses `encrypted_content`
    item_id: str | None = None  # Responses item id
    details: str | None = None  # OpenRouter `reasoning_details`, as JSON text
    tokens: int | None = None  # tokens, as reported or shared out; None is unknown


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for. `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str
    extra: str | None = None  # provider metadata to echo (Gemini thought_signature, Responses item id), JSON text


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back from a tool call. `full` is the hash (hex) under which the whole text is kept, "" if this is it.

    Images a tool gave back are attachments that follow its result in the message.
    """

    call_id: str
    name: str
    text: str
    is_error: bool = False
    full: str = ""  # never sent


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, a PDF or a text file. Binary content is kept by hash (`sha256`, hex) and never counted by its length.

    `size` is in bytes, `width` and `height` in pixels, `pages` in pages; `text` only for kind "text".
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal, where the provider marks it as one.

    `from_server`: a classifier of the provider stopped the answer, and `text` is its explanation ("" where it gives
    none), which never goes back as the model's words. `category` is the provider's name for the reason.
    """

    text: str
    category: str | None = None
    from_server: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """What an answer cites. Shown numbered under the answer; never sent back. `quote` is the cited text."""

    url: str
    title: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True)
class ProviderItem:
    """A part of an answer that only its provider understands: a server tool's call or result, an image, audio.

    `kind` is the provider's name for it. `data` is the item as JSON where the provider wants it back; "" is never sent.
    """

    kind: str
    provider: str = ""
    data: str = ""


Part: TypeAlias = Text | Reasoning | ToolCall | ToolResult | Attachment | Refusal | Source | ProviderItem


def is_sendable(part: Part) -> bool:
    """Whether a part of a message can go out at all: not blank text, not what only explains an answer to a person."""
    match part:
        case Refusal(from_server=True) | Source() | ProviderItem(data=""):
            return False
        case Text(text) | Refusal(text):
            return bool(text.strip())
        case _:
            return True


@dataclass(frozen=True, slots=True)
class BilledPass:
    """One pass of a call in which the server worked in several, in tokens as in `Usage`. `model` "": the call's own."""

    input_total: int
    output_total: int
    input_cached: int = 0
    input_cache_write: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider reported them, with one reading for every provider.

    `input_total` includes cached and cache-written tokens for every provider; `output_total` includes reasoning.
    None is unknown, never 0. `cleared` are the tokens of the prompt that the provider's context editing took out before
    the model read it (they are not in `input_total`), `cleared_uses` the tool uses they were of. Where the server
    worked in several `passes`, the numbers are those of the pass that read the conversation, unknown where it told only
    the sum; all passes are billed.

    `cache_write_1h` are those of the cache-written tokens that are kept for an hour or longer; `searches` are web
    searches the server made; `cost` is in US dollars, as the provider billed it. `terms` are what else changes the
    price, in the provider's words: a service tier, a speed, a region.
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
    """One message of the history, or (inside a `Request`) the part of it that goes out.

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
    finish_reason: str | None = None  # as the provider wrote it
    usage: Usage | None = None
    error: str | None = None  # one line for a person

    @property
    def text(self) -> str:
        """All plain text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class SystemSection:
    """A piece of the system prompt that has a row of its own in `/context`: the prompt, or one memory file."""

    kind: Literal["system", "memory"]
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool offered to the model. `parameters` is its JSON schema as canonical JSON text (sorted keys, no blanks)."""

    name: str
    description: str
    parameters: str
    origin: str = "built-in"  # "built-in", or the MCP server's name


@dataclass(frozen=True, slots=True)
class Request:
    """What would go out: the projection of a session for one provider and model.

    `max_output` is in tokens. `reasoning` is the wanted effort (one of `EFFORTS`; None is the provider's
    default). `server_edits`: the provider may clear old tool results by itself. `blobs` maps
    attachment hashes to bytes and is filled only just before sending; it has no part in digests or counts.
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
