"""OpenAI Responses at any base URL. Stateless: the server stores nothing."""

from __future__ import annotations

from dataclasses import replace

from tui.messages import Request
from tui.providers.base import Capabilities
from tui.providers.capabilities import responses_capabilities
from tui.providers.config import ResponsesStyle
from tui.providers.dialect import DialectProvider
from tui.providers.http.client import Client
from tui.providers.http.refusals import Cause
from tui.providers.models.discovery import input_tokens
from tui.providers.openai_responses.reader import ResponsesReader
from tui.providers.openai_responses.wire import to_wire
from tui.providers.wire import Json

# Fields of a request that the counting route accepts.
_COUNTED = ("model", "input", "instructions", "tools", "reasoning")


class OpenAIResponses(DialectProvider[ResponsesStyle]):
    """One server that speaks Responses."""

    dialect = "openai-responses"
    route = "/responses"
    reader = ResponsesReader

    def _first_style(self, model: str) -> ResponsesStyle:
        return self.config.responses_style(model)

    def _body(self, request: Request, style: ResponsesStyle) -> Json:
        return to_wire(request, style)

    async def _count(self, client: Client, body: Json) -> int | None:
        counted = {key: value for key, value in body.items() if key in _COUNTED}
        return await input_tokens(client, "/responses/input_tokens", counted, self.name)

    def _adapted(self, style: ResponsesStyle, cause: Cause, request: Request) -> ResponsesStyle | None:
        match cause:
            case "summaries":
                return replace(style, summaries=False)
            case "streams":
                return replace(style, streams=False)
            case _:
                return None

    def _lessons(self, style: ResponsesStyle, first: ResponsesStyle) -> tuple[str, ...]:
        lines = super()._lessons(style, first)
        if not style.summaries:
            lines += ("Its reasoning is not summarized: OpenAI does that for verified organizations",)
        if not style.streams:
            lines += ("Its answers come whole: OpenAI streams them to verified organizations",)
        return lines

    def capabilities(self, model: str) -> Capabilities:
        """What is known of `model` without asking the server."""
        return responses_capabilities(model, official=self.config.official)
