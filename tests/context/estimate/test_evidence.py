"""A report is weighed before anything stands on it: what is believed, what is doubted, and how that is mended."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import MODEL, request
from tests.messages import assistant, user
from tui.context.counting.counting import TokenCounter
from tui.context.counting.digests import CostBook
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.estimate.calibration import CalibrationBook
from tui.context.estimate.estimator import HybridTokenEstimator
from tui.context.estimate.evidence import Claim, Predecessor, weigh
from tui.context.estimate.measurements import ALLOWANCE, ConversationStateTracker, Verdict
from tui.context.estimate.prediction import FEW, ConversationEstimate
from tui.context.usage.rows import make_rows
from tui.messages import Attachment, Message, ToolSchema, Usage

TOOLS = (ToolSchema("look", "word " * 300, "{}"),)


pytestmark = pytest.mark.usefixtures("word_tokenizer")


@dataclass
class ReportedConversation:
    """A conversation with a server that reports what it likes; `true` is what a request really costs."""

    hybrid: HybridTokenEstimator
    session: str = "s"
    tools: tuple[ToolSchema, ...] = ()
    system: str = ""

    def __post_init__(self) -> None:
        self.messages: list[Message] = []
        self.turns = 0

    def next(self, words: int = 20) -> int:
        """A new question; returns what the request costs by the words in it."""
        self.turns += 1
        self.messages.append(user(f"{self.session} {self.turns} " + "word " * words))
        return self.estimate().tokens

    def estimate(self) -> ConversationEstimate:
        return self.hybrid.estimate(request(*self.messages, session=self.session, tools=self.tools, system=self.system))

    def report(self, tokens: int, output: int = 34, *, reply: int = 30, window: int | None = None) -> Verdict:
        """The answer, of `reply` words and 4 tokens around them, with the usage as reported."""
        message = assistant(f"{self.session} {self.turns} " + "reply " * (reply - 2))
        outgoing = request(*self.messages, session=self.session, tools=self.tools, system=self.system)
        verdict = self.hybrid.record(outgoing, message, Usage(tokens, output), at=float(self.turns), window=window)
        self.messages.append(message)
        assert verdict is not None
        return verdict

    def honest(self, words: int = 20, reply: int = 30) -> Verdict:
        """A turn with a server that counts words."""
        self.next(words)
        return self.report(self.truth(), reply + 4, reply=reply)

    def truth(self) -> int:
        fresh = HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook(), CostBook())
        return fresh.estimate(
            request(*self.messages, session=self.session, tools=self.tools, system=self.system)
        ).tokens


@pytest.fixture
def hybrid() -> HybridTokenEstimator:
    return HybridTokenEstimator(TokenCounter(), ConversationStateTracker(), CalibrationBook(), CostBook())


def test_an_honest_server_is_believed_and_exact_from_the_first_call(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for _ in range(5):
        verdict = conversation.honest()
        assert (verdict.kind, verdict.confirmed) == ("believed", True)
        estimate = conversation.estimate()
        assert (estimate.source, estimate.upper_bound) == ("exact", estimate.tokens)


def test_a_first_report_that_the_text_does_not_confirm_is_an_estimate_until_three_more_agree(
    hybrid: HybridTokenEstimator,
) -> None:
    """A vocabulary that needs 1.5 times as many tokens."""
    conversation, verdicts = ReportedConversation(hybrid), []
    conversation.next(200)
    for number in range(4):
        verdict = conversation.report(310 + number * (50 + 46), 50)
        verdicts.append((verdict.kind, verdict.agreed, verdict.confirmed, conversation.estimate().source))
        conversation.next(20)
    assert verdicts == [
        ("believed", 0, False, "delta"),
        ("believed", 1, False, "delta"),
        ("believed", 2, False, "delta"),
        ("believed", 3, True, "exact"),
    ]


def test_a_measured_number_is_bounded_by_what_its_text_lets_one_expect(hybrid: HybridTokenEstimator) -> None:
    """Confirmed, as it may be right: the tools may cost a fifth less than estimated. And that is how sure it is."""
    conversation = ReportedConversation(hybrid, tools=TOOLS)
    expected = conversation.next(20)
    conversation.report(expected - 50)
    estimate = conversation.estimate()
    assert estimate.source == "exact"
    assert estimate.upper_bound - estimate.tokens >= 50
    for _ in range(30):
        conversation.honest(200)
    assert conversation.estimate().upper_bound == conversation.estimate().tokens


def test_the_bound_allows_for_what_an_unconfirmed_report_was_off_by(hybrid: HybridTokenEstimator) -> None:
    """Another vocabulary than the name says: LocalAI and LiteLLM call any model gpt-4."""
    conversation, verdicts = ReportedConversation(hybrid), []
    for turn in range(5):
        conversation.next(200)
        really = round(1.5 * conversation.truth())
        assert really <= conversation.estimate().upper_bound or turn == 0
        verdicts.append(conversation.report(really, round(1.5 * 34)))
    assert not any(verdict.confirmed for verdict in verdicts)


def test_a_report_that_confirms_the_count_of_its_request_is_as_sure(hybrid: HybridTokenEstimator) -> None:
    """A template's default system prompt is in the count, and in no estimate."""
    conversation = ReportedConversation(hybrid)
    counted = conversation.next(5) + 30
    hybrid.note_count(request(*conversation.messages, session=conversation.session), counted, at=0.0)
    conversation.report(counted, 304, reply=300)
    estimate = conversation.estimate()
    assert (estimate.source, estimate.tokens, estimate.upper_bound) == ("exact", counted + 304, counted + 304)


