"""Model families: which models belong to one, and what their requests cost beside the text, before learning."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tui.text.labels import VENDOR

ESTIMATED = "estimated"  # the family of models that belong to no other; an entry of `fitted.json`

# Family by prefix of the model's name; the longest prefix wins. Those that are not encodings are in `fitted.json`.
_PREFIXES = {
    "o200k": "gpt codex o1 o3 o4 computer-use gpt-4o gpt-4.1 gpt-4.5 phi4-mini phi-4-mini phi-4-multimodal",
    "cl100k": (
        "gpt-4 gpt-3.5 gpt-35 text-embedding-ada text-embedding-3 phi4 phi-4 phi-3-small olmo2 olmo-2 olmo3 olmo-3"
    ),
    "claude-4.7": "claude claude-4-7 claude-4-8 claude-opus-4-7 claude-opus-4-8 claude-sonnet-4-7",
    "claude-3": "claude-1 claude-2 claude-3 claude-instant claude-opus-4 claude-sonnet-4 claude-haiku-4 claude-4",
    "gemma3": "gemini gemma medgemma translategemma functiongemma embeddinggemma",
    "gemma2": "gemini-1 gemma2 gemma-2 gemma-7b gemma-1 gemma: codegemma shieldgemma",
    "llama2": (
        "llama2 llama-2 meta-llama-2 meta-llama2 codellama phind-codellama vicuna tinyllama phi3 phi-3 llava orca2 "
        "orca-2 orca-mini wizardlm wizard-vicuna solar nous-hermes yarn-llama2 everythinglm stable-beluga meditron"
    ),
    "llama3": (
        "llama meta-llama smollm3 deepseek-r1-distill-llama deepseek-r1:70b hermes3 hermes-3 dolphin3 dolphin-3 "
        "dolphin-llama3 llava-llama3 tulu3 tulu-3 reflection cogito nemotron"
    ),
    "llama4": "llama4 llama-4 meta-llama-4",
    "qwen2": (
        "qwen qwq qvq coder-model deepseek-r1-distill-qwen "
        "deepseek-r1:1.5b deepseek-r1:7b deepseek-r1:8b deepseek-r1:14b deepseek-r1:32b "  # Ollama's distillations
        "cogito:14b cogito:32b athene-v2 marco-o1 openthinker deepscaler sailor2 smallthinker"
    ),
    "qwen3.5": "qwen3.5 qwen3.6 qwen3.7 qwen-3.5 qwen-3.6 qwen3-5 qwen3-6 qwen35",
    "deepseek": "deepseek r1-v1 v3-v1 v3.1 v3.2",  # r1-v1: Bedrock's deepseek.r1-v1:0
    "deepseek-v2": "deepseek-v2 deepseek-coder-v2 deepseek-llm",
    "deepseek-coder": "deepseek-coder: deepseek-coder-1.3b deepseek-coder-6.7b deepseek-coder-7b deepseek-coder-33b",
    "tekken": (
        "mistral ministral magistral pixtral codestral devstral voxtral open-mistral-nemo open-codestral "
        "mistral-large-2411"
    ),
    "mistral-v3": (
        "mistral: mistral-7b mistral-tiny open-mistral mathstral zephyr mixtral open-mixtral dolphin-mixtral "
        "mistral-large-24 mistral-small-2402 mistral-medium-2312 codestral-2405 codestral-22b dolphin-mistral "
        "mistral-openorca mistrallite openhermes nous-hermes2-mixtral neural-chat starling-lm openchat wizardlm2 "
        "bakllava"
    ),
    "glm4": "glm zai-glm chatglm",
    "glm5": "glm-5 glm5 zai-glm-5",
    "minimax": "minimax abab",
    "command-r": "command c4ai-command aya",
    "smollm2": "smollm",
}
FAMILIES: dict[str, str] = {prefix: family for family, names in _PREFIXES.items() for prefix in names.split()}


def plain_name(model: str) -> str:
    """`model` in lower case without vendor prefixes: "openai/GPT-5" -> "gpt-5", "us.anthropic.claude-x" likewise;
    "chatgpt-4o" is "gpt-4o"."""
    name = model.lower().rsplit("/", 1)[-1].removeprefix("ft:")  # OpenAI's fine-tuned models
    name = VENDOR.sub("", name)
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
# the newest. Four digits that are not a date (a window, as in `llama3-70b-8192`) stay.
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

    A name that belongs to no known family says nothing. Of the same brand only a more precise name counts: what
    "claude-sonnet" is counted with depends on the version that answers.
    """
    vocabulary = family_of(answered)
    if vocabulary == ESTIMATED or vocabulary == family_of(asked):
        return False
    alias, name = plain_name(shared_name(asked)), plain_name(answered)
    more_precise = name.startswith(alias) and not name[len(alias) :][:1].isalnum()
    return more_precise or _brand(answered) != _brand(asked)


