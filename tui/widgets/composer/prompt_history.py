"""Going back and forth through what was asked before, with the draft kept at the end."""

from __future__ import annotations

from collections.abc import Iterable

LIMIT = 1_000
"""Prompts kept in memory."""


class PromptHistory:
    """A cursor over earlier prompts, oldest first. The place after the last one is the draft."""

    def __init__(self, prompts: Iterable[str] = ()) -> None:
        self._prompts: list[str] = []
        self._draft = ""
        self._edited: dict[int, str] = {}  # what earlier prompts were changed to, by their place
        self.load(prompts)

    def load(self, prompts: Iterable[str]) -> None:
        """Put earlier prompts (oldest first) before those of this run."""
        self._prompts = [*prompts, *self._prompts][-LIMIT:]
        self._at = len(self._prompts)
        self._edited.clear()

    def add(self, prompt: str) -> None:
        """Remember a prompt and go to the end. A repetition of the last one is one entry.

        What is `left` becomes an entry too: an earlier prompt went out in its stead.
        """
        for text in filter(None, (*self.left, prompt)):
            if not self._prompts or self._prompts[-1] != text:
                self._prompts = [*self._prompts, text][-LIMIT:]
        self._at = len(self._prompts)
        self._draft = ""
        self._edited.clear()

    @property
    def left(self) -> list[str]:
        """What was written and is out of sight: the draft, while an earlier prompt is shown, and changes to others."""
        draft = [self._draft] if self._draft and self._at < len(self._prompts) else []
        return [*(text for at, text in self._edited.items() if at != self._at), *draft]

    def _leave(self, current: str) -> None:
        """Keep `current`, which stands where we are, before going elsewhere."""
        if self._at == len(self._prompts):
            self._draft = current
        elif current.strip() and current != self._prompts[self._at]:
            self._edited[self._at] = current
        else:
            self._edited.pop(self._at, None)

    def _here(self) -> str:
        if self._at == len(self._prompts):
            return self._draft
        return self._edited.get(self._at, self._prompts[self._at])

    def back(self, current: str) -> str | None:
        """The prompt before the current place, None at the beginning. `current` is kept: the draft, or a change."""
        if self._at == 0:
            return None
        self._leave(current)
        self._at -= 1
        return self._here()

    def forward(self, current: str) -> str | None:
        """The prompt after the current place, the draft after the last one, None if that is where we are.

        `current` is kept as by `back`.
        """
        if self._at >= len(self._prompts):
            return None
        self._leave(current)
        self._at += 1
        return self._here()
