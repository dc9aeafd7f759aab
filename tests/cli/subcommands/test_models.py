"""`chatctx models`: the list as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.providers.replay import replay_server
from tui.cli import table
from tui.cli.subcommands.listing import _models
from tui.config.settings import ProviderSettings, Settings

LIST = {"data": [{"id": "one", "context_length": 32_000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}}]}


async def test_a_server_is_listed_with_what_is_known_and_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with replay_server() as server:
        server.json(LIST, path="/v1/models")
        url = f"{server.url}/v1"
        settings = Settings(data_dir=tmp_path, providers={"box": ProviderSettings(base_url=url)})
        assert await _models(settings, "box/", False) == 0
        head, row, *_ = capsys.readouterr().out.splitlines()
        assert row.split()[:2] == ["box/one", "32,000"]
        assert row[head.index("$ in") :].split()[:4] == ["1", "2", "?", "?"]  # prices; images and tools
        assert await _models(settings, "box/", True) == 0
        [entry] = json.loads(capsys.readouterr().out)
        assert (entry["name"], entry["context"], entry["price_input"], entry["images"]) == (
            "box/one",
            32_000,
            1.0,
            None,
        )
        assert await _models(settings, "nowhere", False) == 0
        assert capsys.readouterr().out == "No model matches.\n"


def test_columns_are_as_wide_as_their_cells_on_the_terminal() -> None:
    lines = table([("日本", "1", "a"), ("b", "1,000", "👩\u200d👩\u200d👧")], frozenset({1})).split("\n")
    assert lines == ["日本      1  a", "b     1,000  👩\u200d👩\u200d👧"]
