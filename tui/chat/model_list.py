"""The list of available models and their details: the last known one, and the servers' current ones."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tui.chat.runtime.services import Services
from tui.chat.store.database import StoreError
from tui.context.usage.limits import UNKNOWN_LIMITS, ModelLimits
from tui.providers.base import Capabilities, ModelInfo, Provider, ProviderError
from tui.providers.capabilities import known_to_see_and_call
from tui.providers.catalog import known_limits, list_price
from tui.providers.config import LOCAL_SERVERS, ProviderConfig
from tui.providers.local import DEFAULT_WINDOW, missing_part
from tui.providers.registry import answering

log = logging.getLogger(__name__)

_KEY = "models:"  # + provider: its list in the store


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model and its details; None is unknown.

    The limits in `info` follow the order of precedence. Only reasoning and counting are taken from `able`; what the
    model accepts is in `info`. `used_at` in seconds since the epoch.
    """

    provider: str
    info: ModelInfo
    able: Capabilities
    used_at: float | None = None

    @property
    def full_name(self) -> str:
        """ "provider/model"."""
        return f"{self.provider}/{self.info.id}"

    @property
    def limits(self) -> ModelLimits:
        """Its window, possibly unknown."""
        return self.info.limits or UNKNOWN_LIMITS


@dataclass(frozen=True, slots=True)
class Listing:
    """The models, last used first.

    `at` is when the oldest part of it was requested, in seconds since the epoch; None: never. `problems` names the
    providers that could not be asked, one line each.
    """

    models: tuple[ListedModel, ...] = ()
    at: float | None = None
    problems: tuple[str, ...] = ()


