"""The bar, the picture and the table of the window: right in numbers, whole at every width."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.usages import make_usage
from tui.context.usage.limits import Budget
from tui.context.usage.rows import UsageItem, UsageRow
from tui.context.usage.usage import ContextUsage, LeftOut
from tui.text.labels import MESSAGE_ROWS, ROW_NAMES
from tui.text.numbers import Cost
from tui.views.context_picture import (
    CATEGORIES,
    COLOURS,
    cells,
    context_bar,
    filled_halves,
    picture_lines,
    segments_of,
    urgency,
)
from tui.views.context_table import basis_lines, headline, table_lines
from tui.widgets.bars import number, status_line

tokens = st.integers(0, 3_000_000)
windows = st.one_of(st.none(), st.just(0), st.integers(1, 2_000_000))

COST = Cost(0.42, 0.42, False)


@given(tokens, windows, st.integers(0, 120))
def test_the_bar_is_always_as_wide_as_asked(total: int, window: int | None, width: int) -> None:
    assert context_bar(make_usage(total, window), width).cell_length == width


@given(st.integers(-5, 3_000_000), st.integers(-5, 3_000_000), st.integers(-1, 60))
def test_the_filled_part_is_between_nothing_and_all(used: int, window: int, width: int) -> None:
    halves = filled_halves(used, window, width)
    assert 0 <= halves <= 2 * max(0, width)
    if used > 0 and window > 0 and width > 0:
        assert halves >= 1
        assert (halves == 2 * width) == (used >= window)


def test_twice_too_much_fills_the_bar_and_stays_in_it() -> None:
    bar = context_bar(make_usage(494_945, 200_000), 20).plain
    assert bar == "━" * 15 + "╋" + "━" * 4


def test_the_tick_is_where_compaction_starts() -> None:
    usage = make_usage(20_000, 200_000)
    assert usage.budget.compaction_at == 156_400
    assert context_bar(usage, 20).plain == "━━──────────────────"[:15] + "┼────"


@given(st.lists(st.integers(1, 1_000_000), min_size=1, max_size=14), st.integers(0, 130))
def test_cells_are_shared_out_whole(sizes: list[int], width: int) -> None:
    shared = cells(sizes, width)
    assert sum(shared) == width
    assert all(count >= 0 for count in shared)
    if width >= len(sizes):
        assert all(count >= 1 for count in shared)
        largest, smallest = sizes.index(max(sizes)), sizes.index(min(sizes))
        assert shared[largest] >= shared[smallest]


@given(tokens, windows, st.integers(20, 130), st.integers(1, 4))
def test_every_line_of_the_picture_is_as_wide_as_asked(total: int, window: int | None, width: int, rows: int) -> None:
    usage = make_usage(total, window)
    lines = picture_lines(usage, width, rows)
    assert len(lines) == rows + (1 if usage.space.over else 0)
    assert {line.cell_length for line in lines[:rows]} == {width}
    assert all(line.cell_length <= width for line in lines)


def test_each_category_has_a_glyph_and_a_colour_of_its_own() -> None:
    assert len({look.glyph for look in CATEGORIES.values()}) == len(CATEGORIES) == len(set(COLOURS))
    assert all(cell_len(look.glyph) == 1 for look in CATEGORIES.values())


def test_every_row_is_drawn_in_the_order_of_the_table() -> None:
    assert list(CATEGORIES) == list(ROW_NAMES)
    first = list(ROW_NAMES).index(MESSAGE_ROWS[0])
    assert tuple(ROW_NAMES)[first : first + len(MESSAGE_ROWS)] == MESSAGE_ROWS


def test_the_picture_is_in_proportion() -> None:
    usage = make_usage(52_100, 200_000)
    line = picture_lines(usage, 100, 1)[0].plain
    assert (line.count("·"), line.count("▚"), line.count("▞")) == (52, 14, 8)
    assert sum(tokens for _, tokens in segments_of(usage)) == 200_000


def test_where_it_does_not_fit_the_picture_says_where_the_window_ends() -> None:
    lines = picture_lines(make_usage(494_945, 200_000), 100, 3)
    assert lines[-1].plain.index("▲") == pytest.approx(100 * 200_000 / (494_945 + 16_000), abs=1)
    assert "the window ends here" in lines[-1].plain


def panel(
    usage: ContextUsage,
    width: int,
    *,
    expanded: AbstractSet[str] = frozenset({"messages"}),
    hints: Mapping[str, str] | None = None,
) -> list[str]:
    """Headline, rows and basis, as lines."""
    rows = table_lines(usage, width, expanded=expanded, hints=hints or {})
    lines = [*headline(usage, width), *(row.content for row in rows), *basis_lines(usage, width)]
    return [line.plain.rstrip() for line in lines]


@given(tokens, windows, st.integers(30, 130), st.booleans())
def test_no_line_is_wider_than_the_panel(total: int, window: int | None, width: int, rolling: bool) -> None:
    usage = make_usage(total, window, rolling=rolling)
    everything = frozenset({"messages", *(row.key for row in usage.rows)})
    for line in panel(usage, width, expanded=everything, hints={"system": "/system " * 20}):
        assert cell_len(line) <= width, line


@pytest.mark.parametrize("total", [52_100, 190_000])
@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_estimate_is_without_its_mark(total: int, width: int) -> None:
    items = [UsageItem(f"tool {n}", 1, "estimated", f"t{n}") for n in range(40)]
    rows = [UsageRow(row.key, row.name, row.tokens, "estimated", tuple(items)) for row in make_usage(total).rows]
    usage = make_usage(total, rows=rows, source="estimated")
    everything = frozenset({"messages", *(row.key for row in rows)})
    settled = ("category", ROW_NAMES["buffer"], ROW_NAMES["reserve"])
    for line in table_lines(usage, width, expanded=everything, hints={}):
        text = line.content.plain
        assert "~" in text or "estimated" in text or text[2:].startswith(settled) or not re.search(r"\d", text), text
    status = status_line(usage, COST, False, 118).plain
    assert re.search(r"until compaction ~\d|~\S+ too much", status) and re.search(r"~\S+ / 200k", status)


def test_the_panel_at_100_columns() -> None:
    lines = panel(make_usage(), 100, hints={"messages": "m  list messages"})
    text = "\n".join(lines)
    assert lines[0].startswith("Context") and lines[0].endswith("anthropic/claude-x · 200k window (models API)")
    assert lines[1].startswith("52,100 / 200,000 tokens   26 %   ±180")
    assert "█ system prompt                 4,000    2.0 %   estimated" in lines
    assert "  messages ▾                   40,100   20.1 %   mixed           m  list messages" in lines
    assert "· free                        104,300   52.1 %                   until compaction" in lines
    assert "basis   last input 50,000 + last output 2,000 (all of it sent back) + new ~100" in text
    assert "this model: factor 1.31, 95 % of estimates within 0.6 %" in text
    assert "1 compaction, saved ~84k" in text


def test_what_is_left_out_and_what_is_sent_are_the_whole_conversation() -> None:
    usage = replace(make_usage(rolling=True), left_out=LeftOut(12, 38_400), rolling=True)
    text = "\n".join(panel(usage, 100))
    [line] = [line.split() for line in text.splitlines() if "not sent" in line]
    assert line == ["not", "sent", "38,400", "estimated", "12", "messages;", "all", "of", "it", "~90,500"]
    nothing = "\n".join(panel(replace(usage, left_out=LeftOut()), 100))
    assert "rolling context leaves nothing out" in nothing
    assert "not sent " not in "\n".join(panel(make_usage(), 100))


def test_the_panel_at_40_columns_marks_estimates_by_sign() -> None:
    lines = panel(make_usage(), 38)
    assert "█ system prompt                 ~4,000" in lines
    assert "  ▒ you ▸                        6,015" in lines
    assert not any("%" in line for line in lines[4:] if "basis" not in line and line.startswith(("█", "·", "▚")))


def test_a_folded_row_hides_its_items_and_an_unfolded_one_shows_the_largest() -> None:
    items = tuple(
        UsageItem(f"tool-{n}", n, "estimated", f"tool-{n}", "github" if n == 20 else "") for n in range(1, 21)
    )
    usage = make_usage(rows=[UsageRow("tools", "Tools", 210, "estimated", items)])
    folded = panel(usage, 100, expanded=frozenset())
    assert not any("tool-" in line for line in folded)
    unfolded = panel(usage, 100, expanded=frozenset({"tools"}))
    assert any("github: tool-20" in line for line in unfolded)
    assert any("8 more" in line and "36" in line for line in unfolded)


def test_a_name_from_outside_cannot_break_the_line() -> None:
    evil = UsageItem("a\x1b[31m\n[red]b[/red]", 5, "estimated", "x")
    usage = make_usage(rows=[UsageRow("tools", "Tools", 5, "estimated", (evil,))])
    lines = panel(usage, 100, expanded=frozenset({"tools"}))
    named = next(line for line in lines if "[red]b" in line)
    assert "\x1b" not in named and "\n" not in named


@pytest.mark.parametrize(
    ("total", "window", "text"),
    [
        (52_100, 200_000, "52.1k / 200k · 26 %"),
        (52_100, None, "52.1k / ?"),
        (494_945, 200_000, "495k / 200k · 247 % !"),
        (180_000, 200_000, "180k / 200k · 90 % !"),
        (141_000, 200_000, "141k / 200k · 70 % !"),  # the compaction threshold is 156,400
        (140_000, 200_000, "140k / 200k · 70 %"),
    ],
)
def test_the_number_in_short(total: int, window: int | None, text: str) -> None:
    assert number(make_usage(total, window)).plain == text


def test_an_estimate_is_marked() -> None:
    assert number(make_usage(source="estimated")).plain.startswith("~52.1k")
    assert headline(make_usage(source="estimated"), 80)[1].plain.startswith("~52,100 / 200,000")
    assert number(None).plain == "…"


def test_the_marks_come_before_something_happens_at_every_window_size() -> None:
    """75 and 90 % of what the request may be: of the compaction threshold, or of the input budget without one."""
    for window in (2_048, 32_000, 200_000, 1_000_000):
        for at in (None, window // 2):
            budget = Budget(window, window * 3 // 4, window // 4, at)
            limit = at or window * 3 // 4
            marks = [urgency(replace(make_usage(limit * p // 100, window), budget=budget)) for p in (74, 76, 91)]
            assert marks == ["", "$text-warning", "$text-error"]


@pytest.mark.parametrize(
    ("total", "style"), [(117_000, "$primary"), (117_400, "$text-warning"), (141_000, "$text-error")]
)
def test_colour_says_urgency(total: int, style: str) -> None:
    assert style in {span.style for span in context_bar(make_usage(total), 20).spans}


@given(tokens, windows, st.integers(10, 140), st.booleans())
@example(2_000_000, 2, 24, False)
def test_the_status_line_fits_every_width_and_the_number_is_whole_where_it_fits(
    total: int, window: int | None, width: int, rolling: bool
) -> None:
    usage = make_usage(total, window)
    line = status_line(usage, COST, rolling, width)
    assert line.cell_length <= width
    assert number(usage).plain in line.plain or number(usage).cell_length > width


@given(st.integers(0, 400_000), st.integers(30, 140), st.booleans())
def test_no_piece_of_the_status_line_is_cut(total: int, width: int, rolling: bool) -> None:
    line = status_line(make_usage(total), COST, rolling, width).plain.rstrip()
    ends = ("/context for more", "rolling on", "rolling off", "$0.42", "too much", " %", " !")
    assert line.endswith(ends) or ("until compaction" in line and line.rsplit(" ", 1)[1][-1] in "k0123456789")


def test_what_matters_least_goes_first() -> None:
    usage = make_usage()
    wide = status_line(usage, COST, False, 118).plain
    assert all(part in wide for part in ("until compaction 104k", "$0.42", "rolling off", "/context for more"))
    assert "/context" not in status_line(usage, COST, False, 90).plain
    assert status_line(usage, COST, False, 38).plain.split() == ["━━────┼─", "52.1k", "/", "200k", "·", "26", "%"]
    assert "rolling on" in status_line(usage, COST, True, 45).plain


def test_too_much_is_said_instead_of_what_is_left() -> None:
    line = status_line(make_usage(494_945), None, False, 118).plain
    assert "311k too much" in line
    assert "until compaction" not in line