@pytest.mark.parametrize("counts", [False, True])
def test_a_report_that_confirms_what_a_template_adds_is_sure_at_once(
    hybrid: HybridTokenEstimator, counts: bool
) -> None:
    conversation, doubts = ReportedConversation(hybrid), []
    for number in range(2):
        conversation.next(5)
        truth = conversation.truth() + 30
        if counts and not number:
            hybrid.note_count(request(*conversation.messages, session=conversation.session), truth, at=0.0)
        conversation.report(truth)
        doubts.append(conversation.estimate().upper_bound - conversation.estimate().tokens)
    assert doubts == [0 if counts else pytest.approx(35, abs=10), 0]


def test_a_template_without_the_familys_system_prompt_is_sure_at_once(hybrid: HybridTokenEstimator) -> None:
    """Ollama's template for Llama 3.1 has no date."""
    outgoing = request(user("hello"), model="llama3.1:8b")
    expected = hybrid.estimate(outgoing).tokens
    verdict = hybrid.record(outgoing, assistant("Hello!"), Usage(expected - 25, 3), at=0.0)
    assert verdict is not None and verdict.confirmed
    assert verdict.doubt < FEW
    assert expected > 35


def test_the_second_call_of_a_conversation_confirms_what_the_server_adds(hybrid: HybridTokenEstimator) -> None:
    """A default system prompt of 400 tokens, as Devstral's template has."""
    conversation, other = ReportedConversation(hybrid, session="one"), ReportedConversation(hybrid, session="two")
    for _ in range(2):
        conversation.next(5)
        before = other.estimate().tokens
        conversation.report(conversation.truth() + 400)
    assert before < 10
    assert other.next(5) == pytest.approx(other.truth() + 400, abs=5)
    outgoing = request(*conversation.messages, session=conversation.session)
    rows = make_rows(outgoing, hybrid.situation(outgoing))
    assert {row.key: row.tokens for row in rows.rows}["hidden"] == pytest.approx(400, abs=8)
    assert rows.warnings == ()


@pytest.mark.parametrize(("words", "turns"), [(1_000, 1), (1_000, 3)])
def test_a_trim_keeps_what_calls_cost_beside_their_text(hybrid: HybridTokenEstimator, words: int, turns: int) -> None:
    """A prompt that the server adds. Of one call it is in the request before; of two, it is known."""
    conversation = ReportedConversation(hybrid)
    for _ in range(turns):
        conversation.next(words)
        conversation.report(conversation.truth() + 300)
    conversation.messages = conversation.messages[-1:]
    conversation.next(words)
    assert conversation.estimate().tokens == pytest.approx(conversation.truth() + 300, abs=25)


def test_one_conversation_that_reports_too_little_is_not_believed_in_others(hybrid: HybridTokenEstimator) -> None:
    """Some servers count without the tools, or half of everything, for a while."""
    conversation, other = (
        ReportedConversation(hybrid, session="one", tools=TOOLS),
        ReportedConversation(hybrid, session="two", tools=TOOLS),
    )
    for _ in range(3):
        conversation.next(5)
        conversation.report(conversation.truth() - 300)
    assert other.next(5) >= other.truth()


