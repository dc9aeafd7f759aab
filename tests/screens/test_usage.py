"""`/usage` of a fork."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from tests.screens.conftest import running
from tests.screens.scenarios import Scenario, assistant, ident, user
from tests.screens.scenes import CALL


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (40, 15)])
async def test_a_fork_says_what_came_before_it_and_where_that_counts(size: tuple[int, int]) -> None:
    call = replace(CALL, session="parent", message=ident("m2"), at=time.time(), input_total=50_000, output_total=2_000)
    scenario = Scenario(messages=[user("hi"), assistant("ho")], calls=[call])
    async with running(scenario, size=size) as run:
        await run.command("/usage")
        await run.shows("session", "total")
        await run.press(*["down"] * 8)
        text = "This is a fork: 1 call before it (50.0k in, 2.0k out, $0.42) count in the conversation it came from"
        await run.until(lambda: text in " ".join(re.sub("[│▁▂▃▄▅▆▇█]", "", run.text).split()))
