"""The interface between providers and the rest of the program: requests in, stream events out, classified errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias

from tui.context.usage.limits import ModelLimits
from tui.errors import ExpectedError
from tui.messages import FinishKind, Request, ToolSchema, Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer. `block` is its index among the answer's blocks, if the dialect numbers them.

    Blocks may be open at the same time (llama.cpp's Anthropic dialect): a piece of block 1 may come after block 2
    began.
    """

    text: str
    block: int | None = None


@dataclass(frozen=True, slots=True)
class TextMeta:
    """The phase of text block `block` (see `Text`)."""

    block: int
    phase: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of a refusal; `category` and `from_server` as in `Refusal`."""

    text: str
    category: str | None = None
    from_server: bool = False


@dataclass(frozen=True, slots=True)
class SourceCited:
    """A source cited by the answer."""

    url: str
    title: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True)
class ItemReceived:
    """A block or item that is not text, reasoning, a refusal or a tool call (see `ProviderItem`)."""

    kind: str
    data: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning block `block` (an index that grows within one answer)."""

    text: str
    block: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningMeta:
    """Provider metadata of reasoning block `block`; None leaves an earlier value unchanged.

    A redacted block has no text: its first event is a `ReasoningMeta`.
    """

    block: int = 0
    signature: str | None = None
    redacted: str | None = None
    encrypted: str | None = None
    item_id: str | None = None
    details: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of tool call `index`; `id`, `name` and `extra` come once (or repeatedly with the same value)."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    extra: str | None = None


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """Cumulative usage: each update replaces the one before."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ModelNamed:
    """The model that answers, as the server names it: a dated name, or another one than was asked."""

    model: str


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The provider's end marker. A stream without one was interrupted."""

    kind: FinishKind
    raw: str  # as the provider wrote it


StreamEvent: TypeAlias = (
    TextDelta
    | TextMeta
    | RefusalDelta
    | ReasoningDelta
    | ReasoningMeta
    | ToolCallDelta
    | SourceCited
    | ItemReceived
    | UsageUpdate
    | ModelNamed
    | StreamEnd
)

MAX_NAME = 500
"""Characters of a model's name; a column of the list of models is as wide as the longest."""

ErrorKind: TypeAlias = Literal[
    "overflow_input",  # the input does not fit the window
    "overflow_output",  # input fits, input plus the requested output does not
    "too_many_bytes",  # the request body is too large, in bytes
    "long_context_tier",  # the account may not use the long window (Anthropic 1M tier)
    "rate_limit",
    "overloaded",
    "auth",
    "not_found",
    "signature",  # the signature of a reasoning block is invalid
    "bad_request",
    "network",
    "stalled",  # the server went silent in mid-answer, or takes too long to start
    "server",
    "unknown",  # an error that is not understood
    "protocol",  # the answer violates the protocol
]


@dataclass(eq=False)
class ProviderError(ExpectedError):
    """A failed request, classified. `message` is one line for a person, without secrets.

    `limit`, `input_tokens` and `output_tokens` are tokens named in the server's text, as is `most_output`, the longest
    answer of this model. `most_bytes`: of a request; `most_length`: of one string or file. `retry_after` is in seconds.
    """

    kind: ErrorKind
    message: str
    _: KW_ONLY
    status: int | None = None
    retry_after: float | None = None
    limit: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    most_output: int | None = None
    most_bytes: int | None = None
    most_length: int | None = None

    def __str__(self) -> str:
        return self.message

    @property
    def answer_budget(self) -> int | None:
        """Tokens available for the answer by the server's own numbers.

        With a margin of 1 % of the window for a count it called "at least".
        """
        if self.most_output is not None:
            return self.most_output
        if self.limit is None or self.input_tokens is None:
            return None
        return self.limit - self.input_tokens - max(16, self.limit // 100)


NO_ANSWER = "(no answer)"
"""Sent in place of the answer of a turn that ended with a tool's result (see `Capabilities`)."""

ReasoningReturn: TypeAlias = Literal["never", "tool_loop", "always"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the projection and the accounting must know of a provider and model.

    `reasoning_return`: whether reasoning goes back into the next input: "never", only inside the open "tool_loop"
    (since the last user message), or "always". `needs_signature`: a block without a signature is not sent.
    `prefix_bound`: signatures cover everything before the block, so that removed or edited content voids later blocks.
    `reasoning_needs_tools`: all of this holds only for requests that offer tools; without tools nothing goes back.
    A block's signature is whichever of `signature`, `redacted`, `encrypted` its dialect uses.
    """

    reasoning_return: ReasoningReturn = "never"
    needs_signature: bool = False
    prefix_bound: bool = False
    reasoning_needs_tools: bool = False
    images: bool = True
    pdfs: bool = False
    tools: bool = True
    count_endpoint: bool | None = False  # None if only a request would tell
    edits_context: bool = False  # the provider clears old tool results by itself, and reports it
    count_freely: bool = False  # counting is cheap, so it is used whenever nothing was measured
    bridges: bool = False  # `NO_ANSWER` has to stand between a tool's result and the person's next message
    files_after_results: bool = False  # results are text alone: their files follow, with a line that names the tool


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model offered by a server. Unknown is None.

    `price` is US dollars per million tokens of input and of output; `images`, `pdfs` and `tools`: whether it accepts
    them. `thinking`: the values of Anthropic's `thinking.type` it accepts; `efforts`: those of reasoning.
    """

    id: str
    name: str | None = None
    limits: ModelLimits | None = None
    price: tuple[float, float] | None = None
    images: bool | None = None
    pdfs: bool | None = None
    tools: bool | None = None
    thinking: tuple[str, ...] | None = None
    efforts: tuple[str, ...] | None = None


class Provider(ABC):
    """One endpoint that answers requests. The HTTP library is imported by the methods that need it, never at import.

    `name` is the part before "/" in a model's full name; `dialect` is "openai-chat", "openai-responses", "anthropic"
    or "demo".
    """

    name: str
    dialect: str

    @abstractmethod
    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events. Raises `ProviderError`. Closing the generator cancels the request."""

    @abstractmethod
    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""

    def efforts(self, model: str) -> tuple[str, ...]:
        """The reasoning efforts of `model` (of `EFFORTS`), as far as known."""
        return ()

    def effort_sent(self, model: str, requested: str | None) -> str | None:
        """The effort sent to `model` for `requested`; None sends none."""
        return requested

    def tools_sent(self, model: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, ...]:
        """`tools` as they go out to `model`: the schemas and descriptions that it takes."""
        return tuple(tools)

    def learned(self, model: str) -> tuple[str, ...]:
        """What refusals taught about `model` in this run, one line each for a person."""
        return ()

    def forget(self, model: str) -> None:
        """Forget what was learned about `model`."""
        return

    async def prepare(self) -> None:
        """Load what the first request needs, off the event loop. Raises `ProviderError`."""
        return

    @abstractmethod
    async def models(self) -> list[ModelInfo]:
        """The models offered by the server. Raises `ProviderError`."""

    async def describe(self, model: str) -> ModelInfo:
        """What the running server says of `model`: window, support of tools. Raises `ProviderError`."""
        return ModelInfo(model)

    async def count_tokens(self, request: Request) -> int | None:
        """The server's own count of the input, in tokens; None if it has no such route. Raises `ProviderError`."""
        return None

    async def check_key(self) -> None:
        """Verify the key if the model list is public. Raises `ProviderError`."""
        return

    async def close(self) -> None:
        """Release connections and child processes. Idempotent."""
        return
