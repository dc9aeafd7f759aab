"""`python -m tests.bench fit_priors`: fit the table of `tui/context/counting/families.py` and say how good it is.

Source: recorded request bodies with the provider's count of their input (`requests.jsonl` of the corpus). Three steps
for each family, each a fit of least absolute relative error:

1. Pairs of requests of one conversation, the later one longer by a reply and what followed it:
   input' - input - output = per_result x results + after_calls (or after_reply + per_message) + content.
2. Requests without tools: input = per_request + per_message x messages + content + thinking, where it is on.
3. Requests with tools, given 1 and 2: the rest = tools_fixed (+ tools_chat) + per_tool x tools + schema_factor x
   schemas + per_call x calls + per_argument x arguments. (Requests that force a tool call get a term of their own,
   which the program has no use for.)

The error that is printed is of models that were left out of the fit, one after the other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from tests.bench.corpus import corpus_path
from tests.bench.linear import least_absolute
from tests.bench.wire_requests import Row, Skipped, read_rows
from tui.context.counting import families
from tui.context.counting.counting import TokenCounter, schema_text
from tui.context.counting.families import Prior, plain_name
from tui.context.counting.tokenizers import get_tokenizer
from tui.messages import Attachment, Message, Reasoning, Request, Text, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Family:
    """A group of models that share a prior. `start` holds what the data can't say and what a fit is drawn to.

    `kin` are the models that share tokenizer and markup, `holds` those of them that share the cost of tools.
    """

    name: str
    kin: Callable[[str], bool]
    start: Prior
    holds: Callable[[str], bool] = lambda name: True
    spread: float = 2.0  # of `per_request`: some templates write a whole system prompt


def _newer_gpt(name: str) -> bool:
    return name.startswith(("gpt-", "o1", "o3", "o4")) and not _older_gpt(name) and not name.startswith("gpt-oss")


def _older_claude(name: str) -> bool:
    return name.startswith("claude") and not _newer_claude(name)


def _claude_4_5(name: str) -> bool:
    return any(mark in name for mark in ("-4-5", "-4-6"))


def _newer_claude(name: str) -> bool:
    return _claude_4_7(name) or _newest_claude(name)


def _claude_4_7(name: str) -> bool:
    return name.startswith("claude") and "-4-7" in name


def _newest_claude(name: str) -> bool:
    marks = ("opus-4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos")
    return name.startswith("claude") and any(mark in name for mark in marks)


OPEN = {
    "gpt-oss": ("gpt-oss",),
    "llama": ("llama3-", "llama-3-", "llama-4"),
    "llama-3.1+": ("llama3.", "llama-3."),
    "qwen": ("qwen",),
    "deepseek": ("deepseek-chat", "deepseek-r", "deepseek-v3"),
    "mistral": ("mistral", "ministral", "magistral", "pixtral"),
    "glm-4": ("glm-4", "zai-glm-4"),
    "glm-5": ("glm-5",),
}


def _named(family: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(OPEN[family]) and "distill" not in name


def _older_gpt(name: str) -> bool:
    return name.startswith(("gpt-4", "gpt-3", "chatgpt-4", "computer-use"))


_GPT = Prior(schema_style="typescript", schema_factor=1.0, per_tool=0.0)
# 346 tokens for having tools: Anthropic's own table.
_CLAUDE = Prior(per_request=4.0, per_message=3.0, tools_fixed=350.0, per_tool=20.0, schema_factor=1.0)
_OPEN = Prior(tools_fixed=60.0, per_tool=20.0)
FAMILIES = (
    Family("gpt-4", _older_gpt, _GPT),
    Family("gpt", _newer_gpt, _GPT),
    Family("claude", _older_claude, _CLAUDE, lambda name: not _claude_4_5(name)),
    Family("claude-4.5+", _older_claude, _CLAUDE, _claude_4_5),
    Family("claude-4.7", _claude_4_7, _CLAUDE),
    Family("claude-4.8+", _newest_claude, _CLAUDE),
    *(Family(name, _named(name), _OPEN, spread=60.0) for name in OPEN),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a request consists of: tokens by the tokenizer, and numbers of things."""

    content: int
    messages: int  # those that cost `per_message`: all but tool results, and the system prompt once
    calls: int
    arguments: int
    results: int
    tools: int
    schemas: int
    thinks: int  # 1 where reasoning is asked for
    chat: int  # 1 where it goes through Chat Completions


