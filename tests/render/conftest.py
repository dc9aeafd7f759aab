from __future__ import annotations

import pytest
from textual.theme import BUILTIN_THEMES

from tui.render.palette import Palette, make_palette


@pytest.fixture(scope="session")
def palette() -> Palette:
    return make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate())


@pytest.fixture(scope="session")
def ansi() -> Palette:
    return make_palette(BUILTIN_THEMES["ansi-dark"].to_color_system().generate(), ansi=True)
