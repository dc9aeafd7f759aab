"""What is known about models by their names: reasoning efforts, thinking modes, which reasoning is sent back. Pure.

From the providers' documentation in autumn 2026: OpenAI's model pages, Anthropic's "Effort" and "Thinking". For
unlisted models reasoning is not sent back, so that nothing is counted that is not in the input. What a server lists or
refuses takes precedence (`tui/providers/README.md`, "What a server's refusals teach").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.providers.base import Capabilities

Family: TypeAlias = Literal["gemini", "deepseek", "kimi", "llamacpp", "openrouter", "loop", "plain"]
"""What a Chat Completions server and its models are like: "loop" takes reasoning back in the tool loop."""

USUAL = ("low", "medium", "high")
"""Efforts that every reasoning model accepts."""

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
        """The values of `thinking.type` it accepts, unless the server lists them.

        "adaptive" from 4.6 on, "enabled" with a budget from 3.7 to 4.6.
        """
        types = {"adaptive": self.version >= (4, 6), "enabled": (3, 7) <= self.version <= (4, 6), self.off_switch: True}
        return frozenset(name for name, supported in types.items() if name and supported)

    @property
    def efforts(self) -> tuple[str, ...]:
        """The reasoning efforts, unless the server lists them: as an effort from 4.6 on, as a budget from 3.7 on."""
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


_O_SERIES = re.compile(r"^(?:o\d|gpt-oss|codex-mini)")
# The only ones from gpt-6 on that take "none" (OpenAI's pages of each model, November 2026).
_CAN_BE_OFF = re.compile(r"gpt-6-(sol|luna)|gpt-6\.1-terra")
_GPT = re.compile(r"gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")


def gpt_version(model: str) -> tuple[int, int] | None:
    """Version of a GPT model, (5, 6) for "openai/gpt-5.6-mini"; None for other models."""
    match = _GPT.search(model.lower().replace("gpt-35", "gpt-3.5"))  # Azure's names have no dots
    return None if match is None else (int(match["major"]), int(match["minor"] or 0))


def openai_efforts(model: str, *, chat: bool = False) -> tuple[str, ...] | None:
    """The efforts of an OpenAI model, with or without a vendor prefix; () if it does not reason, None for other models.

    `chat`: over Chat Completions, which lacks the highest effort from gpt-6 on.
    """
    name = model.lower().rpartition("/")[2]
    if _O_SERIES.match(name):
        return USUAL
    version = gpt_version(name)
    if version is None:
        return None
    if version < (5, 0) or "-chat" in name:
        return ()
    if "-pro" in name:
        return ("high",) if version < (5, 2) else ("medium", "high", "xhigh")
    if version >= (6, 0):
        least = ("off",) if _CAN_BE_OFF.fullmatch(name) else ()
        return (*least, *USUAL, "xhigh") if chat else (*least, *USUAL, "xhigh", "max")
    if version == (5, 0):
        return USUAL if "codex" in name else ("minimal", *USUAL)
    more = ("xhigh",) if version >= (5, 2) or "codex-max" in name else ()
    most = ("max",) if version >= (5, 6) else ()
    return (*(() if "codex" in name else ("off",)), *USUAL, *more, *most)


_SEES_AND_CALLS = re.compile(r"claude-|gpt-(4o|4\.1|[5-9])|gemini-|(^|/)o[34](-|$)")


def known_to_see_and_call(model: str) -> bool | None:
    """Whether every model of this family accepts images and tools; None if the name doesn't tell."""
    return True if _SEES_AND_CALLS.search(model.lower()) else None


def anthropic_capabilities(model: str, *, official: bool) -> Capabilities:
    """Messages dialect. Servers that merely speak it (llama.cpp, DeepSeek) write any signature, and check none.

    A block without one was broken off, and is not sent.
    """
    kind = claude(model)
    if kind is None and not official:
        return Capabilities(reasoning_return="tool_loop", needs_signature=True, count_endpoint=None)
    kind = kind or Claude("opus", (5, 5))  # unknown models are treated as the newest
    return Capabilities(
        reasoning_return="always" if kind.keeps_thinking else "tool_loop",
        needs_signature=True,
        prefix_bound=kind.prefix_bound,
        pdfs=kind.version >= (3, 5),
        count_endpoint=True if official else None,
    )


def responses_capabilities(model: str, *, official: bool) -> Capabilities:
    """Responses dialect: from gpt-5.6 on the reasoning of all turns is rendered, before that of the open tool loop."""
    version = gpt_version(model)
    return Capabilities(
        reasoning_return="always" if official and version is not None and version >= (5, 6) else "tool_loop",
        needs_signature=official,
        pdfs=official,
        count_endpoint=True if official else None,
        files_after_results=not official,
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
        case "llamacpp":
            return Capabilities(reasoning_return="tool_loop", count_endpoint=True, count_freely=True)
        case "loop":
            return Capabilities(reasoning_return="tool_loop")
        case "gemini":
            return Capabilities(count_endpoint=True)
        case "plain":
            return Capabilities()
