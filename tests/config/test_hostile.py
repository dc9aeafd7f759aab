"""Whatever is in the config file: settings, or one line that names the file. Never another exception."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.test_values import SCHEMA, places, toml
from tui.config.settings import ConfigError, Settings, load_settings, with_provider

KEYS = st.sampled_from([key for path in places(SCHEMA) for key in path]) | st.text("ab-_/.", min_size=1, max_size=5)
LEAVES = (
    st.none().map(lambda _: "off")
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["C"], exclude_characters='"\\'), max_size=20)
    | st.from_regex(r"[ ]?[0-9_,.]{1,12}[kKmM%]?[ ]?", fullmatch=True)
    | st.sampled_from(["http://[", "http://x:y", "~", "~nobody-here/x", "85%", "1e400", "9" * 400, "-0%", "٣k"])
)
TABLES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "config.toml"


def load(file: Path) -> Settings | None:
    try:
        return load_settings({"CHATCTX_CONFIG": str(file), "CHATCTX_DATA_DIR": str(file.parent)})
    except ConfigError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)
        assert len(str(error)) < len(str(file)) + 400
        return None


@pytest.mark.slow
@given(table=TABLES)
def test_any_values_under_any_names(file: Path, table: dict[str, Any]) -> None:
    file.write_text("\n".join(f'"{key}" = {toml(value)}' for key, value in table.items()), encoding="utf-8")
    settings = load(file)
    if settings is not None:
        for name in ("", *settings.models):
            assert settings.for_model(name).reserve_output is not None


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    load(file)


@pytest.mark.slow
@given(table=TABLES, name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8))
def test_a_provider_is_written_into_any_file_or_the_file_is_refused(table: dict[str, Any], name: str) -> None:
    text = "\n".join(f'"{key}" = {toml(value)}' for key, value in table.items())
    try:
        changed = with_provider(text, name, {"api_key_env": "K", "kind": None})
    except ValueError as error:
        assert "providers" in str(error)
    else:
        assert '"K"' in changed
