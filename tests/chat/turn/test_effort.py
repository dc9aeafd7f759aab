"""What a model's refusals taught: another effort is sent than the one asked for, and a person is told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.chat.fakes import Answer, ScriptedProvider, Tools, answer, drain, of, open_workspace
from tui.chat.conversation.events import Notice, ReplyFinished
from tui.messages import Request
from tui.providers.base import NO_ANSWER, Capabilities, ProviderError, StreamEnd, StreamEvent, ToolCallDelta
from tui.views.models import effort_text


@dataclass
class Orderly(ScriptedProvider):
    """Learns from its first request that its server wants an answer between a tool's result and a question."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        self.able = replace(self.able, bridges=True)
        async for event in super().stream(request):
            yield event


async def test_what_a_server_wants_between_messages_is_in_the_request_that_was_measured_and_the_next(
    tmp_path: Path,
) -> None:
    calling: Answer = [ToolCallDelta(0, "c", "fetch", "{}"), StreamEnd("tool_calls", "tool_calls")]
    failed: Answer = [ProviderError("bad_request", "not now")]
    provider = Orderly([calling, failed, answer("done")], window=64_000)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        kept = replace(session.conversation.target.capabilities, images=False)  # by what its server refused
        session.conversation.target = replace(session.conversation.target, capabilities=kept)
        await drain(session.send("one"))
        provider.able = Capabilities()  # forgotten
        session.tools.update_offer()
        await drain(session.send("two"))
        assert [message.role for message in provider.requests[-1].messages] == ["user", "assistant", "tool", "user"]
        assert session.conversation.target.capabilities == Capabilities(bridges=True, images=False)
        assert [message.text for message in session.conversation.request().messages[3:]] == [NO_ANSWER, "two", "done"]
        assert (await session.refresh_usage()).source == "exact"


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
