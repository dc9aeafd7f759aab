"""The interface of tools: what a model may call, what offering it costs, and whether it changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from tui.errors import ExpectedError
from tui.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class ToolImage:
    """An image returned by a tool; `data` is its bytes, not base64."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The full result of a tool; capping is done by the toolbox.

    `more` tells the model how to get what capping cuts off; "" if asking for less is all that can be done.
    """

    text: str
    is_error: bool = False
    images: tuple[ToolImage, ...] = ()
    more: str = ""


progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda _text: None)
"""Reports the progress of the running call, a few words for a person. On the event loop."""


class ToolError(ExpectedError):
    """A tool failed. `str()` tells the model and the person why and what to do."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what the model is shown, and how it runs.

    `read_only` lets it run without asking, so it never comes from a server. `run` gets the parsed arguments; it may
    raise `ToolError`, and is cancelled with the turn. `ask_reason` says why a call with these arguments asks anyway (""
    if it does not); it may read the disk. After approval `run_approved` runs, with the reason that the person was
    shown, which may be outdated.
    """

    schema: ToolSchema
    read_only: bool
    run: Callable[[Mapping[str, Any]], Awaitable[ToolOutput]]
    ask_reason: Callable[[Mapping[str, Any]], str] | None = None
    run_approved: Callable[[Mapping[str, Any], str], Awaitable[ToolOutput]] | None = None


class ToolSource(Protocol):
    """A source of tools: the built-in ones, or an MCP server. Its tools may change at any time."""

    @property
    def name(self) -> str:
        """ "built-in" or the server's name: the `origin` of its schemas."""
        ...

    def tools(self) -> Sequence[Tool]:
        """The tools that can be called now, in a fixed order: the order is part of the provider's cache key."""
        ...
