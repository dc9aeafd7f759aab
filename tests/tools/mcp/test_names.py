"""Names that every provider takes."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tui.tools.mcp.results import offered_names

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def test_plain_names_stay_readable() -> None:
    assert offered_names("github", ["create_issue", "get-me"]) == ["github__create_issue", "github__get-me"]


def test_servers_whose_names_begin_alike_do_not_take_each_other_s_tools() -> None:
    assert offered_names("gh", ["_push"]) != offered_names("gh_", ["push"])
    assert offered_names("gh", ["a__b"]) != offered_names("gh__a", ["b"])


def test_names_that_would_meet_are_told_apart() -> None:
    names = offered_names("s", ["a.b", "a/b", "a_b"])
    assert len(set(names)) == 3
    assert names[2] == "s__a_b"
    assert offered_names("a__b", ["c"]) != offered_names("a", ["b__c"])


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=80), st.lists(st.text(max_size=120), unique=True, max_size=20))
def test_every_name_is_valid_unique_and_depends_on_nothing_else(server: str, tools: list[str]) -> None:
    names = offered_names(server, tools)
    assert all(VALID.fullmatch(name) for name in names)
    assert len(set(names)) == len(tools)
    assert [offered_names(server, [tool])[0] for tool in tools] == names
