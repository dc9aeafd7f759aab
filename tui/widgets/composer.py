"""The prompt, which grows with its text, and the list of completions for what is being typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.document._document import Location
from textual.message import Message
from textual.widget import Widget
from textual.widgets import OptionList, Static, TextArea

from tui.text.cells import clip, cluster_boundary, cluster_end, cluster_start, pad, plain
from tui.text.clean import clean_text
from tui.text.labels import mention_of
from tui.views.view import Option
from tui.widgets.bars import RuleLine
from tui.widgets.draft import PasteChips, PromptHistory, dropped_files
from tui.widgets.fields import TextField


class PromptArea(TextField):
    """The text area. A large paste becomes a label in brackets (`PasteChips`), which is deleted as a whole."""

    DEFAULT_CSS = """
    PromptArea {
        width: 1fr; height: auto; max-height: 10; min-height: 1;
        padding: 0; background: transparent; color: $foreground; scrollbar-size-vertical: 1;
    }
    PromptArea .text-area--placeholder { color: $text-muted; }
    PromptArea .text-area--cursor-line { background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Send", id="composer.send", show=False),
        Binding("shift+enter,ctrl+j,alt+enter", "newline", "New line", id="composer.newline", show=False),
        Binding("ctrl+v", "paste", "Paste text or an image", id="composer.paste", show=False),
        Binding("tab", "complete", "Complete", id="composer.complete", show=False),
        Binding("escape", "close_list", "Close the list", id="composer.close_list", show=False),
        Binding("up", "cursor_up", "Up, earlier prompts", id="composer.up", show=False),
        Binding("down", "cursor_down", "Down, later prompts", id="composer.down", show=False),
    ]

    def __init__(self, composer: Composer) -> None:
        super().__init__(
            placeholder="ask, or / for commands", compact=True, highlight_cursor_line=False, tab_behavior="focus"
        )
        self.composer = composer
        self.chips = composer.chips

    def use_keys(self, set_keys: Mapping[str, str]) -> None:
        """Remove what else the person's keys do in the prompt; `set_keys` has the name of each key's binding."""
        assert self._merged_bindings is not None
        self._bindings = self._merged_bindings.copy()
        for key in set_keys:  # other bindings of these keys would hide those of the screen
            bindings = self._bindings.key_to_bindings.pop(key, [])
            if own := [binding for binding in bindings if binding.id in set_keys.values()]:
                self._bindings.key_to_bindings[key] = own  # the keymap moves them

    def action_submit(self) -> None:
        """Send, or accept the highlighted completion."""
        self.composer.submit()

    def action_newline(self) -> None:
        """Start a new line without sending."""
        self.insert("\n", maintain_selection_offset=False)

    def action_complete(self) -> None:
        """Accept the highlighted completion, or the first, without sending; without a list, go to the next widget."""
        completions = self.composer.completions
        if completions.lags(self.text):
            completions.wanted = self.text  # the letters before the key count, too
        elif (choice := completions.current or next(iter(completions.choices), None)) is not None:
            self.composer.accept(choice)
        else:
            self.screen.focus_next()

    def action_close_list(self) -> None:
        """Close the completions; without a list the screen handles the key."""
        if not self.composer.completions.open:
            raise SkipAction
        self.composer.completions.offer((), self.text)

    def action_cursor_up(self, select: bool = False) -> None:
        """Up in the list; from the first line to the last waiting message or an earlier prompt; else in the text."""
        composer = self.composer
        if select or not (composer.completions.open or self.on_first_line):
            super().action_cursor_up(select)
        elif composer.completions.open:
            composer.completions.move(-1)
        elif composer.queued and not self.text:
            self.post_message(Composer.Recall())
        elif (text := composer.history.back(composer.value)) is not None:
            composer.value = text
            self.move_cursor((0, 0))

    def action_cursor_down(self, select: bool = False) -> None:
        """Down in the list, or from the last line to a later prompt, else in the text."""
        composer = self.composer
        if select or not (composer.completions.open or self.on_last_line):
            super().action_cursor_down(select)
        elif composer.completions.open:
            composer.completions.move(1)
        elif (text := composer.history.forward(composer.value)) is not None:
            composer.value = text

    def on_paste(self, event: events.Paste) -> None:
        """A paste from the terminal: text, paths of dropped files, or nothing if it has an image."""
        event.prevent_default()
        event.stop()
        if event.text:
            self.insert_paste(event.text)
        else:
            self.action_paste()

    def action_paste(self) -> None:
        """Paste what the terminal can't."""
        self.post_message(Composer.PasteWanted())

    def insert_paste(self, text: str) -> None:
        """Insert a paste: fold large text, attach dropped files."""
        text = clean_text(text)
        if files := dropped_files(text):
            for path in files:
                self.mention(path)
        else:
            self.insert(self.chips.fold(text), maintain_selection_offset=False)

    def mention(self, path: str) -> None:
        """Attach a file: its name goes into the text, separated from the words around it."""
        row, column = self.cursor_location
        before = self.document[row][:column]
        space = " " if before and not before[-1].isspace() else ""
        self.insert(f"{space}{clean_text(mention_of(path))} ", maintain_selection_offset=False)

    def get_cursor_left_location(self) -> Location:
        """One grapheme to the left."""
        row, column = self.cursor_location
        return (row, cluster_start(self.document[row], column)) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        """One grapheme to the right."""
        row, column = self.cursor_location
        line = self.document[row]
        return (row, cluster_end(line, column)) if column < len(line) else super().get_cursor_right_location()

    def get_cursor_up_location(self) -> Location:
        """Above, never inside a grapheme."""
        return self._at_boundary(super().get_cursor_up_location())

    def get_cursor_down_location(self) -> Location:
        """Below, never inside a grapheme."""
        return self._at_boundary(super().get_cursor_down_location())

    def get_target_document_location(self, event: events.MouseEvent) -> Location:
        """Under the mouse, never inside a grapheme."""
        return self._at_boundary(super().get_target_document_location(event))

    def _at_boundary(self, location: Location) -> Location:
        row, column = location
        return row, cluster_boundary(self.document[row], column)

    def action_delete_left(self) -> None:
        """Delete a character, or the chip before the cursor."""
        row, column = self.cursor_location
        label = self.chips.label_before(self.document[row], column) if self.selection.is_empty else None
        if label is None:
            super().action_delete_left()
        else:
            self.delete((row, column - len(label)), (row, column), maintain_selection_offset=False)

    @property
    def on_first_line(self) -> bool:
        """Whether the cursor is on the first wrapped line."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    @property
    def on_last_line(self) -> bool:
        """Whether the cursor is on the last wrapped line."""
        return self.wrapped_document.location_to_offset(self.cursor_location).y >= self.wrapped_document.height - 1


class Composer(Widget):
    """Prompt, cost line and completions. Posts what was written; independent of the session."""

    DEFAULT_CSS = """
    Composer { height: auto; layout: vertical; }
    Composer > Horizontal { height: auto; padding: 0 1; }
    Composer .prompt-sign { width: 2; height: 1; color: $primary; text-style: bold; }
    """

    @dataclass
    class Submitted(Message):
        """Enter was pressed on `text` (pastes unfolded), which has left the draft: see `Composer.restore`."""

        text: str

    @dataclass
    class Changed(Message):
        """The draft changed. `typed` is without pastes, `pasted` are these; completion uses `text` and `cursor`."""

        typed: str
        pasted: Sequence[str]
        text: str
        cursor: int

    class Recall(Message):
        """Up was pressed in an empty draft: the last queued message may return to it."""

    class PasteWanted(Message):
        """The content of the system clipboard is requested."""

    def __init__(self) -> None:
        super().__init__()
        self.chips = PasteChips()
        self.history = PromptHistory()
        self.outgoing: list[str] = []  # submitted texts, until the screen has handled them
        self.area = PromptArea(self)
        self.rule = RuleLine()
        self.completions = CompletionList()
        self.queued = False  # whether there is a message for `Recall`

    def compose(self) -> ComposeResult:
        """The list overlays what is above; below it are rule and prompt."""
        yield self.completions
        yield self.rule
        with Horizontal():
            yield Static("›", classes="prompt-sign")
            yield self.area

    @property
    def value(self) -> str:
        """The draft as it would be sent, pastes unfolded."""
        return self.chips.expand(self.area.text)

    @value.setter
    def value(self, text: str) -> None:
        """Replace the draft, the cursor at its end. What is large is folded."""
        self.chips.clear()
        self.area.load_text(self.chips.fold(clean_text(text)))
        self.area.move_cursor(self.area.document.end)

    def clear(self) -> None:
        """Clear the draft."""
        self.completions.offer(())
        self.chips.clear()
        self.area.load_text("")

    def restore(self, text: str) -> None:
        """Put a submitted text that can't be sent before whatever was written since, which begins a new line."""
        self.value = "\n".join(filter(None, (text, self.value)))

    def fit(self, height: int) -> None:
        """Leave space for the other widgets in a window of `height` lines: a longer prompt scrolls."""
        others = 8  # title, a line of conversation, four waiting messages, rule, status
        self.area.styles.max_height = max(2, min(10, height - others))

    def type_text(self, text: str) -> None:
        """Insert text that was typed or pasted elsewhere, at the cursor."""
        self.area.insert(text, maintain_selection_offset=False)

    def focus_prompt(self) -> None:
        """Focus the prompt."""
        self.area.focus()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Post the changed draft."""
        event.stop()
        text = self.area.text
        typed, pasted = self.chips.split(text)
        cursor = len(self.area.get_text_range((0, 0), self.area.cursor_location))
        self.post_message(self.Changed(typed, pasted, text, cursor))

    def submit(self) -> None:
        """Accept the highlighted completion if it changes anything, else send."""
        choice = None if self.completions.lags(self.area.text) else self.completions.current
        if choice is not None and choice.key.strip() != self.area.text.strip():
            self.accept(choice)
            if choice.key.endswith(" "):
                return
        self.completions.offer(())
        if (text := self.value).strip():
            self.clear()  # here rather than in the handler: keys queued behind enter begin the next message
            self.outgoing.append(text)
            self.post_message(self.Submitted(text))

    def on_option_list_option_selected(self, event: CompletionList.OptionSelected) -> None:
        """Accept a clicked completion."""
        event.stop()
        if choice := self.completions.current:
            self.accept(choice)
        self.area.focus()

    def accept(self, choice: Option) -> None:
        """Accept a completion."""
        self.completions.offer(())
        self.area.load_text(clean_text(choice.key))
        before = choice.key[: choice.cursor]
        self.area.move_cursor((before.count("\n"), len(before) - before.rfind("\n") - 1))


ROWS = 8
"""Choices visible at once; the list scrolls."""


def is_completed(draft: str) -> bool:
    """Whether there may be completions: of a command, or of a file after `@`."""
    return draft.startswith("/") or "@" in draft


class CompletionList(OptionList):
    """The choices above the composer. Hidden while there are none."""

    DEFAULT_CSS = """
    CompletionList {
        overlay: screen; constrain: inside inside; display: none;
        width: auto; height: auto; max-height: 8;
        background: $panel; color: $foreground; scrollbar-size-vertical: 1;
    }
    """

    can_focus = False

    def __init__(self) -> None:
        super().__init__(compact=True)
        self.choices: tuple[Option, ...] = ()
        self.text = ""
        self.wanted = ""  # the draft for which tab was pressed before there were choices

    @property
    def open(self) -> bool:
        """Whether it has choices."""
        return bool(self.choices)

    def lags(self, draft: str) -> bool:
        """Whether the choices for `draft` are still to come: it was typed faster."""
        return draft != self.text and (self.open or is_completed(draft))

    @property
    def current(self) -> Option | None:
        """The highlighted choice."""
        return self.choices[self.highlighted] if self.choices and self.highlighted is not None else None

    def offer(self, choices: Sequence[Option], text: str = "") -> None:
        """Show the choices for `text`; an empty list hides it.

        The first one is highlighted, unless it is an argument of which nothing was typed: enter runs the command then.
        """
        chosen = self.current if text == self.text else None  # forget the choice made for other text
        self.text = text
        if not choices and not self.choices:
            return
        self.choices = tuple(choices)
        self.display = self.open
        self.clear_options()
        if not self.open:
            return
        most = 33 if self.app.size.width >= 100 else 28 if self.app.size.width >= 60 else 0
        labels = [plain(choice.label) for choice in choices]  # the syntax of a command is shown whole or not at all
        labels = [label if cell_len(label) <= most else label.partition(" [")[0] for label in labels]
        widest = min(max(most, 28), max(cell_len(label) for label in labels))
        available = max(10, self.app.size.width - widest - 8)
        self.add_options(
            Content.assemble(
                " ", (pad(label, widest), "$foreground"), (f"  {clip(plain(choice.detail), available)} ", "$text-muted")
            )
            for label, choice in zip(labels, choices, strict=True)
        )
        first = None if text.startswith("/") and text.endswith(" ") else 0
        self.highlighted = self.choices.index(chosen) if chosen in self.choices else first
        self.styles.offset = (2, -min(len(choices), ROWS))

    def move(self, step: int) -> None:
        """Move down by `step` choices, wrapping around."""
        if self.open:
            at = -1 if self.highlighted is None and step > 0 else self.highlighted or 0
            self.highlighted = (at + step) % len(self.choices)
