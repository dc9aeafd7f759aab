"""`chatctx doctor`: checks the installation, its files, and which models can be reached.

`--repair` repairs a damaged database; otherwise nothing is changed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui import __version__
from tui.chat.store import repair as repairing
from tui.chat.store.database import DamagedError, StoreError, database_files
from tui.chat.store.store import SessionStore
from tui.cli import table, write
from tui.config.files import at_home, is_there, readable_by_others
from tui.config.settings import Settings
from tui.providers.config import ProviderConfig
from tui.providers.keys import redact
from tui.providers.local import load_error, missing_part
from tui.providers.registry import all_configs, answering, choose_default, ignored_settings
from tui.text.clean import clean_line
from tui.text.numbers import plural, size_text
from tui.tools.mcp.config import McpConfigError, ServerConfig, start_environment
from tui.tools.mcp.config_files import find_servers


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: "ok", "note" (worth knowing) or "problem" (something will not work)."""

    level: Literal["ok", "note", "problem"]
    subject: str
    text: str


def run(settings: Settings, *, repair: bool = False) -> int:
    """Print the findings. Returns 1 if there is a problem, else 0."""
    if repair:
        return _repair(settings)
    checks = (_program, _files, _keys, _tokenizer, _providers, _servers, _terminal)
    findings = [finding for check in checks for finding in check(settings)]
    marks = {"ok": "✓", "note": "·", "problem": "✗"}
    write(table([(marks[f.level], f.subject, f.text) for f in findings]))
    problems = sum(f.level == "problem" for f in findings)
    write("\nEverything works." if not problems else f"\n{plural(problems, 'problem')}.")
    return 1 if problems else 0


def _repair(settings: Settings) -> int:
    """Replace a damaged database by its readable parts, and report what is lost."""
    if not is_there(settings.database):
        write(f"There is no {settings.database} to repair.")
        return 0
    if (damage := _damage(settings.database)) == "":
        write(f"{settings.database} is not damaged: nothing was changed.")
        return 0
    write(f"damaged: {damage}")
    done = repairing.repair(settings.database)
    write(f"Saved {plural(done.sessions, 'session')} with {plural(done.messages, 'message')}.")
    for line in done.lost:
        write(f"lost: {clean_line(line)}")
    write(f"The old file is kept as {done.backup}; delete it when nothing is missing.")
    return 0


def _damage(database: Path) -> str:
    """The damage of the database in one line, after reading all of it; "" if there is none."""
    try:
        with closing(SessionStore(database)) as store:
            (verdict,) = store.query("PRAGMA quick_check(1)")[0]
            if verdict != "ok":
                return " ".join(verdict.split())
            sessions = {session for (session,) in store.query(_UNREADABLE)}
            return f"messages of {plural(len(sessions), 'session')} can't be read" if sessions else ""
    except DamagedError as error:
        return str(error)


_UNREADABLE = (
    "SELECT session FROM messages WHERE NOT json_valid(parts) OR (usage IS NOT NULL AND NOT json_valid(usage))"
    " UNION SELECT session FROM records WHERE NOT json_valid(data)"
)


def _program(settings: Settings) -> Iterator[Finding]:
    text = f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("ok", "chatctx", text)


def _files(settings: Settings) -> Iterator[Finding]:
    state = "" if is_there(settings.config_file) else " (does not exist: defaults apply)"
    yield Finding("ok", "config", f"{settings.config_file}{state}")
    yield from _database(settings.database)
    yield from _private(settings)
    unwritable = _unwritable(settings.log_file)
    yield Finding("note", "log", f"none: {unwritable}") if unwritable else Finding("ok", "log", str(settings.log_file))


def _database(database: Path) -> Iterator[Finding]:
    if not is_there(database):
        unwritable = _unwritable(database)
        text = unwritable or f"{database} (created at the first start)"
        yield Finding("problem" if unwritable else "ok", "sessions", text)
        return
    try:
        damage = _damage(database)
        with closing(SessionStore(database)) as store:
            count = sum(info.messages > 0 for info in store.sessions(limit=sys.maxsize))
        text = f"{database}, {plural(count, 'session')}, {size_text(database.stat().st_size)}"
        yield Finding("ok", "sessions", text)
        if damage:
            yield Finding("problem", "sessions", f"damaged ({damage}): chatctx doctor --repair")
    except StoreError as error:
        yield Finding("problem", "sessions", str(error))


def _private(settings: Settings) -> Iterator[Finding]:
    """Files and folders that other users can still read: the program restricts them at start, where it can."""
    logs = settings.log_dir.glob("*.log*") if is_there(settings.log_dir) else ()
    for path, mode in readable_by_others([*database_files(settings.database), *logs]):
        yield Finding("problem", "private", f"{path} can be read by others (mode {mode:04o}): chmod 600 it")
    for path, mode in readable_by_others(dict.fromkeys((settings.data_dir, settings.log_dir))):
        text = f"others can list {path} (mode {mode:04o}); if it is yours alone: chmod 700 it"
        yield Finding("note", "private", text)


