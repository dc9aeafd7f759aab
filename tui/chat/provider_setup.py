"""Adding a provider: the source of its key, a test, and the lines in the config file. Never the key."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path

from tui.config.settings import ProviderSettings, provider_table, write_provider
from tui.providers.base import ModelInfo
from tui.providers.config import LOCAL_SERVERS, PRESETS, ProviderConfig
from tui.providers.keys import redact
from tui.providers.registry import make_provider, provider_config

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class SetupError(Exception):
    """Invalid input. `str()` is one line for a person, without secrets."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A person's input. `custom`: their own server, with `name`, `base_url` and `kind`; else a preset's name."""

    name: str
    custom: bool = False
    kind: str = "openai-compatible"
    base_url: str = ""
    api_key_env: str = ""
    api_key_command: str = ""

    def values(self) -> dict[str, str]:
        """The settings for the config file: none for a preset with its usual variable."""
        usual = () if self.custom or self.name not in PRESETS else PRESETS[self.name].key_env
        lines = {"kind": self.kind, "base_url": self.base_url} if self.custom else {}
        if self.api_key_command:
            lines["api_key_command"] = self.api_key_command
        elif self.api_key_env and self.api_key_env not in usual:
            lines["api_key_env"] = self.api_key_env
        return lines


def is_variable(text: str) -> bool:
    """Whether `text` can be a variable's name, and does not look like a key."""
    return _VARIABLE.fullmatch(text) is not None and redact(text) == text


class ProviderSetup:
    """Sets up providers of a running program. `configs` is the program's own; `drop` closes one in use.

    `tables` are those of the config file.
    """

    def __init__(
        self,
        configs: MutableMapping[str, ProviderConfig],
        drop: Callable[[str], Awaitable[None]],
        config_file: Path,
        tables: Mapping[str, ProviderSettings],
    ) -> None:
        self._configs = configs
        self._drop = drop
        self._config_file = config_file
        self._tables = tables

    def choices(self) -> list[ProviderConfig]:
        """Those that can be set up: with a key first, then those that need one, then local servers."""
        configs = [config for config in self._configs.values() if config.dialect not in ("local", "demo")]
        return sorted(configs, key=lambda config: (not config.has_key(), config.name in LOCAL_SERVERS))

    async def test(self, draft: Draft) -> list[ModelInfo]:
        """List the provider's models with the key from the draft's source. Changes nothing.

        Raises `SetupError` and `ProviderError`.
        """
        provider = make_provider(draft.name, self._config(draft))
        try:
            models = await provider.models()
            await provider.check_key()
        finally:
            await provider.close()
        if not models:
            raise SetupError(f"{draft.name} answers, but offers no model: load one there, then try again.")
        return models

    async def use(self, draft: Draft) -> str:
        """Write the settings (never the key) and apply them. Returns one line on what was done.

        If the file can't be written the provider works in this run, and the line says what to write by hand.
        """
        self._configs[draft.name] = self._config(draft)
        await self._drop(draft.name)
        values: dict[str, str | None] = {**draft.values()}
        table = self._tables.get(draft.name)
        if table is not None and table.api_key_command and not draft.api_key_command:
            values["api_key_command"] = None  # it would take precedence over the variable
        if not values:
            return f"{draft.name} is ready. Nothing had to be written."
        try:
            await asyncio.to_thread(write_provider, self._config_file, draft.name, values)
        except (OSError, ValueError) as error:
            lines = "; ".join(provider_table(draft.name, values).splitlines())
            return f"{draft.name} is ready for this run. {self._config_file} was not changed ({error}); add: {lines}"
        return f"{draft.name} is ready. {self._config_file} says where its key comes from; the key is kept nowhere."

    def _config(self, draft: Draft) -> ProviderConfig:
        """The provider's configuration: its table in the config file with the draft applied. Raises `SetupError`."""
        if draft.custom:
            if not _NAME.fullmatch(draft.name) or draft.name in PRESETS:
                raise SetupError("The name is short and your own: lower-case letters and digits, like work or lab-2.")
            if not draft.base_url.startswith(("http://", "https://")):
                raise SetupError("The address begins with http:// or https://, for example http://127.0.0.1:8080/v1")
        if draft.api_key_env and not draft.api_key_command:
            _check_variable(draft.api_key_env)
        new = ProviderSettings(kind=draft.kind, base_url=draft.base_url)
        before = new if draft.custom else self._tables.get(draft.name, ProviderSettings())
        table = replace(
            before,
            api_key_env=(draft.api_key_env or None) if not draft.api_key_command else before.api_key_env,
            api_key_command=draft.api_key_command or None,
        )
        try:
            return provider_config(draft.name, table)
        except ValueError as error:
            raise SetupError(redact(str(error))) from None


def _check_variable(name: str) -> None:
    if not is_variable(name):
        raise SetupError(
            "That is no name of a variable. If it is the key itself: it is not kept here. Put it into a variable "
            "of your shell and write that one's name, or give a command that prints it."
        )
    if not os.environ.get(name, "").strip():
        raise SetupError(
            f"{name} is not set where chatctx runs. Leave, do: export {name}=… and start again; or give a command "
            "that prints the key."
        )
