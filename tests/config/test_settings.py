from __future__ import annotations

from pathlib import Path

import pytest

from tui.config.settings import ConfigError, Settings, load_settings, remember_theme
from tui.config.values import COMPACTION, TARGET, TURNS, parse_tokens
from tui.context.usage.limits import Percent, Tokens


def load(folder: Path, text: str, **env: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(text)
    return load_settings({"CHATCTX_CONFIG": str(path), "CHATCTX_DATA_DIR": str(folder), **env})


def test_everything_in_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        'model = "mine/big"\ncompaction = "70%"\nreserve_output = "8k"\nrolling_context = true\ngguf = "~/x.gguf"\n'
        '[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\napi_key_env = "MINE"\n'
        "idle_timeout = 600\n[providers.anthropic]\ncontext_management = true\n"
        '[models."mine/big"]\nwindow = "128k"\ncompaction = "off"\n[keys]\n"composer.send" = "ctrl+s"\n'
    )
    settings = load_settings({"CHATCTX_CONFIG": str(path)})
    assert settings.model == "mine/big"
    assert settings.compaction == Percent(70)
    assert settings.reserve_output == 8_000
    assert settings.rolling_context
    assert settings.gguf == Path.home() / "x.gguf"
    assert settings.providers["mine"].api_key_env == "MINE"
    assert (settings.providers["mine"].idle_timeout, settings.providers["anthropic"].context_management) == (600, True)
    assert settings.for_model("mine/big").window == 128_000
    assert settings.for_model("mine/big").compaction == "off"
    assert settings.for_model("mine/other").compaction == Percent(70)
    assert settings.keys == {"composer.send": "ctrl+s"}


def test_a_file_of_an_editor_that_marks_utf_8_is_read_and_other_encodings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    env = {"CHATCTX_CONFIG": str(path), "CHATCTX_DATA_DIR": str(tmp_path)}
    path.write_bytes(b"\xef\xbb\xbfmodel = 'a/b'")
    assert load_settings(env).model == "a/b"
    path.write_bytes(b"\xff\xfem\0")
    with pytest.raises(ConfigError, match=r"config\.toml is not UTF-8 text: save it as UTF-8"):
        load_settings(env)


