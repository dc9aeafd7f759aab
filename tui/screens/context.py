"""`/context`: what fills the window, as a panel over the conversation. Opening it changes nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from textual.binding import Binding, BindingType
from textual.content import Content

from tui.messages import Attachment, ToolSchema
from tui.render.message import attachment_text
from tui.screens.base import BACK, SHORT, Hint
from tui.screens.context_lists import HistoryPanel, MessagesPanel
from tui.screens.pager import Lines, Pager, ReadingPanel
from tui.screens.rows import RowsPanel
from tui.text.clean import error_line
from tui.text.labels import MESSAGE_ROWS
from tui.text.numbers import tokens_exact
from tui.views.context_picture import picture_lines
from tui.views.context_table import Line, basis_lines, headline, row_hints, table_lines
from tui.views.models import fit_lines

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.chat.workspace import Workspace
    from tui.context.usage.limits import ModelLimits
    from tui.context.usage.rows import UsageItem
    from tui.context.usage.usage import ContextUsage
    from tui.views.context_table import ContextView

log = logging.getLogger(__name__)

FOLDED_ROWS = frozenset({"user", "reasoning", "tool_calls", "tool_results", "summaries"})
"""Rows for parts of messages that may be folded in the conversation, and are unfolded when opened."""


class MessageLink(NamedTuple):
    """A message of the conversation to go to; with `unfold` its folded parts are shown."""

    message_id: str
    unfold: bool = False


Next: TypeAlias = MessageLink | Literal["compact"]


class ContextPanel(RowsPanel[Next, Line]):
    """Headline, picture, rows, basis. Dismissed with what to do next, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "messages", "messages", id="context.messages"),
        Binding("h", "history", "requests", id="context.history"),
        Binding("f", "fits", "which models it fits", id="context.fits"),
        Binding("e", "exact", "exact count by the server", id="context.exact"),
        Binding("c", "compact", "compact", id="context.compact"),
        Binding("t", "rolling", "rolling context on or off", id="context.rolling"),
        Binding("right,l", "unfold(True)", "unfold", id="context.unfold", show=False),
        Binding("left", "unfold(False)", "fold", id="context.fold", show=False),
        Binding("q", "close", "close", id="context.close", show=False),
    ]

    highlights_first = False

    def __init__(self, view: ContextView, changed: Callable[[], None], key: Callable[[str, str], str]) -> None:
        """`key` returns the person's key for a binding, or else its second argument."""
        super().__init__(view.session, changed)
        self.workspace = view.workspace
        self._key = key
        self.expanded = frozenset({"messages"})

    async def on_mount(self) -> None:
        """Draw; measure first if nothing was measured yet."""
        if self.session.usage is None:
            await self.session.refresh_usage()
        self.redraw()

    def redraw(self) -> None:
        """Draw everything from the current numbers."""
        usage = self.session.usage
        if usage is None:
            return
        width, height = self.inner_width, self.app.size.height
        picture = picture_lines(usage, width, 3 if height >= 28 and width >= 60 else 2 if height >= 16 else 1)
        between = [Content("")] if height >= SHORT else []
        rows = table_lines(usage, self.list_width, expanded=self.expanded, hints=self._row_hints(usage))
        rows += [Line(Content("")), *map(Line, basis_lines(usage, self.list_width))]
        self.draw([*headline(usage, width), *between, *picture], rows)

    def follow(self) -> None:
        """The session has new numbers."""
        self.redraw()

    def _row_hints(self, usage: ContextUsage) -> dict[str, str]:
        """The possible actions for each row."""
        key = self._key
        messages, compact, trim = key("context.messages", "m"), key("context.compact", "c"), key("context.rolling", "t")
        hints = {"messages": f"{messages}  list messages", **row_hints(self.session.tools.plan)}
        rolling = self.session.conversation.info.rolling
        if usage.space.buffer:
            hints["buffer"] = f"kept free; {compact} compacts now"
        if any(row.key == "tool_results" for row in usage.rows):
            hints["tool_results"] = (
                "trimmed when it gets tight" if rolling else f"{trim}  trims old ones when it gets tight"
            )
        if usage.space.over:
            hints["over"] = f"{compact} compacts, {trim} trims" if not rolling else f"{compact} compacts"
        return hints

    def hints(self) -> Sequence[Hint]:
        """Enter where it opens something, and the other views."""
        return [
            *([("enter", "open", "choose")] if self.chosen is not None and self.chosen.item is not None else []),
            ("m", "messages", "messages"),
            ("h", "requests", "history"),
            ("f", "fits where?", "fits"),
            ("e", "exact count", "exact"),
            ("c", "compact", "compact"),
            ("t", f"rolling {'off' if self.session.conversation.info.rolling else 'on'}", "rolling"),
        ]

    def action_choose(self) -> None:
        """Fold a row, or open its content."""
        row = self.chosen
        if row is None:
            return
        if row.foldable:
            self.toggle_fold()
        elif row.item is not None:
            self._open(row.key.split(":")[1], row.item)
        elif row.key.startswith("more:"):
            self.action_messages()

    def _open(self, row: str, item: UsageItem) -> None:
        """Show a text, or the message in the conversation."""
        if (text := item_text(self.session, row, item)) is not None:
            cost = f"{tokens_exact(item.tokens, item.source)} tokens"
            self.app.push_screen(Pager([text], wraps=True, note=cost))
        elif row in MESSAGE_ROWS:
            self.dismiss(MessageLink(item.ref, unfold=row in FOLDED_ROWS))
        else:
            self.notify("This is not part of the next request any more.", markup=False)

    def action_messages(self) -> None:
        """Show the tokens of each message."""
        self.app.push_screen(MessagesPanel(self.session, self._recount), self._go_to)

    def action_history(self) -> None:
        """Show the growth of the conversation and its requests, call by call."""
        self.app.push_screen(HistoryPanel(self.session, self.workspace), self._go_to)

    def action_fits(self) -> None:
        """Show the models that this conversation fits."""
        if self.session.usage is not None:
            self.app.push_screen(FitsPanel(self.session.usage, self.workspace))

    def _go_to(self, message_id: str | None) -> None:
        self.redraw()  # what was learned may have been forgotten
        if message_id is not None:
            self.dismiss(MessageLink(message_id))

    def _recount(self) -> None:
        self.redraw()
        self.changed()

    def action_exact(self) -> None:
        """Let the server count."""
        self.say("counting on the server …")
        self.run_worker(self._exact(), exclusive=True, exit_on_error=False)

    async def _exact(self) -> None:
        tokens, why = None, "This server does not count requests"
        try:
            tokens = await self.session.count_exactly()
        except Exception as error:
            log.warning("exact count failed", exc_info=True)
            why = f"The server did not count ({error_line(error)})"
        self._note = ""
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
        await self.session.set_rolling(not self.session.conversation.info.rolling)
        await self.session.refresh_usage()
        self._note = ""
        self._recount()


