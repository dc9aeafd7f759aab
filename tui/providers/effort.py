"""A wish for more or less reasoning that a model does not take: asked again without it, and not wished again."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, runtime_checkable

from tui.messages import Request
from tui.providers.base import ProviderError, StreamEvent

log = logging.getLogger(__name__)

# The field by name, or a strict server's words for one that it does not know.
_REFUSED = re.compile(
    r"reasoning|thinking|effort|unknown (?:field|parameter|argument)|unrecogni[sz]ed|unsupported (?:parameter|value)"
    r"|extra (?:inputs|fields)|additional propert",
    re.IGNORECASE,
)
# DeepSeek's and Kimi's words for an answer without its thought, which the wish has nothing to do with.
_NOT_THE_WISH = re.compile(r"must be passed back|is missing in assistant", re.IGNORECASE)


class Effort:
    """What one server's models refused of `Request.reasoning`.

    Models differ in the efforts they take, and some take none; no list of that is whole. What is refused is the wish,
    so the answer comes without it.
    """

    def __init__(self) -> None:
        self._refused: set[tuple[str, str]] = set()  # model, effort

    def refuses(self, model: str, wish: str | None) -> bool:
        """Whether `model` refused this wish, so that it is left out."""
        return wish is not None and (model, wish) in self._refused

    async def stream(
        self, answer: Callable[[Request], AsyncGenerator[StreamEvent, None]], request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of `answer(request)`. Raises `ProviderError`."""
        wish = request.reasoning
        if wish is not None and not self.refuses(request.model, wish):
            begun = False
            try:
                async with aclosing(answer(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except ProviderError as error:
                if begun or error.kind != "bad_request" or not _is_of_the_wish(str(error)):
                    raise
                log.warning("asked without the reasoning effort %r, which %s refused: %s", wish, request.model, error)
            self._refused.add((request.model, wish))
        async with aclosing(answer(replace(request, reasoning=None))) as events:
            async for event in events:
                yield event


@runtime_checkable
class LeavesOut(Protocol):
    """A provider that leaves out efforts its models refuse."""

    effort: Effort


def effort_refused(provider: object, model: str, wish: str | None) -> bool:
    """Whether `provider` asks `model` without the effort `wish`, because it was refused."""
    return isinstance(provider, LeavesOut) and provider.effort.refuses(model, wish)


def _is_of_the_wish(refusal: str) -> bool:
    return _REFUSED.search(refusal) is not None and _NOT_THE_WISH.search(refusal) is None