def _unwritable(file: Path) -> str:
    """Why `file` can't be created or written, and what to do; "" if it can."""
    nearest = next(path for path in (file, *file.absolute().parents) if is_there(path))
    if nearest != file and not nearest.is_dir():
        return f"{nearest} is not a folder"
    return "" if os.access(nearest, os.W_OK) else f"{nearest} can't be written to"


def _keys(settings: Settings) -> Iterator[Finding]:
    if settings.keys:
        from tui.app import ChatApp  # with Textual and every panel
        from tui.screens.chat.screen import ChatScreen
        from tui.screens.keymap import usable_keys

        yield from (Finding("note", "keys", line) for line in usable_keys(settings.keys, (ChatScreen, ChatApp))[1])


def _tokenizer(settings: Settings) -> Iterator[Finding]:
    from tui.context.counting.tokenizers import get_tokenizer

    tokenizer = get_tokenizer("gpt-5")
    tokenizer.load()
    if tokenizer.error is not None:
        text = f"{tokenizer.error}; counts are rough until it is reinstalled"
        yield Finding("problem", "tokenizer", text)
    else:
        yield Finding("ok", "tokenizer", "the included vocabularies can be read")


def _providers(settings: Settings) -> Iterator[Finding]:
    try:
        configs = all_configs(settings.providers, gguf=settings.gguf)
    except ValueError as error:
        yield Finding("problem", "providers", str(error))
        return
    if settings.model:
        yield _model(settings.model, configs)
    named = settings.providers
    for name, values in named.items():
        yield from (Finding("note", "providers", line) for line in ignored_settings(name, values))
    findings = [f for name, config in configs.items() if (f := _provider(name, config, named=name in named))]
    for name in asyncio.run(answering(configs)):
        findings.append(Finding("ok", "server", f"{name} answers at {redact(configs[name].base_url)}"))
    yield from findings
    lacking = missing_part(settings.gguf)
    if not findings:
        answers = "only the demo answers" if lacking else "the embedded model answers"
        yield Finding("note", "providers", f"no key and no local server; {answers}")
    if lacking:
        yield Finding("note", "embedded", lacking)
    elif problem := load_error():
        yield Finding("problem", "embedded", problem)
    else:
        yield Finding("ok", "embedded", configs["local"].default_model)


def _provider(name: str, config: ProviderConfig, *, named: bool) -> Finding | None:
    """A provider with a key, or one that is `named` in the config file."""
    variables = " or ".join(config.key_env)
    if config.has_key():
        source = "from api_key_command" if config.api_key_command else f"in {variables}"
        return Finding("ok", "key", f"{name}: {source}")
    if not named or not config.base_url:
        return None
    if config.needs_key:
        text = f"{name}: no key; set {variables or 'a variable, named by api_key_env'}, or api_key_command"
        return Finding("problem", "provider", text)
    return Finding("ok", "provider", f"{name}: {redact(config.base_url)}")


def _model(name: str, configs: Mapping[str, ProviderConfig]) -> Finding:
    """The configured model: whether its name is valid."""
    try:
        choice = asyncio.run(choose_default(configs, explicit=name))
    except ValueError as error:
        return Finding("problem", "model", str(error))
    return Finding("ok", "model", f"{choice.provider}/{choice.model}" if choice.model else choice.provider)


def _servers(settings: Settings) -> Iterator[Finding]:
    """The configured MCP servers. None is started."""
    configured = find_servers(settings.mcp_servers, settings.config_file, Path.cwd(), {})
    for problem in configured.problems:
        yield Finding("problem", "mcp", problem)
    if configured.servers and importlib.util.find_spec("mcp") is None:
        yield Finding("problem", "mcp", "MCP support is not installed: pip install 'chatctx[mcp]'")
    yield from map(_server, configured.servers)
    if configured.project is not None:
        names = ", ".join(server.name for server in configured.project.servers) or "nothing"
        yield Finding("note", "mcp", f"{configured.project.path} names {names}; /mcp asks before it is started")


def _server(server: ServerConfig) -> Finding:
    if server.error:
        return Finding("problem", "mcp", server.error)
    try:
        filled = server.filled(start_environment())
    except McpConfigError as error:
        return Finding("problem", "mcp", str(error))
    text = f"{server.name}: {server.shown} (from {server.where})"
    if server.disabled:
        return Finding("note", "mcp", f"{text}, switched off there")
    if server.transport == "stdio" and shutil.which(str(at_home(filled.command))) is None:
        return Finding("problem", "mcp", f"{server.name}: there is no program {server.command}; install or correct it")
    return Finding("ok", "mcp", text)


def _terminal(settings: Settings) -> Iterator[Finding]:
    size = shutil.get_terminal_size()
    colour = os.environ.get("COLORTERM") or os.environ.get("TERM") or "unknown"
    shown = "no colour (NO_COLOR)" if os.environ.get("NO_COLOR") else f"{colour} colours"
    inside = " in tmux" if os.environ.get("TMUX") else ""
    yield Finding("ok", "terminal", f"{size.columns}x{size.lines}, {shown}{inside}, {sys.stdout.encoding}")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        yield Finding("note", "terminal", "not UTF-8: set LANG to a UTF-8 locale, or symbols will be wrong")
