"""Short texts about messages: speakers, tool calls, mentions, how an answer ended, its sources; rows of `/context`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tui.messages import FinishKind, Message, ProviderItem, Reasoning, Refusal, Source, ToolCall
from tui.text.clean import abbreviated, clean_line

ROW_NAMES = {
    "system": "system prompt",
    "memory": "memory files",
    "instructions": "server instructions",
    "tools": "tools",
    "hidden": "added by the server",
    "user": "you",
    "assistant": "assistant",
    "reasoning": "reasoning sent back",
    "tool_calls": "tool calls",
    "tool_results": "tool results",
    "attachments": "attachments",
    "summaries": "summaries",
    "unattributed": "not attributed",
    "free": "free",
    "buffer": "compaction buffer",
    "reserve": "output reserve",
}
"""Names of the rows by key, in the order in which they are listed and drawn."""

SECTION_ROWS = ("system", "memory", "instructions")
"""Keys of the rows for sections of the system prompt: the kinds of `SystemSection`."""

PREAMBLE_ROWS = (*SECTION_ROWS, "tools")
"""Keys of the rows before the messages."""

MESSAGE_ROWS = ("user", "assistant", "reasoning", "tool_calls", "tool_results", "attachments", "summaries")
"""Keys of the rows for parts of messages."""

VENDOR = re.compile(
    r"^(?:databricks-|(?:[a-z-]{2,8}\.)?(?:anthropic|openai|google|meta|mistral|qwen|deepseek|amazon|moonshot|moonshotai"
    r"|minimax|zai|cohere|nvidia)\.)(?=.)"
)
"""The vendor before a model's name, and the region before that ("us.", "global."), as Bedrock and Databricks write."""

# Parts of a model's name left out of labels: dates, sizes, quantisations, tuning words.
_NOISE = re.compile(
    r"^(\d{4,8}|\d+(\.\d+)?[bm]|instruct|chat|it|latest|preview|gguf|i?q\d.*|f16|bf16|fp8|awq|gptq)$", re.I
)
_MAIN_ARGUMENTS = ("path", "file", "file_path", "filename", "command", "query", "pattern", "url", "name")
_LOOKED_FOR = ("pattern", "query")
_SUMMARY_LENGTH = 60


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """ "did you mean NAME?" with the one of `names` that is most like a mistyped `name`; "" if none is."""
    import difflib  # needed for mistyped names only

    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else ""


def short_model(model: str) -> str:
    """A model's name for a label, without vendor, date and size: `openai/gpt-5-mini-2025-08-07` -> `gpt-5-mini`."""
    name = clean_line(model).rsplit("/", 1)[-1].removeprefix("ft:")  # OpenAI's fine-tuned models
    name = re.split("[:@]", name)[0]
    name = VENDOR.sub("", re.sub(r"\.(gguf|bin|safetensors)$", "", name, flags=re.I))
    words = re.split(r"[-_ ]", name)
    parts = [words[0]]
    for index, word in enumerate(words[1:], 1):
        if not word or _NOISE.match(word) or (re.fullmatch(r"\d{2}", word) and index > 2):
            break
        parts.append(word)
    return "-".join(parts)[:32] or "assistant"


def label_of(message: Message) -> str:
    """The speaker of a message: `you`, the model's short name, or the kind of message; "" for tool results."""
    match message:
        case Message(kind="summary"):
            return "summary"
        case Message(kind="injected"):
            return "context"
        case Message(role="user"):
            return "you"
        case Message(role="assistant"):
            return short_model(message.model) if message.model else "assistant"
        case _:
            return ""


def arguments_summary(arguments: str) -> str:
    """The most telling argument of a tool call, from its JSON, on one line."""
    import json  # not before the first frame

    from tui.text.json_text import parse_object

    try:
        parsed: object = parse_object(arguments)
    except ValueError:
        parsed = arguments
    if isinstance(parsed, Mapping):
        chosen = next((parsed[name] for name in _MAIN_ARGUMENTS if isinstance(parsed.get(name), str)), None)
        if chosen is None:
            chosen = next((value for value in parsed.values() if isinstance(value, str)), None)
        text = chosen if chosen is not None else ("" if not parsed else json.dumps(parsed, ensure_ascii=False))
        looked_for = next((parsed[name] for name in _LOOKED_FOR if isinstance(parsed.get(name), str)), None)
        if looked_for is not None and looked_for != text:  # a search: the pattern before the folder
            text = f"{looked_for} in {text}"
    else:
        text = str(parsed)
    return abbreviated(clean_line(str(text)[: 4 * _SUMMARY_LENGTH]), _SUMMARY_LENGTH)


