"""Model families: which models belong to one, and what their requests cost beside the text, before learning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

ESTIMATED = "estimated"  # the family of models that belong to no other; an entry of `fitted.json`

# Family by prefix of the model's name; the longest prefix wins. Those that are not encodings are in `fitted.json`.
FAMILIES: dict[str, str] = {
    **dict.fromkeys(("gpt", "codex", "o1", "o3", "o4", "computer-use"), "o200k"),
    **dict.fromkeys(("gpt-4o", "gpt-4.1", "gpt-4.5"), "o200k"),
    **dict.fromkeys(("gpt-4", "gpt-3.5", "text-embedding-ada", "text-embedding-3"), "cl100k"),
    **dict.fromkeys(("claude", "claude-4-7", "claude-4-8"), "claude-4.7"),
    **dict.fromkeys(("claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-4-7"), "claude-4.7"),
    **dict.fromkeys(("claude-1", "claude-2", "claude-3", "claude-instant"), "claude-3"),
    **dict.fromkeys(("claude-opus-4", "claude-sonnet-4", "claude-haiku-4", "claude-4"), "claude-3"),
    **dict.fromkeys(("gemini", "gemma"), "gemma3"),
    **dict.fromkeys(("gemini-1", "gemma2", "gemma-2", "gemma-7b", "gemma-1", "gemma:", "codegemma"), "gemma2"),
    **dict.fromkeys(("llama", "meta-llama", "smollm3"), "llama3"),
    **dict.fromkeys(("llama4", "llama-4", "meta-llama-4"), "llama4"),
    **dict.fromkeys(("deepseek-r1-distill-llama", "hermes-3-llama", "nemotron"), "llama3"),
    **dict.fromkeys(("qwen", "qwq", "qvq", "coder-model", "deepseek-r1-distill-qwen"), "qwen2"),
    **dict.fromkeys(("qwen3.5", "qwen3.6", "qwen3.7", "qwen-3.5", "qwen-3.6", "qwen3-5", "qwen3-6"), "qwen3.5"),
    **dict.fromkeys(("deepseek", "r1-v1", "v3-v1", "v3.1", "v3.2"), "deepseek"),  # r1-v1: Bedrock's deepseek.r1-v1:0
    **dict.fromkeys(("mistral", "ministral", "magistral", "pixtral", "codestral", "devstral", "voxtral"), "tekken"),
    **dict.fromkeys(("open-mistral-nemo", "open-codestral"), "tekken"),
    **dict.fromkeys(("mistral:", "mistral-7b", "mistral-tiny", "open-mistral", "mathstral", "zephyr"), "mistral-v3"),
    **dict.fromkeys(("mixtral", "open-mixtral", "dolphin-mixtral", "mistral-large-24"), "mistral-v3"),
    **dict.fromkeys(("mistral-small-2402", "mistral-medium-2312", "codestral-2405", "codestral-22b"), "mistral-v3"),
    "mistral-large-2411": "tekken",
    **dict.fromkeys(("glm", "zai-glm", "chatglm"), "glm4"),
    **dict.fromkeys(("glm-5", "glm5", "zai-glm-5"), "glm5"),
    **dict.fromkeys(("minimax", "abab"), "minimax"),
    **dict.fromkeys(("command", "c4ai-command", "aya"), "command-r"),
    "smollm": "smollm2",
}

_VENDORS = (
    "anthropic.", "openai.", "google.", "meta.", "mistral.", "qwen.", "deepseek.", "amazon.", "moonshot.",
    "moonshotai.", "minimax.", "zai.", "cohere.", "nvidia.",
)  # fmt: skip


def plain_name(model: str) -> str:
    """`model` in lower case without vendor prefixes: "openai/GPT-5" -> "gpt-5", "us.anthropic.claude-x" likewise;
    "chatgpt-4o" is "gpt-4o"."""
    name = model.lower().rsplit("/", 1)[-1]
    for vendor in _VENDORS:
        head, vendor_found, rest = name.partition(vendor)
        if vendor_found and rest and len(head) <= 3:  # a region such as "us." may stand before it
            name = rest
            break
    if name.startswith("claude"):
        return name.replace(".", "-")  # gateways write claude-sonnet-4.5
    return name.removeprefix("chat") if name.startswith("chatgpt") else name


def _longest_prefix(model: str, prefixes: Iterable[str]) -> str:
    """The longest of `prefixes` that the plain name of `model` starts with; "" for none."""
    return max(filter(plain_name(model).startswith, prefixes), key=len, default="")


def family_of(model: str) -> str:
    """The family of `model`, by the longest matching prefix of its name; `ESTIMATED` for none."""
    return FAMILIES.get(_longest_prefix(model, FAMILIES), ESTIMATED)


# What providers put behind a name for one release of it: a whole date, month and day, year and month, or that it is
# the newest. Four digits that are no date (a window, as in `llama3-70b-8192`) stay.
_RELEASE = re.compile(
    r"(?:[-@]20\d\d-?[01]\d-?[0-3]\d|-(?:0[1-9]|1[0-2])[0-3]\d|-2[3-9](?:0[1-9]|1[0-2])|[-:]latest)$", re.IGNORECASE
)


def shared_name(model: str) -> str:
    """`model` without date or `latest`: what is measured of one release of a model holds for the others.

    Where releases have different vocabularies (`mistral-large-2407`) the name stays as it is.
    """
    name = _RELEASE.sub("", model)
    same = family_of(name) == family_of(model) and prior_of(name) is prior_of(model)
    return name if name and same else model


@lru_cache(maxsize=256)
def another_family(asked: str, answered: str) -> bool:
    """Whether `answered` is a model of another family than `asked`: a gateway's choice, or an alias.

    A name that belongs to no known family says nothing.
    """
    vocabulary = family_of(answered)
    if vocabulary == ESTIMATED or vocabulary == family_of(asked):
        return False
    return _brand(answered) != _brand(asked)


def _brand(model: str) -> str:
    """The letters that a family's names begin with: "claude", "gpt", "llama"; "" for a name of no family."""
    match = re.match("[a-z]+", _longest_prefix(model, FAMILIES))
    return match[0] if match else ""


