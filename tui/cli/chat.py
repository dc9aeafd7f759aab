"""`chatctx`: the chat on screen."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tui.cli import BAD_USAGE, complain
from tui.config.settings import Settings

if TYPE_CHECKING:
    from tui.chat.workspace import Workspace


def run(args: Namespace, settings: Settings) -> int:
    """Open the chat. Everything but the screen is loaded after the first frame.

    A terminal that can't move its cursor gets the plain chat; where there is none, nothing could be shown or typed.
    """
    import gc
    import os
    import sys

    if "TEXTUAL_DRIVER" not in os.environ:  # else the screen is a browser
        if not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on standard error
            return complain(
                "the chat needs a terminal; chatctx --plain works with pipes, so does chatctx ask", BAD_USAGE
            )
        if os.environ.get("TERM") == "dumb":
            from tui.cli.plain import plain

            return plain.run(args, settings)
    sys.setswitchinterval(0.001)  # seconds: threads count, store and draw while the screen answers keys
    gc.disable()  # start-up makes thousands of objects that stay: a fifth of the time to the first frame
    from tui.app import ChatApp

    async def open_workspace() -> Workspace:
        from tui.chat.workspace import Workspace

        workspace = await Workspace.open(settings, resume=args.resume)
        workspace.servers.start()
        return workspace

    app = ChatApp(settings, open_workspace)
    app.run()
    return app.return_code or 0
