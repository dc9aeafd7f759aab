"""The slash commands as data: typing, completion, the palette and `/help` all read this one list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tui.widgets.composer.completion import Choice

Run: TypeAlias = "Callable[[Chat, str], Awaitable[None]]"
Complete: TypeAlias = "Callable[[Chat, str], Awaitable[Sequence[Choice]]]"


class Chat(Protocol):
    """What a command can ask for. The chat screen's actions implement it; the argument is what follows the name."""

    async def show_context(self, args: str) -> None: ...
    async def rolling(self, args: str) -> None: ...
    async def compact(self, args: str) -> None: ...
    async def summary(self, args: str) -> None: ...
    async def undo(self, args: str) -> None: ...
    async def new(self, args: str) -> None: ...
    async def pick_model(self, args: str) -> None: ...
    async def provider(self, args: str) -> None: ...
    async def pick_session(self, args: str) -> None: ...
    async def retry(self, args: str) -> None: ...
    async def window(self, args: str) -> None: ...
    async def pick_theme(self, args: str) -> None: ...
    async def copy(self, args: str) -> None: ...
    async def fold(self, args: str) -> None: ...
    async def show_times(self, args: str) -> None: ...
    async def find(self, args: str) -> None: ...
    async def usage(self, args: str) -> None: ...
    async def rename(self, args: str) -> None: ...
    async def export(self, args: str) -> None: ...
    async def take_in(self, args: str) -> None: ...
    async def delete(self, args: str) -> None: ...
    async def system(self, args: str) -> None: ...
    async def memory(self, args: str) -> None: ...
    async def thinking(self, args: str) -> None: ...
    async def tools(self, args: str) -> None: ...
    async def mcp(self, args: str) -> None: ...
    async def prompt(self, args: str) -> None: ...
    async def edit(self, args: str) -> None: ...
    async def paste(self, args: str) -> None: ...
    async def help(self, args: str) -> None: ...
    async def quit(self, args: str) -> None: ...

    async def complete_tools(self, args: str) -> Sequence[Choice]: ...
    async def complete_memory(self, args: str) -> Sequence[Choice]: ...
    async def complete_mcp(self, args: str) -> Sequence[Choice]: ...
    async def complete_prompt(self, args: str) -> Sequence[Choice]: ...
    async def complete_providers(self, args: str) -> Sequence[Choice]: ...
    async def complete_models(self, args: str) -> Sequence[Choice]: ...
    async def complete_themes(self, args: str) -> Sequence[Choice]: ...


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `args` is how its argument is written in the help."""

    name: str
    help: str
    run: Run
    args: str = ""
    aliases: tuple[str, ...] = ()
    complete: Complete | None = None
    ways: tuple[tuple[str, str], ...] = ()  # arguments that the palette offers too, and what they do

    @property
    def usage(self) -> str:
        """ "/compact [instructions]"."""
        return f"/{self.name} {self.args}".rstrip()

    @property
    def wants_words(self) -> bool:
        """Whether it does nothing without an argument."""
        return bool(self.args) and not self.args.startswith("[")


def _fixed(*choices: tuple[str, str]) -> Complete:
    async def complete(_chat: Chat, args: str) -> Sequence[Choice]:
        return [Choice(text, text, what) for text, what in choices]

    return complete


PREVIEW = "--preview"
_PREVIEW = (PREVIEW, "see and change the summary first")


async def _preview(_chat: Chat, args: str) -> Sequence[Choice]:
    """Not offered before a "-" is typed: enter after `/compact ` compacts."""
    return [Choice(PREVIEW, *_PREVIEW)] if args.startswith("-") else []


COMMANDS: tuple[Command, ...] = (
    Command("context", "what fills the context window", lambda c, a: c.show_context(a), aliases=("ctx",)),
    Command(
        "rolling-context", "leave old content out instead of summarising it", lambda c, a: c.rolling(a), "[on|off]",
        ("rolling",), _fixed(("on", "trim old content when it gets tight"), ("off", "summarise instead")),
    ),
    Command(
        "compact", "summarise what is old; --preview shows the summary first, to change it",
        lambda c, a: c.compact(a), "[--preview] [words]", (), _preview, (_PREVIEW,),
    ),
    Command("summary", "read and change the summary of what was compacted", lambda c, a: c.summary(a)),
    Command("undo", "take the last compaction back, or the last change of its summary", lambda c, a: c.undo(a)),
    Command(
        "model", "change who answers", lambda c, a: c.pick_model(a), "[name]", ("m",), lambda c, a: c.complete_models(a)
    ),
    Command(
        "provider", "use another provider; where its key comes from is tried out first", lambda c, a: c.provider(a),
        "[name]", ("login",), lambda c, a: c.complete_providers(a),
    ),
    Command("new", "start a new conversation; this one is kept", lambda c, a: c.new(a), aliases=("clear",)),
    Command("sessions", "open another conversation", lambda c, a: c.pick_session(a), "[words]", ("resume",)),
    Command("rename", "name this conversation", lambda c, a: c.rename(a), "TITLE"),
    Command("export", "write this conversation to a file", lambda c, a: c.export(a), "[FILE.md|.html|.jsonl]"),
    Command(
        "import", "import a session of chatctx or another program", lambda c, a: c.take_in(a),
        "FILE [--again]",
    ),
    Command("delete", "take this conversation out of the list", lambda c, a: c.delete(a)),
    Command("usage", "tokens, cost, and how good the estimates were", lambda c, a: c.usage(a), aliases=("cost",)),
    Command("system", "show or change the system prompt", lambda c, a: c.system(a), "[text]"),
    Command(
        "memory", "memory files (AGENTS.md) and what they cost; switch one off or on", lambda c, a: c.memory(a),
        "[FILE]", (), lambda c, a: c.complete_memory(a),
    ),
    Command(
        "thinking", "how long the model thinks first", lambda c, a: c.thinking(a), "[off|low|medium|high]", (),
        _fixed(("off", ""), ("low", ""), ("medium", ""), ("high", ""), ("default", "as the provider likes")),
    ),
    Command(
        "tools", "what the model may call, and what that costs", lambda c, a: c.tools(a), "[on|off NAME]", (),
        lambda c, a: c.complete_tools(a),
    ),
    Command(
        "mcp", "MCP servers: how they are, what their tools cost", lambda c, a: c.mcp(a), "[restart|on|off NAME]", (),
        lambda c, a: c.complete_mcp(a),
    ),
    Command(
        "prompt", "put a prompt of an MCP server into the draft", lambda c, a: c.prompt(a), "[SERVER:NAME] [arguments]",
        (), lambda c, a: c.complete_prompt(a),
    ),
    Command("edit", "write the draft in your own editor", lambda c, a: c.edit(a)),
    Command("paste", "attach the picture in the clipboard, or insert its text", lambda c, a: c.paste(a)),
    Command("retry", "ask for the last answer again", lambda c, a: c.retry(a)),
    Command("find", "search this conversation", lambda c, a: c.find(a), "[words]", ("search",)),
    Command("copy", "copy the last answer", lambda c, a: c.copy(a)),
    Command("fold", "fold all thoughts, tool results and long messages, or unfold them", lambda c, a: c.fold(a)),
    Command("times", "show when each message was written, or hide that", lambda c, a: c.show_times(a)),
    Command(
        "window", "set the size of this model's window", lambda c, a: c.window(a), "[128k|reset]", (),
        _fixed(("reset", "forget what was set and learned")),
    ),
    Command(
        "theme", "change the colours", lambda c, a: c.pick_theme(a), "[name]", (), lambda c, a: c.complete_themes(a)
    ),
    Command("help", "commands and keys", lambda c, a: c.help(a), aliases=("?",)),
    Command("quit", "leave; everything is kept", lambda c, a: c.quit(a), aliases=("exit", "q")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unknown:
    """A command that isn't there. `text` is the line for the person."""

    text: str


