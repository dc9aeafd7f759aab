"""Scripted summaries of a fake session: four characters a token, refused above a limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from tui.chat.compaction.summaries import StandingSummary, Subject, SummaryDraft, Weight
from tui.chat.compaction.summarize import SummaryFailedError
from tui.chat.conversation.events import CompactionFinished
from tui.context.reduction.checkpoints import CompactionRecord, SummaryEdit
from tui.context.reduction.compaction import Summarise
from tui.context.reduction.compaction_rules import CompactionRefusedError
from tui.context.usage.limits import Budget, ModelLimits
from tui.context.usage.usage import Basis, ContextUsage
from tui.messages import Message, Text

PLAN = Summarise("m1", "m9", (Message("user", (Text("old"),), id="m1"),) * 142, ("m3", "m4"), (), 2_000, 20_000)
USAGE = ContextUsage(
    "s1", "p", "m", ModelLimits(None), Budget(None, None, None, None), 121_400, 122_000, "exact",
    Basis(None, None, None, None, 0, None, 1.0, None, 0, 0, 0), (), None, None, None, None, None, None,
)  # fmt: skip
RECORD = CompactionRecord("c1", 0.0, 121_400, 18_300, 142, "m1", "m9", "m9s")


@dataclass
class FakeSummaries:
    """Drafts are taken from `texts` in turn; a text of more than `most` characters is refused."""

    texts: list[str] = field(default_factory=lambda: ["Goal: fix the parser."])
    most: int = 4_000
    gate: asyncio.Event | None = None
    failure: str = ""
    asked: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    in_force: StandingSummary | None = None
    cancelled: bool = False
    crashed: str = ""  # what `kept` finds

    async def draft(self, instructions: str = "") -> SummaryDraft:
        """The next text, once the gate is open."""
        self.asked.append(instructions)
        self.cancelled = False
        if self.gate is not None:
            await self.gate.wait()
        if self.failure or self.cancelled:
            raise SummaryFailedError(self.failure or "Compaction cancelled")
        return SummaryDraft(PLAN, USAGE, self.texts.pop(0) if len(self.texts) > 1 else self.texts[0], "stamp")

    def standing(self, message_id: str = "") -> StandingSummary | None:
        """The one in force."""
        found = self.in_force
        return found if found is not None and message_id in ("", found.message.id) else None

    async def weigh(self, subject: Subject, text: str) -> Weight:
        """By length."""
        tokens = (len(text) + 3) // 4
        problem = f"This summary is too long: {tokens:,} tokens." if len(text) > self.most else ""
        return Weight(tokens, 121_400, 17_000 + tokens, problem)

    async def accept(self, draft: SummaryDraft, text: str) -> CompactionFinished:
        """Keep it."""
        self._check(text)
        self.accepted.append(text)
        message = Message("user", (Text(text),), id="m200", kind="summary", created_at=3.0)
        return CompactionFinished(142, 121_400, 17_000 + len(text) // 4, message)

    async def edit(self, standing: StandingSummary, text: str) -> tuple[SummaryEdit, Message]:
        """Keep it."""
        self._check(text)
        self.edited.append(text)
        message = replace(standing.message, parts=(Text(text),), id="m300")
        return SummaryEdit("e1", 0.0, "c1", "m300", before=18_300, after=18_900), message

    async def keep(self, text: str) -> None:
        """Keep it."""
        self.crashed = text

    async def kept(self) -> str:
        """What was kept."""
        return self.crashed

    def _check(self, text: str) -> None:
        if len(text) > self.most:
            raise CompactionRefusedError("This summary is too long.")


def standing(text: str = "Goal: fix the parser.") -> StandingSummary:
    """A summary in force."""
    message = Message("user", (Text(text),), id="m9s", kind="summary", created_at=2.0)
    return StandingSummary(RECORD, message, text)
