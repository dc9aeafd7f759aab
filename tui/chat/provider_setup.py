"""Adding a provider: the source of its key, a test, and the lines in the config file. Never the key."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path

from tui.config.settings import ProviderSettings, provider_table, write_provider
from tui.errors import ExpectedError
from tui.providers.base import ModelInfo
from tui.providers.config import LOCAL_SERVERS, PRESETS, ProviderConfig
from tui.providers.keys import redact
from tui.providers.registry import make_provider, provider_config

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class SetupError(ExpectedError):
    """Invalid input. `str()` is one line for a person, without secrets."""


def is_variable(text: str) -> bool:
    """Whether `text` can be a variable's name, and does not look like a key."""
    return _VARIABLE.fullmatch(text) is not None and redact(text) == text


class ProviderSetup:
    """Sets up providers of a running program. `configs` is the program's own; `drop` closes one in use.

    `tables` are those of the config file. A person names a provider and writes a table of their own: with an address
    for a server that is not a preset, else with the source of the key alone.
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
        self._tables = dict(tables)

    def choices(self) -> list[ProviderConfig]:
        """Those that can be set up: with a key first, then those that need one, then local servers."""
        configs = [config for config in self._configs.values() if config.dialect not in ("local", "demo")]
        return sorted(configs, key=lambda config: (not config.has_key(), config.name in LOCAL_SERVERS))

    async def test(self, name: str, table: ProviderSettings) -> list[ModelInfo]:
        """List the provider's models with the key from the table's source. Changes nothing.

        Raises `SetupError` and `ProviderError`.
        """
        provider = make_provider(name, self._config(name, table))
        try:
            models = await provider.models()
            await provider.check_key()
        finally:
            await provider.close()
        if not models:
            raise SetupError(f"{name} answers, but offers no model: load one there, then try again.")
        return models

    async def use(self, name: str, table: ProviderSettings) -> str:
        """Write the settings (never the key) and apply them. Returns one line on what was done.

        Nothing is written for a preset with its usual variable. If the file can't be written the provider works in
        this run, and the line says what to write by hand.
        """
        self._configs[name] = self._config(name, table)
        await self._drop(name)
        before, applied = self._tables.get(name, ProviderSettings()), self._applied(name, table)
        values: dict[str, str | None] = {}
        if table.base_url is not None:
            values = {"kind": table.kind, "base_url": table.base_url}
        if table.api_key_command or before.api_key_command:
            values["api_key_command"] = table.api_key_command  # an earlier one would take precedence over the variable
        usual = PRESETS[name].key_env if name in PRESETS else ()
        if not table.api_key_command and (before.api_key_env or table.api_key_env not in (None, *usual)):
            values["api_key_env"] = table.api_key_env
        if not values:
            return f"{name} is ready. Nothing had to be written."
        try:
            await asyncio.to_thread(write_provider, self._config_file, name, values)
        except (OSError, ValueError) as error:
            lines = "; ".join(provider_table(name, values).splitlines())
            return f"{name} is ready for this run. {self._config_file} was not changed ({error}); add: {lines}"
        self._tables[name] = applied
        return f"{name} is ready. {self._config_file} says where its key comes from; the key is kept nowhere."

    def _config(self, name: str, table: ProviderSettings) -> ProviderConfig:
        """The provider's configuration with `table` applied. Raises `SetupError`."""
        if table.base_url is not None:
            if not _NAME.fullmatch(name) or name in PRESETS:
                raise SetupError("Choose a short name of your own: lower-case letters and digits, like work or lab-2.")
            if not table.base_url.startswith(("http://", "https://")):
                raise SetupError("The address begins with http:// or https://, for example http://127.0.0.1:8080/v1")
        if table.api_key_env and not table.api_key_command:
            _check_variable(table.api_key_env)
        try:
            return provider_config(name, self._applied(name, table))
        except ValueError as error:
            raise SetupError(redact(str(error))) from None

    def _applied(self, name: str, table: ProviderSettings) -> ProviderSettings:
        """The provider's table in the config file with `table` applied."""
        before = table if table.base_url is not None else self._tables.get(name, table)
        variable = before.api_key_env if table.api_key_command else table.api_key_env
        return replace(before, api_key_env=variable, api_key_command=table.api_key_command)


def _check_variable(name: str) -> None:
    if not is_variable(name):
        raise SetupError(
            "That is not the name of a variable. If it is the key itself: keys are not stored here. Put it into a "
            "variable of your shell and write its name, or give a command that prints it."
        )
    if not os.environ.get(name, "").strip():
        raise SetupError(
            f"{name} is not set where chatctx runs. Quit, run export {name}=… and start again, or give a command "
            "that prints the key."
        )
