"""Why a server failed, in one line, and which line of a program's standard error says so."""

from __future__ import annotations

import httpx2
import pytest

from tui.tools.mcp.config import ServerConfig
from tui.tools.mcp.status import GoneError, ServerLog, TransportStatus, failure_reason, reason_of

OUTPUTS = {
    "npm, no such package": (
        """npm error code E404
npm error 404 Not Found - GET https://registry.example/mcp-nothing - Not found
npm error 404
npm error 404  'mcp-nothing@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-debug-0.log""",
        "'mcp-nothing@*' is not in this registry.",
    ),
    "npm, nothing to run": (
        """npm error could not determine executable to run
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-debug-0.log""",
        "could not determine executable to run",
    ),
    "npm, an older one": (
        """npm ERR! code ENOENT
npm ERR! syscall open
npm ERR! path /srv/package.json
npm ERR! errno -2
npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/srv/package.json'
npm ERR! enoent This is related to npm not being able to find a file.
npm ERR! A complete log of this run can be found in: /home/u/.npm/_logs/2026-debug-0.log""",
        "Could not read package.json: Error: ENOENT: no such file or directory, open '/srv/package.json'",
    ),
    "node, uncaught": (
        """node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/srv/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.11.0""",
        "Error: Cannot find module '/srv/index.js'",
    ),
    "node, its own words": (
        "Error: BRAVE_API_KEY environment variable is required",
        "Error: BRAVE_API_KEY environment variable is required",
    ),
    "python": (
        """Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    import missing_thing
ModuleNotFoundError: No module named 'missing_thing'""",
        "ModuleNotFoundError: No module named 'missing_thing'",
    ),
    "python, a group": (
        """  + Exception Group Traceback (most recent call last):
  |   File "/srv/server.py", line 3, in <module>
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/server.py", line 9, in run
    |     raise ValueError("no token")
    | ValueError: no token
    +------------------------------------""",
        "ValueError: no token",
    ),
    "argparse": (
        """usage: mcp-server-git [-h] --repository REPOSITORY
mcp-server-git: error: the following arguments are required: --repository""",
        "mcp-server-git: error: the following arguments are required: --repository",
    ),
    "uv": (
        """  × No solution found when resolving tool dependencies:
  ╰─▶ Because mcp-nothing was not found in the package registry and you require mcp-nothing, we can conclude that
      your requirements are unsatisfiable.""",
        "Because mcp-nothing was not found in the package registry and you require mcp-nothing, we can conclude that"
        " your requirements are unsatisfiable.",
    ),
    "docker": (
        """docker: Error response from daemon: pull access denied for x, repository does not exist.

Run 'docker run --help' for more information""",
        "docker: Error response from daemon: pull access denied for x, repository does not exist.",
    ),
    "go": (
        """panic: dial tcp: lookup nowhere: no such host

goroutine 1 [running]:
main.main()""",
        "panic: dial tcp: lookup nowhere: no such host",
    ),
    "rust": (
        """thread 'main' panicked at src/main.rs:3:5:
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace""",
        "thread 'main' panicked at src/main.rs:3:5:",
    ),
    "a shell": ("sh: 1: mcp-nothing: not found", "sh: 1: mcp-nothing: not found"),
    "only words": ("starting\nbye\n----", "bye"),
    "only frames": ("    at run (/srv/x.js:1:1)", "at run (/srv/x.js:1:1)"),
    "nothing": ("\n  \n----\n", ""),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_reason_is_the_line_that_says_why(output: str) -> None:
    text, reason = OUTPUTS[output]
    assert reason_of(text.splitlines()) == reason


def test_a_hostile_log_is_looked_at_quickly() -> None:
    lines = ["a" * 2_000, "at " + ":" * 1_997, "| " * 1_000, "npm error " * 200, "Error [" * 285] * 40
    assert reason_of(lines)


def test_what_it_wrote_before_it_was_started_again_is_no_reason() -> None:
    log = ServerLog(None)
    log.add("Error: of yesterday")
    log.pipe().close()
    assert log.reason == ""
    log.add("bye")
    assert (log.reason, len(log.lines)) == ("bye", 2)


NOWHERE = "there is no MCP server at https://x.example/mcp; check url of mcpServers.x in mcp.json"


@pytest.mark.parametrize(
    ("error", "status", "reason", "final"),
    [
        (Exception("Not Found"), TransportStatus(), NOWHERE, True),
        (Exception("Session terminated"), TransportStatus(), NOWHERE, True),
        (Exception("Connection closed"), TransportStatus(), "it ended before it was ready", False),
        (GoneError(), TransportStatus(), "it ended", False),
        (TimeoutError(), TransportStatus(), "it gave no answer in time", False),
        (Exception("odd"), TransportStatus(), "odd", False),
        (
            httpx2.ConnectTimeout(""),
            TransportStatus(),
            "nothing answers at https://x.example/mcp; is it running?",
            False,
        ),
        *(
            (error, TransportStatus(), "the connection to https://x.example/mcp broke", False)
            for error in (httpx2.WriteTimeout(""), httpx2.DecodingError("Error -3"), httpx2.LocalProtocolError("x"))
        ),
        (Exception(), TransportStatus(401, "401"), "it answered 401; check headers of mcpServers.x in mcp.json", True),
        (Exception(), TransportStatus(404, "404"), "it answered 404", True),
        (Exception(), TransportStatus(429, "429"), "it answered 429", False),
        (Exception(), TransportStatus(503, "503"), "it answered 503", False),
        (Exception(), TransportStatus(sign_in_needed=True), "it wants you to sign in: /mcp login x", True),
    ],
)
def test_what_would_fail_the_same_way_is_not_tried_again(
    error: Exception, status: TransportStatus, reason: str, final: bool
) -> None:
    config = ServerConfig("x", "mcp.json", "http", url="https://x.example/mcp", key="mcpServers.x")
    assert failure_reason(error, config, status) == (reason, final)
