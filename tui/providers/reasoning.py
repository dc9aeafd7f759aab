"""Reasoning levels: those a model accepts, and which one is sent for a wish. Pure.

A wish is one of `LEVELS`; each dialect writes it in its own way. The tables are from the providers' documentation in
autumn 2026: OpenAI's model pages, Anthropic's "Effort" and "Thinking". What a server lists or refuses takes precedence
(`tui/providers/README.md`, "What a server's refusals teach").
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tui.messages import EFFORTS

LEVELS = EFFORTS
USUAL = ("low", "medium", "high")  # levels that every reasoning model accepts

_O_SERIES = re.compile(r"^(?:o\d|gpt-oss|codex-mini)")
# The only ones from gpt-6 on that take "none" (OpenAI's pages of each model, November 2026).
_CAN_BE_OFF = re.compile(r"gpt-6-(sol|luna)|gpt-6\.1-terra")
_GPT = re.compile(r"gpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")
# "Supported values are: 'none', 'low' and 'high'", "must be one of [low, high]", "Input should be 'low' or 'high'".
_LISTED = re.compile(
    r"(?:supported (?:values|levels|efforts)|valid (?:values|options)|must be (?:one of|either)|should be|one of)"
    r"(?: are| is)?:?(?P<list>.{3,160})",
    re.IGNORECASE | re.DOTALL,
)
_NOT_AT_ALL = re.compile(
    r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected) (?:request )?(?:parameter|argument|field|property)"
    r"|extra (?:inputs|fields)|not (?:permitted|allowed)|additional propert"
    r"|does(?:n't| not) support (?:parameter )?(?:reasoning|thinking)"
    r"|(?:reasoning_effort|reasoning(?:\.effort)?|thinking)['\"`]? (?:is|are) not supported",
    re.IGNORECASE,
)
_LEVEL_WORD = re.compile(r"\b(none|off|minimal|low|medium|high|xhigh|max)\b", re.IGNORECASE)


def nearest(wish: str | None, accepted: Collection[str] | None) -> str | None:
    """The level to send to a model that accepts `accepted` (None: unknown): the wish, the next higher level, or the
    highest.

    None if there is no wish, or the model accepts no level.
    """
    if wish is None or accepted is None or wish in accepted:
        return wish
    ordered = [level for level in LEVELS if level in accepted]
    above = [level for level in ordered if LEVELS.index(level) > LEVELS.index(wish)]
    return above[0] if above else ordered[-1] if ordered else None


def gpt_version(model: str) -> tuple[int, int] | None:
    """Version of a GPT model, (5, 6) for "openai/gpt-5.6-mini"; None for other models."""
    match = _GPT.search(model.lower())
    return None if match is None else (int(match["major"]), int(match["minor"] or 0))


def openai_levels(model: str, *, chat: bool = False) -> tuple[str, ...] | None:
    """The levels of an OpenAI model, with or without a vendor prefix; () if it does not reason, None for other models.

    `chat`: over Chat Completions, which lacks the highest level from gpt-6 on.
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


def levels_after_refusal(accepted: Collection[str] | None, sent: str, refusal: str) -> tuple[str, ...]:
    """The levels that remain after a server refused `sent`: those listed in the refusal, else the untried ones.

    () if the field itself was refused, or "low", "medium" or "high" without a list of others.
    """
    if listed := _LISTED.search(refusal):
        words = {word.lower() for word in _LEVEL_WORD.findall(listed["list"])}
        named = words - {"none"} | ({"off"} if "none" in words else set())
        if named and sent not in named:
            return tuple(level for level in LEVELS if level in named)
    if _NOT_AT_ALL.search(refusal) or sent in USUAL or accepted == USUAL:
        return ()
    return USUAL if accepted is None else tuple(level for level in accepted if level != sent)
