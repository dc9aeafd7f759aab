"""`/provider`: use another provider, and say where its key comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.screens.chat.command_base import CommandBase
from tui.screens.items import Item, filtered
from tui.widgets.composer.completion import Choice

if TYPE_CHECKING:
    from tui.chat.models.provider_setup import Draft


class ProviderCommands(CommandBase):
    """The command `/provider`."""

    async def provider(self, args: str) -> None:
        """`/provider [name]`: the list, or the form of one; once it works, it answers."""
        if self.idle() is None or self.workspace() is None:
            return
        if args:
            self._open_form(args.lower())
            return
        self.pick("Who shall answer?", filtered(self._provider_items), self._open_form, "search providers")

    async def _provider_items(self) -> Sequence[Item]:
        from tui.screens.models.provider_setup import provider_items

        workspace, session = self.screen.workspace, self.screen.session
        if workspace is None:
            return []
        return provider_items(workspace.setup.choices(), session.provider if session else "")

    def _open_form(self, name: str | None) -> None:
        from tui.screens.models.provider_setup import OWN, ProviderForm

        workspace = self.screen.workspace
        if name is None or workspace is None:
            return
        choice = next((choice for choice in workspace.setup.choices() if choice.name == name), None)
        if choice is None and name not in OWN:
            self.refuse(f"There is no provider {name!r}; /provider lists them, and takes any other by its address.")
            return
        form = ProviderForm(workspace.setup, name, choice)

        def use(draft: Draft | None) -> None:
            if draft is not None:
                self.say(form.done)
                self.screen.action_command(f"model {draft.name}")

        self.screen.app.push_screen(form, use)

    async def complete_providers(self, _args: str) -> Sequence[Choice]:
        """Providers by name."""
        if self.screen.workspace is None:
            return []
        return [Choice(choice.name, choice.name, choice.title) for choice in self.screen.workspace.setup.choices()]
