"""What the text of a refusal means: a request longer than the window and by how much, or something not taken. Pure.

Patterns are texts that `re` compiles, and caches, at the first refusal: compiling all of them takes 10 ms.

How to support a new server's text is in `tui/providers/README.md`, "Errors": `_OVERFLOW` are the words, `_LIMIT`,
`_INPUT` and `_OUTPUT` the numbers. The reaction to other causes is decided elsewhere: dialects try another style, the
turn leaves something out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from tui.messages import EFFORTS
from tui.providers.base import ProviderError
from tui.providers.capabilities import USUAL
from tui.providers.wire import count_of

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_max_prompt_tokens_exceeded",
        "string_above_context",
        "token_quantity_exceeded",  # watsonx.ai
        "tokens_limit_reached",  # GitHub Models, which calls the body too large
        "1261",  # Z.ai
    }
)


def any_of(*patterns: str) -> str:
    """One case-insensitive pattern that matches where any of `patterns` does."""
    return "(?i)" + "|".join(f"(?:{pattern})" for pattern in patterns)


# What is too long, and for what. Servers combine these in many ways.
_MATTER = r"(?:prompt|input|context|messages?|conversation|request|(?:prompt_|input_)?tokens?)"
_PASSES = r"(?:exceed(?:s|ed)?|(?:long|larg|bigg|great)er than|more than|must be less than)"
_WINDOW = (
    r"(?:context(?: (?:window|size|length|limit|budget))?|(?:tokens?|model(?:'s)?|max_seq_len) limit|kv memory budget"
    r"|max(?:imum)?(?: (?!rate|request|output)\w+){0,2} (?:length|tokens?)|max_num_tokens"
    r"|max_(?:model|seq|input|prompt)_len(?:gth)?)"
)
_LIKELY = any_of(
    rf"\b{_MATTER}\b(?:[^.]|\.\d){{0,80}}?\b{_PASSES}\b[^.]{{0,60}}?\b{_WINDOW}\b",
    rf"{_WINDOW}[^.]{{0,20}}? (?:been |is |was )?exceeded",
    rf"{_PASSES} (?:(?:the|this|model(?:'s)?|max(?:imum)?) ){{0,3}}context (?:window|size|length)",
    r"token count\W{1,3}[\d,]+\W{1,3}cannot exceed \d",  # Databricks
    r"(?:prompt|input|context|conversation)\b(?: length)?(?: \d+)? (?:is )?too (?:long|large)",
    r"too many (?:input |prompt )?tokens",
    r"(?:输入|tokens?).{0,12}超[过出]",
)
# Similar texts that mean something else: quotas, Go's deadlines, queues, keys, file sizes, and lengths of names.
_ALLOWANCE = any_of(
    r"\b(?:daily|weekly|monthly|today)\b",
    r"please wait",  # Bedrock: "Too many tokens, please wait before trying again."
    r"每|余额|额度|文件|图片",  # per (minute), balance, allowance, file, image
    r"\byour (?:[\w-]+ ){0,2}(?:plan|account|organi[sz]ation|api key|subscription|budget)\b",
    r"deadline exceeded",
    r"\bqueue\b|\bheaders?\b|\b(?:access|auth\w*|session|bearer) token\b",
    r"\b\d+ ?[KMG]i?B\b",
    r"(?:limit|max\w*|most)(?: of|:| is)? \d+ (?:images?|pages|tools|functions|files)\b|\bper image\b",
)
_FIELD = any_of(rf"(?:\b|_)(?:names?|ids?|description|title|field|keys?)\b[^.]{{0,40}}?\b{_PASSES}\b")
_TOKENS = any_of(r"token|context")
# A refusal in other words compares two numbers of tokens.
_INPUT_TOKENS = any_of(
    r"\b(?:prompt|input|context|messages?|total)\b[^.]{0,40}\btokens?\b", r"\btokens? (?:in|of) (?:the|your) \w+"
)
_OF_A_PART = any_of(
    r"\b(?:tools?|functions?|schema|system|images?|files?|cache|reasoning|thinking|embeddings?|stop|credits?|balance"
    r"|token ids?|vocabulary)\b"
)
_OVERFLOW = any_of(
    r"context[\s_-]?(?:window|size|length)[\s_-]?exceed",
    r"maximum context length",
    r"maximum prompt length is",
    r"context (?:window|length|size) is (?:only )?[\d,_]+",
    r"(?:inputs?|prompts?)[`'\"]? must have less than \d+ tokens",
    r"input tokens exceed the configured limit",
    r"input token count .{0,40}(?:exceeds the maximum|only supports up to)",
    r"prompt token count of \S+ exceeds the limit",
    r"reduce the length of the (?:messages|prompt|input)",
    r"range of input length should be",
    r"is too long and exceeds limit of",
    r"trying to keep the first \d+ tokens when context",
    r">=? n_ctx\b",
    r"[`']?inputs[`']? tokens \+ [`']?max_new_tokens[`']? must be",
    r"max_tokens=\d+ cannot be greater than max_model_len",
    r"max_tokens must be at least 1, got -\d+",
    r"default_max_tokens[` ]*\(-\d+\) (?:must|should) be greater than 0",  # TensorRT-LLM
    r"current length is \d+ while limit is",
    r"(?:reached|max size:?) (?:a )?(?:context length of )?\d+ tokens",  # LM Studio in mid-answer, GitHub Models
    r"must be <= max_model_len",
    r"prompt 超长|上下文(?:长度|窗口)",  # GLM and its gateways in China
)


def is_overflow(text: str) -> bool:
    """Whether a refusal with this text means that the request is longer than the context window."""
    if re.search(_OVERFLOW, text):
        return True
    if re.search(_ALLOWANCE, text):
        return False
    if not re.search(_LIKELY, text):
        of_input = re.search(_INPUT_TOKENS, text) and not re.search(_OF_A_PART, text)
        return bool(of_input) and _compared_limit(text) is not None
    return re.search(_FIELD, text) is None or re.search(_TOKENS, text) is not None


# As written by a server: "1,048,576", "128k", "1M"; not a part of "1.2M". Bounded, as a number begins some patterns.
_NUMBER = r"(?>\d(?:[,_]?\d){0,14}(?:[km]\b)?)(?!\.\d*[1-9]|\.\d+[km]\b)"


def _patterns(*texts: str) -> list[str]:
    """Patterns in which `#` stands for the number they are for, `~` for any other."""
    return ["(?i)" + text.replace("#", f"(?P<n>{_NUMBER})").replace("~", _NUMBER) for text in texts]


_LIMIT = _patterns(
    r"exceed context limit: ~ \+ ~ > #",
    r"maximum context length(?: is| of|:|\s*\()\s*#",
    r"maximum context length of \S+ is #",  # SambaNova
    r"context size \(# tokens",
    r"context size is #",
    r"context length is only #",
    r"maximum number of tokens allowed \(?#",
    r"maximum prompt length is #",
    r"maximum model length of #",
    r"max_model_len(?:=| \()#",
    r"(?:window|model) limit \(?#",
    r"n_ctx(?: \(|: ?)#",
    r"# maximum context length",
    r"context length\s*\(# token",
    r"must have less than # tokens",
    r"input length should be \[\d+, ?#\]",
    r"max_new_tokens[`']? must be <= #",
    r"while limit is #",
    r"max length: ?#",
    r"max tokens of # exceeded",  # Snowflake
)
# The limit in texts for which none of these is made: a number that is called one.
_NAMED = _patterns(
    r"\blimit(?: of|:| is)? #",
    r"context (?:window|length|size)(?: of(?: only)?| is)? #",
    r"\blimit for [^.\d]{0,40}? is # tokens",
    r"\bmax(?:imum)?(?: (?:allowed|input|prompt|context|token|model|length|size|input tokens))*(?: of|:| is)? \(?#"
    r"(?! output)",
    r"max_(?:(?:model|seq|input|prompt)_len(?:gth)?|num_tokens)\W{1,3}#",
    r"(?:cannot exceed|must be no more than|supports(?: only| up to| at most)?) #",
    r"# (?:tokens )?allowed",
    r"最大\D{0,6}#",
    r"#[ -]tokens? (?:context (?:window|limit|length)|limit)",
)
# Numbers of something else, by their unit.
_OTHER_UNITS = any_of(r"\d ?(?:bytes|[kmg]i?b\b|char|m?s\b|sec|minutes|hours|pixels|px|images|pages|messages|tools)")
# Two numbers that are compared: a request, and the limit that it exceeds.
_COMPARED = (
    rf"(?ia)(?<![\w.])(?P<request>{_NUMBER})\b[^.\d]{{0,80}}"
    rf"(?:exceed|than|max|limit|only|allow|support|>|最大|限)(?:(?!\bby\b)[^.\d]){{0,60}}?(?P<limit>{_NUMBER})\b"
)
_GIVEN = (
    rf"(?ia)(?P<limit>{_NUMBER})\b[^.\d]{{0,20}}\b(?:got|given|provided|sent|received|but)\b"
    rf"[^.\d]{{0,20}}(?P<request>{_NUMBER})\b"
)
_ANSWER = any_of(r"output|completion|max_(?:new_)?tokens|\+|plus| minus |reserved")
_MIN_LIMIT = 512  # tokens: smaller numbers are codes, positions, and counts of messages
_INPUT = _patterns(
    r"(?:exceed context limit:|request length) # \+",
    r"prompt is too long: #",
    r"resulted in # tokens",
    r"contains (?:at least )?# (?:input )?tokens",
    r"request \(# tokens",
    r"requested tokens \(#\)",
    r"input token count (?:\(|is )#",
    r"keep the first #",
    r"n_keep(?: \(|: ?)#",
    r"has # (?:input )?tokens",
    r"passed # input tokens",
    r"requested # tokens in the messages",
    r"\(length #\)",
    r"requested: #",
    r"prompt token count of #",
    r"(?<!maximum )input (?:length )?\(?# ?(?:tokens\)|\)|exceeds)",
    r"input prompt \(# tokens\)",
    r"given: #",
    r"current length is #",
    r"input_len=#",
)
_OUTPUT = _patterns(
    r"(?:exceed context limit:|request length) ~ \+ #",
    r"# in the (?:completion|output)",
    r"#(?:\.0)? (?:tokens )?for the completion",
    r"requested # output tokens",
    r"tokens plus # 'max_tokens'",
    r"max_(?:completion_)?tokens'? is too large: #",
    r"max_tokens=# cannot be greater",
    r"and # [`']?max_new_tokens",
)
# The longest answer of a model, when more was requested. From public issues of clients of:
# Anthropic (anthropics/claude-code#24451), OpenAI Chat (tailcallhq/forgecode#1185) and Responses, Groq
# (RooCodeInc/Roo-Code#5729), DeepSeek (deepseek-ai/DeepSeek-V3#69), DashScope (open-webui/open-webui#10507), Volcengine
# (yiliqi78/TOKENICODE#3), TGI (huggingface/transformers#28523), Bedrock.
_MAX_OUTPUT = _patterns(
    r"tokens: ~ > #, which is the maximum allowed number of output tokens",
    r"supports at most # (?:completion|output) tokens",
    r"max_(?:completion_|output_)?tokens\W.{0,60}integer above maximum value[.,] expected a value <= #",
    r"max_(?:completion_|output_)?tokens[`'\"]? must be less than or equal to [`'\"]?#",
    r"range of max_tokens (?:is|should be) \[\d+, ?#\]",
    r"maximum tokens you requested exceeds the model limit of #",
    r"(?<!\+ )(?<!\+ `)max_new_tokens`? must be <= #",
    r"(?s)max_(?:completion_|output_)?tokens\b"
    r"(?:(?!temperature|top_|penalty|prompt|plus|context|window|input:? \d|total|\+).){0,60}"
    r"(?:between [01] and|less than or equal to|at most|max(?:imum)?(?: of| is| output|:)?|limit(?: of|:)?|exceeds?"
    r"|range [\[(][01],|超过) ?#(?! (?:tokens )?(?:remain|left|window))",
    r"maximum value (?:for|of) [`'\"]?max_(?:completion_|output_)?tokens[`'\"]? is #",
    r"max_(?:completion_|output_)?tokens\b.{0,20} exceeds the maximum output tokens for this model \(#",
)
# Gemini names the first number that is too large.
_OUTPUT_END = _patterns(
    r"max_?output_?tokens value of ~ but the supported range is from \d+ \(inclusive\) to # \(exclusive\)"
)
# OpenRouter, of an account with little credit.
AFFORDED = _patterns(r"requested up to ~ tokens, but can only afford #")
_ANTHROPIC_BYTES = 32_000_000  # of a request: https://platform.claude.com/docs/en/api/overview, "Request size limits"
# Limits in bytes or characters: of the whole request (Kimi, Vertex), of one string or file (OpenAI, Anthropic).
_MAX_BYTES = _patterns(r"total message size ~ exceeds limit #", r"exceeds the limit: # bytes")
MAX_LENGTH = _patterns(r"string with maximum length #", r"image exceeds ~ MB maximum: ~ bytes > # bytes")
# Several inputs add up: "6683 in the messages, 730 in the functions", "52139 of text input, 12757 of tool input".
_INPUT_PARTS = any_of(
    r"(?P<n>[\d,_]+) (?:in (?:the|your) (?:messages|functions|tools|prompt)|of (?:\w+ )?input|tokens from the input)"
)
_TOTAL = _patterns(r"you requested (?:about )?# tokens")


def overflow_numbers(text: str, fields: Mapping[str, object]) -> tuple[int | None, int | None, int | None]:
    """Limit, input and output in tokens, as an error's text names them; its structured `fields` win over words."""
    parts = [to_int(match["n"]) for match in re.finditer(_INPUT_PARTS, text)]
    input_tokens = count_of(fields.get("n_prompt_tokens")) or (sum(parts) if parts else first_number(_INPUT, text))
    output = first_number(_OUTPUT, text)
    if output is None and input_tokens is not None and (total := first_number(_TOTAL, text)):
        output = max(0, total - input_tokens) or None
    limit = count_of(fields.get("n_ctx")) or first_number(_LIMIT, text) or _called_limit(text)
    return limit, input_tokens, output