# -- what a family's requests cost beside their text -----------------------------------------------------------------

# The numbers were fitted by `python -m tests.bench fit_priors` to recorded request bodies with the provider's own input
# counts (rows whose size is not in the request, such as server-run tools, are left out); it prints how many rows each
# number is based on. A single message in Claude's frame: 7 tokens up to 4.6, 11 for 4.7, 6 from 4.8 on, measured with
# the counting endpoint (ctok).


@dataclass(frozen=True, slots=True)
class Prior:
    """Starting values of a family, in tokens but for `schema_factor`.

    A request costs `per_request`, and `thinking` where reasoning is asked for. A message costs `per_message` (one with
    tool results `per_result` for each result) and what the tokenizer counts in it; a tool call `per_call`, and
    `per_argument` for each of its arguments. A reply whose output was measured costs `after_reply` more than that
    output when something follows, `after_calls` if it called tools: closing marks are output but no input, role marks
    the other way round.

    Tools cost `tools_fixed` once (a hidden preamble; OpenAI's is longer by `tools_chat` where Chat Completions are
    spoken instead of Responses), `per_tool` each and `schema_factor` times what the tokenizer counts in them, written
    as JSON or as TypeScript (OpenAI renders them so).
    """

    per_request: float = 3.0
    thinking: float = 0.0
    per_message: float = 4.0
    per_call: float = 10.0
    per_argument: float = 0.0
    per_result: float = 4.0
    after_reply: float = 0.0
    after_calls: float = 0.0
    tools_fixed: float = 16.0
    tools_chat: float = 0.0
    per_tool: float = 8.0
    schema_factor: float = 1.1
    schema_style: Literal["json", "typescript"] = "json"


DEFAULT = Prior()

_GPT = Prior(
    per_request=1.9,
    per_message=4.1,
    per_call=13.2,
    per_argument=-4.0,
    per_result=8.5,
    after_calls=2.0,
    tools_fixed=15.6,
    tools_chat=81.2,
    per_tool=-0.8,
    schema_factor=0.99,
    schema_style="typescript",
)
_GPT_4 = Prior(
    per_request=3.1,
    per_message=4.0,
    per_call=7.4,
    per_argument=-1.8,
    per_result=5.9,
    after_reply=3.0,
    after_calls=2.3,
    tools_fixed=10.2,
    tools_chat=6.1,
    per_tool=-0.2,
    schema_factor=0.93,
    schema_style="typescript",
)
_CLAUDE = Prior(
    per_request=4.8,
    thinking=28.3,
    per_message=2.2,
    per_call=11.7,
    per_argument=0.8,
    per_result=36.0,
    after_reply=1.3,
    after_calls=-23.5,
    tools_fixed=314.0,
    per_tool=20.0,
    schema_factor=1.0,
)
_CLAUDE_4_5 = replace(_CLAUDE, per_call=11.2, per_argument=2.4, tools_fixed=492.0, per_tool=19.2, schema_factor=1.06)
_CLAUDE_4_7 = replace(_CLAUDE, per_request=8.0, thinking=0.0, per_message=3.0)
_CLAUDE_4_8 = replace(_CLAUDE, per_request=4.0, thinking=0.0, per_message=2.0)
_GLM_4 = Prior(per_request=2.0, per_message=3.0, per_result=12.2, tools_fixed=93.0, per_tool=20.0)
_GLM_5 = Prior(
    per_request=8.0,
    per_message=4.0,
    per_call=12.8,
    per_argument=1.2,
    per_result=12.2,
    after_calls=16.8,
    tools_fixed=93.0,
    per_tool=20.0,
)
_LLAMA_3 = Prior(per_request=6.0, per_message=4.0, tools_fixed=60.0, per_tool=16.0)
_LLAMA_3_1 = replace(_LLAMA_3, per_request=31.3)  # its template contains the date
_LLAMA_4 = replace(_LLAMA_3, tools_fixed=650.0)
_MISTRAL = Prior(per_request=0.0, per_message=3.2, tools_fixed=60.0, per_tool=20.0)
_GEMINI = Prior(
    per_request=0.0, per_message=0.8, per_call=8.0, per_result=8.0, tools_fixed=2.0, per_tool=2.0, schema_factor=1.0
)

