"""The preamble: everything before the messages (system prompt, memory files, tools). Its estimate and observed cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import preamble_digest
from tui.context.counting.families import prior_of
from tui.context.counting.schemas import schema_text
from tui.context.counting.tokenizers import heuristic_count
from tui.context.estimate.fit import FACTOR_HIGH, FACTOR_LOW
from tui.context.estimate.ledger import utf8_size
from tui.messages import Message, Request, SystemSection, Text

SECTION_MARKUP, TOOL_MARKUP = 64, 160  # tokens that a template may add around one of them
KEPT_PREAMBLES = 16
AGREE_SHARE, AGREE_SLACK = 0.05, 20.0  # largest difference between two observations that agree: share, tokens


class CountedParts(NamedTuple):
    """Tokens of the parts of a preamble by the provider's own counts."""

    system: float
    memory: float
    instructions: float
    tools: float


class Preamble(NamedTuple):
    """Estimates in tokens, with sections and tools in the request's order; `fixed` is the cost of offering tools at
    all.

    `failed` is the part of `total` that came from the character heuristic; `most` its upper limit: a token for each
    byte, plus what a template may add.
    """

    digest: bytes
    sections: tuple[float, ...]
    tools: tuple[float, ...]
    fixed: float
    per_request: float
    failed: float
    most: float = 0.0
    size: float = 0.0  # bytes of the sections
    counted: CountedParts | None = None

    @property
    def total(self) -> float:
        """All of it, including the request's markup."""
        return sum(self.sections) + sum(self.tools) + self.fixed + self.per_request


ONE_MESSAGE = Message("user", (Text("."),))


def preamble_steps(request: Request) -> tuple[Request, ...]:
    """The requests whose counts tell what the parts of a preamble cost: each has one part more than the one before.

    They have one short message in place of `request`'s own, since no provider counts a request without any.
    """
    bare = replace(request, messages=(ONE_MESSAGE,), system=(), tools=())
    prompt = replace(bare, system=tuple(section for section in request.system if section.kind == "system"))
    memory = replace(prompt, system=tuple(section for section in request.system if section.kind != "instructions"))
    words = replace(memory, system=request.system)
    return bare, prompt, memory, words, replace(words, tools=request.tools)


def estimate_preamble(request: Request, counter: TokenCounter) -> Preamble:
    """The estimate for `request`, by the family's prior."""
    prior = prior_of(request.model)
    failed = 0.0
    sections: list[float] = []
    for section in request.system:
        tokens, bad = _section(section, request.model, counter)
        sections.append(tokens)
        failed += bad
    tools: list[float] = []
    for tool in request.tools:
        counted = counter.count_tool(tool, request.model)
        if counted is None:
            counted = round(
                prior.per_tool + prior.schema_factor * heuristic_count(schema_text(tool, prior.schema_style))
            )
            failed += counted
        tools.append(float(counted))
    chat = 0.0 if request.provider == "openai" else prior.tools_chat  # OpenAI itself is called by the Responses API
    fixed = prior.tools_fixed + chat if tools else 0.0
    digest = preamble_digest(request.system, request.tools)
    reasons = request.reasoning not in (None, "off")
    markup = prior.per_request + prior.thinking * reasons + (prior.per_message if any(sections) else 0.0)
    return Preamble(digest, tuple(sections), tuple(tools), fixed, markup, failed, *_most(request))


def _most(request: Request) -> tuple[float, float]:
    """The most that system prompt and tools can cost, in tokens, and the bytes of the system prompt."""
    system = sum(utf8_size(section.text) for section in request.system)
    tools = sum(utf8_size(f"{tool.name}{tool.description}{tool.parameters}") for tool in request.tools)
    markup = SECTION_MARKUP * len(request.system) + TOOL_MARKUP * len(request.tools)
    return float(system + tools + markup), float(system)


def _section(section: SystemSection, model: str, counter: TokenCounter) -> tuple[float, float]:
    if not section.text:
        return 0.0, 0.0
    counted = counter.count_section(section, model)
    if counted is not None:
        return float(counted), 0.0
    guess = float(heuristic_count(section.text))
    return guess, guess


