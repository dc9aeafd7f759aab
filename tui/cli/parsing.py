"""Types, completion, help and parsing of a command on the command line. Imports only click."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from tui.chat.store.store import SessionInfo
    from tui.config.settings import Settings

PROGRAM = "chatctx"

COMPLETE = "_CHATCTX_COMPLETE"
"""A variable that the shell scripts set when they request completions."""

SETTINGS = ("model", "gguf", "theme")
"""Options that go to `load_settings`."""

LAST = ""
"""The value of `resume` for `--continue`."""


class Invocation(NamedTuple):
    """A parsed command line: a function ("module:function" under `tui.cli`) and its keyword arguments."""

    runs: str
    arguments: Mapping[str, Any]
    settings: Mapping[str, str | Path | None]


# -- types of options and arguments -----------------------------------------------------------------------------------

_ARGUMENT = "\0"
"""Prefix of a word that click must not treat as an option. Command line words can't contain a NUL."""

_NO_OPTION = re.compile(r"-(\d+\.?\d*|\.\d+|.*\s.*)", re.DOTALL)
"""Words that begin like options but are none: "-5", "- a list of things"."""


class _Text(click.ParamType[Any]):
    """Text in UTF-8 or the terminal's encoding. `offers` are completions, with descriptions.

    With `names`, what it names ("a model"), it is not empty, as an unset variable of a script is.
    """

    def __init__(self, name: str, offers: Callable[[], Iterable[tuple[str, str]]] = tuple, *, names: str = "") -> None:
        self.name = name
        self._offers = offers
        self._names = names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).removeprefix(_ARGUMENT)
        if self._names and not text:
            self.fail(f"it is empty: name {self._names}", param, ctx)
        if any("\ud800" <= character <= "\udfff" for character in text):  # Python's escapes for undecodable bytes
            try:
                return os.fsencode(text).decode("utf-8")  # as in a locale without an encoding (LC_ALL=C)
            except UnicodeError:
                self.fail(f"{text!a} is not UTF-8 text: write it in the terminal's own encoding.", param, ctx)
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        return [CompletionItem(text, help=about) for text, about in self._offers() if text.startswith(incomplete)]


class _File(click.ParamType[Path]):
    """The path of a file, which may contain any bytes."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        name = str(value).removeprefix(_ARGUMENT)
        if not name:
            self.fail("it is empty: name a file", param, ctx)
        if re.match(r"(https?|ftp|s3|gs)://", name, re.IGNORECASE):
            self.fail(
                f"{name} is a URL, and chatctx fetches none: save it first (curl -O), then name the file.", param, ctx
            )
        return Path(name)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
        return [CompletionItem(incomplete, type="file")]


def _sessions() -> list[SessionInfo]:
    """The stored sessions, newest first; none on an error, which the command itself will report."""
    from tui.chat.store.store import SessionStore
    from tui.config.files import is_there
    from tui.config.settings import load_settings
    from tui.errors import ExpectedError

    try:
        database = load_settings().database
        if not is_there(database):
            return []
        with closing(SessionStore(database)) as store:
            return [info for info in store.sessions() if info.messages]
    except ExpectedError:
        return []


def _session_ids() -> Iterator[tuple[str, str]]:
    from tui.text.cells import plain

    return ((info.id, plain(info.title)) for info in _sessions())


def _model_names() -> dict[str, str]:
    """The models of stored sessions, last used first, then "provider/" for every provider."""
    from tui.config.settings import ConfigError, load_settings
    from tui.providers.registry import all_configs

    names = [f"{info.provider}/{info.model}" for info in _sessions()]
    with suppress(ConfigError, ValueError):  # the command itself will report the error
        settings = load_settings()
        names += [f"{name}/" for name in all_configs(settings.providers, gguf=settings.gguf)]
    return dict.fromkeys(names, "")


def print_completion(_settings: Settings, *, shell: str) -> int:
    """Run `completion`: print the script for `shell`."""
    from tui.cli import write

    kind = get_completion_class(shell)
    assert kind is not None, shell  # the command line accepts no other
    write(kind(click.Command(PROGRAM), {}, PROGRAM, COMPLETE).source().rstrip("\n"))
    return 0


TEXT, FILE = _Text("text"), _File()
SESSION = _Text("id", _session_ids, names="a session")
"""The id of a stored session, or a prefix of it."""
MODEL = _Text("name", lambda: _model_names().items(), names="a model")
"""A model as provider/model."""


def argument(name: str, *, about: str, kind: click.ParamType[Any] = TEXT, **options: Any) -> click.Argument:
    """An argument with its help text."""
    return click.Argument([name], help=about, type=kind, **options)


def option(*names: str, about: str, kind: click.ParamType[Any] = TEXT, **options: Any) -> click.Option:
    """An option with a value."""
    return click.Option(names, help=about, type=kind, **options)


def flag(*names: str, about: str) -> click.Option:
    """An option without a value."""
    return click.Option(names, help=about, is_flag=True)


with_help = click.help_option("-h", "--help", help="show this help")


# -- commands ----------------------------------------------------------------------------------------------------------


class Command(click.Command):
    """A command. `inherits` names options given before the command that are passed to it."""

    def __init__(
        self,
        name: str,
        summary: str,
        text: str,
        *params: click.Parameter,
        runs: str = "",
        examples: Sequence[tuple[str, str]],
        inherits: Iterable[str] = (),
    ) -> None:
        super().__init__(name, params=list(params), help=text, short_help=summary, add_help_option=False)
        with_help(self)
        self.runs = runs or f"subcommands.{name}:run"
        self.examples = examples
        self.inherits = frozenset(inherits)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        takes_value = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
        words = []  # what only looks like an option is marked, unless it is the value of one
        for previous, word in pairwise(["", *args]):
            marked = previous not in takes_value and _NO_OPTION.fullmatch(word)
            words.append(_ARGUMENT + word if marked else word)
        return super().parse_args(ctx, words)

    def invoke(self, ctx: click.Context) -> Invocation:
        before, options = with_session(ctx.find_root()), with_session(ctx)
        if before["resume"] is not None and "resume" not in self.inherits:
            raise click.UsageError(
                "--continue and --resume go with the chat, with ask and with serve; here name the session's ID.", ctx
            )
        if before["resume"] is not None and options.get("resume") is not None:
            raise click.UsageError("--session, --continue and --resume can't go together.", ctx)
        merged = before | {name: value for name, value in options.items() if value is not None}
        arguments = {name: value for name, value in options.items() if name not in SETTINGS}
        inherited = {name: merged[name] for name in self.inherits}
        return Invocation(self.runs, arguments | inherited, {name: merged[name] for name in SETTINGS})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)


def with_session(ctx: click.Context) -> dict[str, Any]:
    """The options of `ctx`; `--continue` becomes a value of `resume`. Raises `click.UsageError`."""
    options = dict(ctx.params)
    if options.pop("last", False):
        if options["resume"] is not None:
            raise click.UsageError("--continue and a session's ID can't go together.", ctx)
        options["resume"] = LAST
    return options


def write_examples(formatter: click.HelpFormatter, examples: Sequence[tuple[str, str]]) -> None:
    with formatter.section("Examples"):
        formatter.write_dl(examples, col_max=38)
