"""The log file: our own lines, and no key in any of them; and what becomes of errors that nothing handles."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.cli import start
from tui.cli.parsing import Invocation
from tui.cli.start import LOGGERS, start_logging
from tui.providers.keys import hold_secret

HELD = "no usual look 4711"


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger, logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    start_logging(tmp_path / "chatctx.log")
    yield tmp_path / "chatctx.log"
    for logger, level, propagate, handlers in before:
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate


def test_no_key_reaches_the_log_whatever_way_it_came(log_file: Path) -> None:
    hold_secret(HELD)
    log = logging.getLogger("tui.anything")
    log.warning("asked with %s", HELD)
    try:
        try:
            raise ValueError(f"Illegal header value: Bearer {HELD}")
        except ValueError as error:
            raise RuntimeError("401: sk-proj-abcdefghijkl0123") from error
    except RuntimeError:
        log.exception("at https://me:hunter2@llm.example.com/v1")
    log.info("headers %r", {"x-api-key": "abcdef0123456789", "Authorization": "Bearer abcdef0123456789"})
    text = log_file.read_text()
    assert "The above exception was the direct cause" in text  # the chain is there
    assert text.count("[key]") >= 5
    for secret in (HELD, "abcdefghijkl0123", "hunter2", "abcdef0123456789"):
        assert secret not in text


def test_the_log_can_be_printed_to_a_terminal(log_file: Path) -> None:
    logging.getLogger("tui.anything").warning("model=%s", "m\x1b]52;c;QQ==\x07\x9b31m\u202e")
    assert log_file.read_text().endswith(" model=m\u241b]52;c;QQ==\u2407\ufffd31m\ufffd\n")


def test_what_libraries_log_is_written_nowhere(
    log_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They log requests with their headers, and what strangers send to `chatctx serve`."""
    root = logging.getLogger()  # without the handlers of pytest
    monkeypatch.setattr(root, "handlers", [one for one in root.handlers if type(one) is logging.NullHandler])
    for name in ("openai", "anthropic", "httpx2", "mcp", "aiohttp.server"):
        logging.getLogger(name).error("request options: headers")
    logging.getLogger("tui.chat").debug("a detail")
    assert log_file.read_text() == capsys.readouterr().err == ""


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.ENOSPC])
def test_an_error_of_the_system_in_a_command_is_one_line(
    code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(code, os.strerror(code), "/a/b")

    monkeypatch.setattr(start, "chat", failing)
    monkeypatch.setattr(start, "start_logging", lambda _: None)
    assert start.run(Invocation("start:chat", {}, {})) == 1
    assert capsys.readouterr().err.startswith(f"chatctx: {os.strerror(code)} (/a/b): ")
