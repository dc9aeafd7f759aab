"""Base classes of screens: copying, background work, the look and keys of panels, a guard for the mouse."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from textual import events, on
from textual.actions import SkipAction
from textual.app import App, ComposeResult, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.css.query import NoMatches
from textual.geometry import Offset
from textual.reactive import var
from textual.screen import ModalScreen, Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.worker import Worker

from tui.chat.clipboard import copied_line, run_copy_tool
from tui.text.cells import plain
from tui.text.clean import clean_copied, failure_line

log = logging.getLogger(__name__)

Result = TypeVar("Result")

NARROW = 60
"""Columns; on narrower screens panels have less padding and tables fewer columns."""

PANEL_WIDTH = 112
"""Maximal columns of a panel, including border and padding: longer lines are hard to read."""

MAX_LINE = 10_000
"""Characters of a field of one line: Textual measures all of it at each key. It refuses a longer paste with a bell."""

SHORT = 24
"""Lines; on lower screens panels have no margin."""

QUIET = 0.7
"""Seconds without a key before keys count as answers, so that text typed for the prompt answers nothing."""


class GuardedScreen(Screen[Result]):
    """A screen that is closed once, and on which clicks never reach a widget that was just removed.

    Textual 8.2.8 looks up the parent of the widget under the pointer when a selection starts; a widget just removed by
    streaming or by a closing list has none, and the click would end the program.
    """

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """The widget and text offset at a cell; nothing if that widget no longer belongs to the screen."""
        widget, offset = super().get_widget_and_offset_at(x, y)
        if widget is not None and widget.parent is None and not isinstance(widget, Screen):
            return None, None
        return widget, offset

    def action_copy_text(self) -> None:
        """Copy the selection and clear it, since ctrl+c has other uses too."""
        super().action_copy_text()
        self.clear_selection()

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close this screen and those over it, once. Textual would close the topmost one, whichever that is."""
        if self not in self.app.screen_stack:
            return AwaitComplete()
        while (above := self.app.screen) is not self:
            above.dismiss(None)
        return super().dismiss(result)


Work: TypeAlias = Callable[[], Awaitable[None]]


class BackgroundScreen(GuardedScreen[None]):
    """A screen with background work, whose errors it shows as lines. Details go to `log_file`."""

    def __init__(self, log_file: Path) -> None:
        super().__init__()
        self.log_file = log_file
        self._failed: set[str] = set()  # groups whose error was shown already
        self._requested: dict[str, tuple[Work, float] | None] = {}  # of each group that runs: what comes next
        self.closing = False  # whether the resources of the work are being closed

    @abstractmethod
    def show_error(self, text: str) -> None:
        """Show one line."""

    def one_line(self, error: BaseException) -> str:
        """The error for a person. For a bug it names the log, never a traceback."""
        from tui.providers.keys import redact  # not before the first frame

        return redact(failure_line(error, self.log_file))

    def background(self, work: Work, group: str, *, exclusive: bool = False, again: bool = False) -> None:
        """Run work in the background.

        Errors are logged and shown: once per group, or every time with `again`. While the program is closing no work is
        started, and errors of running work are expected.
        """
        if not self.closing:
            guarded = partial(self.guarded, work, group, again=again)
            _: Worker[None] = self.run_worker(guarded, group=group, exclusive=exclusive, exit_on_error=False)

    async def guarded(self, work: Work, group: str, *, again: bool = False) -> None:
        """Do work whose errors are logged and shown, as in the background."""
        try:
            await work()
        except Exception as error:
            if self.closing:
                log.info("given up at the end: %s (%s)", group, error)
                return
            log.exception("in the background: %s", group)
            if again or group not in self._failed:
                self._failed.add(group)
                self.show_error(self.one_line(error))

    def soon(self, work: Work, group: str, pause: float = 0.0) -> None:
        """Like `background`, for work requested by every key: after `pause` seconds, one at a time, the newest request
        next.

        The cost of a key is constant; a worker for each would have to be cancelled by the next.
        """
        running = group in self._requested
        self._requested[group] = (work, pause)
        if not running:
            self.background(partial(self._run_requested, group), group)

    async def _run_requested(self, group: str) -> None:
        try:
            while (request := self._requested[group]) is not None:
                await asyncio.sleep(request[1])
                newest, _ = self._requested[group] or request
                self._requested[group] = None
                await self.guarded(newest, group)
        finally:
            del self._requested[group]


