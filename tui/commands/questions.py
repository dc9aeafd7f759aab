"""Questions of MCP servers, asked through the `UI` port: the same in every interface."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from tui.chat.conversation.completion import Sampling
from tui.commands import UI, Chat
from tui.providers.base import ProviderError
from tui.terminal.browser import open_in_browser
from tui.text.cells import plain
from tui.text.numbers import money, tokens_exact
from tui.tools.mcp.questions import Field, FormQuestion, LinkQuestion, Question, Reply, SampleQuestion, read_form
from tui.views import view

CAUTION = "The answer goes to that server. Don't write passwords or keys here."
NOBODY = "An MCP server asked a question, which can't be answered here: it was told so."
CANCEL, DECLINE = Reply("cancel"), Reply("decline")


async def ask(ui: UI, chat: Chat, question: Question) -> Reply:
    """Ask the person. The first answer to each question is to do nothing."""
    match question:
        case SampleQuestion():
            return await _sampled(ui, chat, question)
        case FormQuestion(fields=()):
            agreed = await _choose(ui, question, question.message, [view.Option("yes", "Agree")], read="yes")
            return Reply("accept", {}) if agreed == "yes" else _refusal(agreed)
        case FormQuestion(fields=(field,)) if field.required and (answers := _answers(field)):
            return await _chosen(ui, question, field, answers)
        case FormQuestion():
            return await _filled_in(ui, question)
        case LinkQuestion():
            return await _opened(ui, question)


def _title(question: Question) -> str:
    return f"The MCP server {question.server} asks"


async def _choose(
    ui: UI,
    question: Question,
    text: str,
    answers: Iterable[view.Option],
    *,
    nothing: str = "nothing is sent",
    read: str = "",
) -> str | None:
    """The key of one of the answers, or of a refusal. `read` is the key that agrees to the text."""
    refusals = view.Option("", "Not now", nothing), view.Option("decline", "Decline", "the server is told")
    must_read = (read,) if read else ()
    return await ui.confirm(
        view.Question(_title(question), text, (*refusals, *answers), NOBODY, must_read=must_read, unasked=True)
    )


def _refusal(answer: str | None) -> Reply:
    return DECLINE if answer == "decline" else CANCEL


def _answers(field: Field) -> Mapping[str, view.Option]:
    """The options of a field that is answered by choosing. In `--plain` their keys are typed."""
    if field.kind == "boolean" and not field.options:
        return {"yes": view.Option("yes", "Yes"), "no": view.Option("no", "No")}
    if field.many or not field.options:
        return {}
    return {value: view.Option(f"{number}", label) for number, (value, label) in enumerate(field.options, 1)}


async def _chosen(ui: UI, question: FormQuestion, field: Field, answers: Mapping[str, view.Option]) -> Reply:
    text = f"{question.message}\n\n{field.label}"
    answer = await _choose(ui, question, text, answers.values())
    value = next((value for value, option in answers.items() if option.key == answer), None)
    return _refusal(answer) if value is None else Reply("accept", {field.name: field.read(value)})


async def _filled_in(ui: UI, question: FormQuestion) -> Reply:
    """Ask first whether to answer, so that keys meant for the prompt fill in nothing."""
    labels = "\n".join(f"- {field.label}" for field in question.fields)
    text = f"{question.message}\n\n{labels}\n\n{CAUTION}"
    answer = await _choose(ui, question, text, [view.Option("answer", "Answer", "fill it in")])
    if answer != "answer":
        return _refusal(answer)

    async def submit(values: Mapping[str, str]) -> str:
        try:
            read_form(question, values)
        except ValueError as error:
            raise view.RejectedError(str(error)) from None
        return f"Sent to {plain(question.server)}."

    fields = tuple(
        view.Field(f.name, f.label, f.default, f.hint, f.required, view.may_be_secret(f.name, f.label))
        for f in question.fields
    )
    form = view.Form(_title(question), question.message, fields, "send", NOBODY, submit)
    values = await ui.ask(form)
    return CANCEL if values is None else Reply("accept", read_form(question, values))


async def _sampled(ui: UI, chat: Chat, question: SampleQuestion) -> Reply:
    """Show the whole request with its cost. Nothing of the conversation is sent."""
    sampling = Sampling(chat.session.conversation, chat.workspace.services)
    prepared = await sampling.prepare(question)
    request = prepared.request
    if prepared.problem:
        await ui.refuse(f"The MCP server {question.server} wants to ask {request.model} something: {prepared.problem}.")
        return Reply("cancel", problem=prepared.problem)
    cost = "at an unknown price" if prepared.cost is None else f"for at most {money(prepared.cost)}"
    tokens = tokens_exact(prepared.tokens, "estimated")
    head = (
        f"It wants {request.provider}/{request.model} to answer the text below, {cost}: {tokens} tokens in,"
        f" at most {request.max_output:,} out. Nothing of this conversation is sent; the server gets the answer."
    )
    parts = [("system", question.system)] if question.system.strip() else []
    text = "\n\n".join([head, *(f"{role}: {words}" for role, words in (*parts, *question.messages))])
    answer = await _choose(ui, question, text, [view.Option("send", "Send it", "once")], read="send")
    if answer != "send":
        return _refusal(answer)
    try:
        return Reply("accept", sampled=await sampling.run(prepared))
    except ProviderError as error:
        await ui.refuse(f"The MCP server {question.server} got no answer: {error}")
        return Reply("cancel", problem="the model's provider failed")


async def _opened(ui: UI, question: LinkQuestion) -> Reply:
    """Show the whole address, and its host separately."""
    host = urlsplit(question.url).hostname or "an address without a host"
    text = (
        f"{question.message}\n\nIt wants you to open a page of {host}:\n{question.url}\n\n"
        "What you enter there goes to that page. chatctx does not see it."
    )
    answers = view.Option("open", "Open it"), view.Option("done", "I have opened it")
    answer = await _choose(ui, question, text, answers, nothing="nothing is opened", read="open")
    if answer == "open" and not await asyncio.to_thread(open_in_browser, question.url):
        await ui.refuse(f"No browser could be opened here. The address: {question.url}")
    return Reply("accept") if answer in ("open", "done") else _refusal(answer)
