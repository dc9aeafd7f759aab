"""Rows of `/context` that open: the text behind them, or the message where it was said. By key and by mouse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.messages import tool
from tests.screens.conftest import Running, running
from tests.screens.scenarios import Scenario, assistant, ident, user, with_idents
from tests.screens.tooling import Listed, not_run
from tests.usages import make_usage
from tui.chat.memory_files import MemoryFile, MemoryFiles
from tui.context.usage.rows import UsageItem, UsageRow
from tui.messages import Attachment, Message, Text, ToolCall, ToolResult, ToolSchema
from tui.screens.context import ContextPanel, file_text
from tui.screens.pager import MAX_WRAPPED, Pager, TextLines, layout_lines
from tui.tools.base import Tool

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each

LONG = "\n".join(f"output line {number}" for number in range(90))


def scenario() -> Scenario:
    file = Attachment("text", "notes.txt", "text/plain", "00", 12, text="what the notes\nsay")
    messages = [
        Message("user", (Text("the first words"), file), id=ident("m1")),
        Message("assistant", (ToolCall("c1", "read_file", "{}"),), id=ident("m2"), model="m"),
        tool(ToolResult("c1", "read_file", LONG), id=ident("m3")),
        *[user(f"filler {number}\n\n" * 4, f"n{number:02}") for number in range(20)],
        assistant("the end", "z"),
    ]
    rows = (
        UsageRow("system", "System prompt", 10, "estimated", (
            UsageItem("system prompt", 10, "estimated", "system prompt"),)),
        UsageRow("memory", "Memory", 20, "estimated", (UsageItem("AGENTS.md", 20, "estimated", "AGENTS.md"),)),
        UsageRow("tools", "Tools", 30, "estimated", (
            UsageItem("read_file", 25, "estimated", "read_file"), UsageItem("gone", 5, "estimated", "gone"))),
        UsageRow("user", "User", 40, "derived", (UsageItem("the first words", 40, "derived", "m1"),)),
        UsageRow("tool_results", "Results", 50, "derived", (UsageItem("m3", 50, "derived", "m3"),)),
        UsageRow("attachments", "Attachments", 60, "derived", (UsageItem("the first words", 60, "derived", "m1"),)),
    )  # fmt: skip
    parameters = '{"properties":{"path":{"type":"string"}},"type":"object"}'
    return Scenario(
        tools=[Listed([Tool(ToolSchema("read_file", "Reads a file.", parameters), True, not_run)])],
        messages=messages,
        usage=with_idents(make_usage(210, rows=rows)),
        system="Be brief,\nplease.",
        memory=MemoryFiles((MemoryFile("/x/AGENTS.md", "AGENTS.md", "# Rules\nNever guess.", "00"),)),
    )


async def unfold(run: Running, row: str, item: str) -> None:
    """Open `/context`, unfold a row, put the cursor on an item of it."""
    await run.press("f2")
    await run.shows("210 / 200,000")
    for _ in range(12):
        await run.press("down")
        if row in cursor_line(run):
            break
    await run.press("right")
    await run.shows(f"{row} ▾")
    while not cursor_line(run).strip().startswith(item):
        await run.press("down")
    await run.shows("enter open")


def cursor_line(run: Running) -> str:
    panel = run.app.screen
    assert isinstance(panel, ContextPanel)
    return panel.chosen.content.plain if panel.chosen is not None else ""


SHOWN_OF = (
    ("system prompt", "system prompt", ("System prompt", "Be brief,", "please.", "~10 tokens")),
    ("memory files", "AGENTS.md", ("# Rules", "Never guess.", "~20 tokens")),
    ("tools", "read_file", ("read_file · built-in", "Reads a file.", '"path": {', "~25 tokens")),
    ("attachments", "the first words", ("notes.txt", "what the notes", "60 tokens")),
)


@pytest.mark.slow
async def test_a_text_is_shown_and_esc_leads_back() -> None:
    async with running(scenario()) as run:
        for row, item, shown in SHOWN_OF:
            await unfold(run, row, item)
            await run.press("enter")
            await run.shows(*shown, "esc close")
            await run.press("escape")
            await run.shows("210 / 200,000", f"{row} ▾")
            await run.press("escape")


async def test_a_message_is_shown_where_it_was_said_and_its_result_unfolded() -> None:
    async with running(scenario()) as run:
        await unfold(run, "tool results", "m3")
        await run.press("enter")
        await run.until(lambda: run.app.screen is run.chat)
        await run.shows("output line 0", "output line 9", "c copy")
        assert run.chat.transcript.cursor_id == ident("m3")
        await run.press("escape")
        await run.until(lambda: run.chat.transcript.cursor_id is None)


@pytest.mark.slow
async def test_a_click_opens_too_and_what_is_gone_is_said() -> None:
    async with running(scenario()) as run:
        await unfold(run, "tools", "gone")
        await run.press("enter")
        await run.shows("not part of the next request any more")
        row = next(y for y, line in enumerate(run.text.splitlines()) if " read_file" in line)
        await run.pilot.click(offset=(20, row))
        await run.shows("Reads a file.")


def test_text_is_harmless_and_bounded() -> None:
    assert layout_lines([("x", "a\x1b[31mb\tc\x07")], 40) == ["ab  c␇"]
    lines = layout_lines([("x", "x" * (MAX_WRAPPED + 5))], 1_000)
    assert len(lines) == MAX_WRAPPED // 1_000 + 1
    assert lines[-1] == "… 5 more characters are not shown here"


def test_of_a_picture_its_size_is_told() -> None:
    picture = Attachment("image", "a.png", "image/png", "00", 2_048, width=640, height=480)
    assert file_text(picture) == "@ a.png · 640×480 · 2.0 kB\nimage/png"
    pdf = Attachment("pdf", "a.pdf", "application/pdf", "00", 9)
    assert file_text(pdf) == "@ a.pdf · PDF, ? pages · 9 B\napplication/pdf"
    assert "· 3 pages ·" in file_text(replace(pdf, pages=3))


async def test_it_wraps_again_for_another_width() -> None:
    async with running() as run:
        run.app.push_screen(Pager([("title", "word " * 60)], wraps=True))
        await run.shows("title: 3 lines", "word word", "esc close")
        await run.resize(50, 20)
        await run.shows("title: 7 lines")
        assert max(map(len, run.app.screen.query_one(TextLines)._lines)) <= 45


@pytest.mark.slow
@pytest.mark.parametrize("line", ["漢" * 60 + "E", "\t" * 25 + "E", "\x1b[31m" * 9 + "a" * 90 + "E"])
async def test_the_end_of_the_widest_line_can_be_scrolled_to(line: str) -> None:
    async with running(size=(60, 20)) as run:
        run.app.push_screen(Pager([("title", line)]))
        await run.shows("title: 1 line")
        lines = run.app.screen.query_one(TextLines)
        await run.until(lambda: lines.show_horizontal_scrollbar)  # before that it does not scroll
        lines.scroll_to(x=lines.max_scroll_x, animate=False)
        await run.shows("E  │")
