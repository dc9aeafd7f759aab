"""The sources that an answer cites, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.messages import Source
from tui.text.clean import clean_line

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|!~$&]")
_WEB = re.compile(r"https?://[^\s<>\x00-\x1f]+", re.IGNORECASE)


def is_web_address(url: str) -> bool:
    """Whether `url` can be opened in a browser."""
    return _WEB.fullmatch(url) is not None


def source_markdown(source: Source) -> str:
    """A source as a link, or by its name where it has no address of the web."""
    # Not backslashes: before a bracket they begin a formula.
    name = _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", clean_line(source.title or source.url))
    return f"[{name}](<{source.url}>)" if is_web_address(source.url) else name


def sources_markdown(sources: Sequence[Source]) -> str:
    """A numbered list of what an answer cites."""
    return "\n".join(f"{number}. {source_markdown(source)}" for number, source in enumerate(sources, 1))
