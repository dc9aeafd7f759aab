"""Settings: defaults < config file < environment < flags. The only module that knows where files live."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from tui.config.paths import from_home
from tui.config.tools import ToolSettings, read_tools
from tui.config.values import (
    PARSERS,
    Compaction,
    parse_compaction,
    parse_effort,
    parse_tokens,
    parse_url,
)
from tui.context.usage.limits import Percent, Tokens

T = TypeVar("T")
V = TypeVar("V")

DEFAULT_THEME = "chatctx-dark"
THEME_FILE = "theme"
MOST_SECONDS = 1e6
DEFAULT_COMPACTION = Percent(85)  # of the input budget
PROVIDER_KINDS = ("openai-compatible", "openai", "anthropic")


class ConfigError(Exception):
    """A setting that can't be used. `str()` is one line: where, what, and what to do."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One `[providers.NAME]` table. `api_key_command` is run by the shell and prints the key; the key is never kept.

    `context_management` lets Anthropic clear old tool results by itself; `idle_timeout` is in seconds.
    """

    kind: str = "openai-compatible"
    base_url: str | None = None
    api_key_env: str | None = None
    api_key_command: str | None = None
    context_management: bool = False
    idle_timeout: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """One `[models."provider/model"]` table; None leaves the general setting. Sizes are in tokens."""

    window: int | None = None
    compaction: Compaction | None = None
    compaction_target: Percent | Tokens | None = None
    preserve_recent_turns: int | None = None
    reserve_output: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a person can set. Sizes are in tokens unless named otherwise."""

    model: str | None = None  # "provider/model"; None: chosen at start
    asked_model: str | None = None  # from the command line: holds for stored sessions too
    gguf: Path | None = None  # weights for the embedded model
    theme: str = DEFAULT_THEME
    rolling_context: bool = False
    compaction: Compaction = DEFAULT_COMPACTION
    compaction_target: Percent | Tokens | None = None  # what a compaction leaves; None: half of the input budget
    reserve_output: int = 16_000
    preserve_recent_turns: int = 4
    reasoning: str | None = None
    system: str = ""
    memory_files: tuple[str, ...] = ("AGENTS.md",)  # names looked for from the working directory upward
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)  # binding id -> keys
    tools: ToolSettings = field(default_factory=ToolSettings)
    mcp_servers: Mapping[str, Any] = field(default_factory=dict, repr=False)  # as written: `tools.mcp_config` reads it
    config_file: Path = Path()
    data_dir: Path = Path()
    log_dir: Path = Path()

    def for_model(self, full_name: str) -> ModelSettings:
        """The settings of one model ("provider/model"), general values filled in."""
        own = self.models.get(full_name, ModelSettings())
        return ModelSettings(
            window=own.window,
            compaction=self.compaction if own.compaction is None else own.compaction,
            compaction_target=self.compaction_target if own.compaction_target is None else own.compaction_target,
            preserve_recent_turns=own.preserve_recent_turns or self.preserve_recent_turns,
            reserve_output=self.reserve_output if own.reserve_output is None else own.reserve_output,
        )

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


@cache
def _default_dirs() -> tuple[Path, Path, Path]:
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("chatctx", appauthor=False)
    return dirs.user_config_path, dirs.user_data_path, dirs.user_log_path


def load_settings(environ: Mapping[str, str] | None = None, **flags: object) -> Settings:
    """Read the config file and the environment; `flags` that are not None win.

    Variables: `CHATCTX_CONFIG` (file), `CHATCTX_DATA_DIR`, `CHATCTX_LOG_DIR`, `CHATCTX_MODEL`, `CHATCTX_THEME`.
    Raises `ConfigError` for anything that can't be used.
    """
    env = os.environ if environ is None else environ
    try:
        config_dir, data_dir, log_dir = _default_dirs()
    except RuntimeError:  # of platformdirs: neither HOME nor the system's list of people knows it
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
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    return replace(settings, asked_model=given.get("model"), **given)


def _placed(env: Mapping[str, str], name: str, otherwise: Path) -> Path:
    try:
        return from_home(env[name]) if env.get(name) else otherwise
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None


def remembered_theme(data_dir: Path) -> str | None:
    """The theme chosen on screen last. A file of its own: it is read before the first frame, the database is not."""
    try:
        return (data_dir / THEME_FILE).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None  # nothing was chosen yet, or it can't be known: the default does


def remember_theme(data_dir: Path, name: str) -> None:
    """Start with this theme from now on, where the config file names none. Raises OSError."""
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / THEME_FILE).write_text(name + "\n", encoding="utf-8")


def _from_file(path: Path, defaults: Settings, *, named: bool) -> Settings:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        if named:
            text = f"CHATCTX_CONFIG names {path}, which does not exist: create it or unset the variable"
            raise ConfigError(text) from None
        return defaults
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror}): fix or remove it") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # of TOML, of a number with thousands of digits, of deep nesting
        raise ConfigError(f"{path} is not valid TOML: {error}; correct that line") from None
    return _Reader(path).settings(data, defaults)


