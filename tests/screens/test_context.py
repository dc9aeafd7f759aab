"""`/context` and its views: the same numbers as the status line, and nothing changed by looking."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.screens.conftest import SIZES, running
from tests.screens.scenarios import SESSION, EchoProvider, Scenario, assistant, ident, long_scenario, shown_usage, user
from tests.usages import make_usage
from tui.chat.turn.session import ChatSession
from tui.context.estimate.measurements import Verdict
from tui.context.usage.limits import ModelLimits
from tui.messages import Message, Request, Text, Usage
from tui.providers.base import Capabilities
from tui.screens.context import ContextPanel
from tui.views.context_table import ContextView
from tui.views.models import fit_lines

pytestmark = pytest.mark.slow  # the whole program on a screen, most of a second each


@pytest.mark.slow
@pytest.mark.parametrize("size", [*SIZES, (40, 12)])
async def test_it_lies_over_the_conversation_and_esc_closes_it(size: tuple[int, int]) -> None:
    async with running(size=size) as run:
        before = run.text
        await run.command("/context")
        await run.shows("52,100 / 200,000 tokens   26 %", "system prompt", "esc close")
        assert run.chat.transcript.region.width == size[0]
        await run.press("escape")
        await run.until(lambda: run.app.screen is run.chat)
        assert run.text == before


@pytest.mark.slow
async def test_looking_changes_nothing_in_the_session() -> None:
    async with running(Scenario(messages=[user("hi"), assistant("ho")])) as run:
        store, session = run.workspace.store, run.session

        def stored() -> tuple[object, ...]:
            return session.usage, session.conversation.state, store.messages(SESSION), store.records(SESSION)

        before = stored()
        await run.press(
            "f2", "down", "down", "right", "left", "h", "escape", "m", "s", "escape", "f", "escape", "escape"
        )
        await run.until(lambda: run.app.screen is run.chat)
        assert stored() == before


@pytest.mark.slow
async def test_its_total_is_the_status_lines() -> None:
    scenario = Scenario(usage=shown_usage(123_456, 200_000, source="estimated"))
    async with running(scenario) as run:
        await run.shows("~123k / 200k · 62 %")
        await run.press("f2")
        await run.shows("~123,456 / 200,000 tokens   62 %")


@pytest.mark.slow
async def test_rows_unfold_by_key_and_by_click_and_the_headline_stays() -> None:
    async with running() as run:
        await run.press("f2")
        await run.shows("tools ▸")
        place = run.text.splitlines().index(next(line for line in run.text.splitlines() if "52,100 /" in line))
        await run.press("down", "down", "right")
        await run.shows("tools ▾", "github: search", "read_file")
        assert "52,100 /" in run.text.splitlines()[place]
        await run.press("left")
        await run.shows("tools ▸")
        row = next(y for y, line in enumerate(run.text.splitlines()) if "messages ▾" in line)
        await run.pilot.click(offset=(20, row))
        await run.shows("messages ▸")
        assert "reasoning sent back" not in run.text


async def test_rolling_is_turned_on_from_here_and_the_threshold_goes() -> None:
    async with running() as run:
        await run.press("f2")
        await run.shows("compaction buffer", "t rolling on")
        await run.press("t")
        await run.shows("t rolling off")
        assert run.session.conversation.info.rolling
        assert "compaction buffer" not in run.text
        await run.press("escape")
        await run.shows("rolling on")


@pytest.mark.slow
async def test_exact_count_replaces_the_estimate() -> None:
    server = EchoProvider(able=Capabilities(count_endpoint=True))
    async with running(Scenario(messages=[user("how much is this?")], usage=None, server=server)) as run:
        await run.press("f2")
        await run.shows("~", "/ 200,000 tokens")
        await run.press("e")
        await run.shows("The server counted ", "e exact count")
        usage = run.session.usage
        assert usage is not None and usage.source == "exact"
        await run.shows(f" {usage.total} / 200,000")


async def test_a_server_that_cannot_count_is_said_and_nothing_changes() -> None:
    async with running() as run:
        await run.press("f2", "e")
        await run.shows("This server does not count requests; the number stays", "52,100 / 200,000")


async def test_what_is_said_of_a_count_does_not_cover_the_number() -> None:
    async with running(size=(60, 20)) as run:
        await run.press("f2", "e")
        await run.shows("stays as it was.", "52,100 / 200,000 tokens")


@pytest.mark.slow
async def test_a_count_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(self: ChatSession) -> int | None:
        raise OSError("no route\nto host")

    monkeypatch.setattr(ChatSession, "count_exactly", fails)
    async with running() as run:
        await run.press("f2", "e")
        await run.shows("The server did not count (no route to host)", "52,100 / 200,000", "e exact count")


async def test_compact_closes_the_panel_and_compacts() -> None:
    async with running(long_scenario()) as run:
        await run.press("f2", "c")
        await run.shows("Compacted ")
        assert run.app.screen is run.chat


async def test_what_does_not_fit_is_said() -> None:
    async with running(Scenario(usage=shown_usage(494_945))) as run:
        await run.shows("495k / 200k · 247 % !", "311k too much")
        await run.press("f2")
        await run.shows("247 % !", "▲ the window ends here", "too much", "310,945")


@pytest.mark.slow
async def test_an_unknown_window_has_no_percentage() -> None:
    async with running(Scenario(usage=shown_usage(500, None))) as run:
        await run.shows("500 / ?")
        await run.press("f2")
        await run.shows("500 / ? tokens", "window unknown", "/window 128k")
        assert "%" not in "\n".join(run.text.splitlines()[:5])


@pytest.mark.slow
async def test_messages_can_be_pinned_left_out_sorted_and_gone_to() -> None:
    messages: list[Message] = [user(f"question {n}", f"m{n}") for n in range(1, 60)]
    scenario = Scenario(messages=messages, not_sent={ident("m3"): "compacted"})
    async with running(scenario) as run:
        await run.press("f2", "m")
        await run.shows("Messages · 59, 1 not sent any more", "question 59")
        await run.press("home")
        await run.shows("question 1 ")
        await run.press("p")
        await run.until(lambda: run.session.conversation.state.pinned == {ident("m1")})
        await run.shows("◆ question 1 ")
        await run.press("x")
        await run.until(lambda: run.session.conversation.not_sent().get(ident("m1")) == "excluded")
        await run.shows("2 not sent any more", "left out")
        await run.press("x")
        await run.until(lambda: ident("m1") not in run.session.conversation.not_sent())
        await run.press("s", "enter")
        await run.until(lambda: run.app.screen is run.chat)
        await run.shows("question 2\n")


@pytest.mark.slow
async def test_history_draws_the_calls_and_marks_compactions() -> None:
    messages: list[Message] = []
    for n in range(1, 30):
        messages += [user("q", f"a{n:02}q"), assistant("a", f"a{n:02}r", tokens=(n * 3_000, 500))]
    messages.append(Message("user", (Text("summary"),), id=ident("a98s"), kind="summary"))
    messages.append(assistant("a", "a99r", tokens=(9_000, 500)))
    async with running(Scenario(messages=messages)) as run:
        await run.press("f2", "h")
        await run.shows("30 calls", "now 9.5k, most 87.5k", "▼ compacted", "window 200k", "█")
        await run.press("escape")
        await run.shows("category")


@pytest.mark.slow
async def test_history_lists_the_requests_with_what_their_reports_were_taken_for() -> None:
    async with running(Scenario(messages=[user("q", "a01q"), assistant("a", "a01r", tokens=(3_000, 500))])) as run:
        usage = run.session.usage
        assert usage is not None
        log, request = run.workspace.services.calls, Request("scripted", "m", (), session=run.session.id)
        for tokens, verdict in (
            (52_080, Verdict(confirmed=True)),
            (100, Verdict("doubted", "204,000 bytes of text can't be 100 tokens")),
        ):
            call = log.begin(request, usage, message=ident("a01r"), kind="chat")
            told, billed = Usage(tokens, 9, cost=0.014), ("scripted", "m")
            log.finish(call, usage=told, billed=billed, seconds=1.0, finish_reason="stop", verdict=verdict)
        await run.press("f2", "h")
        await run.shows("Requests · 2", "verdict", "1 of 2 requests not believed")
        doubted, believed = (line for line in run.text.splitlines() if "believed" in line and "±" in line)
        assert "not believed: 204,000 bytes" in doubted and " 2 " in doubted
        assert "52,080" in believed and "believed · $0.01" in believed
        await run.press("down", "enter")
        await run.shows("Request 1", "52,080 tokens of input", "at most")
        await run.press("escape", "x")
        await run.shows("Nothing was learned about")
        await run.press("o")
        await run.until(lambda: run.app.screen is run.chat)


@pytest.mark.slow
async def test_history_without_calls_says_so() -> None:
    async with running() as run:
        await run.press("f2", "h")
        await run.shows("No call has been answered yet.")


async def test_fits_where_lists_the_models() -> None:
    async with running() as run:
        await run.press("f2", "f")
        await run.shows(
            "anthropic/claude-x", "128k   ~41 %  fits", "~636 %  ~45,956 would have to go", "window unknown"
        )


def test_the_current_model_is_first_however_large_others_are() -> None:
    models = [("lab/unknown", None), ("lab/large", ModelLimits(2_000_000)), ("lab/huge", ModelLimits(9_000_000))]
    lines = [line.plain for line in fit_lines(make_usage(), models, 80)]
    assert [line.startswith("●") for line in lines] == [True, False, False, False]
    assert [line.split()[0] for line in lines[1:]] == ["lab/huge", "lab/large", "lab/unknown"]


async def test_it_opens_before_there_are_numbers() -> None:
    async with running() as run:
        run.session._meter.latest = None
        view = ContextView(run.session, run.workspace)
        run.app.push_screen(ContextPanel(view, run.chat.request_changed, run.chat.key))
        await run.shows("52,100 / 200,000 tokens")


@pytest.mark.slow
async def test_a_click_on_the_number_opens_it() -> None:
    async with running() as run:
        await run.pilot.click(run.chat.status_bar)
        await run.shows("next request, as it would be sent")


async def test_warnings_are_shown() -> None:
    usage = replace(make_usage(), warnings=("tools are estimated larger than the whole request",))
    async with running(Scenario(usage=usage)) as run:
        await run.press("f2")
        await run.shows("! tools are estimated larger")


async def test_news_before_it_is_drawn_for_the_first_time_are_no_error() -> None:
    async with running() as run:
        panel = ContextPanel(ContextView(run.session, run.workspace), run.chat.request_changed, run.chat.key)
        run.app.push_screen(panel)
        run.chat.request_changed()
        await run.shows("Context", "free")
        assert run.app.screen is panel and "An error" not in run.text
