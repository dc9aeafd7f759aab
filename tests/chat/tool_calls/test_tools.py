"""The tool loop of a session: calls run and fail as they should, what they return, and what goes out is well-formed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chat.fakes import ScriptedProvider, Tools, of, open_workspace
from tests.chat.tool_calls.tool_calls import FunctionTools, calls, results, turn, well_formed
from tests.messages import PNG
from tui.chat.conversation.events import (
    MessageAdded,
    Notice,
    ReplyStarted,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    UsageChanged,
)
from tui.chat.runtime.services import Toolbox
from tui.chat.store.database import StoreError
from tui.chat.tool_calls.tool_step import AT_ONCE
from tui.config.settings import ToolSettings
from tui.messages import Attachment, Message, ToolResult
from tui.providers.base import Capabilities, ProviderError
from tui.tools.base import Tool, ToolError, ToolImage, ToolOutput

# -- running -------------------------------------------------------------------------------------------------------


async def test_calls_of_one_reply_run_side_by_side_and_answer_in_their_order(tmp_path: Path) -> None:
    second = asyncio.Event()

    async def first(_: Mapping[str, Any]) -> str:
        await second.wait()
        return "one"

    def last(_: Mapping[str, Any]) -> str:
        second.set()
        return "two"

    source = FunctionTools(reads=("first", "second"), first=first, second=last)
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
    async with open_workspace(tmp_path, provider, tools=FunctionTools(reads=("look",), look=look)) as workspace:
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
        ("grab", "{}", "There is no tool named 'grab'. The tools are: fetch."),
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

    source = FunctionTools(reads=("refuse", "crash", "elsewhere"), refuse=refuse, crash=crash, elsewhere=elsewhere)
    provider = ScriptedProvider([calls("refuse", "crash", "elsewhere")])
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        assert not [e for e in events if isinstance(e, TurnFailed)]
        assert [(r.is_error, r.text) for r in results(session)] == [
            (True, "no such thing; list_files shows what there is"),
            (True, "crash failed (ZeroDivisionError)."),
            (True, "elsewhere was cancelled, but not by the person."),
        ]


async def test_a_tool_that_breaks_while_it_looks_whether_to_ask_is_a_result(tmp_path: Path) -> None:
    def denied(_: Mapping[str, Any]) -> str:
        raise PermissionError("secret /path")

    class Denied(FunctionTools):
        def tools(self) -> Sequence[Tool]:
            return [replace(tool, ask_reason=denied) for tool in super().tools()]

    source = Denied(reads=("look",), look=lambda _: "seen")
    async with open_workspace(tmp_path, ScriptedProvider([calls("look")]), tools=source) as workspace:
        session = await workspace.new_session()
        events = await turn(session)
        assert not [e for e in events if isinstance(e, TurnFailed)]
        assert [(r.is_error, r.text) for r in results(session)] == [(True, "look failed (PermissionError).")]
        assert source.ran == []


async def test_a_store_that_can_not_say_what_is_allowed_ends_the_turn_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the database is damaged")

    source = FunctionTools(reads=("look",), look=lambda _: "seen")
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
    from tui.context.counting.digests import message_digest

    plain = Message("tool", (ToolResult("c", "fetch", "cut"),))
    assert message_digest(plain) == message_digest(Message("tool", (ToolResult("c", "fetch", "cut", full="aa"),)))


@pytest.mark.parametrize("takes", [True, False])
async def test_images_of_a_tool_go_along_where_the_model_takes_them(tmp_path: Path, takes: bool) -> None:
    source = FunctionTools(reads=("plot",), plot=lambda _: ToolOutput("a plot", images=(ToolImage("image/png", PNG),)))
    provider = ScriptedProvider([calls("plot")], able=Capabilities(images=takes))
    async with open_workspace(tmp_path, provider, tools=source) as workspace:
        session = await workspace.new_session()
        await turn(session)
        [message] = [m for m in session.messages if m.role == "tool"]
        images = [part for part in message.parts if isinstance(part, Attachment)]
        if takes:
            assert [(i.kind, i.width, i.height) for i in images] == [("image", 3, 2)]
            assert provider.requests[-1].blobs == {images[0].sha256: PNG}
        else:
            assert images == []
            assert "this model takes no images" in results(session)[0].text


async def test_a_model_that_turns_out_to_take_no_images_is_given_words(tmp_path: Path) -> None:
    source = FunctionTools(reads=("plot",), plot=lambda _: ToolOutput("a plot", images=(ToolImage("image/png", PNG),)))
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
    source = FunctionTools(reads=("look", "gh__a", "gh__b"), look=str, gh__a=str, gh__b=str)
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
        box.sources["a-server"] = FunctionTools("a-server", reads=("zeta", "alpha"), zeta=str, alpha=str)
        assert session.tools.names == ["fetch", "alpha", "zeta"]
        del box.sources["a-server"]
        assert session.tools.names == ["fetch"]
        so_called = FunctionTools("built-in", reads=("fetch", "mine"), fetch=str, mine=str)  # a server
        both = Toolbox(box.settings, workspace.store, box.sources.values(), {"built-in": so_called})
        assert [tool.schema.name for tool in both.tools()] == ["fetch"]


async def test_tools_that_come_while_it_answers_are_in_the_number_at_the_end(tmp_path: Path) -> None:
    async with open_workspace(tmp_path, ScriptedProvider(), tools=Tools()) as workspace:
        session = await workspace.new_session()
        events = []
        async for event in session.send("go"):
            events.append(event)
            if isinstance(event, ReplyStarted):
                workspace.services.tools.sources["a-server"] = FunctionTools("a-server", reads=("zeta",), zeta=str)
        shown = of(UsageChanged, events)[-1].usage
        assert shown == await session.refresh_usage()
        assert {item.ref for row in shown.rows if row.key == "tools" for item in row.items} == {"fetch", "zeta"}


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
    source = FunctionTools("gh", reads=("look",), look=lambda _: "seen", write=lambda _: "written")
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
