"""What goes out and what waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.chat.tool_calls.session_tools import plan_tools, schema_budget
from tui.context.usage.limits import ModelLimits, Percent, Tokens
from tui.messages import ToolSchema
from tui.tools.tool_search import SEARCH


def tool(name: str, origin: str = "built-in") -> ToolSchema:
    return ToolSchema(name, f"what {name} does", "{}", origin)


TOOLS = [tool("read_file"), tool("a__1", "a"), tool("a__2", "a"), tool("b__1", "b"), tool("c__1", "c")]
COSTS = dict(zip(TOOLS, [500, 100, 100, 1_000, 150], strict=True))


def test_what_fits_the_budget_goes_out_as_it_is() -> None:
    plan = plan_tools(TOOLS, COSTS, 1_350, loaded=())
    assert plan.sent == tuple(TOOLS)
    assert (plan.deferred, plan.tokens) == ((), 0)


def test_the_most_expensive_server_waits_first_and_built_in_tools_never_do() -> None:
    plan = plan_tools(TOOLS, COSTS, 1_349, loaded=())
    assert [t.name for t in plan.sent] == ["read_file", "a__1", "a__2", "c__1", SEARCH]
    assert "servers: b (1)." in plan.sent[-1].description
    assert [t.name for t in plan.deferred] == ["b__1"]
    assert plan.tokens == 1_000
    none = plan_tools(TOOLS, COSTS, 0, loaded=())
    assert [t.name for t in none.sent] == ["read_file", SEARCH]
    assert "servers: a (2), b (1), c (1)." in none.sent[-1].description
    assert none.tokens == 1_350


def test_what_was_found_comes_last_in_the_order_it_was_found() -> None:
    before = plan_tools(TOOLS, COSTS, 0, loaded=())
    after = plan_tools(TOOLS, COSTS, 0, loaded=("c__1", "a__2", "gone__1", "c__1"))
    assert after.sent[: len(before.sent)] == before.sent  # the provider's cache of it holds
    assert [t.name for t in after.sent[len(before.sent) :]] == ["c__1", "a__2"]
    assert after.tokens == before.tokens - 250


def test_no_request_has_more_tools_than_openai_takes() -> None:
    many = [tool(f"a__{n}", "a") for n in range(120)] + [tool(f"b__{n}", "b") for n in range(9)]
    plan = plan_tools(many, dict.fromkeys(many, 1), 10_000, loaded=())
    assert len(plan.sent) == 10  # the larger server waits, however little it costs
    assert plan_tools(many[:128], dict.fromkeys(many, 1), 10_000, loaded=()).deferred == ()
    crowd = [tool(f"c__{n}", "c") for n in range(500)]
    names = [t.name for t in crowd]
    full = plan_tools(crowd, dict.fromkeys(crowd, 100), 0, loaded=names)
    assert len(full.sent) == 128
    assert [t.name for t in full.sent[1:]] == names[-127:]
    assert len(full.deferred) == 373
    assert full.tokens == 37_300


def test_schemas_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands of deferred tools, and the event loop waits."""
    crowd, compared = [tool(f"c__{n}", "c") for n in range(500)], list[ToolSchema]()
    costs = dict.fromkeys(crowd, 100)
    monkeypatch.setattr(ToolSchema, "__eq__", lambda schema, _: compared.append(schema))
    plan_tools(crowd, costs, 0, loaded=[t.name for t in crowd])
    assert len(compared) <= len(crowd)


@given(
    st.lists(st.tuples(st.sampled_from(["built-in", "a", "b", "c"]), st.integers(0, 1_000)), max_size=12),
    st.integers(0, 3_000),
    st.lists(st.integers(0, 11), max_size=5),
)
def test_nothing_is_lost_nothing_doubled(kinds: list[tuple[str, int]], budget: int, loaded: list[int]) -> None:
    tools = [tool(f"t{index}", origin) for index, (origin, _) in enumerate(kinds)]
    costs = {t: cost for t, (_, cost) in zip(tools, kinds, strict=True)}
    names = [f"t{index}" for index in loaded]
    plan = plan_tools(tools, costs, budget, loaded=names)
    offered = [t for t in plan.sent if t.name != SEARCH]
    assert sorted(t.name for t in (*offered, *plan.deferred)) == sorted(t.name for t in tools)
    assert plan.tokens == sum(costs[t] for t in plan.deferred)
    eager = sum(costs[t] for t in offered if t.origin != "built-in" and t.name not in names)
    assert eager <= budget


def test_the_budget_is_a_share_of_the_window_or_what_is_set() -> None:
    assert schema_budget(ModelLimits(8_000), None) == 800
    assert schema_budget(ModelLimits(1_000_000), None) == 20_000
    assert schema_budget(ModelLimits(None), None) == 20_000
    assert schema_budget(ModelLimits(1_000_000), Percent(5)) == 50_000
    assert schema_budget(ModelLimits(None), Percent(5)) == 20_000
    assert schema_budget(ModelLimits(8_000), Tokens(3_000)) == 3_000