def test_a_file_that_may_not_be_looked_at_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"xxx can't be read \(File name too long\)"):
        load_settings({"CHATCTX_CONFIG": f"/{'x' * 300}", "CHATCTX_DATA_DIR": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"none\.toml, which does not exist: create it or unset"):
        load_settings({"CHATCTX_CONFIG": f"{tmp_path}/none.toml", "CHATCTX_DATA_DIR": str(tmp_path)})


def test_without_any_home_the_way_on_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.PlatformDirs", nobody)
    with pytest.raises(ConfigError, match="set HOME"):
        load_settings({})


def test_a_variable_with_a_home_that_nobody_has(tmp_path: Path) -> None:
    for name in ("CHATCTX_CONFIG", "CHATCTX_DATA_DIR", "CHATCTX_LOG_DIR"):
        with pytest.raises(ConfigError, match=f"^{name}: '~nobody-here' is not a home folder here"):
            load_settings({name: "~nobody-here/x"})


def test_flags_beat_the_environment_beats_the_file_beats_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    env = {"CHATCTX_CONFIG": str(path), "CHATCTX_DATA_DIR": str(tmp_path)}
    path.write_text("")
    assert load_settings(env).theme == "chatctx-dark"
    remember_theme(tmp_path, "paper")
    assert load_settings(env).theme == "paper"
    path.write_text('theme = "slate"\nmodel = "a/b"\n')
    assert load_settings(env).theme == "slate"
    assert load_settings({**env, "CHATCTX_THEME": "ember"}).theme == "ember"
    assert load_settings({**env, "CHATCTX_THEME": "ember"}, theme="forest").theme == "forest"
    assert load_settings(env, model=None).model == "a/b"
    assert load_settings(env, model=None).asked_model is None
    settings = load_settings(env, model="c/d")
    assert (settings.model, settings.asked_model) == ("c/d", "c/d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = ", "not valid TOML"),
        ("modle = 'x'", "did you mean model?"),
        ("model = 3", "model: 3 is not text; write it in quotes"),
        ("rolling_context = 'yes'", "neither true nor false; write one of them"),
        ("reserve_output = -5", "reserve_output"),
        ("memory_files = 'AGENTS.md'", "not a list of file names; write it like"),
        ("memory_files = ['a/AGENTS.md']", "name alone"),
        ("compaction = '120%'", "between 0 and 100"),
        ("providers = 3", "a table begins with a line [providers.work]"),
        ("[providers.x]\nkind = 'magic'", "use one of"),
        ("[providers.x]\nbase_url = 'localhost:80'", "http://"),
        ("[providers.x]\napi_key = 'secret-value'", "api_key_env"),
        ("[providers.x]\ncontext_management = 'yes'", "neither true nor false"),
        ("[providers.x]\nidle_timeout = 0", "seconds"),
        ("[providers.x]\nidle_timeout = true", "seconds"),
        ("[models.'a/b']\nwindow = 'big'", "models.a/b.window: 'big' is not a number of tokens; write it like 128000"),
        (
            "[models.'a/b']\ncompaction = 'sometimes'",
            "models.a/b.compaction: 'sometimes' is not a threshold; write \"85%\"",
        ),
        ("compaction = 0", "not a threshold"),
        ("compaction = 85", 'compaction: 85 would be 85 tokens; write "85%" for a percentage'),
        ("compaction = '85'", 'compaction: 85 would be 85 tokens; write "85%" for a percentage'),
        ("compaction_target = 50", "compaction_target: 50 would be 50 tokens"),
        ("compaction_target = 'off'", "compaction_target: 'off' is not a size; write \"40%\", 60000"),
        ("compaction_target = '85%'", "compaction_target: 85% is not below 85%, where compaction starts"),
        (
            "compaction = '50k'\ncompaction_target = '60k'",
            "compaction_target: 60,000 tokens is not below 50,000 tokens, where compaction starts",
        ),
        (
            "[models.'a/b']\ncompaction = '30%'\ncompaction_target = '40%'",
            "models.a/b.compaction_target: 40% is not below 30%",
        ),
        (
            "compaction_target = '40%'\n[models.'a/b']\ncompaction = '30%'",
            "models.a/b.compaction_target: 40% is not below 30%",
        ),
        ("preserve_recent_turns = 0", "preserve_recent_turns: 0 is not a number of turns; write a number from 1"),
        (
            "[models.'a/b']\npreserve_recent_turns = '4'",
            "models.a/b.preserve_recent_turns: '4' is not a number of turns",
        ),
        ("[models.'a/b']\ntheme = 'x'", "models.a/b.theme: there is no such setting; known: compaction"),
        (
            "reasoning = 'much'",
            "reasoning: 'much' is none of its values; use one of off, minimal, low, medium, high, xhigh",
        ),
        ("[models.gpt]\nwindow = 1", 'write the whole name, [models."provider/model"]'),
        ("[providers.'a/b']\nbase_url = 'http://x'", "a provider's name has no slash"),
        ("[providers.x]\nbase_url = 'http://[::1'", "providers.x.base_url: 'http://[::1' is not an address"),
        ("[providers.x]\nbase_url = 'http://x:99999'", "is not an address"),
        ("[providers.x]\nbase_url = 'http://x/v1 '", "is not an address"),
        (
            "[providers.x]\nbase_url = 'http://me:se/cret@x/v1'",
            "base_url: '…@x/v1' is not an address",
        ),  # no password is shown
        (
            "[providers.x]\nidle_timeout = 2_000_000",
            "is not a number of seconds; write a number from 0.001 to 1,000,000",
        ),
        ("gguf = '~nobody-here/x'", "gguf: '~nobody-here' is not a home folder here"),
        ("[tools]\nallow = ['~nobody-here']", "tools.allow: '~nobody-here' is not a home folder here"),
        ("reserve_output = " + "9" * 5_000, "not valid TOML"),
        ("x = " + "[" * 5_000, "not valid TOML"),
    ],
)
def test_what_can_not_be_used_is_named_with_its_file_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert words in str(caught.value)
    assert str(tmp_path / "config.toml") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret-value" not in str(caught.value)


