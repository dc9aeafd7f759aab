"""The windows of models: set by the person, learned from servers, or looked up."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any, Literal

from tui.chat.store.database import StoreError
from tui.chat.store.store import SessionStore
from tui.config.settings import Settings
from tui.context.counting.model_names import another_family
from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits, with_window

log = logging.getLogger(__name__)

AGAIN_SECONDS = 3.0  # delays the end of a turn; local servers answer quickly

Lookup = Callable[[str, str], Awaitable[ModelLimits]]
"""Provider name, model -> limits by the running server, the built-in table or the price data (in that order)."""


class Windows:
    """Order of precedence: a person's setting, what an overflow error taught, then `lookup`.

    What was set (`/window`) and learned is stored under the model's full name.
    """

    def __init__(self, store: SessionStore, settings: Settings, lookup: Lookup) -> None:
        self._store = store
        self._settings = settings
        self._lookup = lookup
        self._looked_up: dict[tuple[str, str], ModelLimits] = {}
        self._memory: dict[str, dict[str, Any]] = {}
        self._silent: set[tuple[str, str]] = set()  # asked in this run, without an answer
        self._asked_again: set[tuple[str, str]] = set()
        self._announced: set[tuple[str, str, str]] = set()

    def limits(self, provider: str, model: str) -> ModelLimits:
        """What is known without asking."""
        limits = self._limits(provider, model)
        answering = self.answering(provider, model)
        if answering == model or limits.source == "setting":
            return limits
        actual = self._limits(provider, answering)
        return limits if actual.context is None else actual

    def answering(self, provider: str, model: str) -> str:
        """The model that answers where `model` is asked, by its last answer: mostly `model` itself."""
        return str(self._stored(provider, model).get("answering") or model)

    def learn_answering(self, provider: str, model: str, answered: str) -> bool:
        """The server named `answered` as the model of an answer. True where that is news: another family than before.

        Raises `StoreError`.
        """
        answering = answered if another_family(model, answered) else model
        if not answered or answering == self.answering(provider, model):
            return False
        self._change(provider, model, lambda stored: {**stored, "answering": "" if answering == model else answering})
        return answering != model

    def _limits(self, provider: str, model: str) -> ModelLimits:
        base, stored = self._base(provider, model), self._stored(provider, model)
        set_window = stored.get("set") or self._settings.for_model(f"{provider}/{model}").window
        cut, learned, most = stored.get("cut"), stored.get("learned"), stored.get("answer")
        limits = base
        if set_window:
            limits = with_window(base, set_window, "setting", "set by you")
        elif cut and stored.get("cut_of") == base.context:  # the server may have been reconfigured since
            limits = with_window(base, cut, "learned", "the server cut a longer prompt")
        elif learned and (stored.get("raised") or base.context is None or learned < base.context):
            limits = with_window(base, learned, "learned", str(stored.get("how", "learned from the server")))
        return replace(limits, output=min(most, limits.output or most)) if most else limits

    def _base(self, provider: str, model: str) -> ModelLimits:
        """What the lookup answered, in this run or an earlier one."""
        if limits := self._looked_up.get((provider, model)):
            return limits
        stored = self._stored(provider, model, "asked")
        return ModelLimits(**stored) if stored else UNKNOWN_LIMITS

    async def find(self, provider: str, model: str) -> ModelLimits:
        """Like `limits`, after asking the server once per run. Raises nothing: without an answer it is unknown."""
        if (provider, model) not in self._looked_up:
            limits = await self._lookup(provider, model)
            if limits.context is None:
                self._silent.add((provider, model))
                limits = self._base(provider, model)  # no answer now, but an earlier one is stored
            else:
                try:
                    text = json.dumps(asdict(limits))
                    await asyncio.to_thread(self._store.put_state, _key(provider, model, "asked"), text)
                except StoreError as error:
                    log.warning("window not remembered: %s", error)
            self._looked_up[provider, model] = limits
        if (answering := self.answering(provider, model)) != model:
            await self.find(provider, answering)
        return self.limits(provider, model)

    async def answered(self, provider: str, model: str) -> None:
        """An answer came: a server that loads models on demand (Ollama, LM Studio) knows the window only now.

        Asks again, once, if there was no answer before in this run. Raises nothing.
        """
        if (provider, model) not in self._silent - self._asked_again:
            return
        self._asked_again.add((provider, model))
        self.forget_lookup(provider, model)
        try:
            async with asyncio.timeout(AGAIN_SECONDS):
                await self.find(provider, model)
        except TimeoutError:
            log.info("%s does not say the window of %s", provider, model)

    def forget_lookup(self, provider: str, model: str) -> None:
        """Ask again next time: the server may have been restarted with another window."""
        self._looked_up.pop((provider, model), None)

    def set(self, provider: str, model: str, window: int) -> None:
        """Set the window, in tokens, by the person. Raises `StoreError`."""
        self._change(provider, model, lambda stored: {**stored, "set": window})

    def reset(self, provider: str, model: str) -> None:
        """Forget what was set and learned. Raises `StoreError`."""
        for name in {model, self.answering(provider, model)}:
            self._store.put_state(_key(provider, name), None)
            self._memory.pop(_key(provider, name), None)
            self.forget_lookup(provider, name)

    def lessons(self, provider: str, model: str) -> tuple[str, ...]:
        """What refusals, answers or cut prompts taught about a window, one line each for a person."""
        answering = self.answering(provider, model)
        stored = self._stored(provider, answering)
        lines = []
        if answering != model:
            lines.append(f"{answering} answers, so that its tokens, window and price hold")
        if stored.get("cut"):
            lines.append(f"Its server cuts prompts that are longer than {stored['cut']:,} tokens")
        if stored.get("learned"):
            lines.append(f"Its window is {stored['learned']:,} tokens ({stored.get('how', 'learned from the server')})")
        if stored.get("answer"):
            lines.append(f"Its answers have {stored['answer']:,} tokens at most")
        return tuple(lines)

    def forget(self, provider: str, model: str) -> None:
        """Forget what was learned; what a person set stays. Raises `StoreError`."""
        for name in {model, self.answering(provider, model)}:
            self._change(provider, name, lambda stored: {key: value for key, value in stored.items() if key == "set"})
            self.forget_lookup(provider, name)

    def learn(self, provider: str, model: str, limit: int) -> None:
        """Learn `limit` tokens from an overflow error. Never below an input that was accepted."""
        model = self.answering(provider, model)
        floor = int(self._stored(provider, model).get("taken", 0))
        if limit < floor:
            log.warning("limit of %d tokens not believed for %s/%s: %d fitted", limit, provider, model, floor)
            return
        learned = {"learned": limit, "raised": False, "how": "named by the server's refusal"}
        self._change(provider, model, lambda stored: stored | learned)

    def learn_answer(self, provider: str, model: str, most: int) -> None:
        """Learn the longest answer of a model, `most` tokens, from the refusal of a longer one."""
        model = self.answering(provider, model)
        self._change(provider, model, lambda stored: {**stored, "answer": most})

    def learn_cut(self, provider: str, model: str, window: int) -> bool:
        """Learn that the server cuts prompts longer than `window` tokens. False if a person's setting applies."""
        limits = self.limits(provider, model)
        if limits.source == "setting":
            return False
        model = self.answering(provider, model)
        base = self._base(provider, model)
        if limits.context is None or window < limits.context:
            self._change(provider, model, lambda stored: {**stored, "cut": window, "cut_of": base.context})
        return True

    def tell_once(self, provider: str, model: str, what: str) -> bool:
        """Whether this is the first time in this run that `what` is reported for a model."""
        new = (provider, model, what) not in self._announced
        self._announced.add((provider, model, what))
        return new

    def seen(self, provider: str, model: str, read: int, output: int) -> Literal["", "raised", "against setting"]:
        """Learn from an answered input of `read` tokens with `output` tokens.

        If both together exceed the known window it is raised, unless a person set it; the return value says so. Only
        the input limits later refusals, since some servers write beyond their window.
        """
        total, limits = read + output, self.limits(provider, model)
        above = limits.context is not None and total > limits.context
        if above and limits.source == "setting":
            return "against setting" if self.tell_once(provider, model, "against setting") else ""

        model = self.answering(provider, model)

        def with_input(stored: dict[str, Any]) -> dict[str, Any]:
            if above:
                stored = {key: value for key, value in stored.items() if key not in ("cut", "cut_of")}
                stored |= {"learned": total, "raised": True, "how": "a request of that size was answered"}
            return {**stored, "taken": max(read, int(stored.get("taken", 0)))}

        if above or read > int(self._stored(provider, model).get("taken", 0)):
            self._change(provider, model, with_input)
        return "raised" if above else ""

    def _stored(self, provider: str, model: str, kind: str = "window") -> dict[str, Any]:
        key = _key(provider, model, kind)
        if key not in self._memory:
            self._memory[key] = self._store.state(key)
        return dict(self._memory[key])

    def _change(self, provider: str, model: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Raises `StoreError`. Changes stored by another program in the meantime are kept, and apply here too."""
        key = _key(provider, model)
        self._memory[key] = self._store.change_state(key, change)


def _key(provider: str, model: str, kind: str = "window") -> str:
    return f"{kind}:{provider}/{model}"
