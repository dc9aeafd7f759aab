"""200 tools of a real MCP server, counted by the real model's server: all sent, and with deferred loading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.tools import COUNT, measure
from tests.real.conftest import StartServer


async def test_deferred_loading_leaves_next_to_nothing_of_what_200_tools_cost(
    llama_server: StartServer, think_template: Path, tmp_path: Path
) -> None:
    pytest.importorskip("mcp", reason="servers need the extra mcp: pip install 'chatctx[mcp]'")
    server = llama_server(template=think_template)
    nothing, everything, deferred = await measure(server.url, server.model, tmp_path)
    assert (nothing.tools, deferred.tools) == (0, 1)
    assert everything.tools >= COUNT
    for cost in (nothing, everything, deferred):
        assert cost.shown == cost.measured  # what was counted is what is shown
    for before, all_sent, few_sent in (
        (nothing.predicted, everything.predicted, deferred.predicted),
        (nothing.measured, everything.measured, deferred.measured),
    ):
        assert before < few_sent < all_sent
        assert few_sent - before < 0.01 * (all_sent - before)
    assert deferred.deferred + deferred.row > 0.99 * everything.row  # what is said to be saved is what is saved
    assert abs(everything.predicted - everything.measured) < 0.3 * everything.measured  # another family's tokenizer
