"""What `chatctx COMMAND --help` says: in a line, in a paragraph, and by examples."""

from __future__ import annotations

from typing import NamedTuple


class Manual(NamedTuple):
    """One command's page. `examples` are pairs of a command line and what it does."""

    help: str
    description: str
    examples: tuple[tuple[str, str], ...]

    @property
    def epilog(self) -> str:
        """The examples as they stand at the end of the page."""
        width = max(len(line) for line, _ in self.examples)
        lines = [f"  {line:<{width}}  {what}".rstrip() for line, what in self.examples]
        return "\n".join([f"example{'s' if len(lines) > 1 else ''}", *lines])


MANUAL: dict[str, Manual] = {
    "ask": Manual(
        "one question, the answer on standard output",
        """\
Asks one question and writes the answer to standard output as it comes. Notices (a compaction, something trimmed, a
second try) go to standard error. The question and the answer are a session like any other: --session and --continue
go on with one, and so does the chat.

The model may call tools as in the chat, each call is a line on standard error. Those that only read run; nobody can be
asked about the others: they are refused, unless --allow names them or [tools.rules] allows them.

A lone - stands for standard input, and so does no question at all behind a pipe. Memory files (AGENTS.md) of the
working directory go along, as in the chat.

With --json the answer comes whole, as one object: session, provider, model, status, text, error, usage (tokens),
cost (US dollars, null where the price is unknown) and seconds.

Exit code 0 means a whole answer, 1 none or a part of one, 2 bad usage, 130 that it was interrupted.""",
        (
            ('chatctx ask "what is a monad?"', ""),
            ('git diff | chatctx ask "review this" -', "standard input after the words"),
            ("chatctx ask -a plot.png -a data.csv what is odd here", "with a picture and a text file"),
            ('chatctx ask --system "Answer in French." hello', "instructions for this session"),
            ("chatctx ask -c and why is that", "go on with the last session"),
            ('chatctx ask --allow "github__*" close what is done', "with tools that would ask"),
            ("chatctx ask --json hello | jq .cost", "for scripts"),
        ),
    ),
    "sessions": Manual(
        "stored sessions, the newest first",
        """\
Lists id, time of the last change, number of messages, model and title. With TEXT only the sessions whose title or
messages contain it. The beginning of an id is enough wherever an ID is asked for.""",
        (
            ("chatctx sessions parser", "sessions that mention a parser"),
            ("chatctx --resume 01a2", "open one in the chat"),
        ),
    ),
    "context": Manual(
        "what the next request of a session costs",
        """\
Shows what fills the context window, as /context does in the chat: every row with its tokens and how they are known
(measured, derived, counted or estimated). Changes nothing in the session; with -m, as another model would see it.

With --json one object: window, total, upper_bound, source, basis, rows (with their items), output_reserve,
compaction_buffer, free, over, until_compaction, deferred (tools that wait until the model searches for them). Numbers
are tokens, null is unknown. MCP servers are not started for this: their tools are those of the last time.""",
        (
            ("chatctx context", "the last session"),
            ("chatctx context 01a2 -m openai/gpt-5.6", "would it fit there?"),
            ("chatctx context --json | jq .total", "for scripts"),
        ),
    ),
    "usage": Manual(
        "tokens, cost, and how good the estimates were",
        """\
Adds up all calls: input (fresh and from the cache), output and the reasoning in it, cost in US dollars ("$0.42+?"
or "?" where prices are unknown; with --json "cost" and "known_cost"), how far the estimates were off, trims and
compactions; for a session, for today, for all time, by provider, model and day. Imported sessions count at the time
they were held. The calls that a fork was given count in the session it came from; how many these are is said (with
--json as "inherited").""",
        (
            ("chatctx usage", "the last session beside today and all time"),
            ("chatctx usage --days 7", "tables for a week"),
            ("chatctx usage --json | jq .all.cost", "for scripts"),
        ),
    ),
    "models": Manual(
        "the models that can be used now",
        """\
Asks every provider with a key at hand and every local server that answers, and lists their models, the last used
first: context window and where that is known from, dollars for a million tokens of input and output, whether it takes
images and tools, when its reasoning goes back to it, whether the server counts exactly. ? is unknown. Who could not be
asked is a line on standard error, and its list is the one from before.""",
        (
            ("chatctx models", "all of them"),
            ("chatctx models qwen --json", "for scripts"),
        ),
    ),
    "export": Manual(
        "write a session to a file",
        """\
The ending says the form: .jsonl loses nothing (messages, records, calls, attachments) and can be imported again; .md
is to read; .html is one page to read or to show, with highlighted code and nothing loaded from elsewhere.""",
        (
            ("chatctx export 01a2 talk.html", "a page"),
            ("chatctx export 01a2 talk.jsonl", "for another machine: chatctx import talk.jsonl"),
        ),
    ),
    "import": Manual(
        "take sessions in from files",
        """\
Takes in our own exports (.jsonl), without loss, and the session files of Claude Code, pi and Gemini CLI. Each file is
read, checked and measured first and comes in whole or not at all. What was imported before is recognised by its
content and left out; --again takes it in as another conversation (its calls then count twice in `chatctx usage`).

The calls of other programs anchor the numbers: /context and `chatctx context` work on such sessions at once. What
those programs sent besides (system prompt, tools) is not in their files and is not sent from here; the numbers say
what a request from here would cost.""",
        (
            ("chatctx import talk.jsonl", "what `chatctx export` wrote"),
            ("chatctx import ~/.claude/projects/*/*.jsonl", "every session of Claude Code"),
            ("chatctx import --json FILE | jq -r '.[].session'", "for scripts"),
        ),
    ),
    "replay": Manual(
        "score the estimator on recorded conversations",
        """\
Feeds recorded conversations to the estimator call by call, and compares each prediction, made before the call, with
the provider's count: median, 95th and 99th percentile of the error, bias, how often the upper bound held. Stores
nothing.""",
        (
            ("chatctx replay ~/.claude/projects/*/*.jsonl", "on your own sessions"),
            ("chatctx replay --method chars4 FILE", "four characters a token, to compare"),
        ),
    ),
    "serve": Manual(
        "show the chat in a browser",
        """\
Serves the chat as a web page until Ctrl+C. Every browser tab runs a chat of its own, on this machine, with your keys
and sessions: every user of this machine can reach it. Pages of other sites can't. With another --host or with
--public-url the address that is printed holds a secret, without which nobody is let in; what is sent is not encrypted,
so put a proxy with https before it on a network that is not yours. Needs the extra "serve".""",
        (
            ("pip install 'chatctx[serve]'", "once"),
            ("chatctx serve --port 8080", "then open the address it prints"),
            ("chatctx --continue serve -m ollama/qwen3", "the last session, with this model"),
        ),
    ),
    "completion": Manual(
        "completion for bash, zsh or fish",
        """\
Prints a script that completes commands, options, files and session ids.""",
        (
            ('eval "$(chatctx completion bash)"', "in ~/.bashrc"),
            ('eval "$(chatctx completion zsh)"', "in ~/.zshrc, after compinit"),
            ("chatctx completion fish > ~/.config/fish/completions/chatctx.fish", ""),
        ),
    ),
    "doctor": Manual(
        "check the installation",
        """\
Says where the files are, whether sessions, tokenizers and the embedded model can be used, which keys and servers are
there, which MCP servers are configured (none is started), and what the terminal can show.
Sends nothing. Exit code 1 if something will not work.""",
        (("chatctx doctor", ""),),
    ),
}
