"""Everything that can happen to a transcript, in random order: it must always show rows, and the right ones."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from tests.messages import assistant, tool, user
from tests.render.documents import PIECES
from tui.messages import Message, Reasoning, ToolCall, ToolResult
from tui.widgets.transcript.transcript import Transcript


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Transcript()


class Storm:
    def __init__(self, seed: int, transcript: Transcript) -> None:
        self.random = random.Random(seed)
        self.view = transcript
        self.messages: list[Message] = []
        self.live: list[str] = []

    def text(self) -> str:
        return "\n".join(self.random.choices(PIECES, k=self.random.randint(1, 6)))

    def message(self) -> Message:
        number = f"m{len(self.messages)}"
        kind = self.random.randrange(4)
        if kind == 0:
            return user(self.text() * self.random.choice((1, 8)), id=number)
        if kind == 1:
            return tool(ToolResult(f"c{self.random.randrange(9)}", "t", self.text()), id=number)
        call = ToolCall(f"c{self.random.randrange(9)}", "t", '{"path": "x.py"}')
        return assistant(Reasoning(self.text()), self.text(), call, id=number, model="m")

    def add(self) -> None:
        self.messages.append(self.message())
        self.view.append(self.messages[-1])

    def stream(self) -> None:
        if not self.live:
            self.live = [f"r{len(self.messages)}"]
            self.view.start_reply(self.live[0], "p", "m")
        for _ in range(self.random.randrange(30)):
            kind = self.random.choice(("text", "text", "text", "reasoning"))
            piece = self.random.choice(PIECES)[: self.random.randrange(1, 20)]
            if kind == "text":
                self.live.append(piece)
            self.view.delta(self.live[0], "text" if kind == "text" else "reasoning", piece)

    def finish(self) -> None:
        if self.live:
            self.messages.append(assistant("".join(self.live[1:]), id=self.live[0], model="m"))
            self.view.finish_reply(self.messages[-1])
            self.live = []

    def reload(self) -> None:
        self.finish()
        self.view.set_messages(self.messages)

    def mark(self) -> None:
        chosen = self.random.sample(self.messages, k=len(self.messages) // 2)
        self.view.set_not_sent({message.id: self.random.choice(("trimmed", "excluded")) for message in chosen})
        self.view.set_counts({message.id: (self.random.randrange(9_999), "estimated") for message in chosen})

    async def search(self) -> None:
        await self.view.search(self.random.choice(("code", "a", "日本")))
        for _ in range(3):
            self.view.go_to_hit(forward=self.random.random() < 0.5)
        if self.random.random() < 0.5:
            self.view.end_search()

    def move(self) -> None:
        self.random.choice(
            (
                self.view.scroll_page_up,
                self.view.scroll_page_down,
                self.view.scroll_home,
                self.view.scroll_end,
                lambda: self.view.action_cursor(self.random.choice((-1, 1))),
                self.view.clear_cursor,
                lambda: self.view.scroll_to(y=self.random.randrange(self.view.max_scroll_y + 1)),
                self.view.toggle_fold,
            )
        )()

    async def step(self, pilot: Pilot[None]) -> None:
        actions: tuple[Callable[[], Awaitable[None] | None], ...] = (
            *(self.add, self.stream, self.stream, self.finish, self.reload),
            *(self.mark, self.search, self.move, self.move),
        )
        if (unfinished := self.random.choice(actions)()) is not None:
            await unfinished
        if self.random.random() < 0.1:
            await pilot.resize_terminal(self.random.randrange(15, 130), self.random.randrange(3, 40))
        await pilot.pause()

    def check(self) -> None:
        view, document = self.view, self.view.document
        width, height = view.view_size
        assert view.virtual_size.height == document.heights.total
        assert 0 <= view.scroll_y <= view.max_scroll_y
        if view.reader_place is None:
            assert view.scroll_y == view.max_scroll_y
        for y in range(height):
            assert view.render_line(y).cell_length == width
            line = round(view.scroll_y) + y
            if line >= document.heights.total:
                continue
            index = document.heights.find(line)
            rows = document.entries[index].rows
            assert rows is not None and len(rows) == document.heights[index]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
async def test_storm(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:  # nearly everything is drawn in the thread
        monkeypatch.setattr("tui.widgets.transcript.document.LARGE", 300)
    app = Host()
    async with app.run_test(size=(70, 24)) as pilot:
        storm = Storm(seed, app.query_one(Transcript))
        storm.view.set_messages([])
        await pilot.pause()
        for _ in range(50):
            await storm.step(pilot)
            storm.check()
