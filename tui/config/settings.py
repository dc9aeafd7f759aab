"""Settings: defaults < config file < environment < flags; and writing to the config file.

The only module that knows file locations.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tui.config.files import FileTooLargeError, from_home, open_private, private_folder, read_all
from tui.config.values import (
    COMPACTION,
    EFFORT,
    FILE_NAMES,
    FLAG,
    MAX_SECONDS,
    PATH,
    TARGET,
    TEXT,
    TOKENS,
    TOKENS_OR_OFF,
    TURNS,
    URL,
    Compaction,
    Kind,
    SettingError,
    as_table,
    choice,
    number,
    parse_path,
    read_table,
    setting,
    table_kind,
    table_schema,
    tables_kind,
    texts,
)
from tui.context.usage.limits import DEFAULT_COMPACTION, DEFAULT_RESERVE, Percent, Tokens
from tui.errors import ExpectedError

DEFAULT_THEME = "chatctx-dark"
MAX_BYTES = 5_000_000
THEME_FILE = "theme"
PROVIDER_KINDS = ("openai-compatible", "openai", "anthropic")
MAX_STEPS = 1_000
MAX_WAIT = 120  # seconds

Rule: TypeAlias = Literal["allow", "ask", "never"]
"""Whether a tool runs without asking, asks first, or is not run at all."""


class ConfigError(ExpectedError):
    """An unusable setting. `str()` is one line: where, what, and what to do."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A `[providers.NAME]` table. The key itself is never stored."""

    kind: str = setting(choice(*PROVIDER_KINDS), "openai-compatible", "the protocol that the server speaks")
    base_url: str | None = setting(URL, None, "the server's address, like http://127.0.0.1:8080/v1")
    api_key_env: str | None = setting(TEXT, None, "the environment variable that holds the key")
    api_key_command: str | None = setting(TEXT, None, "a shell command that prints the key, like: pass show work")
    context_management: bool = setting(FLAG, False, "let Anthropic clear old tool results by itself")
    idle_timeout: float | None = setting(
        number(0.001, MAX_SECONDS, "a number of seconds"),
        None,
        "seconds of silence after which an answer counts as stalled",
    )
    max_response: int | None = setting(
        number(1000, 10**12, "a number of bytes", integer=True), None, "the most bytes of one answer, decompressed"
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A `[models."provider/model"]` table; None uses the general setting. Sizes are in tokens."""

    window: int | None = setting(TOKENS, None, 'the context window, in tokens, like 128000 or "128k"')
    compaction: Compaction | None = setting(COMPACTION, None, "when compaction starts, for this model")
    compaction_target: Percent | Tokens | None = setting(TARGET, None, "the size after a compaction, for this model")
    preserve_recent_turns: int | None = setting(
        TURNS, None, "latest turns that a compaction leaves as they are, for this model"
    )
    reserve_output: int | None = setting(TOKENS, None, "tokens reserved for the answer, for this model")


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """A person's settings for tools. Names may be patterns: "github__*" is every tool of that server."""

    off: tuple[str, ...] = setting(
        texts("tool names", '["search_files"]'), (), "tools that are not offered to the model; patterns like github__*"
    )
    allow: tuple[Path, ...] = setting(
        texts("folders", '["~/notes"]', parse_path), (), "folders outside the working directory that tools may read"
    )
    rules: Mapping[str, Rule] = setting(
        tables_kind(choice(*get_args(Rule)), "[tools.rules]"),
        dict,
        "tools, or patterns of tools, that run without asking (allow), ask first (ask), or do not run (never)",
    )
    steps: int = setting(
        number(1, MAX_STEPS, "a number of steps", integer=True), 100, "tool steps after which a turn stops"
    )
    result_tokens: int = setting(
        TOKENS, 10_000, "tokens of a tool result that are sent; the whole result is stored and can be opened"
    )
    defer: Compaction | None = setting(
        COMPACTION,
        None,
        "the most that tool schemas of MCP servers may take, in percent of the window or tokens; beyond it they are"
        " sent once the model has searched for them",
    )
    instructions: int | Literal["off"] = setting(
        TOKENS_OR_OFF, 1_000, 'tokens of an MCP server\'s instructions that are sent; "off" sends none'
    )
    wait: float = setting(
        number(0, MAX_WAIT, "a number of seconds"),
        5.0,
        "seconds that the first message waits for MCP servers to start",
    )


def _read_provider(value: object) -> ProviderSettings:
    if "api_key" in as_table(value, "[providers.work]"):
        raise SettingError("keys are not kept in files; use api_key_env or api_key_command", "api_key")
    return ProviderSettings(**read_table(ProviderSettings, value, "[providers.work]"))


def _check_provider_name(name: str) -> None:
    if "/" in name:
        raise ValueError("a provider's name has no slash, models are named provider/model")


def _check_model_name(name: str) -> None:
    if "/" not in name and name != "local":
        raise ValueError('write the whole name, [models."provider/model"]')


_PROVIDERS = tables_kind(Kind(_read_provider, table_schema(ProviderSettings)), "[providers.work]", _check_provider_name)
_MODELS = tables_kind(
    table_kind(ModelSettings, '[models."provider/model"]'), '[models."provider/model"]', _check_model_name
)
_SERVERS = Kind(lambda value: as_table(value, "[mcpServers.NAME]"), {"type": "object"})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. Sizes are in tokens unless named otherwise."""

    model: str | None = setting(TEXT, None, "the model to start with, as provider/model")
    asked_model: str | None = None  # from the command line: applies to stored sessions too
    gguf: Path | None = setting(PATH, None, "weights for the embedded model")
    theme: str = setting(TEXT, DEFAULT_THEME, "colours to start with")
    rolling_context: bool = setting(FLAG, False, "leave out old content when the window is nearly full")
    compaction: Compaction = setting(
        COMPACTION, DEFAULT_COMPACTION, 'when compaction starts: "85%" of the input budget, 120000, "120k" or "off"'
    )
    compaction_target: Percent | Tokens | None = setting(
        TARGET, None, "the size after a compaction; by default half of the input budget"
    )
    reserve_output: int = setting(TOKENS, DEFAULT_RESERVE, "tokens of the window reserved for the answer")
    preserve_recent_turns: int = setting(TURNS, 4, "latest turns that a compaction leaves as they are")
    reasoning: str | None = setting(EFFORT, None, "the reasoning effort of the model")
    system: str = setting(TEXT, "", "the system prompt of new sessions")
    memory_files: tuple[str, ...] = setting(
        FILE_NAMES,
        ("AGENTS.md",),
        "names of files with instructions, in the working directory and the folders above it",
    )
    providers: Mapping[str, ProviderSettings] = setting(_PROVIDERS, dict, "servers and how to reach them, by name")
    models: Mapping[str, ModelSettings] = setting(_MODELS, dict, "settings of one model, by provider/model")
    keys: Mapping[str, str] = setting(
        tables_kind(TEXT, "[keys]"), dict, "the key of an action, like ctrl+s, by the id that F1 lists"
    )
    tools: ToolSettings = setting(table_kind(ToolSettings, "[tools]"), ToolSettings, "what tools may do")
    mcp_servers: Mapping[str, Any] = setting(  # not parsed: see `tools.mcp.config`
        _SERVERS, dict, "MCP servers by name, in the form that other programs use", name="mcpServers"
    )
    config_file: Path = Path()
    data_dir: Path = Path()
    log_dir: Path = Path()

    def key(self, name: str, default: str) -> str:
        """The first key that the person has set for a binding, or else the `default`."""
        return (self.keys.get(name) or default).split(",")[0].strip()

    def for_model(self, full_name: str) -> ModelSettings:
        """The settings of one model ("provider/model"), completed with the general ones."""
        model = self.models.get(full_name, ModelSettings())
        unset = [field.name for field in fields(model) if getattr(model, field.name) is None and field.name != "window"]
        return replace(model, **{name: getattr(self, name) for name in unset})

    @property
    def themes_dir(self) -> Path:
        """The person's own themes: `themes/` beside the config file."""
        return self.config_file.parent / "themes"

    @property
    def database(self) -> Path:
        """The session store."""
        return self.data_dir / "chatctx.db"

    @property
    def log_file(self) -> Path:
        """The program's log."""
        return self.log_dir / "chatctx.log"


def load_settings(environ: Mapping[str, str] | None = None, **flags: object) -> Settings:
    """Read the config file and the environment; `flags` that are not None take precedence.

    Variables: `CHATCTX_CONFIG` (file), `CHATCTX_DATA_DIR`, `CHATCTX_LOG_DIR`, `CHATCTX_MODEL`, `CHATCTX_THEME`. Raises
    `ConfigError` for anything unusable.
    """
    from platformdirs import PlatformDirs

    env = os.environ if environ is None else environ
    try:
        dirs = PlatformDirs("chatctx", appauthor=False)
        config_dir, data_dir, log_dir = dirs.user_config_path, dirs.user_data_path, dirs.user_log_path
    except RuntimeError:  # from platformdirs: neither HOME nor the user database has a home folder
        raise ConfigError("there is no home folder here: set HOME to a folder that can be written to") from None
    config_file = _placed(env, "CHATCTX_CONFIG", config_dir / "config.toml")
    data_dir = _placed(env, "CHATCTX_DATA_DIR", data_dir)
    defaults = Settings(theme=remembered_theme(data_dir) or DEFAULT_THEME)
    settings = _from_file(config_file, defaults, named=bool(env.get("CHATCTX_CONFIG")))
    settings = replace(
        settings,
        config_file=config_file,
        data_dir=data_dir,
        log_dir=_placed(env, "CHATCTX_LOG_DIR", log_dir),
        model=env.get("CHATCTX_MODEL") or settings.model,
        theme=env.get("CHATCTX_THEME") or settings.theme,
    )
    overrides: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    return replace(settings, asked_model=overrides.get("model"), **overrides)


def _placed(env: Mapping[str, str], name: str, otherwise: Path) -> Path:
    try:
        return from_home(env[name]) if env.get(name) else otherwise
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def remembered_theme(data_dir: Path) -> str | None:
    """The theme chosen last on screen. A separate file, read before the first frame, unlike the database."""
    try:
        return (data_dir / THEME_FILE).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None  # nothing was chosen yet, or it can't be read: use the default


def remember_theme(data_dir: Path, name: str) -> None:
    """Use this theme from now on, unless the config file names one. Raises OSError."""
    private_folder(data_dir)
    with open_private(data_dir / THEME_FILE, "w", encoding="utf-8") as file:
        file.write(name + "\n")


def _from_file(path: Path, defaults: Settings, *, named: bool) -> Settings:
    try:
        content = b"" if path.samefile(os.devnull) else read_all(path, MAX_BYTES)
        data = tomllib.loads(content.decode("utf-8-sig"))
    except FileNotFoundError:
        if named:
            text = f"CHATCTX_CONFIG names {path}, which does not exist: create it or unset the variable"
            raise ConfigError(text) from None
        return defaults
    except FileTooLargeError:
        raise ConfigError(f"{path} has more than {MAX_BYTES:,} bytes: shorten or remove it") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror}): fix or remove it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # of TOML, of a number with thousands of digits, of deep nesting
        raise ConfigError(f"{path} is not valid TOML: {error}; correct that line") from None
    try:
        settings = replace(defaults, **read_table(Settings, data, ""))
        check_targets(settings)
        return settings
    except SettingError as error:
        raise ConfigError(f"{path}: {error}") from None


