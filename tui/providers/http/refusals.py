"""The causes of refusals other than length: one table, so that no rule matches another's sentence. Pure.

`tests/providers/http/refusal_sentences.py` has sentences of real servers, including similar ones. The reaction to each
cause is decided elsewhere: dialects try another style, the turn leaves something out.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from tui.messages import EFFORTS
from tui.providers.base import ProviderError
from tui.providers.capabilities import USUAL
from tui.providers.http.overflow import any_of

Cause: TypeAlias = Literal[
    "reasoning_with_tools",  # accepts tools or reasoning, but not both in this dialect
    "missing_reasoning",  # an answer was sent back without its reasoning
    "summaries",  # only verified organisations get reasoning summaries
    "streams",  # only verified organisations may stream
    "max_tokens_name",  # `max_tokens` or `max_completion_tokens`, whichever was not sent
    "description",  # a tool's description is too long
    "schema",  # a tool's schema
    "file",  # an image or a PDF that the server can't read
    "images",
    "tools",
    "effort",  # of reasoning, or its field
    "field",  # a field that the server does not support, named or not
]

_UNAVAILABLE = r"\b(?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)"

_RULES: tuple[tuple[Cause, str], ...] = (  # the first that matches counts
    # OpenAI's Chat Completions, of gpt-5.4 and later (openai/openai-openapi#541, BerriAI/litellm#34569).
    ("reasoning_with_tools", any_of(r"tools? with reasoning_effort (?:is|are) not supported")),
    ("missing_reasoning", any_of(r"reasoning_content.{0,60}(?:must be passed back|is missing)")),
    # OpenAI (continuedev/continue#9602).
    ("summaries", any_of(r"verified to generate reasoning summar")),
    ("streams", any_of(r"verified to stream")),
    (
        "max_tokens_name",
        any_of(
            r"max_(?:completion_)?tokens['\"`]? is not supported",
            r"use ['\"`]max_(?:completion_)?tokens['\"`] instead",
        ),
    ),
    # OpenAI, Copilot, DeepSeek: "Invalid 'tools[2].function.description': string too long. ... maximum length 1024".
    (
        "description",
        any_of(
            r"\bdescription['\"`]?[^.]{0,20}: (?:string|value) too long",
            r"\bdescription\b.{0,80}\b(?:too long|at most 1,?024|max(?:imum)? length (?:of )?1,?024|1,?024 characters)",
        ),
    ),
    (
        "schema",
        any_of(
            r"invalid schema for (?:function|tool)",  # OpenAI, Groq
            r"tools\.\d+\.(?:custom\.)?input_schema",  # Anthropic
            r"input_schema does not support",
            r"unknown name .{1,40} at '(?:request\.)?tools",  # Gemini
            r"function_declarations\[\d+\]\.(?:parameters|response)",
            r"flavou?red json schema",  # Moonshot
            r"json schema (?:is invalid|conversion failed)",  # Anthropic, llama.cpp
            r"(?:unrecognized|unresolved|unsupported) (?:json )?schema",  # llama.cpp
            r"failed to (?:initialize samplers|parse grammar)",
            r"grammar error",  # vLLM, SGLang
            r"invalid (?:tool|function) parameters? schema",
        ),
    ),
    # Anthropic, OpenAI, Gemini, xAI, llama.cpp and vLLM, of a file that is broken, too large or not what it says.
    (
        "file",
        any_of(
            r"could not process (?:the )?(?:image|pdf)",
            r"(?:unsupported|invalid) image",
            r"represent a valid image",
            r"unable to process input image",
            r"cannot identify image",
            r"failed to (?:load|decode) (?:the )?image",
            r"image dimensions exceed",
            r"image does not match",
            r"appears to be an? image/",
            r"pdf (?:specified )?(?:was|is) (?:not valid|invalid|password protected)",
            r"maximum of \d+ pdf pages",
        ),
    ),
    # llama.cpp, OpenRouter, vLLM, Ollama, LiteLLM.
    (
        "images",
        any_of(
            r"image input is not supported",
            r"support image input",
            r"does not support (?:images?|vision)",
            r"is not a multimodal model",
            rf"(?:images?|image_url|vision|multimodal)\b.{{0,40}}{_UNAVAILABLE}",
        ),
    ),
    # Ollama, OpenRouter, vLLM, llama.cpp without its template engine, Mistral and LiteLLM.
    (
        "tools",
        any_of(
            r"does not support (?:tools|tool calling|function calling)",
            r"support tool use",
            r"--enable-auto-tool-choice",
            r"tools param requires --jinja",
            # Not "tool choice 'required' is not supported" nor "parallel tool calls are not supported".
            rf"(?<!parallel )(?<!strict )\b(?:tools?|tool (?:use|calls?|calling)|function calling)\b"
            rf"(?:(?! with |schema|param|result|name|choice).){{0,40}}{_UNAVAILABLE}",
        ),
    ),
    # The effort or its field by name, and a refusal: thinking blocks and budgets are another cause.
    (
        "effort",
        any_of(
            r"(?:un|not )supported (?:value|parameter)s?: ['\"`]?(?:reasoning|thinking|effort|none|minimal|low|medium"
            r"|high|xhigh|max)\b",
            r"(?:reasoning_?effort|reasoning\.(?:effort|enabled)|output_config|thinking\.type)\b",
            r"(?:unknown|unrecogni[sz]ed|unsupported|unexpected)[^.]{0,40}\b(?:reasoning|thinking|effort)\b",
            r"\b(?:reasoning|thinking|think|effort|thinking level)\b(?! blocks?)[`'\"]?(?:(?!\bblocks?\b).){0,60}"
            r"(?:not (?:be )?(?:supported?|permitted|allowed|disabled)|unsupported|is mandatory|cannot be|invalid"
            r"|must be one of)",
            r"does(?:n't| not) support (?:parameter )?(?:reasoning|thinking|the effort)",
            r"only works in thinking mode",
            r"thinking: extra inputs",
        ),
    ),
    (
        "field",
        any_of(
            r"stream_options|include_usage",
            r"unknown (?:field|parameter|argument)",
            r"unrecogni[sz]ed",
            r"extra (?:inputs|fields)",
            r"unexpected (?:keyword|field|property)",
            r"unsupported parameter",
            r"\b(?:field|parameter|argument|property|properties|key)s?\b[^.]{0,40} not (?:permitted|allowed)",
            r"additional propert",
        ),
    ),
)
_KINDS = frozenset({"bad_request", "not_found", "server"})


def refused(error: ProviderError) -> Cause | None:
    """The cause of a refusal by its text, or None."""
    if error.kind not in _KINDS:
        return None
    text = str(error)
    return next((cause for cause, pattern in _RULES if re.search(pattern, text)), None)


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


def efforts_after_refusal(accepted: Collection[str] | None, sent: str, refusal: str) -> tuple[str, ...]:
    """The efforts that remain after a server refused `sent`: those listed in the refusal, else the untried ones.

    () if the field itself was refused, or "low", "medium" or "high" without a list of others.
    """
    if listed := _LISTED.search(refusal):
        words = {word.lower() for word in _LEVEL_WORD.findall(listed["list"])}
        named = words - {"none"} | ({"off"} if "none" in words else set())
        if named and sent not in named:
            return tuple(effort for effort in EFFORTS if effort in named)
    if _NOT_AT_ALL.search(refusal) or sent in USUAL or accepted == USUAL:
        return ()
    return USUAL if accepted is None else tuple(effort for effort in accepted if effort != sent)
