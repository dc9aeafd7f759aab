"""`/tools`, `/mcp` and `/prompt` in `chatctx --plain`: what the panels show and ask, in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.chat.store.store import UsageError
from tui.cli import complain
from tui.cli.listing import table, write
from tui.screens.chat.prompt_words import PromptWordsError, call_form, find_prompt, next_missing
from tui.text.clean import clean_line, clean_text
from tui.text.numbers import approx, tokens_exact
from tui.views.mcp_lines import project_text

if TYPE_CHECKING:
    from tui.chat.calling.session_tools import ToolLine
    from tui.chat.servers import ServerLine
    from tui.cli.plain.ports import ChatLike

_RULES = {"allow": "runs", "ask": "asks first", "never": "never runs"}


class PlainTools:
    """The commands about tools and servers. Errors are raised; the chat says them."""

    def __init__(self, chat: ChatLike) -> None:
        self._chat = chat

    # -- /tools ------------------------------------------------------------------------------------------------------

    async def tools(self, args: str) -> None:
        """Every tool with its cost; on and off for one or several; forget what was answered when one asked."""
        tools = self._chat.session.tools
        match args.split():
            case []:
                lines = await self._tool_lines()
                rows = [(clean_line(line.name), _cost(line), *self._how(line)) for line in lines]
                write(table(rows, right=frozenset({1})) if rows else "There are no tools.")
                if not tools.takes_any:
                    write("This model calls no tools, as far as is known: none are offered.")
            case ["on" | "off" as word, pattern]:
                names = await tools.switch(pattern, word == "on")
                if not names:
                    raise UsageError(f"there is no tool {pattern!r}: /tools lists them")
                write(f"{word}: {clean_line(', '.join(names))}")
            case ["forget", name]:
                await tools.forget(name)
                write(clean_line(f"{name} asks again, unless it only reads or the config file says otherwise."))
            case _:
                raise UsageError("/tools lists the tools; /tools on NAME, /tools off NAME and /tools forget NAME")

    async def _tool_lines(self) -> list[ToolLine]:
        session = self._chat.session
        await session.tools.prepare()
        usage = await session.refresh_usage()
        return list(await session.tools.lines(next((row.items for row in usage.rows if row.key == "tools"), ())))

    def _how(self, line: ToolLine) -> tuple[str, str]:
        waits = any(tool.name == line.name for tool in self._chat.session.tools.plan.deferred)
        return ("waits" if waits else "on") if line.on else "off", _RULES[line.rule]

    # -- /mcp --------------------------------------------------------------------------------------------------------

    async def mcp(self, args: str) -> None:
        """Every server with its tools; restart, on or off for one; the question about a project's file."""
        servers = self._chat.workspace.servers
        match args.split():
            case []:
                lines = await self._tool_lines()
                for server in servers.lines:
                    self._say_server(server, [line for line in lines if line.origin == server.status.name])
                if not servers.lines and servers.project is None:
                    write("No servers yet. The config file names them, as [mcpServers.NAME]; the README shows how.")
                if servers.project is not None and servers.project.word == "unsaid":
                    await self._ask_project()
            case ["project"] if servers.project is not None:
                await self._ask_project()
            case ["restart", name]:
                await servers.restart(name)
            case ["on" | "off" as word, name]:
                await servers.switch(name, word == "on")
            case _:
                complain("/mcp lists the servers; /mcp restart NAME, /mcp on NAME and /mcp off NAME change one")

    def _say_server(self, server: ServerLine, tools: list[ToolLine]) -> None:
        status = server.status
        reason = f", {status.reason}" if status.reason else ""
        write(clean_line(f"{status.name}: {status.state}{reason}"))
        write("  " + clean_line(f"{server.config.transport}, {server.config.shown}, from {server.config.where}"))
        for line in tools:
            write("  " + clean_line(f"{line.name}, {_cost(line)} tokens, {', '.join(self._how(line))}"))
        if server.log and status.state != "ready":
            write("  " + clean_line(f"its last words: {server.log[-1]}"))

    async def _ask_project(self) -> None:
        """All that the file would start, then the question. A pipe is nobody who could agree."""
        servers = self._chat.workspace.servers
        if servers.project is None:
            return
        write(clean_text(project_text(servers.project)))
        if not self._chat.talks:
            complain("nothing of it was started: nobody can be asked here")
            return
        answer = await self._chat.ask("Start them? yes: now and whenever chatctx starts here, never: don't ask again:")
        if answer.lower() in ("yes", "never"):
            await servers.agree(answer.lower() == "yes")
            write("They are being started." if answer.lower() == "yes" else "They are not started.")
        else:
            write("Nothing is started; /mcp asks again.")

    # -- /prompt -----------------------------------------------------------------------------------------------------

    async def prompt(self, args: str) -> None:
        """The prompts there are; with a name, its text, which is sent once the person has seen it."""
        servers = self._chat.workspace.servers
        if not args:
            for one in servers.prompts:
                write(clean_line(f"{call_form(one)}: {one.description}".rstrip(": ")))
            if not servers.prompts:
                write("No MCP server that runs offers prompts. /mcp lists the servers.")
            return
        try:
            prompt, given = find_prompt(args, servers.prompts)
        except PromptWordsError as error:
            raise UsageError(str(error).rstrip(".")) from None
        while (argument := next_missing(prompt, given)) is not None:
            if not self._chat.talks:
                raise UsageError(f"{prompt.name} needs {argument.name}: /prompt {call_form(prompt)}")
            about = f"{argument.name}{'' if argument.required else ', or nothing'}: {argument.description}"
            value = await self._chat.ask(clean_line(about).rstrip(": ") + ":")
            if not value and argument.required:
                raise UsageError(f"{prompt.name} needs {argument.name}; nothing was sent")
            given[argument.name] = value
        content = await servers.prompt(prompt, {name: value for name, value in given.items() if value})
        if content.images:
            complain(f"{len(content.images)} images of this prompt are left out: only its text is sent")
        if self._chat.talks:
            write(clean_text(content.text))
            if (await self._chat.ask("Send it? y yes, n no:")).lower() != "y":
                return
        # As it is: what a server wrote attaches no file, whatever @names are in it.
        await self._chat.turn(self._chat.session.send(content.text, []))


def _cost(line: ToolLine) -> str:
    return f"{approx(line.source)}{tokens_exact(line.tokens)}"
