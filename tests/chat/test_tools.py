"""The tool loop of a session: calls run, ask, fail and end as they should, and what goes out stays well-formed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import Answer, FakeWorkspace, ScriptedProvider, Tools, answer, open_workspace
from tui.chat.database import StoreError
from tui.chat.events import ApprovalAsked, MessageAdded, Notice, ReplyFinished, ToolFinished, ToolStarted, TurnFailed
from tui.chat.liveness import Liveness
from tui.chat.projection import NO_RESULT
from tui.chat.results import Results
from tui.chat.session import ChatSession
from tui.chat.step_results import StepResults
from tui.chat.tool_step import AT_ONCE, CANCELLED
from tui.chat.toolbox import APPROVALS
from tui.messages import Attachment, Message, Request, ToolCall, ToolResult, ToolSchema
from tui.providers.base import Capabilities, ProviderError, StreamEnd, TextDelta, ToolCallDelta
from tui.tool_settings import ToolSettings
from tui.tools.approval import Decision
from tui.tools.base import Tool, ToolError, ToolImage, ToolOutput
from tui.tools.builtin import BuiltInTools

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x04" + bytes(100)


def calls(*asked: tuple[str, str] | str) -> Answer:
    """A reply that calls tools: (name, arguments), or a name."""
    pairs = [pair if isinstance(pair, tuple) else (pair, "{}") for pair in asked]
    deltas = [ToolCallDelta(n, f"c{n}", name, arguments) for n, (name, arguments) in enumerate(pairs)]
    return [TextDelta("Let me see."), *deltas, StreamEnd("tool_calls", "tool_calls")]


Run = Callable[[Mapping[str, Any]], Any]


class Source:
    """Tools made of functions; those in `reads` only read."""

    def __init__(self, name: str = "built-in", reads: Sequence[str] = (), **runs: Run) -> None:
        self.name = name
        self.ran: list[str] = []
        self.says = ""
        self._reads = reads
        self.runs = runs

    def tools(self) -> Sequence[Tool]:
        return [self._tool(name, run) for name, run in self.runs.items()]

    def _tool(self, name: str, run: Run) -> Tool:
        async def call(arguments: Mapping[str, Any]) -> ToolOutput:
            self.ran.append(name)
            found = run(arguments)
            found = await found if asyncio.iscoroutine(found) else found
            return found if isinstance(found, ToolOutput) else ToolOutput(str(found))

        schema = ToolSchema(
            name, self.says or f"The {name}.", '{"properties":{"id":{"type":"integer"}},"type":"object"}', self.name
        )
        return Tool(schema, name in self._reads, call)


def results(session: ChatSession) -> list[ToolResult]:
    return [part for message in session.messages for part in message.parts if isinstance(part, ToolResult)]


def well_formed(request: Request) -> bool:
    """Every call is answered directly after it, nothing else is."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            for part in message.parts:
                if isinstance(part, ToolResult):
                    waiting.remove(part.call_id)
        elif waiting:
            return False
        waiting += [part.id for part in message.parts if isinstance(part, ToolCall)]
    return not waiting


async def turn(session: ChatSession, decide: Callable[[ApprovalAsked], Decision] | None = None) -> list[object]:
    """Send something; questions get `decide`'s answer."""
    events: list[object] = []
    async for event in session.send("go"):
        events.append(event)
        if isinstance(event, ApprovalAsked) and decide is not None:
            session.tools.approve(event.id, decide(event))
    return events


# -- running -------------------------------------------------------------------------------------------------------


