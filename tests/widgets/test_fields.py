from __future__ import annotations

import random

import pytest
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.widgets import Input, TextArea

from tui.widgets.fields import LineField, TextField

KEYS = ("backspace", "left", "right", "home", "end", "delete", "ctrl+w", "ctrl+u", "ctrl+k")


def pressed(seed: int) -> list[Key]:
    choose = random.Random(seed)
    names = [choose.choice((*"abc de", *KEYS)) for _ in range(25)]
    return [Key(name, name if len(name) == 1 else None) for name in ("o", "n", "e", "backspace", "x", *names)]


@pytest.mark.parametrize("kind", [LineField, TextField])
async def test_keys_that_come_in_one_burst_act_in_their_order(kind: type[Input | TextArea]) -> None:
    class Fields(App[None]):
        def compose(self) -> ComposeResult:
            with Vertical(), Vertical():
                yield kind()

    def text() -> str:
        field = app.query_one(kind)
        return field.value if isinstance(field, Input) else field.text

    app = Fields()
    async with app.run_test() as pilot:
        for seed in range(3):
            texts = []
            for at_once in (False, True):
                for key in pressed(seed):
                    app.post_message(Key(key.key, key.character))
                    if not at_once:
                        await pilot.pause()
                await pilot.pause()
                texts.append(text())
                app.query_one(kind).clear()
            assert texts[0] == texts[1]