def is_command(text: str) -> bool:
    """Whether a draft is meant as a command: one line that starts with a slash and a letter, and isn't a path."""
    first, *_ = text.split(maxsplit=1) or [""]
    return text.startswith("/") and "\n" not in text.strip() and first[1:2] not in ("", "/") and "/" not in first[1:]


def parse(text: str) -> tuple[Command, str] | Unknown:
    """Command and argument of a draft that `is_command`."""
    name, _, args = text.strip().removeprefix("/").partition(" ")
    names = {known: command for command in COMMANDS for known in (command.name, *command.aliases)}
    command = names.get(name.lower())
    if command is not None:
        return command, args.strip()
    import difflib  # only a mistyped command needs it

    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"Did you mean /{names[near[0]].name}?" if near else "/help lists what there is."
    return Unknown(f"There is no command /{name}. {hint} To send it as a message, put a blank before it.")


async def complete(chat: Chat, text: str) -> list[Choice]:
    """Offers for the draft `text`: command names, or arguments once there is a blank. Best first."""
    if not text.startswith("/") or "\n" in text:
        return []
    name, blank, args = text[1:].partition(" ")
    if not blank:
        if "/" in name:
            return []
        found = []
        for command in COMMANDS:
            score = max(match(name, command.name), *(match(name, alias) - 0.5 for alias in command.aliases), 0.0)
            if score > 0:
                found.append(
                    (score, Choice(f"/{command.name}" + (" " if command.args else ""), command.usage, command.help))
                )
        found.sort(key=lambda pair: -pair[0])
        return [choice for _, choice in found]
    parsed = parse(text)
    if isinstance(parsed, Unknown) or parsed[0].complete is None:
        return []
    command = parsed[0]
    offers = await parsed[0].complete(chat, args)
    ranked = [(match(args, offer.label), offer) for offer in offers]
    ranked = sorted((pair for pair in ranked if pair[0] > 0), key=lambda pair: -pair[0])
    if any(offer.text == args for _, offer in ranked):
        return []
    return [Choice(f"/{command.name} {offer.text}", offer.label, offer.help) for _, offer in ranked]


def match(query: str, candidate: str) -> float:
    """How well `query` fits: 0 not at all; letters in order anywhere fit, a beginning fits best.

    An empty query fits everything alike.
    """
    wanted, text = query.lower().strip(), candidate.lower()
    if not wanted:
        return 1.0
    if text.startswith(wanted):
        return 4.0
    if (at := text.find(wanted)) >= 0:
        return 3.0 if not text[at - 1].isalnum() else 2.0
    places, start = [], 0
    for letter in wanted:
        at = text.find(letter, start)
        if at < 0:
            return 0.0
        places.append(at)
        start = at + 1
    return len(wanted) / (places[-1] - places[0] + 1)
