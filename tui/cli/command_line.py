"""The command line: every command with its arguments, help and examples.

A command is one entry of `COMMANDS`; it is implemented by the function named in `runs` ("module:function" under
`tui.cli.subcommands`), imported when the command is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tui import __version__
from tui.cli.command import (
    FILE,
    MODEL,
    SESSION,
    SETTINGS,
    TEXT,
    Command,
    Invocation,
    root_options,
    write_examples,
)

PROGRAM = "chatctx"


def _model_options() -> tuple[click.Option, click.Option]:
    return (
        click.Option(["-m", "--model"], metavar="NAME", type=MODEL, help="provider/model, or a provider alone"),
        click.Option(["--gguf"], metavar="FILE", type=FILE, help="weights for the embedded model"),
    )


def _json_option(text: str = "as JSON") -> click.Option:
    return click.Option(["--json", "as_json"], is_flag=True, help=text)


COMMANDS = (
    Command(
        "ask",
        "ask one question and write the answer to standard output",
        """\
Asks one question and writes the answer to standard output as it comes. Notices (a compaction, something trimmed, a
second try) go to standard error. The question and the answer are a session like any other: --session and --continue
go on with one, and so does the chat.

The model may call tools as in the chat, each call is a line on standard error. Those that only read run; nobody can be
asked about the others: they are refused, unless --allow names them or [tools.rules] allows them.

What a pipe or a file brings on standard input follows the words, or stands where a lone - is. A pipe that brings
nothing for two seconds is left alone and said; - waits for it, </dev/null leaves it out.

Memory files (AGENTS.md) of the working directory go along, as in the chat.

With --json the answer comes whole, as one object: session, provider, model, status, text, error, usage (tokens),
cost (US dollars, null where the price is unknown) and seconds.

Exit code 0 means a whole answer, 1 none or a part of one, 2 bad usage, 130 that it was interrupted.""",
        click.Argument(["text"], nargs=-1, required=False, type=TEXT, help="the question; - is standard input"),
        *_model_options(),
        click.Option(["-s", "--session"], metavar="ID", type=SESSION, help="ask in this session instead of a new one"),
        click.Option(["-c", "--continue", "last"], is_flag=True, help="ask in the last session"),
        click.Option(
            ["-a", "--attach"],
            metavar="FILE",
            multiple=True,
            type=FILE,
            help="send a text file, a picture or a PDF along; may be given several times",
        ),
        click.Option(
            ["--allow"],
            metavar="TOOL",
            multiple=True,
            type=TEXT,
            help="run this tool without asking (a name, or a pattern like github__*); may be given several times",
        ),
        click.Option(["--system"], metavar="TEXT", type=TEXT, help="the session's system prompt; '' for none"),
        click.Option(["--system-file"], metavar="FILE", type=FILE, help="the system prompt from a file"),
        _json_option("one JSON object, with usage, cost and seconds, not text"),
        runs="ask:run",
        inherits=("resume",),
        examples=(
            ('chatctx ask "what is a monad?"', ""),
            ('git diff | chatctx ask "review this"', "standard input after the words"),
            ("chatctx ask -a a.png -a b.csv what is odd here", "with a picture and a text file"),
            ('chatctx ask --system "In French." hello', "instructions for this session"),
            ("chatctx ask -c and why is that", "go on with the last session"),
            ('chatctx ask --allow "github__*" close it', "with tools that would ask"),
            ("chatctx ask --json hello | jq .cost", "for scripts"),
        ),
    ),
    Command(
        "sessions",
        "list stored sessions",
        """\
Lists id, time of the last change, number of messages, model and title. With TEXT only the sessions whose title or
messages contain it. The beginning of an id is enough wherever an ID is asked for.""",
        click.Argument(
            ["query"], metavar="[TEXT]", required=False, default="", type=TEXT, help="only those that contain it"
        ),
        click.Option(["--all", "every"], is_flag=True, help="also those beyond the newest 1,000"),
        _json_option(),
        runs="listing:sessions",
        examples=(
            ("chatctx sessions parser", "sessions that mention a parser"),
            ("chatctx --resume 01a2", "open one in the chat"),
        ),
    ),
    Command(
        "context",
        "show what the next request of a session costs",
        """\
Shows what fills the context window, as /context does in the chat: every row with its tokens and how they are known
(measured, derived, counted or estimated). Changes nothing in the session; with -m, as another model would see it.

