"""`/model`: change the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.commands import UI, Chat, CommandError, command, split_option
from tui.text.numbers import tokens_exact
from tui.views.view import Option, Question

if TYPE_CHECKING:
    from tui.chat.turn.session import ChatSession
    from tui.context.usage.usage import ContextUsage

COMPACT, ANYWAY, STAY = "compact", "anyway", "stay"
"""What to do if the conversation does not fit the model; the first two are options of the command, too."""
LEARNED, FORGET = "learned", "forget"
"""In place of a name: show what was learned about the current model, or forget it."""


async def complete(_ui: UI, chat: Chat, _args: str) -> Sequence[Option]:
    """Models by name, as listed last; no server is asked while typing."""
    from tui.views.models import window_text

    listing = await chat.workspace.model_list.cached()
    return [Option(m.full_name, m.full_name, f"{window_text(m.limits)}  {m.limits.detail}") for m in listing.models]


@command(
    "change the model that answers",
    "model",
    when="idle",
    args="[NAME|learned|forget]",
    aliases=("m",),
    complete=complete,
    first=True,
)
async def run(ui: UI, chat: Chat, args: str) -> None:
    """Switch to the named model, or to one chosen from the list.

    If the conversation does not fit its window, the person is asked before anything changes.
    """
    name, option = args, ""
    for choice in (COMPACT, ANYWAY):
        name, is_there = split_option(name, f"--{choice}")
        option = choice if is_there else option
    if unknown := next((word for word in name.split() if word.startswith("--")), ""):
        raise CommandError(f"/model has the options --{COMPACT} and --{ANYWAY}, not {unknown}.")
    if name in (LEARNED, FORGET) and not option:  # can't be a model's name: full names contain a slash
        await ui.say(await learned_line(chat.session, forget=name == FORGET))
        return
    if not name:
        from tui.views.models import model_menu

        name = await ui.choose(model_menu(chat.workspace.model_list, chat.session)) or ""
        if not name:
            return
    session = chat.session
    async with ui.progress(f"asking about {name}"):
        full_name = await chat.workspace.find_model(name)
        usage = await session.measured_for(full_name)
    if ui.busy or chat.session is not session:
        raise CommandError(f"Not switched to {full_name}: an answer is under way. /model {full_name} tries again.")
    if not option and session.messages and not usage.budget.fits(usage.upper_bound):
        option = await ui.confirm(too_small(session, full_name, usage)) or STAY
    if option == COMPACT:
        await ui.turn(session.compact_for(full_name))
    elif option != STAY:
        await session.set_model(full_name)
        await ui.changed()
        await ui.say(f"{full_name} is the model from now on.{_not_taken(session)}")


async def learned_line(session: ChatSession, *, forget: bool) -> str:
    """A line with what was learned about the current model. With `forget` it is forgotten."""
    name, lines = f"{session.provider}/{session.model}", session.learned
    if not lines:
        return f"Nothing was learned about {name}."
    facts = ". ".join(lines)
    if not forget:
        return f"Learned about {name}: {facts}. /model {FORGET} forgets it."
    await session.forget_learned()
    return f"Forgotten about {name}: {facts}."


def too_small(session: ChatSession, full_name: str, usage: ContextUsage) -> Question:
    """The question with three ways to go on, and the figures of both models. `usage` is that with the new one."""
    text = (
        f"This conversation is {tokens_exact(usage.total, usage.source)} tokens to {full_name}, whose window of "
        f"{tokens_exact(usage.limits.context)} takes {tokens_exact(usage.budget.max_input)} of input."
    )
    present = f"{session.provider}/{session.model}"
    if session.conversation.info.rolling:
        later = "old content is left out until it fits"
    elif usage.budget.compaction_at is not None:
        later = f"{full_name} summarises it itself, in parts, before your next message"
    else:
        later = "nothing is sent until it fits: /compact or /rolling-context on"
    return Question(
        "A smaller window",
        text,
        (
            Option(COMPACT, "Summarise first", f"{present} does that now, then {full_name} goes on"),
            Option(ANYWAY, "Switch anyway", later),
            Option(STAY, f"Stay with {present}", "nothing changes"),
        ),
        f"Not switched. /model {full_name} --{COMPACT} summarises it first, with {present}; "
        f"/model {full_name} --{ANYWAY} switches all the same.",
    )


def _not_taken(session: ChatSession) -> str:
    """The parts of the conversation that the model does not accept, as a sentence; "" for none."""
    from tui.chat.attachments import not_taken
    from tui.messages import Attachment

    parts = [part for message in session.messages for part in message.parts if isinstance(part, Attachment)]
    kinds = {part.name: kind for part in parts if (kind := not_taken(part, session.conversation.target.capabilities))}
    if not kinds:
        return ""
    names = ", ".join([*list(kinds)[:2], *([f"{len(kinds) - 2} more"] if len(kinds) > 2 else [])])
    return f" It takes no {' and no '.join(sorted(set(kinds.values())))}: {names} stays here and is not sent to it."
