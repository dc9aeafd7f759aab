"""The pictures of the README: the real program with the model that comes with it. `python -m tests.e2e.screenshots`.

Writes `tests/e2e/screenshots/*.svg`. The model is small and says what it likes: look before committing them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.pictures import settled
from tests.screens.conftest import wait_until
from tui.app import ChatApp
from tui.config.settings import Settings
from tui.context.usage import limits

FOLDER = Path(__file__).parent / "screenshots"

SYSTEM = "You are a helpful assistant. Answer in two or three short sentences."

AGENTS = """\
# How we work here

- Python 3.11 or newer, type hints everywhere, one subject a module.
- A function says in its first line what it does; comments say why.
- Tests before the change; each of them has to fail once.
"""

QUESTIONS = (
    "Here is a file. What is it for? One sentence. @limits.py",
    "What is the context window of a language model?",
    "Write a Python function that adds two numbers. Show the code.",
)


async def ask(app: ChatApp, pilot: Pilot[Any], text: str) -> None:
    """Send `text` and wait for the answer, which may take minutes on a slow machine."""
    app.chat.composer.value = text
    await pilot.pause()
    app.chat.composer.completions.offer(())
    await pilot.press("enter")
    await wait_until(pilot, lambda: app.chat.turns.busy, seconds=30)
    await wait_until(pilot, lambda: not app.chat.turns.busy, seconds=600)


def save(app: ChatApp, name: str) -> None:
    """Write what is on screen."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(settled(app.export_screenshot(title="chatctx")) + "\n")


async def show(app: ChatApp, pilot: Pilot[Any], *keys: str) -> None:
    """Press keys and let the screen settle."""
    for key in keys:
        await pilot.press(key)
    await pilot.pause(0.3)


async def take(folder: Path) -> None:
    """One conversation in `folder`, five pictures of it."""
    (folder / "AGENTS.md").write_text(AGENTS)
    shutil.copy(Path(limits.__file__), folder / "limits.py")
    settings = Settings(
        model="local/smollm2-135m", system=SYSTEM, reserve_output=400, config_file=folder / "config.toml",
        data_dir=folder / "data", log_dir=folder / "log",
    )  # fmt: skip

    async def open_workspace() -> Any:
        from tui.chat.workspace import Workspace

        return await Workspace.open(settings)

    app = ChatApp(settings, open_workspace)
    async with app.run_test(size=(100, 34)) as pilot:
        app.chat.composer.area.cursor_blink = False
        await wait_until(
            pilot, lambda: app.chat.session is not None and app.chat.session.usage is not None, seconds=120
        )
        for question in QUESTIONS:
            await ask(app, pilot, question)
        await show(app, pilot)
        save(app, "chat")
        await show(app, pilot, "f2")
        save(app, "context-dark")
        await show(app, pilot, "h")
        save(app, "requests")
        await show(app, pilot, "escape")
        await app.chat.ui.themes()
        app.theme = "chatctx-light"
        await show(app, pilot)
        save(app, "context-light")
        app.theme = "chatctx-dark"
        await pilot.resize_terminal(60, 20)
        await show(app, pilot)
        save(app, "context-60x20")
        await app.action_quit()


def main() -> None:
    """Take the pictures in a folder of their own."""
    os.environ.pop("NO_COLOR", None)
    os.environ["COLORTERM"] = "truecolor"
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        asyncio.run(take(Path(name)))


if __name__ == "__main__":
    main()
