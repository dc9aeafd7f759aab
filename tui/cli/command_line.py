"""The command line: every command with its arguments, help and examples.

A command is one entry of `COMMANDS`; it is implemented by the function named in `runs` ("module:function" under
`tui.cli`), imported when the command is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tui import __version__
from tui.cli.parsing import (
    FILE,
    MODEL,
    PROGRAM,
    SESSION,
    SETTINGS,
    Command,
    Invocation,
    argument,
    flag,
    option,
    with_help,
    with_session,
    write_examples,
)


def _model_options() -> tuple[click.Option, click.Option]:
    return (
        option("-m", "--model", kind=MODEL, about="provider/model, or a provider alone"),
        option("--gguf", kind=FILE, about="weights for the embedded model"),
    )


def _json_option(text: str = "as JSON") -> click.Option:
    return flag("--json", "as_json", about=text)


COMMANDS = (
    Command(
        "ask",
        "ask one question and write the answer to standard output",
        """\
Asks one question and streams the answer to standard output. Notices (a compaction, a retry) go to standard error.
Question and answer are stored as a session, which --session, --continue and the chat can resume.

The model may call tools, as in the chat; each call is reported on standard error. Tools that only read are run. All
others are refused, since nobody can approve them, unless --allow names them or [tools.rules] allows them.

Standard input (a pipe or a file) is appended to the words, or replaces a - among them. A pipe that stays silent for two
seconds is ignored, with a message; - waits for it, </dev/null leaves it out.

Memory files (AGENTS.md) of the working directory are sent too, as in the chat.

With --json the complete answer is one object: session, provider, model, status, finish_reason, text, refusal, sources,
error, usage (tokens of the last request), calls, input_tokens and output_tokens (of all requests), tokens_estimated
(whether one of these is), cost (US dollars, null if the price is unknown), cost_estimated and seconds.

Exit codes: 0 a complete answer, 1 none or only a part, 2 bad usage, 130 interrupted.""",
        argument("text", nargs=-1, about="the question; - is standard input"),
        *_model_options(),
        option("-s", "--session", "resume", kind=SESSION, about="ask in this session instead of a new one"),
        flag("-c", "--continue", "last", about="ask in the last session"),
        option(
            "-a", "--attach", multiple=True, kind=FILE, about="attach a text file, an image or a PDF; may be repeated"
        ),
        option(
            "--allow",
            metavar="TOOL",
            multiple=True,
            about="run this tool without asking (a name, or a pattern like github__*); may be repeated",
        ),
        option("--system", about="the session's system prompt; '' for none"),
        option("--system-file", kind=FILE, about="the system prompt from a file"),
        _json_option("one JSON object with usage, cost and seconds"),
        inherits=("resume",),
        examples=(
            ('chatctx ask "what is a monad?"', ""),
            ('git diff | chatctx ask "review this"', "standard input after the words"),
            ("chatctx ask -a a.png -a b.csv what is odd here", "with an image and a text file"),
            ('chatctx ask --system "In French." hello', "instructions for this session"),
            ("chatctx ask -c and why is that", "in the last session"),
            ('chatctx ask --allow "github__*" close it', "with tools that would ask"),
            ("chatctx ask --json hello | jq .cost", "for scripts"),
        ),
    ),
    Command(
        "sessions",
        "list stored sessions",
        """\
Lists id, time of the last change, number of messages, model and title. With TEXT only the sessions whose title or
messages contain it. Wherever an ID is expected, its beginning or end is enough.""",
        argument("query", metavar="[TEXT]", default="", about="only sessions that contain it"),
        flag("--all", "every", about="also those beyond the newest 1,000"),
        _json_option(),
        runs="subcommands.listing:sessions",
        examples=(
            ("chatctx sessions parser", "sessions that mention a parser"),
            ("chatctx --resume 01a2", "open one in the chat"),
        ),
    ),
    Command(
        "context",
        "show what the next request of a session costs",
        """\
Shows what fills the context window, as /context does in the chat: every row with its tokens and how they were obtained
(measured, derived, counted or estimated). With -m, as another model would count it. The session is not changed.

With --json one object: session, provider, model, window, budget, rolling, total, upper_bound, source, percent, basis,
rows (with their items), output_reserve, compaction_buffer, free, over, until_compaction, left_out, warnings, deferred
(tools that are not sent before the model searches for them). Numbers are tokens, null is unknown. MCP servers are not
started: their tools are those of the last run.""",
        argument("session", metavar="[ID]", required=False, kind=SESSION, about="the session (default: the last one)"),
        *_model_options(),
        _json_option(),
        runs="subcommands.listing:context",
        examples=(
            ("chatctx context", "the last session"),
            ("chatctx context 01a2 -m openai/gpt-5.6", "would it fit that model?"),
            ("chatctx context --json | jq .total", "for scripts"),
        ),
    ),
    Command(
        "count",
        "count the tokens of texts and files",
        """\
