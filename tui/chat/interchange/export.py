"""Export of a session: JSONL without loss, Markdown, and one HTML page.

The page has no external resources and no script, and is dark or light like the reader's system. All its content comes
from people, models and tools, and is escaped; in addition its policy (CSP) forbids scripts, frames and requests.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from importlib import import_module
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from tui.chat.interchange.recording import write_jsonl
from tui.chat.store.calls import CallLog
from tui.chat.store.database import new_id
from tui.chat.store.store import SessionInfo, SessionStore
from tui.config.files import open_private
from tui.errors import UsageError
from tui.messages import Attachment, Message, Part, ProviderItem, Reasoning, Refusal, Source, Text, ToolCall, ToolResult
from tui.text.clean import abbreviated, clean_line, clean_text, clean_url
from tui.text.labels import is_web_address, source_markdown
from tui.text.markdown import make_parser
from tui.text.numbers import plural, size_text, timestamp, tokens_exact

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

ENDINGS = (".jsonl", ".md", ".html")
MAX_PATH = 200  # characters shown of a path


def export_session(path: Path, store: SessionStore, session: str, *, overwrite: bool = False) -> None:
    """Write a session to `path`; its suffix names the format. Changes nothing in the store.

    Raises `UsageError` for another suffix, for a file that is there already unless it may `overwrite` it, and where it
    can't write.
    """
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        raise UsageError(f"{path.name}: the suffix names the format; use {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    info = store.session(session)
    if info is None:
        raise UsageError(f"there is no session {session}")
    messages = store.messages(session)
    parts = [part for message in messages for part in message.parts]
    hashes = {part.sha256 for part in parts if isinstance(part, Attachment)}
    if suffix == ".jsonl":  # whole texts of cut results are too long for a page
        hashes |= {part.full for part in parts if isinstance(part, ToolResult) and part.full}
    blobs = ((sha256, store.blob(sha256)) for sha256 in sorted(hashes))
    readable = ((sha256, data) for sha256, data in blobs if data is not None)
    if suffix == ".md":
        lines = [markdown(info, messages)]
    elif suffix == ".html":
        lines = [html_page(info, messages, dict(readable))]
    else:
        calls = CallLog(store).rows(session)
        lines = [f"{line}\n" for line in write_jsonl(info, messages, store.records(session), calls, readable)]
    _write(path, lines, overwrite=overwrite)


def _write(path: Path, lines: Iterable[str], *, overwrite: bool) -> None:
    """Write a private file. One that is replaced stays until the new one is whole. Raises `UsageError`."""
    shown = abbreviated(str(path), MAX_PATH)
    replaced = path.resolve() if overwrite and path.is_file() else None  # a link stays
    written = path if replaced is None else replaced.with_name(f".{new_id()}{replaced.suffix}")
    created = False
    try:
        with open_private(written, "w" if overwrite else "x", encoding="utf-8", errors="backslashreplace") as file:
            created = replaced is not None or not overwrite  # else it may be a pipe
            file.writelines(lines)
        if replaced is not None:
            written.replace(replaced)
    except FileExistsError:
        raise UsageError(f"there is a file {shown} already: name another, or add --force to overwrite it") from None
    except OSError as error:
        if created:
            with suppress(OSError):
                written.unlink()  # half of it: the next export would find it there
        raise UsageError(f"can't write {shown} ({error.strerror}): name another place") from None


def _speaker(message: Message) -> str:
    if message.kind == "summary":
        return "Summary"
    return {"user": "You", "tool": "Tools"}.get(message.role) or message.model or "Assistant"


def _ending(message: Message) -> str:
    """How the message ended, "" if it is complete."""
    if message.status == "complete":
        return ""
    return f"{message.status}: {message.error}" if message.error else message.status


# -- Markdown ----------------------------------------------------------------------------------------------------------


def markdown(info: SessionInfo, messages: Iterable[Message]) -> str:
    """The conversation as Markdown. Tool calls, results and reasoning are in quotes and fences."""
    about = f"{_name(f'{info.provider}/{info.model}')} · {timestamp(info.created_at)}"
    pieces = [f"# {_name(info.title or 'Conversation')}", about]
    for message in messages:
        if message.parts:
            pieces.append(f"## {_name(_speaker(message))}")
            pieces += [text for part in message.parts if (text := _markdown_part(part))]
        if ending := _ending(message):
            pieces.append(f"_{_name(ending)}_")
    return clean_text("\n\n".join(pieces)) + "\n"  # it may be printed with `cat`


def _markdown_part(part: object) -> str:
    match part:
        case Text(text) | Refusal(text):
            return text.strip("\n")
        case Source():
            return f"Source: {source_markdown(part)}"
        case ProviderItem(kind=kind):
            return f"_{_name(kind)}: cannot be shown here_"
        case Reasoning(text=text):
            return "\n".join(f"> {line}" for line in text.splitlines())
        case ToolCall(name=name, arguments=arguments):
            return f"**{_name(name)}**\n\n{_fence(arguments, 'json')}"
        case ToolResult(text=text):
            return _fence(text)
        case Attachment(kind="text", name=name, text=text):
            return f"_{_name(name)}_\n\n{_fence(text)}"
        case Attachment(name=name, media_type=media_type, size=size):
            return f"_{_name(name)} ({media_type}, {size_text(size)})_"
        case _:
            return ""


def _name(text: str) -> str:
    """`text` on one line, without effect as Markdown or HTML."""
    return re.sub(r"[\\`*\[\]]", r"\\\g<0>", escape(clean_line(text), quote=False))


def _fence(text: str, language: str = "") -> str:
    """A code fence longer than any run of backticks in `text`."""
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


# -- HTML --------------------------------------------------------------------------------------------------------------

MAX_HIGHLIGHT = 200_000
"""Characters beyond which a code block stays in one colour."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def html_page(info: SessionInfo, messages: Iterable[Message], blobs: Mapping[str, bytes]) -> str:
    """The whole page. `blobs` are the bytes of attached images by hash; missing ones are named."""
    title = _text(info.title or "Conversation")
    articles = "\n".join(article for message in messages if (article := _article(message, blobs)))
    page = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=title,
        code_styles=_code_styles(),
        about=f"{_text(f'{info.provider}/{info.model}')} · {timestamp(info.created_at)}",
        articles=articles,
        session=_text(info.id),
    )


