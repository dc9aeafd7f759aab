"""What is known of a model family before its first call: how its counts relate to the tokenizer's, and its markup.

The numbers were fitted by `python -m tests.bench.fit_priors` on recorded request bodies with the provider's own input
counts (requests.jsonl of the corpus; rows whose size is not in the request, such as server-run tools, left out); it
prints how many rows each number stands on. The factor of Claude is drawn to what Anthropic says of its tokenizers
(15 to 20 % more tokens than tiktoken up to 4.6, about 30 % more than that from 4.7 on).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tui.context.counting.tokenizers import plain_name


@dataclass(frozen=True, slots=True)
class Prior:
    """Starting values of a family; all but the factors in tokens.

    A request costs `per_request`, and `thinking` where reasoning is asked for. A message costs `per_message` (one with
    tool results `per_result` for each result) and `factor` times what the tokenizer counts in it; a tool call
    `per_call`, and `per_argument` for each of its arguments. A reply whose output was measured costs `after_reply` more
    than that output when something follows, `after_calls` if it called tools: closing marks are output but no input,
    role marks the other way round.

    Tools cost `tools_fixed` once (a hidden preamble), `per_tool` each and `schema_factor` times what the tokenizer
    counts in them, written as JSON or as TypeScript (OpenAI renders them so).
    """

    factor: float = 1.0
    per_request: float = 3.0
    thinking: float = 0.0
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
    per_request=1.9,
    per_message=4.1,
    per_call=9.2,
    per_argument=-2.7,
    per_result=8.5,
    after_calls=2.0,
    tools_fixed=6.8,
    per_tool=6.0,
    schema_factor=1.14,
    schema_style="typescript",
)
_GPT_4 = Prior(
    per_request=3.1,
    per_message=4.0,
    per_call=8.8,
    per_argument=-2.2,
    per_result=5.9,
    after_reply=3.0,
    after_calls=2.3,
    tools_fixed=15.5,
    per_tool=-1.1,
    schema_factor=0.97,
    schema_style="typescript",
)
_CLAUDE = Prior(
    factor=1.14,
    per_request=3.4,
    thinking=28.0,
    per_message=2.7,
    per_call=10.0,
    per_argument=10.0,
    per_result=34.0,
    after_reply=0.4,
    after_calls=-21.0,
    tools_fixed=315.0,
    per_tool=20.0,
    schema_factor=1.1,
)
_CLAUDE_4_5 = replace(_CLAUDE, per_call=8.6, per_argument=11.0, tools_fixed=491.0, per_tool=22.0, schema_factor=1.13)
_CLAUDE_4_7 = replace(_CLAUDE, factor=1.42, per_request=3.5, thinking=0.0, per_message=2.0)

PRIORS: dict[str, Prior] = {
    "gpt": _GPT,
    "o1": _GPT,
    "o3": _GPT,
    "o4": _GPT,
    "codex": _GPT,
    "gpt-4": _GPT_4,
    "gpt-3.5": _GPT_4,
    "chatgpt-4o": _GPT_4,
    "claude": _CLAUDE_4_7,  # a name nobody knows yet follows the newest
    "claude-2": _CLAUDE,
    "claude-3": _CLAUDE,
    "claude-opus-4": _CLAUDE,
    "claude-sonnet-4": _CLAUDE,
    "claude-opus-4-5": _CLAUDE_4_5,
    "claude-opus-4-6": _CLAUDE_4_5,
    "claude-sonnet-4-5": _CLAUDE_4_5,
    "claude-sonnet-4-6": _CLAUDE_4_5,
    "claude-haiku-4-5": _CLAUDE_4_5,
    "claude-opus-4-7": _CLAUDE_4_7,
    "claude-opus-4-8": _CLAUDE_4_7,
    "claude-sonnet-4-7": _CLAUDE_4_7,
    "gpt-oss": Prior(
        factor=1.13, per_request=13.5, per_message=7.1, per_call=1.5, per_result=7.0, tools_fixed=24.0, per_tool=20.0
    ),
    "llama": Prior(factor=1.08, per_request=7.3, per_message=4.8, tools_fixed=60.0, per_tool=15.0),
    "meta-llama": Prior(factor=1.08, per_request=7.3, per_message=4.8, tools_fixed=60.0, per_tool=15.0),
    "qwen": Prior(factor=1.1, per_request=2.8, per_message=4.0, tools_fixed=220.0, per_tool=20.0),
    "mistral": Prior(factor=1.08, per_request=0.4, per_message=3.1, tools_fixed=60.0, per_tool=20.0),
}


@lru_cache(maxsize=256)
def prior_of(model: str) -> Prior:
    """The prior of the longest family name that `model` starts with, else `DEFAULT`."""
    name = plain_name(model).replace(".", "-") if "claude" in model.lower() else plain_name(model)
    best = max((family for family in PRIORS if name.startswith(family)), key=len, default=None)
    return DEFAULT if best is None else PRIORS[best]