Counts the tokens of files, of folders (without what git ignores), or of standard input ("-"), for any model. It says
how: by the model's own vocabulary where it is included, else by weights fitted to its counts, or estimated. It needs no
key and no server. Tokens that a message adds around its text are not counted.

With --json a list of objects: id (the file, null for standard input), model, tokens, upper_bound (holds for 95 of 100
texts) and how: "vocabulary", "fitted" or "estimated". With --jsonl each line {"id", "text", "model"} of standard input
becomes such an object; -m is the model of lines without one. Lines that can't be read are reported and skipped. --exact
asks the provider (how: "provider"), which needs a key.""",
        argument("files", metavar="[FILE]...", nargs=-1, kind=FILE, about="files or folders"),
        option(
            "-m",
            "--model",
            "models",
            multiple=True,
            kind=MODEL,
            about="the model, with or without its provider; repeat it for more columns",
        ),
        _json_option(),
        flag("--jsonl", "as_lines", about="a JSON object a line, in and out"),
        flag("--exact", about="ask the provider for its own count"),
        examples=(
            ("chatctx count -m gpt-5 README.md", "one file"),
            ("chatctx count -m gpt-5 -m claude-opus-4-7 src", "a folder, two models side by side"),
            ("git diff | chatctx count -m gemini-3-pro", "standard input"),
            ("chatctx count --jsonl <texts.jsonl", "many texts, each with its model"),
        ),
    ),
    Command(
        "usage",
        "show tokens, cost and the accuracy of the estimates",
        """\
Adds up all calls, for a session, for today, for all time, and by provider, model and day: input (fresh, written to
the cache, read from it), output and its reasoning, cost in US dollars, the errors of the estimates, trims and
compactions. "900+?" or "$0.42+?" means that a part is unknown (with --json "cost" and "known_cost").

With --calls each request: what was predicted, what the server reported, whether that is believed and why, what was
left out, and which model answered. Imported sessions count at the time they were held. Calls that a fork inherited
count in the original session; their number is shown (with --json "inherited").""",
        option("-s", "--session", kind=SESSION, about="the session to show (default: the last one)"),
        option(
            "--days",
            metavar="N",
            kind=click.IntRange(1, 100_000),
            about="tables (or calls) of the last N days, including today",
        ),
        flag("--calls", about="a line for each of the session's last 100 requests instead"),
        _json_option(),
        examples=(
            ("chatctx usage", "the last session, today and all time"),
            ("chatctx usage --days 7", "tables for a week"),
            ("chatctx usage --calls", "predicted and reported tokens, request by request"),
            ("chatctx usage --json | jq .all.cost", "for scripts"),
        ),
    ),
    Command(
        "models",
        "list the models that can be used now",
        """\
Asks every provider with a key and every local server, and lists their models, the last used first: context window and
its source, dollars per million tokens of input and output, whether the model takes images and tools, when its
reasoning is sent back, whether the server counts exactly. ? is unknown. Providers that don't answer are reported on
standard error, and listed as they were last time.""",
        argument("query", metavar="[TEXT]", default="", about="only models whose names contain it"),
        _json_option(),
        runs="subcommands.listing:models",
        examples=(("chatctx models", "all models"), ("chatctx models qwen --json", "for scripts")),
    ),
    Command(
        "export",
        "write a session to a file",
        """\
The suffix chooses the format: .jsonl is lossless (messages, records, calls, attachments) and can be imported again; .md
is for reading; .html is one self-contained page with highlighted code.""",
        argument("session", metavar="ID", kind=SESSION, about="the session's id, or its beginning or end"),
        argument("file", kind=FILE, about="FILE.jsonl (lossless), FILE.md or FILE.html"),
        flag("--force", about="overwrite the file if it is there already"),
        runs="subcommands.import_export:export",
        examples=(
            ("chatctx export 01a2 talk.html", "a page"),
            ("chatctx export 01a2 talk.jsonl", "for another machine: chatctx import talk.jsonl"),
        ),
    ),
    Command(
        "import",
        "import sessions from files",
        """\
Imports chatctx's own exports (.jsonl) without loss, and sessions of Codex, Claude Code, Gemini CLI, opencode, pi,
qwen-code, Kimi, crush, goose, Cline, Roo Code, Kilo Code, llm and aider, and exports of ChatGPT, Claude.ai and Open
WebUI. Without FILE it looks where those programs keep their files and offers what is new. Each session is checked first
and imported completely or not at all; damaged lines in files of other programs are reported and skipped.
Sessions that were imported before are recognised by their content and skipped; --again imports them as new ones
(their calls then count twice in `chatctx usage`).

