"""Commands about who answers: model, window, instructions, effort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui.chat.attachments import not_taken
from tui.config.values import parse_tokens
from tui.messages import EFFORTS, Attachment
from tui.screens.chat.command_base import CommandBase
from tui.screens.models.model_switch import COMPACT, STAY, too_small
from tui.views.model_words import effort_text, window_text
from tui.widgets.composer.completion import Choice

if TYPE_CHECKING:
    from tui.screens.session_ports import SessionLike


class ModelCommands(CommandBase):
    """The commands `/model`, `/window`, `/system` and `/thinking`."""

    async def pick_model(self, args: str) -> None:
        """`/model [name]`: the list, or the model that was named.

        A model whose window the conversation does not fit is asked about before anything changes.
        """
        session, workspace = self.idle(), self.workspace()
        if session is None or workspace is None:
            return
        if not args:
            from tui.screens.models.models import ModelPicker

            present = f"{session.provider}/{session.model}"
            self.screen.app.push_screen(ModelPicker(workspace.model_list, present), self._use_model)
            return
        self.screen.title_bar.show(session.title or "new conversation", f"asking about {args} …")
        try:
            name = await workspace.find_model(args)
            there = await session.measured_for(name)
        finally:
            self.screen.refresh_title()
        if self.idle() is not session:  # a message was sent meanwhile, or another conversation opened
            return
        from tui.context.usage.usage import surely_fits  # with the tokenizers: not before the first frame

        if session.messages and not surely_fits(there):
            switch = partial(self._switch_answered, session, name)
            self.screen.app.push_screen(too_small(session, name, there), switch)
            return
        await self._go_on_with(session, name)

    def _use_model(self, name: str | None) -> None:
        if name is not None:
            self.screen.action_command(f"model {name}")

    def _switch_answered(self, session: SessionLike, name: str, answer: str | None) -> None:
        """What to do about a window that is too small; Esc: nothing."""
        if answer is None or answer == STAY or self.idle() is not session:
            return
        if answer == COMPACT:
            self.screen.turns.run(session.compact_for(name))
        else:
            self.screen.background(partial(self._go_on_with, session, name), "/model", again=True)

    async def _go_on_with(self, session: SessionLike, name: str) -> None:
        await session.set_model(name)
        if session.usage is None or session.usage.model != session.model:
            await session.refresh_usage()
        self.screen.refresh_title()
        self.screen.welcome()
        self.recounted()
        self.screen.drafts.count()
        self.say(f"{session.provider}/{session.model} answers from now on.{_unfit(session)}")

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
        limits = session.usage.limits if session.usage else None
        source = f" ({limits.detail})" if limits and limits.context and limits.detail else ""
        more = "" if args else " /window 128k sets it, /window reset forgets what was set and learned."
        self.say(f"The window of this model is {window_text(limits)} tokens{source}.{more}")

    async def system(self, args: str) -> None:
        """`/system [text]`: show, or change."""
        if (session := self.ready()) is None:
            return
        if not args:
            none = "There is no system prompt. /system TEXT sets one."
            self.say(f"System prompt: {session.system}" if session.system else none)
            return
        await session.set_system(args)
        await session.refresh_usage()
        self.recounted()
        self.say("The system prompt is changed from the next message on.")

    async def thinking(self, args: str) -> None:
        """`/thinking [off|low|medium|high|default]`."""
        if (session := self.ready()) is None:
            return
        effort = args.lower()
        if effort and effort not in (*EFFORTS, "default"):
            self.refuse(f"/thinking takes {', '.join(EFFORTS)} or default, not {args!r}.")
            return
        if effort:
            await session.set_reasoning(None if effort == "default" else effort)
        self.say(effort_text(session.reasoning, session.reasoning_sent))

    async def complete_models(self, _args: str) -> Sequence[Choice]:
        """Models by name, as they were listed last; nobody is asked while typing."""
        if self.screen.workspace is None:
            return []
        listing = await self.screen.workspace.model_list.cached()
        return [Choice(m.full_name, m.full_name, f"{window_text(m.limits)}  {m.limits.detail}") for m in listing.models]


def _unfit(session: SessionLike) -> str:
    """What of the conversation the model does not take, as a sentence; "" where it takes all."""
    parts = [part for message in session.messages for part in message.parts if isinstance(part, Attachment)]
    kinds = {part.name: kind for part in parts if (kind := not_taken(part, session.capabilities))}
    if not kinds:
        return ""
    names = ", ".join([*list(kinds)[:2], *([f"{len(kinds) - 2} more"] if len(kinds) > 2 else [])])
    return f" It takes no {' and no '.join(sorted(set(kinds.values())))}: {names} stays here and is not sent to it."
