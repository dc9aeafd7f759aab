"""A wished effort that the model does not take: another one is sent, and a person is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from tests.chat.fakes import ScriptedProvider, Tools, answer, drain, of, open_workspace
from tui.chat.conversation.events import Notice, ReplyFinished
from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent
from tui.views.models import effort_text


@dataclass
class Choosy(ScriptedProvider):
    """Learns from its first request that its model takes no effort but "low"."""

    taught: bool = False

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.taught = True
        async for event in super().stream(request):
            yield event

    def effort_sent(self, model: str, wish: str | None) -> str | None:
        return "low" if self.taught and wish is not None else wish

    def learned(self, model: str) -> tuple[str, ...]:
        return ("It takes the reasoning efforts low",) if self.taught else ()


async def test_what_a_refusal_taught_is_told_once_and_not_shown_as_if_the_wish_held(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, Choosy(window=64_000)) as workspace:
        session = await workspace.new_session()
        await session.set_reasoning("high")
        assert session.reasoning_sent == "high"
        first = await drain(session.send("one"))
        assert [event.text for event in of(Notice, first)] == ["m: It takes the reasoning efforts low"]
        assert isinstance(first[first.index(of(Notice, first)[0]) + 1], ReplyFinished)
        assert (session.conversation.target.reasoning, session.reasoning_sent) == ("high", "low")
        assert of(Notice, await drain(session.send("two"))) == []


def test_what_thinking_says() -> None:
    assert effort_text(None, None) == "Reasoning effort: provider default."
    assert effort_text("low", "low") == "Reasoning effort: low."
    assert effort_text("off", "low") == "Reasoning effort: off. This model does not take it: low is sent."
    assert effort_text("high", None) == "Reasoning effort: high, but this model takes none: provider default."


async def test_what_was_learned_of_a_model_is_told_and_can_be_forgotten(tmp_path: Path) -> None:
    no_tools, no_images = (ProviderError("bad_request", f"m does not support {what}") for what in ("tools", "images"))
    provider = ScriptedProvider([[no_tools], [no_images], answer("one"), answer("two")])
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await drain(session.send("go"))
        assert list(session.learned) == [
            "Its server reports no support for tools: none are offered",
            "It refused images: text is sent in their place",
        ]
        await session.forget_learned()
        assert list(session.learned) == []
        await drain(session.send("go on"))
    assert [len(request.tools) for request in provider.requests] == [1, 0, 0, 1]