Estimates start from the usage that those programs recorded: /context and `chatctx context` work at once. Their system
prompts and tools are not in the files and not sent by chatctx: the numbers are those of a request from chatctx.""",
        argument("files", metavar="[FILE]...", nargs=-1, kind=FILE, about="a session, database or task folder"),
        flag("--again", about="import again what was imported before, as another session"),
        _json_option("as JSON; needs FILE"),
        runs="subcommands.import_export:import_files",
        examples=(
            ("chatctx import talk.jsonl", "what `chatctx export` wrote"),
            ("chatctx import", "offers sessions of other programs"),
            ("chatctx import ~/.claude/projects/*/*.jsonl", "every session of Claude Code"),
            ("chatctx import --json FILE | jq -r '.[].session'", "for scripts"),
        ),
    ),
    Command(
        "replay",
        "score the estimates on recorded sessions",
        """\
Replays recorded sessions call by call, and compares each estimate, made before the call, with the provider's
count: median, 95th and 99th percentile of the error, bias, how often the upper bound held. Stores nothing.""",
        argument(
            "files",
            metavar="FILE...",
            nargs=-1,
            required=True,
            kind=FILE,
            about="as for import; needs the usage of each call",
        ),
        _json_option(),
        flag("--no-learning", about="without the learned correction factor"),
        option(
            "--method",
            kind=click.Choice(["hybrid", "chars4"]),
            default="hybrid",
            about="chars4: four characters a token, to compare",
        ),
        runs="subcommands.import_export:replay_files",
        examples=(
            ("chatctx replay ~/.claude/projects/*/*.jsonl", "on your own sessions"),
            ("chatctx replay --method chars4 FILE", "the naive method, to compare"),
        ),
    ),
    Command(
        "watch",
        "show the context of another program's session",
        """\
Follows the newest session of Claude Code, Codex, Gemini CLI, opencode or pi in this folder, or FILE, as it grows: what
fills its window, the size of the next call, how far it is to its own compaction, the share that came from the cache,
today's cost, and how good the estimates were. Only reads. --line prints one line and exits; as Claude Code's statusLine
command it reads that program's JSON on standard input.""",
        argument("file", required=False, kind=FILE, about="a session file"),
        flag("--line", about="one line, for a status line"),
        _json_option("a line of JSON after every change"),
        option("--window", metavar="N", about="the window in tokens, if the file does not say"),
        examples=(
            ("chatctx watch", "beside the agent, in this folder"),
            ("chatctx watch --line", '"statusLine": {"type": "command", "command": "chatctx watch --line"}'),
        ),
    ),
    Command(
        "serve",
        "show the chat in a browser",
        """\
Serves the chat as a web page until Ctrl+C. Each browser tab is a chat of its own, on this machine, with your keys and
sessions; at most eight at a time. The printed address contains a secret that is required for access, also on this
machine. Commands that run programs or access any file (/provider, /mcp, /edit, /export, /import, /paste) are disabled
in the browser unless --unrestricted is given. The connection is not encrypted: on a network that is not yours put a
proxy with https in front. Needs the extra "serve".""",
        *_model_options(),
        option("--host", metavar="HOST", default="127.0.0.1", about="address to listen on (default: 127.0.0.1)"),
        option(
            "--port",
            metavar="N",
            kind=click.IntRange(1, 65_535),
            default=8000,
            about="port to listen on (default: 8000)",
        ),
        option("--public-url", metavar="URL", about="the address that browsers use, if there is a proxy"),
        flag("--unrestricted", about="enable all commands in the browser"),
        inherits=("resume", *SETTINGS),
        examples=(
            ("pip install 'chatctx[serve]'", "once"),
            ("chatctx serve --port 8080", "then open the address it prints"),
            ("chatctx --continue serve -m ollama/qwen3", "the last session, with this model"),
        ),
    ),
    Command(
        "config",
        "print the schema of the config file for editors",
        """\
Prints the JSON Schema of the config file. Editors with Taplo, Even Better TOML or tombi complete and check the file if
its first line is: #:schema chatctx.schema.json""",
        argument("document", metavar="schema", kind=click.Choice(["schema"]), about="what to print"),
        runs="subcommands.listing:config",
        examples=(("chatctx config schema > ~/.config/chatctx/chatctx.schema.json", ""),),
    ),
    Command(
        "completion",
        "print a completion script for bash, zsh or fish",
        """\
Prints a script that completes commands, options, files, session ids and models. It asks chatctx at every Tab, so it
stays valid after an update.""",
        argument("shell", metavar="SHELL", kind=click.Choice(["bash", "zsh", "fish"]), about="bash, zsh or fish"),
        runs="parsing:print_completion",
        examples=(
            ('eval "$(chatctx completion bash)"', "in ~/.bashrc"),
            ('eval "$(chatctx completion zsh)"', "in ~/.zshrc, after compinit"),
            ("chatctx completion fish > ~/.config/fish/completions/chatctx.fish", ""),
        ),
    ),
    Command(
        "doctor",
        "check the installation",
        """\
Reports where the files are, whether sessions, tokenizers and the embedded model work, which keys, local servers and MCP
servers there are (none is started), and what the terminal supports. Exit code 1 if something will not work.

With --repair the readable parts of a damaged database are copied into a new one; the old file is kept beside it. An
undamaged database is not changed.""",
        flag("--repair", about="replace a damaged database by its readable parts; keeps the old file"),
        examples=(("chatctx doctor", ""), ("chatctx doctor --repair", "if it reports damaged sessions")),
    ),
)


