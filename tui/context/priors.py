"""What is known of a model family before its first call: how its counts relate to the tokenizer's, and its markup.

The numbers were fitted by `python -m tests.bench.fit_priors` on recorded request bodies with the provider's own input
counts (requests.jsonl of the corpus; rows whose size is not in the request, such as server-run tools, left out); it
prints how many rows each number stands on. The factor of Claude is drawn to what Anthropic says of its tokenizers
(15 to 20 % more tokens than tiktoken up to 4.6, about 30 % more than that from 4.7 on).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.context.tokenizers import plain_name


@dataclass(frozen=True, slots=True)
class Prior:
    """Starting values of a family; all but the factors in tokens.

    A request costs `per_request`. A message costs `per_message` (one with tool results `per_result` for each result)
    and `factor` times what the tokenizer counts in it; a tool call `per_call` and `per_argument` for each of its
    arguments. A reply whose output was measured costs `after_reply` more than that output when something follows,
    `after_calls` if it called tools: closing marks are output but no input, role marks the other way round.

    Tools cost `tools_fixed` once (a hidden preamble), `per_tool` each and `schema_factor` times what the tokenizer
    counts in them, written as JSON or as TypeScript (OpenAI renders them so).
    """

    factor: float = 1.0
    per_request: float = 3.0
    per_message: float = 4.0
    per_call: float = 10.0
    per_argument: float = 0.0
    per_result: float = 4.0
    after_reply: float = 0.0
    after_calls: float = 0.0
    tools_fixed: float = 16.0
    per_tool: float = 8.0
    schema_factor: float = 1.1
    schema_style: Literal["json", "typescript"] = "json"


DEFAULT = Prior()

_GPT = Prior(
    per_request=3.0,
    per_message=4.0,
    per_call=3.0,
    per_result=6.5,
    after_reply=3.0,
    after_calls=1.0,
    tools_fixed=14.0,
    per_tool=-1.0,
    schema_factor=1.0,
    schema_style="typescript",
)
_CLAUDE = Prior(
    factor=1.2,
    per_request=3.5,
    per_message=3.5,
    per_call=0.0,
    per_argument=10.0,
    per_result=38.0,
    after_reply=4.0,
    after_calls=-25.0,
    tools_fixed=485.0,
    per_tool=28.0,
    schema_factor=1.15,
)

PRIORS: dict[str, Prior] = {
    "gpt": _GPT,
    "claude": _CLAUDE,
}


def prior_of(model: str) -> Prior:
    """The prior of the longest family name that `model` starts with, else `DEFAULT`."""
    name = plain_name(model)
    best = max((family for family in PRIORS if name.startswith(family)), key=len, default=None)
    return DEFAULT if best is None else PRIORS[best]
