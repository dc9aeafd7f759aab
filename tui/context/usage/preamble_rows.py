"""What system prompt, memory files and tools take of a request, each on its own, and how that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tui.context.counting.costs import CountSource
from tui.context.counting.digests import preamble_digest
from tui.context.estimate.calibration import Calibration
from tui.context.estimate.preamble import Preamble
from tui.messages import Request


class PreambleSplit(NamedTuple):
    """Tokens by row key ("system", "memory", "tools"), and how those of the tools are known."""

    weights: Mapping[str, float]
    tools: CountSource


def split_preamble(request: Request, preamble: Preamble, calibration: Calibration) -> PreambleSplit:
    """The rows before the messages.

    Calls of this model that had this preamble tell what all of it costs, calls with the same system prompt and no tools
    what that alone does: the tools are the difference. What one call can't tell apart stays an estimate.
    """
    weights: dict[str, float] = {"system": 0.0, "memory": 0.0, "tools": 0.0}
    for section, tokens in zip(request.system, preamble.sections, strict=True):
        weights[section.kind] += tokens
    weights["system"] += preamble.per_request if weights["system"] else 0.0
    weights["tools"] += sum(preamble.tools) + preamble.fixed
    measured = calibration.preambles.get(preamble.digest.hex())
    alone = _without_tools(request, preamble, calibration, weights["system"] + weights["memory"])
    if not request.tools or measured is None or alone is None or alone >= measured[1]:
        return PreambleSplit(weights, "estimated")
    return PreambleSplit({**weights, "tools": measured[1] - alone}, "derived")


def _without_tools(request: Request, preamble: Preamble, calibration: Calibration, words: float) -> float | None:
    """What a request with this system prompt and no tools has before its messages; None where that is not known."""
    if not words:
        return preamble.per_request
    known = calibration.preambles.get(preamble_digest(request.system, ()).hex())
    return None if known is None else known[1]