With --json one object: window, total, upper_bound, source, basis, rows (with their items), output_reserve,
compaction_buffer, free, over, until_compaction, deferred (tools that wait until the model searches for them). Numbers
are tokens, null is unknown. MCP servers are not started for this: their tools are those of the last time.""",
        click.Argument(
            ["session"], metavar="[ID]", required=False, type=SESSION, help="the session; the last one if not given"
        ),
        *_model_options(),
        _json_option(),
        runs="context:run",
        examples=(
            ("chatctx context", "the last session"),
            ("chatctx context 01a2 -m openai/gpt-5.6", "would it fit there?"),
            ("chatctx context --json | jq .total", "for scripts"),
        ),
    ),
    Command(
        "count",
        "count the tokens of texts and files",
        """\
Counts the tokens of files, of the files in folders (those that git would not ignore), or of standard input, for any
model: in the model's own vocabulary if it is shipped, else fitted to its counts or estimated, and says which. No key
and no server is needed. What a message adds around a text is not counted.

With --json a list of objects: id (the file, null for standard input), model, tokens, upper_bound (which holds for 95
of 100 texts) and how: "vocabulary", "fitted" or "estimated". With --jsonl lines of {"id", "text", "model"} on standard
input become such objects, a line each; without "model" in a line, -m says it. A line that can't be read is named on
standard error and costs only itself. --exact asks the provider, which needs its key.""",
        click.Argument(["files"], metavar="[FILE]...", nargs=-1, required=False, type=FILE, help="files or folders"),
        click.Option(
            ["-m", "--model", "models"],
            metavar="NAME",
            multiple=True,
            type=MODEL,
            help="the model, with or without its provider; several times for several columns",
        ),
        _json_option(),
        click.Option(["--jsonl", "as_lines"], is_flag=True, help="a JSON object a line, in and out"),
        click.Option(["--exact"], is_flag=True, help="ask the provider for its own count"),
        runs="count:run",
        examples=(
            ("chatctx count -m gpt-5 README.md", "one file"),
            ("chatctx count -m gpt-5 -m claude-opus-4-7 src", "a folder, two models side by side"),
            ("git diff | chatctx count -m gemini-3-pro", "standard input"),
            ("chatctx count --jsonl <texts.jsonl", "many texts, each with its model"),
        ),
    ),
    Command(
        "usage",
        "add up tokens and cost and score the estimates",
        """\
Adds up all calls: input (fresh, written to the cache, from the cache), output and the reasoning in it ("900+?" if
that of some calls is unknown), cost in US dollars ("$0.42+?" or "?" where prices are unknown; with --json "cost" and
"known_cost"), how far the estimates were off, trims and compactions; for a session, for today, for all time, by
provider, model and day. With --calls: what was predicted of each request, what the server reported, whether that is
believed and why, what was left out, and which model answered. Imported sessions count at the time they were held.
Calls that a fork inherited count in the session it came from; their number is shown (with --json "inherited").""",
        click.Option(
            ["-s", "--session"], metavar="ID", type=SESSION, help="the session to show; the last one if not given"
        ),
        click.Option(
            ["--days"],
            metavar="N",
            type=click.IntRange(1, 100_000),
            help="only the last N days, today included, in the tables",
        ),
        click.Option(["--calls"], is_flag=True, help="a line for each of the session's last 100 requests instead"),
        _json_option(),
        runs="usage:run",
        examples=(
            ("chatctx usage", "the last session beside today and all time"),
            ("chatctx usage --days 7", "tables for a week"),
            ("chatctx usage --calls", "predicted and reported tokens, request by request"),
            ("chatctx usage --json | jq .all.cost", "for scripts"),
        ),
    ),
    Command(
        "models",
        "list the models that can be used now",
        """\
Asks every provider with a key and every local server that answers, and lists their models, the last used
first: context window and where that is known from, dollars for a million tokens of input and output, whether it takes
images and tools, when its reasoning goes back to it, whether the server counts exactly. ? is unknown. A
provider that could not be asked is named on standard error, and its last known list is shown.""",
        click.Argument(
            ["query"], metavar="[TEXT]", required=False, default="", type=TEXT, help="only those that contain it"
        ),
        _json_option(),
        runs="listing:models",
        examples=(("chatctx models", "all of them"), ("chatctx models qwen --json", "for scripts")),
    ),
    Command(
        "export",
        "write a session to a file",
        """\
