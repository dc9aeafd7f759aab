"""A call whose arguments are nested without end: the model is told, and the conversation goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, answer, drain, of, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls, results
from tui.chat.conversation.events import TurnFailed
from tui.providers.wire import arguments_object
from tui.text.labels import arguments_summary


@pytest.mark.slow
@pytest.mark.parametrize("depth", [900, 100_000])
async def test_it_is_answered_and_the_next_turn_works(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    provider = ScriptedProvider([calls(("look", deep)), answer("one"), answer("two")])
    source = FunctionTools(reads=("look",), look=lambda _: "seen")
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = [*await drain(session.send("go")), *await drain(session.send("go on"))]
        assert of(TurnFailed, events) == []
        assert source.ran == []
        assert "nested too deeply" in results(session)[0].text
        assert session.messages[-1].text == "two"
    assert arguments_object(deep) == {"invalid_json": deep}
    assert arguments_summary(deep)
