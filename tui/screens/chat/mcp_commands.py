"""The commands `/mcp` and `/prompt`, and what servers have to say while the chat runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui.screens.chat.command_base import CommandBase
from tui.screens.chat.prompt_words import PromptWordsError, call_form, find_prompt, next_missing
from tui.screens.items import Item, filtered
from tui.screens.mentions import mentioned
from tui.text.cells import plain
from tui.widgets.composer.completion import Choice

if TYPE_CHECKING:
    from tui.screens.tools.mcp import McpPanel
    from tui.tools.mcp.results import ServerPrompt


NEWS_SHOWN = 10.0  # seconds
LEAVING_SILENT = 0.5  # seconds


class McpCommands(CommandBase):
    """`/mcp [restart|on|off NAME]` and `/prompt [SERVER:NAME] [arguments]`."""

    mcp_panel: McpPanel | None = None  # while it is open

    def follow_servers(self) -> None:
        """From now on what happens to servers shows: in numbers and open panels, as a line where one fails."""
        if (workspace := self.screen.workspace) is not None:
            workspace.servers.on_change(self._server_changed)
            self._tell()

    def _server_changed(self, _name: str) -> None:
        self._tell()
        for panel in (self.mcp_panel, self.tools_panel):
            if panel is not None:
                panel.follow()
        if not self.screen.turns.busy:
            self.screen.background(self._recount, "servers", exclusive=True)

    def _tell(self) -> None:
        if self.screen.workspace is not None:
            for line in self.screen.workspace.servers.news():
                if self.screen.session is not None and not self.screen.session.messages:
                    self.screen.notify(plain(line), severity="warning", timeout=NEWS_SHOWN, markup=False)
                else:
                    self.refuse(plain(line))

    def leaving(self) -> None:
        """The program ends its servers, which some take their time over: up to four seconds, then they are killed."""
        workspace = self.screen.workspace
        if workspace is not None and any(line.status.state == "ready" for line in workspace.servers.lines):
            self.screen.set_timer(LEAVING_SILENT, lambda: self.screen.notify("Ending the MCP servers …", markup=False))

    async def _recount(self) -> None:
        if self.screen.session is not None:
            await self.screen.session.refresh_usage()
            self.recounted()
            self.screen.welcome()

    # -- /mcp --------------------------------------------------------------------------------------------------------

    async def mcp(self, args: str) -> None:
        """Without words the panel."""
        session, workspace = self.ready(), self.workspace()
        if session is None or workspace is None:
            return
        words = args.split()
        match words:
            case []:
                from tui.screens.tools.mcp import McpPanel

                panel = McpPanel(workspace.servers, session, ask=self._ask_project, changed=self._panel_changed)
                self.mcp_panel = panel
                self.screen.app.push_screen(panel, self._mcp_closed)
            case ["restart", name]:
                await workspace.servers.restart(name)
                self.say(f"{plain(name)} is being started again.")
            case ["on" | "off" as word, name]:
                await workspace.servers.switch(name, word == "on")
                self.say(f"{plain(name)} is {'being started' if word == 'on' else 'switched off'}; this is remembered.")
            case _:
                self.refuse("/mcp lists the servers; /mcp restart NAME, /mcp on NAME and /mcp off NAME change one.")

    def _mcp_closed(self, _result: None) -> None:
        self.mcp_panel = None

    def _panel_changed(self) -> None:
        self.screen.background(self._recount, "servers", exclusive=True)

    def _ask_project(self) -> None:
        """Show all that the project's file would start, and ask. Doing nothing is the first answer."""
        workspace = self.screen.workspace
        project = workspace.servers.project if workspace is not None else None
        if project is None:
            return
        from tui.screens.question import Question
        from tui.views.mcp_lines import project_text

        answers = [
            Item("", "Not now", "nothing is started; asked again next time"),
            Item("yes", "Start them", "now, and whenever chatctx is started here"),
            Item("no", "Never", "not for this content of the file"),
        ]
        question = Question("Start the servers of this folder?", project_text(project), answers)
        self.screen.app.push_screen(question, self._project_answered)

    def _project_answered(self, answer: str | None) -> None:
        if answer and self.screen.workspace is not None:
            self.screen.background(partial(self._agree, answer == "yes"), "mcp", again=True)

    async def _agree(self, yes: bool) -> None:
        if self.screen.workspace is not None:
            await self.screen.workspace.servers.agree(yes)
            if self.mcp_panel is not None:
                self.mcp_panel.follow()

    async def complete_mcp(self, _args: str) -> Sequence[Choice]:
        """What can be done with each server."""
        workspace = self.screen.workspace
        if workspace is None:
            return []
        found = []
        for line in workspace.servers.lines:
            name, state = line.status.name, line.status.state
            found.append(Choice(f"restart {name}", f"restart {plain(name)}", state))
            word = "on" if state == "off" else "off"
            found.append(Choice(f"{word} {name}", f"{word} {plain(name)}", state))
        return found

    # -- /prompt -----------------------------------------------------------------------------------------------------

    async def prompt(self, args: str) -> None:
        """Without a name the list; with one, its text goes into the draft once its arguments are known."""
        workspace = self.workspace()
        if workspace is None:
            return
        prompts = workspace.servers.prompts
        if not prompts:
            self.say("No MCP server that runs offers prompts. /mcp lists the servers.")
            return
        if not args:
            self.pick("Prompts of MCP servers", filtered(self._prompt_items), self._prompt_chosen, "search prompts")
            return
        try:
            found, given = find_prompt(args, prompts)
        except PromptWordsError as error:
            self.refuse(plain(str(error)))
            return
        await self._fill_in(found, given)

    async def _fill_in(self, prompt: ServerPrompt, given: dict[str, str]) -> None:
        """Ask for the next argument that is missing, or put the prompt into the draft."""
        argument = next_missing(prompt, given)
        if argument is None:
            await self._put(prompt, {name: value for name, value in given.items() if value})
            return
        from tui.screens.ask_text import AskText

        text = f"{argument.name}: {argument.description}" if argument.description else argument.name

        def answered(value: str | None) -> None:
            if value is not None:
                given[argument.name] = value
                self.screen.background(partial(self._fill_in, prompt, given), "/prompt", again=True)

        self.screen.app.push_screen(
            AskText(f"{prompt.server}:{prompt.name}", text, optional=not argument.required), answered
        )

    async def _put(self, prompt: ServerPrompt, given: dict[str, str]) -> None:
        workspace = self.screen.workspace
        if workspace is None:
            return
        content = await workspace.servers.prompt(prompt, given)
        composer = self.screen.composer
        composer.value = "\n\n".join(filter(None, [composer.value.rstrip(), content.text]))
        composer.focus_prompt()
        if content.images:
            self.refuse(f"{len(content.images)} images of this prompt are left out: only its text goes into the draft.")
        if files := await asyncio.to_thread(mentioned, content.text, Path.cwd()):
            names = ", ".join(plain(str(path)) for path in files)
            self.refuse(f"The server's prompt names files with @; sending attaches them: {names}")

    def _prompt_chosen(self, name: str | None) -> None:
        if name is not None:
            self.screen.action_command(f"prompt {name}")

    async def _prompt_items(self) -> list[Item]:
        workspace = self.screen.workspace
        prompts = workspace.servers.prompts if workspace is not None else ()
        found = []
        for prompt in prompts:
            name = f"{prompt.server}:{prompt.name}"
            found.append(Item(name, plain(call_form(prompt)), plain(prompt.description)))
        return found

    async def complete_prompt(self, args: str) -> Sequence[Choice]:
        """Prompts by name; nothing once the arguments have begun."""
        return [] if " " in args else [Choice(i.key, i.label, i.detail) for i in await self._prompt_items()]
