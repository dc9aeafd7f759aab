"""What slash commands do in `chatctx --plain`: the same things as on the screen, said in lines."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from tui.chat.store.store import SessionInfo, UsageError
from tui.chat.usage_report import totals
from tui.cli import complain
from tui.cli.listing import table, write
from tui.cli.plain.clipboard import PlainClipboard
from tui.cli.plain.summary import change, preview
from tui.cli.plain.tools import PlainTools
from tui.commands import registry as commands
from tui.config.paths import at_home, new_file
from tui.config.values import parse_tokens
from tui.context.usage.usage import surely_fits
from tui.messages import EFFORTS
from tui.text.clean import clean_line
from tui.text.numbers import plural, spent, timestamp, tokens_exact
from tui.views.context_basis import basis_lines
from tui.views.context_table import headline, table_lines
from tui.views.model_words import effort_text, price_text

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.cli.plain.ports import ChatLike

Run: TypeAlias = Callable[[str], Awaitable[None]]

LISTED = 20
"""Conversations in a list; words after the command find the others."""

WIDTH = 79
"""Cells of a line of `/context`: what a terminal has that says nothing of itself."""

_SIGNS = re.compile("[\u2580-\u259f\u25b4-\u25c5]|^·")  # block elements, fold marks


class PlainCommands:
    """The commands that need no screen. Errors are raised; the chat says them."""

    def __init__(self, chat: ChatLike) -> None:
        self._chat = chat
        self._deleted = ""  # id of the conversation deleted last in this run
        tools, clipboard = PlainTools(chat), PlainClipboard(chat)
        self._known: Mapping[str, Run] = {
            "context": self._context,
            "rolling-context": self._rolling,
            "compact": self._compact,
            "summary": self._summary,
            "undo": self._undo,
            "model": self._model,
            "new": self._new,
            "sessions": self._sessions,
            "rename": self._rename,
            "delete": self._delete,
            "export": self._export,
            "import": self._import,
            "usage": self._usage,
            "system": self._system,
            "memory": self._memory,
            "thinking": self._thinking,
            "mcp": tools.mcp,
            "prompt": tools.prompt,
            "tools": tools.tools,
            "copy": clipboard.copy,
            "paste": clipboard.paste,
            "retry": self._retry,
            "find": self._find,
            "window": self._window,
            "help": self._help,
        }

    async def run(self, command: commands.Command, args: str) -> bool:
        """Do it. False: leave."""
        if command.name == "quit":
            return False
        known = self._known.get(command.name)
        if known is None:
            complain(f"/{command.name} needs the screen: start chatctx without --plain")
        else:
            await known(args)
        return True

    @property
    def _session(self) -> ChatSession:
        return self._chat.session

    def _open(self, session: ChatSession) -> None:
        self._chat.session = session
        self._chat.introduce()

    async def _context(self, _args: str) -> None:
        usage = await self._session.refresh_usage()
        lines = [*headline(usage, WIDTH), *basis_lines(usage, WIDTH)]
        rows = [line.content.plain for line in table_lines(usage, WIDTH, expanded={"messages"}, hints={})]
        for line in [*(line.plain for line in lines[:2]), *map(_said, rows), *(line.plain for line in lines[2:])]:
            write(line.rstrip())

    async def _rolling(self, args: str) -> None:
        wanted = {"": not self._session.rolling, "on": True, "off": False}.get(args.lower())
        if wanted is None:
            raise UsageError(f"/rolling-context takes on or off, not {args!r}")
        await self._session.set_rolling(wanted)
        write("Rolling context is on: old content is left out." if wanted else "Rolling context is off.")

    async def _compact(self, args: str) -> None:
        first, _, wish = args.partition(" ")
        if first == commands.PREVIEW:
            await preview(self._chat, wish.strip())
        elif first.startswith("--"):
            raise UsageError(f"/compact knows {commands.PREVIEW}, not {first}")
        else:
            await self._chat.turn(self._session.compact(args))

    async def _summary(self, _args: str) -> None:
        await change(self._chat)

    async def _undo(self, _args: str) -> None:
        write(await self._session.undo() or "There is no compaction to take back.")

    async def _model(self, args: str) -> None:
        if not args:
            present = f"{self._session.provider}/{self._session.model}"
            for model in (await self._chat.workspace.model_list.ask()).models:
                name = model.full_name
                known = f"window {tokens_exact(model.limits.context)}, price {price_text(model.info.price)}"
                write(clean_line(f"{name}, {known}{', which answers now' if name == present else ''}"))
            return
        name, _, how = (part.strip() for part in args.partition("--"))
        full = await self._chat.workspace.find_model(name)
        there = await self._session.measured_for(full)
        if how == "compact":
            await self._chat.turn(self._session.compact_for(full))
            return
        if how != "anyway" and self._session.messages and not surely_fits(there):
            raise UsageError(
                f"this conversation is {tokens_exact(there.total)} tokens to {full}, which takes "
                f"{tokens_exact(there.budget.max_input)}: /model {name} --compact summarises it first, with "
                f"{self._session.model}; /model {name} --anyway switches all the same"
            )
        await self._session.set_model(full)
        await self._session.refresh_usage()
        write(f"{full} answers from now on.")

    async def _new(self, _args: str) -> None:
        self._open(await self._chat.workspace.new_session())

    async def _sessions(self, args: str) -> None:
        workspace = self._chat.workspace
        every = await workspace.sessions()
        if args and (named := [info for info in every if info.id.startswith(args) or info.id.endswith(args)]):
            if len(named) > 1:
                raise UsageError(f"{len(named)} conversations have an id like {args!r}: write more of it")
            self._open(await workspace.resume(named[0].id))
            return
        found = await workspace.sessions(args) if args else every
        if not found:
            write("No conversation contains that." if args else "No conversations yet.")
            return
        write(table([_session_row(info) for info in found[:LISTED]], right=frozenset({2})))
        write("/sessions and an id opens one.")

    async def _rename(self, args: str) -> None:
        if not args:
            raise UsageError("/rename needs a title")
        await self._session.rename(args)
        write(f"This conversation is called {args}.")

    async def _delete(self, args: str) -> None:
        workspace, gone = self._chat.workspace, self._session
        if args == "undo":
            if not self._deleted:
                raise UsageError("nothing was deleted since the start")
            await workspace.restore_session(self._deleted)
            self._open(await workspace.resume(self._deleted))
            self._deleted = ""
            return
        if not gone.messages:
            raise UsageError("there is nothing in this conversation yet")
        await workspace.delete_session(gone.id)
        self._deleted = gone.id
        write(f"{clean_line(gone.title)} is deleted. /delete undo brings it back.")
        self._open(await workspace.new_session())

    async def _export(self, args: str) -> None:
        name = args or f"chatctx-{self._session.id[-8:]}.md"
        try:
            path = new_file(name)
            await self._session.export(path)
        except OSError as error:
            raise UsageError(f"{name} can't be written ({error.strerror}): name another place") from None
        except ValueError as error:
            raise UsageError(f"not written: {error}") from None
        write(f"Written to {path.absolute()}")

    async def _import(self, args: str) -> None:
        if not args:
            raise UsageError("/import needs a file: of chatctx, or of a program that `chatctx import --help` lists")
        name = args.removesuffix("--again").strip()
        info = await self._chat.workspace.import_file(at_home(name), again=name != args)
        self._open(await self._chat.workspace.resume(info.id))

    async def _usage(self, _args: str) -> None:
        calls = await self._chat.workspace.calls()
        midnight = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        rows = [
            totals("this conversation", [call for call in calls if call.session == self._session.id]),
            totals("today", [call for call in calls if call.at >= midnight]),
            totals("all time", calls),
        ]
        lines = [
            (row.name, f"{row.calls:,}", tokens_exact(row.input), tokens_exact(row.cached), tokens_exact(row.output),
             spent(row.cost, row.priced))
            for row in rows
        ]  # fmt: skip
        write(table([("", "calls", "input", "cached", "output", "cost"), *lines], right=frozenset(range(1, 6))))

    async def _system(self, args: str) -> None:
        if args:
            await self._session.set_system(args)
            write("The system prompt is changed from the next message on.")
        else:
            write(self._session.system or "There is no system prompt. /system TEXT sets one.")

    async def _memory(self, args: str) -> None:
        memory = self._session.memory
        if not memory.files:
            write("There are no memory files here. AGENTS.md in this folder or above would be one.")
        elif not args:
            for known in memory.files:
                write(clean_line(f"{known.name}: {'sent' if known.on else 'not sent'}"))
            write("/memory and a name switches one.")
        elif (file := memory.find(args)) is None:
            raise UsageError(f"there is no one memory file {args!r}: /memory lists them")
        else:
            await self._session.switch_memory(file.name, not file.on)
            write(clean_line(f"{file.name} is {'not sent any more' if file.on else 'sent again'}."))

    async def _thinking(self, args: str) -> None:
        effort = args.lower()
        if effort and effort not in (*EFFORTS, "default"):
            raise UsageError(f"/thinking takes {', '.join(EFFORTS)} or default, not {args!r}")
        if effort:
            await self._session.set_reasoning(None if effort == "default" else effort)
        write(effort_text(self._session.reasoning, self._session.reasoning_sent))

    async def _retry(self, _args: str) -> None:
        await self._chat.turn(self._session.retry())

    async def _find(self, args: str) -> None:
        if not args:
            raise UsageError("/find needs words to look for")
        found = 0
        for message in self._session.messages:
            for line in message.text.splitlines():
                if args.lower() in line.lower():
                    found += 1
                    write(f"{message.role}: {clean_line(line)}")
        write(plural(found, "line") + ".")

    async def _window(self, args: str) -> None:
        if args:
            try:
                await self._session.set_window(None if args.lower() == "reset" else parse_tokens(args))
            except ValueError as error:
                raise UsageError(str(error)) from None
        usage = await self._session.refresh_usage()
        write(f"The window of this model is {tokens_exact(usage.limits.context)} tokens.")

    async def _help(self, _args: str) -> None:
        shown = [command for command in commands.COMMANDS if command.name in self._known or command.name == "quit"]
        write(table([(command.usage, command.help) for command in shown]))
        write("@path in a message attaches a file. ctrl+c stops an answer, twice it leaves; ctrl+d leaves.")


def _said(row: str) -> str:
    """A row of the table without the signs that a picture would explain."""
    return _SIGNS.sub(" ", row)


def _session_row(info: SessionInfo) -> tuple[str, ...]:
    return info.id[-8:], timestamp(info.updated_at), str(info.messages), info.title
