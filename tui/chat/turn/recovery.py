"""What to do after a failed request: wait, shorten the answer, trim or compact, leave something out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Literal, TypeAlias

from tui.context.counting.digests import text_digest
from tui.context.estimate.ledger import utf8_size
from tui.messages import Attachment, Message, Part, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from tui.providers.base import ErrorKind, ProviderError
from tui.providers.http.refusals import refused
from tui.text.numbers import duration, size_text

# How often a request is repeated, by what failed. An unreachable server seldom comes back within seconds, and repeating
# a request rarely helps against an error that is not understood.
MAX_WAITS: Mapping[ErrorKind, int] = {"rate_limit": 5, "overloaded": 5, "server": 5, "network": 2, "unknown": 2}
FIRST_WAIT = 2.0  # seconds, doubled each time; a server's own value takes precedence
MAX_WAIT_SECONDS = 60.0  # seconds; if a server asks for more the person decides
MIN_ANSWER = 64  # tokens; a shorter answer is useless
SHORT_ANSWER = 1_000  # tokens, to which almost any window has room beside a short conversation
MAX_SHORTENED = 4  # times that a request is made smaller in bytes, at least by half where the limit is not known

BELOW_LIMIT = 0.9  # of a limit that the server named: JSON's escapes and the other fields take the rest
UNNAMED_LIMIT = 0.5  # of the refused request, where it named none
STANDS_OUT = 1 / 8  # of the request: text below that is left to trimming and compaction
KEPT_TEXT = 8_000  # characters that remain of a text that stands out, half of them its beginning


@dataclass(frozen=True, slots=True)
class Wait:
    """Repeat the request after `seconds` seconds."""

    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Clamp:
    """Repeat it with an answer of at most `max_output` tokens."""

    max_output: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """The input did not fit: learn the limit if one was named, trim or compact, repeat.

    `share`: down to this share of its tokens, where it was too large in bytes.
    """

    share: float | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message of the request: `size` in bytes as it is sent, `keep` the characters that still go out.

    `digest` names it in the message: of an attachment's bytes, or of the text.
    """

    message: str
    digest: str
    name: str  # for a person
    size: int
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Shorten:
    """Repeat it without these attachments, or with less of these texts, because of `why`."""

    pieces: tuple[Piece, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Without:
    """Repeat it without what the server refused.

    Reasoning: that of the messages so far. Tools: this model is offered none from now on. Images: text is sent in their
    place in this run.
    """

    content: Literal["reasoning", "tools", "images"]


Action: TypeAlias = Wait | Clamp | Reduce | Shorten | Without


@dataclass(slots=True)
class Recovery:
    """The state of one turn: every remedy is tried once, waiting a few times."""

    tried: set[object] = field(default_factory=set)
    waits: int = 0
    shortened: int = 0

    def decide(
        self, error: ProviderError, request: Request, *, arrived: bool, tokens: int | None = None
    ) -> Action | None:
        """The action after `request`, with an input of at most `tokens`, failed with `error`; None: report the error.

        Once something `arrived`, the person decides on a retry.
        """
        if arrived:
            return None
        match refused(error):
            case "tools" | "images" as what:
                return self._once(Without(what))
            case "file":
                return self._without_newest(request)
        match error.kind:
            case "overflow_output":
                most = error.answer_budget or (SHORT_ANSWER if error.limit is None else 0)
                if MIN_ANSWER <= most < (request.max_output or inf) and (clamp := self._once(Clamp(most))):
                    return clamp
                # A count that was only "at least" may leave fewer tokens than it said; a model's longest answer, or
                # what an account's credit pays for, is unrelated to the conversation's size.
                return None if error.limit is None else self._once(Reduce())
            case "overflow_input" | "long_context_tier":
                shorter = None if tokens is None else shorter_answer(error, request, tokens)
                return (self._once(Clamp(shorter)) if shorter else None) or self._once(Reduce())
            case "signature":
                return self._once(Without("reasoning"))
            case "too_many_bytes":
                return self._smaller(request, error)
            case _:
                return self._wait(error)

    def _without_newest(self, request: Request) -> Action | None:
        """Without the newest picture or PDF, which must be the one that is new to the server."""
        pieces = [
            Piece(message.id, part.sha256, part.name, part.size)
            for message in request.messages
            for part in message.parts
            if isinstance(part, Attachment) and part.kind != "text"
        ]
        return self._once(Shorten((pieces[-1],), "The server cannot read it")) if pieces else None

    def _smaller(self, request: Request, error: ProviderError) -> Action | None:
        """With fewer bytes: what stands out goes first, then the conversation is trimmed or compacted."""
        if self.shortened >= MAX_SHORTENED:
            return None
        self.shortened += 1
        if pieces := pieces_to_shorten(request, error):
            return Shorten(pieces, "The request has too many bytes")
        if error.most_length is not None:
            return None
        total = request_bytes(request)
        return Reduce(goal(total, error) / max(1, total))

    def _once(self, action: Action) -> Action | None:
        kind = action if isinstance(action, Without) else type(action)
        if kind in self.tried:
            return None
        self.tried.add(kind)
        return action

    def _wait(self, error: ProviderError) -> Action | None:
        seconds = error.retry_after if error.retry_after is not None else FIRST_WAIT * 2**self.waits
        if self.waits >= MAX_WAITS.get(error.kind, 0) or seconds > MAX_WAIT_SECONDS:
            return None
        self.waits += 1
        return Wait(seconds, self.waits)


def shorter_answer(error: ProviderError, request: Request, tokens: int) -> int | None:
    """The longest answer to ask for, where the one asked for may be what does not fit; None if it is the input.

    Many servers add both up, and say only that the sum is too long. `tokens` is the most that the input may have.
    """
    asked = request.max_output or 0
    if error.input_tokens is not None or (error.limit is None and tokens >= asked):
        return None
    room = SHORT_ANSWER if error.limit is None else min(error.limit // 4, error.limit - tokens)
    return room if MIN_ANSWER <= room < asked else None


def failure_text(error: ProviderError, request: Request | None = None) -> str:
    """The text for a failure without a remedy: why, what is kept, what to do next.

    `request` is what was refused, where that is known.
    """
    names_the_step = error.kind != "auth" or "/provider" in str(error)
    step = "/retry asks again" if names_the_step else "/provider tries the key, /retry asks again"
    if error.retry_after is not None and error.retry_after > MAX_WAIT_SECONDS:
        step += f"; the server wants {duration(60 * ceil(error.retry_after / 60))}"
    text = str(error).rstrip(".")
    if error.kind == "too_many_bytes" and request is not None:
        text += f". {advice(request)}"
    return f"{text}. Your message is kept; {step}."


def same_cause(first: ProviderError, second: ProviderError) -> bool:
    """Whether two requests were refused for the same reason, so that what was changed between them did not help."""
    return (first.kind, refused(first)) == (second.kind, refused(second))


# -- requests that are too large in bytes ------------------------------------------------------------------------------


def pieces_to_shorten(request: Request, error: ProviderError) -> tuple[Piece, ...]:
    """The fewest pieces that bring `request` under the limit that `error` tells of; () where none stands out.

    Attachments are left out whole, texts keep their beginning and end. What the person asked just now stays as it is.
    """
    pieces = sorted(_pieces(request), key=lambda piece: piece.size, reverse=True)
    if error.most_length is not None:  # of one string
        keep = int(error.most_length * BELOW_LIMIT)
        return tuple(
            replace(piece, keep=keep if piece.keep else 0) for piece in pieces if piece.size > error.most_length
        )
    total = request_bytes(request)
    excess = total - goal(total, error)
    chosen: list[Piece] = []
    for piece in pieces:
        if excess <= 0:
            break
        if piece.keep == 0 or piece.size > STANDS_OUT * total:
            chosen.append(piece)
            excess -= piece.size - piece.keep
    return tuple(chosen)


def goal(total: int, error: ProviderError) -> int:
    """The bytes to bring a request of `total` bytes down to."""
    named = int(error.most_bytes * BELOW_LIMIT) if error.most_bytes else total
    return named if named < total else int(total * UNNAMED_LIMIT)


def request_bytes(request: Request) -> int:
    """About the bytes of the request's body."""
    texts = sum(utf8_size(section.text) for section in request.system)
    tools = sum(utf8_size(tool.description) + len(tool.parameters) for tool in request.tools)
    return texts + tools + sum(_size(part) for message in request.messages for part in message.parts)


def listed(pieces: Iterable[Piece]) -> str:
    """`pieces` for a person, the largest first, and what happens to them."""
    names = [f"{piece.name} ({size_text(piece.size)})" for piece in pieces]
    verb = "is" if len(names) == 1 else "are"
    fate = "shortened in the request" if any(piece.keep for piece in pieces) else "left out of the request"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} {verb} {fate}"


def advice(request: Request) -> str:
    """What a person can do about a request that is too large in bytes, by what is largest in it."""
    sizes = [(_size(part), message, part) for message in request.messages for part in message.parts]
    size, message, part = max(sizes, key=lambda item: item[0], default=(0, None, None))
    if message is None or size <= STANDS_OUT * request_bytes(request):
        return "The conversation is too large for this server in bytes: /compact shortens it"
    problem = f"The largest part of the request is {_name(message, part)} ({size_text(size)})"
    if isinstance(part, Text) and message is request.messages[-1]:
        return f"{problem}: shorten it, or send it in several messages"
    return f"{problem}: leave its message out in /context"


def _pieces(request: Request) -> Iterator[Piece]:
    question = next((m.id for m in reversed(request.messages) if m.role == "user" and m.kind == "chat"), "")
    for message in request.messages:
        for part in message.parts:
            size = _size(part)
            match part:
                case Attachment():
                    yield Piece(message.id, part.sha256, part.name, size)
                case ToolCall(arguments=text) | ToolResult(text=text) | Text(text):
                    if len(text) > KEPT_TEXT and not (isinstance(part, Text) and message.id == question):
                        yield Piece(message.id, text_digest(text), _name(message, part), size, KEPT_TEXT)


def _name(message: Message, part: Part | None) -> str:
    match part:
        case Attachment(name=name):
            return name
        case ToolCall(name=name):
            return f"the arguments of {name}"
        case ToolResult(name=name):
            return f"the result of {name}"
        case _:
            return "your message" if message.role == "user" else "an answer"


def _size(part: Part) -> int:
    match part:
        case Attachment(kind="text", text=text) | Text(text) | ToolResult(text=text) | Refusal(text):
            return utf8_size(text)
        case Attachment(size=size):
            return (size + 2) // 3 * 4  # base64
        case ToolCall(arguments=arguments, extra=extra):
            return utf8_size(arguments) + len(extra or "")
        case Reasoning():
            opaque = (part.signature, part.redacted, part.encrypted, part.details)
            return utf8_size(part.text) + sum(len(text or "") for text in opaque)
        case _:
            return 0
