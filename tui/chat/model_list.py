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
from tui.chat.store.codec import MALFORMED
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
        self._lists: dict[str, tuple[list[ModelInfo], float]] = {}  # by provider, with the time of asking

    async def cached(self) -> Listing:
        """The last known list, without asking anybody."""
        names = self._with_key() + [name for name in LOCAL_SERVERS if name in self._configs]
        return await asyncio.to_thread(self._listing, names)

    async def ask(self) -> Listing:
        """Ask every provider with a key and every local server that answers, concurrently.

        If one can't be asked its last known list is used, and a problem reported.
        """
        names = self._with_key()
        names += [name for name in await answering(self._configs) if name not in names]
        problems = await asyncio.gather(*map(self._ask_one, names))
        return await asyncio.to_thread(self._listing, names, tuple(filter(None, problems)))

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
        configured = self._configs.keys() - LOCAL_SERVERS
        return [
            name
            for name, config in self._configs.items()
            if config.has_key() or (name in configured and not config.needs_key)
        ]

    async def _ask_one(self, name: str) -> str:
        """Ask a provider and store its list. Returns why that failed, "" if it didn't."""
        if self._configs[name].dialect == "local":
            return ""  # listing does not start the embedded server
        try:
            infos = await self._services.provider(name).models()
        except ProviderError as error:
            log.warning("models of %s: %s", name, error)
            return str(error)
        priced, now = await asyncio.to_thread(lambda: [_priced(name, info) for info in infos]), time.time()
        self._lists[name] = priced, now
        text = json.dumps({"at": now, "models": [asdict(info) for info in priced]})
        try:
            await asyncio.to_thread(self._services.store.put_state, _KEY + name, text)
        except StoreError as error:
            log.warning("model list not kept: %s", error)
        return ""

    def _listing(self, names: Sequence[str], problems: tuple[str, ...] = ()) -> Listing:
        used = self._services.calls.recent_models()
        models: list[ListedModel] = []
        times = []
        for name in dict.fromkeys(names):
            infos, at = self._last_known(name)
            if infos:
                times.append(at)
                provider = self._services.provider(name)
                models += [self._listed(provider, info, used) for info in infos]
        models.sort(key=lambda model: -(model.used_at or 0.0))  # stable: the others stay in the servers' order
        return Listing(tuple(models), min(times, default=None), problems)

    def _last_known(self, name: str) -> tuple[list[ModelInfo], float]:
        """A provider's last list and when it was requested, in seconds since the epoch."""
        config = self._configs[name]
        if config.dialect == "local":
            window = ModelLimits(config.window or DEFAULT_WINDOW, source="table", detail="as it is started")
            infos = [] if missing_part(config.gguf) else [ModelInfo(config.default_model, limits=window)]
            return [_priced(name, info) for info in infos], time.time()
        if name not in self._lists:
            stored = self._services.store.state(_KEY + name)
            if not stored and config.dialect == "demo":
                return [_priced(name, ModelInfo(config.default_model))], time.time()
            try:
                self._lists[name] = [_info(entry) for entry in stored.get("models", ())], float(stored.get("at", 0.0))
            except MALFORMED as error:
                log.warning("the stored models of %s can't be read: %r", name, error)
                self._lists[name] = [], 0.0
        return self._lists[name]

    def _listed(self, provider: Provider, info: ModelInfo, used: Mapping[str, float]) -> ListedModel:
        facts, able = self._services.models, provider.capabilities(info.id)
        limits = facts.limits(provider.name, info.id)
        if info.limits is not None and (
            limits.context is None or (info.limits.source == "probe" and limits.source not in ("setting", "learned"))
        ):
            limits = info.limits
        family, tools = known_to_see_and_call(info.id), facts.takes_tools(provider.name, info.id)
        tools = info.tools if tools is None else tools
        info = replace(
            info,
            limits=limits if limits.context else None,
            images=_supported(info.images, family, able.images),
            pdfs=info.pdfs if info.pdfs is not None else able.pdfs or None,
            tools=_supported(tools, family, able.tools),
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


def _supported(listed: bool | None, family: bool | None, able: bool) -> bool | None:
    """By precedence: what the list says, what the provider lacks, what all models of the family support."""
    if listed is not None:
        return listed
    return family if able else False


def _priced(provider: str, info: ModelInfo) -> ModelInfo:
    """With price and window from the offline data if the list has none. Slow at first use."""
    limits = info.limits or known_limits(provider, info.id)
    price = info.price or list_price(provider, info.id)
    return replace(info, price=price, limits=limits if limits.context else None)


def _info(entry: dict[str, Any]) -> ModelInfo:
    limits, price, thinking, efforts = (entry.pop(name, None) for name in ("limits", "price", "thinking", "efforts"))
    return ModelInfo(
        str(entry.pop("id")),
        **entry,
        limits=ModelLimits(**limits) if limits else None,
        price=(price[0], price[1]) if price else None,
        thinking=None if thinking is None else tuple(thinking),
        efforts=None if efforts is None else tuple(efforts),
    )
