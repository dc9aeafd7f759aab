"""What is known of a model family before its first call: how its counts relate to the tokenizer's, and its markup."""

from __future__ import annotations

from dataclasses import dataclass

from tui.context.tokenizers import plain_name


@dataclass(frozen=True, slots=True)
class Prior:
    """Starting values of a family; all but the factors in tokens.

    A request costs `per_request`, a message `per_message` and `factor` times what the tokenizer counts in it, a tool
    call or result `per_call` more. Tools cost `tools_fixed` once (the hidden preamble), `per_tool` each and
    `schema_factor` times what the tokenizer counts in name, description and schema.
    """

    factor: float = 1.0
    per_request: float = 3.0
    per_message: float = 4.0
    per_call: float = 10.0
    tools_fixed: float = 16.0
    per_tool: float = 8.0
    schema_factor: float = 1.1


DEFAULT = Prior()

PRIORS: dict[str, Prior] = {
    "gpt": Prior(),
    "claude": Prior(factor=1.2),
    "claude-opus-4-7": Prior(factor=1.45),
    "claude-opus-4-8": Prior(factor=1.45),
    "claude-opus-5": Prior(factor=1.45),
    "claude-sonnet-5": Prior(factor=1.45),
    "claude-haiku-5": Prior(factor=1.45),
    "claude-fable": Prior(factor=1.45),
    "claude-mythos": Prior(factor=1.45),
}


def prior_of(model: str) -> Prior:
    """The prior of the longest family name that `model` starts with, else `DEFAULT`."""
    name = plain_name(model)
    best = max((family for family in PRIORS if name.startswith(family)), key=len, default=None)
    return DEFAULT if best is None else PRIORS[best]