def test_the_doubt_of_an_input_is_not_scaled_up_to_an_output_that_was_counted(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    reported = conversation.next(5) + 30
    conversation.report(reported, 104, reply=100)
    estimate = conversation.estimate()
    assert (estimate.source, estimate.tokens) == ("exact", reported + 104)
    assert 30 <= estimate.upper_bound - estimate.tokens <= 40


def test_a_server_that_contradicts_what_it_confirmed_is_not_called_exact_again(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for _ in range(5):
        conversation.honest(200)
    for share in (0.85, 0.85, 0.85, 0.85, 1.0, 1.0, 1.0, 1.0):
        conversation.next(20)
        conversation.report(round(share * conversation.truth()))
        assert conversation.estimate().source != "exact"
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.01)


def test_a_placeholder_that_never_grows_is_doubted_and_the_number_grows(hybrid: HybridTokenEstimator) -> None:
    """A gateway's `message_start.input_tokens` of 100, never corrected."""
    conversation = ReportedConversation(hybrid)
    conversation.next(88)
    conversation.report(100)
    for _ in range(12):
        conversation.next(900)
        verdict = conversation.report(100)
        assert verdict.kind == "doubted"
        assert "100 tokens again" in verdict.reason or "bytes of text" in verdict.reason
        assert conversation.estimate().source != "exact"
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)


def test_the_bound_beside_a_placeholder_is_that_of_the_text(hybrid: HybridTokenEstimator) -> None:
    """Too few tokens tell nothing of the vocabulary: the request would be taken for twice as large as it is."""
    conversation = ReportedConversation(hybrid, tools=TOOLS)
    for words in (20, *[900] * 6):
        conversation.next(words)
        conversation.report(1)
    assert 1.0 <= conversation.estimate().upper_bound / conversation.truth() < 1.05


def test_a_number_that_stays_when_the_messages_are_replaced_is_doubted(hybrid: HybridTokenEstimator) -> None:
    """A server that cuts each prompt to the same size, before a compaction and after it."""
    conversation = ReportedConversation(hybrid)
    conversation.honest(8_000)
    for _ in range(2):
        conversation.next(900)
        assert not conversation.report(2_923).believed
    conversation.messages[:] = [user("summary " + "word " * 4_900)]
    assert conversation.report(2_923).reason == "2,923 tokens again, although the messages are others"
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)
    assert conversation.honest().believed


@pytest.mark.parametrize("tokens", [9, 265, 1_400])
def test_a_picture_that_costs_less_than_expected_is_no_cut_prompt(hybrid: HybridTokenEstimator, tokens: int) -> None:
    """Also one that the server leaves out."""
    picture = Attachment("image", "a", "image/png", "a" * 64, 9, 1_000, 1_000)
    outgoing = request(user(picture, "what is it"), session="s")
    assert hybrid.estimate(outgoing).tokens > 1_000
    verdict = hybrid.record(outgoing, assistant("a plot"), Usage(tokens, 6), at=1.0, window=2_048)
    assert verdict is not None and verdict.believed


def test_only_the_uncached_part_is_doubted(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.honest(10_000)
    conversation.next(20)
    assert conversation.report(26) == Verdict("doubted", "26 tokens, after 10,009 were measured and about 60 added"), (
        conversation.estimate()
    )
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)


@pytest.mark.parametrize("share", [0.4, 0.7, 1.0])
def test_cached_tokens_that_a_server_also_counts_in_its_input_are_not_added_again(
    hybrid: HybridTokenEstimator, share: float
) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.honest(200)
    for _ in range(4):
        conversation.next(40)
        truth, sent = conversation.truth(), request(*conversation.messages)
        cached = int(share * truth)
        usage = hybrid.reread(sent, Usage(truth + cached, 34, cached - 9, 9))
        assert usage == Usage(truth, 34, cached - 9, 9)
        assert hybrid.reread(sent, usage) is usage
        assert conversation.report(usage.input_total or 0).confirmed