_GPT_OSS = Prior(
    per_request=63.3,  # the template adds a system prompt
    per_message=4.4,
    per_call=3.5,
    per_argument=-2.9,
    per_result=7.1,
    after_reply=-4.4,
    after_calls=-3.6,
    tools_fixed=-9.8,
    per_tool=20.0,
    schema_factor=1.11,
)
_GEMMA = Prior(per_request=4.0, per_message=5.0)
_QWEN = Prior(per_request=4.1, per_message=4.0, tools_fixed=224.6, per_tool=20.0, schema_factor=1.09)
_DEEPSEEK = Prior(per_request=1.2, per_message=1.8, tools_fixed=293.0, per_tool=20.0)

FAMILY_PRIORS: dict[str, Prior] = {
    "o200k": _GPT,
    "cl100k": _GPT_4,
    "claude-3": _CLAUDE,
    "claude-4.7": _CLAUDE_4_8,  # unknown names are treated as the newest
    **dict.fromkeys(("gemma2", "gemma3"), _GEMMA),
    "llama3": _LLAMA_3_1,
    "llama4": _LLAMA_4,
    **dict.fromkeys(("qwen2", "qwen3.5"), _QWEN),
    "deepseek": _DEEPSEEK,
    **dict.fromkeys(("tekken", "mistral-v3"), _MISTRAL),
    "glm4": _GLM_4,
    "glm5": _GLM_5,
}

# Models whose template is not that of their family, by prefix of the name; the longest prefix wins.
MODEL_PRIORS: dict[str, Prior] = {
    "gpt-4": _GPT_4,
    "gpt-oss": _GPT_OSS,
    **dict.fromkeys(("claude-haiku-4", "claude-opus-4-5", "claude-opus-4-6", "claude-4-5", "claude-4-6"), _CLAUDE_4_5),
    **dict.fromkeys(("claude-sonnet-4-5", "claude-sonnet-4-6"), _CLAUDE_4_5),
    **dict.fromkeys(("claude-opus-4-7", "claude-sonnet-4-7", "claude-4-7"), _CLAUDE_4_7),
    "gemini": _GEMINI,
    **dict.fromkeys(("llama3-", "llama-3-", "meta-llama-3-"), _LLAMA_3),
    **dict.fromkeys(("llama3-1-", "llama3-2-", "llama3-3-"), _LLAMA_3_1),  # Bedrock's names
    "deepseek": _DEEPSEEK,
    **dict.fromkeys(("hermes", "nemotron", "smollm3", "zephyr", "dolphin"), DEFAULT),
}

# Tokens of English prose and code by each family's vocabulary, relative to o200k (medians over the corpus). Used only
# to carry a measurement over from one model to another.
RELATIVE_SIZES = {
    "claude-3": 1.21,
    "claude-4.7": 1.57,
    "gemma3": 1.15,
    "gemma2": 1.14,
    "qwen3.5": 1.09,
    "deepseek": 1.04,
    "tekken": 1.05,
    "mistral-v3": 1.26,
    "command-r": 1.10,
    "smollm2": 1.17,
}


def relative_size(model: str) -> float:
    """Tokens of English text for `model`, relative to o200k."""
    return RELATIVE_SIZES.get(family_of(model), 1.0)


@lru_cache(maxsize=256)
def prior_of(model: str) -> Prior:
    """The prior of `model` if it has one of its own, else that of its family; `DEFAULT` where neither is known."""
    return MODEL_PRIORS.get(_longest_prefix(model, MODEL_PRIORS)) or FAMILY_PRIORS.get(family_of(model), DEFAULT)
