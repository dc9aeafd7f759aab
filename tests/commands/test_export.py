"""`/export`."""

from __future__ import annotations

from pathlib import Path

from tests.commands.scripted_ui import Commands


async def test_it_is_written_where_nothing_is(conversation: Commands, tmp_path: Path) -> None:
    assert await conversation.output("/export out.md") == f"Written to {tmp_path / 'out.md'}"
    assert "What is a boat?" in (tmp_path / "out.md").read_text()
    (tmp_path / "out.md.new").write_text("another file")
    assert (await conversation.output("/export --force out.md")).endswith("/out.md")
    assert (tmp_path / "out.md.new").read_text() == "another file"
    assert "the suffix names the format" in await conversation.refusal("/export out.md--force")
    (tmp_path / "out.md").write_text("mine")
    assert "There is a file out.md already" in await conversation.refusal("/export out.md")
    assert (tmp_path / "out.md").read_text() == "mine"
    assert (await conversation.output("/export out.md --force")).startswith("Written to ")
    assert "What is a boat?" in (tmp_path / "out.md").read_text()


async def test_without_a_name_it_gets_one(conversation: Commands, tmp_path: Path) -> None:
    assert (
        await conversation.output("/export") == f"Written to {tmp_path / f'chatctx-{conversation.session.id[-8:]}.md'}"
    )


async def test_what_cant_be_written_is_refused(conversation: Commands) -> None:
    assert await conversation.refusal("/export no/out.md") == (
        "Can't write no/out.md (No such file or directory): name another place."
    )
    assert (await conversation.refusal("/export out.docx")).startswith("out.docx: the suffix names the format; use ")
