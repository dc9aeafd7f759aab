from __future__ import annotations

from dataclasses import replace
from functools import reduce

from hypothesis import example, given
from hypothesis import strategies as st

from tests.messages import assistant, user
from tui.context.counting.digests import CHAIN_START, chain, message_digest, preamble_digest
from tui.messages import (
    Attachment,
    Message,
    Part,
    Reasoning,
    Refusal,
    Role,
    SystemSection,
    Text,
    ToolCall,
    ToolResult,
    ToolSchema,
)

short = st.text(alphabet=st.sampled_from("ab1:;|-TCR é\u0301\ud800"), max_size=4)
maybe = st.none() | short
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, short),
    st.builds(Refusal, short),
    st.builds(Reasoning, text=short, signature=maybe, redacted=maybe, encrypted=maybe, item_id=maybe, details=maybe),
    st.builds(ToolCall, id=short, name=short, arguments=short, extra=maybe),
    st.builds(ToolResult, call_id=short, name=short, text=short, is_error=st.booleans()),
    st.builds(
        Attachment,
        kind=st.sampled_from(["image", "pdf", "text"]),
        name=short,
        media_type=short,
        sha256=short,
        size=st.just(1),
        text=short,
    ),
)
messages = st.builds(
    Message, role=st.sampled_from(["user", "assistant", "tool"]), parts=st.lists(parts, max_size=3).map(tuple)
)


@given(messages, messages)
def test_different_projections_have_different_digests(one: Message, other: Message) -> None:
    assert (message_digest(one).full == message_digest(other).full) == (one == other)


@example(":", 0, 1)
@example(";", 0, 1)
@example("1:", 0, 2)
@given(st.text(alphabet=":;1a-", max_size=4), st.integers(0, 4), st.integers(0, 4))
def test_a_field_boundary_cannot_be_moved(text: str, one: int, other: int) -> None:
    calls = [ToolCall(text[:cut], text[cut:], "") for cut in (one, other)]
    digests = [message_digest(assistant(call)).full for call in calls]
    assert (digests[0] == digests[1]) == (calls[0] == calls[1])
    texts = [(Text(text[:cut]), Text(text[cut:])) for cut in (one, other)]
    digests = [message_digest(Message("user", parts)).full for parts in texts]
    assert (digests[0] == digests[1]) == (texts[0] == texts[1])


@given(st.lists(messages, max_size=4), st.lists(messages, max_size=4))
def test_chains_differ_where_the_messages_differ(some: list[Message], others: list[Message]) -> None:
    ends = [reduce(chain, [message_digest(m).full for m in ms], CHAIN_START) for ms in (some, others)]
    assert (ends[0] == ends[1]) == (some == others)


@given(messages)
def test_what_is_not_sent_is_not_digested(message: Message) -> None:
    stored = replace(message, id="x", created_at=5.0, status="cancelled", kind="summary", provider="p", error="e")
    assert message_digest(stored) == message_digest(message)


@given(messages)
def test_the_body_is_the_message_without_reasoning(message: Message) -> None:
    bare = replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Reasoning)))
    assert message_digest(message).body == message_digest(bare).full == message_digest(bare).body
    if bare != message:
        assert message_digest(message).full != message_digest(bare).full


def test_unicode_forms_are_different_texts() -> None:
    composed, split = (user(text) for text in ("\u00e9", "e\u0301"))
    assert message_digest(composed) != message_digest(split)


def test_the_preamble_knows_order_and_kind_but_not_origin() -> None:
    one, two = SystemSection("system", "prompt", "x"), SystemSection("memory", "notes", "y")
    tool = ToolSchema("look", "looks", "{}")
    digest = preamble_digest([one, two], [tool])
    assert preamble_digest([two, one], [tool]) != digest
    assert preamble_digest([one, two], []) != digest
    assert preamble_digest([one, replace(two, kind="system")], [tool]) != digest
    assert preamble_digest([one, two], [replace(tool, parameters='{"type":"object"}')]) != digest
    assert preamble_digest([one, two], [replace(tool, origin="server")]) == digest


@given(st.sampled_from(("user", "assistant", "tool")), st.text())
def test_a_text_alone_has_the_digest_that_it_has_beside_reasoning(role: Role, text: str) -> None:
    alone = message_digest(Message(role, (Text(text),)))
    assert alone.full == alone.body == message_digest(Message(role, (Text(text), Reasoning("why")))).body
