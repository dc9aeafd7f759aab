"""The page: everything there, everything escaped, nothing fetched and nothing run."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages import assistant, tool, user
from tui.chat.interchange.export import html_page, markdown
from tui.chat.store.store import SessionInfo
from tui.messages import Attachment, Message, Reasoning, Role, Text, ToolCall, ToolResult, Usage
from tui.text.numbers import timestamp

INFO = SessionInfo("0a", "A <b>title</b>", "demo", "m&m", 1.0, 1.0)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "article", "div", "span", "b", "p"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "a", "pre", "code", "details", "summary", "ul", "ol", "li", "em", "strong"),
    *("blockquote", "table", "thead", "tbody", "tr", "th", "td", "img", "hr", "br", "s"),
}


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words += data


def page(*messages: Message, blobs: dict[str, bytes] | None = None) -> tuple[str, Page]:
    text = html_page(INFO, messages, blobs or {})
    return text, Page(text)


def safe(document: Page) -> None:
    assert set(document.tags) <= ALLOWED
    for name, value in document.attributes:
        assert not name.startswith("on")
        if name == "href":
            assert value.lower().startswith(("http://", "https://", "mailto:")), value
        assert name != "src" or value.startswith("data:image/")


def message_of(text: str, role: Role = "assistant") -> Message:
    return Message(role, (Text(text),), id="01", model="m")


def test_everything_is_there_and_escaped() -> None:
    messages = [
        user("why <script>alert(1)</script>?", id="01", created_at=1.0),
        assistant(
            Reasoning("hm <i>"),
            "**Because** <img src=x onerror=alert(1)>\n\n```python\nx = '<b>'\n```\n",
            ToolCall("c", "look<up>", '{"q": "</pre>"}'),
            id="02", model="m<m", usage=Usage(1_200, 34),
        ),
        tool(ToolResult("c", "lookup", "</code></pre><script>"), id="03"),
        assistant("part", id="04", status="cancelled", error="stopped by <you>"),
    ]  # fmt: skip
    text, document = page(*messages)
    safe(document)
    assert "<script" not in text
    for words in ("why <script>alert(1)</script>?", "Because", "onerror", "hm <i>", "called look<up>", "</code></pre>",
                  "1,200 in, 34 out", "cancelled: stopped by <you>", "A <b>title</b>", "demo/m&m", "m<m"):  # fmt: skip
        assert words in document.words, words
    assert "<strong>Because</strong>" in text
    assert '<span class="n">x</span>' in text  # highlighted


def test_nothing_is_fetched() -> None:
    text, document = page(
        message_of("![a](https://example.com/x.png) [b](javascript:alert(1)) [c](https://example.com)")
    )
    safe(document)
    assert "img" not in document.tags
    assert ("href", "https://example.com") in document.attributes
    assert "http-equiv" in text and "default-src 'none'" in text
    for word in ("<link", "@import", "url("):
        assert word not in text


@pytest.mark.parametrize("target", ["smb://host/x", "//host/x", "search-ms:query=x", "file:x", "/etc/passwd", "#a"])
def test_only_web_and_mail_addresses_can_be_followed(target: str) -> None:
    text, document = page(message_of(f"[name]({target}) [b](https://example.com 'hint') <mailto:a@example.com>"))
    safe(document)
    assert [value for name, value in document.attributes if name == "href"] == [
        "https://example.com", "mailto:a@example.com",
    ]  # fmt: skip
    assert ("title", "hint") in document.attributes
    assert "name" in document.words
    if not target.startswith("file:"):
        assert escape(target) in text


def test_both_colour_schemes_and_the_style_is_whole() -> None:
    text, _ = page(message_of("x"))
    assert text.count("prefers-color-scheme: dark") == 2
    style = text[text.index("<style>") : text.index("</style>")]
    assert style.count("{") == style.count("}")


def test_pictures_are_in_the_page_and_nothing_else_is() -> None:
    picture = Attachment("image", 'a".png', "image/png", "aa", 5)
    vector = Attachment("image", "b.svg", "image/svg+xml", "bb", 5)
    lost = Attachment("image", "c.png", "image/png", "cc", 5)
    message = user(picture, vector, lost, id="01")
    text, document = page(message, blobs={"aa": b"hello", "bb": b"<svg/>"})
    safe(document)
    assert document.tags.count("img") == 1
    assert "data:image/png;base64,aGVsbG8=" in text
    for name in ('a".png', "b.svg", "c.png"):
        assert name in document.words


def test_a_summary_is_folded_and_control_characters_are_gone() -> None:
    summary = user("- one\n- two\x1b[31m\x07\u202e", id="01", kind="summary")
    text, document = page(summary)
    assert "summary of what came before" in document.words
    assert "<li>one</li>" in text
    assert not set("\x1b\x07\u202e") & set(text)


@given(st.text(), st.sampled_from(["user", "assistant"]))
def test_no_text_breaks_out(text: str, role: Role) -> None:
    _, document = page(message_of(text, role))
    safe(document)
    assert document.tags.count("article") <= 1
    assert document.tags[-1] != "plaintext"


@given(st.lists(st.sampled_from(["<", ">", "`", "```", "\n", "[", "](", ")", "javascript:", "\"", "'", "&", "|", "-",
                                 "script", "onerror=", "data:text/html,", "x", " ", "<!--", "]]>"])))  # fmt: skip
def test_no_markdown_breaks_out(pieces: list[str]) -> None:
    _, document = page(message_of("".join(pieces)))
    safe(document)


def test_markdown_fences_what_a_tool_got_and_gave() -> None:
    call, result = ToolCall("c", "read", '{"path":"a"}'), ToolResult("c", "read", "````md\n# a\n````")
    messages = [
        message_of("look", "user"),
        assistant(Reasoning("hm\nso"), "Reading.", call, id="02", model="m"),
        tool(result, id="03"),
        user("They looked.", id="04", kind="summary"),
        assistant(id="05", model="m", status="failed", error="no answer"),
    ]
    assert markdown(INFO, messages).split("\n\n")[2:] == [
        "## You", "look", "## m", "> hm\n> so", "Reading.", "**read**", '```json\n{"path":"a"}\n```',
        "## Tools", "`````\n````md\n# a\n````\n`````", "## Summary", "They looked.", "_failed: no answer_\n",
    ]  # fmt: skip


def test_names_and_errors_are_one_line_of_plain_text_in_markdown() -> None:
    name = "a\n## You\n<b>[x](y)*`"
    messages = [
        user(Attachment("text", name, "text/plain", "aa", 1, text="t"), id="01"),
        user(Attachment("image", name, "image/png", "bb", 1), id="02"),
        assistant(ToolCall("c", name, "{}"), id="03", model=name, status="failed", error=name),
    ]
    text = markdown(replace(INFO, title=name), messages)
    shown = "a ## You &lt;b&gt;\\[x\\](y)\\*\\`"
    assert text.split("\n\n") == [
        f"# {shown}", f"demo/m&amp;m · {timestamp(1.0)}",
        "## You", f"_{shown}_", "```\nt\n```", "## You", f"_{shown} (image/png, 1 B)_",
        f"## {shown}", f"**{shown}**", "```json\n{}\n```", f"_failed: {shown}_\n",
    ]  # fmt: skip
