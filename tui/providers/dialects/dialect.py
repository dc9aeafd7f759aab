"""What the three dialects share: reading an answer, one client, retries in another style after a refusal.

See `tui/providers/README.md`, "What a server's refusals teach".
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from tui.messages import EFFORTS, Request, ToolSchema, Usage
from tui.providers import discovery
from tui.providers.base import (
    MAX_NAME,
    ModelInfo,
    ModelNamed,
    Provider,
    ProviderError,
    StreamEnd,
    StreamEvent,
    UsageUpdate,
)
from tui.providers.capabilities import USUAL
from tui.providers.config import ProviderConfig
from tui.providers.http.client import Client, connect
from tui.providers.http.refusals import Cause, efforts_after_refusal, refused
from tui.providers.http.sse import event_cost, too_large
from tui.providers.http.transport import events, foreign_error
from tui.providers.text_repairs import SurrogateJoiner, ThinkTags
from tui.providers.tool_schemas import tool_sent
from tui.providers.usage_reading import merged_usage
from tui.providers.wire import Json, as_object

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a server takes requests for one model, from its documentation, its model list, and what it refused.

    `efforts`: those of reasoning that it accepts (of `EFFORTS`); None is unknown.
    """

    efforts: tuple[str, ...] | None = None
    plain_schemas: bool = False  # refuses tools for keywords in their schemas
    short_descriptions: bool = False  # refuses tool descriptions of more than 1,024 characters

    def effort(self, requested: str | None) -> str | None:
        """The effort sent: `requested`, the next higher one that is accepted, or the highest; None sends none."""
        if requested is None or self.efforts is None or requested in self.efforts:
            return requested
        accepted = [effort for effort in EFFORTS if effort in self.efforts]
        higher = [effort for effort in accepted if EFFORTS.index(effort) > EFFORTS.index(requested)]
        return higher[0] if higher else accepted[-1] if accepted else None

    def tool(self, tool: ToolSchema) -> ToolSchema:
        """`tool` with the schema and the description that are sent."""
        return tool_sent(tool, self.plain_schemas, self.short_descriptions)

    def tools(self, request: Request, schema: str) -> list[Json]:
        """The tools of `request` as JSON, with their schemas under the name `schema`."""
        return [
            {"name": tool.name, "description": tool.description, schema: as_object(tool.parameters)}
            for tool in map(self.tool, request.tools)
        ]


@dataclass(frozen=True, slots=True)
class Change:
    """What a refusal for `cause` changes in a style: `field` becomes `value`.

    `lesson` tells it to a person, "" for nothing worth telling. `with_tools`: only for requests that offer tools.
    """

    cause: Cause
    field: str
    value: bool
    lesson: str = ""
    with_tools: bool = False


_CHANGES = (
    Change(
        "schema", "plain_schemas", True, "It refused the schema of a tool: all are sent in fewer words", with_tools=True
    ),
    Change(
        "description",
        "short_descriptions",
        True,
        "It refused a tool's description: none is sent longer than 1,024 characters",
        with_tools=True,
    ),
)

StyleT = TypeVar("StyleT", bound=Style)


class Reader(ABC):
    """Reads one streamed answer: feed every event, then call `finish` when the stream has ended. Pure.

    `provider` is named in errors.
    """

    def __init__(self, provider: str = "") -> None:
        self._provider = provider
        self._model = ""
        self._end: StreamEnd | None = None
        self.usage: Usage | None = None  # reported so far

    @property
    def ended(self) -> bool:
        """Whether the server has said how the answer ends."""
        return self._end is not None

    @abstractmethod
    def feed(self, event: Json, /) -> Iterator[StreamEvent]:
        """The stream events of one event of the server. Raises `ProviderError` for a failure that it reports."""

    def finish(self) -> Iterator[StreamEvent]:
        """Events known only at the end, and the end mark if there was one. May raise `ProviderError`."""
        if self._end is not None:
            yield self._end

    def _name_model(self, model: object) -> Iterator[StreamEvent]:
        if isinstance(model, str) and 0 < len(model) <= MAX_NAME and model != self._model:
            self._model = model
            yield ModelNamed(model)

    def _report(self, usage: Usage | None) -> Iterator[StreamEvent]:
        """Merge a report of usage with those before it."""
        merged = self.usage if usage is None else merged_usage(self.usage, usage)
        if merged is not None and merged != self.usage:
            self.usage = merged
            yield UsageUpdate(merged)