def _called_limit(text: str) -> int | None:
    """The limit in a text of no known server: a number that is called one, or the lower of two that are compared."""
    if re.search(_OTHER_UNITS, text):
        return None
    limit = first_number(_NAMED, text)
    return _compared_limit(text) if limit is None else limit if limit >= _MIN_LIMIT else None


def _compared_limit(text: str) -> int | None:
    """The lower of two numbers that are compared: a limit, and a request that exceeds it."""
    compared = re.search(_COMPARED, text) or re.search(_GIVEN, text)
    if compared is None or re.search(_ANSWER, text) or re.search(_OTHER_UNITS, text):
        return None
    limit, request = to_int(compared["limit"]), to_int(compared["request"])
    return limit if _MIN_LIMIT <= limit < request else None


def longest_answer(text: str) -> int | None:
    """The longest answer of a model in tokens, from a refusal of a longer one; None for other refusals."""
    if (end := first_number(_OUTPUT_END, text)) is not None:
        return end - 1
    return first_number(_MAX_OUTPUT, text)


def most_bytes(text: str) -> int | None:
    """The bytes that a request may have in all, where it had more; None where the refusal names none."""
    return first_number(_MAX_BYTES, text) or (_ANTHROPIC_BYTES if "request_too_large" in text else None)


def first_number(patterns: list[str], text: str) -> int | None:
    """The number that the first of `patterns` that matches finds in `text`; None if there is none, or it is 0."""
    match = next((match for pattern in patterns if (match := re.search(pattern, text))), None)
    return to_int(match["n"]) or None if match else None


