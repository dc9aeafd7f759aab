"""`chatctx completion`: scripts for bash, zsh and fish, made from the parser, so that they can't fall behind it."""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Literal, TypeAlias

from tui.cli.listing import write
from tui.cli.parser import build_parser
from tui.config.settings import Settings

Value: TypeAlias = Literal["", "file", "session", "other"]
"""What an option or a place takes: nothing, a file, a session's id, or something that is not completed."""

IDS = "chatctx sessions 2>/dev/null"
"""Lists sessions, the id first in each line."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its spellings, what it takes, its choices."""

    names: tuple[str, ...]
    help: str
    value: Value
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A positional argument."""

    help: str
    value: Value
    choices: tuple[str, ...]
    many: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or with the name "" what can be typed before one."""

    name: str
    help: str
    options: tuple[Option, ...]
    places: tuple[Place, ...] = ()


def run(args: Namespace, settings: Settings) -> int:
    """Print the script."""
    write({"bash": bash, "zsh": zsh, "fish": fish}[args.shell](list(described(build_parser()))))
    return 0


def described(parser: argparse.ArgumentParser, name: str = "", summary: str = "") -> Iterator[Command]:
    """What `parser` takes: itself first, then its commands."""
    options: list[Option] = []
    places: list[Place] = []
    below: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for key, sub in action.choices.items():
                below += described(sub, key, texts.get(key, ""))
            continue
        takes: Value = "" if action.nargs == 0 else _value(action)
        choices = tuple(map(str, action.choices or ()))
        text = (action.help or "").replace("%%", "%")
        if action.option_strings:
            options.append(Option(tuple(action.option_strings), text, takes, choices))
        else:
            places.append(Place(text, takes, choices, action.nargs in ("+", "*")))
    yield Command(name, summary, tuple(options), tuple(places))
    yield from below


def _value(action: argparse.Action) -> Value:
    match action.metavar:
        case "FILE":
            return "file"
        case "ID":
            return "session"
        case _:
            return "other"


# -- bash --------------------------------------------------------------------------------------------------------------


def bash(commands: Sequence[Command]) -> str:
    """A function for `complete -F`. Works without the bash-completion package."""
    rest = commands[1:]
    valued = sorted({name for command in commands for o in command.options if o.value for name in o.names})
    before = "\n".join(
        _bash_option(command, option) for command in commands for option in command.options if option.value
    )
    words = "\n".join(
        f"        {command.name or chr(39) * 2}) opts={quote(' '.join(n for o in command.options for n in o.names))} ;;"
        for command in commands
    )
    places = "\n".join(_bash_places(command) for command in rest if command.places)
    return f"""\
# bash completion for chatctx; eval "$(chatctx completion bash)"
_chatctx() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= opts= place=0 i=1 word
    COMPREPLY=()
    while (( i < COMP_CWORD )); do
        word=${{COMP_WORDS[i]}}
        case $word in
            {"|".join(valued)}) (( i++ )) ;;
            -*) ;;
            *) if [[ -z $command ]]; then command=$word; else (( place++ )); fi ;;
        esac
        (( i++ ))
    done
    case "$command $prev" in
{before}
    esac
    case $command in
{words}
        *) return ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$opts" -- "$cur"))
        return
    fi
    if [[ -z $command ]]; then
        COMPREPLY=($(compgen -W {quote(" ".join(command.name for command in rest))} -- "$cur"))
        return
    fi
    case $command in
{places}
    esac
}}
_chatctx_ids() {{ {IDS} | cut -d' ' -f1; }}
complete -F _chatctx chatctx"""


def _bash_reply(value: Value, choices: Sequence[str]) -> str:
    if choices:
        return f'COMPREPLY=($(compgen -W {quote(" ".join(choices))} -- "$cur"))'
    match value:
        case "file":
            return 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")'
        case "session":
            return 'COMPREPLY=($(compgen -W "$(_chatctx_ids)" -- "$cur"))'
        case _:
            return ":"


def _bash_option(command: Command, option: Option) -> str:
    patterns = "|".join(quote(f"{command.name} {name}") for name in option.names)
    return f"        {patterns}) {_bash_reply(option.value, option.choices)}; return ;;"


def _bash_places(command: Command) -> str:
    last = len(command.places) - 1
    lines = []
    for number, place in enumerate(command.places):
        pattern = f"{number}|*" if place.many and number == last else str(number)
        lines.append(f"            {pattern}) {_bash_reply(place.value, place.choices)} ;;")
    return "\n".join([f"        {command.name}) case $place in", *lines, "        esac ;;"])


