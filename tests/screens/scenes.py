"""What the snapshots show: one conversation with everything in it, windows in every state. Same data, same clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.screens.scenarios import Model, Scenario, ident, override, stored, with_idents
from tests.usages import make_usage
from tui.chat.compaction.compactor import SummaryDraft, SummaryEffect
from tui.chat.memory_files import MemoryFile, MemoryFiles
from tui.chat.store.calls import CallRow
from tui.chat.turn.session import ChatSession
from tui.context.reduction.compaction import CompactionPlan
from tui.context.reduction.records import TrimLog
from tui.context.usage.limits import ModelLimits
from tui.context.usage.rows import UsageItem, UsageRow
from tui.context.usage.usage import ContextUsage
from tui.messages import Message, Reasoning, Role, Text, ToolCall, ToolResult, ToolSchema, Usage

NOW = 1_781_000_000.0
"""The clock: 9 June 2026, 10:13 UTC, in seconds since the epoch."""

ANSWER = """\
The loop stops **one short**: `range(len(tokens) - 1)` never looks at the last token.

```python
def parse(tokens: list[str]) -> Node:
    node = Node("root")
    for token in tokens:  # not range(len(tokens) - 1)
        node.add(token)
    return node
```

| input     | before | after |
| --------- | -----: | ----: |
| `a b c`   |      2 |     3 |
| *(empty)* |     -1 |     0 |

1. Empty input is no special case any more.
2. 日本語のトークン and 🧪 count as one token each.
"""


def message(role: Role, name: str, *parts: Text | Reasoning | ToolCall | ToolResult, ago: int = 0) -> Message:
    """A message written `ago` minutes before the clock."""
    provider, model = ("anthropic", "claude-opus-5-1") if role == "assistant" else ("", "")
    return Message(role, parts, id=ident(name), created_at=NOW - 60 * ago, provider=provider, model=model)


def messages() -> list[Message]:
    """A short conversation with reasoning, a tool call and its result, code, a table, other scripts."""
    source = "\n".join(f"{number:3}  tokens = scan(source)" for number in range(1, 211))
    first = [
        message("user", "a1", Text("Read the parser and tell me how it is built."), ago=95),
        replace(
            message("assistant", "a2", Text("It is a loop over tokens that builds a flat tree."), ago=95),
            usage=Usage(14_300, 480),
        ),
    ]
    return [
        *first,
        message("user", "b1", Text("Why does parse() drop the last token? @src/parser.py"), ago=31),
        replace(
            message(
                "assistant", "b2",
                Reasoning("The loop bound looks wrong. Let me read the file before I say so.", "anthropic", "x"),
                ToolCall("c1", "read_file", '{"path": "src/parser.py"}'),
                ago=31,
            ),
            usage=Usage(17_900, 940),
        ),
        message("tool", "b3", ToolResult("c1", "read_file", source), ago=31),
        replace(message("assistant", "b4", Text(ANSWER), ago=30), usage=Usage(49_800, 2_200)),
    ]  # fmt: skip


def typical(window: int | None = 200_000, *, rolling: bool = False) -> ContextUsage:
    """52,100 tokens with every kind of row."""
    rows = (
        UsageRow("system", "System prompt", 3_200, "estimated"),
        UsageRow("memory", "Memory files", 800, "estimated", (UsageItem("AGENTS.md", 800, "estimated", "AGENTS.md"),)),
        UsageRow(
            "tools", "Tools", 8_000, "estimated",
            (
                UsageItem("read_file", 2_600, "estimated", "read_file", "built-in"),
                UsageItem("search_files", 2_100, "estimated", "search_files", "built-in"),
                UsageItem("issues", 3_300, "estimated", "issues", "github"),
            ),
        ),
        UsageRow(
            "user", "User messages", 6_210, "derived",
            (UsageItem("Read the parser", 12, "derived", "a1"), UsageItem("Why does", 6_198, "derived", "b1")),
        ),
        UsageRow(
            "assistant", "Assistant messages", 9_480, "measured",
            (UsageItem("It is a loop", 480, "measured", "a2"), UsageItem("The loop", 9_000, "measured", "b4")),
        ),
        UsageRow("reasoning", "Reasoning sent back", 3_100, "derived", (UsageItem("b2", 3_100, "derived", "b2"),)),
        UsageRow("tool_calls", "Tool calls", 1_890, "derived", (UsageItem("b2", 1_890, "derived", "b2"),)),
        UsageRow("tool_results", "Tool results", 18_420, "derived", (UsageItem("b3", 18_420, "derived", "b3"),)),
        UsageRow("attachments", "Attachments", 1_000, "estimated"),
    )  # fmt: skip
    return named(make_usage(52_100, window, rows=rows, rolling=rolling))


def nearly_empty() -> ContextUsage:
    """The first question, before any answer."""
    rows = (UsageRow("system", "System prompt", 180, "estimated"), UsageRow("user", "User messages", 140, "estimated"))
    return named(make_usage(320, rows=rows, source="none"))


def full() -> ContextUsage:
    """Above 90 %: compaction is due."""
    return named(make_usage(183_000, source="prefix"))


def named(usage: ContextUsage) -> ContextUsage:
    """Under the name of a model that could be."""
    return replace(usage, model="claude-opus-5-1")


def long_conversation() -> list[Message]:
    """Forty calls with a compaction and a trim on the way."""
    messages: list[Message] = []
    size = 12_000
    for number in range(40):
        if number == 22:
            messages.append(replace(message("user", "m22s", Text("Summary of what was said.")), kind="summary"))
            size = 18_300
        if number == 33:
            size = size * 6 // 10
        messages.append(message("user", f"m{number:02}u", Text(f"question {number}"), ago=400 - number))
        reply = message("assistant", f"m{number:02}v", Text(f"answer {number}"), ago=400 - number)
        messages.append(replace(reply, usage=Usage(size, 700)))
        size += 3_000 + 4_000 * (number % 4)
    return messages


SEARCH = ToolSchema(
    "search_files",
    "Looks for a regular expression in the files below a folder, and returns every line that has it, with the name of"
    " its file and its number. 日本語 and 🧪 are found like any other text.",
    '{"properties":{"folder":{"description":"where to look","type":"string"},"pattern":{"type":"string"}},'
    '"required":["pattern"],"type":"object"}',
)
"""A tool with a long description."""

SUMMARY = """\
Goal: find out why parse() drops the last token, and mend it.