class _Reader:
    """Turns the file's tables into `Settings`, naming file and key in every complaint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, text: str) -> ConfigError:
        return ConfigError(f"{self.path}: {text}")

    def settings(self, data: dict[str, Any], defaults: Settings) -> Settings:
        known = {f.name for f in fields(Settings)} - {"config_file", "data_dir", "log_dir", "asked_model"}
        known = known - {"mcp_servers"} | {"mcpServers"}
        self.check_names(data, known, "")
        values: dict[str, Any] = {}
        for name, value in data.items():
            match name:
                case "model" | "theme" | "system":
                    values[name] = self.typed(name, value, str, "text")
                case "reasoning":
                    values[name] = self.value(name, self.typed(name, value, str, "text"), parse_effort)
                case "gguf":
                    values[name] = self.place(name, value)
                case "rolling_context":
                    values[name] = self.typed(name, value, bool, "true or false")
                case "compaction" | "compaction_target" | "preserve_recent_turns" | "reserve_output":
                    values[name] = self.parsed(name, value)
                case "memory_files":
                    values[name] = self.names(name, value)
                case "providers":
                    values[name] = {key: self.provider(key, table) for key, table in self.table(name, value).items()}
                case "models":
                    values[name] = {key: self.model(key, table) for key, table in self.table(name, value).items()}
                case "mcpServers":
                    values["mcp_servers"] = self.table(name, value)
                case "tools":
                    values[name] = read_tools(value, self)
                case "keys":
                    table = self.table(name, value)
                    values[name] = {key: self.typed(f"keys.{key}", keys, str, "text") for key, keys in table.items()}
        settings = replace(defaults, **values)
        self.check_targets(settings)
        return settings

    def provider(self, name: str, value: object) -> ProviderSettings:
        where = f"providers.{name}"
        if "/" in name:
            raise self.fail(f"{where}: a provider's name has no slash, models are named provider/model")
        table = self.table(where, value)
        self.check_names(table, {f.name for f in fields(ProviderSettings)}, where + ".")
        if "api_key" in table:
            raise self.fail(f"{where}.api_key: keys are not kept in files; use api_key_env or api_key_command")
        values: dict[str, Any] = {}
        for key, given in table.items():
            match key:
                case "context_management":
                    values[key] = self.typed(f"{where}.{key}", given, bool, "true or false")
                case "idle_timeout":
                    values[key] = self.seconds(f"{where}.{key}", given)
                case _:
                    values[key] = self.typed(f"{where}.{key}", given, str, "text")
        result = ProviderSettings(**values)
        if result.kind not in PROVIDER_KINDS:
            raise self.fail(f"{where}.kind is {result.kind!r}; use one of {', '.join(PROVIDER_KINDS)}")
        if result.base_url is not None:
            self.value(f"{where}.base_url", result.base_url, parse_url)
        return result

    def model(self, name: str, value: object) -> ModelSettings:
        where = f"models.{name}"
        if "/" not in name and name != "local":
            raise self.fail(f'{where}: write the whole name, [models."provider/model"]')
        table = self.table(where, value)
        self.check_names(table, {f.name for f in fields(ModelSettings)}, where + ".")
        return ModelSettings(**{key: self.parsed(key, value, where + ".") for key, value in table.items()})

    def check_names(self, table: Mapping[str, object], known: set[str], prefix: str) -> None:
        for name in table:
            if name not in known and not (prefix.startswith("providers.") and name == "api_key"):
                near = difflib.get_close_matches(name, sorted(known), n=1)
                hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(sorted(known))}"
                raise self.fail(f"unknown setting {prefix}{name}; {hint}")

    def table(self, name: str, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(f"{name} is a table: write it as [{name}]")
        return value

    def typed(self, name: str, value: object, kind: type, words: str) -> Any:
        if not isinstance(value, kind):
            raise self.fail(f"{name} is {value!r}; it has to be {words}")
        return value

    def names(self, name: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(entry, str) and entry.strip() for entry in value):
            raise self.fail(f'{name} is {value!r}; it has to be a list of file names, like ["AGENTS.md"]')
        if wrong := [entry for entry in value if Path(entry).name != entry]:
            raise self.fail(f"{name}: {wrong[0]!r} is a path; write the file's name alone")
        return tuple(dict.fromkeys(value))

    def parsed(self, name: str, value: object, prefix: str = "") -> Any:
        return self.value(prefix + name, value, PARSERS[name])

    def place(self, name: str, value: object) -> Path:
        return self.value(name, self.typed(name, value, str, "text"), from_home)

    def seconds(self, name: str, value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MOST_SECONDS:
            return float(value)
        raise self.fail(f"{name} is {value!r}; it has to be a number of seconds over 0 and under a million")

    def count(self, name: str, value: object) -> int:
        return self.value(name, value, parse_tokens)

    def compaction(self, name: str, value: object) -> Compaction:
        return self.value(name, value, parse_compaction)

    def value(self, name: str, value: V, parse: Callable[[V], T]) -> T:
        try:
            return parse(value)
        except ValueError as error:
            raise self.fail(f"{name}: {error}") from None

    def check_targets(self, settings: Settings) -> None:
        """A compaction that leaves as much as it starts at would be of no use."""
        for model in ("", *settings.models):
            own = settings.for_model(model)
            at, target = own.compaction, own.compaction_target
            if at == "off" or target is None or type(at) is not type(target):
                continue
            if target.value >= at.value:
                where = f"models.{model}." if model else ""
                raise self.fail(f"{where}compaction_target ({target}) has to be below where compaction starts ({at})")