# -- chatctx itself ----------------------------------------------------------------------------------------------------

NOTES: Mapping[str, Sequence[tuple[str, str]]] = {
    "Models": (
        ("names", "provider/model: anthropic/claude-sonnet-5-5, openai/gpt-5.6, ollama/qwen3, local"),
        (
            "chosen by",
            "-m, CHATCTX_MODEL, model in the config file, the one used last, a key in the environment "
            "(ANTHROPIC_API_KEY, OPENAI_API_KEY ...), a local server (Ollama, llama.cpp, LM Studio, vLLM), the "
            "embedded model; the first of these",
        ),
    ),
    "Files and settings": (
        (
            "places",
            "CHATCTX_CONFIG, CHATCTX_DATA_DIR and CHATCTX_LOG_DIR move the config file, the sessions and the log; "
            "`chatctx doctor` shows where they are. CHATCTX_THEME is like --theme.",
        ),
        (
            "context",
            'in the config file: compaction = "85%", "120k" or "off"; compaction_target = "50%"; '
            "preserve_recent_turns = 4; reserve_output = 16000; rolling_context = true. All but the last, and window, "
            'also for one model, in [models."provider/model"].',
        ),
    ),
    "Exit codes": (("0", "done"), ("1", "the request failed"), ("2", "bad usage"), ("130", "interrupted")),
}

EXAMPLES = (
    ("chatctx", "chat"),
    ("chatctx -m ollama/qwen3 --continue", "the last session, another model"),
    ("chatctx --plain", "line by line: for screen readers, TERM=dumb and pipes"),
    ('chatctx ask "what is a monad?"', "one answer, to standard output"),
    ('git diff | chatctx ask "review this"', "the same, with a file from a pipe"),
    ("chatctx context --json", "what the next request of the last session costs"),
)


class _Root(click.Group):
    """`chatctx` itself, which opens the chat if no command is given."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, rows in NOTES.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        write_examples(formatter, EXAMPLES)


@click.pass_context
def _open_chat(ctx: click.Context, /, *, plain: bool, **_: object) -> Invocation | None:
    if ctx.invoked_subcommand is not None:
        return None
    options = with_session(ctx)
    runs = "plain:run" if plain else "start:chat"
    return Invocation(runs, {"resume": options["resume"]}, {name: options[name] for name in SETTINGS})


ROOT = _Root(
    PROGRAM,
    commands=COMMANDS,
    callback=_open_chat,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
    context_settings={"max_content_width": 80},
    add_help_option=False,
    params=[
        *_model_options(),
        option("--theme", metavar="NAME", about="colours to start with"),
        flag("--plain", about="plain text, line by line: for screen readers, simple terminals and pipes"),
        flag("-c", "--continue", "last", about="resume the last session"),
        option("-r", "--resume", kind=SESSION, about="resume this session (see chatctx sessions)"),
    ],
    help="""\
A chat client for the terminal whose context numbers are true.

Without a command, chatctx opens the chat. Without a key or a server it uses a small model on this machine. In the chat,
/ lists the commands, /context shows what fills the window.""",
)
click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s", help="show the version")(ROOT)
with_help(ROOT)


def parse(argv: Sequence[str]) -> Invocation:
    """Parse `argv`, without the program's name.

    Raises `click.UsageError`, and `click.exceptions.Exit` after `--help` and `--version` have been printed.
    """
    with ROOT.make_context(PROGRAM, list(argv)) as context:
        invocation: Invocation = ROOT.invoke(context)
        return invocation
