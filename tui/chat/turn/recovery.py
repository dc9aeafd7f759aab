"""What to do about a failed request: wait, ask for a shorter answer, trim or compact, leave something out."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import TypeAlias

from tui.messages import Attachment, Request
from tui.providers.base import ErrorKind, ProviderError
from tui.providers.http.refusals import cannot_read, refuses_images, refuses_tools
from tui.text.numbers import duration

MOST_WAITS = 5
FIRST_WAIT = 2.0  # seconds, doubled each time; a server's own hint wins
LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets its answer from the person
PASSING: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "server", "network"})
NETWORK_WAITS = 2  # an unreachable server seldom comes back within seconds: say so soon
LEAST_ANSWER = 64  # tokens: less than this is no answer


@dataclass(frozen=True, slots=True)
class Wait:
    """Repeat the request in `seconds` seconds."""

    seconds: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Clamp:
    """Repeat it with at most `max_output` tokens of answer."""

    max_output: int


@dataclass(frozen=True, slots=True)
class Reduce:
    """The input does not fit after all: learn the limit if one was named, trim or compact, repeat."""


@dataclass(frozen=True, slots=True)
class WithoutReasoning:
    """Repeat it without the reasoning blocks the server refused."""


@dataclass(frozen=True, slots=True)
class WithoutAttachment:
    """Repeat it without this attachment of the message `owner`, because of `why`."""

    owner: str
    attachment: Attachment
    why: str


@dataclass(frozen=True, slots=True)
class WithoutTools:
    """Repeat it without tools, and offer this model none from now on."""


@dataclass(frozen=True, slots=True)
class WithoutImages:
    """Repeat it with words in place of pictures, and send this model none in this run."""


Action: TypeAlias = Wait | Clamp | Reduce | WithoutReasoning | WithoutAttachment | WithoutTools | WithoutImages


@dataclass(slots=True)
class Recovery:
    """The memory of one turn: every remedy is tried once, waiting a few times."""

    tried: set[type[Action]] = field(default_factory=set)
    waits: int = 0

    def decide(self, error: ProviderError, request: Request, *, arrived: bool) -> Action | None:
        """What to do after `request` failed of `error`; None: tell the person. Once something `arrived`, repeating is
        their choice."""
        if arrived:
            return None
        max_output = request.max_output
        if refuses_tools(error):
            return self._once(WithoutTools())
        if refuses_images(error):
            return self._once(WithoutImages())
        if cannot_read(error):
            return self._without(request, "The server cannot read it", newest=True)
        match error.kind:
            case "overflow_output":
                most = _answer_budget(error)
                fits = most is not None and most >= LEAST_ANSWER and (max_output is None or most < max_output)
                if most is not None and fits and (clamp := self._once(Clamp(most))):
                    return clamp
                # A count that was only "at least" may leave less room than it said; a model's longest answer, or what
                # an account's credit pays for, has nothing to do with the conversation's size.
                return None if error.most_output is not None else self._once(Reduce())
            case "overflow_input" | "long_context_tier":
                return self._once(Reduce())
            case "signature":
                return self._once(WithoutReasoning())
            case "too_many_bytes":
                return self._without(request, "The request has too many bytes")
            case kind if kind in PASSING:
                return self._wait(error)
            case _:
                return None

    def _without(self, request: Request, why: str, *, newest: bool = False) -> Action | None:
        """Without the newest picture or PDF, which must be the one that is new to the server, or the largest file."""
        attachments = [(m.id, part) for m in request.messages for part in m.parts if isinstance(part, Attachment)]
        if newest:
            attachments = [(owner, part) for owner, part in attachments if part.kind != "text"][-1:]
        if not attachments:
            return None
        owner, part = max(attachments, key=lambda item: item[1].size)
        return self._once(WithoutAttachment(owner, part, why))

    def _once(self, action: Action) -> Action | None:
        if type(action) in self.tried:
            return None
        self.tried.add(type(action))
        return action

    def _wait(self, error: ProviderError) -> Action | None:
        most = NETWORK_WAITS if error.kind == "network" else MOST_WAITS
        seconds = error.retry_after if error.retry_after is not None else FIRST_WAIT * 2**self.waits
        if self.waits >= most or seconds > LONGEST_WAIT:
            return None
        self.waits += 1
        return Wait(seconds, self.waits)


def failure_text(error: ProviderError) -> str:
    """What a person is told of a failure that nothing more is done about: why, what is kept, what to do next."""
    names_the_step = error.kind != "auth" or "/provider" in str(error)
    step = "/retry asks again" if names_the_step else "/provider tries the key, /retry asks again"
    if error.retry_after is not None and error.retry_after > LONGEST_WAIT:
        step += f"; the server wants {duration(60 * ceil(error.retry_after / 60))}"
    return f"{str(error).rstrip('.')}. Your message is kept; {step}."


def _answer_budget(error: ProviderError) -> int | None:
    """Tokens there are for the answer by the server's own numbers.

    Of what a window leaves, less a margin of 1 % for a count it called "at least".
    """
    if error.most_output is not None:
        return error.most_output
    if error.limit is None or error.input_tokens is None:
        return None
    return error.limit - error.input_tokens - max(16, error.limit // 100)
