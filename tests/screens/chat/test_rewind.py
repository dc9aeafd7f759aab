"""What an edit says it will set aside."""

from __future__ import annotations

import pytest

from tests.messages import assistant, user
from tui.screens.chat.turns import rewind_line

LONG = "messages, 1,234 tokens"
MESSAGES = [user("a", id="m1"), assistant("b", id="m2"), user("c", id="m3"), assistant("d", id="m4")]


@pytest.mark.parametrize(
    ("counts", "width", "line"),
    [
        ({"m1": (1_000, "measured"), "m2": (234, "derived")}, 80, f"sets aside 2 {LONG} · esc keeps them"),
        ({"m1": (1_000, "measured"), "m2": (234, "estimated")}, 40, "sets aside 2, ~1.2k tok · esc keeps"),
        ({"m1": (1_000, "measured")}, 80, "sets aside 2 messages, ? tokens · esc keeps them"),
        (
            {"m1": (1_000, "measured"), "m2": (None, "estimated")},
            80,
            "sets aside 2 messages, ? tokens · esc keeps them",
        ),
    ],
)
def test_the_line(counts: dict[str, tuple[int | None, str]], width: int, line: str) -> None:
    assert rewind_line(MESSAGES[:2], counts, width, "esc") == line