def check_targets(settings: Settings) -> None:
    """Raise `SettingError` for a compaction target that is not below the threshold."""
    for model in ("", *settings.models):
        model_settings = settings.for_model(model)
        at, target = model_settings.compaction, model_settings.compaction_target
        if at == "off" or target is None or type(at) is not type(target):
            continue
        if target.value >= at.value:
            path = ("models", model, "compaction_target") if model else ("compaction_target",)
            raise SettingError(f"{target} is not below {at}, where compaction starts; write a smaller one", *path)


# -- editing one table of the file -------------------------------------------------------------------------------------


def provider_table(name: str, values: Mapping[str, str | None]) -> str:
    """A `[providers.NAME]` table as TOML; None leaves a setting out."""
    import tomlkit  # loaded only when something is written

    table = {key: value for key, value in values.items() if value is not None}
    return tomlkit.dumps({"providers": {name: table}})


def with_provider(text: str, name: str, values: Mapping[str, str | None]) -> str:
    """`text` with these settings in its table `[providers.NAME]`, in any legal form; None removes a setting.

    Everything else is unchanged, including comments and order. Raises ValueError for text that is not TOML, and if the
    change would affect anything else.
    """
    before = tomllib.loads(text)
    providers = before.get("providers", {})
    if not isinstance(providers, dict) or not isinstance(providers.get(name, {}), dict):
        raise ValueError("its providers are not tables")
    table = {key: value for key, value in {**providers.get(name, {}), **values}.items() if value is not None}
    changed = _changed(text, name, values)
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        after = {}
    if after != {**before, "providers": {**providers, name: table}}:
        raise ValueError(f"[providers.{name}] is written there in a way that is not changed by machine")
    return changed


