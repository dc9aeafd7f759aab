"""What is written after `/prompt`: which prompt of which server, and its arguments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.tools.mcp.results import PromptArgument, ServerPrompt


class PromptWordsError(Exception):
    """It can't be read. `str()` is one line: what is wrong, and how to write it."""


def find_prompt(args: str, prompts: Sequence[ServerPrompt]) -> tuple[ServerPrompt, dict[str, str]]:
    """The prompt that `SERVER:NAME arguments` means, and what is given for it. Raises `PromptWordsError`."""
    named = {f"{prompt.server}:{prompt.name}": prompt for prompt in prompts}
    name = max((name for name in named if f"{args} ".startswith(f"{name} ")), key=len, default=None)
    if name is None:
        raise PromptWordsError(f"There is no prompt {args.split()[0]!r}: /prompt lists what there is.")
    return named[name], _arguments(named[name], args.removeprefix(name))


def _arguments(prompt: ServerPrompt, text: str) -> dict[str, str]:
    """`city=Paris state="New York"`; words without a name go to the arguments in their order."""
    import shlex  # not before the first frame

    try:
        words = shlex.split(text)
    except ValueError as error:
        problem = f"The arguments can't be read ({error}): write them like city=Paris or city='New York'."
        raise PromptWordsError(problem) from None
    names = [argument.name for argument in prompt.arguments]
    given: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            given[name] = value
            continue
        free = next((name for name in names if name not in given), None)
        if free is None:
            takes = ", ".join(names) or "none"
            raise PromptWordsError(f"{word!r} is one argument too many: {prompt.name} takes {takes}.")
        given[free] = word
    return given


def next_missing(prompt: ServerPrompt, given: dict[str, str]) -> PromptArgument | None:
    """The argument to ask for next: the first without a value, as long as one that is required has none."""
    missing = [argument for argument in prompt.arguments if argument.name not in given]
    return missing[0] if any(argument.required for argument in missing) else None


def call_form(prompt: ServerPrompt) -> str:
    """`server:name city [state]`: how it is written."""
    wants = " ".join(a.name if a.required else f"[{a.name}]" for a in prompt.arguments)
    return f"{prompt.server}:{prompt.name} {wants}".rstrip()