def facts(request: Request, style: str) -> Facts:
    """Count `request`."""
    count = get_tokenizer(request.model).count
    content = sum(count(section.text) for section in request.system)
    messages = int(bool(request.system))
    calls = arguments = results = 0
    for message in request.messages:
        messages += message.role != "tool"
        for part in message.parts:
            match part:
                case Text(text):
                    content += count(text)
                case ToolResult(text=text):
                    content += count(text)
                    results += 1
                case ToolCall(name=name, arguments=given):
                    content += count(name) + count(given)
                    calls += 1
                    arguments += len(json.loads(given)) if given.startswith("{") else 0
                case _:
                    pass
    schemas = sum(count(schema_text(tool, "typescript" if style == "typescript" else "json")) for tool in request.tools)
    thinks, chat = int(bool(request.reasoning)), int(request.provider == "openai-chat")
    return Facts(content, messages, calls, arguments, results, len(request.tools), schemas, thinks, chat)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two requests of a conversation: what the second cost more than the first and its output, in tokens."""

    model: str
    rest: float
    content: int
    results: int
    users: int


def pairs(rows: Sequence[Row]) -> list[Pair]:
    """Consecutive requests of one recording where a reply and what followed it came on top."""
    result = []
    for earlier in rows:
        for later in rows:
            start = len(earlier.request.messages)
            fresh = later.request.messages[start + 1 :]
            if earlier.origin.split("#")[0] != later.origin.split("#")[0] or not fresh or earlier.model != later.model:
                continue
            same = later.request.messages[:start] == earlier.request.messages
            preamble = (earlier.request.system, earlier.request.tools) == (later.request.system, later.request.tools)
            if same and preamble and all(message.role != "assistant" for message in fresh) and earlier.visible_output:
                result.append(_pair(earlier, later, fresh))
    return result


def _pair(earlier: Row, later: Row, fresh: Sequence[Message]) -> Pair:
    count = get_tokenizer(later.model).count
    parts = [part for message in fresh for part in message.parts]
    content = sum(count(part.text) for part in parts if isinstance(part, Text | ToolResult))
    results = sum(isinstance(part, ToolResult) for part in parts)
    users = sum(message.role == "user" for message in fresh)
    rest = float(later.actual - earlier.actual - earlier.visible_output)
    return Pair(later.model, rest, content, results, users)


def fit(family: Family, rows: Sequence[Row], links: Sequence[Pair]) -> Prior:
    """The prior of `family` from these rows and pairs."""
    style = family.start.schema_style
    prior = family.start
    plain = [(facts(row.request, style), row.actual) for row in rows if not row.request.tools]
    plain = [(f, actual) for f, actual in plain if not f.calls]
    if plain:
        table = [[1.0, f.messages, f.thinks] for f, _ in plain]
        goal = [float(actual - f.content) for f, actual in plain]
        drawn = [(prior.per_request, family.spread), (prior.per_message, 1.0), (0.0, 30.0)]
        request, message, thinking = least_absolute(table, goal, [1 / max(a, 20) for _, a in plain], drawn)
        prior = replace(prior, per_request=request, per_message=message, thinking=thinking)
    prior = _fit_links(prior, links)
    chosen = [row for row in rows if row.request.tools and family.holds(plain_name(row.model))]
    tooled = [(facts(row.request, style), row.actual, float(row.forced)) for row in chosen]
    if tooled:
        table = [[1.0, f.chat, f.tools, f.schemas, f.calls, f.arguments, forced] for f, _, forced in tooled]
        goal = [
            float(actual)
            - prior.per_request
            - prior.thinking * f.thinks
            - prior.per_message * f.messages
            - f.content
            - prior.per_result * f.results
            for f, actual, _ in tooled
        ]
        drawn = [
            (prior.tools_fixed, 1000.0),
            (0.0, 1000.0 if family.start.schema_style == "typescript" else 0.01),
            (prior.per_tool, 15.0),
            (prior.schema_factor, 0.1),
            (prior.per_call, 6.0),
            (prior.per_argument, 4.0),
            (0.0, 100.0),
        ]
        weights = [1 / max(actual, 20) for _, actual, _ in tooled]
        fixed_cost, chat, tool, schema, call, argument, _ = least_absolute(table, goal, weights, drawn)
        prior = replace(
            prior,
            tools_fixed=fixed_cost,
            tools_chat=chat,
            per_tool=tool,
            schema_factor=schema,
            per_call=call,
            per_argument=argument,
        )
    return prior


def _fit_links(prior: Prior, links: Sequence[Pair]) -> Prior:
    called = [pair for pair in links if pair.results and not pair.users]
    if called:
        goal = [pair.rest - pair.content for pair in called]
        table = [[float(pair.results), 1.0] for pair in called]
        result, closing = least_absolute(table, goal, [1 / 50] * len(called), [(8.0, 10.0), (0.0, 20.0)])
        prior = replace(prior, per_result=result, after_calls=closing)
    outputs = [pair.rest - pair.content - prior.per_message for pair in links if not pair.results]
    whole = [float(rest) for rest in outputs if rest > -20]  # below: reasoning of the earlier turn left
    return replace(prior, after_reply=median(whole)) if whole else prior


def predicted(request: Request, prior: Prior) -> float:
    """The estimate of a whole request with `prior` in place of its family's."""
    f = facts(request, prior.schema_style)
    tools = (
        prior.tools_fixed + prior.tools_chat * f.chat + prior.per_tool * f.tools + prior.schema_factor * f.schemas
        if f.tools
        else 0.0
    )
    return (
        prior.per_request
        + prior.thinking * f.thinks
        + prior.per_message * f.messages
        + f.content
        + prior.per_call * f.calls
        + prior.per_argument * f.arguments
        + prior.per_result * f.results
        + tools
        + media(request)
    )


