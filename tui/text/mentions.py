"""Mentions of files in a message: `@path`, or `@"a path"` with blanks."""

from __future__ import annotations

import re

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')


def mention_of(path: str) -> str:
    """The mention of a file, which attaches it to the message."""
    return f'@"{path}"' if " " in path else f"@{path}"


def mentioned_names(text: str) -> list[tuple[str, ...]]:
    """The mentions in `text`, each with its possible readings: as written, and without trailing punctuation."""
    mentions = _MENTION.findall(text)
    return [(quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'\"")) for quoted, plain in mentions]
