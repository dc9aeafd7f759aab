"""What a server wrote and the SDK could not read: the SDK drops it, and whoever waits for it waits until the timeout.

Programs in Python and JavaScript write half a surrogate pair (file names that are no UTF-8 hold such) as an escape that
strict readers refuse. And an answer that is none at least says which request it is for.
"""

from __future__ import annotations

import json
from typing import Any

NO_MESSAGE = -32700
"""JSON-RPC's code for what can't be read (JSON-RPC 2.0, section 5.1)."""


def mended(item: Any) -> Any:
    """`item` of an SDK's stream; in place of an error the message it was made of, or a refusal for who waits for it."""
    if not isinstance(item, Exception):
        return item
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter
    from pydantic import ValidationError

    if not isinstance(item, ValidationError):
        return item
    looked_at = [error["input"] for error in item.errors(include_url=False, include_context=False)]  # all, or a part
    value = _whole(next((part for part in looked_at if isinstance(part, dict) and "id" in part), looked_at[0]))
    for attempt in (value, _refusal(value)):
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(attempt, by_name=False))
        except ValidationError:
            continue
    return item


def _whole(written: object) -> object:
    """The JSON value of a line, with a replacement character for each half of a pair; `written` if it is none."""
    if not isinstance(written, str):
        return written
    try:
        text = json.dumps(json.loads(written), ensure_ascii=False)
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return written


def _refusal(value: object) -> object:
    match value:
        case {"id": int() | str() as request, **rest} if "method" not in rest:
            error = {"code": NO_MESSAGE, "message": "the server's answer is not one that MCP knows"}
            return {"jsonrpc": "2.0", "id": request, "error": error}
        case _:
            return None
