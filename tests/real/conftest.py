"""A real llama.cpp server on loopback, in a child process, with SmolLM2: the one the program starts by itself.

`llama_server(window=2048, template=..., api_key="...")` gives a running server; equal arguments give the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests import local_server
from tests.corpus import REPOSITORY, required
from tui.messages import Request
from tui.providers.base import Provider
from tui.providers.config import Dialect, ProviderConfig
from tui.providers.dialects.anthropic import AnthropicMessages
from tui.providers.dialects.openai_chat import OpenAIChat
from tui.providers.dialects.openai_responses import OpenAIResponses
from tui.providers.local import LocalServer, missing_part
from tui.providers.registry import make_provider
from tui.providers.wire import Json

MAX_SERVERS = 3  # alive at the same time; each takes 300 MB
# How the server's log shows that it refused something.
_REFUSED = re.compile(r"send_error|got exception|unsupported|invalid", re.IGNORECASE)
# Lines of the start that match by chance.
_HARMLESS = re.compile(r"not supported by template|LoRA", re.IGNORECASE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/real/" in item.path.as_posix():
            item.add_marker(pytest.mark.real)


@dataclass(frozen=True)
class LlamaServer:
    """A running server. `url` has no path, `window` is in tokens, `key_env` names the variable with its key."""

    url: str
    model: str
    window: int
    key_env: str
    log_file: Path
    process: LocalServer

    def config(self, dialect: Dialect, name: str = "real") -> ProviderConfig:
        """How to reach this server in `dialect`."""
        key_env = (self.key_env,) if self.key_env else ()
        return ProviderConfig(name, dialect, f"{self.url}/v1", key_env=key_env, family="llamacpp")

    def provider(self, dialect: Dialect, name: str = "real") -> Provider:
        """A provider that speaks `dialect` to this server. Close it."""
        return make_provider(name, self.config(dialect, name))

    def mark(self) -> int:
        """The log's length now, for `refusals`."""
        return self.log_file.stat().st_size

    def refusals(self, since: int = 0) -> list[str]:
        """Lines of the log, from `since` on, that tell of a refused request (each is an HTTP 4xx or 5xx)."""
        with self.log_file.open("rb") as file:
            file.seek(since)
            lines = file.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if _REFUSED.search(line) and not _HARMLESS.search(line)]


def send_also(monkeypatch: pytest.MonkeyPatch, fields: Mapping[str, Any]) -> None:
    """Sends `fields`, as they are at that time, with every request of every dialect."""
    for provider in (AnthropicMessages, OpenAIChat, OpenAIResponses):

        def body(self: Any, request: Request, style: Any, write: Any = provider._body) -> Json:
            return {**write(self, request, style), **fields}

        monkeypatch.setattr(provider, "_body", body)


StartServer: TypeAlias = Callable[..., LlamaServer]


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Starts real servers: `llama_server(window=2048, template=None, api_key="")`."""
    running: dict[tuple[int, Path | None, str], LlamaServer] = {}
    folder = tmp_path_factory.mktemp("llama")
    keys = pytest.MonkeyPatch()

    def start(*, window: int = 2048, template: Path | None = None, api_key: str = "") -> LlamaServer:
        key = (window, template, api_key)
        server = running.pop(key, None)
        if server is None or not server.process.running:
            if problem := missing_part():
                required(problem)
            while len(running) >= MAX_SERVERS:
                running.pop(next(iter(running))).process.stop()
            log_file = folder / f"server-{len(list(folder.iterdir()))}.log"
            with log_file.open("wb") as log:
                process = LocalServer(window=window, template=template, api_key=api_key, log=log)
                url = local_server.start(process)
            key_env = f"CHATCTX_TEST_KEY_{id(process)}" if api_key else ""
            if key_env:
                keys.setenv(key_env, api_key)
            server = LlamaServer(url, process.model, window, key_env, log_file, process)
        running[key] = server  # the latest stands last
        return server

    yield start
    for server in running.values():
        server.process.stop()
    keys.undo()


@pytest.fixture(scope="session")
def think_template() -> Path:
    """A chat template with thinking and tools: `shared/tools` beside the repository."""
    path = REPOSITORY.parent / "shared" / "tools" / "chatml_think_tools.jinja"
    if not path.is_file():
        required(f"chat template not found at {path}")
    return path