# -- zsh ---------------------------------------------------------------------------------------------------------------


def zsh(commands: Sequence[Command]) -> str:
    """A function for zsh's completion system; also works as a file `_chatctx` in `$fpath`."""
    root, *rest = commands
    listed = "\n".join(f"                {_single(f'{_colon(c.name)}:{_colon(c.help)}')}" for c in rest)
    cases = "\n".join(
        "\n".join([f"                {c.name}) _arguments \\", _joined(_zsh_specs(c), 20), "                    ;;"])
        for c in rest
    )
    return f"""\
#compdef chatctx
# zsh completion for chatctx; eval "$(chatctx completion zsh)" after compinit
_chatctx_ids() {{
    local -a ids
    ids=(${{(f)"$({IDS} | sed 's/:/ /g; s/  */:/')"}})
    _describe -V session ids
}}
_chatctx() {{
    local curcontext=$curcontext state line
    local -a commands
    _arguments -C \\
{_joined([*_zsh_specs(root), _single("1: :->command"), _single("*:: :->rest")], 8)}
    case $state in
        command)
            commands=(
{listed}
            )
            _describe command commands
            ;;
        rest)
            case $words[1] in
{cases}
            esac
            ;;
    esac
}}
if [[ $funcstack[1] == _chatctx ]]; then _chatctx "$@"; else compdef _chatctx chatctx; fi"""


def _joined(specs: Sequence[str], indent: int) -> str:
    return " \\\n".join(" " * indent + spec for spec in specs)


def _zsh_specs(command: Command) -> list[str]:
    specs = []
    for option in command.options:
        text = option.help.replace("[", "(").replace("]", ")")
        action = f": :{_zsh_action(option.value, option.choices)}" if option.value else ""
        several = "*" if option.value == "file" else ""
        if len(option.names) > 1 and not several:
            exclusive, names = f"'({' '.join(option.names)})'", "{" + ",".join(option.names) + "}"
            specs.append(exclusive + names + _single(f"[{text}]{action}"))
        else:
            specs += [_single(f"{several}{name}[{text}]{action}") for name in option.names]
    for number, place in enumerate(command.places, 1):
        where = "*" if place.many else str(number)
        specs.append(_single(f"{where}:{_colon(place.help)}:{_zsh_action(place.value, place.choices)}"))
    return specs


def _zsh_action(value: Value, choices: Sequence[str]) -> str:
    if choices:
        return f"({' '.join(choices)})"
    return {"file": "_files", "session": "_chatctx_ids"}.get(value, "")


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _colon(text: str) -> str:
    return text.replace(":", "\\:")


# -- fish --------------------------------------------------------------------------------------------------------------


def fish(commands: Sequence[Command]) -> str:
    """Lines of `complete`."""
    rest = commands[1:]
    names = " ".join(command.name for command in rest)
    lines = [
        "# fish completion for chatctx; chatctx completion fish > ~/.config/fish/completions/chatctx.fish",
        f"function __chatctx_ids; {IDS} | string replace -r ' +' \\t; end",
        "complete -c chatctx -f",
    ]
    nothing_yet = f"not __fish_seen_subcommand_from {names}"
    lines += [f"complete -c chatctx -n {_fish(nothing_yet)} -a {c.name} -d {_fish(c.help)}" for c in rest]
    for command in commands:
        seen = f"__fish_seen_subcommand_from {command.name}" if command.name else nothing_yet
        condition = f"complete -c chatctx -n {_fish(seen)}"
        for option in command.options:
            spelled = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            lines.append(f"{condition} {spelled}{_fish_value(option.value, option.choices)} -d {_fish(option.help)}")
        for place in command.places:
            offered = _fish_value(place.value, place.choices, place=True)
            if offered:
                lines.append(condition + offered)
    return "\n".join(lines)


def _fish_value(value: Value, choices: Sequence[str], *, place: bool = False) -> str:
    takes = "" if place else " -x"
    if choices:
        return f"{takes} -a {_fish(' '.join(choices))}"
    match value:
        case "file":
            return " -F" if place else " -r -F"
        case "session":
            return f"{takes} -a '(__chatctx_ids)'"
        case "other":
            return takes
        case _:
            return ""


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