def test_an_honest_sum_stays_with_a_new_picture_or_a_prompt_of_the_server(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    truth = conversation.next(200)
    first = Usage(2 * truth, 34, truth)  # the server has a prompt of its own, which was cached
    assert hybrid.reread(request(*conversation.messages), first) is first
    assert conversation.report(2 * truth).believed
    conversation.next(40)
    second = Usage(conversation.truth() + truth, 34, truth)
    assert hybrid.reread(request(*conversation.messages), second) is second
    conversation = ReportedConversation(hybrid, session="other")
    conversation.honest(200)
    before = conversation.truth()
    conversation.messages.append(
        replace(user("look"), parts=(Attachment("image", "a.png", "image/png", "0" * 64, 9_000),))
    )
    reported = Usage(conversation.truth() + before, 34, before)
    assert hybrid.reread(request(*conversation.messages), reported) is reported


def test_an_honest_sum_stays_where_the_estimate_is_off_by_the_few_tokens_that_were_cached(
    hybrid: HybridTokenEstimator,
) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.honest(2_000)
    conversation.next(40)
    cached = conversation.truth() // 20  # beside a prompt that the server has added since
    reported = Usage(conversation.truth() + cached, 34, cached)
    assert hybrid.reread(request(*conversation.messages), reported) is reported


def test_a_prompt_cut_in_small_steps_is_seen_and_gives_the_window_away(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    windows: list[int | None] = []
    while len(windows) < 3:
        conversation.next(30)
        verdict = conversation.report(min(3_000, conversation.truth()))
        if verdict.kind == "cut":
            windows.append(verdict.window)
            assert conversation.estimate().source != "exact"
        else:
            assert windows == []
            assert conversation.truth() < 3_200
    assert windows == [3_000, 3_000, 3_000]  # 3,000 again tells it at once


def test_one_cut_gives_no_window_away_and_a_second_at_the_same_size_does(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.next(8_000)
    first = conversation.report(4_000, window=8_192)
    conversation.next(900)
    second = conversation.report(3_950, window=8_192)
    assert [(verdict.kind, verdict.window) for verdict in (first, second)] == [("cut", None), ("cut", 4_000)]


def test_a_server_that_cuts_at_whole_messages_is_exact_again_once_it_has_no_reason_to(
    hybrid: HybridTokenEstimator,
) -> None:
    """As Ollama: two of its cuts may have the same ratio to the text, and come from one server all the same."""
    conversation = ReportedConversation(hybrid)
    for _ in range(7):
        conversation.honest(600)
    for words, tokens in ((1_500, 4_000), (100, 4_020)):
        conversation.next(words)
        verdict = conversation.report(tokens)
    assert verdict.kind == "cut" and verdict.window is not None
    del conversation.messages[:-6]
    for _ in range(2):
        assert conversation.honest().confirmed
    assert conversation.estimate().source == "exact"


@pytest.mark.parametrize(
    "text", ["ท่าเรือมีเรือเก้าลำและปั้นจั่นที่ส่งเสียงดัง ", "항구에는 배 아홉 척과 삐걱거리는 기중기가 있다. ", "48,151,623,421 "]
)
def test_a_vocabulary_that_spells_text_out_is_no_lie_and_hides_no_reasoning(
    hybrid: HybridTokenEstimator, text: str
) -> None:
    """A model of no known name, with SmolLM2's vocabulary or such a one."""
    real = get_tokenizer("smollm2")
    messages: list[Message] = [user("What is in the harbour?")]
    for number in range(4):
        outgoing = request(*messages, model="unheard-of")
        tokens = 3 + sum(4 + real.count(message.text) for message in messages)
        reply = assistant(text * 20 + str(number))
        output = real.count(reply.text) + 2
        verdict = hybrid.record(outgoing, reply, Usage(tokens, output), at=float(number))
        assert verdict is not None and verdict.believed
        messages += [reply]
        assert hybrid.estimate(request(*messages, model="unheard-of")).tokens == tokens + output
        messages += [user(text * 30 + str(number))]


@pytest.mark.parametrize("text", ["ท่าเรือมีเรือเก้าลำ ", "ဆိပ်ကမ်းတွင် သင်္ဘောကိုးစင်းရှိသည် ", "ಬಂದರಿನಲ್ಲಿ ಒಂಬತ್ತು ಹಡಗುಗಳಿವೆ "])
def test_a_measured_number_is_not_in_doubt_for_its_script(hybrid: HybridTokenEstimator, text: str) -> None:
    """In a vocabulary that nobody knows a script may cost several times as much: the server counts it all the same."""
    messages: list[Message] = []
    for number in range(8):
        messages.append(user(text * 20 + str(number)))
        outgoing = request(*messages, model="unheard-of")
        tokens = hybrid.counter.count_message(messages[-1], "unheard-of").size * 1.05 * (number + 1) + 3
        reply = assistant("ok")
        assert hybrid.record(outgoing, reply, Usage(round(tokens), None), at=float(number)) is not None
    estimate = hybrid.estimate(request(*messages, model="unheard-of"))
    assert estimate.source == "exact"
    assert estimate.upper_bound <= 1.35 * estimate.tokens


@pytest.mark.parametrize(("first", "step"), [(5_000, 100), (5_000, 1_000)])
def test_the_same_rounded_number_again_is_no_cut(hybrid: HybridTokenEstimator, first: int, step: int) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.next(first)
    for _ in range(60):
        verdict = conversation.report(max(step, round(conversation.truth() / step) * step))
        assert verdict.kind != "cut"
        conversation.next(30)
    conversation.report(conversation.truth())
    assert step > 100 or conversation.honest(200).confirmed  # nor do two servers answer in turns


def test_the_bound_of_an_unconfirmed_report_covers_what_the_vocabulary_counts(hybrid: HybridTokenEstimator) -> None:
    """Some gateways report a quarter of the characters, or the turn before."""
    conversation = ReportedConversation(hybrid)
    for _ in range(2):
        conversation.next(400)
        conversation.report(7 * conversation.truth() // 10)
    estimate = conversation.estimate()
    assert estimate.source == "delta"
    assert estimate.upper_bound >= conversation.truth() > 1.2 * estimate.tokens


def test_a_server_that_counts_more_from_some_call_on_is_believed_by_its_fourth_report(
    hybrid: HybridTokenEstimator,
) -> None:
    """Another model answers under the same name, in whose vocabulary everything costs 1.4 times as much."""
    conversation = ReportedConversation(hybrid)
    for _ in range(4):
        conversation.honest(2_000)
    verdicts = []
    for _ in range(4):
        conversation.next(300)
        verdicts.append(conversation.report(round(1.4 * conversation.truth()), 48).kind)
    assert verdicts == ["doubted", "doubted", "doubted", "believed"]
    estimate = conversation.estimate()
    assert estimate.tokens == pytest.approx(1.4 * conversation.truth(), rel=0.02)
    assert estimate.source == "delta"


def test_no_second_server_counts_ten_times_as_much(hybrid: HybridTokenEstimator) -> None:
    """Such reports agree with each other, and still neither widen the bound nor mark what is honest again."""
    conversation = ReportedConversation(hybrid)
    conversation.honest(2_000)
    for _ in range(3):
        conversation.next(300)
        assert conversation.report(10 * conversation.truth()).kind == "doubted"
    assert conversation.estimate().upper_bound < 1.2 * conversation.truth()
    assert conversation.honest().confirmed


def test_two_models_that_answer_in_turns_are_seen_and_prove_no_window(hybrid: HybridTokenEstimator) -> None:
    """A balancer between two servers, one of which counts 1.4 times as much: neither number is sure to be the next."""
    conversation = ReportedConversation(hybrid)
    conversation.honest(5_000)
    verdicts = []
    for turn in range(12):
        conversation.next(300)
        factor = 1.4 if turn % 2 else 1.0
        verdicts.append(conversation.report(round(factor * conversation.truth()), round(34 * factor)))
    assert all(verdict.window is None for verdict in verdicts)
    assert {verdict.kind for verdict in verdicts[6:]} == {"believed", "doubted"}
    estimate = conversation.estimate()
    assert estimate.source == "delta"
    assert estimate.tokens == pytest.approx(conversation.truth(), rel=0.02)
    assert estimate.upper_bound >= 1.4 * conversation.truth() * 0.99


@pytest.mark.parametrize("kind", ["placeholder", "uncached", "lagging", "smaller vocabulary"])
def test_what_is_no_cut_sets_no_window(hybrid: HybridTokenEstimator, kind: str) -> None:
    """Nobody cuts a prompt to a token, and what a cut leaves does not grow by what is added."""
    conversation, verdicts = ReportedConversation(hybrid), []
    for _ in range(3):
        conversation.honest(2_000)
    before = conversation.truth() - 34  # what the last call had
    for _ in range(6):
        conversation.next(300)
        truth = conversation.truth()
        tokens = {"placeholder": 1, "uncached": 3_000, "lagging": before, "smaller vocabulary": round(0.7 * truth)}
        verdicts.append(conversation.report(tokens[kind], window=10_000))
        before = truth
    assert all(verdict.window is None for verdict in verdicts)


def test_reports_below_believed_larger_ones_prove_no_window(hybrid: HybridTokenEstimator) -> None:
    """The server reads more than the apparent cut as soon as the next call."""
    conversation = ReportedConversation(hybrid)
    conversation.honest(5_000)
    conversation.honest(5_000)
    verdicts = []
    for share in (0.9, 1, 0.93, 1):
        conversation.next(300)
        verdicts.append(conversation.report(round(share * conversation.truth())))
    assert all(verdict.window is None for verdict in verdicts)


def test_two_cuts_that_differ_by_what_was_added_overrule_nothing(hybrid: HybridTokenEstimator) -> None:
    """A server that drops whole messages: what it read grows by chance as the request did."""
    conversation = ReportedConversation(hybrid)
    for _ in range(4):
        conversation.honest(900)
    conversation.next(200)
    conversation.report(2_000)
    conversation.next(200)
    verdict = conversation.report(2_000 + 34 + 204)
    assert verdict.kind == "cut"
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)


def test_a_cut_prompt_teaches_nothing_and_the_last_measurement_stays(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for _ in range(4):
        conversation.honest(1_000)
    before = hybrid.calibrations.get("p", MODEL)
    conversation.next(1_000)
    verdict = conversation.report(2_800, window=4_096)
    assert verdict.kind == "cut"
    assert hybrid.calibrations.get("p", MODEL) == before
    conversation.messages.pop()
    assert conversation.estimate().last_input == conversation.truth() - 1_006 - 34


def test_one_absurd_report_for_hi_does_not_refuse_the_next_session(hybrid: HybridTokenEstimator) -> None:
    """30,000 for "hi", once: nothing is booked, also not for other conversations."""
    first = ReportedConversation(hybrid, tools=TOOLS)
    before = first.next(1)
    verdict = first.report(30_000)
    assert verdict.kind == "doubted"
    assert first.estimate().tokens < before + 60
    second = ReportedConversation(hybrid, "t", TOOLS)
    assert second.next(1) == before
    verdict = second.honest(1)
    assert verdict.confirmed


def test_a_prompt_that_the_gateway_adds_is_believed_when_the_second_call_agrees(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.next()
    first = conversation.report(conversation.truth() + 18_000)
    conversation.next()
    second = conversation.report(conversation.truth() + 18_000)
    assert (first.kind, second.kind, second.hidden) == ("doubted", "hidden", 18_000)
    assert conversation.estimate().source == "exact"
    other = ReportedConversation(hybrid, "t")
    assert other.next() == pytest.approx(other.truth() + 18_000, abs=5)
    other.report(other.truth())  # it is gone
    other.honest()
    assert ReportedConversation(hybrid, "u").next() < 100


def test_a_prompt_that_the_server_adds_no_more_is_gone_by_the_second_call(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for added in (*[4_096] * 6, 0, 0):
        conversation.next(200)
        conversation.report(conversation.truth() + added)
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), abs=50)


def test_session_totals_are_doubted_and_stop_nothing(hybrid: HybridTokenEstimator) -> None:
    """The sum of all calls so far, as if it were this one's."""
    conversation, total = ReportedConversation(hybrid), 0
    for _ in range(20):
        conversation.next(300)
        total += conversation.truth()
        conversation.report(total)
        assert conversation.estimate().source != "exact" or conversation.turns == 1
    conversation.honest(300)
    conversation.honest(300)
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)


def test_a_first_message_in_another_script_books_nothing_for_tools(hybrid: HybridTokenEstimator) -> None:
    """Its text costs 2.5 times what the tokenizer says: the next "hi" is not predicted to have it."""
    first = ReportedConversation(hybrid, tools=TOOLS)
    fixed = first.next(1)
    first.messages = [user("word " * 4_000)]
    first.report(fixed + 10_000)
    other = ReportedConversation(hybrid, "t", TOOLS)
    assert other.next(1) == pytest.approx(fixed, rel=0.05)
    verdict = other.honest(1)
    assert verdict.confirmed


def test_two_honest_calls_mend_what_a_lie_within_its_bytes_anchored(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid, system="word " * 400)
    conversation.next(5)
    conversation.report(1_400)  # real: 420
    assert conversation.estimate().source != "exact"
    conversation.honest()
    conversation.honest()
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)
    assert conversation.estimate().source == "exact"


def test_a_server_that_takes_to_honesty_after_confirmed_lies_is_believed_by_its_second_call(
    hybrid: HybridTokenEstimator,
) -> None:
    conversation = ReportedConversation(hybrid)
    conversation.next(100)
    conversation.report(2 * conversation.truth(), 68)
    for _ in range(4):
        conversation.next(100)
        conversation.report(2 * conversation.truth(), 68)
    conversation.honest()
    conversation.honest()
    assert conversation.estimate().tokens == pytest.approx(conversation.truth(), rel=0.05)


@pytest.mark.parametrize("model", ["qwen3:8b", "llama3.2", "gpt-oss:20b"])
def test_a_quarter_of_the_bytes_is_no_count(hybrid: HybridTokenEstimator, model: str) -> None:
    """Ollama answers so when it is asked to count in Anthropic's dialect."""
    code = "".join(f"x[{number}] = {{'{number:x}': (a+{number})**2}};\n" for number in range(400))
    outgoing = request(user(code), model=model)
    before = hybrid.estimate(outgoing)
    assert hybrid.note_count(outgoing, len(code) // 4, at=0.0).kind == "doubted"
    assert hybrid.estimate(outgoing) == before


def test_a_count_of_less_than_a_template_lets_expect_is_one(hybrid: HybridTokenEstimator) -> None:
    """Tools cost 182 tokens less in requests that were recorded of Anthropic."""
    tool = ToolSchema("look", "", "{}")
    outgoing = request(user("Which is the largest city?"), model="claude-sonnet-4-5", tools=(tool,))
    assert hybrid.note_count(outgoing, hybrid.estimate(outgoing).tokens - 182, at=0.0).believed


def test_a_counted_number_is_weighed_too(hybrid: HybridTokenEstimator) -> None:
    outgoing = request(user("word " * 10))
    assert hybrid.note_count(outgoing, 5_000_000, at=0.0).kind == "doubted"
    assert hybrid.estimate(outgoing).tokens < 100
    assert hybrid.note_count(outgoing, 21, at=0.0).believed
    assert (hybrid.estimate(outgoing).tokens, hybrid.estimate(outgoing).source) == (21, "exact")


def test_forgetting_a_model_takes_out_all_that_was_learned(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for _ in range(3):
        conversation.honest()
    hybrid.forget("p", MODEL)
    assert conversation.estimate().source == "estimated"
    assert hybrid.calibrations.get("p", MODEL).errors.calls == 0


claims = st.builds(
    Claim,
    tokens=st.integers(1, 10_000_000),
    predicted=st.integers(1, 300_000),
    by_text=st.floats(1, 300_000),
    by_learning=st.floats(1, 300_000),
    text=st.floats(0, 300_000),
    size=st.floats(0, 1_200_000),
    plausible=st.floats(1, 600_000),
    most=st.floats(600_000, 1_200_000),
)
steps = st.lists(
    st.builds(
        Predecessor,
        tokens=st.floats(1, 300_000),
        verdict=st.builds(Verdict, kind=st.sampled_from(["believed", "doubted", "cut"]), confirmed=st.booleans()),
        added=st.floats(0, 10_000),
        text=st.floats(0, 10_000),
        most=st.floats(0, 40_000),
        plain=st.floats(0, 10_000),
    ),
    max_size=6,
)


CLAIM = Claim(2_000, 8_100, by_text=2_100.0, by_learning=2_100.0, text=8e3, size=8e3, plausible=4e3, most=8e3)


@pytest.mark.parametrize(
    ("confirmed", "believed"), [([False, False], True), ([False, True], False), ([True, False], False)]
)
def test_a_report_nearer_to_the_text_overrules_only_what_was_never_confirmed(
    confirmed: list[bool], believed: bool
) -> None:
    earlier = [Predecessor(8_000.0, Verdict(confirmed=sure), 50.0, 200.0, 200.0, 50.0) for sure in confirmed]
    verdict = weigh(CLAIM, earlier)
    assert (verdict.believed, verdict.overrules) == (believed, believed)


def test_a_prompt_counts_as_cut_only_where_the_learned_estimate_agrees() -> None:
    assert not replace(CLAIM, window=4_096).cut_at_window
    assert replace(CLAIM, window=4_096, by_learning=8_000.0).cut_at_window


@given(claims, steps)
def test_what_is_not_believed_has_a_reason_and_what_no_byte_explains_is_not_believed_alone(
    claim: Claim, earlier: list[Predecessor]
) -> None:
    verdict = weigh(claim, earlier)
    assert verdict.believed or verdict.reason
    assert not (verdict.confirmed and not verdict.believed)
    if verdict.believed and not earlier:
        assert claim.tokens <= claim.plausible + ALLOWANCE


@given(
    st.integers(50, 100_000), st.lists(st.tuples(st.integers(1, 3_000), st.integers(1, 800)), min_size=1, max_size=9)
)
def test_honest_growth_is_never_doubted(first: int, turns: list[tuple[int, int]]) -> None:
    """Any sizes, by a vocabulary up to twice as costly as the one we count with, or a third cheaper."""
    for factor in (0.67, 1.0, 2.0):
        history = [(round(first * factor), first)]
        for question, reply in turns:
            tokens, estimate = history[-1]
            history.append((tokens + round(reply * factor) + round(question * factor), estimate + reply + question))
        for at in range(1, len(history)):
            tokens, estimate = history[at]
            earlier = [
                Predecessor(t, Verdict(confirmed=True), estimate - e, estimate - e, 5.0 * (estimate - e), estimate - e)
                for t, e in reversed(history[:at])
            ]
            claim = Claim(tokens, estimate, *(float(estimate),) * 3, *(5.0 * estimate,) * 3)
            assert weigh(claim, earlier).believed


def test_text_that_no_vocabulary_is_known_for_may_cost_a_multiple(hybrid: HybridTokenEstimator) -> None:
    outgoing = replace(request(user("เมื่อวานนี้คณะกรรมการอ่านรายงาน" * 60)), model="unheard-of")
    expected = hybrid.estimate(outgoing).tokens
    verdict = hybrid.record(outgoing, assistant("hello"), Usage(3 * expected, 5), at=0.0)
    assert verdict is not None
    assert (verdict.kind, verdict.confirmed) == ("believed", False)


@pytest.mark.parametrize("added", [300, 900, 2_500])
def test_reports_a_call_behind_prove_no_window(hybrid: HybridTokenEstimator, added: int) -> None:
    conversation, windows = ReportedConversation(hybrid), []
    for _ in range(3):
        conversation.honest(added)
    for _ in range(8):
        behind = conversation.truth()
        conversation.next(added)
        windows.append(conversation.report(behind).window)
    assert not any(windows)


def test_a_second_server_whose_numbers_grow_with_the_request_proves_no_window(hybrid: HybridTokenEstimator) -> None:
    """It has another vocabulary, and answers in turns under the same name."""
    conversation, verdicts = ReportedConversation(hybrid), []
    for _ in range(8):
        conversation.honest(900)
    for _ in range(3):
        conversation.next(200)
        verdicts.append(conversation.report(conversation.truth() * 4 // 5))
    assert [(verdict.kind, verdict.window) for verdict in verdicts] == [("cut", None)] * 3


def test_two_doubted_reports_that_agree_bound_the_number(hybrid: HybridTokenEstimator) -> None:
    """The last server has another vocabulary than the model's name says; one with fewer tokens answered before."""
    conversation = ReportedConversation(hybrid)
    for words, factor in ((200, 1.3), (200, 1.04), (1_800, 1.3), (900, 1.04), (200, 1.3), (2_500, 1.3)):
        conversation.next(words)
        verdict = conversation.report(round(factor * conversation.truth()))
    assert not verdict.believed
    conversation.next(200)
    assert conversation.estimate().upper_bound >= round(1.3 * conversation.truth()) - 10


def test_placeholders_are_no_cut_prompts(hybrid: HybridTokenEstimator) -> None:
    conversation = ReportedConversation(hybrid)
    for _ in range(3):
        conversation.honest(2_000)
    for placeholder in (17, 3, 90, 17):
        conversation.next(900)
        assert conversation.report(placeholder).kind == "doubted"