def _changed(text: str, name: str, values: Mapping[str, str | None]) -> str:
    import tomlkit
    from tomlkit.items import AbstractTable, Comment, InlineTable, Whitespace

    document = tomlkit.parse(text)
    providers: Any = document.get("providers", {})
    if name not in providers and not isinstance(providers, InlineTable):
        separator = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return text + separator + provider_table(name, values)
    table: Any = providers.setdefault(name, tomlkit.inline_table())
    body = table.value.body if isinstance(table, AbstractTable) else []  # else tomlkit's view of scattered dotted keys
    # Comments after the last setting may belong to the next table: they stay last.
    trailing: list[Comment | Whitespace] = []
    while body and isinstance(item := body[-1][1], Comment | Whitespace):
        trailing.append(item)
        body.pop()
    for key, value in values.items():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    for item in reversed(trailing):
        table.add(item)
    return tomlkit.dumps(document)


def write_provider(path: Path, name: str, values: Mapping[str, str | None]) -> None:
    """Write these settings of a provider to the config file, atomically. Raises OSError, ValueError."""
    old = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    newline = "\r\n" if "\r\n" in old else "\n"
    changed = with_provider(old.replace("\r\n", "\n"), name, values)
    private_folder(path.parent)
    target = path.resolve()  # keep a link (to a dotfiles repository, for example)
    beside = target.with_name(target.name + ".new")
    with open_private(beside, "w", encoding="utf-8", newline=newline) as file:  # an `env` in it may hold keys
        file.write(changed)
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)


def settings_schema() -> dict[str, Any]:
    """The JSON Schema (draft 7) of the config file, by which editors complete and check it."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "The config file of chatctx"}
    return head | table_schema(Settings)
