"""Files named in the draft."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.screens.conftest import running
from tests.screens.scenarios import EchoProvider, Scenario
from tui.chat.attachments import mentioned
from tui.providers.base import Capabilities
from tui.screens.chat import mentions


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a few files."""
    for name in ("src/parser.py", "src/deep/lexer.py", "README.md", "node_modules/x.js", ".git/config", "a b.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 400, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("before", "typed"),
    [("look at @src/pa", "src/pa"), ("@", ""), ("me@example.com", None), ("@a b", None), ('@"a b', "a b"), ("x", None)],
)
def test_a_mention_is_being_typed(before: str, typed: str | None) -> None:
    assert mentions.open_mention(before) == typed


def test_a_mention_is_completed_where_the_cursor_is() -> None:
    assert mentions.with_mention("see @src/p and go", 10, "src/parser.py") == ("see @src/parser.py and go", 19)
    assert mentions.with_mention("@a", 2, "a b.txt") == ('@"a b.txt" ', 11)
    assert mentions.with_mention("@/us", 4, "/usr/") == ("@/usr/", 6)
    assert mentions.with_mention("none", 4, "x") == ("none", 4)


def test_only_files_that_are_there_are_meant(folder: Path) -> None:
    text = 'Why? @src/parser.py, (@README.md) @"a b.txt" @nowhere.py me@README.md @src/parser.py @src @\0'
    assert mentioned(text, folder) == [folder / "src/parser.py", folder / "a b.txt"]
    assert mentioned(f"@{folder}/README.md.", folder) == [folder / "README.md"]


def test_a_home_that_nobody_has_is_only_text(folder: Path) -> None:
    assert mentioned("ask @~nobody-here/x", folder) == []
    assert mentions.FileIndex(folder).offers("~nobody-here/") == []


def test_files_are_found_by_letters_the_nearest_first(folder: Path) -> None:
    index = mentions.FileIndex(folder)
    assert [choice.key for choice in index.offers("")][:3] == ["a b.txt", "README.md", "src/parser.py"]
    assert [choice.key for choice in index.offers("pars")] == ["src/parser.py"]
    assert index.offers("lex")[0].key == "src/deep/lexer.py"
    assert not index.offers("config") and not index.offers("x.js")
    assert [choice.key for choice in index.offers(f"{folder}/RE")] == [f"{folder}/README.md"]
    assert index.offers(f"{folder}/not-there/x") == []


def test_a_listing_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mentions, "MAX_FILES", 2)
    assert len(mentions.FileIndex(folder).offers("")) == 2


async def test_a_file_is_completed_counted_and_sent(folder: Path) -> None:
    async with running() as run:
        await run.type("why @pars")
        await run.shows("src/parser.py", "400 B")
        await run.press("tab")
        assert run.chat.composer.value == "why @src/parser.py "
        await run.type("?")
        await run.shows("draft ~", " tok + parser.py ~", " · +0.")
        await run.press("enter")
        await run.until(lambda: run.sent == ["why @src/parser.py ?"])
        assert run.attached == [["parser.py"]]


async def test_enter_takes_the_file_and_the_second_enter_sends(folder: Path) -> None:
    async with running() as run:
        await run.type("@README")
        await run.shows("README.md", "400 B")
        await run.press("enter")
        assert run.sent == []
        await run.press("enter")
        await run.until(lambda: run.attached == [["README.md"]])


async def test_a_file_that_can_not_be_sent_stops_the_message_and_keeps_it(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"\0\1\2")
    async with running() as run:
        await run.command("see @data.bin")
        await run.shows("Not sent: data.bin is neither text nor an image")
        assert run.sent == []
        assert run.chat.composer.value == "see @data.bin"


@pytest.mark.slow
async def test_a_picture_for_a_model_that_takes_none_is_said_before_and_not_sent(folder: Path) -> None:
    (folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + struct.pack(">II", 30, 40))
    server = EchoProvider(able=Capabilities(images=False))
    async with running(Scenario(server=server)) as run:
        await run.type("see @a.png ")
        await run.shows("! claude-x takes no images: a.png")
        await run.command("see @a.png")
        await run.shows("Not sent: claude-x takes no images: choose another model, or leave a.png out.")
        assert run.sent == []
        assert run.chat.composer.value == "see @a.png"
        server.able = Capabilities()
        await run.session.set_model("openai/other")
        await run.press("end", " ")
        await run.shows("+ a.png")
        await run.press("enter")
        await run.until(lambda: run.attached == [["a.png"]])
