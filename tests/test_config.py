from __future__ import annotations

from pathlib import Path

import pytest

from tui.config import ConfigError, load_settings, parse_compaction, parse_tokens, remember_theme


def load(folder: Path, text: str, **env: str) -> object:
    path = folder / "config.toml"
    path.write_text(text)
    return load_settings({"CHATCTX_CONFIG": str(path), "CHATCTX_DATA_DIR": str(folder), **env})


def test_everything_in_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        'model = "mine/big"\ncompaction = "70%"\nreserve_output = "8k"\nrolling_context = true\ngguf = "~/x.gguf"\n'
        '[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\napi_key_env = "MINE"\n'
        "idle_timeout = 600\n[providers.anthropic]\ncontext_editing = true\n"
        '[models."mine/big"]\nwindow = "128k"\ncompaction = "off"\n[keys]\n"composer.send" = "ctrl+s"\n'
    )
    settings = load_settings({"CHATCTX_CONFIG": str(path)})
    assert settings.model == "mine/big"
    assert settings.compaction == 70.0
    assert settings.reserve_output == 8_000
    assert settings.rolling_context
    assert settings.gguf == Path.home() / "x.gguf"
    assert settings.providers["mine"].api_key_env == "MINE"
    assert (settings.providers["mine"].idle_timeout, settings.providers["anthropic"].context_editing) == (600, True)
    assert settings.for_model("mine/big").window == 128_000
    assert settings.for_model("mine/big").compaction == "off"
    assert settings.for_model("mine/other").compaction == 70.0
    assert settings.keys == {"composer.send": "ctrl+s"}


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
    asked = load_settings(env, model="c/d")
    assert (asked.model, asked.asked_model) == ("c/d", "c/d")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = ", "not valid TOML"),
        ("modle = 'x'", "did you mean model?"),
        ("model = 3", "model is 3"),
        ("rolling_context = 'yes'", "true or false"),
        ("reserve_output = -5", "reserve_output"),
        ("memory_files = 'AGENTS.md'", "list of file names"),
        ("memory_files = ['a/AGENTS.md']", "name alone"),
        ("compaction = '120%'", "between 0 and 100"),
        ("providers = 3", "[providers]"),
        ("[providers.x]\nkind = 'magic'", "use one of"),
        ("[providers.x]\nbase_url = 'localhost:80'", "http://"),
        ("[providers.x]\napi_key = 'secret-value'", "api_key_env"),
        ("[providers.x]\ncontext_editing = 'yes'", "true or false"),
        ("[providers.x]\nidle_timeout = 0", "seconds"),
        ("[providers.x]\nidle_timeout = true", "seconds"),
        ("[models.'a/b']\nwindow = 'big'", "128k"),
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


def test_compaction() -> None:
    assert parse_compaction("85%") == 85.0
    assert parse_compaction("120k") == 120_000
    assert parse_compaction("off") == "off"
    with pytest.raises(ValueError, match='"off"'):
        parse_compaction("sometimes")


def test_memory_files_are_names(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for text, names in (
        ("", ("AGENTS.md",)),
        ("memory_files = []", ()),
        ('memory_files = ["A", "B", "A"]', ("A", "B")),
    ):
        path.write_text(text)
        assert load_settings({"CHATCTX_CONFIG": str(path)}).memory_files == names
