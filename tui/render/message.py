"""Messages as rows: stored ones with long and secondary parts folded to one line, and a reply that is arriving."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tui.messages import Attachment, Message, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall, ToolResult
from tui.render.palette import Palette, dimmed
from tui.render.rows import Row, blank_row, plain_rows, prefixed, text_row
from tui.text.cells import clip
from tui.text.clean import clean_line, clean_output, clean_text
from tui.text.labels import arguments_summary, sources_markdown, sources_of, status_text
from tui.text.numbers import duration, plural, size_text, tokens_labelled, tokens_short

if TYPE_CHECKING:
    from tui.render.stream import StreamRenderer


FOLDED, UNFOLDED = "▸ ", "▾ "
PASTE_LINES, PASTE_CHARS = 16, 2_000
"""A person's text longer than this is folded after its beginning."""
MIN_NAME = 14
"""Minimal cells of the name on a folded line."""
HEAD_LINES, HEAD_CHARS = 6, 600
"""How much of a long text stays visible."""

_SET_ASIDE = {"excluded": "left out", "set aside": "set aside"}  # messages that are not sent, without a divider
_SUFFIX = re.compile(r"\.(\w{1,8})$")

Count = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class MessageView:
    """Everything that a message's rows depend on besides the message.

    `label` "" continues the message above. `open` has the indexes of unfolded parts, `answered` those of calls
    whose results another message has; `calls` are the calls that the results of a tool message answer, by their index.
    """

    label: str = ""
    count: Count | None = None
    open: Set[int] = frozenset()
    calls: Mapping[int, ToolCall] = field(default_factory=dict)
    answered: Set[int] = frozenset()
    not_sent: str = ""
    thought: float | None = None  # seconds
    divider: str = ""
    when: str = ""


NO_VIEW = MessageView()


def folds(message: Message, part: Part) -> bool:
    """Whether a part is shown as one line (or only its beginning) until it is unfolded."""
    match part:
        case Text(text) if message.kind == "chat":
            return message.role == "user" and is_long(text)
        case Text() | Reasoning() | ToolCall() | ToolResult():
            return True
        case _:
            return False


def is_long(text: str) -> bool:
    """Whether a person's text is folded after its beginning."""
    return len(text) > PASTE_CHARS or text.count("\n") >= PASTE_LINES


def message_rows(message: Message, width: int, palette: Palette, view: MessageView = NO_VIEW) -> list[Row]:
    """All rows of a message, including the blank line above it."""
    colours = dimmed(palette) if view.not_sent else palette
    rows = head_rows(message.role, width, colours, view)
    for index, part in enumerate(message.parts):
        body = part_rows(message, index, part, width, colours, view)
        if not body:
            continue
        if needs_blank_line(message.parts[index - 1] if index else None, part):
            rows.append(blank_row())
        for row in body:
            row.part = index
        rows += body
    if (ending := status_text(message)) is not None:
        style = palette.error if message.status == "failed" else palette.muted
        mark, rest = (Segment(ending[:2], style),), (Segment("  ", style),)
        rows += prefixed(plain_rows(ending[2:], style, width - 2), mark, rest)
    if view.divider:
        rows += [blank_row(), divider_row(view.divider, width, palette)]
    return rows


def head_rows(role: str, width: int, palette: Palette, view: MessageView) -> list[Row]:
    """The blank line above a message and its label with the tokens; without a label the blank line has the tokens."""
    if role == "tool":
        return []
    notes = [_SET_ASIDE.get(view.not_sent, ""), view.when, tokens_labelled(view.count)]
    tokens = " · ".join(filter(None, notes))
    style = palette.you if role == "user" else palette.model
    if view.label in ("summary", "context"):
        style = palette.muted
    label = clip(view.label, width)
    gap = width - cell_len(label) - cell_len(tokens)
    segments = [Segment(label, style)] if label else []
    if tokens and gap > 0:
        segments += [Segment(" " * gap, palette.base), Segment(tokens, palette.muted)]
    line = Row(tuple(segments), 0, 0)
    return [blank_row(), line] if label else [line]


def needs_blank_line(before: Part | None, part: Part) -> bool:
    """Whether a blank line separates two parts: text from folded lines, but not folded lines from each other."""
    if before is None or isinstance(part, ToolCall | Attachment):
        return False
    return isinstance(before, Text | Refusal) or isinstance(part, Text | Refusal)


