"""Display names of models, speakers, tool calls and the rows of `/context`; mentions of files in a message."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tui.messages import Message
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

# Parts of a model's name left out of labels: dates, sizes, quantisations, tuning words.
_NOISE = re.compile(
    r"^(\d{4,8}|\d+(\.\d+)?[bm]|instruct|chat|it|latest|preview|gguf|i?q\d.*|f16|bf16|fp8|awq|gptq)$", re.I
)
_MAIN_ARGUMENTS = ("path", "file", "file_path", "filename", "command", "query", "pattern", "url", "name")
_LOOKED_FOR = ("pattern", "query")
_SUMMARY_LENGTH = 60


def short_model(model: str) -> str:
    """A model's name for a label, without vendor, date and size: `openai/gpt-5-mini-2025-08-07` -> `gpt-5-mini`."""
    name = clean_line(model).rsplit("/", 1)[-1].split(":", 1)[0]
    name = re.sub(r"\.(gguf|bin|safetensors)$", "", name, flags=re.I)
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


_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')


def mention_of(path: str) -> str:
    """The mention of a file, which attaches it to the message."""
    return f'@"{path}"' if " " in path else f"@{path}"


def mentioned_names(text: str) -> list[tuple[str, ...]]:
    """The mentions in `text`, each with its possible readings: as written, and without trailing punctuation."""
    mentions = _MENTION.findall(text)
    return [(quoted,) if quoted else (plain, plain.rstrip(".,;:!?)]}'\"")) for quoted, plain in mentions]
