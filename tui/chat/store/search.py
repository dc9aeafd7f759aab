"""Full text search in stored messages: text, calls, results and attachments, ignoring case."""

from __future__ import annotations

import json
import sqlite3
import unicodedata

SAID = ("text", "name", "arguments")
"""The readable fields of a stored part; the others are ids, kinds, signatures and encrypted content."""

MATCHES = (
    "(mentions(CAST(s.title AS BLOB), :words) OR EXISTS (SELECT 1 FROM messages m WHERE m.session = s.id AND"
    " CASE WHEN instr(lower(m.parts), :stored) THEN says(CAST(m.parts AS BLOB), :words) ELSE 0 END))"
)
"""The condition on sessions `s`. The stored text is searched first, so that most messages need not be parsed."""


def add_functions(db: sqlite3.Connection) -> None:
    """Add the SQL functions `mentions(text, words)` and `says(parts, words)` to `db`; `words` are case-folded."""
    db.create_function("mentions", 2, mentions, deterministic=True)
    db.create_function("says", 2, says, deterministic=True)


def values(query: str) -> dict[str, str]:
    """The values for `MATCHES` for a query."""
    plain = [word.lower() for word in query.split() if all(char.isascii() or _has_no_case(char) for char in word)]
    return {"words": query.casefold(), "stored": json.dumps(max(plain, key=len, default=""))[1:-1]}


def _has_no_case(char: str) -> bool:
    return unicodedata.category(char) == "Lo"  # Chinese, Japanese, Korean, Arabic, Hebrew and more


def mentions(text: str | bytes, words: str) -> bool:
    """Whether `text` contains `words`. SQL passes bytes, since text that is not UTF-8 would be an error."""
    return words in _decoded(text).casefold()


def _decoded(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def says(parts: str | bytes, words: str) -> bool:
    """Whether a message's stored parts (JSON text) contain `words` in readable text."""
    try:
        return any(mentions(str(part.get(field, "")), words) for part in json.loads(_decoded(parts)) for field in SAID)
    except (ValueError, AttributeError, TypeError):
        return mentions(parts, words)  # a damaged row
