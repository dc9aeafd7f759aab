"""The part of a conversation that a summary replaces, as text in pieces that fit a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tui.messages import Attachment, Message, Reasoning, Refusal, Text, ToolCall, ToolResult

MOST_CHUNKS = 64  # limits time and cost: beyond it the middles of the longest results are left out
OVERLAP = 120  # characters repeated after a cut inside a line, so that no name or path is split
LEAST_PIECE = 200  # minimal tokens of a shortened result
LABEL_TOKENS = 12  # tokens for the heading of a piece


@dataclass(frozen=True, slots=True)
class Piece:
    """A labelled text. `long_tail`: tool output, arguments or thinking, whose middle may be left out."""

    label: str
    text: str
    long_tail: bool = False

    def render(self) -> str:
        """The text as it is written in the summary request."""
        return f"[{self.label}]\n{self.text}\n"


def render_pieces(source: Iterable[Message]) -> list[Piece]:
    """Everything in `source` that a model could have read, in order; binary attachments by name only."""
    pieces: list[Piece] = []
    for message in source:
        for part in message.parts:
            match part:
                case Refusal(from_server=True):
                    pass  # the provider's text, not the model's
                case Text(text) | Refusal(text):
                    pieces.append(Piece("earlier summary" if message.kind == "summary" else message.role, text))
                case Reasoning(text=text):
                    pieces.append(Piece("assistant, thinking", text, long_tail=True))
                case ToolCall(name=name, arguments=arguments):
                    pieces.append(Piece(f"assistant calls {name}", arguments, long_tail=True))
                case ToolResult(name=name, text=text, is_error=failed):
                    pieces.append(Piece(f"{'error' if failed else 'result'} of {name}", text, long_tail=True))
                case Attachment(kind="text", name=name, text=text):
                    pieces.append(Piece(f"{message.role} attached {name}", text, long_tail=True))
                case Attachment(kind=kind, name=name):
                    pieces.append(Piece(f"{message.role} attached", f"{kind} {name} (not shown here)"))
    return [piece for piece in pieces if piece.text.strip()]


def split_source(source: Iterable[Message], capacity: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """`source` as texts of at most `capacity` tokens each (by `count`), in order, with nothing left out.

    Only if that took more than `MOST_CHUNKS`, the middles of the longest tool outputs, arguments and thinking are left
    out, as much as needed; messages of people and models are never shortened.
    """
    sized = [(piece, count(piece.text) + LABEL_TOKENS) for piece in render_pieces(source)]
    if sum(size for _, size in sized) > MOST_CHUNKS * capacity:
        sized = _shortened(sized, MOST_CHUNKS * capacity, count)
    chunks: list[str] = []
    current: list[str] = []
    used = 0
    for piece, size in sized:
        for part, tokens in _parts(piece, size, capacity, count):
            if current and used + tokens > capacity:
                chunks.append("\n".join(current))
                current, used = [], 0
            current.append(part.render())
            used += tokens
    if current:
        chunks.append("\n".join(current))
    return tuple(chunks)


def _parts(piece: Piece, size: int, capacity: int, count: Callable[[str], int]) -> list[tuple[Piece, int]]:
    if size <= capacity:
        return [(piece, size)]
    texts = split_text(piece.text, max(1, capacity - LABEL_TOKENS), count)
    return [
        (replace(piece, label=f"{piece.label}, part {number} of {len(texts)}", text=text), count(text) + LABEL_TOKENS)
        for number, text in enumerate(texts, 1)
    ]


def split_text(text: str, capacity: int, count: Callable[[str], int]) -> list[str]:
    """`text` in parts of at most `capacity` tokens, cut at line ends if possible, else at blanks.

    A cut inside a line repeats its last characters in the next part.
    """
    size = count(text)
    if size <= capacity or len(text) < 2:
        return [text]
    step = min(len(text) - 1, max(1, int(len(text) * capacity / size * 0.95)))  # 5 %: tokens are not spread evenly
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = _end(text, start, step)
        parts += split_text(text[start:end], capacity, count)
        torn = end < len(text) and text[end - 1] != "\n" and step > 8 * OVERLAP
        start = end - OVERLAP if torn else end
    return parts


def _end(text: str, start: int, step: int) -> int:
    """The end of the part that begins at `start`: at most `step` characters on, at a line end or blank if possible."""
    most = start + step
    if most >= len(text):
        return len(text)
    for mark in ("\n", " "):
        at = text.rfind(mark, start + step // 2, most)
        if at >= 0:
            return at + 1
    return most


def _shortened(sized: Sequence[tuple[Piece, int]], tokens: int, count: Callable[[str], int]) -> list[tuple[Piece, int]]:
    """The same pieces with the longest outputs shortened to a total of `tokens`."""
    fixed = sum(size for piece, size in sized if not piece.long_tail)
    sizes = sorted(size for piece, size in sized if piece.long_tail)
    rest, cap = tokens - fixed, LEAST_PIECE
    for index, size in enumerate(sizes):
        if size * (len(sizes) - index) > rest:
            cap = max(LEAST_PIECE, rest // (len(sizes) - index))
            break
        rest -= size
    result = []
    for piece, size in sized:
        if piece.long_tail and size > cap:
            keep = max(2, int(len(piece.text) * cap / size) - 60)
            left_out = len(piece.text) - keep
            text = (
                f"{piece.text[: keep // 2]}\n[... {left_out:,} characters left out ...]\n{piece.text[-(keep // 2) :]}"
            )
            result.append((replace(piece, text=text), count(text) + LABEL_TOKENS))
        else:
            result.append((piece, size))
    return result
