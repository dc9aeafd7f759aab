from __future__ import annotations

from pathlib import Path

import pytest

from tui.config.settings import ConfigError, load_settings


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_settings({"CHATCTX_CONFIG": str(path)}).tools


def test_the_tools_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    tools = load_settings({"CHATCTX_CONFIG": str(_file(tmp_path))}).tools
    assert tools.off == ("search_files",)
    assert tools.allow == (tmp_path / "notes",)
    assert tools.rules == {"gh__*": "ask", "gh__delete": "never"}
    assert (tools.steps, tools.result_tokens) == (20, 4_000)


def _file(folder: Path) -> Path:
    path = folder / "config.toml"
    path.write_text(
        '[tools]\noff = ["search_files", "search_files"]\nallow = ["~/notes"]\nsteps = 20\nresult_tokens = "4k"\n'
        '[tools.rules]\n"gh__*" = "ask"\ngh__delete = "never"\n'
    )
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tools = 3", "tools: 3 is not a table; a table begins with a line [tools]"),
        ("[tools]\nstep = 3", "tools.step: there is no such setting; did you mean steps?"),
        ("[tools]\nsteps = 0", "tools.steps: 0 is not a number of steps; write a number from 1 to 1,000"),
        ("[tools]\nsteps = true", "tools.steps: True is not a number of steps"),
        ('[tools]\noff = "a"', "tools.off: 'a' is not a list of tool names; write it like ["),
        ("[tools]\nallow = [3]", "tools.allow: [3] is not a list of folders"),
        ('[tools.rules]\n"*" = "yes"', "tools.rules.*: 'yes' is none of its values; use one of allow, ask, never"),
        ("[tools]\nresult_tokens = -1", "tools.result_tokens: -1 is not a number of tokens"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert words in str(error.value)
    assert "config.toml" in str(error.value)
    assert "\n" not in str(error.value)