def _article(message: Message, blobs: Mapping[str, bytes]) -> str:
    body = "\n".join(html for part in message.parts if (html := _html_part(part, message, blobs)))
    if ending := _ending(message):
        body += f'\n<p class="bad">{_text(ending)}</p>'
    if not body.strip():
        return ""
    facts = [timestamp(message.created_at)] if message.created_at else []
    usage = message.usage
    if usage is not None and usage.input_total is not None and usage.output_total is not None:
        read, written = (tokens_exact(size, usage.source) for size in (usage.input_total, usage.output_total))
        facts.append(f"{read} in, {written} out")
    if message.kind == "summary":
        body = f"<details><summary>summary of what came before</summary>\n{body}\n</details>"
    return (
        f'<article class="{message.role}" dir="auto">\n<div class="who"><b>{_text(_speaker(message))}</b>'
        f'<span>{" · ".join(facts)}</span></div>\n<div class="body">\n{body}\n</div>\n</article>'
    )


def _html_part(part: Part, message: Message, blobs: Mapping[str, bytes]) -> str:
    match part:
        case Text(text) if message.role == "assistant" or message.kind == "summary":
            return str(_markdown_parser().render(clean_text(text))).strip()
        case Source(url, title, quote):
            link = f'<a href="{_text(url)}">{_text(title or url)}</a>' if is_web_address(url) else _text(title or url)
            return f'<p class="note">source: {link}{f" · {_text(quote)}" if quote else ""}</p>'
        case ProviderItem(kind):
            return f'<p class="note">{_text(kind)}: cannot be shown here</p>'
        case Text(text) | Refusal(text):
            return f'<div class="plain">{_text(text.strip(chr(10)))}</div>' if text.strip() else ""
        case Reasoning(text=text):
            return _folded("reasoning", f'<div class="plain">{_text(text)}</div>') if text.strip() else ""
        case ToolCall(name=name, arguments=arguments):
            label = f"called {name} {abbreviated(' '.join(arguments.split()), 80)}"
            return _folded(label, f"<pre><code>{_highlighted(clean_text(arguments), 'json')}</code></pre>")
        case ToolResult(name=name, text=text, is_error=wrong):
            label = f"{name or 'tool'} {'failed' if wrong else 'answered'}, {plural(len(text), 'character')}"
            return _folded(label, f"<pre><code>{_text(text)}</code></pre>")
        case Attachment(kind="text", name=name, text=text):
            return _folded(f"{name}, {size_text(part.size)}", f"<pre><code>{_text(text)}</code></pre>")
        case Attachment(name=name, media_type=kind, size=size):
            label = f'<p class="note">{_text(f"{name} ({kind}, {size_text(size)})")}</p>'
            data = blobs.get(part.sha256)
            if kind not in PICTURES or data is None:
                return label
            return f'{label}\n<img alt="{_text(name)}" src="data:{kind};base64,{base64.b64encode(data).decode()}">'


def _folded(label: str, inside: str) -> str:
    return f"<details><summary>{_text(label)}</summary>\n{inside}\n</details>"


def _text(text: str) -> str:
    return escape(clean_text(text), quote=True)


@cache
def _markdown_parser() -> MarkdownIt:
    """Markdown without HTML and images (which would be fetched); only web and mail addresses are links."""

    def highlight(code: str, language: str, _attributes: str) -> str:
        return _highlighted(code, language)

    def link(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        target = str(tokens[index].attrGet("href"))
        if clean_url(target):
            return renderer.renderToken(tokens, index, options, env)
        return f'<a title="{escape(target)}">'

    parser = make_parser({"html": False, "highlight": highlight}).disable("image")
    parser.add_render_rule("link_open", link)
    return parser


def _highlighted(code: str, language: str) -> str:
    """`code` with Pygments' classes, escaped; without classes if the language is unknown."""
    if not language or len(code) > MAX_HIGHLIGHT:
        return escape(code)
    lexers, errors = import_module("pygments.lexers"), import_module("pygments.util")
    try:
        lexer = lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except (errors.ClassNotFound, ValueError):
        return escape(code)
    formatter = import_module("pygments.formatters").HtmlFormatter(nowrap=True)
    return str(import_module("pygments").highlight(code, lexer, formatter))


@cache
def _code_styles() -> str:
    formatters = import_module("pygments.formatters")

    def rules(style: str) -> str:
        lines = formatters.HtmlFormatter(style=style).get_style_defs("pre").splitlines()
        return "\n".join(line for line in lines if line.startswith("pre ."))

    light, dark = rules("friendly"), rules("github-dark")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
