"""Tools under `chatctx ask`, where nobody can be asked: what is allowed runs, what would ask is refused and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chat.calling.tool_calls import Source, calls
from tests.chat.fakes import ScriptedProvider, answer, open_workspace
from tui.cli.subcommands.ask import _stream


@pytest.mark.parametrize(
    ("allowed", "ran", "said"),
    [
        ((), [], ["calls write", "write was not run: nobody can be asked; --allow write"]),
        (("wr*",), ["write"], ["calls write"]),
    ],
)
async def test_what_is_not_allowed_is_refused_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: tuple[str, ...], ran: list[str], said: list[str]
) -> None:
    source = Source("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write"), answer("done")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        outcome = await _stream(await workspace.new_session(), "do it", [], silent=False, allowed=allowed)
    out, err = capsys.readouterr()
    assert source.ran == ran
    assert outcome.exit_code() == 0
    assert out.endswith("done\n")
    assert err.splitlines() == [f"chatctx: {line}" for line in said]
