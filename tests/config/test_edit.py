"""One table of the config file is changed, the rest of the file is not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.config.settings import load_settings, with_provider, write_provider

OLD = """# mine
model = "work/x"   # the usual

[providers.work]
# our box
base_url = "http://box/v1"
api_key_command = "pass show box"

[models."work/x"]
window = "128k"
"""


def test_a_table_is_added_at_the_end_or_changed_in_its_place() -> None:
    assert with_provider("", "groq", {"api_key_env": "G"}) == '[providers.groq]\napi_key_env = "G"\n'
    added = with_provider(OLD, "groq", {"api_key_env": "G"})
    assert added == OLD + '\n[providers.groq]\napi_key_env = "G"\n'
    changed = with_provider(OLD, "work", {"api_key_env": "W", "api_key_command": None})
    assert "# our box" in changed and "# mine" in changed and "pass show" not in changed
    assert tomllib.loads(changed)["providers"]["work"] == {"api_key_env": "W", "base_url": "http://box/v1"}
    assert tomllib.loads(changed)["models"] == tomllib.loads(OLD)["models"]


FORMS = {
    "a table": '[providers.work]\nbase_url = "http://box/v1"\n[providers.other]\nbase_url = "http://o"\n',
    "inline": 'providers = { work = { base_url = "http://box/v1" } }  # comment\n',
    "inline below a table": '[providers]\nwork = { base_url = "http://box/v1" } # comment\nother = {}\n',
    "dotted keys": 'model = "x/y"\nproviders.work.base_url = "http://box/v1"\nproviders.work.kind = "a"\ntheme = "t"\n',
    "dotted keys below a table": '[providers]\nwork.base_url = "http://box/v1"\n# comment\n[tools]\nsteps = 3\n',
    "text of several lines": '[providers.work]\napi_key_command = """\npass show\n[x]"""\n# comment\n',
    "quoted": '[providers."work"]\nbase_url = "http://box/v1"\n',
    "blanks in the header": '[ providers . work ]\nbase_url = "http://box/v1"\n',
    "tables apart": '[providers.work]\nkind = "openai"\n[tools]\nsteps = 3\n[providers.other]\nkind = "openai"\n',
    "an empty table above": "[providers]\n# comment\n\n[providers.work]\n",
    "no line end": '[providers.work]\nbase_url = "http://box/v1"',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", ["work", "groq", "a b"])
def test_every_form_of_a_table_can_be_changed_and_comments_stay(text: str, name: str) -> None:
    changed = with_provider(text, name, {"api_key_command": "x", "base_url": None})
    before, after = tomllib.loads(text), tomllib.loads(changed)
    assert after.pop("providers")[name]["api_key_command"] == "x"
    assert after == {key: value for key, value in before.items() if key != "providers"}
    assert re.findall("#.*", changed) == re.findall("#.*", text)


def test_a_comment_about_the_next_table_stays_before_it() -> None:
    text = '[providers.work]\nkind = "openai"\n\n# about tools\n[tools]\nsteps = 3\n'
    changed = with_provider(text, "work", {"api_key_env": "W"})
    assert changed == text.replace('"openai"\n', '"openai"\napi_key_env = "W"\n')


@pytest.mark.parametrize("text", ["providers = 3\n", "[providers]\nwork = 3\n", "[[providers]]\na = 1\n"])
def test_providers_that_are_no_tables_are_left_alone(text: str) -> None:
    with pytest.raises(ValueError, match="are not tables"):
        with_provider(text, "work", {"api_key_command": "x"})


@given(st.text(max_size=30), st.from_regex(r"[a-z][a-z0-9._-]{0,8}", fullmatch=True))
def test_any_value_survives(value: str, name: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return  # no file can hold it
    for text in ("", OLD):
        after = tomllib.loads(with_provider(text, name, {"api_key_command": value}))
        assert after["providers"][name]["api_key_command"] == value


def test_the_file_is_whole_its_rights_stay_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles" / "config.toml", tmp_path / "chatctx" / "config.toml"
    real.parent.mkdir()
    link.parent.mkdir()
    real.write_text(OLD)
    real.chmod(0o600)
    link.symlink_to(real)
    write_provider(link, "groq", {"api_key_env": "GROQ_2"})
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    assert load_settings({"CHATCTX_CONFIG": str(link)}).providers["groq"].api_key_env == "GROQ_2"
    assert [path.name for path in real.parent.iterdir()] == ["config.toml"]
    write_provider(tmp_path / "new" / "config.toml", "groq", {"api_key_env": "G"})
    assert (tmp_path / "new" / "config.toml").read_text() == '[providers.groq]\napi_key_env = "G"\n'


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(OLD.replace("\n", "\r\n").encode())
    write_provider(path, "work", {"api_key_env": "W"})
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n") == OLD.count("\n") + 1