_MENTION = re.compile(r'@(?<!\S@)(?:"([^"\n]+)"|(\S+))')  # begins with a literal, which is searched for fast


def mention_of(path: str) -> str:
    """The mention of a file, which attaches it to the message."""
    return f'@"{path}"' if " " in path else f"@{path}"


def mentioned_names(text: str) -> list[tuple[str, ...]]:
    """The mentions in `text`, each with its possible readings: as written, and without trailing punctuation."""
    mentions = _MENTION.findall(text)
    return [(quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'\"")) for quoted, plain in mentions]


# -- how an answer ended, for all providers ----------------------------------------------------------------------------

FINISH_KINDS: Mapping[str, FinishKind] = {
    **dict.fromkeys(("stop", "completed", "complete", "eos", "eos_token", "stop_token", "end_turn", "demo"), "stop"),
    **dict.fromkeys(("stop_sequence", "stopped"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_length", "model_length"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "function_call", "tool_use"), "tool_calls"),
    **dict.fromkeys(("content_filter", "content_filtered", "sensitive", "safety", "recitation"), "content_filter"),
    **dict.fromkeys(("blocklist", "prohibited_content", "spii", "image_safety", "language"), "content_filter"),
    **dict.fromkeys(("guardrail_intervened", "moderation"), "content_filter"),
    "refusal": "refusal",
    **dict.fromkeys(("model_context_window_exceeded", "context_length_exceeded"), "window_full"),
    "pause_turn": "paused",
    **dict.fromkeys(("malformed_function_call", "unexpected_tool_call", "malformed_tool_call"), "malformed_call"),
}
"""Finish reasons of the providers, in lower case. Other programs store them as "toolUse" or "tool-calls"."""

_LINES: Mapping[FinishKind, str] = {
    "length": 'cut off at the output limit · write "go on", or set reserve_output higher',
    "window_full": "cut off: the window is full · /compact or /rolling-context on frees some of it",
    "content_filter": "cut off by the provider's content filter",
    "paused": 'the server paused here and is asked to go on, five times at most · "go on" asks once more',
    "malformed_call": "the model wrote a tool call that its server could not read · /retry asks again",
}
_OTHER_LINES = {
    "repetition": "cut off: the answer began to repeat itself · /retry asks again",  # vLLM
    "max_messages": 'cut off: the server writes no more messages in one answer · write "go on"',  # OpenAI Responses
    "steered": "ended early: the server continued with newer input",  # OpenAI Responses
    "incomplete": 'cut off, the server does not say why · write "go on"',
}


def finish_kind(reason: str | None) -> FinishKind:
    """The kind of end for a provider's `reason`; None (an imported answer) is a usual one."""
    return "stop" if reason is None else _KINDS.get(_letters(reason), "other")


def _letters(reason: str) -> str:
    return re.sub(r"[\W_]", "", reason).lower()


_KINDS = {_letters(reason): kind for reason, kind in FINISH_KINDS.items()}


def ending_line(message: Message) -> str | None:
    """The line shown under a complete answer that did not end as usual, or None."""
    reason = message.finish_reason or "stop"
    kind = finish_kind(reason)
    match kind:
        case "tool_calls" if not any(isinstance(part, ToolCall | ProviderItem) for part in message.parts):
            return "the model announced a tool call, and none arrived · /retry asks again"
        case "stop" | "tool_calls":
            return _empty_line(message)
        case "refusal":
            return _refusal_line(message)
        case "other":
            raw = clean_line(reason)
            return _OTHER_LINES.get(reason.lower(), f"the server ended the answer with {raw!r} · /retry asks again")
        case "content_filter" if _letters(reason) not in ("contentfilter", "contentfiltered"):
            return f"{_LINES[kind]} ({clean_line(reason.lower())})"
        case _:
            return _LINES[kind]


def status_text(message: Message) -> str | None:
    """The line under a message that did not end well; None if it did."""
    match message.status:
        case "cancelled" if not message.parts:
            return "■ stopped by you before anything arrived · /retry asks again"
        case "cancelled":
            return "■ stopped by you, what arrived is kept · /retry asks again"
        case "interrupted" if message.role == "tool":
            return "■ the program ended while tools ran, what they returned is kept"
        case "interrupted" if message.error and "/retry" in message.error:
            return f"■ {clean_line(message.error)}"  # the error text says what happened, what is kept and what to do
        case "interrupted" if message.error and not message.error.startswith("the answer broke off"):
            partly = "what arrived is kept, " if message.parts else ""
            return f"■ {clean_line(message.error).rstrip('.')} · {partly}/retry asks again"
        case "interrupted" if not message.parts:
            return "■ the connection ended before anything arrived · /retry asks again"
        case "interrupted":
            return "■ the connection ended early, what arrived is kept · /retry asks again"
        case "failed":
            return f"✗ {clean_line(message.error or 'the request failed').rstrip('.')} · /retry asks again"
        case "complete" if message.role == "assistant" and message.kind == "chat":
            ending = ending_line(message)
            return f"■ {ending}" if ending else None
        case _:
            return None


def is_cut(reason: str | None) -> bool:
    """Whether a provider's finish `reason` means that the answer was cut off: its last call may be incomplete."""
    return finish_kind(reason) in ("length", "window_full", "malformed_call") or (reason or "").lower() in _OTHER_LINES


def was_stopped(message: Message) -> bool:
    """Whether the provider stopped an answer for its content: none of its tool calls is to be run."""
    return finish_kind(message.finish_reason) in ("content_filter", "refusal")


def provider_explanation(message: Message) -> str:
    """The provider's explanation of a refusal, on one line; "" if it gives none."""
    words = [part.text for part in message.parts if isinstance(part, Refusal) and part.from_server]
    return clean_line(" ".join(words).strip())


def _empty_line(message: Message) -> str | None:
    if message.text.strip() or any(isinstance(part, Refusal | ToolCall) for part in message.parts):
        return None
    if kinds := dict.fromkeys(clean_line(part.kind) for part in message.parts if isinstance(part, ProviderItem)):
        return f"the answer holds only what cannot be shown here: {', '.join(kinds)}"
    if any(isinstance(part, Reasoning) for part in message.parts):
        return "the answer is complete but empty: the model reasoned and wrote nothing · /retry asks again"
    return "the answer is complete but empty · /retry asks again"


def _refusal_line(message: Message) -> str:
    refusal = next((part for part in message.parts if isinstance(part, Refusal)), None)
    category = f" ({clean_line(refusal.category)})" if refusal is not None and refusal.category else ""
    return f"refused by the provider{category} · rephrase your message, or leave this turn out (/leave-out)"


# -- sources cited by an answer ----------------------------------------------------------------------------------------

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|!~$&]")
_WEB = re.compile(r"https?://[^\s<>\x00-\x1f]+", re.IGNORECASE)


def is_web_address(url: str) -> bool:
    """Whether `url` can be opened in a browser."""
    return _WEB.fullmatch(url) is not None


def source_markdown(source: Source) -> str:
    """A source as a link, or its name if it has no web address."""
    # Not backslashes: before a bracket they begin a formula.
    name = _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", clean_line(source.title or source.url))
    return f"[{name}](<{source.url}>)" if is_web_address(source.url) else name


def sources_markdown(sources: Sequence[Source]) -> str:
    """A numbered list of the sources cited by an answer."""
    return "\n".join(f"{number}. {source_markdown(source)}" for number, source in enumerate(sources, 1))


def sources_of(message: Message) -> list[Source]:
    """The sources cited by an answer, by number."""
    return [part for part in message.parts if isinstance(part, Source)]


def source_lines(message: Message) -> list[str]:
    """The sources cited by an answer, one numbered line each."""
    return [
        f"{number}. {clean_line(f'{source.title} {source.url}'.strip())}"
        for number, source in enumerate(sources_of(message), 1)
    ]
