"""`search_tools`: lets a model find deferred tools. Pure and deterministic."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from tui.messages import ToolSchema
from tui.providers.wire import as_object, object_of
from tui.text.clean import abbreviated

SEARCH = "search_tools"
DEFAULT_MATCHES = 5  # tools found at once
MAX_MATCHES = 20
MAX_NAMED = 60  # names listed if nothing was found
MAX_ABOUT = 160  # characters of a description in the answer

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]+")
# Words without meaning for a search: rare in descriptions, they would have a high weight.
_EMPTY = frozenset(
    (
        "a", "an", "and", "are", "as", "at", "by", "can", "do", "for", "from", "i", "in", "is", "it",
        "me", "my", "of", "on", "or", "please", "that", "the", "this", "to", "with",
    )
)  # fmt: skip
_PARAMETERS = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool should do, in a few words; or a tool's name."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_MATCHES,
            "description": f"Default {DEFAULT_MATCHES}.",
        },
    },
    "required": ["query"],
}


def search_schema(waiting: Mapping[str, int]) -> ToolSchema:
    """The search tool, which names the number of deferred tools of each server. Changes only with those numbers."""
    servers = ", ".join(f"{server} ({count})" for server, count in waiting.items())
    return ToolSchema(
        SEARCH,
        f"More tools are there than are listed here, of these servers: {servers}. Searches their names and descriptions"
        " and makes the best matches callable. Use it before you say that something can't be done.",
        json.dumps(_PARAMETERS, sort_keys=True, separators=(",", ":")),
    )


def search(query: str, tools: Sequence[ToolSchema], limit: int = DEFAULT_MATCHES) -> list[ToolSchema]:
    """The `limit` best matching tools, best first.

    A word weighs more the fewer tools have it (as in BM25), in a name twice as much as in a description, and as a
    prefix half as much. The full name of a tool finds that tool first.
    """
    wanted = [word for word in dict.fromkeys(_words(query)) if word not in _EMPTY]
    asked = query.strip().lower()
    searched = [(tool, _words(tool.name), _words(_text(tool))) for tool in tools]

    def rarity(word: str) -> float:
        having = sum(word in name or word in text for _, name, text in searched)
        return math.log(1 + len(tools) / (1 + having))

    weights = {word: rarity(word) for word in wanted}
    scored: list[tuple[float, ToolSchema]] = []
    for tool, name, text in searched:
        score = sum(weight * max(2 * _fit(word, name), _fit(word, text)) for word, weight in weights.items())
        if asked and asked in (tool.name.lower(), tool.name.lower().partition("__")[2]):
            score += 1e6
        if score > 0:
            scored.append((score, tool))
    scored.sort(key=lambda pair: (-pair[0], pair[1].name))
    return [tool for _, tool in scored[:limit]]


def answer(query: str, matches: Sequence[ToolSchema], tools: Sequence[ToolSchema], loaded: Sequence[str]) -> str:
    """The text for the model: the tools it can call from now on, or what is available if nothing was found."""
    if not matches:
        listed = ", ".join(sorted(tool.name for tool in tools)[:MAX_NAMED])
        rest = f" and {len(tools) - MAX_NAMED} more" if len(tools) > MAX_NAMED else ""
        return f"Nothing fits {query!r}. Other words may. There are {len(tools)} tools: {listed}{rest}."
    lines = [f"{tool.name}: {abbreviated(' '.join(tool.description.split()), MAX_ABOUT)}" for tool in matches]
    new = sum(tool.name not in loaded for tool in matches)
    return "\n".join(
        [f"{len(matches)} of {len(tools)} tools, {new} of them new. They can be called from your next step on:", *lines]
    )


def _text(tool: ToolSchema) -> str:
    """Its description and the names of its parameters."""
    return " ".join((tool.description, *object_of(as_object(tool.parameters).get("properties"))))


def _words(text: str) -> list[str]:
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in map(str.lower, _WORD.findall(text))]


def _fit(word: str, words: Sequence[str]) -> float:
    if word in words:
        return 1.0
    alike = any(other.startswith(word) or word.startswith(other) for other in words if len(other) > 2)
    return 0.5 if alike and len(word) > 2 else 0.0
