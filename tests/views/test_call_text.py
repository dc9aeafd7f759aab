from __future__ import annotations

from tui.views.call_text import readable_arguments


def test_text_is_shown_as_it_is_and_other_values_as_json() -> None:
    arguments = {"path": "a b", "lines": 3, "all": True, "names": ["é", None], "empty": ""}
    assert readable_arguments(arguments, 60).plain.splitlines() == [
        "path: a b",
        "lines: 3",
        "all: true",
        'names: ["é", null]',
        'empty: ""',
    ]


def test_marks_without_end_take_lines_of_their_own() -> None:
    text = f"e{chr(0x301) * 5_000} rm"
    lines = readable_arguments({"cmd": text}, 40).plain.split("\n")
    assert max(map(len, lines)) <= 8 * 40
    assert "".join(line.removeprefix("cmd: ").removeprefix("  ┊ ") for line in lines) == text