class Panel(GuardedScreen[Result], ModalScreen[Result], Generic[Result]):
    """A panel over the conversation, which stays visible around it."""

    DEFAULT_CSS = """
    Panel { align: center top; background: $background 75%; }
    Panel:ansi { background: transparent; }
    Panel > .panel {
        width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $border; border-title-color: $foreground; border-title-style: bold;
        border-subtitle-color: $text-muted; padding: 0 2; margin-top: 2;
    }
    Panel.-short > .panel { margin-top: 0; }
    Panel.-narrow > .panel { padding: 0 1; }
    Panel OptionList { background: transparent; scrollbar-size-vertical: 1; }
    Panel Input { background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", id="panel.close", show=False),
    ]

    _edge: tuple[str, Sequence[Hint]] = ("", ())

    frame: ClassVar[type[Widget]] = Vertical
    heading = ""
    """On the upper edge."""

    max_width: int | None = PANEL_WIDTH
    """Maximal columns, including border and padding; None for the whole width."""

    @property
    def inner_width(self) -> int:
        """Cells of a line between border and padding."""
        columns = self.app.size.width
        return max(20, min(self.max_width or columns, columns) - (4 if columns < NARROW else 6))

    @property
    def list_width(self) -> int:
        """Cells of a line without the scroll bar."""
        return self.inner_width - 1

    def compose(self) -> ComposeResult:
        """The frame with its content."""
        with self.frame(classes="panel") as frame:
            frame.styles.max_width = self.max_width
            frame.border_title = Content(plain(self.heading))
            yield from self.body()

    @abstractmethod
    def body(self) -> ComposeResult:
        """What is in the frame."""

    def set_title(self, text: str) -> None:
        """Write on the upper edge. Names are untrusted: Textual reads a string there as markup."""
        self.query_one(".panel").border_title = Content(plain(text))

    def set_keys(self, *hints: Hint, before: str = "") -> None:
        """Show `before` and keys on the lower edge: as many as fit, and always the last one. They can be clicked."""
        self._edge = (before, hints)
        if self.is_mounted:
            self._draw_keys()

    @on(events.Mount)
    @on(events.Resize)
    def _draw_keys(self) -> None:
        before, hints = self._edge
        width = min(self.max_width or self.app.size.width, self.app.size.width) - 6  # corners, lines and spaces
        keys = _fitting([_key_label(self, hint) for hint in hints], width - len(before))
        self.query_one(".panel").border_subtitle = Content.assemble(before, keys)

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        """Call something after the next refresh, unless the panel is closed by then: its widgets are gone."""

        def call_if_open() -> Any:
            return callback(*args, **kwargs) if self in self.app.screen_stack else None

        return super().call_after_refresh(call_if_open)

    held: list[events.Key] | None = None
    """Keys that wait for the list they act on; None if there is nothing to wait for."""

    def hold(self, event: events.Key) -> bool:
        """Keep a key until there is a list, if it needs one: not one that types, closes the panel or is the app's."""
        if self.held is None or (active := self.active_bindings.get(event.key)) is None:
            return False
        if active.binding.action in ("close", "screen.copy_text") or isinstance(active.node, App | Input):
            return False
        self.held.append(event)
        return True

    def listed(self) -> None:
        """Call this once there is a list: the keys that wait for it are pressed, before any later one."""
        if self.held is not None:
            self.app.call_later(self._press_held)

    async def _press_held(self) -> None:
        held, self.held = self.held or [], None
        for event in held if self in self.app.screen_stack else ():
            await self.app.on_event(event)

    async def on_event(self, event: events.Event) -> None:
        """Let nothing fail once the panel or the app is closed: Textual removes widgets before the queue ends."""
        try:
            await super().on_event(event)
        except (NoMatches, ScreenStackError):
            if self in self.app.screen_stack:
                raise

    def action_copy_text(self) -> None:
        """ctrl+c: copy the selection, or without one do what esc does."""
        try:
            super().action_copy_text()
        except SkipAction:
            self.call_next(self.run_action, "close")

    def action_close(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def follow(self) -> None:
        """The session has changed; panels that show it redraw themselves."""


class LongText(VerticalScroll, can_focus=False):
    """A text above answers. `read` is set once its end has been on screen: agreeing requires reading it."""

    read = var(False)

    BINDINGS: ClassVar[list[BindingType]] = []

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Note whether that was the end."""
        super().watch_scroll_y(old_value, new_value)
        self._look()

    def on_resize(self) -> None:
        """The end may be visible at once."""
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        self.read = self.read or (self.size.height > 0 and self.scroll_offset.y >= self.max_scroll_y)

    def page(self, pages: int) -> None:
        """Scroll by this many heights, less one line."""
        self.scroll_relative(y=pages * max(1, self.size.height - 1), animate=False)

    @property
    def hint(self) -> str:
        """The key to read on, shown before a panel's keys."""
        if not self.read:
            return "page down first   "
        return "page down more   " if self.max_scroll_y else ""


class CopyingApp(App[None]):
    """An app that copies by every available way, whatever triggers it: a key, a selection, a text field."""

    @cached_property
    def _one_copy(self) -> asyncio.Lock:
        """Serialise the tools, so that the last copy wins."""
        return asyncio.Lock()

    def copy_to_clipboard(self, text: str, name: str = "") -> None:
        """Copy `text`, called `name`, by escape sequence and by the system's tool, and show which of them worked."""
        text = clean_copied(text)
        super().copy_to_clipboard(text.encode("utf-8", "replace").decode())

        async def by_tool() -> None:
            async with self._one_copy:
                tool = await run_copy_tool(text)
            self.notify(copied_line(name, len(text), tool), markup=False)

        self.run_worker(by_tool(), group="copy", exit_on_error=False)


# -- the keys of a panel ---------------------------------------------------------------------------------------------

Hint: TypeAlias = tuple[str, str, str]
"""A key, its label, and the screen's action (or one behind `app.` or `focused.`)."""

CLOSE: Hint = ("esc", "close", "close")
BACK: Hint = ("esc", "back", "close")


class KeyLine(Static):
    """The line of a panel's keys, or a note in their place. They can be clicked, but don't look like links."""

    def __init__(self, classes: str) -> None:
        super().__init__("", classes=classes, markup=False)
        self.set_reactive(Static.auto_links, False)


def key_now(screen: Screen[Any], key: str, action: str) -> str:
    """The key bound to `action` on `screen`: `key`, or the person's own setting."""
    bound = screen.active_bindings
    named = bound.get(key.replace("^", "ctrl+").replace("esc", "escape"))
    if named is not None and named.binding.action == action:
        return key
    others = (name for name, active in bound.items() if active.binding.action == action and active.binding.id)
    return next((name.replace("ctrl+", "^").replace("escape", "esc") for name in others), key)


def key_line(screen: Screen[Any], hints: Sequence[Hint], width: int) -> Content:
    """`m messages   h history …` in `width` cells; if narrow, as many as fit, and always the last one.

    Clicking one has the same effect.
    """
    return _fitting([_key_label(screen, hint, "bold $primary", "$text-muted") for hint in hints], width)


def _fitting(labels: list[Content], width: int) -> Content:
    gap = "   " if sum(label.cell_length + 3 for label in labels) <= width else "  "
    while len(labels) > 1 and Content(gap).join(labels).cell_length > width:
        labels.pop(-2)
    return Content(gap).join(labels)


def _key_label(screen: Screen[Any], hint: Hint, key_style: str = "", word_style: str = "") -> Content:
    key, word, action = hint
    key = key_now(screen, key, action.removeprefix("focused."))
    label = Content.assemble((key, key_style), (f" {word}", word_style))
    return label.stylize(Style.from_meta({"@click": action if "." in action else f"screen.{action}"}))
