"""Changing the config file without disturbing what a person wrote there: one table, line by line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

_HEADER = re.compile(r"^\s*\[")
_KEY = re.compile(r"^\s*(?P<key>[A-Za-z0-9_-]+)\s*=")


def provider_lines(name: str, values: Mapping[str, str | None]) -> list[str]:
    """A `[providers.NAME]` table as lines of TOML; None leaves a setting out."""
    quoted = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return [f"[providers.{quoted}]", *(f"{key} = {_text(value)}" for key, value in values.items() if value is not None)]


def with_provider(text: str, name: str, values: Mapping[str, str | None]) -> str:
    """`text` with these settings in its table `[providers.NAME]`; the rest, comments too, stays as it is.

    None takes a setting out. Raises ValueError where the table is written in a way that can't be changed line by line.
    """
    before = tomllib.loads(text)
    tables = before.get("providers", {})
    if not isinstance(tables, dict) or not isinstance(tables.get(name, {}), dict):
        raise ValueError("its providers are no tables")
    both = {**tables.get(name, {}), **values}
    wanted = {key: value for key, value in both.items() if value is not None}
    lines, fresh = text.splitlines(), provider_lines(name, values)
    start = next((at for at, line in enumerate(lines) if line.split("#")[0].strip() == fresh[0]), None)
    if start is None:
        blank = [""] if lines and lines[-1].strip() else []
        lines += [*blank, *fresh]
    else:
        end = next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines))
        body = [line for line in lines[start + 1 : end] if (m := _KEY.match(line)) is None or m["key"] not in values]
        lines[start + 1 : end] = [*fresh[1:], *body]
    changed = "\n".join(lines) + "\n"
    try:
        after = tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        after = {}
    expected = {**before, "providers": {**tables, name: wanted}}
    if after != expected:
        raise ValueError(f"[providers.{name}] is written there in a way that is not changed by machine")
    return changed


def write_provider(path: Path, name: str, values: Mapping[str, str | None]) -> None:
    """Put these settings of a provider into the config file, whole or not at all. Raises OSError, ValueError."""
    old = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    changed = with_provider(old, name, values)
    path.parent.mkdir(parents=True, exist_ok=True)
    target = path.resolve()  # a link (to a dotfiles repository, say) stays one
    beside = target.with_name(target.name + ".new")
    beside.write_text(changed, encoding="utf-8")
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)


def _text(value: str) -> str:
    """`value` as a TOML string: JSON's escapes are TOML's, but for the one of DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
