"""What `chatctx doctor` says of the providers' keys."""

from __future__ import annotations

import pytest

from tui.cli.subcommands import doctor
from tui.config.settings import ProviderSettings, Settings


async def _nobody(_: object) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("table", "level", "text"),
    [
        (ProviderSettings("anthropic", api_key_command="cat token"), "ok", "mine: there is one by api_key_command"),
        (ProviderSettings("anthropic", api_key_env="MINE"), "ok", "mine: there is one in MINE"),
        (ProviderSettings("anthropic", api_key_env="NONE"), "problem", "mine: no key; set NONE, or api_key_command"),
        (ProviderSettings("anthropic"), "problem", "mine: no key; set a variable and name it by api_key_env, or "),
        (ProviderSettings(base_url="http://me:hunter2@h/v1"), "ok", "mine: http://[key]@h/v1"),
    ],
)
def test_where_a_key_comes_from_or_what_to_do(
    monkeypatch: pytest.MonkeyPatch, table: ProviderSettings, level: str, text: str
) -> None:
    monkeypatch.setattr(doctor, "answering", _nobody)
    monkeypatch.setenv("MINE", "key-0001")
    monkeypatch.delenv("NONE", raising=False)
    findings = list(doctor._providers(Settings(providers={"mine": table})))
    [mine] = [finding for finding in findings if finding.text.startswith("mine:")]
    assert mine.level == level and mine.text.startswith(text)
