"""Every row of the list of known failures, sections 1.E to 1.H, has a test; and those that stood nowhere else.

`ROWS` is the table: row -> the tests that stand for its kind.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.chat.fakes import ScriptedProvider, answer, converse, drain, open_workspace, real_tokens
from tui.chat.conversation.events import CompactionFinished, TurnFailed, UsageChanged
from tui.context.counting.counting import attachment_tokens
from tui.messages import Attachment

TESTS = Path(__file__).parents[1]
LONG = "The parser keeps the last token of every line, and the next line begins where it ended. " * 12

ROWS: dict[str, tuple[str, ...]] = {
    # 1.E loops and useless compactions
    "50": (
        "chat/test_known_failures::test_an_overhead_over_the_trigger_is_said_once_and_never_compacted",
        "context/reduction/test_compaction::test_a_fixed_part_or_a_last_message_over_the_threshold_is_said_and_not_compacted",
    ),
    "51": ("context/usage/test_limits::test_budgets",),
    "52": (
        "context/reduction/test_compaction::test_a_fixed_part_or_a_last_message_over_the_threshold_is_said_and_not_compacted",
    ),
    "53": (
        "chat/test_known_failures::test_never_two_compactions_without_an_answer_between",
        "chat/compaction/test_compaction_session::test_one_try_for_each_measurement_also_when_the_server_refuses_after_it",
    ),
    "54": (
        "chat/test_known_failures::test_a_summary_as_long_as_what_it_replaces_is_refused_and_the_turn_goes_on",
        "context/reduction/test_compaction::test_a_result_must_be_smaller_and_under_the_threshold",
        "context/reduction/test_compaction::test_the_target_lies_well_under_the_trigger",
    ),
    "55": ("chat/test_known_failures::test_the_usage_of_the_summary_call_is_billed_and_never_a_measurement",),
    "56": (
        "chat/test_known_failures::test_a_failed_compaction_changes_neither_numbers_nor_messages",
        "chat/compaction/test_compaction_killed::test_killed_at_every_write_it_is_before_or_after",
        "chat/compaction/test_summaries::test_a_draft_can_be_cancelled_and_of_nothing_there_is_none",
    ),
    "58": (
        "chat/test_known_failures::test_switched_off_it_stays_off_when_the_provider_overflows",
        "chat/compaction/test_compaction_settings::test_off_for_this_model_leaves_rolling_context_to_the_session",
    ),
    "59": ("context/usage/test_limits::test_budgets",),
    "103": ("chat/test_known_failures::test_system_prompt_and_tools_are_byte_identical_after_a_compaction",),
    "104": ("chat/test_known_failures_rows::test_a_server_without_usage_shows_the_new_number_at_once",),
    # 1.F too late, giant results, wrong window
    "60": (
        "chat/test_known_failures::test_the_check_comes_before_every_step_of_a_tool_loop",
        "chat/test_known_failures::test_one_giant_result_or_argument_does_not_end_the_session",
    ),
    "61": ("chat/test_known_failures::test_the_check_comes_before_every_step_of_a_tool_loop",),
    "62": (
        "chat/test_known_failures_rows::test_a_picture_of_megabytes_neither_compacts_nor_leaves",
        "context/counting/test_counting::test_an_image_never_costs_its_bytes",
    ),
    "62c": (
        "context/estimate/test_estimator::test_an_image_bill_that_is_far_off_is_learned_once_two_agree",
        "context/estimate/test_calibration::test_a_gateway_that_bills_base64_is_believed_after_two_calls",
    ),
    "63": (
        "chat/test_known_failures::test_one_giant_result_or_argument_does_not_end_the_session",
        "chat/compaction/test_summarise::test_one_giant_result_of_five_megabytes_is_summarised_in_a_bounded_number_of_calls",
        "context/reduction/test_rolling::test_large_old_arguments_are_capped_and_still_json",
    ),
    "64": (
        "chat/turn/test_session::test_a_limit_named_by_a_refusal_is_learned_and_the_turn_repeated",
        "chat/runtime/test_model_facts::test_a_setting_goes_before_what_was_learned_before_what_the_server_says",
    ),
    "65": (
        "context/usage/test_limits::test_an_unknown_window_is_unknown_and_everything_fits",
        "providers/test_discovery::test_a_live_server",
    ),
    "66": ("context/usage/test_limits::test_budgets",),
    "67": (
        "chat/test_known_failures::test_an_answer_is_shorter_where_the_input_may_be_larger_than_thought",
        "context/estimate/test_calibration::test_a_wide_spread_until_there_are_enough_calls_then_the_models_own_errors",
    ),
    "68": (
        "context/counting/test_tokenizers::test_the_heuristic_knows_wide_characters",
        "chat/test_known_failures_rows::test_a_window_full_of_wide_characters_is_never_over",
    ),
    "70": (
        "context/estimate/test_calibration::test_no_learning_leaves_the_bounds",
        "context/estimate/test_estimator::test_the_factor_is_learned_and_the_errors_go",
    ),
    "105": (
        "chat/turn/test_session::test_silent_truncation_is_named_and_not_believed",
        "context/estimate/test_evidence::test_a_cut_prompt_teaches_nothing_and_the_last_measurement_stays",
    ),
    "106": ("providers/test_discovery::test_a_live_server",),
    "108": (
        "chat/test_known_failures::test_one_giant_result_or_argument_does_not_end_the_session",
        "context/counting/test_counting::test_kinds_of_content_are_told_apart",
    ),
    # 1.G overflow during compaction, while switching
    "71": (
        "chat/compaction/test_summarise::test_every_fact_of_the_range_is_in_a_request_and_every_request_fits",
        "chat/test_known_failures::test_switching_to_a_much_smaller_window_goes_on",
    ),
    "72": (
        "chat/test_known_failures::test_overflowing_summary_requests_are_made_smaller",
        "chat/compaction/test_summarise::test_after_three_retries_it_says_why",
    ),
    "73": (
        "chat/test_known_failures::test_switching_to_a_much_smaller_window_goes_on",
        "chat/test_switching::test_the_old_model_summarises_once_for_the_new_ones_window",
    ),
    "74": (
        "chat/runtime/test_model_facts::test_nothing_is_learned_below_what_has_been_seen_to_fit",
        "chat/runtime/test_model_facts::test_a_learned_limit_over_what_the_server_says_means_nothing",
        "providers/http/test_errors::test_every_known_text",
    ),
    "75": ("chat/test_known_failures::test_thinking_as_large_as_the_window_is_left_out_with_the_rest",),
    # 1.G2 queue, draft
    "96": (
        "screens/chat/test_screen::test_draft_and_queue_outlive_a_compaction",
        "screens/test_summary::test_what_waits_is_sent_after_the_decision",
    ),
    "97": ("screens/chat/test_screen::test_draft_and_queue_outlive_a_compaction",),
    # 1.H pairing, thinking blocks, identifiers
    "76": ("chat/test_known_failures::test_many_compactions_and_trims_never_orphan_a_result",),
    "77": (
        "chat/turn/test_session::test_a_cancelled_tool_call_is_answered_for_in_the_next_request",
        "chat/conversation/test_history::test_a_call_without_a_result_is_answered_for",
    ),
    "79": ("chat/compaction/test_compaction_session::test_nothing_is_compacted_while_tools_run",),
    "80": (
        "chat/test_known_failures::test_reasoning_goes_back_verbatim_until_its_prefix_changes",
        "chat/conversation/test_history::test_reasoning_goes_back_as_far_as_the_target_takes_it",
    ),
    "81": ("chat/conversation/test_history::test_reasoning_of_another_model_or_without_its_signature_stays_here",),
    "82": ("chat/conversation/test_history::test_reasoning_of_another_model_or_without_its_signature_stays_here",),
    "101": ("context/estimate/test_estimator::test_a_server_that_leaves_reasoning_out_of_the_count_is_found_out",),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_row_has_its_test(row: str) -> None:
    for place in ROWS[row]:
        module, _, name = place.partition("::")
        source = (TESTS / f"{module}.py").read_text(encoding="utf-8")
        assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), place


async def test_a_server_without_usage_shows_the_new_number_at_once(tmp_path: Path) -> None:
    """Row 104: "complete", and the counter stays where it was."""
    provider = ScriptedProvider(window=20_000, report_usage=False, fallback=lambda _: answer("Fine. " * 30))
    async with open_workspace(tmp_path, provider) as workspace:
        session = await workspace.new_session()
        await converse(session, 8, LONG)
        before = session.usage
        assert before is not None
        events = await drain(session.compact())
        [done] = [event for event in events if isinstance(event, CompactionFinished)]
        shown = [event.usage.total for event in events if isinstance(event, UsageChanged)]
        assert shown[-1] == done.record.after < done.record.before == before.total


@pytest.mark.parametrize("rolling", [True, False])
async def test_a_picture_of_megabytes_neither_compacts_nor_leaves(tmp_path: Path, rolling: bool) -> None:
    """Row 62: 2.5 MiB taken for 580,000 tokens, compacted on the first message, and the picture was gone."""
    shot = Attachment("image", "shot.png", "image/png", "0" * 64, 2_621_440, 512, 512)
    provider = ScriptedProvider(window=8_000)
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        events = await drain(session.send("what is this?", (shot,)))
        assert not [e for e in events if isinstance(e, TurnFailed | CompactionFinished)]
        assert shot in provider.requests[0].messages[0].parts
        assert session.usage is not None
        assert attachment_tokens(shot, "m") < 2_000
        assert session.usage.total < 2_500


@pytest.mark.parametrize("rolling", [True, False])
async def test_a_window_full_of_wide_characters_is_never_over(tmp_path: Path, rolling: bool) -> None:
    """Row 68: estimated by their number, they were a quarter of what they cost."""
    provider = ScriptedProvider(window=4_096, fallback=lambda _: answer("結構です。" * 8))
    async with open_workspace(tmp_path, provider, rolling_context=rolling) as workspace:
        session = await workspace.new_session()
        for number in range(10):
            text = f"{number}: " + "港の船は九そうあり、赤い帆は誰にも直せない。" * 14
            assert not [e for e in await drain(session.send(text)) if isinstance(e, TurnFailed)]
        assert provider.refused == 0
        assert max(map(real_tokens, provider.requests)) <= 4_096
