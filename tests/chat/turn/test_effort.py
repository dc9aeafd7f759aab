"""A wished effort that the model does not take: the answer comes without it, and a person is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chat.fakes import ScriptedProvider, drain, of, open_workspace
from tui.chat.conversation.events import Notice, ReplyFinished
from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent
from tui.providers.effort import Effort
from tui.views.model_words import effort_text


@dataclass
class Choosy(ScriptedProvider):
    """Takes no effort but "low"."""

    effort: Effort = field(default_factory=Effort)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        return self.effort.stream(self._stream, request)

    async def _stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        if request.reasoning not in (None, "low"):
            raise ProviderError("bad_request", "Unsupported value: 'reasoning_effort'", status=400)
        async for event in super().stream(request):
            yield event


async def test_a_refused_effort_is_told_once_and_not_shown_as_if_it_held(tmp_path: Path) -> None:
    provider = Choosy(window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await session.set_reasoning("high")
        assert not session.reasoning_refused
        first = await drain(session.send("one"))
        told = [event.text for event in of(Notice, first)]
        assert told == ["This model takes no reasoning effort 'high', its server says; asked without it"]
        assert isinstance(first[first.index(of(Notice, first)[0]) + 1], ReplyFinished)
        assert (session.reasoning, session.reasoning_refused) == ("high", True)
        assert of(Notice, await drain(session.send("two"))) == []
        await session.set_reasoning("low")
        assert not session.reasoning_refused
        await drain(session.send("three"))
        assert [request.reasoning for request in provider.requests] == [None, None, "low"]


def test_what_thinking_says() -> None:
    assert effort_text(None, refused=False) == "Reasoning effort: as the provider likes."
    assert effort_text("low", refused=False) == "Reasoning effort: low."
    assert (
        effort_text("off", refused=True) == "Reasoning effort: off, which this model refused: it is asked without it."
    )
