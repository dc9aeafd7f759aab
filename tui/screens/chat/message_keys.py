"""The keys of a chosen message, in one line: as many as fit, as the person has set them."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding

from tui.widgets.transcript.transcript import Transcript

_WORDS = (
    ("open", "open", "open"),
    ("fold", "unfold", "unfold"),
    ("copy", "copy", "copy"),
    ("edit", "edit", "edit"),
    ("retry", "again", "again"),
    ("fork", "fork", "fork"),
    ("pin", "pin", "pin"),
    ("exclude", "leave out", "out"),
    ("copy_code", "copy code", "code"),
)
"""Name of the key after `transcript.`, its word, its short word; the most wanted first."""


def message_keys(keymap: Mapping[str, str], width: int, *, on_result: bool, folds: bool = False) -> str:
    """`c copy · e edit · … · esc back` in at most `width` cells.

    `on_result`: tools' results are chosen. `folds`: something of the message unfolds.

    Where not all fit the words are shorter, and where even so not all fit the last ones are left out, never the way
    back.
    """
    keys = {
        str(binding.id).removeprefix("transcript."): keymap.get(str(binding.id), binding.key).split(",")[0]
        for binding in Transcript.BINDINGS
        if isinstance(binding, Binding)
    }
    special = {"open": on_result, "fold": folds}
    wanted = [words for words in _WORDS if special.get(words[0], True)]
    back = f"{keys['leave'].replace('escape', 'esc')} back"
    line = " · ".join([*(f"{keys[name]} {word}" for name, word, _ in wanted), back])
    short = [*(f"{keys[name]} {word}" for name, _, word in wanted), back]
    while len(line) > width and len(short) > 1:
        line = "  ".join(short)
        del short[-2]
    return line if len(line) <= width else back
