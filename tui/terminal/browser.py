"""Opens an address in a graphical browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Mapping


def open_in_browser(url: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Open `url`; whether a browser was started. Those that would draw in this terminal are not. Blocks."""
    graphical = sys.platform in ("darwin", "win32") or any(
        environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER")
    )
    try:
        return graphical and webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False
