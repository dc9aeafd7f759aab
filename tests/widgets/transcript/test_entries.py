from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.transcript.entries import Heights


@given(
    st.lists(st.integers(1, 9), max_size=20), st.lists(st.tuples(st.integers(0, 19), st.integers(1, 9)), max_size=20)
)
def test_agrees_with_counting(start: list[int], changes: list[tuple[int, int]]) -> None:
    heights = Heights(start)
    plain = list(start)
    for index, height in changes:
        if index < len(plain):
            assert heights.set(index, height) == height - plain[index]
            plain[index] = height
        elif plain and index % 3 == 0:
            heights.pop()
            plain.pop()
        else:
            heights.append(height)
            plain.append(height)
        lines = [number for number, height in enumerate(plain) for _ in range(height)]
        assert heights.total == len(lines)
        assert [heights.find(line) for line in range(len(lines))] == lines
        assert [heights.top(number) for number in range(len(plain))] == [lines.index(n) for n in range(len(plain))]


def test_outside_means_the_nearest() -> None:
    heights = Heights([2, 3])
    assert (heights.find(-5), heights.find(99)) == (0, 1)
    assert Heights().find(0) == -1
    assert Heights().total == 0
