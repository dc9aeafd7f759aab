"""`/import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.scripted_ui import Commands
from tui.views.view import Question


@pytest.fixture
async def exported(conversation: Commands, tmp_path: Path) -> Commands:
    """A conversation beside the file it was exported to."""
    await conversation.run("/export talk.jsonl")
    return conversation


async def imported_twice(commands: Commands) -> bool:
    return len(await commands.workspace.sessions()) == 2


async def test_what_is_here_already_is_asked_about(exported: Commands) -> None:
    first = exported.session.id
    ui = await exported.run("/import talk.jsonl", None)
    [question] = ui.questions
    assert isinstance(question, Question) and "All 2 messages of this file are here already." in question.text
    assert f"/sessions {first[-8:]} opens it; /import talk.jsonl --again" in question.otherwise
    assert ui.attached == [] and not await imported_twice(exported)
    await exported.run("/import talk.jsonl", "open")
    assert exported.session.id == first and not await imported_twice(exported)
    ui = await exported.run("/import talk.jsonl", "import")
    assert ui.output == ["Imported 2 messages."] and await imported_twice(exported)


async def test_again_is_an_option_too(exported: Commands) -> None:
    first = exported.session.id
    ui = await exported.run("/import talk.jsonl --again")
    assert ui.attached and exported.session.id != first
    assert ui.progress_texts[-1] == ""


async def test_damaged_lines_are_named(exported: Commands, tmp_path: Path) -> None:
    with (tmp_path / "talk.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"type": "record", "cut')
    ui = await exported.run("/import talk.jsonl --again")
    [text] = ui.output
    assert text.startswith("Imported 2 messages; 1 damaged line skipped")


async def test_a_damaged_conversation_among_others_is_named(conversation: Commands, tmp_path: Path) -> None:
    node = {"parent": None, "message": {"author": {"role": "assistant"}, "content": {"parts": ["hi"]}}}
    chats = [{"mapping": {"1": node}}, {"mapping": {"1": 5}}]
    (tmp_path / "chats.json").write_text(json.dumps(chats), encoding="utf-8")
    ui = await conversation.run("/import chats.json")
    [text] = ui.output
    assert text.startswith("Imported 1 message; chats.json: damaged") and len(ui.attached) == 1


async def test_what_cant_be_read_is_refused(conversation: Commands) -> None:
    assert (await conversation.refusal("/import")).startswith("/import needs a file")
    ui = await conversation.run("/import no.jsonl")
    assert ui.refusals == ["Not imported: no.jsonl: No such file or directory."]
    assert ui.attached == []
