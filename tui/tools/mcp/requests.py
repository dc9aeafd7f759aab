"""Requests and notifications of MCP servers to this program: elicitation, sampling, roots, changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.config.files import at_home
from tui.text.clean import clean_text
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.questions import Ask, LinkQuestion, Question, Reply, SampleQuestion, form_question

if TYPE_CHECKING:
    import mcp.types as types
    from mcp.client.session import ClientRequestContext

    from tui.tools.mcp.connection import Connection

REJECTED = -1  # error code for sampling that the person rejected (MCP 2025-11-25, sampling: error handling)
MOST_TURNED_DOWN = 5  # questions turned down in a row after which a server may not ask again until it is restarted
LONGEST_MESSAGE = 4_000  # characters of a question, or of a log message
MOST_LOGGED = 100  # lines of log messages in a second


class ServerRequests:
    """The SDK's request callbacks for one connection. `ask` asks the person; None if there is no one to ask.

    `connection` is set once it is open: questions before that are cancelled.
    """

    def __init__(self, config: ServerConfig, ask: Ask | None) -> None:
        self._server = config.name
        self._ask = ask
        self.roots = roots_of(config)
        self.connection: Connection | None = None
        self._turned_down = 0  # questions in a row
        self._asking = asyncio.Lock()

    async def _answer(self, question: Question) -> Reply:
        async with self._asking:
            if self._ask is None or self.connection is None or self._turned_down >= MOST_TURNED_DOWN:
                return Reply("cancel", problem="there is no one to ask")
            with self.connection.without_timeout():
                reply = await self._ask(question)
            self._turned_down = 0 if reply.action == "accept" else self._turned_down + 1
            return reply

    async def _answered(self, question: Callable[[], Question], what: str) -> Reply | types.ErrorData:
        """The reply to a question; an error for one that is not supported, which raises ValueError."""
        import mcp.types as types

        try:
            asked = question()
        except ValueError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"chatctx does not support {what} {error}")
        return await self._answer(asked)

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Answers `roots/list`."""
        import mcp.types as types

        del context
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri, "name": name} for uri, name in self.roots]})

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answers `elicitation/create` with what the person enters."""
        import mcp.types as types

        del context
        reply = await self._answered(lambda: question_of(self._server, params), "asking for")
        if isinstance(reply, types.ErrorData):
            return reply
        content = None if reply.content is None else dict(reply.content)
        return types.ElicitResult.model_validate({"action": reply.action, "content": content})

    async def opened(self, data: object) -> bool:
        """Ask the person to open the addresses in a "URL elicitation required" error. True if all were opened."""
        import mcp.types as types
        from pydantic import ValidationError

        try:
            needed = types.ElicitationRequiredErrorData.model_validate(data).elicitations
            questions = [question_of(self._server, params) for params in needed]
        except (ValidationError, ValueError):
            return False
        for question in questions:
            if (await self._answer(question)).action != "accept":
                return False
        return bool(questions)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Answers `sampling/createMessage` with a completion, if the person allows it."""
        import mcp.types as types

        del context
        reply = await self._answered(lambda: sample_of(self._server, params), "sampling with")
        if isinstance(reply, types.ErrorData):
            return reply
        if reply.sampled is None:
            return types.ErrorData(code=REJECTED, message=reply.problem or "the person did not allow it")
        content = types.TextContent(type="text", text=reply.sampled.text)
        return types.CreateMessageResult(
            role="assistant", content=content, model=reply.sampled.model, stop_reason=reply.sampled.stop_reason
        )


class Notifications:
    """The SDK's notification callback.

    `changed` is called for a list, `updated` for a resource with its URI, `logged` for each line of a log message.
    """

    def __init__(
        self, changed: Callable[[], None], updated: Callable[[str], None], logged: Callable[[str], None]
    ) -> None:
        self._changed = changed
        self._updated = updated
        self._logged = logged
        self._second, self._lines = 0, 0  # lines logged in the current second

    async def message(self, message: object) -> None:
        """Handle one notification."""
        import mcp.types as types

        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._changed()
            case types.ResourceUpdatedNotification():
                self._updated(message.params.uri)
            case types.LoggingMessageNotification():
                for line in log_lines(message.params):
                    if self._may_log():
                        self._logged(line)

    def _may_log(self) -> bool:
        """False beyond `MOST_LOGGED` lines in a second: the rest of a flood is dropped."""
        second = int(time.monotonic())
        self._second, self._lines = second, self._lines + 1 if second == self._second else 1
        return self._lines <= MOST_LOGGED


def log_lines(params: types.LoggingMessageNotificationParams) -> list[str]:
    """A log message as lines, each with its level."""
    data = params.data
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    logger = f" {params.logger}:" if params.logger else ""
    return [f"{params.level}:{logger} {line}" for line in text[:LONGEST_MESSAGE].splitlines()]


def question_of(server: str, params: types.ElicitRequestParams) -> Question:
    """The question for an elicitation. Raises ValueError for unsupported ones."""
    message = clean_text(params.message[:LONGEST_MESSAGE])
    if params.mode == "url":
        if not params.url.startswith(("https://", "http://")) or not params.url.isprintable():
            raise ValueError("an address that is not http or https")
        return LinkQuestion(server, message, params.url)
    return form_question(server, message, params.requested_schema)


def sample_of(server: str, params: types.CreateMessageRequestParams) -> SampleQuestion:
    """The question for a sampling request. Raises ValueError for content other than text."""
    messages = []
    for message in params.messages:
        texts = []
        for block in message.content_as_list:
            if block.type != "text":
                raise ValueError(f"content of the type {block.type}: text alone")
            texts.append(block.text)
        messages.append((message.role, "\n\n".join(texts)))
    if params.tools or not messages:
        raise ValueError("tools" if params.tools else "no messages")
    return SampleQuestion(server, params.system_prompt or "", tuple(messages), max(1, params.max_tokens))


def roots_of(config: ServerConfig) -> list[tuple[str, str]]:
    """URI and name of each root: the working directory, or the configured folders."""
    folders = [at_home(folder).absolute() for folder in config.roots] if config.roots is not None else [Path.cwd()]
    return [(folder.as_uri(), folder.name or str(folder)) for folder in folders]
