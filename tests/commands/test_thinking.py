"""`/thinking`."""

from __future__ import annotations

import pytest

from tests.chat.fakes import ScriptedProvider
from tests.commands.scripted_ui import Commands
from tui.providers.dialects.dialect import Style


async def test_the_effort_is_shown_and_changed(commands: Commands) -> None:
    assert await commands.output("/thinking") == "Reasoning effort: provider default."
    assert await commands.output("/thinking HIGH") == "Reasoning effort: high."
    assert commands.session.conversation.target.reasoning == "high"
    await commands.run("/thinking default")
    assert commands.session.conversation.target.reasoning is None


async def test_what_is_no_effort_is_refused(commands: Commands) -> None:
    assert await commands.refusal("/thinking lots") == (
        "/thinking takes off, minimal, low, medium, high, xhigh, max or default, not 'lots'."
    )
    assert "/thinking default" in await commands.completions("/thinking ")


async def test_only_what_the_model_takes_is_offered_and_what_is_sent_is_said(
    commands: Commands, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(provider), "efforts", lambda self, model: ("low", "high"))
    monkeypatch.setattr(
        type(provider), "effort_sent", lambda self, model, wish: Style(efforts=("low", "high")).effort(wish)
    )
    offered = await commands.completions("/thinking ")
    assert [line.split()[1] for line in offered] == ["low", "high", "default"]
    assert await commands.output("/thinking off") == (
        "Reasoning effort: off. This model does not take it: low is sent."
    )
