"""Changes one table of the config file and leaves everything else in it unchanged."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AbstractTable, Comment, InlineTable, Whitespace

from tui.config.files import open_private


def provider_table(name: str, values: Mapping[str, str | None]) -> str:
    """A `[providers.NAME]` table as TOML; None leaves a setting out."""
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
        raise ValueError("its providers are no tables")
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
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # keep a link (to a dotfiles repository, for example)
    beside = target.with_name(target.name + ".new")
    with open_private(beside, "w", encoding="utf-8", newline=newline) as file:  # an `env` in it may hold keys
        file.write(changed)
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)
