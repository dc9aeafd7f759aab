from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.interchange.test_following import append, lines, state
from tui.chat.interchange.following import Follower
from tui.views.watch_lines import status_text, watch_lines


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_none_is_cut_where_it_could_be_two(tmp_path: Path, width: int) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(8))
    texts = [line.plain for line in watch_lines(state(Follower(path), window=20_000), width)]
    assert max(map(len, texts)) <= width
    assert any(text.startswith("its compaction at ~16.0k") for text in texts)
    assert any("from the cache" in text for text in texts)


def test_the_status_line_has_the_window_the_pace_and_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    append(path, *lines(8))
    text = status_text(state(Follower(path), window=20_000))
    assert text.lstrip("~").startswith("1.7k/20k 9 %")
    assert "calls left" in text
    assert "99 % cached" in text
