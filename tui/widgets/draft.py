"""The content of a prompt, independent of the screen: large pastes, dropped files, earlier prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tui.text.numbers import plural, size_text

FOLD_CHARACTERS = 2_000
FOLD_LINES = 24
"""A paste longer than either becomes a chip."""

_FILE = re.compile(r"(?:/|~/|file:///).*\.(?:png|jpe?g|gif|webp|pdf)", re.IGNORECASE)


def dropped_files(text: str) -> list[str]:
    """The images and PDFs if `text` consists of paths only, as terminals paste them when files are dropped."""
    if len(text) > 4_000 or not text.strip() or "\n" in text.strip():
        return []
    import shlex  # not before the first frame
    from urllib.parse import unquote

    try:
        words = shlex.split(text)
    except ValueError:  # an unbalanced quotation mark
        return []
    if not all(_FILE.fullmatch(word) and '"' not in word for word in words):
        return []
    return [unquote(word.removeprefix("file://")) if word.startswith("file://") else word for word in words]


class PasteChips:
    """Large pastes of one draft, each shown as a label (a chip). A label that was edited is plain text."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """The label of a large `text`, which is stored; a small one itself."""
        lines = text.count("\n") + 1
        if len(text) <= FOLD_CHARACTERS and lines <= FOLD_LINES:
            return text
        size = size_text(len(text.encode("utf-8", "surrogatepass")))
        label = f"[paste {len(self._texts) + 1}: {plural(lines, 'line')}, {size}]"
        self._texts[label] = text
        return label

    def expand(self, draft: str) -> str:
        """The draft with every label replaced by its text (once through: a paste may quote a label)."""
        if not self._texts:
            return draft
        return self._pattern().sub(lambda match: self._texts[match.group()], draft)

    def split(self, draft: str) -> tuple[str, list[str]]:
        """The typed text, and the pasted texts in it: counted separately, so that a key costs only the typed text."""
        if not self._texts:
            return draft, []
        pattern = self._pattern()
        return pattern.sub("", draft), [self._texts[label] for label in pattern.findall(draft)]

    def label_before(self, line: str, column: int) -> str | None:
        """The label that ends at `column` of `line`, if any."""
        before = line[:column]
        return next((label for label in self._texts if before.endswith(label)), None)

    def clear(self) -> None:
        """Forget every text: the draft was sent or discarded."""
        self._texts.clear()

    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(label) for label in self._texts))


MAX_PROMPTS = 1_000
"""Prompts kept in memory."""


class PromptHistory:
    """A cursor over earlier prompts, oldest first. The position after the last one is the draft."""

    def __init__(self, prompts: Iterable[str] = ()) -> None:
        self._prompts: list[str] = []
        self._at = 0
        self._edited: dict[int, str] = {}  # by position: the draft, and edits of earlier prompts
        self.load(prompts)

    def load(self, prompts: Iterable[str]) -> None:
        """Put earlier prompts (oldest first) before those of this run. The present position stays."""
        before = len(self._prompts)
        self._prompts = [*prompts, *self._prompts][-MAX_PROMPTS:]
        added = len(self._prompts) - before
        self._at += added
        self._edited = {at + added: text for at, text in self._edited.items()}

    def add(self, prompt: str) -> None:
        """Add a prompt and go to the end. Repetitions of the last one are merged.

        Texts in `hidden` become entries too: an earlier prompt was sent instead of them.
        """
        for text in filter(None, (*self.hidden, prompt)):
            if not self._prompts or self._prompts[-1] != text:
                self._prompts = [*self._prompts, text][-MAX_PROMPTS:]
        self._at = len(self._prompts)
        self._edited.clear()

    @property
    def hidden(self) -> list[str]:
        """Texts that are out of sight: the draft, while an earlier prompt is shown, and edits of others."""
        return [text for at, text in sorted(self._edited.items()) if at != self._at]

    def back(self, current: str) -> str | None:
        """The prompt before the present position, None at the beginning. `current` is kept: the draft, or an edit."""
        return self._move(-1, current) if self._at else None

    def forward(self, current: str) -> str | None:
        """The prompt after the present position, the draft after the last one, None at the draft.

        `current` is kept as by `back`.
        """
        return self._move(1, current) if self._at < len(self._prompts) else None

    def _move(self, step: int, current: str) -> str:
        if current.strip() and self._prompts[self._at : self._at + 1] != [current]:
            self._edited[self._at] = current
        else:
            self._edited.pop(self._at, None)
        self._at += step
        return self._edited.get(self._at, self._prompts[self._at] if self._at < len(self._prompts) else "")