- The loop stopped one short: `range(len(tokens) - 1)`.
- Mended by going over the tokens themselves; 日本語 and 🧪 count as one token each.

Open: a test that fails without the change."""

MEMORY = MemoryFiles(
    (
        MemoryFile("/home/me/AGENTS.md", "~/AGENTS.md", "Be brief. " * 40, "1"),
        MemoryFile("/home/me/parser/AGENTS.md", "AGENTS.md", "Tests before the change. " * 90, "2", on=False),
        MemoryFile("/home/me/parser/文書/AGENTS.md", "文書/a-folder-with-a-long-name/AGENTS.md", "文字 " * 60, "3"),
    )
)

CALL = CallRow(
    "c", "s1", None, "chat", "anthropic", "claude-opus-5-1", NOW - 600, "success", 50_100, 50_300, "exact", 50_000, 100,
    50_000, 41_000, 3_000, 2_000, 900, "provider", 0.8, 12.0, "end_turn", None, 0.42,
)  # fmt: skip

MODELS = (
    ("anthropic", Model("claude-opus-5-1", ModelLimits(200_000, source="probe", detail="models API"))),
    ("openai", Model("gpt-5.6-mini", ModelLimits(400_000, source="table"))),
    ("ollama", Model("qwen3:8b", ModelLimits(40_960, source="probe", detail="/api/ps"))),
    ("local", Model("SmolLM2-135M-Instruct", ModelLimits(8_192, source="probe"))),
    ("lab", Model("a-model-with-quite-a-long-name-that-nobody-asked-for")),
)

TITLE = "Why does parse() drop the last token?"

OTHERS = (
    stored(
        "s2",
        "Why does parse() drop the last token?",
        model="gpt-5.6-mini",
        updated_at=NOW - 7_200,
        count=4,
        parent="s1",
    ),
    stored("s3", "日本語の要約をお願いします", model="qwen3:8b", updated_at=NOW - 90_000, count=12),
    stored(
        "s4",
        "a title that goes on and on about nothing in particular",
        model="qwen3:8b",
        updated_at=NOW - 4e5,
        count=120,
    ),
    stored("s5", "", model="SmolLM2-135M-Instruct", updated_at=NOW - 3e6, count=2),
)


def calls() -> Sequence[CallRow]:
    """Three weeks of use."""
    rows = []
    for day in range(20):
        size = 20_000 + 9_000 * (day * 7 % 5)
        rows.append(
            replace(
                CALL, at=NOW - 86_400 * day, input_total=size, input_cached=size * 3 // 4, predicted=size + 12 * day
            )
        )
    rows += [replace(CALL, session="s2", provider="local", model="SmolLM2-135M-Instruct", cost=0.0, input_cached=0)]
    return [*rows, replace(CALL, kind="compaction"), replace(CALL, status="failed", input_total=None, cost=None)]


def scenario(
    usage: ContextUsage | None = None, conversation: Sequence[Message] | None = None, *, rolling: bool = False
) -> Scenario:
    """The conversation on screen."""
    return Scenario(
        title=TITLE,
        model="claude-opus-5-1",
        messages=messages() if conversation is None else conversation,
        not_sent={ident("a1"): "trimmed", ident("a2"): "trimmed"} if conversation is None else {},
        usage=with_idents(usage or typical(rolling=rolling)),
        rolling=rolling,
        pinned=("b3",),
        other=OTHERS,
        models=MODELS,
        calls=calls(),
        spent=0.42,
        trims=TrimLog(10, 3, 700.0),
        updated_at=NOW - 1_800,
    )


PLAN = CompactionPlan((), 20_000, "m1", "m9", (message("user", "m1", Text("old")),) * 142, ("m3", "m4"), 2_000)


def set_summary(session: ChatSession) -> None:
    """A compaction that is asked for would look like this, whatever the model says."""

    async def draft(_instructions: str = "") -> SummaryDraft:
        draft = SummaryDraft(session.compactor, PLAN, make_usage(121_400), SUMMARY, "stamp")
        override(draft, measure=measure)
        return draft

    async def measure(_text: str) -> SummaryEffect:
        return SummaryEffect(66, 121_400, 17_066)

    override(session.compactor, draft_summary=draft)


def set_draft_tokens(session: ChatSession) -> None:
    """Four characters a token."""
    override(session, draft_tokens=lambda text: (len(text) + 3) // 4)
