"""A browser is opened where it has a window of its own, and only there."""

from __future__ import annotations

import sys
import webbrowser

import pytest

from tui.terminal.browser import has_browser, open_in_browser


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="a window is always there")
@pytest.mark.parametrize(
    ("environ", "opened"),
    [
        ({}, False),
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"BROWSER": "links"}, True),
        ({"DISPLAY": ":0", "TEXTUAL_DRIVER": "x:Y"}, False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "x"}, False),
        ({"BROWSER": "code --open", "SSH_CONNECTION": "x"}, True),
    ],
)
def test_no_browser_draws_into_this_terminal(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, opened: bool
) -> None:
    addresses: list[str] = []

    def note(url: str) -> bool:
        addresses.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    assert open_in_browser("https://x.example", environ) is opened
    assert addresses == (["https://x.example"] if opened else [])


def test_a_browser_that_fails_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> bool:
        raise webbrowser.Error(url)

    monkeypatch.setattr(webbrowser, "open", fail)
    assert not open_in_browser("https://x.example", {"DISPLAY": ":0"})


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_window_system_is_not_in_reach_over_ssh(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert has_browser({})
    assert not has_browser({"SSH_CONNECTION": "x"})