The suffix names the format: .jsonl loses nothing (messages, records, calls, attachments) and can be imported again; .md
is to read; .html is one page to read or to show, with highlighted code and nothing loaded from elsewhere.""",
        click.Argument(["session"], metavar="ID", type=SESSION, help="the session, or the beginning of its id"),
        click.Argument(["file"], type=FILE, help="FILE.jsonl loses nothing; FILE.md, FILE.html to read"),
        runs="files:export",
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
WebUI. Without FILE it looks where those programs keep their files and offers what is new. Each conversation is
checked and measured first and imported whole or not at all; damaged lines in files of other programs are skipped and
named. Conversations that were imported before are recognised by their content and skipped; --again imports them as new
ones (their calls then count twice in `chatctx usage`).

The usage that those programs recorded anchors the estimates: /context and `chatctx context` work at once. Their
system prompts and tools are not in the files and are not sent from here: the numbers say what a request from here
would cost.""",
        click.Argument(
            ["files"],
            metavar="FILE...",
            nargs=-1,
            type=FILE,
            help="a session, database or task folder",
        ),
        click.Option(["--again"], is_flag=True, help="also what was imported before, as another conversation"),
        _json_option(),
        runs="files:import_files",
        examples=(
            ("chatctx import talk.jsonl", "what `chatctx export` wrote"),
            ("chatctx import", "offers what other programs have here"),
            ("chatctx import ~/.claude/projects/*/*.jsonl", "every session of Claude Code"),
            ("chatctx import --json FILE | jq -r '.[].session'", "for scripts"),
        ),
    ),
    Command(
        "replay",
        "score the estimator on recorded conversations",
        """\
Feeds recorded conversations to the estimator call by call, and compares each prediction, made before the call, with
the provider's count: median, 95th and 99th percentile of the error, bias, how often the upper bound held. Stores
nothing.""",
        click.Argument(
            ["files"],
            metavar="FILE...",
            nargs=-1,
            required=True,
            type=FILE,
            help="as for import; those with usage per call",
        ),
        _json_option(),
        click.Option(["--no-learning"], is_flag=True, help="without the learned correction factor"),
        click.Option(
            ["--method"],
            type=click.Choice(["hybrid", "chars4"]),
            default="hybrid",
            help="chars4: a naive one, to compare",
        ),
        runs="files:replay_files",
        examples=(
            ("chatctx replay ~/.claude/projects/*/*.jsonl", "on your own sessions"),
            ("chatctx replay --method chars4 FILE", "four characters a token, to compare"),
        ),
    ),
    Command(
        "watch",
        "the context of another program's session",
        """\
Follows the newest session of Claude Code, Codex, Gemini CLI, opencode or pi in this folder, or FILE, as it grows:
what fills its window, what the next call will cost, how far it is to its own compaction, what came from the cache, the
price of today, and how good the forecasts were. Only reads. --line prints one line and ends; as Claude Code's
statusLine command it reads that program's JSON on standard input.""",
        click.Argument(["file"], required=False, type=FILE, help="a session file"),
        click.Option(["--line"], is_flag=True, help="one line, for a status line"),
        _json_option("a line of JSON whenever something was written"),
        click.Option(["--window"], type=TEXT, metavar="N", help="the size of the window, where the file has none"),
        runs="watch:run",
        examples=(
            ("chatctx watch", "beside the agent, in this folder"),
            ("chatctx watch --line", '"statusLine": {"type": "command", "command": "chatctx watch --line"}'),
        ),
    ),
    Command(
        "serve",
        "show the chat in a browser",
        """\
Serves the chat as a web page until Ctrl+C. Every browser tab runs a chat of its own, on this machine, with your keys
and sessions; at most eight at a time. The address that is printed holds a secret, without which nobody is let in, on
this machine either. Commands that run programs or touch files of your choice (/provider, /mcp, /edit, /export, /import,
/paste) are off in the browser unless --unrestricted is given. What is sent is not encrypted: put a proxy with https
before it on a network that is not yours. Needs the extra "serve".""",
        *_model_options(),
        click.Option(
            ["--host"], metavar="HOST", type=TEXT, default="127.0.0.1", help="address to listen at (127.0.0.1)"
        ),
        click.Option(
            ["--port"], metavar="N", type=click.IntRange(1, 65_535), default=8000, help="port to listen at (8000)"
        ),
        click.Option(
            ["--public-url"],
            metavar="URL",
            type=TEXT,
            help="the address browsers see, behind a proxy or from elsewhere",
        ),
        click.Option(["--unrestricted"], is_flag=True, help="every command works in the browser, too"),
        runs="serve:run",
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
Prints the JSON Schema of the config file. Editors that know TOML schemas (with Taplo, Even Better TOML or tombi)
complete and check the file by it where its first line is: #:schema chatctx.schema.json""",
        click.Argument(["what"], metavar="schema", type=click.Choice(["schema"]), help="what to print"),
        runs="listing:config",
        examples=(("chatctx config schema > ~/.config/chatctx/chatctx.schema.json", ""),),
    ),
    Command(
        "completion",
        "print a completion script for bash or zsh or fish",
        """\
Prints a script that completes commands, options, files, session ids and models. It asks chatctx itself at every Tab,
so it needs no renewal after an update.""",
        click.Argument(
            ["shell"], metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]), help="bash, zsh or fish"
        ),
        runs="completion:run",
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
Says where the files are, whether sessions, tokenizers and the embedded model can be used, which keys and servers are
there, which MCP servers are configured (none is started), and what the terminal can show. Sends nothing. Exit code 1
if something will not work.

