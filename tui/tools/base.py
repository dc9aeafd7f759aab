"""What a tool is: something the model may call, with what it costs to offer and whether it changes anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tui.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class ToolImage:
    """An image a tool gave back; `data` is its bytes, not base64."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gave back, whole: capping is the toolbox's business.

    `more` tells the model how to get at what capping leaves out; "" where there is no better way than to ask for less.
    """

    text: str
    is_error: bool = False
    images: tuple[ToolImage, ...] = ()
    more: str = ""


class ToolError(Exception):
    """A tool could not do what it was asked. `str()` is for the model and the person: the cause and a way on."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what the model is told of it, and how it runs.

    `read_only` lets it run without asking, so it is never taken from what a server says of itself. `run` gets the
    arguments already read from JSON; it may raise `ToolError`, and it is cancelled when the turn is. `ask_reason` says
    why a call with these arguments asks even so ("" if it does not); it may read the disk. Where a person approved
    it, `run_approved` runs, with the reason they were told: it may not hold any more.
    """

    schema: ToolSchema
    read_only: bool
    run: Callable[[Mapping[str, Any]], Awaitable[ToolOutput]]
    ask_reason: Callable[[Mapping[str, Any]], str] | None = None
    run_approved: Callable[[Mapping[str, Any], str], Awaitable[ToolOutput]] | None = None


class ToolSource(Protocol):
    """Where tools come from: the built-in ones, or one MCP server. What it offers may change while it runs."""

    @property
    def name(self) -> str:
        """Either "built-in", or the server's name: the `origin` of its schemas."""
        ...

    def tools(self) -> Sequence[Tool]:
        """What can be called now, in a fixed order: the order is part of the provider's cache key."""
        ...
