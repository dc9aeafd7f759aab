"""`/context`: what fills the window, as a panel over the conversation. Opening it changes nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui.messages import Attachment, ToolSchema
from tui.screens.base import CLOSE, SHORT, KeyLine, Panel, key_line
from tui.screens.context.fits import FitsPanel
from tui.screens.context.history import HistoryPanel
from tui.screens.context.messages import MessagesPanel
from tui.screens.pager import Pager
from tui.text.cells import clip
from tui.text.names import MESSAGE_ROWS
from tui.text.numbers import approx, plural, size_text, tokens_exact
from tui.views.context.picture import picture_lines
from tui.views.context.table import Line, basis_lines, headline, row_hints, table_lines

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.rows import UsageItem
    from tui.context.usage.usage import ContextUsage
    from tui.views.context.table import ContextView


log = logging.getLogger(__name__)


class ContextPanel(Panel[str]):
    """Headline, picture, rows, basis. Dismissed with the action to take, or None."""

    DEFAULT_CSS = """
    ContextPanel.-under { background: transparent; }
    ContextPanel .context-head, ContextPanel .context-keys { height: auto; }
    ContextPanel .context-head { margin-bottom: 1; }
    ContextPanel .context-keys { margin-top: 1; }
    ContextPanel OptionList {
        height: auto; border: none; padding: 0; background: transparent; scrollbar-size-vertical: 1;
    }
    ContextPanel OptionList > .option-list--option-disabled { color: $text-muted; background: transparent; }
    ContextPanel.-short .context-head, ContextPanel.-short .context-keys { margin: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "messages", "messages", id="context.messages"),
        Binding("h", "history", "history", id="context.history"),
        Binding("f", "fits", "fits where?", id="context.fits"),
        Binding("e", "exact", "exact count", id="context.exact"),
        Binding("c", "compact", "compact", id="context.compact"),
        Binding("t", "rolling", "rolling", id="context.rolling"),
        Binding("right,l", "unfold(True)", "unfold", id="context.unfold", show=False),
        Binding("left", "unfold(False)", "fold", id="context.fold", show=False),
        Binding("q", "close", "close", id="context.close", show=False),
    ]

    def __init__(
        self,
        view: ContextView,
        *,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.session = view.session
        self.workspace = view.workspace
        self.changed = changed
        self.expanded: frozenset[str] = frozenset({"messages"})
        self.usage: ContextUsage | None = view.session.usage
        self._lines: list[Line] = []
        self._note = ""

    def compose(self) -> ComposeResult:
        """The rows scroll; headline, picture and keys stay."""
        with Vertical(classes="panel"):
            yield Static("", classes="context-head", markup=False)
            yield OptionList(compact=True)
            yield KeyLine("context-keys")

    async def on_mount(self) -> None:
        """Draw; measure first if nothing was measured yet."""
        self.query_one(OptionList).focus()
        if self.usage is None:
            self.usage = await self.session.refresh_usage()
        self.redraw()

    def on_resize(self, _event: events.Resize) -> None:
        """Draw for the new size."""
        self.redraw()

    def on_screen_suspend(self) -> None:
        """Hide below another view, since overlapping frames are hard to read."""
        self.query_one(".panel").visible = False
        self.add_class("-under")

    def on_screen_resume(self) -> None:
        """Show again."""
        self.query_one(".panel").visible = True
        self.remove_class("-under")

    def redraw(self) -> None:
        """Draw everything from the current numbers."""
        usage = self.usage
        if usage is None:
            return
        width, height = self.inner_width, self.app.size.height
        rows = 3 if height >= 28 and width >= 60 else 2 if height >= 16 else 1
        head = headline(usage, width)
        picture = picture_lines(usage, width, rows)
        between = [Content("")] if height >= SHORT else []
        top = [*head, *between, *picture]
        self.query_one(".context-head", Static).update(Content("\n").join(top))
        # Borders and keys; on a taller screen also the lines kept free above and below, and around the rows.
        around = 3 if height < SHORT else 8
        self.query_one(OptionList).styles.max_height = max(2, height - len(top) - around)
        self.query_one(".context-keys", Static).update(self._footer(width))
        list_width = width - 1  # the scroll bar
        lines = table_lines(usage, list_width, expanded=self.expanded, hints=self._hints(usage))
        lines += [Line(Content("")), *(Line(text) for text in basis_lines(usage, list_width))]
        self._show(lines)

    def _show(self, lines: list[Line]) -> None:
        options = self.query_one(OptionList)
        at = options.highlighted
        chosen = self._lines[at].key if at is not None and at < len(self._lines) else ""
        self._lines = lines
        options.clear_options()
        options.add_options(Option(line.content, disabled=not line.key) for line in lines)
        wanted = next((index for index, line in enumerate(lines) if line.key and line.key == chosen), None)
        options.highlighted = wanted

    def _hints(self, usage: ContextUsage) -> dict[str, str]:
        """The possible actions for each row."""
        hints = {"messages": "m  list messages", **row_hints(self.session)}
        rolling = self.session.rolling
        if usage.compaction_buffer:
            hints["buffer"] = "kept free; c compacts now"
        if any(row.key == "tool_results" for row in usage.rows):
            hints["tool_results"] = "trimmed when it gets tight" if rolling else "t  trims old ones when it gets tight"
        if usage.over:
            hints["over"] = "c compacts, t trims" if not rolling else "c compacts"
        return hints

    def _footer(self, width: int) -> Content:
        if self._note:
            return Content.styled(clip(self._note, width), "$text-accent")
        at = self.query_one(OptionList).highlighted
        line = self._lines[at] if at is not None and at < len(self._lines) else None
        hints = [("enter", "open", "open")] if line is not None and line.item is not None else []
        hints += [("m", "messages", "messages"), ("h", "history", "history")]
        hints += [("f", "fits where?", "fits"), ("e", "exact count", "exact"), ("c", "compact", "compact")]
        hints += [("t", f"rolling {'off' if self.session.rolling else 'on'}", "rolling"), CLOSE]
        return key_line(self, hints, width)

    def say(self, text: str) -> None:
        """Show a line in place of the keys; "" restores them."""
        self._note = text
        self.query_one(".context-keys", Static).update(self._footer(self.inner_width))

    def action_open(self) -> None:
        """Enter."""
        self.query_one(OptionList).action_select()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click folds a row, or opens its content."""
        event.stop()
        line = self._lines[event.option_index]
        if line.foldable:
            self.expanded = self.expanded ^ {line.key}
            self.redraw()
        elif line.item is not None:
            self._open(line.key.split(":")[1], line.item)
        elif line.key.startswith("more:"):
            self.action_messages()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Update the label of enter."""
        event.stop()
        self.query_one(".context-keys", Static).update(self._footer(self.inner_width))

    def _open(self, row: str, item: UsageItem) -> None:
        """Show a text, or the message in the conversation."""
        if (item_text := opened(self.session, row, item)) is not None:
            self.app.push_screen(Pager([(item_text.title, item_text.text)], wraps=True, note=item_text.note))
        elif row in MESSAGE_ROWS:
            self.dismiss(f"{'unfold' if row in FOLDED_ROWS else 'open'}:{item.ref}")
        else:
            self.notify("This is not part of the next request any more.", markup=False)

    def action_unfold(self, on: bool) -> None:
        """Unfold or fold the chosen row."""
        at = self.query_one(OptionList).highlighted
        if at is not None and self._lines[at].foldable:
            key = self._lines[at].key
            self.expanded = self.expanded | {key} if on else self.expanded - {key}
            self.redraw()

    def action_messages(self) -> None:
        """Show the tokens of each message."""
        self.app.push_screen(MessagesPanel(self.session, changed=self._recount), self._opened)

    def action_history(self) -> None:
        """Show the growth of the conversation and its requests, call by call."""
        self.app.push_screen(HistoryPanel(self.session, self.workspace), self._back_from_history)

    def action_fits(self) -> None:
        """Show the models that this conversation fits."""
        if self.usage is not None:
            self.app.push_screen(FitsPanel(self.usage, self.workspace))

    def _back_from_history(self, message_id: str | None) -> None:
        self.follow()  # what was learned may have been forgotten
        self._opened(message_id)

    def _opened(self, message_id: str | None) -> None:
        if message_id is not None:
            self.dismiss(f"open:{message_id}")

    def follow(self) -> None:
        """The session has new numbers: redraw, keeping the chosen row."""
        if self.session.usage is not None and self.session.usage is not self.usage:
            self.usage = self.session.usage
            self.redraw()

    def _recount(self) -> None:
        self.usage = self.session.usage
        self.redraw()
        self.changed()

    def action_exact(self) -> None:
        """Let the server count."""
        self.say("counting on the server …")
        self.run_worker(self._exact(), exclusive=True, exit_on_error=False)

    async def _exact(self) -> None:
        tokens, why = None, "This server has no counting endpoint"
        try:
            tokens = await self.session.count_exactly()
        except Exception as error:
            log.warning("exact count failed", exc_info=True)
            why = f"The server did not count ({' '.join(str(error).split())})"
        self.say("")
        self._recount()
        if tokens is None:
            self.notify(f"{why}; the number stays as it was.", severity="warning", markup=False)
        else:
            self.notify(f"The server counted {tokens_exact(tokens)} tokens.", markup=False)

    def action_compact(self) -> None:
        """Close and compact."""
        self.dismiss("compact")

    async def action_rolling(self) -> None:
        """Switch rolling context, and show the effect."""
        await self.session.set_rolling(not self.session.rolling)
        self.usage = await self.session.refresh_usage()
        self._note = ""
        self.redraw()
        self.changed()


FOLDED_ROWS = frozenset({"user", "reasoning", "tool_calls", "tool_results", "summaries"})
"""Rows for parts of messages that may be folded in the conversation, and are unfolded when opened."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A text with its title and a note."""

    title: str
    text: str
    note: str = ""


def opened(session: ChatSession, row: str, item: UsageItem) -> Opened | None:
    """The text of a row's item; None for a message, which is shown in the conversation."""
    cost = f"{approx(item.source)}{tokens_exact(item.tokens)} tokens"
    match row:
        case "system":
            return Opened("System prompt", session.system, cost)
        case "memory":
            file = next((f for f in session.memory.files if f.name == item.ref), None)
            return Opened(item.ref, file.section().text, cost) if file is not None else None
        case "instructions":
            section = next((section for section in session.instructions if section.name == item.ref), None)
            return Opened(item.ref, section.text, cost) if section is not None else None
        case "tools":
            tool = next((t for t in session.tools.plan.sent if t.name == item.ref), None)
            return Opened(f"{item.ref} · {tool.origin}", tool_text(tool), cost) if tool is not None else None
        case "attachments":
            message = next((m for m in session.messages if m.id == item.ref), None)
            files = [part for part in message.parts if isinstance(part, Attachment)] if message else []
            names = ", ".join(file.name for file in files)
            return Opened(names, "\n\n".join(map(attachment_text, files)), cost) if files else None
        case _:
            return None


def tool_text(tool: ToolSchema) -> str:
    """A tool as described to the model."""
    try:
        parameters = json.dumps(json.loads(tool.parameters), indent=2, ensure_ascii=False)
    except ValueError:
        parameters = tool.parameters
    return f"{tool.description}\n\n{parameters}"


def attachment_text(file: Attachment) -> str:
    """A text as it is sent; for other kinds a description."""
    if file.kind == "text":
        return file.text or ""
    size = f", {file.width} × {file.height} pixels" if file.width and file.height else ""
    pages = f", {plural(file.pages, 'page') if file.pages else '? pages'}" if file.kind == "pdf" else ""
    return f"{file.name}\n{file.media_type}, {size_text(file.size)}{size}{pages}"