With --repair a damaged database is read as far as that goes, and what was read is put in its place; the old file is
kept beside it. Nothing is changed where it is whole.""",
        click.Option(
            ["--repair"], is_flag=True, help="save a damaged database: copy what can be read, keep the old one"
        ),
        runs="doctor:run",
        examples=(("chatctx doctor", ""), ("chatctx doctor --repair", "after it said that sessions are damaged")),
    ),
)


# -- chatctx itself ----------------------------------------------------------------------------------------------------

NOTES: Mapping[str, Sequence[tuple[str, str]]] = {
    "Models": (
        ("names", "provider/model: anthropic/claude-sonnet-5-5, openai/gpt-5.6, ollama/qwen3, local"),
        (
            "chosen by",
            "-m, CHATCTX_MODEL, model in the config file, the one used last, a key in the environment "
            "(ANTHROPIC_API_KEY, OPENAI_API_KEY ...), a server that answers on this machine (Ollama, llama.cpp, "
            "LM Studio, vLLM), the embedded model: the first that there is",
        ),
    ),
    "Files and settings": (
        (
            "places",
            "CHATCTX_CONFIG, CHATCTX_DATA_DIR and CHATCTX_LOG_DIR move the config file, the sessions and the log; "
            "`chatctx doctor` shows where they are. CHATCTX_THEME is what --theme is.",
        ),
        (
            "context",
            'in the config file: compaction = "85%", "120k" or "off"; compaction_target = "50%"; '
            "preserve_recent_turns = 4; reserve_output = 16000; rolling_context = true. The first four, and window, "
            'also for one model, under [models."provider/model"].',
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
    options = root_options(ctx)
    runs = "plain:run" if plain else "start:chat"
    return Invocation(runs, {"resume": options["resume"]}, {name: options[name] for name in SETTINGS})


ROOT = _Root(
    PROGRAM,
    commands=COMMANDS,
    callback=_open_chat,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    params=[
        *_model_options(),
        click.Option(["--theme"], metavar="NAME", type=TEXT, help="colours to start with"),
        click.Option(
            ["--plain"],
            is_flag=True,
            help="the chat line by line, without drawing: for screen readers, simple terminals and pipes",
        ),
        click.Option(["-c", "--continue", "last"], is_flag=True, help="go on with the last session"),
        click.Option(["-r", "--resume"], metavar="ID", type=SESSION, help="go on with this session (chatctx sessions)"),
    ],
    help="""\
A chat client for the terminal whose context numbers are true.

Without a command, chatctx opens the chat. With no key and no configuration it talks to a small model on this
machine. In the chat, / lists the commands, /context shows what fills the window.""",
)
click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")(ROOT)


def parse(argv: Sequence[str]) -> Invocation:
    """Parse `argv`, without the program's name.

    Raises `click.UsageError`, and `click.exceptions.Exit` after `--help` and `--version` have been printed.
    """
    with ROOT.make_context(PROGRAM, list(argv)) as context:
        invocation: Invocation = ROOT.invoke(context)
        return invocation
