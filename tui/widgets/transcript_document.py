"""What the transcript shows, apart from any screen: entries, their rows at one width, their heights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tui.messages import Message, Reasoning, Text, ToolCall, ToolResult
from tui.render.clean import clean_text
from tui.render.live import LiveReply
from tui.render.message import HEAD_LINES, Count, View, folds, is_long, label_of, message_rows
from tui.render.palette import Palette
from tui.render.rows import Row, blank_row, prefixed, text_row
from tui.render.words import MEASURED, compact, plural, short_model
from tui.render.wrap import plain_rows
from tui.widgets.transcript_heights import Heights

Level: TypeAlias = Literal["info", "warning", "error"]
KEPT_ROWS = 6_000
"""Rows kept ready outside the screen; beyond that the farthest are drawn again when they are needed."""
_REASONS = {"trimmed": "rolling context", "compacted": "compacted"}
_GLYPHS: dict[Level, str] = {"info": "·", "warning": "!", "error": "✗"}


@dataclass(slots=True)
class Entry:
    """A message, the reply that is arriving, or a notice. `exact`: the height is that of drawn rows, at this width."""

    message: Message | None = None
    live: LiveReply | None = None
    notice: tuple[Level, str] | None = None
    open: set[int] = field(default_factory=set)
    thought: float | None = None
    rows: list[Row] | None = None
    exact: bool = False


class Document:
    """The entries in order. Rows are made on demand (`realise`); until then heights are estimates."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        self.width = 0
        self.entries: list[Entry] = []
        self.heights = Heights()
        self.index: dict[str, int] = {}
        self._counts: Mapping[str, Count] = {}
        self._not_sent: Mapping[str, str] = {}
        self._calls: dict[str, ToolCall] = {}
        self._answered: set[str] = set()
        self._dividers: dict[int, str] = {}
        self._drawn: set[int] = set()

    def set_messages(self, messages: Sequence[Message], not_sent: Mapping[str, str]) -> None:
        """Show these messages. Folds opened before stay open where the message is still there."""
        opened = {entry.message.id: entry for entry in self.entries if entry.message}
        self.entries, self.index, self._calls, self._answered = [], {}, {}, set()
        self._drawn = set()
        for message in messages:
            old = opened.get(message.id)
            entry = Entry(message, open=old.open, thought=old.thought) if old else Entry(message)
            self._register(message, len(self.entries))
            self.entries.append(entry)
        self._not_sent = not_sent
        self._dividers = self._find_dividers()
        self._estimate_all()

    def _register(self, message: Message, index: int) -> None:
        self.index[message.id] = index
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._calls[part.id] = part
            elif isinstance(part, ToolResult):
                self._answered.add(part.call_id)

    def append(self, message: Message) -> None:
        """Add a message. A tool's results take the place of the calls they answer."""
        self._register(message, len(self.entries))
        self._add(Entry(message))
        answers = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
        if answers:
            for number in range(len(self.entries) - 2, max(-1, len(self.entries) - 12), -1):
                before = self.entries[number].message
                if before and any(isinstance(part, ToolCall) and part.id in answers for part in before.parts):
                    self.redraw(number)
                    break

    def add_notice(self, level: Level, text: str) -> None:
        """Add a notice, which is no message and vanishes with the next `set_messages`."""
        self._add(Entry(notice=(level, clean_text(text))))

    def start_reply(self, message_id: str, provider: str, model: str) -> LiveReply:
        """Add the reply that begins now."""
        live = LiveReply()
        self.index[message_id] = len(self.entries)
        shell = Message("assistant", (), message_id, status="streaming", provider=provider, model=model)
        self._add(Entry(shell, live))
        return live

    def finish_reply(self, message: Message) -> None:
        """The reply as stored replaces the one that was arriving, drawn once more from its source."""
        index = self.index.get(message.id)
        if index is None:
            self.append(message)
            return
        entry = self.entries[index]
        entry.thought = entry.live.thought() if entry.live else entry.thought
        entry.message, entry.live = message, None
        self._register(message, index)
        self.redraw(index)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.heights.append(self._estimate(entry) if self.width else 1)

    def set_counts(self, counts: Mapping[str, Count]) -> None:
        """Tokens by message id, with where each figure comes from."""
        changed = [index for index in self._drawn if self._count(index) != counts.get(self._id(index))]
        self._counts = counts
        for index in changed:
            self.redraw(index)
        self._update_dividers()

    def set_not_sent(self, not_sent: Mapping[str, str]) -> None:
        """Which messages don't go out any more, and why: trimmed, compacted, excluded."""
        changed = [index for index in self._drawn if self._reason(index) != not_sent.get(self._id(index), "")]
        self._not_sent = not_sent
        for index in changed:
            self.redraw(index)
        self._update_dividers()

    def _update_dividers(self) -> None:
        before, self._dividers = self._dividers, self._find_dividers()
        for index in before.keys() | self._dividers.keys():
            if before.get(index) != self._dividers.get(index):
                self.redraw(index)

    def _find_dividers(self) -> dict[int, str]:
        """One line after each stretch of messages that are not sent; results alone are marked on their own line."""
        if not self._not_sent:
            return {}
        dividers: dict[int, str] = {}
        run: list[int] = []
        reason = ""
        for index, entry in enumerate([*self.entries, Entry(Message("user", ()))]):
            if entry.message is None:
                continue
            own = self._not_sent.get(entry.message.id, "") if index < len(self.entries) else ""
            if own != reason:
                if reason in _REASONS and any(self._role(number) != "tool" for number in run):
                    dividers[run[-1]] = self._divider(run, reason)
                run, reason = [], own
            run.append(index)
        return dividers

    def _divider(self, run: Sequence[int], reason: str) -> str:
        counts = [self._count(index) for index in run]
        known = [count[0] for count in counts if count is not None and count[0] is not None]
        text = f"not sent any more: {plural(len(run), 'message')}"
        if known and len(known) == len(run):
            exact = all(count is not None and count[1] in MEASURED for count in counts)
            text += f", {'' if exact else '~'}{compact(sum(known))} tokens"
        return f"{text} ({_REASONS[reason]})"

    def _id(self, index: int) -> str:
        message = self.entries[index].message
        return message.id if message else ""

    def _role(self, index: int) -> str:
        message = self.entries[index].message
        return message.role if message else ""

    def _count(self, index: int) -> Count | None:
        return self._counts.get(self._id(index))

    def _reason(self, index: int) -> str:
        return self._not_sent.get(self._id(index), "")

    def view(self, index: int) -> View:
        """What entry `index` depends on besides its message."""
        entry = self.entries[index]
        return View(
            label=self._label(index),
            count=self._count(index),
            open=entry.open,
            calls=self._calls,
            answered=self._answered,
            not_sent=self._reason(index),
            thought=entry.thought,
            divider=self._dividers.get(index, ""),
        )

    def _label(self, index: int) -> str:
        """The label, or "" where the same model goes on after a tool call."""
        message = self.entries[index].message
        if message is None:
            return ""
        label = label_of(message)
        if message.role != "assistant" or message.kind != "chat":
            return label
        for number in range(index - 1, -1, -1):
            before = self.entries[number].message
            if before is None or before.role == "tool":
                continue
            same = before.role == "assistant" and before.kind == "chat" and number < index - 1
            return "" if same and short_model(before.model) == short_model(message.model) else label
        return label

    def realise(self, index: int, now: float = 0.0) -> int:
        """Make the rows of entry `index`; returns by how much its height changed."""
        entry = self.entries[index]
        if entry.rows is None:
            if entry.live is not None:
                entry.live.draw(self.width, self.palette, self.view(index), now)
                entry.rows = entry.live.rows
            elif entry.notice is not None:
                entry.rows = self._notice_rows(index, *entry.notice)
            elif entry.message is not None:
                entry.rows = message_rows(entry.message, self.width, self.palette, self.view(index))
            self._drawn.add(index)
        entry.exact = True
        return self.heights.set(index, len(entry.rows or ()))

    def _notice_rows(self, index: int, level: Level, text: str) -> list[Row]:
        style = {"info": self.palette.info, "warning": self.palette.warning, "error": self.palette.error}[level]
        mark, rest = text_row(f"{_GLYPHS[level]} ", style).segments, text_row("  ", style).segments
        rows = prefixed(plain_rows(text, style, self.width - 2), mark, rest)
        return rows if index and self.entries[index - 1].notice else [blank_row(), *rows]

    def redraw(self, index: int) -> None:
        """Drop the rows of an entry; its height serves on until it is drawn again."""
        entry = self.entries[index]
        entry.rows = None
        self._drawn.discard(index)

    def restyle(self, palette: Palette) -> None:
        """Other colours, same heights."""
        self.palette = palette
        for index in list(self._drawn):
            self.redraw(index)

    def resize(self, width: int) -> None:
        """Another width: all heights become estimates."""
        self.width = width
        for index in list(self._drawn):
            self.redraw(index)
        self._estimate_all()

    def _estimate_all(self) -> None:
        for entry in self.entries:
            entry.exact = False
        self.heights = Heights([self._estimate(entry) if self.width else 1 for entry in self.entries])

    def _estimate(self, entry: Entry) -> int:
        """Rows an entry will probably take; only scrolling far through messages never drawn relies on it."""
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
                rows += 1 + lines + max(0, length - lines * self.width // 2) // max(1, self.width)
        return max(1, rows)

    def evict(self, first: int, last: int) -> None:
        """Keep the rows of entries `first` to `last`; let others go when too many are held."""
        if sum(len(self.entries[index].rows or ()) for index in self._drawn) <= KEPT_ROWS:
            return
        for index in list(self._drawn):
            if not first - 8 <= index <= last + 8 and self.entries[index].live is None:
                self.redraw(index)

    # --- drawing what a view needs

    def realise_end(self, height: int) -> int:
        """Make the rows of the last entries, at least `height` of them; returns the first entry made."""
        covered, index = 0, len(self.entries)
        while index > 0 and covered < height:
            index -= 1
            self.realise(index)
            covered += self.heights[index]
        return index

    def realise_window(self, top: int, height: int) -> tuple[int, int]:
        """Make the rows of lines `top` to `top + height`; returns the top line, corrected, and the first entry.

        An entry seen for the first time that begins above the window keeps its end in place, because the reader comes
        from below; one that was drawn before keeps its beginning.
        """
        first = 0
        for _ in range(4):
            first = self.heights.find(top)
            if first < 0:
                return 0, 0
            known, begin = self.entries[first].exact, self.heights.top(first)
            change = self.realise(first)
            if change and not known and top > begin:
                top = max(begin, top + change)
            index, bottom = first, self.heights.top(first + 1)
            while bottom < top + height and index + 1 < len(self.entries):
                index += 1
                self.realise(index)
                bottom += self.heights[index]
            last_top = max(0, self.heights.total - height)
            if top <= last_top:
                break
            top = last_top
        return top, first

    def realise_above(self, line: int, rows: int) -> int:
        """Make at least `rows` rows above `line`; returns by how much that moved `line` down."""
        index = self.heights.find(line)
        if index < 0:
            return 0
        missing, moved = rows - (line - self.heights.top(index)), 0
        while missing > 0 and index > 0:
            index -= 1
            moved += self.realise(index)
            missing -= self.heights[index]
        return moved

    # --- folds

    def foldable(self, index: int) -> set[int]:
        """The parts of an entry that fold."""
        entry = self.entries[index]
        if entry.live is not None:
            return {number for number, part in enumerate(entry.live.parts) if part.kind == "reasoning"}
        message = entry.message
        if message is None:
            return set()
        return {number for number, part in enumerate(message.parts) if folds(message, part)}

    def fold(self, index: int, open_parts: set[int]) -> None:
        """Unfold exactly these parts of an entry."""
        if self.entries[index].open != open_parts:
            self.entries[index].open = open_parts
            self.redraw(index)
