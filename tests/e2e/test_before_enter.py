"""What the status bar shows just before Enter, against what a server counts in the bytes that it then gets.

The server thinks at length before each answer, and calls a tool in one of its turns. It counts every text of a request
body with a vocabulary of its own, bills its reasoning, and names it or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import drain, of, tokens_of
from tests.e2e.test_app import running, settings_in
from tests.providers.replay import Answer, ReceivedRequest, replay_server, sse
from tui.chat.conversation.events import TurnFailed
from tui.chat.workspace import Workspace
from tui.config.settings import ProviderSettings, Settings
from tui.providers.base import ReasoningReturn
from tui.widgets import bars

THOUGHT = "The harbour map says one thing and the tide table another, so each of them has to be read again. " * 30
ANSWER = "The boat leaves at six from the third pier, unless the wind turns before. "
TABLE = "At high water the ferry for the island leaves from the first pier, at low water from the third one. " * 25
QUESTIONS = (
    TABLE + "When does the boat leave tomorrow, and from which of the piers?",
    "List the files in this folder, please, and say which of them is about boats.",
    "And what if the wind turns during the night, is there another boat after it?",
    "Good. Write it down in one sentence that a child of six would understand.",
)
TOOL_TURN = 1  # of the questions: answered with a call of list_files first

Reply = Callable[[int, bool, bool], Answer]


def texts(value: Any, key: str = "") -> Iterator[str]:
    """The texts in a request body that a model would read: no names of fields, no ids, no signatures."""
    if isinstance(value, str):
        if key not in ("id", "tool_call_id", "tool_use_id", "signature", "type", "role", "cache_control", "model"):
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, key)


def counted(body: Any) -> int:
    """Tokens of a request, and four for each message."""
    read = [body.get("system", ""), body["messages"], body.get("tools", [])]
    return sum(tokens_of(text) for text in texts(read)) + 4 * len(body["messages"])


def silent_answer(size: int, calls: bool, named: bool) -> Answer:
    """An answer in Chat Completions, whose reasoning is billed and not shown."""
    return chat_answer(size, calls, named, shown=False)


def chat_answer(size: int, calls: bool, named: bool, *, shown: bool = True) -> Answer:
    """An answer in Chat Completions."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}
    thought = tokens_of(THOUGHT)
    output = thought + tokens_of("list_files{}" if calls else ANSWER)
    usage: dict[str, Any] = {"prompt_tokens": size, "completion_tokens": output}
    if named:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": THOUGHT if shown else None},
        {"tool_calls": [call]} if calls else {"content": ANSWER},
    ]
    end = "tool_calls" if calls else "stop"
    choices: list[dict[str, Any]] = [
        *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
        {"choices": [], "usage": usage},
    ]
    return Answer([*map(sse, choices), b"data: [DONE]\n\n"])


def messages_answer(size: int, calls: bool, named: bool) -> Answer:
    """An answer in Messages, its thinking signed. What it bills for thinking has no name here."""
    output = tokens_of(THOUGHT) + tokens_of("list_files{}" if calls else ANSWER)
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": ANSWER}
    if calls:
        block = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": "{}"}
    start = {"type": "message", "role": "assistant", "id": "m", "content": [], "model": "claude"}
    parts: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**start, "usage": {"input_tokens": size, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": THOUGHT}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": block},
        {"type": "content_block_delta", "index": 1, "delta": delta},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use" if calls else "end_turn"},
            "usage": {"output_tokens": output},
        },
        {"type": "message_stop"},
    ]
    return Answer([sse(part, named=True) for part in parts])


def respond(reply: Reply, named: bool, sizes: list[int]) -> Callable[[ReceivedRequest], Answer]:
    """Answers a request and notes what it really was, in tokens. Nothing else can be asked."""

    def to(request: ReceivedRequest) -> Answer:
        if request.method != "POST" or not request.path.endswith(("/chat/completions", "/messages")):
            return Answer(status=404)
        messages = request.body["messages"]
        sizes.append(counted(request.body))
        last = next(iter(texts(messages[-1], "")), "")
        return reply(sizes[-1], QUESTIONS[TOOL_TURN] in last, named)

    return to


KINDS: list[tuple[str, str, ReasoningReturn, Reply]] = [
    ("box", "thinker", "never", chat_answer),
    ("box", "silent thinker", "never", silent_answer),
    ("moonshot", "kimi-k2.6", "tool_loop", chat_answer),
    ("moonshot", "kimi-k3", "always", chat_answer),
    ("anthropic", "claude-haiku-4-5", "tool_loop", messages_answer),
    ("anthropic", "claude-opus-5", "always", messages_answer),
]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool lists what is here; the keys are for loopback."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "boats.txt").write_text("three boats\n")
    monkeypatch.chdir(tmp_path / "work")
    for name in ("MOONSHOT_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")


def settings_for(folder: Path, provider: str, model: str, url: str) -> Settings:
    kind = "anthropic" if provider == "anthropic" else "openai-compatible"
    base = url if provider == "anthropic" else f"{url}/v1"
    providers = {provider: ProviderSettings(kind=kind, base_url=base)}
    return settings_in(folder, f"{provider}/{model}", providers=providers)


@pytest.mark.parametrize("named", [True, False], ids=["reasoning named", "reasoning not named"])
@pytest.mark.parametrize(("provider", "model", "returned", "reply"), KINDS)
async def test_it_is_what_the_server_counts(
    tmp_path: Path, provider: str, model: str, returned: ReasoningReturn, reply: Reply, named: bool
) -> None:
    sizes: list[int] = []
    async with replay_server() as server:
        server.respond = respond(reply, named, sizes)
        workspace = await Workspace.open(settings_for(tmp_path, provider, model, server.url))
        try:
            session = await workspace.new_session()
            assert session.conversation.target.capabilities.reasoning_return == returned
            for number, question in enumerate(QUESTIONS):
                usage, draft = await session.refresh_usage(), session.draft_tokens(question)
                assert draft is not None
                requests = len(sizes)
                events = await drain(session.send(question))
                assert not of(TurnFailed, events)
                assert len(sizes) - requests == (2 if number == TOOL_TURN else 1)
                if number:
                    assert usage.total + draft == pytest.approx(sizes[requests], rel=0.02), (number, usage.basis)
        finally:
            await workspace.close()


async def test_it_is_on_the_screen(tmp_path: Path) -> None:
    """The same as a person sees it: the number in the bar and that beside the draft."""
    sizes: list[int] = []
    async with replay_server() as server:
        server.respond = respond(chat_answer, False, sizes)
        async with running(settings_for(tmp_path, "moonshot", "kimi-k2.6", server.url)) as run:
            for number, question in enumerate(QUESTIONS[:3]):
                run.chat.composer.value = question
                draft = run.session.draft_tokens(question)
                assert draft is not None
                await run.shows(f"draft ~{draft:,} tok")
                shown = run.session.usage
                assert bars.number(shown).plain in run.chat.status_bar.render().plain
                requests = len(sizes)
                await run.press("enter")
                await run.answered()
                if number:
                    assert shown is not None
                    assert shown.total + draft == pytest.approx(sizes[requests], rel=0.02)