class ModelList:
    """The lists of all available providers, of `configs`. They are stored."""

    def __init__(self, services: Services, configs: Mapping[str, ProviderConfig]) -> None:
        self._services = services
        self._configs = configs
        self._decoded: dict[str, tuple[str, list[ModelInfo], float]] = {}  # by provider, with the text it was read from

    async def cached(self) -> Listing:
        """The last known list, without asking anybody."""
        names = self._with_key() + [name for name in LOCAL_SERVERS if name in self._configs]
        return await asyncio.to_thread(self._listing, dict.fromkeys(names), ())

    async def ask(self) -> Listing:
        """Ask every provider with a key and every local server that answers, concurrently.

        If one can't be asked its last known list is used, and a problem reported.
        """
        names = self._with_key()
        names += [name for name in await answering(self._configs) if name not in names]
        answers = await asyncio.gather(*(self._ask_one(name) for name in names))
        problems = tuple(line for _, line in answers if line)
        lists = dict(zip(names, (infos for infos, _ in answers), strict=True))
        return await asyncio.to_thread(self._listing, lists, problems)

    async def find(self, name: str) -> str:
        """The full name of the model called `name`; "" if there is none, or several.

        Providers are asked only if the last known list has no match and the name no known provider.
        """
        match = best_match(name, (await self.cached()).models)
        if match or name.partition("/")[0] in self._configs:
            return match
        return best_match(name, (await self.ask()).models)

    def _with_key(self) -> list[str]:
        """Providers that can be asked without probing, in the order of the configuration."""
        names = []
        for name, config in self._configs.items():
            own_server = name not in LOCAL_SERVERS and not config.needs_key
            if config.has_key() or own_server or config.dialect in ("local", "demo"):
                names.append(name)
        return names

    async def _ask_one(self, name: str) -> tuple[list[ModelInfo] | None, str]:
        if self._configs[name].dialect == "local":
            return None, ""  # listing does not start the embedded server
        try:
            infos = await self._services.provider(name).models()
        except ProviderError as error:
            log.warning("models of %s: %s", name, error)
            return None, str(error)
        priced = await asyncio.to_thread(lambda: [_priced(name, info) for info in infos])
        text = json.dumps({"at": time.time(), "models": [asdict(info) for info in priced]})
        try:
            await asyncio.to_thread(self._services.store.put_state, _KEY + name, text)
        except StoreError as error:
            log.warning("model list not kept: %s", error)
        return priced, ""

    def _listing(self, lists: Mapping[str, list[ModelInfo] | None], problems: tuple[str, ...]) -> Listing:
        used = self._services.calls.recent_models()
        models: list[ListedModel] = []
        at: float | None = None
        for name, fresh in lists.items():
            asked_at: float | None = time.time()
            infos: list[ModelInfo] | None = fresh
            if infos is None:
                infos, asked_at = self._stored(name)
            if infos and asked_at is not None:
                at = asked_at if at is None else min(at, asked_at)
            provider = self._services.provider(name) if infos else None
            models += [self._listed(provider, info, used) for info in infos if provider is not None]
        models.sort(key=lambda model: -(model.used_at or 0.0))  # stable: the others stay in the servers' order
        return Listing(tuple(models), at, problems)

    def _stored(self, name: str) -> tuple[list[ModelInfo], float | None]:
        config = self._configs[name]
        if config.dialect == "local":
            window = ModelLimits(config.window or DEFAULT_WINDOW, source="table", detail="as it is started")
            infos = [] if missing_part(config.gguf) else [ModelInfo(config.default_model, limits=window)]
            return [_priced(name, info) for info in infos], time.time()
        if config.dialect == "demo":
            return [_priced(name, ModelInfo(config.default_model))], time.time()
        text = self._services.store.get_state(_KEY + name)
        if text is None:
            return [], None
        if self._decoded.get(name, ("",))[0] != text:
            stored: dict[str, Any] = json.loads(text)
            self._decoded[name] = (text, [_info(entry) for entry in stored["models"]], stored["at"])
        _, infos, at = self._decoded[name]
        return infos, at

    def _listed(self, provider: Provider, info: ModelInfo, used: Mapping[str, float]) -> ListedModel:
        limits = self._services.models.limits(provider.name, info.id)
        if info.limits is not None and (
            limits.context is None or (info.limits.source == "probe" and limits.source not in ("setting", "learned"))
        ):
            limits = info.limits
        able = provider.capabilities(info.id)
        sure = known_to_see_and_call(info.id)
        info = replace(
            info,
            limits=limits if limits.context else None,
            images=_sure(info.images, sure, able.images),
            pdfs=info.pdfs if info.pdfs is not None else able.pdfs or None,
            tools=_sure(
                _first(self._services.models.takes_tools(provider.name, info.id), info.tools), sure, able.tools
            ),
        )
        return ListedModel(provider.name, info, able, used.get(f"{provider.name}/{info.id}"))


def best_match(name: str, models: Sequence[ListedModel]) -> str:
    """The full name of the model a person means, or "".

    Written in full or without its provider, else the only one that contains it; "" if there are none or several.
    """
    query = name.lower()
    for model in models:  # the last used first
        if query in (model.full_name.lower(), model.info.id.lower()):
            return model.full_name
    near = [model.full_name for model in models if query in model.full_name.lower()]
    return near[0] if len(near) == 1 else ""


def _first(*values: bool | None) -> bool | None:
    return next((value for value in values if value is not None), None)


def _sure(listed: bool | None, family: bool | None, able: bool) -> bool | None:
    """By precedence: the list, what the provider is known to lack, what all models of the family support."""
    return listed if listed is not None else family if able else False


def _priced(provider: str, info: ModelInfo) -> ModelInfo:
    """With price and window from the offline data if the list has none. Slow at first use."""
    price = info.price or list_price(provider, info.id)
    limits = info.limits or known_limits(provider, info.id)
    return replace(
        info,
        price=price,
        limits=limits if limits != UNKNOWN_LIMITS else None,
    )


def _info(entry: dict[str, Any]) -> ModelInfo:
    limits, price, thinking = (entry.pop(name, None) for name in ("limits", "price", "thinking"))
    return ModelInfo(
        **entry,
        limits=ModelLimits(**limits) if limits else None,
        price=(price[0], price[1]) if price else None,
        thinking=None if thinking is None else tuple(thinking),
    )
