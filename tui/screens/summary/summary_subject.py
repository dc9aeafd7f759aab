"""What the summary panel works on: a compaction that is not made yet, or a summary that is in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tui.text.numbers import change_percent, plural, tokens_exact

if TYPE_CHECKING:
    from tui.chat.compaction.summaries import StandingSummary, Subject, SummaryDraft, Weight
    from tui.chat.conversation.events import CompactionFinished
    from tui.context.reduction.checkpoints import SummaryEdit
    from tui.messages import Message


class SummariesLike(Protocol):
    """The summaries of a session; what they raise has one line for a person."""

    async def draft(self, instructions: str = "") -> SummaryDraft:
        """Let the model summarise the older part; nothing changes."""
        ...

    def standing(self, message_id: str = "") -> StandingSummary | None:
        """The summary in force that is this message, or the newest one."""
        ...

    async def weigh(self, subject: Subject, text: str) -> Weight:
        """What the next request would take with `text` as the summary."""
        ...

    async def accept(self, draft: SummaryDraft, text: str) -> CompactionFinished:
        """Make the compaction."""
        ...

    async def edit(self, standing: StandingSummary, text: str) -> tuple[SummaryEdit, Message]:
        """Put `text` in the place of a summary in force."""
        ...

    async def keep(self, text: str) -> None:
        """Keep what a person has written so far, for after a crash; "" forgets it."""
        ...

    async def kept(self) -> str:
        """What was kept and never decided on."""
        ...


class PanelSubject(Protocol):
    """What the panel asks of the thing it edits."""

    title: str
    accept: str  # what accepting is called
    can_ask: bool  # whether the model can be asked for another one

    @property
    def text(self) -> str:
        """The text as it is now, before any change."""
        ...

    def about(self, weight: Weight) -> str:
        """A line on what the summary stands for."""
        ...

    async def weigh(self, text: str) -> Weight:
        """What the next request would take with this text."""
        ...

    async def ask(self, wish: str) -> None:
        """Have the model write another one, which is in `text` then."""
        ...

    async def put(self, text: str) -> None:
        """Make it so."""
        ...


class DraftSubject:
    """A compaction that is not made yet."""

    title = "Compaction, not made yet"
    accept = "compact with this"
    can_ask = True

    def __init__(self, summaries: SummariesLike, draft: SummaryDraft) -> None:
        self._summaries = summaries
        self._draft = draft
        self.done: CompactionFinished | None = None

    @property
    def text(self) -> str:
        """What the model wrote."""
        return self._draft.text

    def about(self, weight: Weight) -> str:
        """How much it replaces; both figures and the summary add up to the next request."""
        plan = self._draft.plan
        what = plural(len(plan.source), "message")
        if plan.cleared:
            what += f" and {plural(len(plan.cleared), 'old tool result')}"
        stay = f"; {len(plan.kept):,} of them stay as they are" if plan.kept else ""
        return f"This takes the place of {what}, {tokens_exact(weight.replaced)} tokens{stay}."

    async def weigh(self, text: str) -> Weight:
        """By the numbers that decide."""
        return await self._summaries.weigh(self._draft, text)

    async def ask(self, wish: str) -> None:
        """Another call, billed like the first."""
        self._draft = await self._summaries.draft(wish)

    async def put(self, text: str) -> None:
        """Compact."""
        self.done = await self._summaries.accept(self._draft, text)


class StandingSubject:
    """A summary in force."""

    title = "Summary"
    accept = "keep this"
    can_ask = False

    def __init__(self, summaries: SummariesLike, standing: StandingSummary) -> None:
        self._summaries = summaries
        self._standing = standing
        self.done: tuple[SummaryEdit, Message] | None = None

    @property
    def text(self) -> str:
        """As it goes out now."""
        return self._standing.text

    def about(self, weight: Weight) -> str:
        """What it stands for."""
        return f"It stands for {plural(self._standing.record.messages, 'message')}. /undo takes a change back."

    async def weigh(self, text: str) -> Weight:
        """By the numbers that decide."""
        return await self._summaries.weigh(self._standing, text)

    async def ask(self, wish: str) -> None:
        """There is nothing to ask for: what it was made of may be gone from the request."""

    async def put(self, text: str) -> None:
        """Change it, unless it is the same."""
        if text.strip() != self.text:
            self.done = await self._summaries.edit(self._standing, text)


def figures_line(weight: Weight) -> str:
    """`next request 121,400 -> ~18,300 tokens (-85 %) · summary ~1,820 tokens`."""
    figures = f"{tokens_exact(weight.before)} tokens"
    if weight.after != weight.before:
        change = change_percent(weight.before, weight.after)
        figures = (
            f"{tokens_exact(weight.before)} -> ~{tokens_exact(weight.after)} tokens{f' ({change})' if change else ''}"
        )
    return f"next request {figures} · summary ~{tokens_exact(weight.summary)} tokens"
