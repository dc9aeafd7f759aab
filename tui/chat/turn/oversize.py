"""What goes out shorter, or not at all, once a server refused a request for its size in bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tui.chat.conversation.history import text_digest
from tui.messages import Attachment, Message, Part, Reasoning, Refusal, Request, Text, ToolCall, ToolResult
from tui.providers.base import ProviderError
from tui.text.numbers import size_text

BELOW_LIMIT = 0.9  # of a limit that the server named: JSON's escapes and the other fields take the rest
UNNAMED_LIMIT = 0.5  # of the refused request, where it named none
STANDS_OUT = 1 / 8  # of the request: text below that is left to trimming and compaction
KEPT_TEXT = 8_000  # characters that remain of a text that stands out, half of them its beginning


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


def pieces_to_shorten(request: Request, error: ProviderError) -> tuple[Piece, ...]:
    """The fewest pieces that bring `request` under the limit that `error` tells of; () where none stands out.

    Attachments are left out whole, texts keep their beginning and end. What the person asked just now stays as it is.
    """
    pieces = sorted(_pieces(request), key=lambda piece: piece.size, reverse=True)
    if error.most_length is not None:  # of one string
        keep = int(error.most_length * BELOW_LIMIT)
        return tuple(_shortened(piece, keep) for piece in pieces if piece.size > error.most_length)
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
    texts = sum(_length(section.text) for section in request.system)
    tools = sum(_length(tool.description) + len(tool.parameters) for tool in request.tools)
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


def _shortened(piece: Piece, keep: int) -> Piece:
    return Piece(piece.message, piece.digest, piece.name, piece.size, keep if piece.keep else 0)


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
            return _length(text)
        case Attachment(size=size):
            return (size + 2) // 3 * 4  # base64
        case ToolCall(arguments=arguments, extra=extra):
            return _length(arguments) + len(extra or "")
        case Reasoning():
            opaque = (part.signature, part.redacted, part.encrypted, part.details)
            return _length(part.text) + sum(len(text or "") for text in opaque)
        case _:
            return 0


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
