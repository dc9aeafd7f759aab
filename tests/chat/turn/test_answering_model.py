"""A server names the model that answers: a release of the one that was asked, or another one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.chat.fakes import FakeWorkspace, ScriptedProvider, answer, of, open_workspace
from tui.chat.conversation.events import Notice
from tui.chat.turn.session import ChatSession
from tui.chat.usage_report import by_model
from tui.context.usage.limits import ModelLimits
from tui.providers.base import ModelNamed

ANSWERING = "claude-sonnet-4-5-20250929"


@dataclass
class Router(ScriptedProvider):
    """Says of the model it asks another window than of itself."""

    async def limits(self, model: str) -> ModelLimits | None:
        return ModelLimits(6_000 if model == ANSWERING else 1_000_000, source="probe")


def named(model: str) -> Router:
    return Router(fallback=lambda _: [ModelNamed(model), *answer()])


async def told(session: ChatSession, text: str) -> list[str]:
    return [event.text for event in of(Notice, [event async for event in session.send(text)])]


def filed_under(workspace: FakeWorkspace) -> set[str]:
    """The models that measurements were made of."""
    rows = workspace.store.query("SELECT DISTINCT model FROM measurements", ())
    return {str(model) for (model,) in rows}


async def test_of_another_family_it_is_said_once_and_all_is_filed_under_its_name(tmp_path: Path) -> None:
    provider = named(ANSWERING)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        assert (await session.refresh_usage()).limits.context == 1_000_000
        [notice] = [text for text in await told(session, "hello there, who are you?") if ANSWERING in text]
        assert notice.startswith(f"m is answered by {ANSWERING}")
        assert not [text for text in await told(session, "and again?") if ANSWERING in text]
        usage = await session.refresh_usage()
        assert (usage.model, usage.limits.context, usage.source) == ("m", 6_000, "exact")
        assert filed_under(workspace) == {"claude-sonnet-4-5"}
        calls = workspace.services.calls.rows(session.id)
        assert [(call.model, call.answered_by) for call in calls] == [("m", ANSWERING)] * 2
        assert [row.name for row in by_model(workspace.services.calls.groups(session.id))] == [f"scripted/{ANSWERING}"]
        assert any(ANSWERING in line for line in session.learned)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume()
        again = await session.refresh_usage()
        assert (again.total, again.limits.context, again.source) == (usage.total, 6_000, "exact")
        await session.forget_learned()
        assert (await session.refresh_usage()).limits.context == 1_000_000
        assert filed_under(workspace) == set()


async def test_a_release_of_the_model_or_a_name_that_says_nothing_changes_nothing(tmp_path: Path) -> None:
    for number, name in enumerate(("m-2025-01-01", "model")):
        async with open_workspace(tmp_path / str(number), named(name)) as workspace:
            session = await workspace.new_session()
            assert await told(session, "hello") == []
            usage = await session.refresh_usage()
            assert (usage.limits.context, usage.source) == (1_000_000, "exact")
            assert filed_under(workspace) == {"m"}


async def test_a_summary_is_billed_as_the_model_that_wrote_it(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, named(ANSWERING)) as workspace:
        session = await workspace.new_session()
        for number in range(4):
            await told(session, f"{number} " + "and what of the rivers? " * 60)
        async for _ in session.compact():
            pass
        compaction = [call for call in workspace.services.calls.rows(session.id) if call.kind == "compaction"][-1]
        assert (compaction.model, compaction.answered_by) == ("m", ANSWERING)


async def test_a_window_that_a_person_set_stands_whoever_answers(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, named(ANSWERING)) as workspace:
        session = await workspace.new_session()
        await session.set_window(50_000)
        await told(session, "hello")
        assert (await session.refresh_usage()).limits.context == 50_000
