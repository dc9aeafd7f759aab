"""Memory files: which are found, what is sent of them, and what a resumed session says of changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, drain, open_workspace
from tui.chat.memory_files import MAX_FILE, MemoryFiles, load_memory, project_folders
from tui.messages import Request

NAMES = ("AGENTS.md",)


def load(folder: Path, home: Path, config: Path | None = None) -> MemoryFiles:
    return load_memory(NAMES, folder, config, home)


def test_from_the_top_of_the_repository_down_after_the_one_beside_the_config(tmp_path: Path) -> None:
    home, config = tmp_path / "home", tmp_path / "config"
    project = home / "code" / "project"
    deep = project / "src" / "part"
    deep.mkdir(parents=True)
    config.mkdir()
    (project / ".git").mkdir()
    for place in (home, home / "code", project, deep, config):
        (place / "AGENTS.md").write_text(f"rules of {place.name}")
    memory = load(deep, home, config)
    assert [file.text for file in memory.files] == ["rules of config", "rules of project", "rules of part"]
    assert [file.name for file in memory.files][1:] == [
        "~/code/project/AGENTS.md", "~/code/project/src/part/AGENTS.md",
    ]  # fmt: skip
    assert memory.notices == ()


def test_without_a_repository_up_to_the_home_folder_and_never_beyond(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert project_folders(home / "a" / "b", home) == [home / "a", home / "a" / "b"]
    assert project_folders(home, home) == [home]
    unseen = tmp_path / ("x" * 300)  # as what lies below a folder that only others may look into
    assert project_folders(unseen, tmp_path) == [unseen]
    assert load_memory(NAMES, unseen, None, tmp_path) == MemoryFiles((), ())
    assert project_folders(tmp_path / "elsewhere" / "x", home) == [tmp_path / "elsewhere" / "x"]


def test_what_is_long_is_cut_between_characters_and_said(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" + "é" * MAX_FILE)
    memory = load(tmp_path, tmp_path)
    (file,) = memory.files
    assert len(file.text.encode()) < MAX_FILE + 50
    assert "é\n[The rest" in file.text
    assert "only its beginning" in memory.notices[0]


def test_what_cannot_be_read_is_one_line_and_what_is_empty_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_bytes(b"\xff\xfe\x00binary")
    memory = load(tmp_path, tmp_path)
    assert memory.files == ()
    assert memory.notices == ("~/AGENTS.md is not sent: it is not UTF-8 text.",)
    (tmp_path / "AGENTS.md").write_text(" \n")
    assert load(tmp_path, tmp_path) == MemoryFiles()
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").mkdir()
    assert load(tmp_path, tmp_path) == MemoryFiles()


def test_a_link_to_a_file_that_is_there_already_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("one")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(load_memory(("AGENTS.md", "CLAUDE.md"), tmp_path, None, tmp_path).files) == 1


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("../secret/.ssh/id_rsa", "it leads to id_rsa, which probably holds keys or passwords"),
        (".env", "it leads to .env, which probably holds keys or passwords"),
        ("../secret/diary.txt", "it is a link out of the project, to {home}/secret/diary.txt"),
        ("../secret/AGENTS.md", ""),  # the person's own instructions, somewhere else
        ("docs/agents.txt", ""),
    ],
)
def test_a_projects_file_leads_to_no_secret_and_to_nothing_else_outside(
    tmp_path: Path, target: str, problem: str
) -> None:
    project = tmp_path / "project"
    for path in (
        "secret/.ssh/id_rsa",
        "secret/diary.txt",
        "secret/AGENTS.md",
        "project/docs/agents.txt",
        "project/.env",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("PRIVATE")
    (project / ".git").mkdir()
    (project / "AGENTS.md").symlink_to(target)
    memory = load(project, tmp_path)
    assert [file.text for file in memory.files] == ([] if problem else ["PRIVATE"])
    assert memory.notices == (
        (f"~/project/AGENTS.md is not sent: {problem.format(home=tmp_path)}.",) if problem else ()
    )


def test_beside_the_config_file_a_link_may_lead_anywhere_but_to_a_secret(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    (tmp_path / "dotfiles.md").write_text("rules")
    (config / "AGENTS.md").symlink_to("../dotfiles.md")
    assert [file.text for file in load(tmp_path / "project", tmp_path, config).files] == ["rules"]


def sent(provider: ScriptedProvider) -> Request:
    return provider.requests[-1]


async def test_a_session_sends_them_and_context_shows_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "AGENTS.md").write_text("Answer in verse.")
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider()
    async with open_workspace(tmp_path / "data", provider, system="Be brief.") as workspace:
        session = await workspace.new_session()
        await drain(session.send("hello"))
        assert [section.kind for section in sent(provider).system] == ["system", "memory"]
        assert "Answer in verse." in sent(provider).system[1].text
        usage = await session.refresh_usage()
        (row,) = [row for row in usage.rows if row.key == "memory"]
        assert row.tokens > 3
        (tmp_path / "AGENTS.md").write_text("Answer in prose.")
        await drain(session.send("again"))
        assert "Answer in verse." in sent(provider).system[1].text  # read once: the prefix stays as it is
        await session.set_system("Be long.")
        assert len(session.conversation.request().system) == 2


async def test_switched_off_it_stays_off_and_changes_are_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text("Answer in verse.")
    monkeypatch.chdir(tmp_path)
    provider = ScriptedProvider()
    async with open_workspace(tmp_path / "data", provider) as workspace:
        session = await workspace.new_session()
        name = session.conversation.memory.files[0].name
        await drain(session.send("hello"))
        await session.switch_memory(name, False)
        await drain(session.send("again"))
        assert sent(provider).system == ()

        again = await workspace.resume(session.id)
        assert (again.conversation.memory.notices, again.conversation.memory.files[0].on) == ((), False)
        await again.switch_memory(name, True)
        path.write_text("Answer in prose.")
        looked = await workspace.resume(session.id, look=True)
        changed = await workspace.resume(session.id)
        assert looked.conversation.memory.notices == changed.conversation.memory.notices
        assert "has changed" in changed.conversation.memory.notices[0]
        assert "prose" in changed.conversation.request().system[0].text
        assert (await workspace.resume(session.id)).conversation.memory.notices == ()
        path.unlink()
        gone = await workspace.resume(session.id)
        assert "not found" in gone.conversation.memory.notices[0]
        assert gone.conversation.request().system == ()


async def test_none_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "AGENTS.md").write_text("Answer in verse.")
    monkeypatch.chdir(tmp_path)
    async with open_workspace(tmp_path / "data", ScriptedProvider(), memory_files=()) as workspace:
        assert (await workspace.new_session()).conversation.memory == MemoryFiles()