class FitsPanel(ReadingPanel):
    """`f`: the models that the conversation fits: the current one at once, the others when they are known."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f", "close", "back", id="fits.close", show=False)]

    closing = BACK

    def __init__(self, usage: ContextUsage, workspace: Workspace) -> None:
        super().__init__("Fits where?", self.read, partial(_fit_lines, usage, (), "asking the servers …"))
        self.usage = usage
        self.workspace = workspace

    async def read(self) -> Lines:
        """All models."""
        try:
            listing = await self.workspace.model_list.ask()
        except Exception as error:
            log.warning("models could not be listed", exc_info=True)
            return partial(_fit_lines, self.usage, (), f"The models could not be listed: {error_line(error)}")
        models = [(model.full_name, model.info.limits) for model in listing.models]
        note = "Counted for the current model; others may differ by some percent."
        return partial(_fit_lines, self.usage, models, note)


def _fit_lines(
    usage: ContextUsage, models: Sequence[tuple[str, ModelLimits | None]], note: str, width: int
) -> list[Content]:
    return [*fit_lines(usage, models, width), Content.styled(note, "$text-muted")]


def item_text(session: ChatSession, row: str, item: UsageItem) -> tuple[str, str] | None:
    """The title and text of a row's item; None for a message, which is shown in the conversation."""
    match row:
        case "system" | "memory" | "instructions":
            sections = session.conversation.target.system
            section = next((part for part in sections if (part.kind, part.name) == (row, item.ref)), None)
            return (item.ref.capitalize() if row == "system" else item.ref, section.text) if section else None
        case "tools":
            tool = next((t for t in session.tools.plan.sent if t.name == item.ref), None)
            return (f"{item.ref} · {tool.origin}", tool_text(tool)) if tool is not None else None
        case "attachments":
            message = next((m for m in session.messages if m.id == item.ref), None)
            files = [part for part in message.parts if isinstance(part, Attachment)] if message else []
            names = ", ".join(file.name for file in files)
            return (names, "\n\n".join(map(file_text, files))) if files else None
        case _:
            return None


def tool_text(tool: ToolSchema) -> str:
    """A tool as described to the model."""
    try:
        parameters = json.dumps(json.loads(tool.parameters), indent=2, ensure_ascii=False)
    except ValueError:
        parameters = tool.parameters
    return f"{tool.description}\n\n{parameters}"


def file_text(file: Attachment) -> str:
    """A text as it is sent; for other kinds a description."""
    return file.text_sent or f"{attachment_text(file)}\n{file.media_type}"
