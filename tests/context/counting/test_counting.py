from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.helpers import MODEL, BrokenTokenizer, WordTokenizer, call, registered, result
from tests.messages import assistant, user
from tui.context.counting import digests
from tui.context.counting.counting import TokenCounter, attachment_tokens, image_tokens, reasoning_tokens, schema_text
from tui.context.counting.digests import CostBook, TokenCost
from tui.context.counting.families import Prior, prior_of
from tui.context.counting.tokenizers import get_tokenizer
from tui.context.counting.words import CLASSES, unpack
from tui.messages import Attachment, Message, Reasoning, Refusal, SystemSection, ToolSchema, Usage


class Cache:
    """A `CountCache` in memory that says how often it was asked."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, int, bytes], tuple[int, ...]] = {}
        self.reads = 0

    def get_many(self, tokenizer: str, version: int, digests: Sequence[bytes]) -> Mapping[bytes, tuple[int, ...]]:
        self.reads += len(digests)
        keys = {digest: (tokenizer, version, digest) for digest in digests}
        return {digest: self.values[key] for digest, key in keys.items() if key in self.values}

    def put_many(self, tokenizer: str, version: int, values: Mapping[bytes, tuple[int, ...]]) -> None:
        self.values.update({(tokenizer, version, digest): value for digest, value in values.items()})

    def clear(self, tokenizer: str) -> None:
        self.values = {key: value for key, value in self.values.items() if key[0] != tokenizer}


class Tallying(WordTokenizer):
    """Counts how often it counts."""

    calls = 0

    def classes(self, text: str) -> int:
        self.calls += 1
        return super().classes(text)


def test_a_content_is_counted_once_in_a_process() -> None:
    tokenizer, counter = Tallying(), TokenCounter()
    with registered(MODEL, tokenizer):
        first = counter.count_message(user("one two three", id="1"), MODEL)
        again = counter.count_message(user("one two three", id="another id"), MODEL)
    assert first == again
    assert tokenizer.calls == 1


def test_a_content_is_counted_once_in_two_processes() -> None:
    cache = Cache()
    with registered(MODEL, Tallying()):
        TokenCounter(cache).count_message(user("one two three"), MODEL)
    tokenizer = Tallying()
    with registered(MODEL, tokenizer):
        counter = TokenCounter(cache)
        count, reads = counter.count_message(user("one two three"), MODEL), cache.reads
        assert counter.count_message(user("one two three"), MODEL) == count
    assert tokenizer.calls == 0
    assert count.content == 3
    assert cache.reads == reads  # from memory


def test_memory_is_bounded_by_what_the_store_can_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MEMORY_ENTRIES", 3)
    store = Cache()
    for stored in (store, None):
        counts = digests.Cache(stored, 1, tuple)
        for number in range(9):
            counts.put("m", {bytes([number]): (number,)})
        assert counts.get("m", [bytes([n]) for n in range(10)]) == {bytes([n]): (n,) for n in range(9)}
    assert store.reads > 1


def test_costs_of_a_model_are_forgotten_in_memory_and_in_the_store() -> None:
    store = Cache()
    costs = CostBook(store)
    for model in ("m", "other"):
        costs.put("p", model, {b"a": TokenCost(70, 30, "measured")})
    costs.forget("p", "m")
    for book in (costs, CostBook(store)):
        assert book.get("p", "m", [b"a"]) == [None]
        assert book.get("p", "other", [b"a"]) == [TokenCost(70, 30, "measured")]


def test_without_a_vocabulary_characters_are_counted_and_not_kept() -> None:
    cache = Cache()
    with registered(MODEL, BrokenTokenizer()):
        counter = TokenCounter(cache)
        count = counter.count_message(user("x" * 400), MODEL)
        assert counter.count_text("x" * 400, MODEL) == 100
        assert counter.count_tool(ToolSchema("a", "b" * 400, "{}"), MODEL) > 100
        assert counter.count_section(SystemSection("system", "p", "x" * 400), MODEL) == 100
    assert count.size >= 100
    assert cache.values == {}


def test_kinds_of_content_are_told_apart() -> None:
    message = assistant(
        Reasoning("a b", signature="s", tokens=7), "one two", Refusal("no"), call("1", "look", '{"x": 1}')
    )
    with registered(MODEL, WordTokenizer()):
        count = TokenCounter().count_message(message, MODEL)
    prior = Prior()
    assert set(count.split) == {"text", "reasoning", "tool_calls"}
    assert count.split["reasoning"] == 7
    assert count.fixed == 7
    assert count.content == 3 + 3
    assert count.markup == prior.per_message + prior.per_call + prior.per_argument
    assert sum(count.split.values()) == pytest.approx(count.size)


@pytest.mark.parametrize(
    ("model", "as_read"),
    [("claude-opus-4-6", 'line\n\t"é" \\'), ("glm-4.6", 'line\n\t"é" \\'), ("gpt-5.4", r"line\n\t\"\u00e9\" \\")],
)
def test_arguments_are_counted_as_the_template_writes_them(model: str, as_read: str) -> None:
    """With the escapes of JSON, or without."""
    counter = TokenCounter()
    written = assistant(call("1", "write", r'{"text": "' + r"line\n\t\"\u00e9\" \\" * 50 + '"}'))
    plain = assistant(call("1", "write", '{"text": "' + as_read * 50 + '"}'))
    one, other = (counter.count_message(message, model) for message in (written, plain))
    assert one.content == pytest.approx(other.content, abs=2)


def test_results_cost_the_same_in_one_message_as_in_several() -> None:
    together = Message("tool", (*result("1", "a b").parts, *result("2", "c").parts))
    with registered(MODEL, WordTokenizer()):
        counter = TokenCounter()
        apart = sum(counter.count_message(m, MODEL).size for m in (result("1", "a b"), result("2", "c")))
        assert counter.count_message(together, MODEL).size == pytest.approx(apart)


def test_reported_reasoning_beats_counting_it() -> None:
    block = Reasoning("a b c", signature="s")
    assert reasoning_tokens(assistant("x")) == 0
    assert reasoning_tokens(assistant(block)) is None
    assert reasoning_tokens(assistant(block, usage=Usage(1, 50, reasoning=40))) == 40
    assert reasoning_tokens(assistant(Reasoning("a", tokens=3), Reasoning("b", tokens=4))) == 7


def test_a_summary_of_reasoning_counts_as_its_encrypted_original_holds() -> None:
    counter = TokenCounter()

    def count(block: Reasoning) -> float:
        return counter.count_message(assistant(block), "gpt-5").split["reasoning"]

    shown = "The user wants a list of files."
    plain = count(Reasoning(shown, signature="A" * 276))  # 31 bytes and the envelope's 175
    assert plain == pytest.approx(get_tokenizer("gpt-5").count(shown), abs=prior_of("gpt-5").per_message + 1)
    assert count(Reasoning(shown, signature="A" * 60_000)) > 1_000 * plain / 10
    assert count(Reasoning("", signature="A" * 60_000)) == pytest.approx(44_825 / 4.3, rel=0.01)
    assert count(Reasoning("", redacted="A" * 60_000)) == count(Reasoning("", encrypted="A" * 60_000))


def test_an_image_never_costs_its_bytes() -> None:
    small, large = (user(Attachment("image", "a", "image/png", "0" * 64, size, 800, 600)) for size in (10, 2_621_440))
    counter = TokenCounter()
    for model in ("gpt-5", "claude-sonnet-5", "gemini-3", "unheard-of"):
        assert counter.count_message(small, model).size == counter.count_message(large, model).size < 2_500


def test_a_text_file_costs_its_text_and_the_lines_around_it() -> None:
    message = user(Attachment("text", "a.txt", "text/plain", "0" * 64, 9, text="one two three"))
    with registered(MODEL, WordTokenizer()):
        assert TokenCounter().count_message(message, MODEL).split["attachments"] == 6 + Prior().per_message


def test_the_classes_of_a_message_are_those_of_its_text() -> None:
    message = user("hello, world", "привет мир", Reasoning("не", tokens=3))
    count = TokenCounter().count_message(message, "gpt-5")
    kinds = {CLASSES[kind]: tokens for kind, tokens in unpack(count.classes)}
    assert set(kinds) == {"latin", "punctuation", "cyrillic"}
    assert sum(kinds.values()) == pytest.approx(count.content)


def test_classes_outlive_the_process() -> None:
    cache = Cache()
    message = user("hello, мир")
    first = TokenCounter(cache).count_message(message, "gpt-5")
    assert TokenCounter(cache).count_message(message, "gpt-5") == first


@given(st.text(max_size=60))
def test_a_message_is_never_free(text: str) -> None:
    with registered(MODEL, WordTokenizer()):
        count = TokenCounter().count_message(user(text), MODEL)
    assert count.size >= 1


def test_tools_are_written_as_openai_writes_them() -> None:
    tool = ToolSchema(
        "find",
        "Find things.",
        '{"$defs":{"Kind":{"enum":["a","b"]}},"properties":{"kind":{"$ref":"#/$defs/Kind"},"many":{"items":'
        '{"type":"integer"},"type":"array"},"name":{"default":"x","description":"Its name.","type":"string"},'
        '"where":{"properties":{"deep":{"type":["string","null"]}},"type":"object"}},"required":["name"]}',
    )
    assert schema_text(tool, "typescript") == (
        "// Find things.\ntype find = (_: {\n"
        'kind?: "a" | "b",\nmany?: number[],\n// Its name.\nname: string, // default: "x"\n'
        "where?: {\ndeep?: string | null,\n},\n}) => any;\n\n"
    )
    assert tool.parameters in schema_text(tool, "json")


@pytest.mark.parametrize("parameters", ["", "[]", "nonsense", '{"properties":7}', '{"properties":{"a":true}}'])
def test_odd_schemas_are_counted_all_the_same(parameters: str) -> None:
    tool = ToolSchema("odd", "", parameters)
    assert "type odd" in schema_text(tool, "typescript")
    assert TokenCounter().count_tool(tool, "gpt-5") > 0


def test_a_schema_that_refers_to_itself_ends() -> None:
    node = '{"properties":{"next":{"$ref":"#/$defs/n"}},"type":"object"}'
    loop = f'{{"$defs":{{"n":{node}}},"properties":{{"n":{{"$ref":"#/$defs/n"}}}}}}'
    assert "any" in schema_text(ToolSchema("tree", "", loop), "typescript")


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("chatgpt-4o-latest", 1024, 1024, 765),
        ("gpt-4o", 1024, 1024, 765),  # OpenAI's own example: 85 + 4 x 170
        ("gpt-4o", 2048, 4096, 1105),  # and its second: 85 + 6 x 170
        ("gpt-4o-mini", 1024, 1024, 2_833 + 4 * 5_667),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("gpt-4.1-mini", 1024, 1024, round(1_024 * 1.62)),
        ("o4-mini", 1800, 2400, round(1_452 * 1.72 + 0.5)),  # OpenAI's example: 33 x 44 patches of a scaled image
        ("gpt-5.6", 6_400, 6_400, 40_000),  # no limit, no resize
        ("claude-sonnet-4-5", 1_000, 1_000, 36 * 36),
        ("claude-sonnet-4-5", 4_000, 4_000, 1_568),
        ("claude-opus-4-8", 4_000, 4_000, 4_784),
        ("claude-haiku-4-5-20251001", 4_000, 4_000, 1_568),
        ("gemini-2.5-flash", 300, 300, 258),
        ("gemini-2.5-flash", 1_500, 700, 516),
    ],
)
def test_published_formulas(model: str, width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height, model) == tokens


@given(
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.sampled_from(["gpt-5", "gpt-5.4", "gpt-5.6", "claude-opus-5", "claude-3", "gemini-3", "llama3"]),
)
def test_any_image_costs_something_and_less_than_its_pixels(width: int, height: int, model: str) -> None:
    assert 1 <= image_tokens(width, height, model) <= max(2_000, width * height)


def test_a_pdf_costs_by_the_page() -> None:
    one, ten = (Attachment("pdf", "a.pdf", "application/pdf", "0", 9, pages=pages) for pages in (1, 10))
    assert 10 * attachment_tokens(one, "claude-opus-5") == attachment_tokens(ten, "claude-opus-5")
    unknown = Attachment("pdf", "a.pdf", "application/pdf", "0", 10**9)
    assert attachment_tokens(unknown, "claude-opus-5") == attachment_tokens(one, "claude-opus-5")


def test_an_image_of_unknown_size_is_taken_for_a_middling_one() -> None:
    image = Attachment("image", "a.png", "image/png", "0", 10**7)
    assert attachment_tokens(image, "gpt-4o") == image_tokens(1_024, 1_024, "gpt-4o")
