from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.chat.fakes import Answer, ScriptedProvider, drain, of, open_workspace
from tui.chat.conversation.events import Notice
from tui.chat.runtime.model_facts import ModelFacts
from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.config.settings import ModelSettings, Settings
from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits
from tui.messages import Usage
from tui.providers.base import Provider, ProviderError, StreamEnd, TextDelta, UsageUpdate
from tui.views.context_table import headline

ASKED = ModelLimits(200_000, 150_000, 64_000, "probe", "the server")


class Stating(ScriptedProvider):
    """Its server says these limits."""

    def __init__(self, stated: ModelLimits | None) -> None:
        super().__init__(name="p")
        self.stated = stated

    async def limits(self, model: str) -> ModelLimits | None:
        return self.stated


def model_facts(store: SessionStore, stated: ModelLimits | None = ASKED, set_to: int | None = None) -> ModelFacts:
    provider = Stating(stated)
    return ModelFacts(store, Settings(models={"p/m": ModelSettings(window=set_to)}), lambda _: provider)


async def test_a_setting_goes_before_what_was_learned_before_what_the_server_says(store: SessionStore) -> None:
    facts = model_facts(store)
    assert await facts.find("p", "m") == ASKED
    facts.learn_window("p", "m", 100_000, 120_000)
    learned = await facts.find("p", "m")
    assert (learned.context, learned.input, learned.output, learned.source) == (100_000, None, 64_000, "learned")
    by_file = await model_facts(store, set_to=120_000).find("p", "m")
    assert (by_file.context, by_file.source) == (120_000, "setting")
    facts.set_window("p", "m", 50_000)
    by_hand = await model_facts(store, set_to=120_000).find("p", "m")
    assert (by_hand.context, by_hand.output, by_hand.source) == (50_000, 50_000, "setting")


async def test_what_was_set_and_learned_is_forgotten_on_request(store: SessionStore) -> None:
    facts = model_facts(store)
    facts.learn_window("p", "m", 100_000, 120_000)
    facts.set_window("p", "m", 50_000)
    facts.reset_window("p", "m")
    assert await facts.find("p", "m") == ASKED


async def test_what_the_person_set_is_not_forgotten_and_a_reset_is_of_the_window_alone(store: SessionStore) -> None:
    facts = model_facts(store)
    await facts.find("p", "m")
    facts.set_window("p", "m", 50_000)
    facts.learn_tools("p", "m", False)
    facts.forget("p", "m")
    assert facts.takes_tools("p", "m") is None
    assert facts.limits("p", "m").source == "setting"
    facts.learn_tools("p", "m", False)
    facts.reset_window("p", "m")
    assert facts.takes_tools("p", "m") is False
    assert facts.limits("p", "m") == ASKED  # as its server said last


@pytest.mark.parametrize(("stated", "context"), [(1, None), (255, None), (256, 256)])
async def test_a_window_too_small_for_a_message_is_unknown_and_said(
    store: SessionStore, stated: int, context: int | None
) -> None:
    facts = model_facts(store, ModelLimits(stated, source="probe", detail="the server"))
    assert (await facts.find("p", "m")).context == context
    too_few = f"the server says {stated:,}, too few for a window"
    assert facts.limits("p", "m").detail == ("the server" if context else too_few)


async def test_a_window_too_small_for_a_message_leaves_that_of_the_table(store: SessionStore) -> None:
    provider = Stating(ModelLimits(1, source="probe", detail="the server"))
    facts = ModelFacts(store, Settings(), lambda _: provider)
    assert (await facts.find("openai", "gpt-5")).source == "table"


async def test_a_learned_limit_over_what_the_server_says_means_nothing(store: SessionStore) -> None:
    facts = model_facts(store)
    facts.learn_window("p", "m", 300_000, 310_000)
    assert await facts.find("p", "m") == ASKED


async def test_a_learned_limit_is_shown_with_its_source_outlives_the_program_and_is_reset(tmp_path: Path) -> None:
    provider = ScriptedProvider(window=2_000, claimed=8_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("words " * 2_600))  # refused: the server names its limit
        ident = session.id
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(ident)
        limits = (await session.refresh_usage()).limits
        assert (limits.context, limits.source, limits.detail) == (2_000, "learned", "named by the server's refusal")
        assert "2k window (named by the server's refusal)" in "\n".join(
            line.plain for line in headline(await session.refresh_usage(), 100)
        )
        await session.set_window(None)
        assert session.usage is not None and session.usage.limits.context == 8_000
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(ident)
        assert (await session.refresh_usage()).limits.source == "probe"


async def test_nothing_is_learned_below_what_has_been_seen_to_fit(store: SessionStore) -> None:
    facts = model_facts(store)
    await facts.find("p", "m")
    assert not facts.learn_fitted("p", "m", 140_000, 9)
    facts.learn_window("p", "m", 121_815, 141_000)
    assert await facts.find("p", "m") == ASKED
    again = model_facts(store)
    again.learn_window("p", "m", 130_000, 141_000)
    assert await again.find("p", "m") == ASKED