class PreambleCost(NamedTuple):
    """Estimated and actual tokens of a system prompt with its tools; `agreed`: confirmed by a second call."""

    estimated: float
    actual: float
    agreed: bool = False


@dataclass(frozen=True)
class PreambleCosts:
    """What is learned of one model's preambles: system prompt and tools together.

    `costs` are by digest, latest last; `changes` pairs (estimated, actual) of what a changed preamble added.
    """

    costs: Mapping[bytes, PreambleCost] = field(default_factory=dict)
    changes: tuple[tuple[float, float], ...] = ()

    def learn(self, digest: bytes, estimated: float, actual: float) -> PreambleCosts:
        """Return this with the cost in tokens of the system prompt and tools with this digest."""
        if actual <= 0:
            return self
        before = self.costs.get(digest)
        agreed = before is not None and abs(actual - before.actual) <= AGREE_SHARE * before.actual + AGREE_SLACK
        others = dict(self.costs)
        others.pop(digest, None)
        others[digest] = PreambleCost(estimated, actual, agreed)
        return replace(self, costs=dict(list(others.items())[-KEPT_PREAMBLES:]))

    def learn_change(self, estimated: float, actual: float) -> PreambleCosts:
        """Return this with the actual tokens that a change of system prompt or tools added."""
        if abs(estimated) < 1 or actual / estimated <= 0:
            return self
        return replace(self, changes=(*self.changes, (estimated, actual))[-KEPT_PREAMBLES:])

    def tokens(self, digest: bytes, estimated: float, least_factor: float = 1.0) -> float:
        """Tokens of system prompt and tools.

        The learned figure, or the latest learned one plus the estimated difference, or `least_factor` times the
        estimate.
        """
        agreed = {key: cost for key, cost in self.costs.items() if cost.agreed}
        if digest in agreed:
            return agreed[digest].actual
        if not agreed:
            return estimated * least_factor
        nearest = list(agreed.values())[-1]
        return max(0.0, nearest.actual + (estimated - nearest.estimated) * self.factor)

    def knows(self, digest: bytes) -> bool:
        """Whether two calls agreed on what system prompt and tools of this digest cost."""
        cost = self.costs.get(digest)
        return cost is not None and cost.agreed

    def change(self, before: tuple[bytes, float], after: tuple[bytes, float]) -> float:
        """What system prompt and tools add when they change, in tokens; both given as digest and estimate."""
        costs = self.costs.get(before[0]), self.costs.get(after[0])
        if costs[0] is not None and costs[1] is not None:
            return costs[1].actual - costs[0].actual
        return (after[1] - before[1]) * self.factor

    @cached_property
    def factor(self) -> float:
        """What the estimated difference of two preambles is multiplied by."""
        if len(self.changes) < 2:  # a single observation
            return 1.0
        ratio = median(actual / estimated for estimated, actual in self.changes)
        return min(max(ratio, FACTOR_LOW), FACTOR_HIGH)

    @property
    def agreed(self) -> int:
        """How many preambles two calls agreed on."""
        return sum(cost.agreed for cost in self.costs.values())

    def to_json(self) -> dict[str, object]:
        """A JSON object for the store."""
        return {
            "preambles": {digest.hex(): list(cost) for digest, cost in self.costs.items()},
            "tool_changes": [list(pair) for pair in self.changes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PreambleCosts:
        """The inverse of `to_json`. Raises `ValueError`, `TypeError` or `KeyError` for malformed data."""
        costs = {
            bytes.fromhex(key): PreambleCost(float(cost[0]), float(cost[1]), len(cost) > 2 and bool(cost[2]))
            for key, cost in data["preambles"].items()
        }
        return cls(costs, tuple((float(old), float(new)) for old, new in data["tool_changes"]))


def agree(one: float, other: float) -> bool:
    """Whether two observations of the same tokens agree."""
    return abs(one - other) <= AGREE_SHARE * max(one, other) + AGREE_SLACK