def _brand(model: str) -> str:
    """The letters that a family's names begin with: "claude", "gpt", "llama"; "" for a name of no family."""
    match = re.match("[a-z]+", _longest_prefix(model, FAMILIES))
    return match[0] if match else ""


# -- what a family's requests cost beside their text -----------------------------------------------------------------

# The numbers were fitted by `python -m tests.bench fit_priors` to recorded request bodies with the provider's own input
# counts (rows whose size is not in the request, such as server-run tools, are left out); it prints how many rows each
# number is based on. A single message in Claude's frame: 7 tokens up to 4.6, 11 for 4.7, 6 from 4.8 on, measured with
# the counting endpoint (ctok). What Gemini's calls and results cost is from the steps in sessions of its command line,
# in which the signatures of thoughts, which go back with calls, cost nothing; what follows DeepSeek's calls, from 60
# steps of V4 in opencode.


@dataclass(frozen=True, slots=True)
class Prior:
    """Starting values of a family, in tokens but for `schema_factor`.

    A request costs `per_request`, `thinking` where reasoning is asked for, and `default_prompt` if it has no system
    prompt and its template writes one. A message costs `per_message` (one with tool results `per_result` for each
    result) and what the tokenizer counts in it; a tool call `per_call`, and `per_argument` for each of its arguments. A
    reply whose output was measured costs `after_reply` more than that output when something follows, `after_calls` if
    it called tools: closing marks are output but no input, role marks the other way round.

    Tools cost `tools_fixed` once (a hidden preamble; OpenAI's is longer by `tools_chat` where Chat Completions are
    spoken instead of Responses), `per_tool` each and `schema_factor` times what the tokenizer counts in them, written
    as JSON or as TypeScript (OpenAI renders them so).
    """

    per_request: float = 3.0
    thinking: float = 0.0
    default_prompt: float = 0.0
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


# What is not known of a family is as in the first row. The templates of gpt-oss and Llama 3.1 add a date, with and
# without a system prompt.
PRIORS: dict[str, Prior] = {
    #                  request think  dflt  msg  call   arg result reply  calls  fixed  chat  tool schema
    "default":    Prior(),
    "gpt":        Prior(  1.9,  0.0,  0.0, 4.1, 13.2, -4.0,   8.5,  0.0,   2.0,  15.6, 81.2, -0.8,  0.99, "typescript"),
    "gpt-4":      Prior(  3.1,  0.0,  0.0, 4.0,  7.4, -1.8,   5.9,  3.0,   2.3,  10.2,  6.1, -0.2,  0.93, "typescript"),
    "gpt-oss":    Prior( 63.3,  0.0,  0.0, 4.4,  3.5, -2.9,   7.1, -4.4,  -3.6,  -9.8,  0.0, 20.0,   1.11),
    "claude":     Prior(  4.8, 28.3,  0.0, 2.2, 11.7,  0.8,  36.0,  1.3, -23.5, 314.0,  0.0, 20.0,    1.0),
    "claude-4.5": Prior(  4.8, 28.3,  0.0, 2.2, 11.2,  2.4,  36.0,  1.3, -23.5, 492.0,  0.0, 19.2,   1.06),
    "claude-4.7": Prior(  8.0,  0.0,  0.0, 3.0, 11.7,  0.8,  36.0,  1.3, -23.5, 314.0,  0.0, 20.0,    1.0),
    "claude-4.8": Prior(  4.0,  0.0,  0.0, 2.0, 11.7,  0.8,  36.0,  1.3, -23.5, 314.0,  0.0, 20.0,    1.0),
    "glm-4":      Prior(  2.0,  0.0,  0.0, 3.0, 10.0,  0.0,  12.2,  0.0,   0.0,  93.0,  0.0, 20.0,    1.1),
    "glm-5":      Prior(  8.0,  0.0,  0.0, 4.0, 12.8,  1.2,  12.2,  0.0,  16.8,  93.0,  0.0, 20.0,    1.1),
    "llama-3":    Prior(  6.0,  0.0,  0.0, 4.0, 10.0,  0.0,   4.0,  0.0,   0.0,  60.0,  0.0, 16.0,    1.1),
    "llama-3.1":  Prior( 31.3,  0.0,  0.0, 4.0, 10.0,  0.0,   4.0,  0.0,   0.0,  60.0,  0.0, 16.0,    1.1),
    "llama-4":    Prior(  6.0,  0.0,  0.0, 4.0, 10.0,  0.0,   4.0,  0.0,   0.0, 650.0,  0.0, 16.0,    1.1),
    "mistral":    Prior(  0.0,  0.0,  0.0, 3.2, 10.0,  0.0,   4.0,  0.0,   0.0,  60.0,  0.0, 20.0,    1.1),
    "gemini":     Prior(  0.0,  0.0,  0.0, 0.8, 16.0,  0.0,   0.0,  0.0,   0.0,   2.0,  0.0,  2.0,    1.0),
    "gemini-2":   Prior(  0.0,  0.0,  0.0, 0.8, 10.0,  0.0,   6.0,  0.0,   0.0,   2.0,  0.0,  2.0,    1.0),
    "gemma":      Prior(  4.0,  0.0,  0.0, 5.0, 10.0,  0.0,   4.0,  0.0,   0.0,  16.0,  0.0,  8.0,    1.1),
    "qwen":       Prior(  4.1,  0.0,  0.0, 4.0, 10.0,  0.0,   4.0,  0.0,   0.0, 224.6,  0.0, 20.0,   1.09),
    "qwen-2.5":   Prior(  4.1,  0.0, 21.0, 4.0, 10.0,  0.0,   4.0,  0.0,   0.0, 224.6,  0.0, 20.0,   1.09),
    "smollm":     Prior(  3.0,  0.0, 22.0, 5.0, 10.0,  0.0,   4.0,  5.0,   5.0,  16.0,  0.0,  8.0,    1.1),
    "deepseek":   Prior(  1.2,  0.0,  0.0, 1.8, 10.0,  0.0,   4.0,  0.0,   7.0, 293.0,  0.0, 20.0,    1.1),
}  # fmt: skip

