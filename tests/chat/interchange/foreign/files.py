"""Lines of session files, and what a conversation read from them would send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tui.chat.conversation.history import fold_records
from tui.chat.conversation.projection import Target, build_request
from tui.chat.interchange.recording import Recording


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


def claude_line(kind: str, content: Any, request_id: str = "", **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "sessionId": "x", "requestId": request_id or None, "message": message, **more}


def claude_answer(content: Any, request_id: str, output: int, model: str = "claude-opus-4-6", **usage: Any) -> Any:
    counts = {"input_tokens": 3, "cache_read_input_tokens": 1_000, "cache_creation_input_tokens": 20, **usage}
    counts["output_tokens"] = output
    return claude_line("assistant", content, request_id, message={"model": model, "usage": counts})


def pi_message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, **more}}


def pi_answer(content: Any, stop: str = "stop", total: int = 100) -> dict[str, Any]:
    usage = {"input": 10 if total else 0, "output": 7, "cacheRead": max(0, total - 10), "cacheWrite": 0}
    return pi_message("assistant", content, provider="anthropic", model="m", usage=usage, stopReason=stop)


def sent(recording: Recording) -> list[str]:
    """The texts that would go out."""
    provider, model = recording.model
    request = build_request(recording.messages, fold_records(recording.records), Target(provider, model))
    return [message.text for message in request.messages]


def pi_line(ident: str, parent: str | None, role: str, text: str) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], "provider": "p", "model": "m"}
    return {"type": "message", "id": ident, "parentId": parent, "message": message}
