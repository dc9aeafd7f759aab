"""An MCP server by hand, without the SDK, that says what none should. Run by tests/tools/mcp/test_liars.py.

Its argument names the lie.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

LIE = sys.argv[1]
TOOLS: list[dict[str, Any]] = [{"name": "echo", "description": "Says it.", "inputSchema": {"type": "object"}}]
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
lock = threading.Lock()
listed = 0


def send(message: object) -> None:
    """One line."""
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def storm() -> None:
    """Says without end that something has changed."""
    while True:
        send(CHANGED)


def answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """What a request is answered with."""
    global listed
    match method:
        case "initialize":
            offers = {"tools": {"listChanged": True}}
            version = parameters["protocolVersion"]
            return {"protocolVersion": version, "capabilities": offers, "serverInfo": {"name": "liar", "version": "1"}}
        case "tools/list":
            listed += 1
            half = [{**TOOLS[0], "name": "half\ud83d", "description": "\udc00"}] if LIE == "halves" else []
            return {"tools": TOOLS + half}
        case "tools/call":
            return {"content": [{"type": "text", "text": "b\udcffll.txt" if LIE == "halves" else "ok"}]}
        case _:
            return {}


for line in sys.stdin:
    request = json.loads(line)
    method, ident = request.get("method", ""), request.get("id")
    if method == "tools/call" and LIE == "no-answer":
        send({"jsonrpc": "2.0", "id": ident})
        continue
    if method == "tools/list" and LIE == "hangs-later" and listed == 1:
        continue
    if ident is not None:
        send({"jsonrpc": "2.0", "id": ident, "result": answer(method, request.get("params", {}))})
    if method == "tools/list" and listed == 1:
        if LIE == "storm":
            threading.Thread(target=storm, daemon=True).start()
        if LIE == "hangs-later":
            send(CHANGED)
