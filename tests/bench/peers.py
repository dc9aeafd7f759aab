"""Other terminal chats and chatctx on one model server: `python -m tests.bench peers [ROUNDS]`.

Installs Elia, Vibe, Toad, `llm`, Claude Code, opencode and pi into a cache ($XDG_CACHE_HOME/chatctx-bench) with `uv`
and `npm`, and chatctx beside them as anybody would get it, without the development tools. What can't be installed is
named and left out: Toad, which has Vibe as its agent, needs a `python3.14` in $PATH. The programs take turns; each
figure is the median of the rounds.

A chat gets "hello" and Enter once its prompt shows. Memory is that of the whole process tree, shared pages divided
among their users, `IDLE` seconds after the event.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.model_server import MODEL, ModelServer
from tests.bench.program import Program, run_to_end

IDLE = 10.0  # seconds
ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chatctx-bench"


@dataclass(frozen=True, slots=True)
class Peer:
    """A program. `package` is installed by `tool`; `setup` writes its configuration into a folder, for a server's URL.

    `command` is under the package's folder. `prompt` is on the screen once it takes keys; "" for one that answers the
    question in its arguments and ends. `send` is the key that sends. `deaf` are seconds after the prompt in which keys
    are lost. `python` is the version that it needs.
    """

    name: str
    tool: str
    package: str
    command: Sequence[str]
    setup: Callable[[Path, str], Mapping[str, str]]
    prompt: str = ""
    send: str = "\r"
    deaf: float = 0.0
    python: str = "3"


def chatctx(kind: str) -> Callable[[Path, str], Mapping[str, str]]:
    """The set-up of chatctx for a provider of this kind."""

    def setup(folder: Path, url: str) -> Mapping[str, str]:
        table = f'[providers.bench]\nkind = "{kind}"\nbase_url = "{url}/v1"\n'
        (folder / "config.toml").write_text(f'model = "bench/{MODEL}"\n{table}', encoding="utf-8")
        names = {"CHATCTX_DATA_DIR": str(folder), "CHATCTX_LOG_DIR": str(folder)}
        return names | {"CHATCTX_CONFIG": str(folder / "config.toml")}

    return setup


def _elia(folder: Path, url: str) -> Mapping[str, str]:
    place = folder / "elia"
    place.mkdir()
    model = f'[[models]]\nid = "openai/{MODEL}"\nname = "openai/{MODEL}"\napi_base = "{url}/v1"\napi_key = "key"\n'
    (place / "config.toml").write_text(f'default_model = "openai/{MODEL}"\n{model}', encoding="utf-8")
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # otherwise it first asks GitHub for prices, for half a minute
    return {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder), "OPENAI_API_KEY": "key", **quiet}


def _vibe(folder: Path, url: str) -> Mapping[str, str]:
    quiet = "".join(f"enable_{name} = false\n" for name in ("telemetry", "update_checks", "auto_update"))
    provider = f'[[providers]]\nname = "bench"\napi_base = "{url}/v1"\napi_key_env_var = "OPENAI_API_KEY"\n'
    model = f'[[models]]\nname = "{MODEL}"\nprovider = "bench"\nalias = "bench"\n'
    (folder / "config.toml").write_text(f'active_model = "bench"\n{quiet}{provider}{model}', encoding="utf-8")
    return {"VIBE_HOME": str(folder), "OPENAI_API_KEY": "key"}


def _opencode(folder: Path, url: str) -> Mapping[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "key"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: {}}}
    config = {"provider": {"bench": provider}, "model": f"bench/{MODEL}", "autoupdate": False}
    (folder / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    return {"OPENCODE_CONFIG": str(folder / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _pi(folder: Path, url: str) -> Mapping[str, str]:
    place = folder / ".pi" / "agent"
    place.mkdir(parents=True)
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "key", "models": [{"id": MODEL}]}
    (place / "models.json").write_text(json.dumps({"providers": {"bench": provider}}), encoding="utf-8")
    return {"PI_OFFLINE": "1"}


def _llm(folder: Path, url: str) -> Mapping[str, str]:
    entry = f"- model_id: {MODEL}\n  model_name: {MODEL}\n  api_base: {url}/v1\n"
    (folder / "extra-openai-models.yaml").write_text(entry, encoding="utf-8")
    return {"LLM_USER_PATH": str(folder), "OPENAI_API_KEY": "key"}


def _claude(folder: Path, url: str) -> Mapping[str, str]:
    key = "sk-ant-bench-0123456789abcdef0123456789"
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(folder): trusted},
    }
    (folder / ".claude.json").write_text(json.dumps(state), encoding="utf-8")
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "ANTHROPIC_MODEL": "claude-sonnet-4-5", **quiet}


PROMPT = "or / for commands"
VIBE = str(CACHE / "mistral-vibe" / "bin" / "vibe-acp")
PI = ("node_modules/.bin/pi", "--provider", "bench", "--model", MODEL)
PEERS = (
    Peer("chatctx, OpenAI", "uv", str(ROOT), ("bin/chatctx",), chatctx("openai"), PROMPT),
    Peer("chatctx, Anthropic", "uv", str(ROOT), ("bin/chatctx",), chatctx("anthropic"), PROMPT),
    Peer("Claude Code", "npm", "@anthropic-ai/claude-code", ("node_modules/.bin/claude",), _claude, "\u276f"),
    Peer("Elia", "uv", "elia-chat", ("bin/elia",), _elia, "Enter your", "\n", deaf=1.0),
    Peer("Vibe", "uv", "mistral-vibe", ("bin/vibe",), _vibe, "bench", python="3.12"),
    Peer(
        "Toad, Vibe",
        "uv",
        "batrachian-toad",
        ("bin/toad", "acp", VIBE, "."),
        _vibe,
        "connected",
        deaf=1.0,
        python="3.14",
    ),
    Peer("opencode", "npm", "opencode-ai", ("node_modules/.bin/opencode",), _opencode, "Ask"),
    Peer("pi", "npm", "@mariozechner/pi-coding-agent", PI, _pi, MODEL),
    Peer("chatctx ask", "uv", str(ROOT), ("bin/chatctx", "ask", "hello"), chatctx("openai")),
    Peer("llm", "uv", "llm", ("bin/llm", "-m", MODEL, "hello"), _llm),
)


def main(arguments: Sequence[str]) -> int:
    """Install, measure, print."""
    rounds = int(arguments[0]) if arguments else 3
    folders: dict[str, Path] = {}
    for package, tool, python in dict.fromkeys((peer.package, peer.tool, peer.python) for peer in PEERS):
        problem = install(tool, package, folder := CACHE / Path(package).name, python)
        if problem:
            print(f"not installed: {package}: {problem}", file=sys.stderr)
        else:
            folders[package] = folder
    figures: dict[str, list[Mapping[str, float]]] = {}
    for _ in range(rounds):
        for peer in PEERS:
            if peer.package in folders:
                measure = _chat if peer.prompt else _question
                figures.setdefault(peer.name, []).append(measure(peer, folders[peer.package]))
    for name, runs in figures.items():
        columns = dict.fromkeys(key for run in runs for key in run)
        words = [f"{key} {median(run[key] for run in runs if key in run):.2f}" for key in columns]
        print(f"{name:20} {'  '.join(words)}")
    return 0


def install(tool: str, package: str, folder: Path, python: str = "3") -> str:
    """Install `package` with its bytecode compiled; "" or why that is not possible."""
    if shutil.which(tool) is None:
        return f"there is no {tool}"
    folder.mkdir(parents=True, exist_ok=True)
    if tool == "npm":
        commands = [["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), package]]
    else:
        anew = ["--reinstall-package", "chatctx"] if package == str(ROOT) else []
        into = ["--compile-bytecode", "--python", str(folder / "bin/python")]
        commands = [["uv", "pip", "install", "-q", *into, *anew, package]]
        if not (folder / "bin/python").exists():
            commands.insert(0, ["uv", "venv", "-q", "--python", python, str(folder)])
    for command in commands:
        ended = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if ended.returncode:
            return " ".join(ended.stderr.split())[-200:]
    return ""


def _environment(peer: Peer, folder: Path, url: str) -> dict[str, str]:
    quiet = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    quiet.pop("PYTHONDONTWRITEBYTECODE", None)
    return quiet | {"HOME": str(folder), "NO_PROXY": "*"} | dict(peer.setup(folder, url))


def _chat(peer: Peer, installed: Path) -> Mapping[str, float]:
    """Seconds to the prompt and to the first request, megabytes when idle and after the exchange, processor seconds."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, ModelServer() as server:
        folder = Path(name)
        env = _environment(peer, folder, server.url)
        command = [str(installed / peer.command[0]), *peer.command[1:]]
        try:
            with Program(command, env, folder) as program:
                figures["prompt s"] = program.wait_for(peer.prompt.encode(), seconds=30)
                time.sleep(peer.deaf)
                program.type("hello")
                time.sleep(0.05)  # together they would be a paste to some
                program.type(peer.send)
                server.wait(1, 30)
                figures["first request s"] = server.request_times[0] - program.began
                time.sleep(IDLE)
                figures["after an exchange MB"] = program.memory()
                figures["processor s"] = program.processor_seconds()
        except TimeoutError as error:
            print(f"{peer.name}: {str(error)[:300]}", file=sys.stderr)
        with Program(command, env, folder) as program:
            time.sleep(IDLE)
            figures["idle MB"] = program.memory()
    return figures


def _question(peer: Peer, installed: Path) -> Mapping[str, float]:
    """Seconds to the request, processor seconds and the largest resident memory of one question."""
    with tempfile.TemporaryDirectory() as name, ModelServer() as server:
        folder = Path(name)
        command = [str(installed / peer.command[0]), *peer.command[1:]]
        began, seconds, memory = run_to_end(command, _environment(peer, folder, server.url), folder)
        first = {"first request s": server.request_times[0] - began} if server.request_times else {}
        return {**first, "processor s": seconds, "largest MB": memory}
