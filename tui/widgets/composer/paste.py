"""Big pastes: stored entirely, shown in the draft as a short chip."""

from __future__ import annotations

import re

from tui.text.numbers import plural, size_text

FOLD_CHARACTERS = 2_000
FOLD_LINES = 24
"""A paste longer than either becomes a chip."""
_FILE = re.compile(r"(?:/|~/|file:///).*\.(?:png|jpe?g|gif|webp|pdf)", re.IGNORECASE)


def dropped_files(text: str) -> list[str]:
    """The images and PDFs if `text` consists of paths only, as terminals paste them when files are dropped."""
    if len(text) > 4_000 or not text.strip() or "\n" in text.strip():
        return []
    import shlex  # not before the first frame
    from urllib.parse import unquote

    try:
        words = shlex.split(text)
    except ValueError:  # an unbalanced quotation mark
        return []
    if not all(_FILE.fullmatch(word) and '"' not in word for word in words):
        return []
    return [unquote(word.removeprefix("file://")) if word.startswith("file://") else word for word in words]


class PasteChips:
    """The texts behind the chips of one draft. A chip with an edited label is plain text."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    @staticmethod
    def wanted(text: str) -> bool:
        """Whether a paste is large enough to be folded."""
        return len(text) > FOLD_CHARACTERS or text.count("\n") >= FOLD_LINES

    def fold(self, text: str) -> str:
        """Store `text` and return its label."""
        lines = text.count("\n") + 1
        size = size_text(len(text.encode("utf-8", "surrogatepass")))
        label = f"[paste {len(self._texts) + 1}: {plural(lines, 'line')}, {size}]"
        self._texts[label] = text
        return label

    def expand(self, draft: str) -> str:
        """The draft with every label replaced by its text (once through: a paste may quote a label)."""
        if not self._texts:
            return draft
        return self._pattern().sub(lambda match: self._texts[match.group()], draft)

    def split(self, draft: str) -> tuple[str, list[str]]:
        """The typed text, and the pasted texts in it: counted separately, so that a key costs only the typed text."""
        if not self._texts:
            return draft, []
        pattern = self._pattern()
        return pattern.sub("", draft), [self._texts[label] for label in pattern.findall(draft)]

    def label_before(self, line: str, column: int) -> str | None:
        """The label that ends at `column` of `line`, if any."""
        before = line[:column]
        return next((label for label in self._texts if before.endswith(label)), None)

    def clear(self) -> None:
        """Forget every text: the draft was sent or discarded."""
        self._texts.clear()

    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(label) for label in self._texts))
