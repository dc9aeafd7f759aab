"""Facts about the models in use: window, longest answer, whether they call tools, and which model really answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from math import inf
from types import NoneType
from typing import Any

from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings
from tui.context.counting.families import another_family
from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits, with_window
from tui.providers.base import ModelInfo, Provider, ProviderError
from tui.providers.catalog import resolve_limits

log = logging.getLogger(__name__)

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("set", "learned", "cut", "answer", "taken"), int),
    **dict.fromkeys(("answering", "how"), str),
    "asked": dict,
    "raised": bool,
    "tools": (bool, NoneType),
}
AT_MOST = "at most: its server refused more"  # a guess, from a refusal without a number: for one run
MIN_WINDOW = 256  # tokens; what a server says is less is no window, but a placeholder
AGAIN_SECONDS = 3.0  # delays the end of a turn; local servers answer quickly


class ModelFacts:
    """A window is what the person set, what answers and refusals taught, or what the server or the catalog says.

    Everything is stored, as one JSON object under the model's full name: "set" (`/window`), "asked" (limits by server
    or catalog), "tools", "answering" (the model that answers), "learned", "raised" and "how" (a window), "cut" (where
    prompts are cut), "answer" (its longest one), "taken" (the largest input that was answered). What was learned of a
    window holds until the server says another.
    """

    def __init__(self, store: SessionStore, settings: Settings, provider: Callable[[str], Provider]) -> None:
        self._store = store
        self._settings = settings
        self._provider = provider
        self._facts: dict[str, dict[str, Any]] = {}  # those read so far
        self._asked: set[tuple[str, str]] = set()  # in this run
        self._ask_again: dict[tuple[str, str], bool] = {}  # whether to, once, since there was no answer
        self._announced: set[tuple[str, str, str]] = set()

    # -- asking ------------------------------------------------------------------------------------------------------

    def limits(self, provider: str, model: str) -> ModelLimits:
        """What is known without asking."""
        limits = self._limits(provider, model)
        answering = self.answering(provider, model)
        if answering == model or limits.source == "setting":
            return limits
        actual = self._limits(provider, answering)
        if actual.context is None:
            return limits
        # What the server says of the name that it was asked for also holds for who answers, unless more has fitted.
        binding = limits.source == "probe" and actual.source != "learned"
        return limits if binding and (limits.context or inf) < actual.context else actual

    def _limits(self, provider: str, model: str) -> ModelLimits:
        facts = self._of(provider, model)
        base = ModelLimits(**facts["asked"]) if facts.get("asked") else UNKNOWN_LIMITS  # maybe in an earlier run
        if base.context is not None and base.context < MIN_WINDOW:
            base = replace(UNKNOWN_LIMITS, detail=f"{base.detail} says {base.context:,}, too few for a window")
        set_window = facts.get("set") or self._settings.for_model(f"{provider}/{model}").window
        cut, learned, most = facts.get("cut"), facts.get("learned"), facts.get("answer")
        limits = base
        if set_window:
            limits = with_window(base, set_window, "setting", "set by you")
        elif cut:
            limits = with_window(base, cut, "learned", "the server cut a longer prompt")
        elif learned and (facts.get("raised") or base.context is None or learned < base.context):
            limits = with_window(base, learned, "learned", str(facts.get("how", "learned from the server")))
        return replace(limits, output=min(most, limits.output or most)) if most else limits

    def takes_tools(self, provider: str, model: str) -> bool | None:
        """Whether the model calls tools, by its server; None is unknown."""
        return self._of(provider, model).get("tools")

    def answering(self, provider: str, model: str) -> str:
        """The model that answers where `model` is asked, by its last answer: mostly `model` itself."""
        return str(self._of(provider, model).get("answering") or model)

    async def find(self, provider: str, model: str) -> ModelLimits:
        """Like `limits`, after asking the server once per run, also whether the model calls tools.

        Raises nothing: without an answer the last one holds.
        """
        for name in dict.fromkeys((model, self.answering(provider, model))):
            if (provider, name) not in self._asked:
                await self._ask_and_store(provider, name)
        return self.limits(provider, model)

    async def _ask_and_store(self, provider: str, model: str) -> None:
        try:
            info = await self._provider(provider).describe(model)
        except ProviderError as error:
            log.info("%s says nothing of %s: %s", provider, model, error)
            info = ModelInfo(model)
        limits, answers = await resolve_limits(provider, model, info.limits), dict[str, Any]()
        if (limits.context or inf) < MIN_WINDOW and (known := await resolve_limits(provider, model, None)).context:
            limits = known
        if limits.context is None:
            self._ask_again.setdefault((provider, model), True)
        else:
            answers["asked"] = asdict(limits)
        if info.tools is not None:
            answers["tools"] = info.tools
        facts = self._of(provider, model)
        if _reconfigured(facts, answers) != facts:
            try:
                await asyncio.to_thread(self._change, provider, model, lambda facts: _reconfigured(facts, answers))
            except StoreError as error:
                log.warning("what a server says of %s/%s is not stored: %s", provider, model, error)
                self._facts[_key(provider, model)] = _reconfigured(facts, answers)
        self._asked.add((provider, model))

    async def find_loaded(self, provider: str, model: str) -> None:
        """Ask once more after an answer, if the server did not say the window. Raises nothing.

        One that loads models on demand (Ollama, LM Studio) knows it only now.
        """
        if not self._ask_again.get((provider, model)):
            return
        self._ask_again[provider, model] = False
        self._asked.discard((provider, model))
        try:
            async with asyncio.timeout(AGAIN_SECONDS):
                await self.find(provider, model)
        except TimeoutError:
            log.info("%s does not say the window of %s", provider, model)

    def ask_anew(self, provider: str, model: str) -> None:
        """Ask the server again before the next request: its window does not seem to be what it said.

        Ollama reloads a model with another window when another program asks for that.
        """
        self._asked.discard((provider, model))

    # -- what a person sets -----------------------------------------------------------------------------------------

    def set_window(self, provider: str, model: str, window: int) -> None:
        """Set the window, in tokens. Raises `StoreError`."""
        self._change(provider, model, lambda facts: facts | {"set": window})

    def reset_window(self, provider: str, model: str) -> None:
        """Forget what was set and learned about the window, and ask the server again. Raises `StoreError`."""
        self._keep_only(provider, model, ("asked", "tools"))

    def forget(self, provider: str, model: str) -> None:
        """Forget what was learned, and ask the server again; what a person set stays. Raises `StoreError`."""
        self._keep_only(provider, model, ("asked", "set"))

    def _keep_only(self, provider: str, model: str, names: tuple[str, ...]) -> None:
        for each in {model, self.answering(provider, model)}:
            self._change(provider, each, lambda facts: {key: facts[key] for key in names if key in facts})
            self._asked.discard((provider, each))

    def lessons(self, provider: str, model: str) -> tuple[str, ...]:
        """What was learned about a model, one line each for a person."""
        answering = self.answering(provider, model)
        facts = self._of(provider, answering)
        lines = []
        if self.takes_tools(provider, model) is False:
            lines.append("Its server reports no support for tools: none are offered")
        if answering != model:
            lines.append(f"{answering} answers, so that its tokens, window and price hold")
        if facts.get("cut"):
            lines.append(f"Its server cuts prompts that are longer than {facts['cut']:,} tokens")
        if facts.get("learned"):
            lines.append(f"Its window is {facts['learned']:,} tokens ({facts.get('how', 'learned from the server')})")
        if facts.get("answer"):
            lines.append(f"Its answers have {facts['answer']:,} tokens at most")
        return tuple(lines)

    # -- learning (all raise `StoreError`) ---------------------------------------------------------------------------

    def learn_tools(self, provider: str, model: str, takes_tools: bool | None) -> None:
        """Learn from a refusal whether the model calls tools; None forgets it."""
        self._change(provider, model, lambda facts: facts | {"tools": takes_tools})

    def learn_answering(self, provider: str, model: str, answered: str) -> bool:
        """The server named `answered` as the model of an answer. Returns whether that is another family than before."""
        answering = answered if another_family(model, answered) else model
        if not answered or answering == self.answering(provider, model):
            return False
        self._change(provider, model, lambda facts: facts | {"answering": "" if answering == model else answering})
        return answering != model

    def learn_window(
        self, provider: str, model: str, limit: int, refused: int, *, counted: bool = False, named: bool = True
    ) -> None:
        """Learn `limit` tokens from the refusal of an input of `refused` tokens, which the server `counted` itself.

        Without `named` the server said no number: `limit` is what it may be at most.

        Below an input that was accepted only if the server has evidently another window now (restarted, or another one
        behind the same address): it counted what it refused, or refused less than it accepted.
        """
        model = self.answering(provider, model)
        floor = int(self._of(provider, model).get("taken", 0))
        if limit < floor < refused and not counted:
            log.warning("limit of %d tokens not believed for %s/%s: %d fitted", limit, provider, model, floor)
            return
        how = "named by the server's refusal" if named else AT_MOST
        learned = {"learned": limit, "raised": False, "how": how, "taken": min(floor, limit)}
        self._change(provider, model, lambda facts: facts | learned)

    def learn_longest_answer(self, provider: str, model: str, most: int) -> None:
        """Learn the longest answer of a model, `most` tokens, from the refusal of a longer one."""
        self._change(provider, self.answering(provider, model), lambda facts: facts | {"answer": most})

    def learn_cut(self, provider: str, model: str, window: int) -> str:
        """Learn that the server cuts prompts longer than `window` tokens. Returns what applies, for the person."""
        limits, seems = self.limits(provider, model), f"Its window seems to be {window:,} tokens"
        if limits.source == "setting":
            return f"{seems}, not what you set."
        model = self.answering(provider, model)
        if limits.context is None or window < limits.context:
            self._change(provider, model, lambda facts: facts | {"cut": window})
        return f"{seems}, which chatctx uses from now on."

    def learn_fitted(self, provider: str, model: str, tokens: int, output: int) -> str:
        """Learn from an answered input of `tokens` tokens with `output` tokens.

        If both together exceed the known window it is raised, unless a person set it. Returns what they should know of
        that, "" for nothing. Only the input limits later refusals, since some servers write beyond their window.
        """
        total, limits = tokens + output, self.limits(provider, model)
        above = limits.context is not None and total > limits.context
        if above and limits.source == "setting":
            told = not self.tell_once(provider, model, "against setting")
            return "" if told else f"{total:,} tokens fitted, more than the window you set. /window reset uses that"
        model = self.answering(provider, model)

        def fitted(facts: dict[str, Any]) -> dict[str, Any]:
            if above:
                facts = {key: value for key, value in facts.items() if key != "cut"}
                facts |= {"learned": total, "raised": True, "how": "a request of that size was answered"}
            return facts | {"taken": max(tokens, int(facts.get("taken", 0)))}

        if above or tokens > int(self._of(provider, model).get("taken", 0)):
            self._change(provider, model, fitted)
        return f"This window is larger than assumed: {total:,} tokens fitted. /window shows it" if above else ""

    def tell_once(self, provider: str, model: str, topic: str) -> bool:
        """Whether this is the first time in this run that a model is reported on `topic`."""
        new = (provider, model, topic) not in self._announced
        self._announced.add((provider, model, topic))
        return new

    # -- storage -----------------------------------------------------------------------------------------------------

    def _of(self, provider: str, model: str) -> dict[str, Any]:
        key = _key(provider, model)
        if key not in self._facts:
            self._facts[key] = _readable(self._store.state(key))
        return self._facts[key]

    def _change(self, provider: str, model: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Raises `StoreError`. Changes stored by another program in the meantime are kept, and apply here too."""
        key = _key(provider, model)
        self._facts[key] = self._store.change_state(key, lambda stored: change(_readable(stored)))


def _readable(stored: dict[str, Any]) -> dict[str, Any]:
    """Those of the stored facts that have the type they have here: others are of a newer version, or damaged."""
    facts: dict[str, Any] = {key: value for key, value in stored.items() if isinstance(value, _TYPES.get(key, object))}
    if (asked := facts.pop("asked", None)) is not None:
        with suppress(TypeError):
            facts["asked"] = asdict(ModelLimits(**asked))
    return facts


def _reconfigured(facts: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """`facts` with what the same source says now; of another window nothing was learned yet, and nothing is guessed."""
    before, now, outdated = facts.get("asked"), answers.get("asked"), tuple[str, ...]()
    if before and now and before["source"] == now["source"] and before["context"] != now["context"]:
        outdated = ("cut", "learned", "raised", "how", "taken")
    elif now and facts.get("how") == AT_MOST:
        outdated = ("learned", "raised", "how")
    facts = {key: value for key, value in facts.items() if key not in outdated}
    return facts | answers


def _key(provider: str, model: str) -> str:
    return f"window:{provider}/{model}"
