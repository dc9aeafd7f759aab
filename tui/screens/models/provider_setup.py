"""Setting up a provider: where its key comes from, tried out before anything is written."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tui.chat.models.provider_setup import Draft, ProviderChoice, is_variable
from tui.screens.base import Panel
from tui.screens.hints import CLOSE, clickable
from tui.screens.items import Item
from tui.text.cells import plain
from tui.text.numbers import plural

if TYPE_CHECKING:
    from tui.chat.models.provider_setup import ProviderSetup

log = logging.getLogger(__name__)

OWN = {"+openai-compatible": "an OpenAI-compatible server", "+anthropic": "a server that speaks Anthropic Messages"}
"""Keys of the list's last entries: servers of one's own, by what they speak."""


def provider_items(choices: Iterable[ProviderChoice], present: str) -> list[Item]:
    """The providers to choose from, and servers of one's own."""
    items = []
    for choice in choices:
        key = f"key in {choice.variable}" if choice.has_key else "needs a key" if choice.variable else "no key"
        items.append(Item(choice.name, choice.title, f"{key}   {choice.host}", choice.name == present, key))
    return [*items, *(Item(key, f"Other: {title}", "by its address") for key, title in OWN.items())]


class ProviderForm(Panel[Draft]):
    """Dismissed with what was filled in once it works and is in use; `say` gets the line that tells so."""

    max_width = 84

    DEFAULT_CSS = """
    ProviderForm > .panel { height: auto; }
    ProviderForm Static { height: auto; color: $text-muted; }
    ProviderForm .label { color: $foreground; }
    ProviderForm Input { border: none; height: 1; padding: 0 1; background: $background; margin-bottom: 1; }
    ProviderForm Input:focus { border: none; background: $boost; }
    ProviderForm .outcome { min-height: 2; }
    ProviderForm .outcome.wrong { color: $text-error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "try", show=False, priority=True),
        Binding("down", "app.focus_next", show=False, priority=True),
        Binding("up", "app.focus_previous", show=False, priority=True),
    ]

    def __init__(self, setup: ProviderSetup, key: str, choice: ProviderChoice | None) -> None:
        super().__init__()
        self.setup = setup
        self.kind = key.removeprefix("+") if choice is None else ""
        self.choice = choice
        self.done = ""  # what was done, for the conversation

    def compose(self) -> ComposeResult:
        """What is asked, then how it went."""
        choice = self.choice
        with VerticalScroll(classes="panel") as panel:
            panel.can_focus = False
            panel.border_title = choice.title if choice else f"Add {OWN['+' + self.kind]}"
            panel.border_subtitle = clickable(self, ("enter", "try", "try"), ("tab", "next", "app.focus_next"), CLOSE)
            yield Static(
                "chatctx keeps no keys: it notes where yours comes from, and asks there each time.", markup=False
            )
            yield Static("")
            if choice is None:
                yield from self._field("name", "Name for it", "", "work")
                yield from self._field("address", "Address", "", "http://127.0.0.1:8080/v1")
            yield from self._field("variable", "Key: environment variable", choice.variable if choice else "", "none")
            yield from self._field("command", "or a command that prints the key", "", "pass show llm/key")
            yield Static("", classes="outcome", markup=False)

    def _field(self, name: str, label: str, value: str, hint: str) -> ComposeResult:
        yield Static(label, classes="label", markup=False)
        yield Input(value, placeholder=hint, id=f"setup-{name}", compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        """The first field takes keys."""
        self.query(Input).first().focus()

    def _value(self, name: str) -> str:
        return self.query_one(f"#setup-{name}", Input).value.strip()

    def draft(self) -> Draft:
        """What is filled in."""
        own = self.choice is None
        return Draft(
            name=self._value("name").lower() if self.choice is None else self.choice.name,
            own=own,
            kind=self.kind or "openai-compatible",
            base_url=self._value("address") if own else "",
            api_key_env=self._value("variable"),
            api_key_command=self._value("command"),
        )

    def action_try(self) -> None:
        """Ask the provider with what is filled in."""
        self._try(self.draft())

    @work(group="setup", exclusive=True, exit_on_error=False)
    async def _try(self, draft: Draft) -> None:
        self._say("asking it for its models …")
        try:
            models = await self.setup.test(draft)
            self._say(f"It works: {plural(len(models), 'model')}.")
            self.done = await self.setup.use(draft)
        except Exception as error:
            if not type(error).__module__.startswith("tui."):
                log.exception("a provider could not be set up")
            self._say(" ".join(str(error).split()) or type(error).__name__, wrong=True)
            if draft.api_key_env and not is_variable(draft.api_key_env):  # perhaps the key itself: off the screen
                self.query_one("#setup-variable", Input).value = ""
            return
        self.dismiss(draft)

    def _say(self, text: str, *, wrong: bool = False) -> None:
        line = self.query_one(".outcome", Static)
        line.set_class(wrong, "wrong")
        line.update(Content(("✗ " if wrong else "") + plain(text)))
        line.scroll_visible(animate=False)
