"""What an MCP server asks of this program: the person's words, the model's, and the folders it is to work in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.config.paths import at_home
from tui.text.clean import clean_text
from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.questions import Ask, LinkQuestion, Question, Reply, SampleQuestion, form_question

if TYPE_CHECKING:
    import mcp.types as types
    from mcp.client.session import ClientRequestContext

    from tui.tools.mcp.connection import Connection

REJECTED = -1
"""The code that MCP has for sampling which the person did not allow."""

MOST_TURNED_DOWN = 5
"""Questions in a row that the person may turn down; then a server asks no more before it is started anew."""

LONGEST_MESSAGE = 4_000  # characters of a question


class ServerRequests:
    """The SDK's callbacks of one connection. `ask` asks the person; None: nobody can be asked.

    `connection` is set once it is open: before that nobody is asked.
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
                return Reply("cancel", problem="nobody can be asked now")
            with self.connection.unhurried():
                reply = await self._ask(question)
            self._turned_down = 0 if reply.action == "accept" else self._turned_down + 1
            return reply

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """The folders."""
        import mcp.types as types

        del context
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri, "name": name} for uri, name in self.roots]})

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """What the person answers."""
        import mcp.types as types

        del context
        try:
            question = question_of(self._server, params)
        except ValueError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"chatctx can't ask for {error}")
        reply = await self._answer(question)
        content = None if reply.content is None else dict(reply.content)
        return types.ElicitResult.model_validate({"action": reply.action, "content": content})

    async def opened(self, data: object) -> bool:
        """Whether the person has opened every address that a call needs, by the `data` of the error that says so."""
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
        """What the model answers, if the person allows it."""
        import mcp.types as types

        del context
        try:
            question = sample_of(self._server, params)
        except ValueError as error:
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"chatctx can't sample {error}")
        reply = await self._answer(question)
        if reply.sampled is None:
            return types.ErrorData(code=REJECTED, message=reply.problem or "the person did not allow it")
        content = types.TextContent(type="text", text=reply.sampled.text)
        return types.CreateMessageResult(
            role="assistant", content=content, model=reply.sampled.model, stop_reason=reply.sampled.stop_reason
        )


class Notifications:
    """The SDK's callback for notifications. `changed`: a list changed; `updated`: the resource with this URI did."""

    def __init__(self, changed: Callable[[], None], updated: Callable[[str], None]) -> None:
        self._changed = changed
        self._updated = updated

    async def message(self, message: object) -> None:
        """One notification."""
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


def question_of(server: str, params: types.ElicitRequestParams) -> Question:
    """What a server asks. Raises ValueError for what can't be asked."""
    message = clean_text(params.message[:LONGEST_MESSAGE])
    if params.mode == "url":
        if not params.url.startswith(("https://", "http://")) or not params.url.isprintable():
            raise ValueError("an address that is none of the web")
        return LinkQuestion(server, message, params.url)
    return form_question(server, message, params.requested_schema)


def sample_of(server: str, params: types.CreateMessageRequestParams) -> SampleQuestion:
    """What a server wants the model to answer. Raises ValueError for what is no text."""
    messages = []
    for message in params.messages:
        texts = []
        for block in message.content_as_list:
            if block.type != "text":
                raise ValueError(f"content of the type {block.type}")
            texts.append(block.text)
        messages.append((message.role, "\n\n".join(texts)))
    if params.tools or not messages:
        raise ValueError("with tools" if params.tools else "nothing")
    return SampleQuestion(server, params.system_prompt or "", tuple(messages), max(1, params.max_tokens))


def roots_of(config: ServerConfig) -> list[tuple[str, str]]:
    """URI and name of each folder that a server is told to work in: the working directory, or those that are set."""
    folders = [at_home(folder).absolute() for folder in config.roots] if config.roots is not None else [Path.cwd()]
    return [(folder.as_uri(), folder.name or str(folder)) for folder in folders]
