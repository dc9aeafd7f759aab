"""`/compact`."""

from __future__ import annotations

from tests.chat.fakes import ScriptedProvider, answer, of
from tests.commands.scripted_ui import Commands
from tui.chat.compaction.compactor import SummaryDraft
from tui.chat.conversation.events import CompactionFinished, CompactionStarted, Notice, UsageChanged
from tui.providers.base import ProviderError


async def test_it_compacts_with_instructions(long_conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("Goal: learn about boats."))
    ui = await long_conversation.run("/compact keep the plan")
    [done] = of(CompactionFinished, ui.events)
    assert done.record.after < done.record.before
    assert "keep the plan" in str(provider.requests[-1].messages[-1])


async def test_a_preview_counts_once_it_is_accepted(long_conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("Goal: learn about boats."))
    ui = await long_conversation.run("/compact --preview mind the gulls", "Boats, and 9 gulls.")
    [preview] = ui.questions
    assert isinstance(preview, SummaryDraft) and preview.text == "Goal: learn about boats."
    assert "mind the gulls" in str(provider.requests[-1].messages[-1])
    assert [type(event) for event in ui.events] == [CompactionStarted, CompactionFinished, UsageChanged]
    current = long_conversation.session.compactor.current_summary()
    assert current is not None and current.text == "Boats, and 9 gulls."


async def test_a_preview_that_is_left_changes_nothing(long_conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append(answer("Goal: learn about boats."))
    before = list(long_conversation.session.messages)
    ui = await long_conversation.run("/compact --preview", None)
    assert [notice.text for notice in of(Notice, ui.events)] == ["Not compacted. Nothing was changed."]
    assert (
        list(long_conversation.session.messages) == before
        and long_conversation.session.compactor.current_summary() is None
    )


async def test_a_preview_that_fails_says_why(long_conversation: Commands, provider: ScriptedProvider) -> None:
    provider.script.append([ProviderError("not_found", "The server is down")])
    ui = await long_conversation.run("/compact --preview")
    [notice] = of(Notice, ui.events)
    assert "The server is down" in notice.text and notice.text.endswith("Nothing was changed.")


async def test_an_option_that_is_none_is_refused(long_conversation: Commands) -> None:
    assert await long_conversation.refusal("/compact --foo") == "/compact has the option --preview, not --foo."


async def test_the_option_is_offered_once_it_is_begun(commands: Commands) -> None:
    assert await commands.completions("/compact ") == []
    assert await commands.completions("/compact --") == ["/compact --preview"]
