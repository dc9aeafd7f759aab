"""Importing the providers loads none of the heavy libraries, nor does making one; a request loads the HTTP library."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "openai",
    "anthropic",
    "genai_prices",
    "httpx2",
    "tiktoken",
    "xllamacpp",
    "sqlite3",
    "textual",
    "rich",
    "urllib.request",
    "pydantic",
    "mcp",
)

CODE = """
import asyncio, pkgutil, importlib, sys
import tui.providers
for module in pkgutil.walk_packages(tui.providers.__path__, "tui.providers."):
    if module.name not in ("tui.providers.local_server", "tui.providers.http.bounds"):
        importlib.import_module(module.name)
from tui.providers.registry import all_configs, choose_default, make_provider
configs = all_configs()
asyncio.run(choose_default(configs, last_used="openai/gpt-5", env={"OPENAI_API_KEY": "k"}))
for name in configs:
    make_provider(name).capabilities("x")
print(" ".join(name for name in sys.argv[1:] if name in sys.modules))
from tui.providers.base import ProviderError
from tui.messages import Message, Request, Text
from tui.providers.config import ProviderConfig
request = Request("p", "m", (Message("user", (Text("Hi"),)),), max_output=100)
async def ask():
    for dialect in ("openai-chat", "openai-responses", "anthropic"):
        try:
            async for _ in make_provider("p", ProviderConfig("p", dialect, "http://127.0.0.1:1/v1")).stream(request):
                pass
        except ProviderError:
            print(" ".join(name for name in sys.argv[1:] if name in sys.modules))
asyncio.run(ask())
"""


def test_nothing_heavy_is_imported() -> None:
    run = subprocess.run([sys.executable, "-c", CODE, *HEAVY], capture_output=True, text=True, check=True)
    imported, *loaded = run.stdout.split("\n")
    assert imported == ""
    assert loaded == ["httpx2 urllib.request", "httpx2 urllib.request", "httpx2 urllib.request", ""]
