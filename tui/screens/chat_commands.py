"""What the slash commands do, on the chat screen."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tui import commands
from tui.config import parse_tokens
from tui.messages import Message
from tui.screens.items import Item, Source, filtered
from tui.screens.ports import SessionInfoLike, SessionLike, WorkspaceLike
from tui.widgets.completion import Choice
from tui.widgets.figures import age, tokens_short

if TYPE_CHECKING:
    from tui.context.usage import ContextUsage
    from tui.screens.chat import ChatScreen

log = logging.getLogger(__name__)


class ChatCommands:
    """The actions of one chat screen; implements `commands.Chat`."""

    def __init__(self, screen: ChatScreen) -> None:
        self.screen = screen

    # -- small helps ---------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line in the conversation."""
        self.screen.transcript.add_notice("info", text)

    def refuse(self, text: str) -> None:
        """A line that says why not."""
        self.screen.transcript.add_notice("warning", text)

    def ready(self) -> SessionLike | None:
        """The session, or a word that there is none yet."""
        if self.screen.session is None:
            self.refuse("Still starting: try again in a moment.")
        return self.screen.session

    def idle(self) -> SessionLike | None:
        """The session if no turn runs, or a word that one does."""
        session = self.ready()
        if session is not None and self.screen.turns.busy:
            self.refuse("An answer is still coming: Esc stops it, then try again.")
            return None
        return session

    def workspace(self) -> WorkspaceLike | None:
        """The workspace, or a word that there is none yet."""
        if self.screen.workspace is None:
            self.refuse("Still starting: try again in a moment.")
        return self.screen.workspace

    def pick(
        self,
        title: str,
        source: Source,
        done: Callable[[str | None], None],
        placeholder: str,
        preview: Callable[[str], None] | None = None,
    ) -> None:
        """Let the person choose. Panels are imported when they are opened: the first frame does not wait for them."""
        from tui.screens.picker import Picker

        self.screen.app.push_screen(Picker(title, source, placeholder=placeholder, preview=preview), done)

    # -- context -------------------------------------------------------------------------------------------------

    async def show_context(self, _args: str) -> None:
        """Open the panel."""
        if (session := self.ready()) is None:
            return
        from tui.screens.context import ContextPanel

        panel = ContextPanel(session, self.screen.workspace, hints=self.hints, changed=self.recounted)
        self.screen.app.push_screen(panel, self._context_closed)

    def recounted(self) -> None:
        """The panel changed something: status and marks follow."""
        self.screen.refresh_status(counts=True)
        if self.screen.session is not None:
            self.screen.transcript.set_not_sent(self.screen.session.not_sent)

    def _context_closed(self, wish: str | None) -> None:
        if wish == "compact":
            self.screen.action_command("compact")
        elif wish is not None and wish.startswith("open:"):
            self.screen.transcript.jump_to(wish.removeprefix("open:"))

    def hints(self, usage: ContextUsage) -> dict[str, str]:
        """What can be done about each row, only what works here."""
        hints = {"messages": "m  list messages"}
        if usage.compaction_buffer:
            hints["buffer"] = "kept free; c compacts now"
        rolling = self.screen.session is not None and self.screen.session.rolling
        if any(row.key == "tool_results" for row in usage.rows):
            hints["tool_results"] = "trimmed when it gets tight" if rolling else "t  trims old ones when it gets tight"
        if usage.over:
            hints["over"] = "c compacts, t trims" if not rolling else "c compacts"
        return hints

    async def rolling(self, args: str) -> None:
        """`/rolling-context [on|off]`."""
        if (session := self.ready()) is None:
            return
        match args.lower():
            case "" | "toggle":
                on = not session.rolling
            case "on":
                on = True
            case "off":
                on = False
            case other:
                self.refuse(f"/rolling-context takes on or off, not {other!r}.")
                return
        await session.set_rolling(on)
        await session.refresh_usage()
        self.recounted()
        self.say(
            "Rolling context is on: old content is left out when it gets tight. Nothing is deleted."
            if on
            else "Rolling context is off: old content is summarised when it gets tight."
        )

    async def compact(self, args: str) -> None:
        """`/compact [instructions]`."""
        if (session := self.idle()) is not None:
            self.screen.turns.run(session.compact(args))

    async def undo(self, _args: str) -> None:
        """`/undo`."""
        if (session := self.idle()) is not None:
            line = await session.undo()
            if line is None:
                self.refuse("There is no compaction to take back.")
                return
            await session.refresh_usage()
            self.recounted()
            self.say(line)

    async def window(self, args: str) -> None:
        """`/window [128k|reset]`."""
        if (session := self.ready()) is None:
            return
        if args:
            try:
                tokens = None if args.lower() == "reset" else parse_tokens(args)
            except ValueError as error:
                self.refuse(str(error))
                return
            await session.set_window(tokens)
            self.recounted()
        size = tokens_short(session.usage.limits.context if session.usage else None, strip=True)
        more = "" if args else " /window 128k sets it, /window reset forgets that."
        self.say(f"The window of this model is {size} tokens.{more}")

    # -- conversations -------------------------------------------------------------------------------------------

    async def new(self, _args: str) -> None:
        """`/new`."""
        workspace = self.workspace()
        if workspace is not None and self.idle() is not None:
            await self.screen.attach(await workspace.new_session())

    async def pick_session(self, args: str) -> None:
        """`/sessions [words]`: the list, or the one conversation that was named."""
        workspace = self.workspace()
        if workspace is None or self.idle() is None:
            return
        if args and any(info.id == args for info in await workspace.sessions()):
            await self.screen.attach(await workspace.resume(args))
            return

        async def source(query: str) -> Sequence[Item]:
            return self._session_items(await workspace.sessions(query or args))

        self.pick("Conversations", source, self._resume, args or "search in all conversations")

    def _session_items(self, infos: Sequence[SessionInfoLike]) -> list[Item]:
        present = self.screen.session.id if self.screen.session is not None else ""
        now = time.time()
        return [
            Item(
                info.id, info.title or "(no title)",
                f"{age(info.updated_at, now):>5}   {info.messages:>4} messages   {info.model}", info.id == present,
            )
            for info in infos
        ]  # fmt: skip

    def _resume(self, session_id: str | None) -> None:
        if session_id is not None:
            self.screen.action_command(f"sessions {session_id}")

    async def retry(self, _args: str) -> None:
        """`/retry`."""
        if (session := self.idle()) is not None:
            self.screen.turns.run(session.retry())

    # -- model ----------------------------------------------------------------------------------------------------

    async def pick_model(self, args: str) -> None:
        """`/model [name]`: the list, or the model that was named."""
        session, workspace = self.idle(), self.workspace()
        if session is None or workspace is None:
            return
        if not args:
            self.pick("Models", filtered(self._model_items), self._use_model, "search models")
            return
        name = args
        if "/" not in name:
            found = [f"{provider}/{info.id}" for provider, info in await workspace.models() if info.id == name]
            name = found[0] if found else name
        await session.set_model(name)
        if session.usage is None or session.usage.model != session.model:
            await session.refresh_usage()
        self.screen.refresh_title()
        self.recounted()
        self.screen.drafts.count()
        self.say(f"{session.provider}/{session.model} answers from now on.")

    def _use_model(self, name: str | None) -> None:
        if name is not None:
            self.screen.action_command(f"model {name}")

    async def _model_items(self) -> list[Item]:
        if self.screen.workspace is None:
            return []
        session = self.screen.session
        present = f"{session.provider}/{session.model}" if session is not None else ""
        items = []
        for provider, info in await self.screen.workspace.models():
            name = f"{provider}/{info.id}"
            limits = info.limits
            detail = f"{tokens_short(limits.context if limits else None, strip=True):>6} window"
            if limits is not None and limits.detail:
                detail += f" ({limits.detail})"
            items.append(Item(name, name, detail, name == present))
        return items

    # -- around the conversation ---------------------------------------------------------------------------------

    async def pick_theme(self, args: str) -> None:
        """`/theme [name]`: the list with live preview, or the theme that was named."""
        app = self.screen.app
        await self.screen.theming.load()
        if args:
            if args not in app.available_themes:
                self.refuse(f"There is no theme {args!r}: /theme lists what there is.")
                return
            await self.screen.theming.use(args)
            return
        before = app.theme

        def preview(name: str) -> None:
            app.theme = name

        def chosen(name: str | None) -> None:
            if name is None:
                app.theme = before
            else:
                self.screen.action_command(f"theme {name}")

        self.pick("Themes", filtered(self._theme_items), chosen, "search themes", preview)

    async def _theme_items(self) -> list[Item]:
        present = self.screen.app.theme
        themes = self.screen.app.available_themes.values()
        own = [theme for theme in themes if "context-system" in theme.variables]
        others = [theme for theme in themes if "context-system" not in theme.variables]
        items = []
        for theme in [*own, *sorted(others, key=lambda theme: theme.name)]:
            kind = "terminal colours" if theme.ansi else "dark" if theme.dark else "light"
            items.append(Item(theme.name, theme.name, kind, theme.name == present))
        return items

    async def copy(self, _args: str) -> None:
        """`/copy`: the last answer."""
        session = self.ready()
        if session is None:
            return
        answer = next((m for m in reversed(session.messages) if m.role == "assistant" and m.text), None)
        if answer is None:
            self.refuse("There is no answer to copy yet.")
        else:
            await self.screen.copy_text(answer.text)

    async def find(self, args: str) -> None:
        """`/find words`: shows the nearest hit; again without words: the next one."""
        transcript = self.screen.transcript
        if not args:
            number, count = transcript.find_next()
        else:
            count = transcript.find(args)
            number, count = transcript.find_previous() if count else (0, 0)
        if count:
            self.screen.notify(f"{number} of {count}   /find for the next one", markup=False)
        else:
            self.refuse(f"{args!r} is not in this conversation." if args else "/find needs words to look for.")

    async def help(self, _args: str) -> None:
        """`/help`."""
        from tui.screens.help import HelpPanel

        self.screen.app.push_screen(HelpPanel(commands.COMMANDS))

    async def quit(self, _args: str) -> None:
        """`/quit`."""
        await self.screen.app.action_quit()

    async def on_message(self, message_id: str, action: str) -> None:
        """What was asked of one message in the transcript."""
        session = self.ready()
        message = next((m for m in session.messages if m.id == message_id), None) if session is not None else None
        if session is None or message is None:
            return
        match action:
            case "copy":
                await self.screen.copy_text(message.text)
            case "edit":
                self._edit(message)
            case "retry":
                await self.retry("")
            case "pin" | "exclude":
                await self._select(session, message_id, action)
            case _:
                self.refuse(f"{action} is not possible here.")

    def _edit(self, message: Message) -> None:
        if self.screen.composer.value:
            self.screen.composer.history.add(self.screen.composer.value)
        self.screen.composer.value = message.text
        self.screen.composer.focus_prompt()

    async def _select(self, session: SessionLike, message_id: str, action: str) -> None:
        if action == "pin":
            await session.pin(message_id, message_id not in session.pinned)
        else:
            await session.exclude(message_id, session.not_sent.get(message_id) != "excluded")
        await session.refresh_usage()
        self.recounted()

    # -- completion ----------------------------------------------------------------------------------------------

    async def complete_models(self, _args: str) -> Sequence[Choice]:
        """Models by name."""
        return [Choice(item.key, item.label, item.detail.strip()) for item in await self._model_items()]

    async def complete_themes(self, _args: str) -> Sequence[Choice]:
        """Themes by name."""
        await self.screen.theming.load()
        return [Choice(item.key, item.label, item.detail) for item in await self._theme_items()]
