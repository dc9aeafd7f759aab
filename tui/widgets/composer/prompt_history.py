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
        self.load(prompts)

    def load(self, prompts: Iterable[str]) -> None:
        """Put earlier prompts (oldest first) before those of this run."""
        self._prompts = [*prompts, *self._prompts][-LIMIT:]
        self._at = len(self._prompts)

    def add(self, prompt: str) -> None:
        """Remember a prompt and go to the end. A repetition of the last one is one entry.

        A draft that was left for an earlier prompt, which went out in its stead, becomes an entry too.
        """
        left = self._draft if self._at < len(self._prompts) else ""
        for text in filter(None, (left, prompt)):
            if not self._prompts or self._prompts[-1] != text:
                self._prompts = [*self._prompts, text][-LIMIT:]
        self._at = len(self._prompts)
        self._draft = ""

    def back(self, current: str) -> str | None:
        """The prompt before the current place, None at the beginning. `current` is kept if it is the draft."""
        if self._at == 0:
            return None
        if self._at == len(self._prompts):
            self._draft = current
        self._at -= 1
        return self._prompts[self._at]

    def forward(self) -> str | None:
        """The prompt after the current place, the draft after the last one, None if that is where we are."""
        if self._at >= len(self._prompts):
            return None
        self._at += 1
        return self._draft if self._at == len(self._prompts) else self._prompts[self._at]
