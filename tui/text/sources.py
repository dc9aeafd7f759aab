"""The sources cited by an answer, as Markdown and as plain lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.messages import Message, Source
from tui.text.clean import clean_line

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|!~$&]")
_WEB = re.compile(r"https?://[^\s<>\x00-\x1f]+", re.IGNORECASE)


def is_web_address(url: str) -> bool:
    """Whether `url` can be opened in a browser."""
    return _WEB.fullmatch(url) is not None


def source_markdown(source: Source) -> str:
    """A source as a link, or its name if it has no web address."""
    # Not backslashes: before a bracket they begin a formula.
    name = _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", clean_line(source.title or source.url))
    return f"[{name}](<{source.url}>)" if is_web_address(source.url) else name


def sources_markdown(sources: Sequence[Source]) -> str:
    """A numbered list of the sources cited by an answer."""
    return "\n".join(f"{number}. {source_markdown(source)}" for number, source in enumerate(sources, 1))


def sources_of(message: Message) -> list[Source]:
    """The sources cited by an answer, by number."""
    return [part for part in message.parts if isinstance(part, Source)]


def source_lines(message: Message) -> list[str]:
    """The sources cited by an answer, one numbered line each."""
    return [
        f"{number}. {clean_line(f'{source.title} {source.url}'.strip())}"
        for number, source in enumerate(sources_of(message), 1)
    ]
