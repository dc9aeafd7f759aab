"""The preamble: everything before the messages (system prompt, memory files, tools), and its estimated tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import preamble_digest
from tui.context.counting.priors import prior_of
from tui.context.counting.schemas import schema_text
from tui.context.counting.tokenizers import heuristic_count
from tui.context.estimate.ledger import utf8_size
from tui.messages import Message, Request, SystemSection, Text


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


SECTION_MARKUP, TOOL_MARKUP = 64, 160  # tokens that a template may add around one of them


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
