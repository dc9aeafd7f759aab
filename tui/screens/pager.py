"""Text to read: a view's lines; tool results, a memory file, a tool's schema of any length."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from tui.render.rows import plain_rows
from tui.screens.base import CLOSE, PANEL_WIDTH, Hint, Panel
from tui.text.cells import clip
from tui.text.clean import TAB_SIZE, clean_line, clean_output, error_line
from tui.text.numbers import plural

if TYPE_CHECKING:
    from tui.commands.help import HelpView, Key

log = logging.getLogger(__name__)

MAX_LINE = 20_000
"""Characters of a line that can be reached by scrolling."""

MAX_WRAPPED = 1_000_000
"""Characters of a text that are wrapped; copying includes the rest."""


def wrapped(text: str, width: int) -> list[str]:
    """Clean `text` as lines of at most `width` cells. Takes 0.1 s for a megabyte: not on the event loop."""
    lines = [row.text for row in plain_rows(text[:MAX_WRAPPED], Style.null(), width)]
    if len(text) > MAX_WRAPPED:
        lines.append(f"… {len(text) - MAX_WRAPPED:,} more characters are not shown here")
    return lines


def layout_lines(texts: Sequence[tuple[str, str]], width: int | None) -> list[str]:
    """The lines of all texts, each after its title if there are several; wrapped if `width` is given."""
    lines: list[str] = []
    for name, text in texts:
        if len(texts) > 1:
            lines += [f"── {clean_line(name)} ──"]
        lines += text.split("\n") if width is None else wrapped(clean_output(text), width)
    return lines


def safe_line(line: str) -> str:
    """One line of untrusted text, safe for the terminal."""
    return clean_output(line[:MAX_LINE].removesuffix("\r")).replace("\n", " ").expandtabs(TAB_SIZE)


def widest(lines: Sequence[str]) -> int:
    """Cells of the widest line. As slow as `wrapped`."""
    return max([cell_len(safe_line(line)) for line in lines], default=0)


class TextLines(ScrollView, can_focus=True):
    """Lines of untrusted text; only visible ones are cleaned and drawn."""

    DEFAULT_CSS = """
    TextLines { height: 1fr; background: transparent; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lines: Sequence[str] = ()

    def show(self, lines: Sequence[str], width: int) -> None:
        """Show these lines, the widest of them `width` cells; keeps the position."""
        self._lines = lines
        self.virtual_size = Size(width, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The visible part of one line."""
        x, top = self.scroll_offset
        at = top + y
        style = self.rich_style
        text = safe_line(self._lines[at]) if at < len(self._lines) else ""
        strip = Strip([Segment(text, Style(color=style.color, bgcolor=style.bgcolor))])
        return strip.crop_extend(x, x + self.size.width, style)


class Pager(Panel[None]):
    """Shows texts, each below its title.

    Program output keeps its lines and scrolls sideways; with `wraps` lines are wrapped to the width. `note` describes
    the text.
    """

    DEFAULT_CSS = """
    Pager > .panel { height: 100%; margin-top: 0; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,o", "close", "close", id="pager.close"),
        Binding("c", "copy", "copy all", id="pager.copy"),
        Binding("home,g", "to(0)", "first line", id="pager.home", show=False, priority=True),
        Binding("end,G", "to(1)", "last line", id="pager.end", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown,space", "page(1)", show=False, priority=True),
    ]

    def __init__(self, texts: Sequence[tuple[str, str]], *, wraps: bool = False, note: str = "") -> None:
        super().__init__()
        self._texts, self._wraps, self._note = texts, wraps, note
        self._width = 0  # of the current layout
        self.max_width = PANEL_WIDTH if wraps else None

    def body(self) -> ComposeResult:
        """The lines."""
        self.set_keys(("c", "copy all", "copy"), CLOSE)
        yield TextLines()

    def on_mount(self) -> None:
        """Focus the lines."""
        self.query_one(TextLines).focus()

    def on_resize(self, _event: events.Resize) -> None:
        """Lay out for this width, in a thread."""
        width = self.list_width
        if width != self._width:
            self._width = width
            self.run_worker(self._lay_out(width), exclusive=True)

    async def _lay_out(self, width: int) -> None:
        lines = await asyncio.to_thread(layout_lines, self._texts, width if self._wraps else None)
        self.query_one(TextLines).show(lines, await asyncio.to_thread(widest, lines))
        names = ", ".join(dict.fromkeys(clean_line(name) for name, _ in self._texts))
        about = f" · {self._note}" if self._note else f": {plural(len(lines), 'line')}"
        self.set_title(clip(names + about, width))

    def action_copy(self) -> None:
        """Copy all of it to the clipboard."""
        self.app.copy_to_clipboard("\n\n".join(text for _, text in self._texts))

    def action_to(self, end: int) -> None:
        """Go to the first or the last line."""
        lines = self.query_one(TextLines)
        if end:
            lines.scroll_end(animate=False)
        else:
            lines.scroll_home(animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll one page."""
        lines = self.query_one(TextLines)
        lines.scroll_relative(y=pages * max(1, lines.size.height - 2), animate=False)


Lines: TypeAlias = Callable[[int], Sequence[Content]]
"""A text at a width in cells."""


class ReadingPanel(Panel[None]):
    """A text that is read once, and laid out for each width; `lines` are shown until then.

    `read` may raise; the error is shown instead.
    """

    DEFAULT_CSS = """
    ReadingPanel VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    ReadingPanel Static { height: auto; }
    """

    closing: ClassVar[Hint] = CLOSE

    def __init__(
        self, title: str, read: Callable[[], Awaitable[Lines]], lines: Lines = lambda _width: [Content("loading …")]
    ) -> None:
        super().__init__()
        self.heading = title
        self._read = read
        self._lines = lines

    def body(self) -> ComposeResult:
        """One text."""
        self.set_keys(self.closing)
        with VerticalScroll():
            yield Static(self._drawn(), markup=False)

    def on_mount(self) -> None:
        """Scroll with the keys at once."""
        self.query_one(VerticalScroll).focus()
        self._load()

    @work(exit_on_error=False)
    async def _load(self) -> None:
        try:
            self._lines = await self._read()
        except Exception as error:
            log.exception("a panel could not be filled")
            line = Content(error_line(error))
            self._lines = lambda _width: [line]
        self.query_one(Static).update(self._drawn())

    def on_resize(self) -> None:
        """Draw for another width. An update in the first layout may leave the old height (Textual 8.2)."""
        if self._width != self.list_width:
            self.query_one(Static).update(self._drawn())

    def _drawn(self) -> Content:
        self._width = self.list_width
        return Content("\n").join(self._lines(self._width))


class UsagePanel(ReadingPanel):
    """`/usage`: tokens, cost, and the accuracy of the estimates; this conversation, today, all time."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,enter", "close", "close", id="usage.close", show=False)]


class HelpPanel(ReadingPanel):
    """`/help`: the commands, and the keys that `keys` lists by section, in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,f1,enter", "close", "close", id="help.close", show=False)]

    def __init__(self, view: HelpView, keys: Callable[[], Mapping[str, Sequence[Key]]]) -> None:
        async def read() -> Lines:
            from tui.commands.help import help_lines

            return partial(help_lines, view.commands, await asyncio.to_thread(keys))

        super().__init__(view.title, read)
