"""The schema for editors says what the reader takes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tui.config.settings import ConfigError, Settings, load_settings, settings_schema

README = Path(__file__).resolve().parents[2] / "README.md"
SCHEMA = settings_schema()

VALUES: list[Any] = [
    *(True, False, 0, 1, 3, 1_000, 1_001, 2_000_000, 0.5, -1, 1e9 + 0.5),
    *("", " ", "x", "off", "low", "allow", "40%", "0.5%", "85", " 100 ", "101"),
    *("120k", "1.5M", "12_000", " 3k ", "12 apples", "k", "%", "http://x/v1", "HTTPS://x", "http://x y", "ftp://x"),
    *("anthropic", [], ["a"], ["a", "a"], [" "], [3], {}, {"a": 1}, {"a": "allow"}, {"a/b": {}}, {"a": {}}),
]


def places(schema: dict[str, Any], *path: str) -> list[tuple[str, ...]]:
    """Every setting, as the keys that lead to it."""
    paths: list[tuple[str, ...]] = []
    for name, entry in schema.get("properties", {}).items():
        paths += [(*path, name), *places(entry, *path, name)]
    entry = schema.get("additionalProperties")
    if isinstance(entry, dict) and path and path[-1] in ("providers", "models"):
        paths += places(entry, *path, "a/b" if path[-1] == "models" else "a")
    return paths


def written(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def toml(value: Any) -> str:
    """As an inline TOML value."""
    match value:
        case dict():
            return "{" + ", ".join(f'"{key}" = {toml(entry)}' for key, entry in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return repr(value)


def test_the_schema_is_one_and_describes_every_setting() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert len(places(SCHEMA)) == 36
    text = str(SCHEMA)
    for field in fields(Settings):
        assert ("about" in field.metadata) is (field.name not in ("asked_model", "config_file", "data_dir", "log_dir"))
    assert text.count("'description'") == len(places(SCHEMA))


# Names with rules of their own: of a file, a provider, a model. JSON Schema is not asked to say them.
BEYOND = {("memory_files",), ("providers",), ("models",)}


@pytest.mark.parametrize("path", places(SCHEMA), ids=".".join)
def test_reader_and_schema_agree(path: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    validator = Draft7Validator(SCHEMA)
    for value in VALUES:
        table = written(path, value)
        file.write_text("\n".join(f'"{key}" = {toml(entry)}' for key, entry in table.items()) + "\n")
        assert tomllib.loads(file.read_text()) == table
        try:
            load_settings({"CHATCTX_CONFIG": str(file), "CHATCTX_DATA_DIR": str(tmp_path)})
            taken = True
        except ConfigError as error:
            taken = False
            assert str(error).startswith(f"{file}: {'.'.join(path)}"), error
        if path not in BEYOND or taken:
            assert validator.is_valid(table) is taken, value


def test_what_the_readme_writes_into_the_file_fits_the_schema() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(tomllib.loads(block))] == []
