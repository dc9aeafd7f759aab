"""`/provider`: set up another provider, and test its key first."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command, model
from tui.errors import ExpectedError
from tui.text.clean import error_line
from tui.text.numbers import plural
from tui.views.view import Field, Form, Menu, Option, RejectedError, filtered

if TYPE_CHECKING:
    from tui.chat.provider_setup import ProviderSetup
    from tui.config.settings import ProviderSettings
    from tui.providers.config import ProviderConfig
    from tui.views.view import Submit

log = logging.getLogger(__name__)

CUSTOM = {"+openai-compatible": "an OpenAI-compatible server", "+anthropic": "a server that speaks Anthropic Messages"}
"""Servers of the person, by dialect: the last options of the list."""


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Option]:
    """Providers by name."""
    return [Option(choice.name, choice.name, choice.label) for choice in chat.workspace.setup.choices()]


@command(
    "set up another provider, testing its key first",
    "model",
    when="idle",
    args="[NAME]",
    aliases=("login",),
    complete=complete,
    local_only=True,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Set one up and use it."""
    from tui.chat.provider_setup import is_variable

    setup, name = chat.workspace.setup, args.lower()
    if not name:
        present = chat.session.provider
        menu = Menu("Which provider?", filtered(lambda: _options(setup, present)), "/provider NAME", "search providers")
        name = await ui.choose(menu) or ""
        if not name:
            return
    choice = next((choice for choice in setup.choices() if choice.name == name), None)
    if choice is None and name not in CUSTOM:
        raise CommandError(f"There is no provider {args!r}: /provider lists them, and sets up any other server.")
    done = ""

    async def submit(values: Mapping[str, str]) -> str:
        nonlocal done
        table = _table(name, choice, values)
        try:
            models = await setup.test(*table)
            done = await setup.use(*table)
        except Exception as error:
            if not isinstance(error, ExpectedError):
                log.exception("a provider could not be set up")
            # Anything but a variable's name may be the key itself: it is taken off the screen.
            secret = values["variable"] and not is_variable(values["variable"])
            raise RejectedError(error_line(error), ("variable",) if secret else ()) from error
        return f"It works: {plural(len(models), 'model')}."

    values = await ui.ask(_form(name, choice, submit))
    if values is not None:
        await ui.say(done)
        await model.run.run(ui, chat, _table(name, choice, values)[0])


async def _options(setup: ProviderSetup, present: str) -> Sequence[Option]:
    options = []
    for choice in setup.choices():
        variable = _variable(choice)
        key = f"key in {variable}" if choice.has_key() else "needs a key" if variable else "no key needed"
        options.append(Option(choice.name, choice.label, f"{key}   {choice.host}", choice.name == present, key))
    return [*options, *(Option(key, f"Other: {title}", "by its address") for key, title in CUSTOM.items())]


def _variable(config: ProviderConfig | None) -> str:
    """The usual variable for the key, "" if there is none."""
    return config.key_env[0] if config and config.key_env else ""


def _form(name: str, choice: ProviderConfig | None, submit: Submit) -> Form:
    fields = (
        Field("name", "Name for it", hint="work", required=True),
        Field("address", "Address", hint="http://127.0.0.1:8080/v1", required=True),
    )
    return Form(
        choice.label if choice else f"Add {CUSTOM[name]}",
        "Keys are not stored, only where to find them: a variable or a command.",
        (
            *(() if choice else fields),
            Field("variable", "Key: environment variable", _variable(choice), "none", secret=True),
            Field("command", "or a command that prints the key", hint="pass show llm/key", secret=True),
        ),
        "test",
        "Setting up a provider asks questions, and nobody can be asked here: edit the config file instead.",
        submit,
        "listing its models …",
    )


def _table(name: str, choice: ProviderConfig | None, values: Mapping[str, str]) -> tuple[str, ProviderSettings]:
    """The provider's name, and the table that the values of the form make."""
    from tui.config.settings import ProviderSettings

    variable, command = values["variable"] or None, values["command"] or None
    if choice is not None:
        return choice.name, ProviderSettings(api_key_env=variable, api_key_command=command)
    kind = name.removeprefix("+")
    return values["name"].lower(), ProviderSettings(kind, values["address"], variable, command)
