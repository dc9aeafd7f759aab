"""The tools of a running turn on screen: what runs, and the question whether something may."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tui.chat.conversation.events import ApprovalAsked, ToolFinished, ToolStarted
from tui.text.clean import clean_line

if TYPE_CHECKING:
    from tui.screens.chat.chat_parts import ChatParts
    from tui.screens.tools.approval import ApprovalPanel
    from tui.tools.approval import Decision

NAMED = 3  # running tools that are named


class ToolTurn:
    """Follows the tools of one turn after another. `enter` shows what the turn is doing, from when on (`monotonic`)."""

    def __init__(self, screen: ChatParts, enter: Callable[[str, float], None]) -> None:
        self._screen = screen
        self._enter = enter
        self._running: dict[str, list[str]] = {}  # call id -> names (ids may stand twice)
        self._since = 0.0
        self._done = 0
        self._panel: ApprovalPanel | None = None

    def show(self, event: ToolStarted | ToolFinished | ApprovalAsked) -> None:
        """One event."""
        match event:
            case ToolStarted(call_id, name):
                if not self._running and not self._done:
                    self._since = time.monotonic()
                self._running.setdefault(call_id, []).append(clean_line(name))
                self._tell()
            case ToolFinished(call_id):
                names = self._running.get(call_id, [])
                if names:
                    names.pop()
                if not names:
                    self._running.pop(call_id, None)
                self._done += 1
                self._tell()
            case ApprovalAsked():
                self._ask(event)

    def over(self) -> None:
        """The step or the turn has ended: nothing runs, nothing asks."""
        self._running.clear()
        self._done = 0
        if self._panel is not None and self._panel.is_current:
            self._panel.dismiss(None)
        self._panel = None

    def _tell(self) -> None:
        names = [name for group in self._running.values() for name in group]
        if not names or self._panel is not None:  # the question is what the person has to know of
            return
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        done = f" ({self._done} done)" if self._done else ""
        self._enter(f"running {', '.join(names[:NAMED])}{more}{done}", self._since)

    def _ask(self, asked: ApprovalAsked) -> None:
        from tui.screens.tools.approval import ApprovalPanel  # the first frame does not wait for it

        self._enter(f"waiting for your word on {clean_line(asked.call.name)}", time.monotonic())
        if not self._screen.app.app_focus:
            self._screen.app.bell()
        self._panel = ApprovalPanel(asked, self._to_prompt)
        self._screen.app.push_screen(self._panel, partial(self._answered, asked, self._panel))

    def _to_prompt(self, text: str) -> None:
        """What was typed or pasted for the prompt goes there."""
        self._screen.composer.area.insert(text, maintain_selection_offset=False)

    def _answered(self, asked: ApprovalAsked, panel: ApprovalPanel, decision: Decision | None) -> None:
        if self._panel is not panel:
            return  # the turn ended under it
        self._panel = None
        session = self._screen.session
        if decision is None or session is None:
            self._screen.turns.stop()
            return
        session.tools.approve(asked.id, decision)
