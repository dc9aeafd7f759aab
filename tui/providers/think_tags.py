"""Reasoning that a server leaves in the text: `<think>…</think>` at the beginning of an answer. Pure.

Servers without a reasoning parser (llama.cpp with `--reasoning-format none`, older Ollama and LM Studio, plain
proxies) send the model's thinking as text. It is read as reasoning while it streams, so that it is shown, counted and
sent back by the rules for reasoning, and never as text of the answer (facts, reasoning round trip).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from tui.providers.base import ProviderError, ReasoningDelta, ReasoningMeta, StreamEvent, TextDelta, UsageUpdate
from tui.providers.surrogates import whole_characters

# Opening marks and what closes them: DeepSeek R1, Qwen and most others; Kimi; Gemini's Chat endpoint.
MARKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "◁think▷": "◁/think▷",
}


class ThinkTags:
    """Splits the text of one answer, piece by piece, into reasoning and the rest.

    Only a mark at the very beginning counts (blanks before it are dropped with it): an answer that talks about
    `<think>` stays as it is. What may become a mark is held back until it is one or can't be. A thought that is never
    closed is reasoning to the end.
    """

    def __init__(self) -> None:
        self._pending = ""  # text that may be a mark, or a part of one
        self._close = ""  # the mark that ends the thought that is open
        self._begun = False  # something of the thought was said
        self._done = False  # from here on it is text
        self._blank = False  # the blank lines behind a thought are not the answer's

    def feed(self, text: str) -> Iterator[TextDelta | ReasoningDelta]:
        """Events of one piece of text."""
        if self._done and not self._blank:
            yield TextDelta(text)
            return
        self._pending += text
        if not self._done and not self._close:
            self._open()
        if self._close and not self._done:
            yield from self._think()
        if self._done:
            text_left = self._pending.lstrip() if self._blank else self._pending
            self._blank = self._blank and not text_left
            self._pending = ""
            if text_left:
                yield TextDelta(text_left)

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was held back when the answer ended, or something else than text came."""
        pending, self._pending = self._pending, ""
        if pending and self._close and not self._done:
            yield ReasoningDelta(pending)
        elif pending and not self._blank:
            yield TextDelta(pending)
        if not self._close:
            self._done = True

    def _open(self) -> None:
        start = self._pending.lstrip()
        for mark, close in MARKS.items():
            if start.startswith(mark):
                self._close, self._pending = close, start[len(mark) :]
                return
        self._done = not any(mark.startswith(start) for mark in MARKS)

    def _think(self) -> Iterator[ReasoningDelta]:
        pending = self._pending if self._begun else self._pending.lstrip("\n")
        thought, mark, rest = pending.partition(self._close)
        if mark:
            self._pending, self._done, self._blank = rest, True, True
            thought = thought.rstrip()
        else:
            keep = _beginning_of(self._close, thought)
            thought, self._pending = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            self._begun = True
            yield ReasoningDelta(thought)


class Thoughts:
    """Passes an answer's events on, with a thought that the server left in its text read as reasoning.

    Where the server tells reasoning and text apart itself, all text is text. `on` False passes everything on as it is.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._tags = ThinkTags() if on else None
        self._block: int | None = None

    def read(self, events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
        """`events`, or what they are in truth."""
        for event in events:
            match event:
                case TextDelta(text, block) if self._tags is not None:
                    self._block = block
                    yield from self._placed(self._tags.feed(text))
                case UsageUpdate():
                    yield event
                case _:
                    yield from self.held()
                    if isinstance(event, ReasoningDelta | ReasoningMeta):
                        self._tags = None
                    yield event

    def held(self) -> Iterator[StreamEvent]:
        """Text that waited to become a mark and does not any more: the answer goes on otherwise, or broke off."""
        if self._tags is not None:
            yield from self._placed(self._tags.finish())

    def _placed(self, events: Iterable[TextDelta | ReasoningDelta]) -> Iterator[StreamEvent]:
        for event in events:
            yield TextDelta(event.text, self._block) if isinstance(event, TextDelta) else event


async def with_thoughts(stream: AsyncGenerator[StreamEvent, None], *, on: bool) -> AsyncGenerator[StreamEvent, None]:
    """`stream` in whole characters, and as `Thoughts` reads it; what that holds back comes also where it breaks off.

    Raises `ProviderError`.
    """
    thoughts = Thoughts(on=on)
    async with aclosing(whole_characters(stream)) as events:
        try:
            async for event in events:
                for read in thoughts.read((event,)):
                    yield read
        except ProviderError:
            for read in thoughts.held():
                yield read
            raise
    for read in thoughts.held():
        yield read


def _beginning_of(mark: str, text: str) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)
