"""How a message names a file with `@`: `@path`, or `@"a path"` where there are blanks in it."""

from __future__ import annotations

import re

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')


def mention_of(path: str) -> str:
    """How a file is named in a message so that it is sent along."""
    return f'@"{path}"' if " " in path else f"@{path}"


def mentioned_names(text: str) -> list[tuple[str, ...]]:
    """What `text` mentions with `@`: each as it may be meant, whole or without the punctuation after it."""
    mentions = _MENTION.findall(text)
    return [(quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'\"")) for quoted, plain in mentions]
