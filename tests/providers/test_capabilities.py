"""Versions and efforts by a model's name."""

from __future__ import annotations

import pytest

from tui.providers.capabilities import gpt_version, openai_efforts


@pytest.mark.parametrize(
    ("model", "version", "efforts"),
    [
        ("gpt-3.5-turbo", (3, 5), ()),
        ("gpt-35-turbo-16k", (3, 5), ()),  # as Azure writes it
        ("gpt-4o-mini", (4, 0), ()),
        ("openai/gpt-5-mini", (5, 0), ("minimal", "low", "medium", "high")),
        ("gpt-5.6", (5, 6), ("off", "low", "medium", "high", "xhigh", "max")),
        ("gpt-oss-120b", None, ("low", "medium", "high")),
        ("qwen3", None, None),
    ],
)
def test_versions_and_efforts_of_gpt(
    model: str, version: tuple[int, int] | None, efforts: tuple[str, ...] | None
) -> None:
    assert (gpt_version(model), openai_efforts(model)) == (version, efforts)