@pytest.mark.parametrize(
    ("refused", "counted"),
    [pytest.param(12_135, True, id="it counted what it refused"), pytest.param(6_606, False, id="as much had fitted")],
)
async def test_a_server_that_has_a_smaller_window_than_before_is_believed(
    store: SessionStore, refused: int, counted: bool
) -> None:
    facts = model_facts(store)
    await facts.find("p", "m")
    facts.learn_fitted("p", "m", 10_819, 900)
    facts.learn_window("p", "m", 6_000, refused, counted=counted)
    assert (await facts.find("p", "m")).context == 6_000
    assert "larger than assumed" in facts.learn_fitted("p", "m", 7_000, 9)  # and a larger one than that again


async def test_what_was_learned_of_a_window_holds_until_the_server_says_another(store: SessionStore) -> None:
    """A llama.cpp that was restarted with a smaller window, and then with the larger one again."""
    await model_facts(store, ModelLimits(16_384)).find("p", "m")
    model_facts(store).learn_window("p", "m", 6_000, 7_000)
    for window, known in ((16_384, 6_000), (6_000, 6_000), (16_384, 16_384)):
        assert (await model_facts(store, ModelLimits(window)).find("p", "m")).context == known


@pytest.mark.parametrize(("named", "context"), [(True, 90_000), (False, 200_000)])
async def test_a_window_guessed_from_a_refusal_without_a_number_holds_for_one_run(
    store: SessionStore, named: bool, context: int
) -> None:
    """Nothing larger is sent while it is believed: a wrong refusal would make the window small for good."""
    facts = model_facts(store)
    await facts.find("p", "m")
    facts.learn_window("p", "m", 90_000, 100_000, named=named)
    assert (await facts.find("p", "m")).context == 90_000
    assert (await model_facts(store).find("p", "m")).context == context


async def test_more_than_was_believed_raises_the_belief_but_not_a_setting(store: SessionStore) -> None:
    facts = model_facts(store)
    await facts.find("p", "m")
    facts.set_window("p", "m", 1_000)
    assert "more than the window you set" in facts.learn_fitted("p", "m", 1_000, 500)
    assert facts.learn_fitted("p", "m", 1_100, 500) == ""  # said once
    assert (await facts.find("p", "m")).context == 1_000
    facts.reset_window("p", "m")
    await facts.find("p", "m")
    assert "larger than assumed: 250,500" in facts.learn_fitted("p", "m", 250_000, 500)
    assert (await facts.find("p", "m")).context == 250_500
    assert facts.learn_fitted("p", "m", 140_000, 9) == ""
    by_file = model_facts(store, set_to=1_200)
    assert (await by_file.find("p", "m")).context == 1_200


async def test_a_window_known_by_cut_prompts_holds_until_the_server_says_another(store: SessionStore) -> None:
    facts = model_facts(store)
    await facts.find("p", "m")
    assert "from now on" in facts.learn_cut("p", "m", 4_096)
    limits = facts.limits("p", "m")
    assert (limits.context, limits.source) == (4_096, "learned")
    assert (await model_facts(store, ModelLimits(32_000, source="probe")).find("p", "m")).context == 32_000
    facts.set_window("p", "m", 64_000)
    assert "not what you set" in facts.learn_cut("p", "m", 4_096)
    assert facts.limits("p", "m").context == 64_000


async def test_a_silent_server_does_not_make_a_known_window_unknown(store: SessionStore) -> None:
    await model_facts(store).find("p", "m")
    silent = model_facts(store, None)
    assert silent.limits("p", "m") == ASKED
    assert await silent.find("p", "m") == ASKED
    assert (await silent.find("p", "other")).context is None


