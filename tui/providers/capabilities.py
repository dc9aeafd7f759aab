"""What is known about models without asking a server: which reasoning is sent back, which thinking mode is supported.

A small table from the providers' documentation. For unlisted models reasoning is not sent back, so that nothing is
counted that is not in the input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.providers.base import Capabilities
from tui.providers.reasoning import USUAL, gpt_version

Family: TypeAlias = Literal["claude", "openai", "deepseek", "kimi", "local", "openrouter", "loop", "plain"]

_CLAUDE = re.compile(r"claude-(?P<line>[a-z]+)-(?P<major>\d+)(?:[.-](?P<minor>\d{1,2}))?(?!\d)")
_CLAUDE_OLD = re.compile(r"claude-(?P<major>\d)(?:[.-](?P<minor>\d))?-(?P<line>[a-z]+)")
_KIMI_KEEPS = re.compile(r"kimi-k(?:2\.[7-9]|[3-9])")


@dataclass(frozen=True, slots=True)
class Claude:
    """A Claude model's line ("opus") and version, from its name."""

    line: str
    version: tuple[int, int]

    @property
    def keeps_thinking(self) -> bool:
        """Thinking of earlier turns stays in the context: Opus from 4.5, Sonnet from 4.6, all from 5 on."""
        first = {"opus": (4, 5), "sonnet": (4, 6), "haiku": (5, 0)}.get(self.line, (5, 0))
        return self.version >= first

    @property
    def prefix_bound(self) -> bool:
        """A signature covers everything before it: Fable and Mythos from 5.1, the others from 5.5."""
        return self.version >= ((5, 1) if self.line in ("fable", "mythos") else (5, 5))

    @property
    def adaptive(self) -> bool:
        """Supports `thinking.type` "adaptive": from 4.6 on."""
        return self.version >= (4, 6)

    @property
    def budgeted(self) -> bool:
        """Supports `thinking.type` "enabled" with a budget: from 3.7 to 4.6."""
        return (3, 7) <= self.version <= (4, 6)

    @property
    def thinks_by_default(self) -> bool:
        """Thinks by default, and hides it: from 5.0 on."""
        return self.version >= (5, 0)

    @property
    def off_switch(self) -> str | None:
        """The `thinking.type` that turns thinking off; None for Fable, Mythos and Opus from 5.5, which always think."""
        if self.line in ("fable", "mythos"):
            return None
        if self.version < (5, 5) or self.line == "haiku":
            return "disabled"
        return "between_tools" if self.line == "sonnet" else None

    @property
    def thinking_types(self) -> frozenset[str]:
        """The values of `thinking.type` it accepts, unless the server lists them."""
        supported = {"adaptive": self.adaptive, "enabled": self.budgeted}
        types = {name for name, takes in supported.items() if takes}
        return frozenset(types if self.off_switch is None else types | {self.off_switch})

    @property
    def efforts(self) -> tuple[str, ...]:
        """The reasoning levels, unless the server lists them: as an effort from 4.6 on, as a budget from 3.7 on."""
        if self.version < (3, 7):
            return ()
        off = () if self.off_switch is None else ("off",)
        more = ("xhigh", "max") if self.version >= (4, 7) else ("max",) if self.version >= (4, 6) else ()
        return (*off, *USUAL, *more)


def claude(model: str) -> Claude | None:
    """Line and version of a Claude model, also behind a vendor prefix; None for other models."""
    name = model.lower()
    match = _CLAUDE.search(name) or _CLAUDE_OLD.search(name)
    if match is None:
        return None
    return Claude(match["line"], (int(match["major"]), int(match["minor"] or 0)))


_SEES_AND_CALLS = re.compile(r"claude-|gpt-(4o|4\.1|[5-9])|gemini-|(^|/)o[34](-|$)")


def known_to_see_and_call(model: str) -> bool | None:
    """Whether every model of this family accepts images and tools; None if the name doesn't tell."""
    return True if _SEES_AND_CALLS.search(model.lower()) else None


def anthropic_capabilities(model: str, *, official: bool) -> Capabilities:
    """Messages dialect. Servers that merely speak it (llama.cpp, DeepSeek) neither sign nor check signatures."""
    kind = claude(model)
    if kind is None and not official:
        return Capabilities(reasoning_return="tool_loop", count_endpoint=True)
    kind = kind or Claude("opus", (5, 5))  # unknown models are treated as the newest
    return Capabilities(
        reasoning_return="always" if kind.keeps_thinking else "tool_loop",
        needs_signature=True,
        prefix_bound=kind.prefix_bound,
        pdfs=kind.version >= (3, 5),
        count_endpoint=True,
    )


def responses_capabilities(model: str, *, official: bool) -> Capabilities:
    """Responses dialect: from gpt-5.6 on the reasoning of all turns is rendered, before that of the open tool loop."""
    version = gpt_version(model)
    return Capabilities(
        reasoning_return="always" if official and version is not None and version >= (5, 6) else "tool_loop",
        needs_signature=official,
        pdfs=official,
        count_endpoint=True,
    )


def chat_capabilities(model: str, family: Family) -> Capabilities:
    """Chat Completions dialect, by the kind of server."""
    match family:
        case "deepseek":
            # With tools V4 answers 400 to a history without its reasoning; without tools it ignores the reasoning.
            # The Flash models take images (DeepSeek's guide "Vision", October 2026).
            return Capabilities(reasoning_return="always", reasoning_needs_tools=True, images="flash" in model)
        case "kimi":
            # K2.7 and K3 keep the reasoning of all turns, earlier models only on request.
            return Capabilities(reasoning_return="always" if _KIMI_KEEPS.search(model) else "tool_loop")
        case "openrouter":
            kind = claude(model)
            keeps = kind is not None and kind.keeps_thinking
            return Capabilities(reasoning_return="always" if keeps else "tool_loop", pdfs=True)
        case "local" | "loop":
            llama = family == "local"
            return Capabilities(reasoning_return="tool_loop", count_endpoint=llama, count_freely=llama)
        case "openai":
            return Capabilities(pdfs=True)
        case "claude" | "plain":
            return Capabilities()