def test_a_config_file_that_is_asked_for_and_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_settings({"CHATCTX_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize(
    ("text", "tokens"), [("128k", 128_000), ("1m", 1_000_000), ("200,000", 200_000), (5, 5), ("1.5K", 1_500)]
)
def test_tokens(text: object, tokens: int) -> None:
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "k", "-1", 0, True, "nan", "inf", "1e30", None, [], "12 apples"])
def test_no_tokens(text: object) -> None:
    with pytest.raises(ValueError, match="not a number of tokens"):
        parse_tokens(text)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "3", 10_000, None])
def test_no_turns(value: object) -> None:
    with pytest.raises(ValueError, match="not a number of turns"):
        TURNS.read(value)


def test_what_compaction_does_is_set_for_all_models_and_for_one(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        'compaction = "80%"\ncompaction_target = "40%"\npreserve_recent_turns = 6\nreserve_output = "4k"\n'
        '[models."mine/big"]\ncompaction = "120k"\ncompaction_target = "60k"\npreserve_recent_turns = 2\n'
        'reserve_output = 9000\n[models."mine/off"]\ncompaction = "off"\n'
    )
    settings = load_settings({"CHATCTX_CONFIG": str(path)})
    by_name = {name: settings.for_model(f"mine/{name}") for name in ("other", "big", "off")}
    values = {name: (m.compaction, m.compaction_target, m.preserve_recent_turns) for name, m in by_name.items()}
    assert values == {
        "other": (Percent(80), Percent(40), 6),
        "big": (Tokens(120_000), Tokens(60_000), 2),
        "off": ("off", Percent(40), 6),
    }
    assert [by_name[name].reserve_output for name in ("other", "big")] == [4_000, 9_000]


def test_compaction() -> None:
    assert (TARGET.read("40%"), TARGET.read("60k"), TARGET.read(900)) == (Percent(40), Tokens(60_000), Tokens(900))
    assert COMPACTION.read("85%") == Percent(85)
    assert COMPACTION.read("120k") == Tokens(120_000)
    assert COMPACTION.read("off") == "off"
    with pytest.raises(ValueError, match='"off"'):
        COMPACTION.read("sometimes")


def test_memory_files_are_names(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text, names in (
        ("", ("AGENTS.md",)),
        ("memory_files = []", ()),
        ('memory_files = ["A", "B", "A"]', ("A", "B")),
    ):
        path.write_text(text)
        assert load_settings({"CHATCTX_CONFIG": str(path)}).memory_files == names


def test_the_tools_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = (
        '[tools]\noff = ["search_files", "search_files"]\nallow = ["~/notes"]\nsteps = 20\nresult_tokens = "4k"\n'
        '[tools.rules]\n"gh__*" = "ask"\ngh__delete = "never"\n'
    )
    tools = load(tmp_path, text).tools
    assert tools.off == ("search_files",)
    assert tools.allow == (tmp_path / "notes",)
    assert tools.rules == {"gh__*": "ask", "gh__delete": "never"}
    assert (tools.steps, tools.result_tokens) == (20, 4_000)


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
def test_an_unusable_tools_table_is_named_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert words in str(error.value)
    assert "config.toml" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("keys", "shown"), [({}, "esc"), ({"a": " f2, f3"}, "f2"), ({"a": ""}, "esc")])
def test_the_key_to_show_is_the_first_that_is_set(keys: dict[str, str], shown: str) -> None:
    assert Settings(keys=keys).key("a", "esc") == shown
