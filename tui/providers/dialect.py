"""What the three dialects share: one client, streaming with retries in another style, learning from refusals.

See `README.md` in this folder, "What a server's refusals teach".
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Generic, TypeVar

from tui.messages import Request, ToolSchema
from tui.providers.base import ModelInfo, ModelNamed, Provider, ProviderError, StreamEvent
from tui.providers.config import ProviderConfig, Style
from tui.providers.http.client import Client
from tui.providers.http.connection import Connection
from tui.providers.http.refusals import Cause, refused
from tui.providers.http.sizes import event_cost, too_large
from tui.providers.models import discovery
from tui.providers.reasoning import USUAL, levels_after_refusal
from tui.providers.think_tags import with_thoughts
from tui.providers.tool_schemas import tool_sent

log = logging.getLogger(__name__)

StyleT = TypeVar("StyleT", bound=Style)


class DialectProvider(Provider, Generic[StyleT]):
    """One server. Subclasses write requests and read answers."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config
        self._connection = Connection(config, self._connect)
        self._styles: dict[str, StyleT] = {}  # model -> style learned from refusals, once it led to an answer
        self._listed_efforts: dict[str, tuple[str, ...]] = {}  # model -> its entry in the server's list

    # -- what a subclass implements --------------------------------------------------------------------------

    @abstractmethod
    async def _connect(self, key: str | None) -> Client:
        """The server's client, with this key. Raises `ProviderError`."""

    @abstractmethod
    def _first_style(self, model: str) -> StyleT:
        """The style of `model` before any request."""

    @abstractmethod
    def _attempt(self, client: Client, request: Request, style: StyleT) -> AsyncGenerator[StreamEvent, None]:
        """Send the request once and yield the answer's events. Raises `ProviderError`."""

    @abstractmethod
    async def _list(self, client: Client) -> list[ModelInfo]:
        """The models offered by the server. Raises `ProviderError`."""

    def _adapted(self, style: StyleT, cause: Cause, request: Request) -> StyleT | None:
        """The style to try next after a refusal specific to this dialect, or None."""
        return None

    # -- asking --------------------------------------------------------------------------------------------------

    async def client(self) -> Client:
        """The server's client, created at first use. Raises `ProviderError` if there is no key."""
        return await self._connection.client()

    async def prepare(self) -> None:
        """Load the HTTP library and the certificates. Raises `ProviderError` if there is no key."""
        await self.client()

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events. Raises `ProviderError`."""
        return with_thoughts(self._bounded(self._answer(request)), on=not self.config.official)

    async def _bounded(self, answer: AsyncGenerator[StreamEvent, None]) -> AsyncGenerator[StreamEvent, None]:
        size = 0
        async with aclosing(answer) as events:
            async for event in events:
                size += event_cost(event)
                if size > self.config.max_response:
                    raise too_large(self.name, self.config.max_response)
                yield event

    async def _answer(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Send the request, again in another style if a refusal suggests one. Only a style that worked is kept."""
        style = self._style(request.model)
        renewed = False
        while True:
            client = await self.client()
            begun = False
            try:
                async with aclosing(self._attempt(client, request, style)) as events:
                    async for event in events:
                        if not begun and not isinstance(event, ModelNamed):
                            begun = True
                            if style != self._style(request.model):
                                self._styles[request.model] = style
                        yield event
                return
            except ProviderError as error:
                if begun:
                    raise
                if not renewed and await self._connection.renewed(error, client):
                    renewed = True
                    continue
                changed = self._after(error, style, request)
                if changed is None or changed == style:
                    raise
                log.warning("%s is asked otherwise: %s", request.model, error)
                style = changed

    def _style(self, model: str) -> StyleT:
        style = self._styles.get(model)
        if style is None:
            style = self._first_style(model)
            if (listed := self._listed_efforts.get(model)) is not None:
                style = replace(style, efforts=listed)
        return style

    def _after(self, error: ProviderError, style: StyleT, request: Request) -> StyleT | None:
        cause = refused(error)
        sent = style.effort(request.reasoning)
        match cause:
            case None:
                return None
            case "schema" if request.tools and not style.plain_schemas:
                return replace(style, plain_schemas=True)
            case "description" if request.tools and not style.short_descriptions:
                return replace(style, short_descriptions=True)
            case "effort" if sent is not None:
                return replace(style, efforts=levels_after_refusal(style.efforts, sent, str(error)))
        changed = self._adapted(style, cause, request)
        if changed is None and cause == "field" and sent is not None:  # a strict server that doesn't name the field
            return replace(style, efforts=())
        return changed

    # -- what was learned ----------------------------------------------------------------------------------------

    def efforts(self, model: str) -> tuple[str, ...]:
        """The reasoning levels of `model`, as far as known."""
        efforts = self._style(model).efforts
        return ("off", *USUAL) if efforts is None else efforts

    def effort_sent(self, model: str, wish: str | None) -> str | None:
        """The level sent to `model` for `wish`; None sends none."""
        return self._style(model).effort(wish)

    def tools_sent(self, model: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, ...]:
        """`tools` as they go out to `model`, so that what is counted is what is sent."""
        style = self._style(model)
        return tuple(tool_sent(tool, style.plain_schemas, style.short_descriptions) for tool in tools)

    def learned(self, model: str) -> tuple[str, ...]:
        """What refusals taught about `model` in this run, one line each."""
        style = self._styles.get(model)
        return () if style is None else self._lessons(style, self._first_style(model))

    def _lessons(self, style: StyleT, first: StyleT) -> tuple[str, ...]:
        lines = []
        if style.efforts != first.efforts and style.efforts is not None:
            levels = ", ".join(style.efforts)
            lines.append(f"It takes the reasoning efforts {levels}" if levels else "It takes no reasoning effort")
        if style.plain_schemas and not first.plain_schemas:
            lines.append("It refused the schema of a tool: all are sent in fewer words")
        if style.short_descriptions and not first.short_descriptions:
            lines.append("It refused a tool's description: none is sent longer than 1,024 characters")
        return tuple(lines)

    def forget(self, model: str) -> None:
        """Forget what was learned about `model`."""
        self._styles.pop(model, None)

    # -- what the server knows -----------------------------------------------------------------------------------

    async def takes_tools(self, model: str) -> bool | None:
        """Whether the server reports that `model` calls tools; None if it doesn't say. Raises `ProviderError`."""
        return await discovery.server_takes_tools(await self.client(), self.config, model)

    async def models(self) -> list[ModelInfo]:
        """The models offered by the server. Raises `ProviderError`."""

        async def listed() -> list[ModelInfo]:
            return await self._list(await self.client())

        infos = await self._connection.ask(listed)
        self._listed_efforts |= {info.id: info.efforts for info in infos if info.efforts is not None}
        return infos

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._connection.close()