async def test_what_a_server_says_holds_in_this_run_also_on_a_full_disk(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(store, "change_state", full)
    assert await model_facts(store).find("p", "m") == ASKED


async def test_a_provider_that_is_not_set_up_has_no_window(store: SessionStore) -> None:
    def missing(name: str) -> Provider:
        raise ProviderError("not_found", f"there is no provider {name}")

    assert await ModelFacts(store, Settings(), missing).find("p", "m") == UNKNOWN_LIMITS


async def test_a_server_that_wrote_past_its_window_is_believed_when_it_names_it(store: SessionStore) -> None:
    facts = model_facts(store, None)
    facts.learn_fitted("p", "m", 1_500, 9_000)
    facts.learn_window("p", "m", 2_048, 2_500)
    assert (await facts.find("p", "m")).context == 2_048


async def test_the_longest_answer_that_a_refusal_names_holds_from_then_on(tmp_path: Path) -> None:
    refusal = ProviderError("overflow_output", "max_tokens: 16000 > 900, which is the maximum", most_output=900)
    provider = ScriptedProvider([[refusal]], window=64_000)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await drain(session.send("one"))
        await drain(session.send("two"))
        assert [m.status for m in session.messages if m.role == "assistant"] == ["complete", "complete"]
        assert [r.max_output for r in provider.requests] == [16_000, 900, 900]
        ident = session.id
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.resume(ident)
        usage = await session.refresh_usage()
        assert (usage.limits.context, usage.limits.output) == (64_000, 900)  # the window is as it was
        assert usage.budget.max_input == 63_100
        await session.set_window(None)
        assert session.usage is not None and session.usage.limits.output is None


async def test_what_another_program_was_told_of_a_window_stays(store: SessionStore) -> None:
    here, there = model_facts(store), model_facts(store)
    await here.find("p", "m")
    await there.find("p", "m")
    there.set_window("p", "m", 50_000)
    assert here.learn_fitted("p", "m", 20_000, 10) == ""
    assert (await here.find("p", "m")).context == 50_000
    assert (await model_facts(store).find("p", "m")).context == 50_000


class Loading(ScriptedProvider):
    """Says its window only once a model is loaded, and cuts what does not fit it (Ollama)."""

    async def limits(self, model: str) -> ModelLimits | None:
        self.counted += 1
        return ModelLimits(self.claimed, source="probe") if self.requests and self.claimed else None


async def test_a_server_that_loads_its_model_when_asked_is_asked_again_then(tmp_path: Path) -> None:
    provider = Loading(window=None, claimed=4_096)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        assert (await session.refresh_usage()).limits.context is None
        await drain(session.send("one"))
        assert session.usage is not None and session.usage.limits.context == 4_096
        await drain(session.send("two"))
        assert provider.counted == 2
    started_anew = Loading(window=None, claimed=32_768)
    async with open_workspace(tmp_path, started_anew) as workspace:
        session = await workspace.new_session()
        assert (await session.refresh_usage()).limits.context == 4_096  # as it was said last
        await drain(session.send("three"))
        assert session.usage is not None and session.usage.limits.context == 32_768


async def test_a_server_that_two_asked_before_it_loaded_its_model_is_asked_again_then(store: SessionStore) -> None:
    server = Stating(None)
    facts = ModelFacts(store, Settings(), lambda _: server)
    await asyncio.gather(facts.find("p", "m"), facts.find("p", "m"))  # as the panel and the first turn may
    server.stated = ASKED
    await facts.find_loaded("p", "m")
    assert facts.limits("p", "m") == ASKED


@pytest.mark.parametrize(("stated", "window"), [(64_000, 64_000), (1_000_000, 400_000), (None, 400_000)])
async def test_a_gateway_has_no_larger_window_than_it_says(
    store: SessionStore, stated: int | None, window: int
) -> None:
    class Gateway(Stating):
        async def limits(self, model: str) -> ModelLimits | None:
            limits = None if stated is None else ModelLimits(stated, source="probe")
            return limits if model == "fast" else ModelLimits(400_000, source="prices")

    facts = ModelFacts(store, Settings(), lambda _: Gateway(None))
    assert facts.learn_answering("p", "fast", "gpt-5")
    assert (await facts.find("p", "fast")).context == window


async def test_models_that_answer_for_each_other_are_asked_once_each(store: SessionStore) -> None:
    facts = model_facts(store)
    assert facts.learn_answering("p", "gpt-4o", "claude-sonnet-4-5")
    assert facts.learn_answering("p", "claude-sonnet-4-5", "gpt-4o")
    assert await facts.find("p", "gpt-4o") == ASKED


async def test_a_server_that_never_says_its_window_is_asked_twice_in_a_run(tmp_path: Path) -> None:
    provider = Loading(window=None)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        for text in ("one", "two", "three"):
            await drain(session.send(text))
        assert provider.counted == 2


async def test_a_prompt_cut_in_the_first_turn_is_noticed(tmp_path: Path) -> None:
    cut: Answer = [TextDelta("Sure."), UsageUpdate(Usage(2_050, 3)), StreamEnd("stop", "stop")]
    provider = Loading([cut], window=None, claimed=4_096, report_usage=False)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("word " * 9_000))
        assert any("The server cut the prompt" in event.text for event in of(Notice, events))
        assert session.usage is not None and session.usage.total > 8_000  # not what the server read


async def test_a_number_that_is_far_too_small_may_be_of_a_cut_prompt(tmp_path: Path) -> None:
    small: Answer = [TextDelta("Sure."), UsageUpdate(Usage(30, 3)), StreamEnd("stop", "stop")]
    async with open_workspace(tmp_path, ScriptedProvider([small], window=None, report_usage=False)) as workspace:
        session = await workspace.new_session()
        (notice,) = of(Notice, await drain(session.send("word " * 9_000)))
    assert "implausible: 30 tokens for" in notice.text
    assert notice.text.endswith("tell chatctx with /window")


async def test_a_server_that_reads_too_little_is_asked_again_for_its_window(tmp_path: Path) -> None:
    """Ollama after another program had the model loaded with a smaller window."""
    small: Answer = [TextDelta("Sure."), UsageUpdate(Usage(30, 3)), StreamEnd("stop", "stop")]
    provider = ScriptedProvider([small], window=None, claimed=32_000, report_usage=False)
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        assert (await session.refresh_usage()).limits.context == 32_000
        await drain(session.send("word " * 9_000))
        provider.claimed = 4_096
        await drain(session.send("go on"))
        assert (await session.refresh_usage()).limits.context == 4_096
