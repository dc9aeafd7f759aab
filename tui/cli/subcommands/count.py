"""`chatctx count`: tokens of texts and files, for any model and offline."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Never

from tui.cli import FAILED, complain, table, write
from tui.config.settings import Settings
from tui.context.counting.tokenizers import TextCount, count_texts
from tui.errors import UsageError
from tui.text.numbers import size_text, tokens_exact

if TYPE_CHECKING:
    from tui.providers.base import Provider

BATCH = 64_000_000  # characters of lines processed together
MAX_FILE_BYTES = 64_000_000
STANDARD_INPUT = Path("-")


class Item(NamedTuple):
    """A text to count for a model, and where it is from."""

    name: object  # a file, the id of a line, or None
    text: str
    model: str


def run(
    settings: Settings, *, files: Sequence[Path], models: Sequence[str], as_json: bool, as_lines: bool, exact: bool
) -> int:
    """Count the named files, or standard input. Raises `UsageError`."""
    chosen = tuple(models) or ((settings.model,) if settings.model else ())
    if as_lines:
        if files or exact or as_json:
            raise UsageError("--jsonl reads lines from standard input: leave out files, --json and --exact")
        return _lines(chosen)
    if not chosen:
        raise UsageError("say for which model: chatctx count -m claude-sonnet-4-5 FILE")
    failed: list[str] = []
    items = [Item(name, text, model) for name, text in _texts(files, failed) for model in chosen]
    counts = asyncio.run(_ask(settings, items)) if exact else _count(items)
    if as_json:
        write(json.dumps(list(_entries(items, counts))))
    elif items:
        _print(items, counts, chosen)
    return FAILED if failed else 0


def _texts(files: Sequence[Path], failed: list[str]) -> Iterator[tuple[str | None, str]]:
    """Names and texts; unreadable files are reported and added to `failed`."""
    from tui.tools.files.texts import SAMPLE, encoding_of

    for file in files or (STANDARD_INPUT,):
        if file == STANDARD_INPUT:
            try:
                yield None, _bounded(sys.stdin.buffer).decode("utf-8-sig", "replace")
            except OSError as error:
                raise UsageError(f"standard input: {error.strerror or error}") from None
            continue
        many = file.is_dir()
        for path in _below(file) if many else (file,):
            try:
                with path.open("rb") as opened:
                    data = _bounded(opened)
                encoding = encoding_of(data[:SAMPLE])
                if encoding is None:
                    raise OSError("not a text file")
                yield str(path), data.decode(encoding, "replace")
            except OSError as error:
                if not many:  # in folders only text files are counted
                    complain(f"{path}: {error.strerror or error}")
                    failed.append(str(path))


def _bounded(file: BinaryIO) -> bytes:
    """The content of `file`, which may be a device or a pipe and have no size. Raises `OSError` if it is too large."""
    data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(f"larger than {size_text(MAX_FILE_BYTES)}")
    return data


def _below(folder: Path) -> Iterator[Path]:
    """The files in `folder` not ignored by git, in order."""
    from tui.tools.files.confine import Confinement
    from tui.tools.files.walk import Walk

    confinement = Confinement(folder)
    for entry in Walk(confinement, confinement.place("."), inf).entries():
        if not entry.is_folder and not entry.is_link and entry.size is not None:
            yield folder / entry.path


def _count(items: Sequence[Item]) -> list[TextCount]:
    return count_texts([(item.text, item.model) for item in items])


async def _ask(settings: Settings, items: Sequence[Item]) -> list[TextCount]:
    """The providers' own counts. A message with one letter (one token) measures what surrounds a text."""
    from tui.providers.registry import all_configs, make_provider, parse_model

    configs = all_configs(settings.providers, gguf=settings.gguf)
    counts: dict[Item, TextCount] = {}
    for full in dict.fromkeys(item.model for item in items):
        try:
            name, model = parse_model(full)
        except ValueError:
            name, model = "", full
        if name not in configs:
            raise UsageError(f"--exact asks a provider: write {full} as provider/model")
        provider = make_provider(name, configs[name])
        try:
            around = await _message_tokens(provider, model, "a") - 1
            for item in items:
                if item.model == full:
                    tokens = await _message_tokens(provider, model, item.text) - around if item.text else 0
                    counts[item] = TextCount(tokens, tokens, "provider")
        finally:
            await provider.close()
    return [counts[item] for item in items]


async def _message_tokens(provider: Provider, model: str, text: str) -> int:
    """The provider's count of a request with one message."""
    from tui.messages import Message, Request, Text

    tokens = await provider.count_tokens(Request(provider.name, model, (Message("user", (Text(text),)),)))
    if tokens is None:
        raise UsageError(f"{provider.name} does not count requests: leave --exact out")
    return tokens


def _lines(models: tuple[str, ...]) -> int:
    """Reads lines of `{"id", "text", "model"}` and prints a line of counts for each."""
    failed = False
    batch: list[Item] = []
    size = 0
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        try:
            batch += _line(line, models)
        except ValueError as error:
            complain(f"line {number}: {error}")
            failed = True
            continue
        size += len(batch[-1].text)
        if size > BATCH:
            _write_lines(batch)
            batch, size = [], 0
    _write_lines(batch)
    return FAILED if failed else 0


def _line(line: bytes, models: tuple[str, ...]) -> list[Item]:
    """One line, for each model. Raises `ValueError` with the error."""
    try:
        data = json.loads(line, parse_constant=_no_json, parse_float=_number)
    except ValueError:
        raise ValueError("not JSON") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict) or not isinstance(data.get("text"), str):
        raise ValueError('no "text"')
    model = data.get("model")
    if model is not None and not isinstance(model, str):
        raise ValueError('"model" is not a string')
    if not model and not models:
        raise ValueError('no "model", and none with -m')
    return [Item(data.get("id"), data["text"], name) for name in ((model,) if model else models)]


def _no_json(name: str) -> Never:
    """Refuses NaN and Infinity, which would be printed again with the line's id."""
    raise ValueError(name)


def _number(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_json(text)


def _write_lines(items: Sequence[Item]) -> None:
    for entry in _entries(items, _count(items)):
        write(json.dumps(entry))


def _entries(items: Sequence[Item], counts: Sequence[TextCount]) -> Iterator[dict[str, object]]:
    for item, (tokens, upper_bound, method) in zip(items, counts, strict=True):
        yield {"id": item.name, "model": item.model, "tokens": tokens, "upper_bound": upper_bound, "how": method}


METHODS = {
    "vocabulary": "counted in its own vocabulary",
    "fitted": "estimated by weights fitted to its counts",
    "estimated": "estimated by weights fitted to many models",
    "provider": "counted by its provider",
}


def _print(items: Sequence[Item], counts: Sequence[TextCount], models: Sequence[str]) -> None:
    """A column for each model, a row for each text, the sum, and how the numbers were obtained.

    `items` are text by text, each for all `models` in their order.
    """
    columns = [counts[at :: len(models)] for at in range(len(models))]
    rows = [["", *models]]
    for item, *row in zip(items[:: len(models)], *columns, strict=True):
        rows.append([str(item.name or "standard input"), *(tokens_exact(count.tokens, count.method) for count in row)])
    if len(rows) > 2:
        rows.append(
            ["total", *(tokens_exact(sum(one.tokens for one in column), column[0].method) for column in columns)]
        )
    write(table(rows, right=frozenset(range(1, len(models) + 1))) + "\n")
    for model, column in zip(models, columns, strict=True):
        bound = tokens_exact(sum(count.upper_bound for count in column))
        write(f"{model}: {METHODS[column[0].method]}, at most {bound} tokens")
