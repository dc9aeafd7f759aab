"""Things to choose from, and where they come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tui.commands.registry import match


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to choose. `key` is the result; `label` and `detail` are shown and searched.

    `brief` is what is left of the detail on a narrow screen.
    """

    key: str
    label: str
    detail: str = ""
    current: bool = False
    brief: str = ""


Source: TypeAlias = Callable[[str], Awaitable[Sequence[Item]]]
"""Items for a search text, best first. May raise; what it says becomes the list's only line."""


def filtered(load: Callable[[], Awaitable[Sequence[Item]]]) -> Source:
    """A source that loads once and filters by the letters typed."""
    loaded: list[Item] = []

    async def source(query: str) -> Sequence[Item]:
        if not loaded:
            loaded.extend(await load())
        ranked = [(match(query, f"{item.label} {item.detail}"), item) for item in loaded]
        return [item for score, item in sorted(ranked, key=lambda pair: -pair[0]) if score > 0]

    return source
