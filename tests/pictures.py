"""Pictures of the screen as SVG, without what differs from one run to the next."""

from __future__ import annotations

import re


def settled(picture: str) -> str:
    """`picture` (of `App.export_screenshot`) without a number of its own and without the web font it would ask for."""
    first, *fonts = picture.split("@font-face")
    whole = first + "".join(font.split("}", 1)[-1] for font in fonts)
    return re.sub(r"\bterminal-\d+-", "terminal-", whole)
