"""Opens an address in a graphical browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Mapping


def has_browser(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a graphical browser may be available to the person."""
    if "TEXTUAL_DRIVER" in environ:  # the screen is a browser, elsewhere
        return False
    if environ.get("BROWSER"):  # also over ssh: editors set one that opens the page at the person's machine
        return True
    if environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or any(
        environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    )


def open_in_browser(url: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Open `url` unless the browser would run in this terminal. Returns whether one was started. Blocks."""
    try:
        return has_browser(environ) and webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False
