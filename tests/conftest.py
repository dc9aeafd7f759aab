"""For all tests: the same environment on every machine, how many processes run them, and which of them are slow."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tui.providers import keys

# A property has no deadline: on a busy machine an example may take any time.
settings.register_profile("chatctx", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=30)

SLOW_FOLDERS = ("real", "corpus", "e2e", "hostile")
"""Folders whose tests are all slow, slowest first: they start whole programs, servers and models, or read megabytes."""

PROGRAM_VARIABLES = ("CHATCTX_CONFIG", "CHATCTX_DATA_DIR", "CHATCTX_LOG_DIR", "CHATCTX_MODEL", "CHATCTX_THEME")
TERMINAL_VARIABLES = ("COLORTERM", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "SSH_CONNECTION", "TMUX")
"""What the program, and what tests start, would read of the environment of whoever runs them."""

for _name in list(os.environ):
    if _name.endswith("_API_KEY") or _name in (*PROGRAM_VARIABLES, *TERMINAL_VARIABLES):
        del os.environ[_name]

# The database waits for the disk at every write, a test for some 20 of them: where there is room files are in memory.
MEMORY = Path("/dev/shm")


def _use_memory() -> bool:
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return False
    runs_programs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC  # some tests write them
    return runs_programs and shutil.disk_usage(MEMORY).free > 2_000_000_000


if _use_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Servers of tests are on this machine: no proxy is asked for them.
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))

# A shell starts what runs in the background with ctrl+c ignored, and so would programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """The quick loop tries fewer examples of a property."""
    settings.load_profile("quick" if config.option.markexpr == "not slow" else "chatctx")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Two processes more than there are processors: many tests wait for a server, a terminal or a timer.

    None for a single file or test: it is done before others have started.
    """
    chosen = [argument for argument in config.args if "::" in argument or argument.endswith(".py")]
    return 0 if len(chosen) == len(config.args) == 1 else (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without the garbage collector, which took half of the time, and exempts from it what was collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of the slow folders and runs them first: at the end short tests keep every process busy."""
    here = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(here).parts[0]
        return SLOW_FOLDERS.index(folder) if folder in SLOW_FOLDERS else len(SLOW_FOLDERS)

    items.sort(key=place)
    for item in items:
        if place(item) < len(SLOW_FOLDERS):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def word_tokenizer() -> Iterator[None]:
    """The words of a text are the tokens of the model `MODEL`."""
    from tests.context.helpers import MODEL, WordTokenizer, registered

    with registered(MODEL, WordTokenizer()):
        yield


@pytest.fixture(autouse=True)
def no_keys_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test takes for a key is none in the next; those of servers that several tests share stay."""
    monkeypatch.setattr(keys, "_secrets", set(keys._secrets))


@pytest.fixture
def quick_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between the words of the demo."""
    monkeypatch.setattr("tui.providers.local.PAUSE", 0)


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Files are readable by everybody where their mode is not said."""
    before = os.umask(0)
    yield
    os.umask(before)
