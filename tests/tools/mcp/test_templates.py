from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.tools.mcp.results import Gap, ServerPattern, gap


def test_an_address_is_filled_gap_by_gap() -> None:
    template = "repo://{owner}/{name}/blob/{+path}"
    assert ServerPattern("s", template, "").head == "repo://"
    assert gap(template, "repo://me%20") == Gap("owner", "repo://", "me ", {}, "/", False)
    assert gap(template, "repo://me/x") == Gap("name", "repo://me/", "x", {"owner": "me"}, "/blob/", False)
    last = gap(template, "repo://me/x/blob/src/a")
    assert last == Gap("path", "repo://me/x/blob/", "src/a", {"owner": "me", "name": "x"}, "", True, reserved=True)
    assert last.filled("src/a b.py") == "repo://me/x/blob/src/a%20b.py"
    first = gap(template, "repo://")
    assert first is not None and first.filled("a/b") == "repo://a%2Fb/"


@pytest.mark.parametrize(("template", "uri"), [("x://{a}", "y://"), ("x://fixed", "x://fixed"), ("{a}.md", "b.md")])
def test_what_does_not_follow_the_template_or_is_whole_has_no_gap(template: str, uri: str) -> None:
    assert gap(template, uri) is None


def test_modifiers_and_further_names_of_a_variable_are_no_part_of_its_name() -> None:
    found = gap("x://{/path*}?{id:3,more}", "x://a?")
    assert found is not None and (found.variable, found.filled_in) == ("id", {"path": "a"})


def test_templates_that_never_close_take_no_time_that_grows_with_their_square() -> None:
    assert gap("{" + "a" * 1_000_000, "x") is gap("{a" * 500_000, "x") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_template_and_no_address_is_too_odd(template: str, uri: str) -> None:
    found = gap(template, uri)
    assert found is None or uri.startswith(found.before)
