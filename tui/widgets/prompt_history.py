"""Going back and forth through earlier prompts, with the draft kept at the end."""

from __future__ import annotations

from collections.abc import Iterable

LIMIT = 1_000
"""Prompts kept in memory."""


class PromptHistory:
    """A cursor over earlier prompts, oldest first. The position after the last one is the draft."""

    def __init__(self, prompts: Iterable[str] = ()) -> None:
        self._prompts: list[str] = []
        self._draft = ""
        self._edited: dict[int, str] = {}  # edits of earlier prompts, by their position
        self.load(prompts)

    def load(self, prompts: Iterable[str]) -> None:
        """Put earlier prompts (oldest first) before those of this run."""
        self._prompts = [*prompts, *self._prompts][-LIMIT:]
        self._at = len(self._prompts)
        self._edited.clear()

    def add(self, prompt: str) -> None:
        """Add a prompt and go to the end. Repetitions of the last one are merged.

        Texts in `hidden` become entries too: an earlier prompt was sent instead of them.
        """
        for text in filter(None, (*self.hidden, prompt)):
            if not self._prompts or self._prompts[-1] != text:
                self._prompts = [*self._prompts, text][-LIMIT:]
        self._at = len(self._prompts)
        self._draft = ""
        self._edited.clear()

    @property
    def hidden(self) -> list[str]:
        """Texts that are out of sight: the draft, while an earlier prompt is shown, and edits of others."""
        draft = [self._draft] if self._draft and self._at < len(self._prompts) else []
        return [*(text for at, text in self._edited.items() if at != self._at), *draft]

    def _remember(self, current: str) -> None:
        """Keep `current`, the text at the present position, before moving."""
        if self._at == len(self._prompts):
            self._draft = current
        elif current.strip() and current != self._prompts[self._at]:
            self._edited[self._at] = current
        else:
            self._edited.pop(self._at, None)

    def _shown(self) -> str:
        if self._at == len(self._prompts):
            return self._draft
        return self._edited.get(self._at, self._prompts[self._at])

    def back(self, current: str) -> str | None:
        """The prompt before the present position, None at the beginning. `current` is kept: the draft, or an edit."""
        if self._at == 0:
            return None
        self._remember(current)
        self._at -= 1
        return self._shown()

    def forward(self, current: str) -> str | None:
        """The prompt after the present position, the draft after the last one, None at the draft.

        `current` is kept as by `back`.
        """
        if self._at >= len(self._prompts):
            return None
        self._remember(current)
        self._at += 1
        return self._shown()
