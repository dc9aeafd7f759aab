"""Names under which server tools are offered to a model. Pure.

They are valid for every provider, unique, and stable as long as the server offers the same tools.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

MOST = 64
"""Characters: OpenAI and Anthropic take `^[a-zA-Z0-9_-]{1,64}$`."""

SEPARATOR = "__"


def offered_names(server: str, tools: Sequence[str]) -> list[str]:
    """A name for each of `tools`, in order.

    A name that had to be changed to be valid or short ends in six letters of the original's hash: so it depends on
    nothing but the server's and the tool's own name.
    """
    return [_name(server, tool) for tool in tools]


def log_name(server: str) -> str:
    """The name of a server's log file: the server's own name may not be one of a file."""
    clean = re.sub(r"[^a-zA-Z0-9_.-]", "_", server)
    mark = "" if clean == server else "-" + hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"mcp-{clean}{mark}.log"


def _name(server: str, tool: str) -> str:
    plain = f"{server}{SEPARATOR}{tool}"
    clean = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    if clean == plain and len(plain) <= MOST and SEPARATOR not in f"{server}_" and tool:
        return plain
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{clean[: MOST - 7]}_{mark}"
