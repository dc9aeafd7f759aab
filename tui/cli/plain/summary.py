"""`/compact --preview` and `/summary` in `chatctx --plain`: the summary is read out, then a question decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.chat.conversation.events import CompactionStarted
from tui.cli import complain
from tui.cli.ask import event_line
from tui.cli.lines import FENCE
from tui.cli.listing import write
from tui.screens.summary.summary_subject import DraftSubject, StandingSubject, figures_line
from tui.text.clean import clean_text

if TYPE_CHECKING:
    from tui.cli.plain.ports import ChatLike
    from tui.screens.summary.summary_subject import PanelSubject


async def preview(chat: ChatLike, wish: str) -> None:
    """Let the model summarise, read it out, and compact with it or with the person's own words, or not at all."""
    from tui.chat.compaction.summaries import FAILURES

    summaries = chat.session.summaries
    complain(event_line(CompactionStarted(automatic=False)))
    try:
        subject = DraftSubject(summaries, await summaries.draft(wish))
    except FAILURES as error:
        complain(f"{str(error).rstrip('.')}. Nothing was changed.")
        return
    await _decide(chat, subject)
    if subject.done is not None:
        complain(subject.done.line)
    else:
        why = "Nothing was changed" if chat.talks else "Nobody can be asked here; /compact compacts without a question"
        complain(f"Not compacted. {why}.")
    await chat.session.refresh_usage()


async def change(chat: ChatLike) -> None:
    """Read the summary in force out, and put the person's own words in its place if they write some."""
    from tui.context.reduction.compaction_rules import compaction_report

    standing = chat.session.summaries.standing()
    if standing is None:
        complain("There is no summary in force that can be read: /compact makes one.")
        return
    subject = StandingSubject(chat.session.summaries, standing)
    await _decide(chat, subject)
    if subject.done is not None:
        complain(compaction_report(subject.done[0]))
        await chat.session.refresh_usage()


async def _decide(chat: ChatLike, subject: PanelSubject) -> None:
    """Ask until the person has accepted a text or left. A pipe holds messages, no answers: nothing is asked there."""
    from tui.chat.compaction.summaries import FAILURES

    text = subject.text
    while True:
        weight = await subject.weigh(text)
        write(f"{subject.title}. {subject.about(weight)}")
        write(clean_text(text))
        write(f"({figures_line(weight)})")
        if weight.problem:
            complain(weight.problem)
        if not chat.talks:
            return
        ways = "e write another text, n leave it"
        match (await chat.ask(f"y {subject.accept}, {ways}:" if not weight.problem else f"{ways}:")).lower():
            case "y" if not weight.problem:
                try:
                    await subject.put(text)
                except FAILURES as error:
                    complain(str(error))
                else:
                    return
            case "e":
                write(f"{FENCE} begins and ends a text of several lines.")
                text = await chat.text("summary:") or text
            case "n" | "":
                return
            case _:
                continue
