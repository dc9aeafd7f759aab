"""A wish for more or less reasoning that a model does not take: asked again without it, and not wished again."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent

log = logging.getLogger(__name__)

# The field by name, or a strict server's words for one that it does not know.
_REFUSED = re.compile(
    r"reasoning|thinking|effort|unknown (?:field|parameter|argument)|unrecogni[sz]ed|unsupported (?:parameter|value)"
    r"|extra (?:inputs|fields)|additional propert",
    re.IGNORECASE,
)


class Effort:
    """What one server's models refused of `Request.reasoning`.

    Models differ in the efforts they take, and some take none; no list of that is whole. What is refused is the wish,
    so the answer comes without it.
    """

    def __init__(self) -> None:
        self._refused: set[tuple[str, str]] = set()  # model, effort

    async def stream(
        self, answer: Callable[[Request], AsyncGenerator[StreamEvent, None]], request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of `answer(request)`. Raises `ProviderError`."""
        wish = request.reasoning
        if wish is not None and (request.model, wish) not in self._refused:
            begun = False
            try:
                async with aclosing(answer(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ProviderError as error:
                if begun or error.kind != "bad_request" or not _REFUSED.search(str(error)):
                    raise
                log.warning("asked without the reasoning effort %r, which %s refused: %s", wish, request.model, error)
            self._refused.add((request.model, wish))
        async with aclosing(answer(replace(request, reasoning=None))) as events:
            async for event in events:
                yield event
