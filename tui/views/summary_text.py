"""Summaries to read and change: of a pending compaction, and of one in force."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tui.text.numbers import change_percent, plural, tokens_exact

if TYPE_CHECKING:
    from tui.chat.compaction.compactor import CurrentSummary, SummaryDraft, SummaryEffect
    from tui.chat.conversation.events import CompactionFinished
    from tui.chat.turn.session import ChatSession
    from tui.context.reduction.records import SummaryEdit
    from tui.messages import Message


class SummaryText(ABC):
    """A summary while a person edits it. Its methods raise `FAILURES`, each with one line for a person."""

    title: ClassVar[str]
    accept_label: ClassVar[str]
    can_ask: ClassVar[bool] = False  # whether the model can write another one

    def __init__(self, session: ChatSession) -> None:
        self.session = session

    @property
    @abstractmethod
    def text(self) -> str:
        """The text before any change."""

    @abstractmethod
    def about(self, effect: SummaryEffect) -> str:
        """A line on what the summary replaces."""

    @abstractmethod
    async def measure(self, text: str) -> SummaryEffect:
        """The size of the next request with this text."""

    @abstractmethod
    async def accept(self, text: str) -> None:
        """Accept the text."""

    async def ask(self, instructions: str) -> None:
        """Let the model write another one, which is in `text` afterwards."""
        raise NotImplementedError

    def stop(self) -> None:
        """Cancel a running call to the model."""
        self.session.cancel()

    async def save_draft(self, text: str) -> None:
        """Save the person's text for after a crash; "" deletes it."""
        await self.session.summaries.save_draft(text)


class SummaryPreview(SummaryText):
    """The summary of a pending compaction."""

    title = "Compaction, not made yet"
    accept_label = "compact with this"
    can_ask = True

    def __init__(self, session: ChatSession, draft: SummaryDraft) -> None:
        super().__init__(session)
        self._draft = draft
        self.done: CompactionFinished | None = None

    @property
    def text(self) -> str:
        """The model's text."""
        return self._draft.text

    def about(self, effect: SummaryEffect) -> str:
        """How much it replaces; both figures and the summary add up to the next request."""
        plan = self._draft.plan
        what = plural(len(plan.source), "message")
        if plan.cleared:
            what += f" and {plural(len(plan.cleared), 'old tool result')}"
        stay = f"; {len(plan.kept):,} of them stay as they are" if plan.kept else ""
        return f"This takes the place of {what}, {tokens_exact(effect.replaced)} tokens{stay}."

    async def measure(self, text: str) -> SummaryEffect:
        """Measured like every request."""
        return await self.session.summaries.measure(self._draft, text)

    async def ask(self, instructions: str) -> None:
        """Request another one, which is billed too."""
        self._draft = await self.session.summaries.draft(instructions)

    async def accept(self, text: str) -> None:
        """Compact."""
        self.done = await self.session.summaries.accept(self._draft, text)


class SummaryInForce(SummaryText):
    """A summary that is part of every request."""

    title = "Summary"
    accept_label = "keep this"

    def __init__(self, session: ChatSession, current: CurrentSummary) -> None:
        super().__init__(session)
        self._current = current
        self.done: tuple[SummaryEdit, Message] | None = None

    @property
    def text(self) -> str:
        """The current text."""
        return self._current.text

    def about(self, effect: SummaryEffect) -> str:
        """What it replaces."""
        return f"It replaces {plural(self._current.record.messages, 'message')}. /undo undoes a change."

    async def measure(self, text: str) -> SummaryEffect:
        """Measured like every request."""
        return await self.session.summaries.measure(self._current, text)

    async def accept(self, text: str) -> None:
        """Change it, unless it is the same."""
        if text.strip() != self.text:
            self.done = await self.session.summaries.edit(self._current, text)


def figures_line(effect: SummaryEffect) -> str:
    """`next request 121,400 -> ~18,300 tokens (-85 %) · summary ~1,820 tokens`."""
    figures = f"{tokens_exact(effect.before)} tokens"
    if effect.after != effect.before:
        change = change_percent(effect.before, effect.after)
        after = tokens_exact(effect.after, "estimated")
        figures = f"{tokens_exact(effect.before)} -> {after} tokens{f' ({change})' if change else ''}"
    return f"next request {figures} · summary {tokens_exact(effect.summary, 'estimated')} tokens"