def to_int(digits: str) -> int:
    """A number with or without thousands separators, a "k" or an "M"; 0 if it is not a number of tokens."""
    plain = re.sub("[,_]", "", digits.lower()).replace("k", "000").replace("m", "000000")
    return count_of(plain) or 0


Cause: TypeAlias = Literal[
    "reasoning_with_tools",  # accepts tools or reasoning, but not both in this dialect
    "missing_reasoning",  # an answer was sent back without its reasoning
    "summaries",  # only verified organisations get reasoning summaries
    "streams",  # only verified organisations may stream
    "max_tokens_name",  # `max_tokens` or `max_completion_tokens`, whichever was not sent
    "role_order",  # a user's message behind a tool's result
    "system_role",
    "description",  # a tool's description is too long
    "schema",  # a tool's schema
    "file",  # an image or a PDF that the server can't read
    "images",
    "tools",
    "effort",  # of reasoning, or its field
    "field",  # a field that the server does not support, named or not
]

_UNAVAILABLE = r"\b(?:is|are) (?:not|un)[ -]?(?:supported|enabled|available)"

_CAUSES: Mapping[Cause, tuple[str, ...]] = {  # the first that matches counts
    # OpenAI's Chat Completions, of gpt-5.4 and later (openai/openai-openapi#541, BerriAI/litellm#34569).
    "reasoning_with_tools": (r"tools? with reasoning_effort (?:is|are) not supported",),
    "missing_reasoning": (r"reasoning_content.{0,60}(?:must be passed back|is missing)",),
    # OpenAI (continuedev/continue#9602).
    "summaries": (r"verified to generate reasoning summar",),
    "streams": (r"verified to stream",),
    "max_tokens_name": (
        r"max_(?:completion_)?tokens['\"`]? is not supported",
        r"use ['\"`]max_(?:completion_)?tokens['\"`] instead",
    ),
    # Mistral's API, and its chat template in llama.cpp and vLLM (NousResearch/hermes-agent#20154).
    "role_order": (r"unexpected role '?user'? after role '?tool", r"roles must alternate .{0,60}tool calls"),
    # Chat templates of Gemma 2 and old Mistral models, OpenAI's first o1.
    "system_role": (
        r"system role (?:is )?not supported",
        r"role['\"`\]]* does not support 'system'",
        r"only user and assistant roles are",
    ),
    # OpenAI, Copilot, DeepSeek: "Invalid 'tools[2].function.description': string too long. ... maximum length 1024".
    "description": (
        r"\bdescription['\"`]?[^.]{0,20}: (?:string|value) too long",
        r"\bdescription\b.{0,80}\b(?:too long|at most 1,?024|max(?:imum)? length (?:of )?1,?024|1,?024 characters)",
    ),
    "schema": (
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
    # Anthropic, OpenAI, Gemini, xAI, llama.cpp and vLLM, of a file that is broken, too large or not what it says.
    "file": (
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
    # llama.cpp, OpenRouter, vLLM, Ollama, LiteLLM.
    "images": (
        r"image input is not supported",
        r"support image input",
        r"does not support (?:images?|vision)",
        r"is not a multimodal model",
        rf"(?:images?|image_url|vision|multimodal)\b.{{0,40}}{_UNAVAILABLE}",
    ),
    # Ollama, OpenRouter, vLLM, llama.cpp without its template engine, Mistral and LiteLLM.
    "tools": (
        r"does not support (?:tools|tool calling|function calling)",
        r"support tool use",
        r"--enable-auto-tool-choice",
        r"tools param requires --jinja",
        # Not "tool choice 'required' is not supported" nor "parallel tool calls are not supported".
        rf"(?<!parallel )(?<!strict )\b(?:tools?|tool (?:use|calls?|calling)|function calling)\b"
        rf"(?:(?! with |schema|param|result|name|choice).){{0,40}}{_UNAVAILABLE}",
    ),
    # The effort or its field by name, and a refusal: thinking blocks and budgets are another cause.
    "effort": (
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
    "field": (
        r"stream_options|include_usage",
        r"unknown (?:field|parameter|argument)",
        r"unrecogni[sz]ed",
        r"extra (?:inputs|fields)",
        r"unexpected (?:keyword|field|property)",
        r"unsupported parameter",
        r"\b(?:field|parameter|argument|property|properties|key)s?\b[^.]{0,40} not (?:permitted|allowed)",
        r"additional propert",
    ),
}
_KINDS = frozenset({"bad_request", "not_found", "server", "unknown"})


def refused(error: ProviderError) -> Cause | None:
    """The cause of a refusal by its text, or None."""
    if error.kind not in _KINDS:
        return None
    text = str(error)
    return next((cause for cause, patterns in _CAUSES.items() if re.search(any_of(*patterns), text)), None)


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