async def test_calls_of_one_reply_run_side_by_side_and_answer_in_their_order(tmp_path: Path) -> None:
    second = asyncio.Event()

    async def first(_: Mapping[str, Any]) -> str:
        await second.wait()
        return "one"

    def last(_: Mapping[str, Any]) -> str:
        second.set()
        return "two"

    source = Source(reads=("first", "second"), first=first, second=last)
    provider = ScriptedProvider([calls("first", "second")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        [added] = [e.message for e in events if isinstance(e, MessageAdded) and e.message.role == "tool"]
        assert [part.text for part in added.parts if isinstance(part, ToolResult)] == ["one", "two"]
        assert [e.name for e in events if isinstance(e, ToolStarted)] == ["first", "second"]
        assert [e.name for e in events if isinstance(e, ToolFinished)] == ["second", "first"]
        assert well_formed(provider.requests[-1])
        assert set(workspace.services.tools.last_used()) == {"first", "second"}


async def test_not_more_run_at_once_than_a_machine_bears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, all_looked_at, looked_at = 0, 0, asyncio.Event(), 0

    async def look(_: Mapping[str, Any]) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await all_looked_at.wait()
        running -= 1
        return "seen"

    provider = ScriptedProvider([calls(*["look"] * 40)])
    async with open_workspace(tmp_path, provider, tools=Source(reads=("look",), look=look)) as workspace:
        session = await workspace.new_session()
        find = session.tools.find

        def counted(name: str) -> Tool | None:
            nonlocal looked_at
            looked_at += 1
            if looked_at == 40:
                all_looked_at.set()
            return find(name)

        monkeypatch.setattr(session.tools, "find", counted)
        await turn(session)
        assert [result.text for result in results(session)] == ["seen"] * 40
        assert most == AT_ONCE


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fetch", '{"id": ', "not valid JSON"),
        ("fetch", '{"id": "seven"}', "id has to be integer, not string"),
        ("fetch", "[1]", "have to be a JSON object"),
        ("grab", "{}", "There is no tool named 'grab'. There is: fetch."),
    ],
)
async def test_what_the_model_got_wrong_is_told_to_it(tmp_path: Path, name: str, arguments: str, words: str) -> None:
    provider = ScriptedProvider([calls((name, arguments))])
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await turn(session)
        [result] = results(session)
        assert result.is_error
        assert words in result.text
        assert session.messages[-1].text == "Certainly."


