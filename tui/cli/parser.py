"""What can be typed after `chatctx`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tui import __version__
from tui.cli.manual import MANUAL

DESCRIPTION = """\
A chat client for the terminal whose context numbers are true.

Without a command, chatctx opens the chat. With no key and no configuration it talks to a small model on this
machine. In the chat, / lists the commands, /context shows what fills the window."""

EPILOG = """\
models   are named provider/model: anthropic/claude-sonnet-5-5, openai/gpt-5.6, ollama/qwen3, local.
         Chosen in this order: -m, CHATCTX_MODEL, model in the config file, the one used last, a key in the environment
         (ANTHROPIC_API_KEY, OPENAI_API_KEY ...), a server that answers on this machine (Ollama, llama.cpp, LM Studio,
         vLLM), the embedded model.
files    CHATCTX_CONFIG, CHATCTX_DATA_DIR and CHATCTX_LOG_DIR move the config file, the sessions and the log;
         `chatctx doctor` shows where they are. CHATCTX_THEME is what --theme is.
context  in the config file: compaction = "85%", "120k" or "off"; compaction_target = "50%"; preserve_recent_turns = 4;
         reserve_output = 16000; rolling_context = true. The first four, and window, also for one model, under
         [models."provider/model"].
exit     0 done, 1 the request failed, 2 bad usage, 130 interrupted

examples
  chatctx                                  chat
  chatctx -m ollama/qwen3 --continue       go on with the last session, with another model
  chatctx --plain                          line by line: for screen readers, TERM=dumb and pipes
  chatctx ask "what is a monad?"           one answer, to standard output
  git diff | chatctx ask "review this" -   the same, with a file from a pipe
  chatctx context --json                   what the next request of the last session costs"""


RESUMING = ("chat:run", "plain.plain:run", "ask:run", "serve:run")
"""What can go on with a session that was named before the command."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to look."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"chatctx: {message}; see {self.prog} --help\n")


if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[_Parser]


def _model_options(parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    """`default` SUPPRESS: a command leaves what was given before its name alone."""
    parser.add_argument("-m", "--model", metavar="NAME", default=default, help="provider/model, or a provider alone")
    parser.add_argument("--gguf", metavar="FILE", type=Path, default=default, help="weights for the embedded model")


def _json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = _Parser(
        prog="chatctx",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run="chat:run")
    parser.add_argument("--version", action="version", version=f"chatctx {__version__}")
    _model_options(parser, default=None)
    parser.add_argument("--theme", metavar="NAME", help="colours to start with")
    parser.add_argument(
        "--plain", dest="run", action="store_const", const="plain.plain:run",
        help="the chat line by line, without drawing: for screen readers, simple terminals and pipes",
    )  # fmt: skip
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c", "--continue", dest="resume", action="store_const", const="", help="go on with the last session"
    )
    which.add_argument("-r", "--resume", metavar="ID", dest="resume", help="go on with this session (chatctx sessions)")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    add = partial(_add_command, commands)

    ask = add("ask", "ask:run")
    ask.add_argument("text", metavar="TEXT", nargs="*", help="the question; - is standard input, and so is nothing")
    _model_options(ask)
    ask.add_argument("-s", "--session", metavar="ID", help="ask in this session instead of a new one")
    ask.add_argument("-c", "--continue", dest="last", action="store_true", help="ask in the last session")
    ask.add_argument(
        "-a", "--attach", metavar="FILE", action="append", type=Path, default=[],
        help="send a text file, a picture or a PDF along; may be given several times",
    )  # fmt: skip
    ask.add_argument(
        "--allow", metavar="TOOL", action="append", default=[],
        help="run this tool without asking (a name, or a pattern like github__*); may be given several times",
    )  # fmt: skip
    instructions = ask.add_mutually_exclusive_group()
    instructions.add_argument("--system", metavar="TEXT", help="the session's system prompt; '' for none")
    instructions.add_argument("--system-file", metavar="FILE", type=Path, help="the system prompt from a file")
    ask.add_argument("--json", action="store_true", help="one JSON object, with usage, cost and seconds, not text")

    sessions = add("sessions", "listing:sessions")
    sessions.add_argument("query", metavar="TEXT", nargs="?", default="", help="only those that contain it")
    _json_option(sessions)

    context = add("context", "context:run")
    context.add_argument("session", metavar="ID", nargs="?", help="the session; the last one if not given")
    _model_options(context)
    _json_option(context)

    usage = add("usage", "usage:run")
    usage.add_argument("-s", "--session", metavar="ID", help="the session to show; the last one if not given")
    usage.add_argument("--days", metavar="N", type=int, help="only the last N days, today included, in the tables")
    _json_option(usage)

    models = add("models", "listing:models")
    models.add_argument("query", metavar="TEXT", nargs="?", default="", help="only those that contain it")
    _json_option(models)

    export = add("export", "listing:export")
    export.add_argument("session", metavar="ID", help="the session, or the beginning of its id")
    export.add_argument("file", metavar="FILE", type=Path, help="FILE.jsonl loses nothing; FILE.md, FILE.html to read")

    take = add("import", "importing:run")
    take.add_argument("files", metavar="FILE", nargs="+", type=Path, help="chatctx, Claude Code, pi or Gemini CLI")
    take.add_argument("--again", action="store_true", help="also what was imported before, as another conversation")
    _json_option(take)

    replay = add("replay", "replay:run")
    replay.add_argument("files", metavar="FILE", nargs="+", type=Path, help="chatctx, Claude Code, pi or Gemini CLI")
    _json_option(replay)
    replay.add_argument("--no-learning", action="store_true", help="without the learned correction factor")
    replay.add_argument(
        "--method", choices=("hybrid", "chars4"), default="hybrid", help="chars4: a naive one, to compare"
    )

    serve = add("serve", "serve:run")
    _model_options(serve)
    serve.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen at (127.0.0.1)")
    serve.add_argument("--port", metavar="N", type=int, default=8000, help="port to listen at (8000)")
    serve.add_argument("--public-url", metavar="URL", help="the address browsers see, behind a proxy or from elsewhere")

    completion = add("completion", "completion:run")
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")

    add("doctor", "doctor:run")
    return parser


def _add_command(commands: Commands, name: str, run: str) -> argparse.ArgumentParser:
    """A command with its page from the manual; `run` is module and function under `tui.cli`."""
    page = MANUAL[name]
    parser = commands.add_parser(
        name,
        help=page.help,
        description=page.description,
        epilog=page.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed command line. Raises SystemExit as argparse does."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.resume is not None and args.run not in RESUMING:
        parser.error("--continue and --resume go with the chat, with ask and with serve; here name the session's ID")
    return args


def not_text(args: argparse.Namespace) -> str:
    """A word that holds bytes which are no UTF-8, where text is meant; "" if there is none.

    Names of files may hold any bytes, and a question is mended where it is read.
    """
    words = (value for value in vars(args).values() if isinstance(value, str))
    return next((word for word in words if any("\ud800" <= sign <= "\udfff" for sign in word)), "")
