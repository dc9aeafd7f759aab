"""Which models there are: what was listed is kept, who does not answer is said, names are found."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.providers.replay import Answer, ReplayServer, replay_server
from tui.chat.model_list import Listing
from tui.chat.turn.session import LAST_MODELS
from tui.chat.workspace import Workspace
from tui.config.settings import ModelSettings, ProviderSettings, Settings
from tui.context.usage.limits import ModelLimits
from tui.errors import UsageError
from tui.messages import Request
from tui.providers.discovery import entry_info
from tui.providers.local import LocalProvider, missing_part

LIST = {
    "data": [
        {"id": "one", "context_length": 32_000},
        {"id": "two"},
        {"id": "vendor/three", "pricing": {"prompt": "0.000001", "completion": "0.0000025"}, "context_length": 8_000,
         "architecture": {"input_modalities": ["text", "image"]}, "supported_parameters": ["max_tokens"]},
    ]
}  # fmt: skip


@asynccontextmanager
async def opened(folder: Path, url: str) -> AsyncIterator[Workspace]:
    settings = Settings(
        data_dir=folder,
        log_dir=folder,
        providers={"box": ProviderSettings(base_url=f"{url}/v1")},
        models={"box/two": ModelSettings(window=4_000)},
    )
    workspace = await Workspace.open(settings)
    try:
        yield workspace
    finally:
        await workspace.close()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReplayServer]:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with replay_server() as running:
        running.json(LIST, path="/v1/models")
        yield running


def box(listing: Listing) -> list[str]:
    return [m.full_name for m in listing.models if m.provider == "box"]


@pytest.mark.slow
async def test_what_was_listed_is_there_the_next_time_without_asking(server: ReplayServer, tmp_path: Path) -> None:
    async with opened(tmp_path, server.url) as workspace:
        assert box(await workspace.model_list.cached()) == []
        fresh = await workspace.model_list.ask()
        assert box(fresh) == ["box/one", "box/two", "box/vendor/three"]
        assert fresh.problems == ()
    count = len(server.requests)
    async with opened(tmp_path, server.url) as workspace:
        again = await workspace.model_list.cached()
        assert len(server.requests) == count
        assert again.at is not None and fresh.at is not None and again.at <= fresh.at
        models = {m.full_name: m for m in again.models}
    three = models["box/vendor/three"].info
    assert (three.price, three.images, three.tools) == ((1.0, 2.5), True, False)
    assert models["box/one"].limits == ModelLimits(32_000, source="probe", detail="the server's model list")
    assert (models["box/two"].limits.context, models["box/two"].limits.source) == (4_000, "setting")
    assert models["box/one"].info.price is None  # unknown, not free
    assert models["box/one"].info.images is None


async def test_a_server_that_does_not_answer_is_named_and_its_list_stays(server: ReplayServer, tmp_path: Path) -> None:
    async with opened(tmp_path, server.url) as workspace:
        await workspace.model_list.ask()
        server.by_path["/v1/models"] = Answer(
            [b'{"error": {"message": "Incorrect API key"}}'], 401, content_type="application/json"
        )
        listing = await workspace.model_list.ask()
        assert box(listing) == ["box/one", "box/two", "box/vendor/three"]
        (problem,) = listing.problems
        assert problem.startswith("box:") and "401" not in problem.splitlines()[1:]


async def test_the_last_used_come_first(server: ReplayServer, tmp_path: Path) -> None:
    async with opened(tmp_path, server.url) as workspace:
        for model in ("two", "vendor/three"):
            workspace.services.calls.begin(Request("box", model, (), session="s"), None, message=None, kind="chat")
        workspace.services.models.learn_tools("box", "one", False)  # its server said so when it was used
        listing = await workspace.model_list.ask()
        assert box(listing) == ["box/vendor/three", "box/two", "box/one"]
        tools = {m.full_name: m.info.tools for m in listing.models}
        assert (tools["box/one"], tools["box/two"]) == (False, None)


NAMES = {
    "box": "box/two",  # a provider alone: its last model
    "box/one": "box/one",
    "one": "box/one",
    "THREE": "box/vendor/three",  # a part of the only name that has it
    "vendor/three": "box/vendor/three",
    "box/not-listed": "box/not-listed",
    "ollama/qwen3": "ollama/qwen3",
}


async def test_what_a_person_calls_a_model(server: ReplayServer, tmp_path: Path) -> None:
    async with opened(tmp_path, server.url) as workspace:
        workspace.store.put_state(LAST_MODELS, json.dumps({"box": "two", "": "box/one"}))
        await workspace.model_list.ask()
        assert {name: await workspace.find_model(name) for name in NAMES} == NAMES
        for name in ("nothing-like-it", "o", "antropic/claude"):  # none, several, no such provider
            with pytest.raises(UsageError) as caught:
                await workspace.find_model(name)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "images", "pdfs", "tools"),
    [
        ({"capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}}}, True, False, None),
        ({"capabilities": {"vision": False, "function_calling": True}}, False, None, True),
        ({"capabilities": ["completion", "multimodal"]}, True, None, None),
        ({"capabilities": ["completion"]}, False, None, None),
        ({"architecture": {"input_modalities": ["file"]}, "supported_parameters": ["tools"]}, False, True, True),
        ({"capabilities": "odd", "architecture": None, "pricing": {"prompt": "x"}}, None, None, None),
        ({}, None, None, None),
    ],
)  # fmt: skip
def test_what_a_list_says_of_a_model(
    entry: dict[str, object], images: bool | None, pdfs: bool | None, tools: bool | None
) -> None:
    info = entry_info({"id": "m", **entry})
    assert (info.images, info.pdfs, info.tools, info.price) == (images, pdfs, tools, None)


async def test_a_list_starts_no_embedded_server(server: ReplayServer, tmp_path: Path) -> None:
    async with opened(tmp_path, server.url) as workspace:
        names = [m.full_name for m in (await workspace.model_list.ask()).models]
        assert "demo/guide" in names
        provider = workspace.provider("local")
        assert isinstance(provider, LocalProvider) and not provider.server.running
        there = "local/smollm2-135m" in names
        assert there is (missing_part() is None)
