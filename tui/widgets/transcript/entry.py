"""An entry of the transcript, and what can be determined without drawing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.messages import Message, Reasoning, Refusal, Text, ToolCall, ToolResult
from tui.render.live import LiveReply
from tui.render.message import HEAD_LINES, Count, folds, is_long
from tui.render.palette import Palette
from tui.render.rows import Row, blank_row, prefixed, text_row
from tui.render.wrap import plain_rows
from tui.text.names import label_of
from tui.text.numbers import SURE, plural, tokens_short

Level: TypeAlias = Literal["info", "warning", "error"]
_REASONS = {"trimmed": "rolling context", "compacted": "compacted"}
_GLYPHS: dict[Level, str] = {"info": "·", "warning": "!", "error": "✗"}


@dataclass(slots=True)
class Entry:
    """A message, a streaming reply, or a notice; `rows` once it was drawn at the present width.

    While a large message is drawn in a thread `job` is set, and `rows` are `before` (its previous rows) or blank.
    """

    message: Message | None = None
    live: LiveReply | None = None
    notice: tuple[Level, str] | None = None
    open: AbstractSet[int] = frozenset()
    thought: float | None = None
    rows: list[Row] | None = None
    before: list[Row] | None = None
    job: object = None


def foldable(entry: Entry) -> set[int]:
    """The parts of an entry that fold."""
    if entry.live is not None:
        return {number for number, part in enumerate(entry.live.parts) if part.kind == "reasoning"}
    message = entry.message
    if message is None:
        return set()
    return {number for number, part in enumerate(message.parts) if folds(message, part)}


def estimate(entry: Entry, width: int) -> int:
    """The probable number of rows; used only when scrolling far through messages that were never drawn."""
    message = entry.message
    if message is None:
        return 2
    rows = 0 if message.role == "tool" else 2
    for index, part in enumerate(message.parts):
        if not isinstance(part, Text):
            rows += 1 if isinstance(part, Reasoning | ToolResult) else 0
            continue
        lines, length = part.text.count("\n"), len(part.text)
        if message.role == "user" and index not in entry.open and is_long(part.text):
            rows += HEAD_LINES + 1
        else:
            rows += 1 + lines + max(0, length - lines * width // 2) // max(1, width)
    return max(1, rows)


def entry_label(entries: Sequence[Entry], index: int) -> str:
    """The label of an entry, or "" if the same model goes on after a tool call."""
    message = entries[index].message
    if message is None:
        return ""
    label = label_of(message)
    if message.role != "assistant" or message.kind != "chat":
        return label
    after_tool = False
    for number in range(index - 1, -1, -1):
        before = entries[number].message
        if before is None:
            continue
        if before.role == "tool":
            after_tool = True
            continue
        same = before.role == "assistant" and before.kind == "chat" and before.model == message.model
        return "" if after_tool and same else label
    return label


def drawn_size(entry: Entry) -> int:
    """Characters of a message that have to be laid out: all but the folded ones."""
    if entry.live is not None:
        return sum(
            part.size for number, part in enumerate(entry.live.parts) if part.kind == "text" or number in entry.open
        )
    message = entry.message
    size = 0
    for index, part in enumerate(message.parts if message else ()):
        if message is None or (index not in entry.open and folds(message, part)):
            continue
        match part:
            case Text(text) | Reasoning(text) | Refusal(text) | ToolResult(text=text) | ToolCall(arguments=text):
                size += len(text)
    return size


def waiting_rows(height: int, palette: Palette) -> list[Row]:
    """Placeholder rows of a large message until it is drawn."""
    line = text_row("drawing …", palette.muted)
    return [blank_row(), line, *[blank_row()] * max(0, height - 3), line][: max(2, height)]


def notice_rows(level: Level, text: str, follows: bool, width: int, palette: Palette) -> list[Row]:
    """The rows of a notice; if it `follows` another one no blank line separates them."""
    style = {"info": palette.info, "warning": palette.warning, "error": palette.error}[level]
    mark, rest = text_row(f"{_GLYPHS[level]} ", style).segments, text_row("  ", style).segments
    rows = prefixed(plain_rows(text, style, width - 2), mark, rest)
    return rows if follows else [blank_row(), *rows]


def find_dividers(entries: Sequence[Entry], not_sent: Mapping[str, str], counts: Mapping[str, Count]) -> dict[int, str]:
    """Lines that end runs of messages that are not sent, by the index of the last entry of each.

    A run of tool results only gets none: they are marked on their own lines.
    """
    dividers: dict[int, str] = {}
    run: list[Message] = []
    reason, last = "", -1

    def end() -> None:
        if reason in _REASONS and any(message.role != "tool" for message in run):
            dividers[last] = _divider([counts.get(message.id) for message in run], reason)

    for index, entry in enumerate(entries if not_sent else ()):
        if entry.message is None:
            continue
        entry_reason = not_sent.get(entry.message.id, "")
        if entry_reason != reason:
            end()
            run, reason = [], entry_reason
        run.append(entry.message)
        last = index
    end()
    return dividers


def _divider(counts: Sequence[Count | None], reason: str) -> str:
    text = f"not sent any more: {plural(len(counts), 'message')}"
    counted = [count for count in counts if count is not None]
    tokens = [count[0] for count in counted if count[0] is not None]
    if tokens and len(tokens) == len(counts):
        mark = "" if all(count[1] in SURE for count in counted) else "~"
        text += f", {mark}{tokens_short(sum(tokens))} tokens"
    return f"{text} ({_REASONS[reason]})"