def media(request: Request) -> int:
    """Tokens of images, by the program's own formula."""
    counter = TokenCounter()
    messages = [m for m in request.messages if any(isinstance(part, Attachment) for part in m.parts)]
    return round(sum(counter.count_message(message, request.model).media for message in messages))


def left_out(family: Family, rows: Sequence[Row], links: Sequence[Pair]) -> list[tuple[Row, float]]:
    """Each row with the relative error of a prior that was fitted without its model."""
    errors = []
    for model in sorted({row.model for row in rows}):
        others = [row for row in rows if row.model != model]
        prior = fit(family, others, [pair for pair in links if pair.model != model])
        for row in rows:
            if row.model == model and family.holds(plain_name(model)):
                errors.append((row, abs(predicted(row.request, prior) - row.actual) / row.actual))
    return errors


def members(family: Family, rows: Sequence[Row]) -> list[Row]:
    """The rows that say something about `family`."""
    return [row for row in rows if family.kin(plain_name(row.model)) and not _thinks(row.request)]


def evaluate(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    """Every row with the relative error of a prior that was fitted without its model."""
    errors = []
    for family in FAMILIES:
        chosen = members(family, rows)
        errors += left_out(family, chosen, pairs(chosen))
    return errors


def main(arguments: Sequence[str] = ()) -> int:
    """Print the fit. `arguments`: the path of `requests.jsonl`, else the corpus beside the repository."""
    path = Path(arguments[0]) if arguments else corpus_path("requests.jsonl")
    if not path.is_file():
        print(f"{path} is not there: set CHATCTX_CORPUS or give the path", file=sys.stderr)
        return 2
    everything = list(read_rows(path))
    rows = [row for row in everything if isinstance(row, Row)]
    skipped = [row for row in everything if isinstance(row, Skipped)]
    print(f"{len(everything)} rows in these dialects, {len(rows)} used, {len(skipped)} left out:")
    for reason in sorted({row.reason for row in skipped}):
        print(f"  {sum(row.reason == reason for row in skipped):4} {reason}")
    for family in FAMILIES:
        chosen = members(family, rows)
        links = pairs(chosen)
        prior = fit(family, chosen, links)
        own_rows = [row for row in chosen if family.holds(plain_name(row.model))]
        bare = sum(not row.request.tools for row in chosen)
        tooled = sum(bool(row.request.tools) for row in own_rows)
        print(f"\n{family.name}: {bare} rows without tools, {tooled} with, {len(links)} pairs")
        print(f"  {_shown(prior)}")
    print("\nleave one model out, median relative error:")
    errors = evaluate(rows)
    for name in ("openai", "anthropic", "others"):
        own_errors = [(row, error) for row, error in errors if row.family == name]
        for tools in (False, True):
            some = [error for row, error in own_errors if bool(row.request.tools) == tools]
            if not some:
                continue
            label = "with tools" if tools else "plain"
            print(f"  {name:10} {label:11} {100 * median(some):6.2f} % ({len(some)} rows)")
    print("\nthe table in use (tui/context/counting/families.py):")
    for name, prior in families.PRIORS.items():
        print(f"  {name}: {_shown(prior)}")
    return 0


def _thinks(request: Request) -> bool:
    """Reasoning that may or may not be rendered says nothing about the rest."""
    return any(isinstance(part, Reasoning) for message in request.messages for part in message.parts)


def _shown(prior: Prior) -> str:
    numbers = {name: getattr(prior, name) for name in Prior.__dataclass_fields__ if name != "schema_style"}
    return ", ".join(f"{name}={value:.4g}" for name, value in numbers.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
