"""Searching costs what its message is long once, not at each step."""

from __future__ import annotations

import pytest

from tests.messages import assistant
from tui.render.message import message_rows
from tui.render.palette import make_palette
from tui.render.rows import Row
from tui.widgets.transcript.entries import Entry
from tui.widgets.transcript.search import Search

PALETTE = make_palette({})


def test_the_rows_of_a_message_are_read_once_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    message = assistant("\n\n".join(f"needle {number}" for number in range(200)), id="m", model="m")
    search, rows = Search("needle", [Entry(message)]), message_rows(message, 60, PALETTE)
    read: list[Row] = []

    def copy(row: Row) -> str:
        read.append(row)
        return row.text[row.start : row.end]

    monkeypatch.setattr(Row, "copy", property(copy))
    for number in range(5):
        assert search.step(forward=True, from_entry=0)
        [(row, start, end)] = search.place(rows)
        assert rows[row].text[start:end] == "needle" and rows[row].text.endswith(f" {number}")
        assert search.row_hits(0, rows, row) == [(start, end, True)]
    assert len(read) == len(rows)
