"""The real server in all three dialects: text, usage, reasoning, overflow, keys, a full window, cancelling."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.messages import assistant, user
from tests.providers.collect import Answer, collect
from tests.real.conftest import LlamaServer, StartServer, send_also
from tui.chat.conversation.history import HistoryState
from tui.chat.conversation.projection import Target, build_request
from tui.context.counting.counting import TokenCounter
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.measurements import ConversationStateTracker
from tui.messages import Attachment, Message, Reasoning, Refusal, Request, Text, ToolSchema
from tui.providers.base import ProviderError, StreamEnd, TextDelta
from tui.providers.config import Dialect

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "anthropic", "openai-responses")


def ask(server: LlamaServer, *texts: str, max_output: int = 24) -> Request:
    """A conversation of these texts, the person's and the model's in turn."""
    messages = tuple(
        Message("assistant" if index % 2 else "user", (Text(text),), id=str(index)) for index, text in enumerate(texts)
    )
    return Request("real", server.model, messages, max_output=max_output)


async def answer(server: LlamaServer, dialect: Dialect, request: Request) -> Answer:
    provider = server.provider(dialect)
    try:
        return await collect(provider, request)
    finally:
        await provider.close()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_and_its_usage(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server()
    request = ask(server, "Say hello.")
    got = await answer(server, dialect, request)
    assert got.error is None
    assert got.text.strip()
    assert got.end is not None
    usage = got.usage
    assert usage is not None and usage.input_total is not None and usage.output_total is not None
    provider = server.provider(dialect)
    try:
        assert await provider.count_tokens(request) == usage.input_total
    finally:
        await provider.close()
    assert 0 < usage.output_total <= 24


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_input_is_the_same_number_cached_or_not(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server()
    request = ask(server, f"Name three colours, {dialect}.", "Red, green, blue.", "And two more?", max_output=4)
    first, second = await answer(server, dialect, request), await answer(server, dialect, request)
    assert first.usage is not None and second.usage is not None
    assert first.usage.input_total == second.usage.input_total
    assert (second.usage.input_cached or 0) > (first.usage.input_cached or 0)


async def test_every_dialect_counts_the_same_input(llama_server: StartServer) -> None:
    server = llama_server()
    request = ask(server, "One two three.", "Four.", "Five six.", max_output=1)
    inputs = []
    for dialect in DIALECTS:
        usage = (await answer(server, dialect, request)).usage
        inputs.append(usage.input_total if usage else None)
    assert len(set(inputs)) == 1 and inputs[0] is not None


NOTE = Attachment("text", "a note about boats.txt", "text/plain", "aa", 9, text="There are nine boats.\nTwo are red.")
IMAGE = Attachment("image", "harbour.png", "image/png", "bb", 9, 640, 480)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_any_shape_of_a_conversation_costs_what_is_estimated(llama_server: StartServer, dialect: Dialect) -> None:
    """Within 4 tokens a message: bodies join the messages of one role, which saves marks, and the parts of one."""
    server = llama_server()
    hello, bye = user("Hello there, how are you?"), user("Nothing more.")
    shapes = (
        (hello,),
        (hello, bye, bye),
        (user("Hello there.", "And another part.", "And a third."),),
        (hello, assistant("I am well."), assistant("And you?"), bye),
        (hello, assistant(" "), bye),
        (user(""), bye),
        (user("Read this.", NOTE), assistant("Done."), bye),
        (user("Look at this.", IMAGE),),
        (hello, assistant(Refusal("I won't say.")), bye),
        (hello, assistant(Reasoning("I should answer", "real", server.model)), bye),
        (hello, assistant("I am w", Reasoning("or am I", "real", server.model)), bye),
    )
    estimator = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook())
    provider = server.provider(dialect)
    target = Target("real", server.model, replace(provider.capabilities(server.model), images=False))
    try:
        for messages in shapes:
            request = build_request(messages, HistoryState(), target)
            counted, estimated = await provider.count_tokens(request), estimator.estimate(request).tokens
            assert counted is not None and abs(counted - estimated) <= 4 * len(messages), messages
    finally:
        await provider.close()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_overflow_is_refused_with_its_numbers(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server(window=512)
    mark = server.mark()
    error = (await answer(server, dialect, ask(server, "word " * 2000))).error
    assert error is not None
    assert (error.kind, error.status, error.limit) == ("overflow_input", 400, 512)
    assert (error.input_tokens or 0) > 2000
    for _ in range(500):  # it writes its log after the answer
        if server.refusals(mark):
            break
        await asyncio.sleep(0.02)
    assert len(server.refusals(mark)) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_window_full_while_generating_is_no_error(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server(window=512)
    request = ask(server, "Count: " + " ".join(str(number) for number in range(100)), max_output=2000)
    got = await answer(server, dialect, request)
    assert got.error is None
    assert got.end is not None and got.usage is not None
    assert (got.usage.input_total or 0) + (got.usage.output_total or 0) <= 513
    if got.end.kind != "stop":  # the model may also end by itself
        assert got.end.kind == "length"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_reasoning_arrives_and_goes_back(
    llama_server: StartServer, think_template: Path, dialect: Dialect
) -> None:
    server = llama_server(template=think_template)
    request = replace(ask(server, "What is two and two?", max_output=40), reasoning="low")
    got = await answer(server, dialect, request)
    assert got.error is None
    assert got.thoughts.strip()
    assert got.usage is not None and got.usage.reasoning is None  # the server does not split it

    meta = [item for items in got.meta.values() for item in items]
    signature = next((item.signature for item in meta if item.signature is not None), None)
    item_id = next((item.item_id for item in meta if item.item_id is not None), None)
    thought = Reasoning("I add. " * 20, "real", server.model, signature=signature, item_id=item_id)
    tail = user("Sure?")
    without = replace(request, messages=(*request.messages, assistant("Four."), tail))
    having = replace(request, messages=(*request.messages, assistant(thought, "Four."), tail))
    provider = server.provider(dialect)
    try:
        bare, whole = await provider.count_tokens(without), await provider.count_tokens(having)
    finally:
        await provider.close()
    assert bare is not None and whole is not None
    assert whole > bare + 30  # the template renders it: it was sent, and is counted


async def test_anthropic_blocks_that_are_open_together(
    llama_server: StartServer, think_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server opens the text before it closes the thinking: the signature comes after the text began."""
    server = llama_server(template=think_template)
    send_also(monkeypatch, {"thinking": {"type": "enabled", "budget_tokens": 8}, "temperature": 0})
    provider = server.provider("anthropic")
    try:
        got = await collect(provider, ask(server, "Tell me about Paris.", max_output=60))
    finally:
        await provider.close()
    assert got.error is None
    assert got.thoughts.strip() and got.text.strip()
    kinds = [type(event).__name__ for event in got.events]
    assert kinds.index("TextDelta") < kinds.index("ReasoningMeta")
    assert [meta.signature for meta in got.meta[0]] == [""]
    assert {event.block for event in got.events if isinstance(event, TextDelta)} == {1}


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])  # its Anthropic route does not know "disabled"
async def test_thinking_can_be_switched_off(llama_server: StartServer, think_template: Path, dialect: Dialect) -> None:
    server = llama_server(template=think_template)
    got = await answer(server, dialect, replace(ask(server, "What is two and two?"), reasoning="off"))
    assert got.error is None
    assert got.thoughts == ""


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_in_mid_stream_comes_under_http_200(llama_server: StartServer, dialect: Dialect) -> None:
    """The model does not keep to the format that the server made of the chat template; only then it says so."""
    server = llama_server(window=1024, template=Path(__file__).parent / "strict_tools.jinja")
    tool = ToolSchema("look", "Looks.", '{"properties":{"x":{"type":"string"}},"required":["x"],"type":"object"}')
    got = await answer(server, dialect, replace(ask(server, "Say hello.", max_output=6), tools=(tool,)))
    assert got.error is not None and got.error.kind == "server", got
    assert "does not match the expected" in str(got.error) and "\n" not in str(got.error)
    assert got.end is None and not got.calls


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_window_is_found(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server(window=512)
    provider = server.provider(dialect)
    try:
        limits = (await provider.describe(server.model)).limits
        models = await provider.models()
    finally:
        await provider.close()
    assert limits is not None and (limits.context, limits.source) == (512, "probe")
    assert [info.id for info in models] == [server.model]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_key_is_required_and_never_shown(
    llama_server: StartServer, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = llama_server(api_key="correct-horse-battery")
    assert (await answer(server, dialect, ask(server, "Hello", max_output=2))).error is None
    monkeypatch.setenv(server.key_env, "wrong-horse-battery")
    error = (await answer(server, dialect, ask(server, "Hello", max_output=2))).error
    assert error is not None
    assert (error.kind, error.status) == ("auth", 401)
    assert "horse" not in str(error)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("after", [*range(1, 21), 0])
async def test_cancel_at_each_of_the_first_events_and_at_the_last(
    llama_server: StartServer, dialect: Dialect, after: int
) -> None:
    server = llama_server()
    provider = server.provider(dialect)
    try:
        for _ in range(5):  # the model may end its story early
            arrived = 0
            request = ask(server, "Tell a long story.", max_output=400 if after else 4)
            async with aclosing(provider.stream(request)) as stream:
                async for event in stream:
                    arrived += 1
                    if arrived == after or isinstance(event, StreamEnd):
                        break
            if arrived == after or not after:
                break
        assert arrived == after or (after == 0 and arrived > 1)
        await idle(server)
        again = await collect(provider, ask(server, "Say yes.", max_output=2))
        assert again.error is None and again.end is not None
    finally:
        await provider.close()


async def idle(server: LlamaServer) -> None:
    """Wait until the server has stopped generating: closing the stream reaches it."""

    def busy() -> bool:
        with urllib.request.urlopen(f"{server.url}/slots", timeout=5) as response:
            return any(slot["is_processing"] for slot in json.load(response))

    for _ in range(500):
        if not await asyncio.to_thread(busy):
            return
        await asyncio.sleep(0.02)
    pytest.fail("the server still generates")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_cancelling_the_task_stops_the_server_too(llama_server: StartServer, dialect: Dialect) -> None:
    server = llama_server()
    provider = server.provider(dialect)
    started = asyncio.Event()

    async def read() -> None:
        async with aclosing(provider.stream(ask(server, "Tell a long story.", max_output=1500))) as stream:
            async for _ in stream:
                started.set()

    try:
        task = asyncio.create_task(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await idle(server)
    finally:
        await provider.close()


async def test_a_server_that_dies_is_a_network_error(llama_server: StartServer) -> None:
    server = llama_server(window=1024)
    provider = server.provider("openai-chat")
    try:
        with pytest.raises(ProviderError) as caught:
            async with aclosing(provider.stream(ask(server, "Tell a long story.", max_output=900))) as stream:
                async for _ in stream:
                    server.process.stop()
        assert caught.value.kind == "network"
        error = (await collect(provider, ask(server, "Anybody there?"))).error
        assert error is not None and error.kind == "network"
        assert server.url in str(error)
    finally:
        await provider.close()