async def test_a_tool_that_breaks_is_a_result(tmp_path: Path) -> None:
    def refuse(_: Mapping[str, Any]) -> str:
        raise ToolError("no such thing; list_files shows what there is")

    def crash(_: Mapping[str, Any]) -> str:
        raise ZeroDivisionError("secret /path")

    async def elsewhere(_: Mapping[str, Any]) -> str:
        raise asyncio.CancelledError

    source = Source(reads=("refuse", "crash", "elsewhere"), refuse=refuse, crash=crash, elsewhere=elsewhere)
    provider = ScriptedProvider([calls("refuse", "crash", "elsewhere")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        assert not [e for e in events if isinstance(e, TurnFailed)]
        assert [(r.is_error, r.text) for r in results(session)] == [
            (True, "no such thing; list_files shows what there is"),
            (True, "crash failed (ZeroDivisionError)."),
            (True, "elsewhere was cancelled on its own side."),
        ]


async def test_a_store_that_can_not_say_what_is_allowed_ends_the_turn_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the database is damaged")

    source = Source(reads=("look",), look=lambda _: "seen")
    provider = ScriptedProvider([calls("look", "look")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        with monkeypatch.context() as patch:
            patch.setattr(workspace.services.tools, "remembered", broken)
            events = await turn(session)
        assert [event.text for event in events if isinstance(event, TurnFailed)] == ["the database is damaged"]
        assert source.ran == []
        await turn(session)
        assert well_formed(provider.requests[-1])


async def test_a_turn_ends_after_the_steps_that_were_set(tmp_path: Path) -> None:
    provider = ScriptedProvider([calls("fetch") for _ in range(5)])
    async with open_workspace(tmp_path, provider, tools=Tools(), tool_settings=ToolSettings(steps=3)) as workspace:
        session = await workspace.new_session()
        [failed] = [e for e in await turn(session) if isinstance(e, TurnFailed)]
        assert "Stopped after 3 tool steps" in failed.text
        assert len(results(session)) == 3
        assert len(provider.requests) == 3
        await turn(session)
        assert well_formed(provider.requests[-1])


# -- cancelling ----------------------------------------------------------------------------------------------------


async def test_cancelling_while_tools_run_keeps_what_is_done(tmp_path: Path) -> None:
    async def slow(_: Mapping[str, Any]) -> str:
        await asyncio.sleep(60)
        return "never"

    source = Source(reads=("quick", "slow"), quick=lambda _: "done", slow=slow)
    provider = ScriptedProvider([calls("quick", "slow")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = []
        async for event in session.send("go"):
            events.append(event)
            if isinstance(event, ToolFinished):
                session.cancel()
        assert [r.text for r in results(session)] == ["done", "Cancelled by the person before it was done."]
        assert any(isinstance(e, Notice) and "Stopped while tools ran" in e.text for e in events)
        assert len(provider.requests) == 1
        await turn(session)
        assert well_formed(provider.requests[-1])
        assert workspace.store.messages(session.id) == list(session.messages)


async def test_cancelling_while_a_call_asks_runs_nothing(tmp_path: Path) -> None:
    source = Source("gh", write=lambda _: "written", other=lambda _: "written")
    provider = ScriptedProvider([calls("write", "other")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        asked = []
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked):
                asked.append(event)
                session.cancel()
        session.tools.approve(asked[0].id, "once")  # too late
        assert source.ran == []
        assert len(asked) == 1
        assert all("Cancelled" in r.text and r.is_error for r in results(session))
        await turn(session, lambda _: "once")
        assert well_formed(provider.requests[-1])


async def test_cancelling_before_the_first_call_runs_nothing(tmp_path: Path) -> None:
    source = Source(reads=("look",), look=lambda _: "seen")
    provider = ScriptedProvider([calls("look")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ReplyFinished):
                session.cancel()
        assert source.ran == []
        await turn(session)
        assert well_formed(provider.requests[-1])


async def test_a_program_killed_between_call_and_result_goes_on(tmp_path: Path) -> None:
    """The store then ends with a call that nothing answers."""
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await turn(session)
        lost = Message(
            "assistant", (ToolCall("c9", "fetch", '{"id": 1}'),), id="f" * 24, model="m", provider="scripted"
        )
        workspace.store.add_message(session.id, lost)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.resume()
        await turn(session)
        assert well_formed(provider.requests[-1])
        sent = [p for m in provider.requests[-1].messages for p in m.parts if isinstance(p, ToolResult)]
        assert [(part.call_id, part.text) for part in sent] == [("c9", NO_RESULT)]
        assert results(session) == []  # the store is not repaired


async def test_a_program_killed_while_tools_run_has_kept_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept when it is there, not when somebody takes the events: here nobody does, a question waits."""
    source = Source("gh", reads=("quick",), quick=lambda _: "done", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "quick", "write", "nothing")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked):
                async with asyncio.timeout(20):
                    while True:
                        last = workspace.store.messages(session.id)[-1]
                        if len(last.parts) == 2:
                            break
                        await asyncio.sleep(0.01)
                assert (last.role, last.status) == ("tool", "streaming")
                monkeypatch.setattr(Liveness, "is_alive", lambda *_: False)  # what a kill looks like afterwards
                async with open_workspace(tmp_path, provider, tools=source) as later:
                    again = await later.resume()
                    assert again.messages[-1].status == "interrupted"
                    await turn(again)
                    assert again.messages[-1].text == "Certainly."
                monkeypatch.undo()
                session.cancel()
        request = provider.requests[-1]
        assert well_formed(request)
        texts = {p.call_id: p.text for m in request.messages for p in m.parts if isinstance(p, ToolResult)}
        assert texts == {
            "c0": NO_RESULT, "c1": "done", "c2": NO_RESULT,
            "c3": "There is no tool named 'nothing'. There is: quick, write.",
        }  # fmt: skip
        answered = session.messages[-1]
        assert [part.text for part in answered.parts if isinstance(part, ToolResult)][1] == "done"
        assert [part.call_id for part in answered.parts if isinstance(part, ToolResult)] == ["c0", "c1", "c2", "c3"]


async def test_what_comes_of_a_call_after_the_step_has_ended_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(), tools=Tools()) as workspace:
        session = await workspace.new_session()
        asked = [ToolCall("c0", "fetch", "{}"), ToolCall("c1", "fetch", "{}")]
        making = Results(workspace.store, workspace.services.counter, "m", 1_000, False)
        kept = StepResults(session._conversation, making, asked)
        kept.add(1, ToolOutput("one"))
        whole = kept.message([CANCELLED, ToolOutput("one")])
        session._conversation.write_reply(whole)
        kept.add(0, ToolOutput("late"))
        assert "not saved" not in caplog.text
        assert workspace.store.messages(session.id) == [whole]
        assert [part.text for part in whole.parts if isinstance(part, ToolResult)] == [CANCELLED.text, "one"]


# -- approval ------------------------------------------------------------------------------------------------------


@pytest.fixture
def writes() -> Source:
    return Source("gh", reads=("look",), write=lambda _: "written", look=lambda _: "seen")


async def ask_twice(workspace: FakeWorkspace, decision: Decision) -> tuple[int, ChatSession]:
    session = await workspace.new_session()
    asked = 0
    for _ in range(2):
        events = await turn(session, lambda _: decision)
        asked += sum(isinstance(e, ApprovalAsked) for e in events)
    return asked, session


@pytest.mark.parametrize(
    ("decision", "asked", "ran", "asked_later"),
    [("once", 2, 2, 1), ("session", 1, 2, 1), ("always", 1, 2, 0), ("no", 2, 0, 1), ("never", 1, 0, 0)],
)
async def test_what_was_answered_holds_as_long_as_it_says(
    tmp_path: Path, writes: Source, decision: Decision, asked: int, ran: int, asked_later: int
) -> None:
    provider = ScriptedProvider(fallback=lambda r: answer() if r.messages[-1].role == "tool" else calls("write"))
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:
        found, session = await ask_twice(workspace, decision)
        assert (found, len(writes.ran)) == (asked, ran)
        assert all(result.is_error for result in results(session)) is (ran == 0)
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:  # another run of the program
        later = await turn(await workspace.new_session(), lambda _: "no")
        assert sum(isinstance(e, ApprovalAsked) for e in later) == asked_later


@pytest.mark.parametrize(
    ("decision", "questions", "ran"),
    [("once", 2, 2), ("session", 1, 2), ("always", 1, 2), ("no", 2, 0), ("never", 1, 0)],
)
async def test_an_answer_holds_for_the_other_calls_of_the_same_reply(
    tmp_path: Path, decision: Decision, questions: int, ran: int
) -> None:
    source = Source("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "write")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session, lambda _: decision)
        assert sum(isinstance(event, ApprovalAsked) for event in events) == questions
        assert source.ran == ["write"] * ran
        assert len(results(session)) == 2


@pytest.mark.parametrize(("decision", "ran"), [("always", 2), ("never", 0)])
async def test_an_answer_that_a_full_disk_keeps_out_holds_for_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decision: Decision, ran: int
) -> None:
    def put_state(key: str, value: str | None) -> None:
        if key == APPROVALS:
            raise StoreError("the disk is full")
        put(key, value)

    source = Source("gh", write=lambda _: "written")
    provider = ScriptedProvider([calls("write", "write")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        put = workspace.store.put_state
        monkeypatch.setattr(workspace.store, "put_state", put_state)
        events = await turn(session, lambda _: decision)
        assert source.ran == ["write"] * ran
        assert [result.is_error for result in results(session)] == [ran == 0] * 2
        assert sum(isinstance(event, ApprovalAsked) for event in events) == 1
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "the disk is full. Your answer holds until chatctx ends"
        ]
        assert not any("Cancelled" in result.text for result in results(session))


def _say(decision: Decision, _: ApprovalAsked) -> Decision:
    return decision


async def test_an_answer_for_a_file_that_holds_secrets_is_for_this_call_alone(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=hunter2")
    (tmp_path / "a.txt").write_text("alpha")
    asked = [calls(("search_files", '{"path": ".env", "pattern": "KEY"}')), calls(("read_file", '{"path": ".env"}'))]
    replies = [reply for pair in (asked, asked) for one in pair for reply in (one, answer())]
    provider = ScriptedProvider([*replies, calls(("read_file", '{"path": "a.txt"}'))])
    async with open_workspace(tmp_path, provider, tools=BuiltInTools(tmp_path)) as workspace:
        session = await workspace.new_session()
        decisions: list[Decision] = ["never", "session", "always", "no"]
        for decision in decisions:
            events = await turn(session, partial(_say, decision))
            [question] = [event for event in events if isinstance(event, ApprovalAsked)]
            assert ".env probably holds keys" in question.why
        assert not any(isinstance(event, ApprovalAsked) for event in await turn(session))
        texts = [result.text for result in results(session)]
        assert ["hunter2" in text for text in texts] == [False, True, True, False, False]
        assert "alpha" in texts[-1]


async def test_what_only_reads_does_not_wait_for_an_answer(tmp_path: Path, writes: Source) -> None:
    provider = ScriptedProvider([calls("write", "look")])
    async with open_workspace(tmp_path, provider, tools=writes) as workspace:
        session = await workspace.new_session()
        seen: dict[type, object] = {}
        async for event in session.send("go"):
            if isinstance(event, ApprovalAsked | ToolFinished):
                seen[type(event)] = event
                question = seen.get(ApprovalAsked)
                if isinstance(question, ApprovalAsked) and ToolFinished in seen:
                    assert writes.ran in (["look"], ["look", "write"])
                    session.tools.approve(question.id, "once")
        assert [r.text for r in results(session)] == ["written", "seen"]


@pytest.mark.parametrize(
    ("rules", "asked", "ran"),
    [
        ({"write": "allow"}, 0, ["look", "write"]),
        ({"*": "ask"}, 2, ["look", "write"]),
        ({"write": "allow", "wr*": "never"}, 0, ["look"]),
        ({"*": "ask", "look": "allow"}, 1, ["look", "write"]),
    ],
)
async def test_rules_of_the_config_file(
    tmp_path: Path, writes: Source, rules: dict[str, Any], asked: int, ran: list[str]
) -> None:
    provider, settings = ScriptedProvider([calls("look", "write")]), ToolSettings(rules=rules)
    async with open_workspace(tmp_path, provider, tools=writes, tool_settings=settings) as workspace:
        events = await turn(await workspace.new_session(), lambda _: "once")
        assert sum(isinstance(e, ApprovalAsked) for e in events) == asked
        assert sorted(writes.ran) == ran


async def test_an_answer_does_not_hold_for_a_tool_that_says_something_else_of_itself(tmp_path: Path) -> None:
    source = Source("gh", write=lambda _: "written")
    provider = ScriptedProvider(fallback=lambda r: answer() if r.messages[-1].role == "tool" else calls("write"))
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        await turn(await workspace.new_session(), lambda _: "always")
    changed = Source("gh", write=lambda _: "written")
    changed.says = "Writes anywhere."
    async with open_workspace(tmp_path, provider, tools=changed) as workspace:
        session = await workspace.new_session()
        assert any(isinstance(e, ApprovalAsked) for e in await turn(session, lambda _: "no"))
        await session.tools.forget("write")
        assert await session.tools.remembered() == []


# -- results -------------------------------------------------------------------------------------------------------


async def test_a_long_result_enters_in_part_and_is_kept_whole(tmp_path: Path) -> None:
    whole = "\n".join(f"line {n} of what was found" for n in range(20_000))
    provider = ScriptedProvider([calls("fetch")], window=20_000)
    async with open_workspace(tmp_path, provider, tools=Tools(lambda _: whole)) as workspace:
        session = await workspace.new_session()
        await turn(session)
        [result] = results(session)
        tokens = workspace.services.counter.count_text(result.text, "m")
        assert tokens is not None
        assert 3_000 < tokens <= 16_000 // 4
        assert result.text.startswith("line 0 of")
        assert result.text.endswith("line 19999 of what was found")
        assert "left out here" in result.text
        assert result.full == hashlib.sha256(whole.encode()).hexdigest()
        assert await session.tools.full_text(result.full) == whole
        assert workspace.store.messages(session.id) == list(session.messages)


async def test_what_is_not_sent_does_not_change_the_number(tmp_path: Path) -> None:
    """`full` has no part in the digests: a session from before and one from after it are the same conversation."""
    from tui.context.digests import message_digest

    plain = Message("tool", (ToolResult("c", "fetch", "cut"),))
    assert message_digest(plain) == message_digest(Message("tool", (ToolResult("c", "fetch", "cut", full="aa"),)))


@pytest.mark.parametrize("takes", [True, False])
async def test_images_of_a_tool_go_along_where_the_model_takes_them(tmp_path: Path, takes: bool) -> None:
    source = Source(reads=("plot",), plot=lambda _: ToolOutput("a plot", images=(ToolImage("image/png", PNG),)))
    provider = ScriptedProvider([calls("plot")], able=Capabilities(images=takes))
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        await turn(session)
        [message] = [m for m in session.messages if m.role == "tool"]
        images = [part for part in message.parts if isinstance(part, Attachment)]
        if takes:
            assert [(i.kind, i.width, i.height) for i in images] == [("image", 8, 4)]
            assert provider.requests[-1].blobs == {images[0].sha256: PNG}
        else:
            assert images == []
            assert "this model takes no images" in results(session)[0].text


async def test_a_model_that_turns_out_to_take_no_images_is_given_words(tmp_path: Path) -> None:
    source = Source(reads=("plot",), plot=lambda _: ToolOutput("a plot", images=(ToolImage("image/png", PNG),)))
    refusal = ProviderError("server", "image input is not supported - hint: mmproj", status=500)
    provider = ScriptedProvider([calls("plot"), [refusal]])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        assert any(isinstance(e, Notice) and "takes no images" in e.text for e in events)
        last = provider.requests[-1].messages[-1].parts
        assert not any(isinstance(part, Attachment) for part in last)
        assert "is not shown: this model takes no images" in str(last)
        assert session.messages[-1].text == "Certainly."


# -- what is offered -----------------------------------------------------------------------------------------------


async def test_a_switch_holds_for_the_conversation_and_changes_the_number(tmp_path: Path) -> None:
    source = Source(reads=("look", "gh__a", "gh__b"), look=str, gh__a=str, gh__b=str)
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        before = (await session.refresh_usage()).total
        assert await session.tools.switch("gh__*", False) == ["gh__a", "gh__b"]
        assert await session.tools.switch("nothing", False) == []
        assert (await session.refresh_usage()).total < before
        await turn(session)
        assert [tool.name for tool in provider.requests[-1].tools] == ["look"]
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        again = await workspace.resume()
        assert again.tools.names == ["look"]
        await again.tools.switch("gh__b", True)
        assert again.tools.names == ["gh__b", "look"]
        assert (await workspace.new_session()).tools.names == ["gh__a", "gh__b", "look"]


async def test_tools_that_come_and_go_change_the_next_request(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        box = workspace.services.tools
        box.add_source(Source("a-server", reads=("zeta", "alpha"), zeta=str, alpha=str))
        assert session.tools.names == ["fetch", "alpha", "zeta"]
        box.remove_source("a-server")
        assert session.tools.names == ["fetch"]
        box.add_source(Source("built-in", reads=("fetch", "mine"), fetch=str, mine=str))  # a server that is called so
        box.remove_source("built-in")
        assert session.tools.names == ["fetch"]


@pytest.mark.parametrize("provider", ["local", "demo"])
async def test_small_models_get_tools_only_when_they_are_switched_on(tmp_path: Path, provider: str) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(), tools=Tools(), model=f"{provider}/m") as workspace:
        session = await workspace.new_session()
        assert session.tools.names == []
        await session.tools.switch("*", True)
        assert session.tools.names == ["fetch"]


async def test_a_model_without_tools_is_offered_none(tmp_path: Path) -> None:
    provider = ScriptedProvider(able=Capabilities(tools=False))
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        await turn(session)
        assert provider.requests[-1].tools == ()


async def test_a_server_that_refuses_tools_is_asked_again_without_and_that_is_remembered(tmp_path: Path) -> None:
    refusal = ProviderError("bad_request", "gemma:2b does not support tools", status=400)
    provider = ScriptedProvider([[refusal]])
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        assert session.messages[-1].text == "Certainly."
        assert [bool(request.tools) for request in provider.requests] == [True, False]
        assert any(isinstance(e, Notice) and "calls no tools" in e.text for e in events)
    async with open_workspace(tmp_path, provider, tools=Tools()) as workspace:
        assert (await workspace.new_session()).tools.names == []


async def test_the_list_says_all_of_each_tool(tmp_path: Path) -> None:
    source = Source("gh", reads=("look",), look=lambda _: "seen", write=lambda _: "written")
    provider = ScriptedProvider([calls("look")])
    settings = ToolSettings(off=("wr*",))
    async with open_workspace(tmp_path, provider, tools=source, tool_settings=settings) as workspace:
        session = await workspace.new_session()
        await turn(session)
        assert session.usage is not None
        items = next(row.items for row in session.usage.rows if row.key == "tools")
        look, write = await session.tools.lines(items)
        assert (look.name, look.origin, look.on, look.rule, look.source) == ("look", "gh", True, "allow", "derived")
        assert look.tokens == items[0].tokens
        assert look.used_at > 0
        assert (write.name, write.on, write.rule, write.source, write.used_at) == (
            "write",
            False,
            "ask",
            "estimated",
            0.0,
        )
        assert write.tokens