def copy_text(message: Message) -> str:
    """The text for copying a message: its Markdown source; for a tool message the tools' output."""
    texts = [part.text for part in message.parts if isinstance(part, Text | Refusal | ToolResult)]
    return "\n\n".join([text for text in texts if text])


def part_text(part: Part) -> str:
    """All text of a part: what a search covers, and what has to be laid out."""
    match part:
        case Text(text) | Refusal(text) | Reasoning(text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResult(text=text):
            return text
        case Attachment(name=name) | ProviderItem(kind=name):
            return name
        case Source(url, title):
            return f"{title} {url}"


def attachment_text(part: Attachment) -> str:
    """An attached file: its name, kind and size."""
    details = {
        "image": f"{part.width}×{part.height}" if part.width and part.height else "image",
        "pdf": plural(part.pages, "page") if part.pages else "PDF, ? pages",
        "text": "text",
    }[part.kind]
    return f"@ {clean_line(part.name)} · {details} · {size_text(part.size)}"


def part_rows(message: Message, index: int, part: Part, width: int, palette: Palette, view: MessageView) -> list[Row]:
    """The rows of one part."""
    opened = index in view.open
    match part:
        case Text(text) if message.kind != "chat":
            words = "summary of the earlier conversation" if message.kind == "summary" else "added to the request"
            line = fold_row([words, tokens_labelled(view.count)], opened, width, palette.muted)
            return [line, *(indented(_markdown_rows(text, width - 2, palette), palette) if opened else [])]
        case Text(text) if message.role == "user":
            return _typed_rows(text, width, palette, opened)
        case Text(text):
            return _markdown_rows(text.strip("\n"), width, palette)
        case Reasoning():
            return _reasoning_rows(part, width, palette, view, opened)
        case ToolCall() if index in view.answered:
            return []
        case ToolCall(name=name, arguments=arguments):
            line = fold_row([f"{clean_line(name)} {arguments_summary(arguments)}"], opened, width, palette.muted)
            return [line, *(_arguments_rows(arguments, width, palette) if opened else [])]
        case ToolResult():
            return _result_rows(message, index, part, width, palette, view)
        case Attachment():
            return [text_row(clip(attachment_text(part), width), palette.muted)]
        case Refusal(text, from_server=True):
            return plain_rows(f"the provider says: {clean_text(text)}", palette.warning, width) if text else []
        case Refusal(text):
            return plain_rows(f"refused: {clean_text(text)}", palette.warning, width)
        case Source():
            sources = sources_of(message)
            return _markdown_rows(sources_markdown(sources), width, palette) if part is sources[0] else []
        case ProviderItem(kind):
            return [text_row(clip(f"{clean_line(kind)} · cannot be shown here", width), palette.muted)]


def _markdown_rows(source: str, width: int, palette: Palette) -> list[Row]:
    from tui.render.markdown import markdown_rows  # not before the first frame

    return markdown_rows(source, width, palette)


def fold_row(pieces: list[str], opened: bool, width: int, style: Style) -> Row:
    """The line of a folded part: its pieces joined by middle dots, the first cut if needed."""
    first, *others = [f"{' · ' if number else ''}{piece}" for number, piece in enumerate(filter(None, pieces))]
    while len(others) > 1 and width - 2 - cell_len("".join(others)) < MIN_NAME:
        others.pop()  # too narrow for everything: drop the size first
    tail = "".join(others)
    first = clip(first, max(MIN_NAME, width - 2 - cell_len(tail)))
    row = text_row(f"{UNFOLDED if opened else FOLDED}{clip(first + tail, width - 2)}", style)
    row.fold = True
    return row


def indented(rows: list[Row], palette: Palette) -> list[Row]:
    """`rows` under a fold line."""
    bar = (Segment("│ ", palette.faint),)
    return prefixed(rows, bar, bar)


def _typed_rows(text: str, width: int, palette: Palette, opened: bool) -> list[Row]:
    text = text.strip("\n")
    if not is_long(text):
        return plain_rows(clean_text(text), palette.base, width)
    head = "\n".join(text[:HEAD_CHARS].split("\n")[:HEAD_LINES])
    rest = text[len(head) :].removeprefix("\n")  # perhaps megabytes: cleaned only if it is shown
    lines = rest.count("\n") + 1
    amount = plural(lines, "more line") if lines > 1 else ""
    rows = plain_rows(clean_text(head), palette.base, width)
    rows.append(fold_row([amount, f"{tokens_short(len(rest))} characters"], opened, width, palette.muted))
    return rows + (plain_rows(clean_text(rest), palette.base, width) if opened else [])


def _reasoning_rows(part: Reasoning, width: int, palette: Palette, view: MessageView, opened: bool) -> list[Row]:
    words = "thought" if view.thought is None else f"thought for {duration(view.thought)}"
    if not part.text:
        words = f"{words}, kept private by the provider" if part.redacted or part.encrypted else words
    line = fold_row([words, tokens_labelled((part.tokens, "measured"))], opened, width, palette.muted)
    if not opened or not part.text:
        return [line]
    return [line, *indented(_markdown_rows(part.text, width - 2, dimmed(palette)), palette)]


def _arguments_rows(arguments: str, width: int, palette: Palette) -> list[Row]:
    from tui.render.code import code_rows

    return indented(code_rows(clean_text(arguments), "json", width - 2, palette), palette)


def _result_rows(
    message: Message, index: int, part: ToolResult, width: int, palette: Palette, view: MessageView
) -> list[Row]:
    call, opened = view.calls.get(index), index in view.open
    name = clean_line(part.name or (call.name if call else "") or "tool")
    about = arguments_summary(call.arguments) if call else ""
    single = sum(isinstance(other, ToolResult) for other in message.parts) == 1
    tokens = tokens_labelled(view.count) if single else ""
    text = clean_output(part.text).strip("\n")
    if part.is_error:
        style, amount = palette.error, f"failed: {clean_line(text[:200])}" if text else "failed"
    else:
        style, amount = palette.muted, plural(text.count("\n") + 1, "line") if text else "no output"
    note = "not sent any more" if view.not_sent else "cut: o opens all of it" if part.full else ""
    line = fold_row([f"{name} {about}".strip(), amount, tokens, note], opened, width, style)
    if not opened:
        return [line]
    rows = _arguments_rows(call.arguments, width, palette) if call and len(call.arguments) > len(about) + 16 else []
    from tui.render.code import code_rows, find_lexer

    suffix = _SUFFIX.search(about)
    language = suffix.group(1) if suffix and not part.is_error and find_lexer(suffix.group(1)) else ""
    return [line, *rows, *indented(code_rows(text or "(no output)", language, width - 2, palette), palette)]


def divider_row(text: str, width: int, palette: Palette) -> Row:
    """`┄┄┄ text ┄┄┄`, shortened if it does not fit."""
    if cell_len(text) + 8 > width:
        text = text.split(" (")[0]
    text = clip(text, max(1, width - 4))
    left = min(3, max(1, (width - cell_len(text) - 2) // 2))
    dots = "┄" * left
    return Row(
        (Segment(f"{dots} ", palette.faint), Segment(text, palette.muted), Segment(f" {dots}", palette.faint)), 0, 0
    )


DeltaKind: TypeAlias = Literal["text", "reasoning", "refusal", "tool_call"]


@dataclass(slots=True)
class LivePart:
    """A part of the reply so far. `started` and `ended` are clock readings in seconds."""

    kind: DeltaKind
    name: str
    started: float
    chunks: list[str] = field(default_factory=list)
    ended: float | None = None

    @property
    def size(self) -> int:
        """The number of characters so far."""
        return sum(map(len, self.chunks))


def warm_up() -> None:
    """Import what draws a reply (the parser, the usual lexers), in a thread, so that no reply waits for it."""
    import tui.render.stream  # noqa: F401
    from tui.render.code import find_lexer
    from tui.render.markdown import parser

    parser()
    for language in ("python", "bash", "json"):
        if (lexer := find_lexer(language)) is not None:
            list(lexer.get_tokens("x = 1\n"))


class LiveReply:
    """Collects deltas and draws them. `rows[:stable]` never change again at this width and in these colours."""

    _width: int  # these are set by `draw`
    _palette: Palette
    _view: MessageView

    def __init__(self) -> None:
        self.parts: list[LivePart] = []
        self.rows: list[Row] = []
        self.stable = 0
        self.stale = False  # whether later text invalidated stable rows; `draw` corrects them
        self._stream: StreamRenderer | None = None
        self._drawn = 0  # parts whose drawing has begun
        self._fed = 0  # chunks of the last one passed to the stream
        self._summary = -1  # row of the unfolded reasoning's summary line

    def undrawn_copy(self) -> LiveReply:
        """The same reply, to be drawn for another width, palette or view. Deltas fed to either reach both."""
        other = LiveReply()
        other.parts = self.parts
        return other

    def feed(self, kind: DeltaKind, text: str, name: str, now: float) -> None:
        """Add a delta; the cost is independent of earlier ones. `now` is a clock reading in seconds."""
        last = self.parts[-1] if self.parts else None
        if last is None or last.kind != kind or (kind == "tool_call" and name and last.chunks):
            if last is not None:
                last.ended = now
            last = LivePart(kind, name, now)
            self.parts.append(last)
        last.name = last.name or name
        last.chunks += [text] if text else []

    def thought(self) -> float | None:
        """Seconds spent on reasoning that has ended; None if there was none."""
        times = [part.ended - part.started for part in self.parts if part.kind == "reasoning" and part.ended]
        return sum(times) if times else None

    @property
    def backlog(self) -> int:
        """Characters that the next `update` will draw."""
        size = 0
        for index in range(max(0, self._drawn - 1), len(self.parts)):
            if self.parts[index].kind == "text" or index in self._view.open:
                size += sum(map(len, self.parts[index].chunks[self._fed if index < self._drawn else 0 :]))
        return size

    def draw(self, width: int, palette: Palette, view: MessageView, now: float) -> None:
        """Draw everything from the start: the first time, after a change of width, colours or folds, and if `stale`."""
        self._width, self._palette, self._view = width, palette, view
        self._stream, self._drawn, self._fed, self._summary = None, 0, 0, -1
        self.rows = head_rows("assistant", width, palette, view)
        self.stable = len(self.rows)
        self.stale = False
        self.update(now)

    def update(self, now: float) -> int:
        """Draw what arrived since; returns the index of the first row that may differ."""
        changed = self.stable
        del self.rows[changed:]
        if not self.parts:
            self.rows.append(text_row("…", self._palette.muted))
            return changed
        last = len(self.parts) - 1  # a snapshot: in a thread, more may arrive meanwhile
        for index in range(max(0, self._drawn - 1), last + 1):
            if index >= self._drawn:
                self._begin(index)
            part, start = self.parts[index], len(self.rows)
            match part.kind:
                case "text":
                    tail = self._streamed(index)
                case "reasoning":
                    tail = self._reasoning(index, now)
                case "refusal":
                    text = clean_text("".join(part.chunks)[:HEAD_CHARS])  # all of it once the reply is complete
                    tail = plain_rows(f"refused: {text}", self._palette.warning, self._width)
                case "tool_call":
                    words = [clean_line(part.name) or "tool call", "preparing"]
                    tail = [fold_row(words, False, self._width, self._palette.muted)]
            if index < last:
                self.stable = len(self.rows) + len(tail)
            self.rows += tail
            for row in self.rows[start:]:
                row.part = index
            self.stale = self.stale or (self._stream is not None and self._stream.stale)
        return min(changed, self._summary) if self._summary >= 0 else changed

    def _begin(self, index: int) -> None:
        part = self.parts[index]
        self._drawn, self._fed, self._stream, self._summary = index + 1, 0, None, -1
        before = self.parts[index - 1].kind if index else None
        if before is not None and part.kind != "tool_call" and "text" in (before, part.kind):
            self.rows.append(blank_row())
            self.stable = len(self.rows)
        from tui.render.stream import StreamRenderer  # not before the first frame

        if part.kind == "text":
            self._stream = StreamRenderer(self._width, self._palette)
        elif part.kind == "reasoning" and index in self._view.open:
            self._stream = StreamRenderer(self._width - 2, dimmed(self._palette))

    def _streamed(self, index: int) -> list[Row]:
        """Append the final rows to `rows`, return the others."""
        assert self._stream is not None
        chunks = self.parts[index].chunks[self._fed :]
        self._fed += len(chunks)
        final, tail = self._stream.update("".join(chunks))
        self.rows += final
        self.stable = len(self.rows)
        return tail

    def _reasoning(self, index: int, now: float) -> list[Row]:
        part, palette = self.parts[index], self._palette
        opened = index in self._view.open
        time = duration((part.ended or now) - part.started)
        words = ["thinking", time] if part.ended is None else [f"thought for {time}"]
        line = fold_row(words, opened, self._width, palette.muted)
        line.part = index
        if not opened:
            return [line]
        # The summary line counts seconds while the rows below it are final: it is replaced in place.
        if self._summary < 0:
            self._summary = len(self.rows)
        self.rows[self._summary : self._summary + 1] = [line]
        start = len(self.rows)
        tail = indented(self._streamed(index), palette)
        self.rows[start:] = indented(self.rows[start:], palette)
        self.stable = len(self.rows)
        return tail
