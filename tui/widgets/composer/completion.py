"""The list of completions for what is being typed. It overlays the transcript and never takes the focus."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.text.cells import clip, pad, plain
from tui.views.view import Choice

ROWS = 8
"""Choices visible at once; the list scrolls."""


class CompletionList(OptionList):
    """The choices above the composer. Hidden while there are none."""

    DEFAULT_CSS = """
    CompletionList {
        overlay: screen; constrain: inside inside; display: none;
        width: auto; max-width: 100%; height: auto; max-height: 8;
        background: $panel; color: $foreground; scrollbar-size-vertical: 1;
    }
    """

    can_focus = False

    def __init__(self) -> None:
        super().__init__(compact=True)
        self.choices: tuple[Choice, ...] = ()
        self.words = ""

    @property
    def open(self) -> bool:
        """Whether it has choices."""
        return bool(self.choices)

    @property
    def current(self) -> Choice | None:
        """The highlighted choice."""
        return self.choices[self.highlighted] if self.choices and self.highlighted is not None else None

    def current_for(self, words: str) -> Choice | None:
        """The highlighted choice, if the list was made for `words`: it may lag behind fast typing."""
        return self.current if words == self.words else None

    def offer(self, choices: Sequence[Choice], words: str = "") -> None:
        """Show the choices for `words`, the first one highlighted; an empty list hides it."""
        chosen = self.current if words == self.words else None  # forget the choice made for other words
        self.words = words
        self.choices = tuple(choices)
        self.display = self.open
        self.clear_options()
        if not self.open:
            return
        labels = [plain(choice.label) for choice in choices]
        if self.app.size.width < 60:
            labels = [label.partition(" [")[0] for label in labels]
        widest = min(28, max(cell_len(label) for label in labels))
        room = max(10, self.app.size.width - widest - 8)
        self.add_options(
            Option(
                Content.assemble(
                    " ",
                    (pad(label, widest), "$foreground"),
                    "  ",
                    (clip(plain(choice.help), room) + " ", "$text-muted"),
                )
            )
            for label, choice in zip(labels, choices, strict=True)
        )
        self.highlighted = self.choices.index(chosen) if chosen in self.choices else 0
        self.styles.offset = (2, -min(len(choices), ROWS))

    def move(self, step: int) -> None:
        """Move down by `step` choices, wrapping around."""
        if self.open:
            self.highlighted = ((self.highlighted or 0) + step) % len(self.choices)
