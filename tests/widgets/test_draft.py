"""Prompt history and paste chips."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.widgets.draft import MAX_PROMPTS, PasteChips, PromptHistory


def test_history_goes_back_and_returns_to_the_draft() -> None:
    history = PromptHistory(["one", "two"])
    assert history.back("my draft") == "two"
    assert history.back("two") == "one"
    assert history.back("one") is None
    assert history.forward("one") == "two"
    assert history.forward("two") == "my draft"
    assert history.forward("my draft") is None


def test_a_draft_left_for_an_earlier_prompt_is_not_lost() -> None:
    history = PromptHistory(["one"])
    assert history.back("my draft") == "one"
    history.add("one")
    assert [history.back(""), history.back("one"), history.back("my draft")] == ["one", "my draft", "one"]
    assert [history.forward("one"), history.forward("my draft"), history.forward("one")] == ["my draft", "one", ""]
    history.add("sent")
    assert [history.back(""), history.back("sent")] == ["sent", "one"]


def test_a_prompt_that_was_changed_is_as_it_was_left() -> None:
    history = PromptHistory(["one", "two"])
    assert history.back("my draft") == "two"
    assert history.back("two, changed") == "one"
    assert history.hidden == ["two, changed", "my draft"]
    assert history.forward("one") == "two, changed"
    assert history.hidden == ["my draft"]
    history.add("two, changed more")
    assert history.hidden == []
    assert [history.back(""), history.back("two, changed more")] == ["two, changed more", "my draft"]


def test_repeating_a_prompt_keeps_one_entry_and_earlier_runs_come_first() -> None:
    history = PromptHistory()
    history.add("now")
    history.add("now")
    history.load(["before"])
    assert [history.back(""), history.back(""), history.back("")] == ["now", "before", None]


def test_prompts_of_earlier_runs_that_arrive_late_hide_no_draft_and_no_edit() -> None:
    history = PromptHistory()
    history.add("one")
    history.add("two")
    assert [history.back("my draft"), history.back("two, changed")] == ["two", "one"]
    history.load(["before"])
    assert history.hidden == ["two, changed", "my draft"]
    assert history.back("one") == "before"
    assert [history.forward("before"), history.forward("one")] == ["one", "two, changed"]
    assert history.forward("two, changed") == "my draft"


def test_history_is_bounded() -> None:
    history = PromptHistory(str(n) for n in range(3 * MAX_PROMPTS))
    steps = 0
    while history.back("") is not None:
        steps += 1
    assert steps == MAX_PROMPTS


def test_a_paste_is_whole_again_when_sent() -> None:
    chips = PasteChips()
    text = "line\n" * 200_000
    label = chips.fold(text)
    assert label == "[paste 1: 200,001 lines, 1.0 MB]"
    assert chips.expand(f"look: {label} ok") == f"look: {text} ok"
    assert chips.split(f"look: {label} ok") == ("look:  ok", [text])
    assert chips.label_before(f"x{label}", len(label) + 1) == label
    assert chips.label_before(f"x{label}", len(label)) is None


def test_a_label_that_was_edited_is_plain_text() -> None:
    chips = PasteChips()
    label = chips.fold("x" * 5_000)
    assert chips.expand(label[:-1]) == label[:-1]


def test_a_paste_that_quotes_a_label_is_not_unfolded_twice() -> None:
    chips = PasteChips()
    first = chips.fold("a" * 3_000)
    second = chips.fold(f"quoting {first}" + "b" * 3_000)
    assert chips.expand(second) == f"quoting {first}" + "b" * 3_000


@given(st.lists(st.text(), max_size=4), st.text())
def test_whatever_is_pasted_comes_back(pastes: list[str], typed: str) -> None:
    chips = PasteChips()
    pastes = [text + "\n" * 24 for text in pastes]
    labels = [chips.fold(text) for text in pastes]
    assert all(label.startswith("[paste ") for label in labels)
    safe = typed.replace("[", "(")
    assert chips.expand(safe + "|".join(labels)) == safe + "|".join(pastes)


def test_small_pastes_stay_as_they_are() -> None:
    for text, large in (("two\nlines", False), ("x" * 2_000, False), ("x" * 2_001, True), ("\n" * 24, True)):
        assert (PasteChips().fold(text) != text) is large