FAMILY_PRIORS: dict[str, str] = {
    "o200k": "gpt",
    "cl100k": "gpt-4",
    "claude-3": "claude",
    "claude-4.7": "claude-4.8",  # unknown names are treated as the newest
    "llama3": "llama-3.1",
    "llama4": "llama-4",
    "glm4": "glm-4",
    "glm5": "glm-5",
    "deepseek": "deepseek",
    "smollm2": "smollm",
    **dict.fromkeys(("gemma2", "gemma3"), "gemma"),
    **dict.fromkeys(("qwen2", "qwen3.5"), "qwen"),
    **dict.fromkeys(("tekken", "mistral-v3"), "mistral"),
}

# Models whose template is not that of their family, by prefix of the name; the longest prefix wins.
_OWN_TEMPLATES = {
    "gpt-4": "gpt-4",
    "gpt-oss": "gpt-oss",
    "gemini": "gemini",
    "gemini-2": "gemini-1 gemini-2",
    "deepseek": "deepseek",
    "claude-4.5": (
        "claude-haiku-4 claude-opus-4-5 claude-opus-4-6 claude-4-5 claude-4-6 claude-sonnet-4-5 claude-sonnet-4-6"
    ),
    "claude-4.7": "claude-opus-4-7 claude-sonnet-4-7 claude-4-7",
    "qwen-2.5": "qwen2.5 qwen-2.5 qwen2-5",  # "You are Qwen, ..."
    "llama-3": "llama3- llama-3- meta-llama-3-",
    "llama-3.1": "llama3-1- llama3-2- llama3-3-",  # Bedrock's names
    "default": "hermes nemotron smollm3 zephyr dolphin tulu phi olmo deepseek-v2 deepseek-coder deepseek-llm",
}
MODEL_PRIORS: dict[str, str] = {prefix: prior for prior, names in _OWN_TEMPLATES.items() for prefix in names.split()}

# Tokens of English prose and code by each family's vocabulary, relative to o200k (medians over the corpus). Used only
# to carry a measurement over from one model to another.
RELATIVE_SIZES = {
    "claude-3": 1.21, "claude-4.7": 1.57, "gemma3": 1.15, "gemma2": 1.14, "qwen3.5": 1.09, "deepseek": 1.04,
    "tekken": 1.05, "mistral-v3": 1.26, "command-r": 1.10, "smollm2": 1.17, "llama2": 1.28,
    "deepseek-coder": 1.28, "deepseek-v2": 1.20,
}  # fmt: skip


def relative_size(model: str) -> float:
    """Tokens of English text for `model`, relative to o200k."""
    return RELATIVE_SIZES.get(family_of(model), 1.0)


@lru_cache(maxsize=256)
def prior_of(model: str) -> Prior:
    """The prior of `model` if it has one of its own, else that of its family; the default where neither is known."""
    name = MODEL_PRIORS.get(_longest_prefix(model, MODEL_PRIORS)) or FAMILY_PRIORS.get(family_of(model), "default")
    return PRIORS[name]
