from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text.cells import cluster_boundary, cluster_end, cluster_start

CLUSTERS = ("👩‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽", "👨🏽‍💻", "e\u0301", "ก็", "नि", "각", "☺️", "1️⃣", "a", "日", " ")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_character_is_stepped_over_whole(cluster: str) -> None:
    text = f"a{cluster}b"
    end = 1 + len(cluster)
    assert cluster_end(text, 1) == end
    assert cluster_start(text, end) == 1
    assert {cluster_boundary(text, index) for index in range(1, end)} == {1}
    assert cluster_boundary(text, end) == end


@given(st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=80))
def test_there_and_back_are_the_same_places(clusters: list[str]) -> None:
    text = "".join(clusters)
    there = [0]
    while there[-1] < len(text):
        there.append(cluster_end(text, there[-1]))
    back = [len(text)]
    while back[-1] > 0:
        back.append(cluster_start(text, back[-1]))
    assert there == back[::-1]
    assert len(there) == len(clusters) + 1
    assert {cluster_boundary(text, index) for index in range(len(text) + 1)} == set(there)


def test_at_the_ends_there_is_nothing_to_step_over() -> None:
    assert (cluster_start("", 0), cluster_end("", 0), cluster_boundary("", 0)) == (0, 0, 0)
    assert (cluster_start("a", 0), cluster_end("a", 1)) == (0, 1)