class DialectProvider(Provider, Generic[StyleT]):
    """One server. Subclasses write requests and read answers."""

    route: ClassVar[str]  # the path that answers
    reader: ClassVar[type[Reader]]
    changes: ClassVar[tuple[Change, ...]] = ()  # those that only this dialect knows

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._styles: dict[str, StyleT] = {}  # model -> style learned from refusals, once it led to an answer
        self._listed: dict[str, ModelInfo] = {}  # model -> its entry in the server's list

    # -- what a subclass implements ----------------------------------------------------------------------------------

    @abstractmethod
    def _first_style(self, model: str) -> StyleT:
        """The style of `model` before any request."""

    @abstractmethod
    def _body(self, request: Request, style: StyleT) -> Json:
        """The JSON body of `request`. Called in a thread: attachments can be large."""

    def _adapted(self, style: StyleT, cause: Cause, request: Request) -> StyleT | None:
        """The style to try next after a refusal that `changes` don't cover, or None."""
        return None

    async def _connect(self) -> Client:
        return await connect(self.config, await self.config.key())

    async def _before_end(self, request: Request, reader: Reader) -> list[StreamEvent]:
        """Events that the server left out of a complete answer."""
        return []

    # -- the client --------------------------------------------------------------------------------------------------

    async def client(self) -> Client:
        """The server's client, created at first use. Raises `ProviderError` if there is no key."""
        async with self._connecting:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def prepare(self) -> None:
        """Load the HTTP library and the certificates. Raises `ProviderError` if there is no key."""
        await self.client()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    # -- answers -----------------------------------------------------------------------------------------------------

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the answer's events: in whole characters, with reasoning separated from text. Raises `ProviderError`.

        Pending text is emitted if the stream breaks off.
        """
        joiner, tags, size = SurrogateJoiner(), ThinkTags(on=not self.config.official), 0
        async with aclosing(self._answer(request)) as answer:
            try:
                async for event in answer:
                    size += event_cost(event)
                    if size > self.config.max_response:
                        raise too_large(self.name, self.config.max_response)
                    for read in tags.read(joiner.read(event)):
                        yield read
            except ProviderError:
                for read in tags.flush():
                    yield read
                raise
        for read in tags.read(joiner.rest()):
            yield read
        for read in tags.flush():
            yield read

    async def _answer(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Send the request, again in another style if a refusal suggests one. Only a style that worked is kept."""
        style = self.style(request.model)
        tried = [style]
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(request, style)) as answer:
                    async for event in answer:
                        if not begun and not isinstance(event, ModelNamed):
                            begun = True
                            if style != self.style(request.model):
                                self._styles[request.model] = style
                        yield event
                return
            except ProviderError as error:
                changed = None if begun else self._after(error, style, request)
                if changed is None or changed in tried:
                    raise
                log.warning("%s is asked otherwise: %s", request.model, error)
                style = changed
                tried.append(style)

    async def _attempt(self, request: Request, style: StyleT) -> AsyncGenerator[StreamEvent, None]:
        """Send the request once. Raises `ProviderError`."""
        client, reader = await self.client(), self.reader(self.name)
        last: Json = {}
        body = await asyncio.to_thread(self._body, request, style)
        try:
            async with aclosing(events(client, self.route, body)) as received:
                async for last in received:
                    for event in reader.feed(last):
                        yield event
        except ProviderError as error:
            if not (reader.ended and error.kind in ("network", "protocol")):
                raise  # otherwise the answer is complete; only its tail (usage, a closing event) is missing
        if reader.ended:
            for event in await self._before_end(request, reader):
                yield event
        for event in reader.finish():
            yield event
        if not reader.ended and (failure := foreign_error(last, self.name)):
            raise failure

    def style(self, model: str) -> StyleT:
        """How requests for `model` are written, as far as known."""
        if (learned := self._styles.get(model)) is not None:
            return learned
        style, listed = self._first_style(model), self._listed.get(model)
        return style if listed is None or listed.efforts is None else replace(style, efforts=listed.efforts)

    def _after(self, error: ProviderError, style: StyleT, request: Request) -> StyleT | None:
        """The style to try next after `error`, or None."""
        cause, sent = refused(error), style.effort(request.reasoning)
        if cause is None:
            return None
        if cause == "effort" and sent is not None:
            return replace(style, efforts=efforts_after_refusal(style.efforts, sent, str(error)))
        for change in (*_CHANGES, *self.changes):
            possible = getattr(style, change.field, change.value) != change.value
            if change.cause == cause and possible and (request.tools or not change.with_tools):
                new: dict[str, Any] = {change.field: change.value}
                return replace(style, **new)
        changed = self._adapted(style, cause, request)
        if changed is None and cause == "field" and sent is not None:  # a strict server that doesn't name the field
            return replace(style, efforts=())
        return changed

    # -- what was learned --------------------------------------------------------------------------------------------

    def efforts(self, model: str) -> tuple[str, ...]:
        """The reasoning efforts of `model`, as far as known."""
        efforts = self.style(model).efforts
        return ("off", *USUAL) if efforts is None else efforts

    def effort_sent(self, model: str, requested: str | None) -> str | None:
        """The effort sent to `model` for `requested`; None sends none."""
        return self.style(model).effort(requested)

    def tools_sent(self, model: str, tools: Sequence[ToolSchema]) -> tuple[ToolSchema, ...]:
        """`tools` as they go out to `model`, so that what is counted is what is sent."""
        return tuple(map(self.style(model).tool, tools))

    def learned(self, model: str) -> tuple[str, ...]:
        """What refusals taught about `model` in this run, one line each."""
        if (style := self._styles.get(model)) is None:
            return ()
        first, lines = self._first_style(model), []
        if style.efforts != first.efforts and style.efforts is not None:
            efforts = ", ".join(style.efforts)
            lines.append(f"It takes the reasoning efforts {efforts}" if efforts else "It takes no reasoning effort")
        for change in (*_CHANGES, *self.changes):
            if change.lesson and getattr(style, change.field) == change.value != getattr(first, change.field):
                lines.append(change.lesson.format(provider=self.name))
        return tuple(lines)

    def forget(self, model: str) -> None:
        """Forget what was learned about `model`."""
        self._styles.pop(model, None)

    # -- what the server knows ---------------------------------------------------------------------------------------

    async def models(self) -> list[ModelInfo]:
        """The models offered by the server. Raises `ProviderError`."""
        infos = await discovery.list_models(await self.client())
        self._listed |= {info.id: info for info in infos}
        return infos

    async def describe(self, model: str) -> ModelInfo:
        """What the running server says of `model`. Raises `ProviderError`."""
        self._listed[model] = await discovery.describe(await self.client(), model)
        return self._listed[model]

    async def count_tokens(self, request: Request) -> int | None:
        """The server's count of the input, in tokens; None if it has no such route. Raises `ProviderError`."""
        if self.capabilities(request.model).count_endpoint is False:
            return None
        body = await asyncio.to_thread(self._body, request, self.style(request.model))
        return await discovery.input_tokens(await self.client(), body)
