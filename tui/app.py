"""ChatApp: wires up themes, keys and the chat screen."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.actions import ActionParseResult
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandList, CommandPalette
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.driver import Driver
from textual.events import Event, Key, Mount, Paste
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

from tui import commands
from tui.screens.base import NARROW, SHORT, CopyingApp, GuardedScreen, Panel
from tui.screens.chat.screen import ChatScreen, OpenWorkspace
from tui.terminal.input import use_terminal_parser
from tui.terminal.process import ENDED, ENDING, on_interrupt, on_signals
from tui.terminal.screen import SafeLines, ScreenChanges, is_behind, use_lasting_driver
from tui.widgets.themes import DEFAULT_THEME, ThemeError, context_variables, find_theme, shipped_theme

if TYPE_CHECKING:
    from tui.config.settings import Settings
    from tui.terminal.process import EarlyTerminal

log = logging.getLogger(__name__)

SAVE_TIMEOUT = 5.0
"""Seconds for storing an answer and a draft after the program has failed."""

CATCH_UP = 0.1
"""Seconds after which a terminal that takes no output is looked at again."""

SECOND_PRESS = 2.0
"""Seconds in which a second ctrl+c leaves."""


_TEXT = frozenset({"Cf", "Zs", "Co", "Cn"})
"""Unicode categories of text that `str.isprintable` rejects: joiners, spaces, private use, newer than this Python."""


def unprinted(character: str | None) -> str:
    """A typed character that Textual takes for unprintable and would drop; "" for all others.

    The joiner in an emoji, the non-joiner of Persian, the space of Chinese and Japanese, a no-break space. It is
    handled as a paste, which every text widget accepts.
    """
    if character is None or len(character) != 1 or character.isprintable():
        return ""
    return character if unicodedata.category(character) in _TEXT else ""


class LeftThreads(ThreadPoolExecutor):
    """Threads that are left alone at the end: counting or drawing some megabytes takes seconds.

    What has to be stored is stored by then. `streams.exit_code` ends the process.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Begin nothing more."""
        super().shutdown(wait=False, cancel_futures=True)


class GuardedPalette(CommandPalette, GuardedScreen[None]):
    """The command palette, without three errors of Textual 8.2.8.

    A page of a list that is not laid out yet raises `KeyError`, a search that goes on after it was closed `NoMatches`,
    and closing it before it is mounted `IndexError`.
    """

    def on_mount(self, event: Mount) -> None:
        """Do nothing once it is closed."""
        if self not in self.app.screen_stack:
            event.prevent_default()

    def run_worker(self, work: Any, *args: Any, **options: Any) -> Worker[Any]:
        """Run a search."""

        async def search() -> None:
            with suppress(NoMatches):
                await work()

        return super().run_worker(search, *args, **options)

    def _action_command_list(self, action: str) -> None:
        if not action.startswith("page_") or self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


class ChatApp(CopyingApp):
    """The program on screen. `open_workspace` is awaited after the first frame."""

    TITLE = "chatctx"
    ENABLE_COMMAND_PALETTE = True
    PAUSE_GC_ON_SCROLL = True
    NOTIFICATION_TIMEOUT = 4

    CSS = """
    ToastRack { dock: top; align: right top; margin: 1 1 0 0; }
    Panel ToastRack { dock: bottom; align: right bottom; margin: 0 1 0 0; }
    Toast { width: auto; max-width: 90%; padding: 0 1; margin-top: 0; }
    OptionList { min-width: 8; }  /* Textual can't wrap into less than padding and scroll bar leave */
    CommandPalette > Vertical { background: $surface; }
    CommandPalette #--input { border: hkey $border; }
    CommandPalette #--input.--list-visible { border-bottom: none; }
    CommandPalette CommandList { border-bottom: hkey $border; }
    """  # toasts at the top, where they cover no draft; on a panel at the bottom, where they don't cover its content

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Palette of commands", id="app.palette", show=False, priority=True),
        Binding("ctrl+q", "quit", "Quit", id="app.quit", show=False, priority=True),
        Binding("ctrl+c", "interrupt", "Copy, stop, quit", id="app.interrupt", show=False, system=True),
    ]

    def __init__(
        self, settings: Settings, open_workspace: OpenWorkspace, terminal: EarlyTerminal | None = None
    ) -> None:
        self._keys_in_config = settings.keys
        if settings.keys:
            from tui.screens.keymap import start_keys

            settings = replace(settings, keys=start_keys(settings.keys, (ChatScreen, type(self))))
        self.settings = settings
        self._terminal = terminal
        self._pressed = 0.0
        self._leaving: asyncio.Task[None] | None = None
        self._early: list[Event] | None = []  # text typed before the prompt was ready; None once it is
        self._safe_lines = SafeLines()
        self._changes = ScreenChanges()
        self._catching_up: Timer | None = None  # while the terminal takes no output
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (SHORT, "-tall")]
        self.chat = ChatScreen(open_workspace, settings, self.check_keys)
        self._start_theme()

    def get_driver_class(self) -> type[Driver]:
        """The usual driver, with our parser of keys and pastes, for a terminal that may be closed at any time."""
        typed = self._terminal.in_line_mode if self._terminal is not None else 0
        return use_lasting_driver(use_terminal_parser(super().get_driver_class(), typed))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Filter control characters from the lines of all widgets."""
        return [*super().get_line_filters(), self._safe_lines]

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Write only what has changed, once the terminal takes it."""
        if is_behind(self._driver):
            if not self._catching_up:
                self._catching_up = self.set_interval(CATCH_UP, self._draw_what_was_left_out)
            return
        super()._display(screen, None if renderable is None else self._changes.of(renderable))

    def _draw_what_was_left_out(self) -> None:
        if self._catching_up is not None and not is_behind(self._driver):
            self._catching_up.stop()
            self._catching_up = None
            self._repaint()

    def _repaint(self) -> None:
        """Write the whole screen: another program had the terminal."""
        self._changes.forget()
        self.screen.refresh()

    def get_default_screen(self) -> ChatScreen:
        """The conversation."""
        return self.chat

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of `/context` for themes that don't define them."""
        theme = self.current_theme
        background = theme.background or ("#121212" if theme.dark else "#efefef")
        return context_variables(dark=theme.dark, ansi=theme.ansi, background=background)

    def _start_theme(self) -> None:
        """Load only the current theme before the first frame; its errors are reported later."""
        self._theme_complaint, name = "", self.settings.theme
        if name not in self.available_themes:
            try:
                theme = find_theme(name, self.settings.themes_dir)
                if theme is None:
                    self._theme_complaint = f"There is no theme {name!r}: /theme lists them."
            except ThemeError as error:
                theme, self._theme_complaint = None, str(error)
            theme = theme or shipped_theme(DEFAULT_THEME)
            self.register_theme(theme)
            name = theme.name
        self.theme = name

    def on_mount(self) -> None:
        """Apply the person's keys and report theme errors. Signals end the program like ctrl+q."""
        if self._terminal is not None and (attributes := self._terminal.hand_over()) is not None:
            setattr(self._driver, "attrs_before", attributes)  # noqa: B010  # it found the terminal in raw mode
        if not self.is_headless:
            on_signals(ENDING, self._end)
            on_interrupt(self._end)
            asyncio.get_running_loop().set_default_executor(LeftThreads())
        self.app_resume_signal.subscribe(self, lambda _: self._repaint(), immediate=True)
        self.set_keymap(dict(self.settings.keys))
        if self._theme_complaint:
            self.notify(self._theme_complaint, severity="warning", timeout=8, markup=False)

    async def check_keys(self) -> Sequence[str]:
        """Check the keys of the config file in every panel, use those that can be, and return the problems."""
        if not self._keys_in_config:
            return ()
        from tui.screens.keymap import usable_keys

        keys, problems = await asyncio.to_thread(usable_keys, self._keys_in_config, (ChatScreen, type(self)))
        if keys != self.settings.keys:
            self.settings = replace(self.settings, keys=keys)
            self.set_keymap(dict(keys))
            self.chat.use_keys(self.settings)
        return problems

    async def on_event(self, event: Event) -> None:
        """Keep keys pressed before the prompt has the focus, or a panel its list: they would be lost."""
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            if isinstance(event, Key) and (text := unprinted(event.character)):
                event = Paste(text)
            if self._early is not None:
                self._early.append(event)
                return
            if isinstance(event, Key) and isinstance(self.screen, Panel) and self.screen.hold(event):
                return
            if self.screen is self.chat:
                self.chat.redirect_typing(event)  # here, before the next key is dispatched
        await super().on_event(event)

    def on_descendant_focus(self) -> None:
        """Insert the collected keys once the prompt has the focus, before any later key."""
        self.call_later(self._take_early)

    async def _take_early(self) -> None:
        early, self._early = self._early, None
        for event in early or ():
            await super().on_event(event)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette offers the slash commands."""
        for command in commands.all_commands():
            for args, description in (("", command.help), *command.variants):
                line = f"{command.name} {args}".rstrip()
                usage = "" if args or not command.args else command.usage.replace("[", "\\[")  # it is parsed as markup
                yield SystemCommand(f"/{line}: {description}", usage, partial(self._chosen, line, command.needs_args))

    def action_command_palette(self) -> None:
        """Open the palette."""
        if not isinstance(self.screen, GuardedPalette):
            self.push_screen(GuardedPalette())

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action. One whose screen is not drawn yet, or was closed while it waited, ends there."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except NoMatches:
            panel = default_namespace
            if not isinstance(panel, Widget):
                raise
            if panel.is_attached and panel.is_mounted and panel.screen in self.screen_stack:
                raise
            log.info("%s: %r is not on screen", action, panel)
            return True

    def _chosen(self, line: str, needs_args: bool) -> None:
        """A command chosen in the palette: run it, or put it in the empty prompt if it needs an argument."""
        if needs_args and not self.chat.composer.value:
            self.chat.composer.value = f"/{line} "
        else:
            self.chat.action_command(line)

    async def action_quit(self) -> None:
        """Quit; the running answer is stopped and kept, and so is the draft."""
        await asyncio.shield(self._start_leaving())

    def _end(self) -> None:
        """End the program because of a signal, such as that of a terminal that is closed."""
        if self.chat.session is not None:
            self.chat.session.cancel(ENDED)
        self._start_leaving()

    def _start_leaving(self) -> asyncio.Task[None]:
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave())
        return self._leaving

    async def _leave(self) -> None:
        unsaved = await self.chat.leave()
        failed = bool(unsaved or self.chat.broken)
        self.exit(return_code=1 if failed else 0, message=Text(unsaved) if unsaved else None)

    async def action_interrupt(self) -> None:
        """ctrl+c without a selection: stop the answer, else clear the draft, else quit on the second press."""
        chat = self.chat
        if self.screen is not chat:
            return
        if chat.turns.stop():
            return
        if draft := chat.composer.value:
            chat.drafts.remember(draft)
            chat.composer.clear()
            chat.turns.rewind_to = ""
            key = self.settings.key("composer.up", "up")
            self.notify(f"Draft saved: the {key} key brings it back.", markup=False)
            return
        now = time.monotonic()
        if now - self._pressed < SECOND_PRESS:
            await self.action_quit()
            return
        self._pressed = now
        key = self.settings.key("app.interrupt", "ctrl+c")
        self.notify(f"Press {key} again to quit.", timeout=SECOND_PRESS, markup=False)

    def panic(self, *renderables: RenderableType) -> None:
        """End after an error, even if the terminal is gone. Whatever can be stored is stored first."""

        async def end() -> None:
            try:
                async with asyncio.timeout(SAVE_TIMEOUT):
                    await self.chat.leave()
            except Exception:
                log.exception("leaving after an error")
            super(ChatApp, self).panic(*renderables)

        if self._leaving is None:  # otherwise it ends anyway
            self._leaving = asyncio.create_task(end())

    def _handle_exception(self, error: Exception) -> None:
        """End with one line also for errors that would render themselves (a broken style sheet)."""
        super()._handle_exception(RuntimeError(str(error)) if hasattr(error, "__rich__") else error)

    def _fatal_error(self) -> None:
        """End the program after an unhandled error with one line; details are in the log."""
        log.critical("the program ended in an error", exc_info=True)
        self.panic(Text(f"chatctx: {self.chat.one_line(sys.exc_info()[1] or RuntimeError())}"))
