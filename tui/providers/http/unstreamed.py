"""Answers that are not streams although one was requested: whole ones, errors under HTTP 200, web pages. Pure.

Proxies and small servers that do not stream send the answer whole; some report errors as plain JSON under HTTP 200; an
address other than the API's (a login page, a site's front page) answers with HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui.providers.base import ProviderError
from tui.providers.http.error_text import body_message, one_line
from tui.providers.http.errors import classify_error
from tui.providers.wire import Json
from tui.text.json_text import parse_json

_CHECK = {True: "Check base_url.", False: "Check base_url; most end in /v1."}  # whether it does


def is_page(text: str) -> bool:
    """Whether it is HTML."""
    return text.lstrip()[:1] == "<"


def page_error(text: str, provider: str, where: str) -> ProviderError:
    """The error for a web page at `where`, the requested address."""
    title = one_line(body_message([("", text[:4000])]), 60) if "<title" in text[:4000].lower() else ""
    return ProviderError(
        "protocol",
        f"{provider}: {where} answered with a web page{f' ({title})' if title else ''}, as no API does. "
        f"{_CHECK[where.rstrip('/').endswith('/v1')]}",
    )


def whole_answer(text: str, provider: str, where: str) -> list[Json]:
    """The events of a whole answer in any dialect, from its body. Raises `ProviderError` if it is none."""
    if is_page(text):
        raise page_error(text, provider, where)
    body: Any = parse_json(text)
    match body:
        case {"choices": [_, *_]}:
            return [body]
        case {"type": "message", "content": [*blocks]}:
            return list(_messages(body, blocks))
        case {"output": [*items]}:
            return list(_responses(body, items))
    error = classify_error(200, body, provider=provider)
    if error.kind == "server" and not (isinstance(body, dict) and body.get("error")) and not _failed(body):
        check = _CHECK[where.rstrip("/").endswith("/v1")]
        raise ProviderError("protocol", f"{provider}: {where} answered with JSON that is no answer. {check}")
    raise error


def _failed(body: object) -> bool:
    """Whether it reports failure without an `error`: {"success": false}, {"code": 500}."""
    if not isinstance(body, dict):
        return False
    code = body.get("code") or body.get("status")
    return body.get("success") is False or (isinstance(code, int) and code >= 400)


def _messages(body: Json, blocks: list[Any]) -> Iterator[Json]:
    yield {"type": "message_start", "message": body}
    for index, block in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": body}


def _responses(body: Json, items: list[Any]) -> Iterator[Json]:
    for index, item in enumerate(items):
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = body.get("status")
    ends = ("completed", "incomplete", "failed")
    yield {"type": f"response.{status if status in ends else 'completed'}", "response": body}
