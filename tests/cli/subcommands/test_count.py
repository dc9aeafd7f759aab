"""`chatctx count`: tokens of files, folders, standard input and lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tui.cli import FAILED
from tui.cli.subcommands.count import run as run_count
from tui.config.settings import Settings
from tui.context.counting.tokenizers import get_tokenizer
from tui.errors import UsageError
from tui.messages import Request
from tui.providers import registry
from tui.providers.local import DemoProvider

TEXT = "Grüße an alle: hello, world!\n"


@pytest.mark.slow
def test_files_and_models_stand_side_by_side(run_here: Run, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(TEXT)
    printed = run_here(
        "count", "-m", "gpt-5", "-m", "llama-3.3-70b", str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    ).stdout
    tokens = get_tokenizer("gpt-5").count(TEXT)
    heading, *rows = printed.splitlines()
    assert heading.split() == ["gpt-5", "llama-3.3-70b"]
    assert [row.split()[1] for row in rows[:3]] == [str(tokens), str(tokens), str(2 * tokens)]
    assert "gpt-5: counted in its own vocabulary, at most" in printed
    assert "llama-3.3-70b: estimated by weights fitted to its counts, at most" in printed


@pytest.mark.slow
def test_a_folder_counts_its_text_files_but_those_git_ignores(run_here: Run, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    (folder / "inner").mkdir(parents=True)
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "a.log").write_text(TEXT)
    (folder / "inner" / "b.py").write_text("print(1)\n")
    (folder / "picture.bin").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(64)))
    counts = json.loads(run_here("count", "--json", "-m", "gpt-5", str(folder)).stdout)
    assert [Path(entry["id"]).name for entry in counts] == [".gitignore", "b.py"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_file_is_read_as_the_tools_read_it(encoding: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.encode(encoding))
    run_count(Settings(), files=[tmp_path], models=["gpt-5"], as_json=True, as_lines=False, exact=False)
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["tokens"] == get_tokenizer("gpt-5").count(TEXT)


@pytest.mark.slow
@pytest.mark.parametrize("files", [(), ("-",)])
def test_standard_input_is_counted(run_here: Run, files: tuple[str, ...]) -> None:
    (entry,) = json.loads(run_here("count", "--json", "-m", "anthropic/claude-sonnet-4.5", *files, stdin=TEXT).stdout)
    tokens = get_tokenizer("claude-sonnet-4-5").count(TEXT)
    assert entry == {
        "id": None,
        "model": "anthropic/claude-sonnet-4.5",
        "tokens": tokens,
        "upper_bound": tokens + 1,
        "how": "vocabulary",
    }


@pytest.mark.slow
def test_lines_are_counted_each_for_its_model(run_here: Run) -> None:
    lines = [
        {"id": "a", "text": TEXT, "model": "gpt-5"},
        {"id": 7, "text": "", "model": "nobody/knows-me"},
        {"text": TEXT, "model": "llama3.1"},
    ]
    done = run_here("count", "--jsonl", stdin="".join(json.dumps(line) + "\n\n" for line in lines))
    counts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(entry["id"], entry["how"]) for entry in counts] == [
        ("a", "vocabulary"),
        (7, "estimated"),
        (None, "fitted"),
    ]
    assert counts[1]["tokens"] == counts[1]["upper_bound"] == 0
    assert counts[0]["tokens"] == get_tokenizer("gpt-5").count(TEXT)
    assert done.returncode == 0


def test_a_line_that_cannot_be_read_is_named_and_costs_only_itself(run_here: Run) -> None:
    bad = [
        "{nonsense",
        '["text"]',
        '{"text": 5}',
        '{"text": "x", "model": 3}',
        '{"text": "x", "model": "gpt-5", "id": NaN}',
        '{"text": "x", "model": "gpt-5", "id": 1e999}',
    ]
    good = json.dumps({"id": 1, "text": "hello", "model": "gpt-5"})
    done = run_here("count", "--jsonl", stdin="\n".join([*bad, good]))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert [f"line {number}:" in done.stderr for number in range(1, 8)] == [True] * 6 + [False]
    assert done.returncode == 1


@pytest.mark.slow
def test_models_given_with_an_option_serve_lines_without_one(run_here: Run) -> None:
    done = run_here("count", "--jsonl", "-m", "gpt-5", "-m", "gpt-4", stdin='{"id": 1, "text": "hello"}\n')
    assert [json.loads(line)["model"] for line in done.stdout.splitlines()] == ["gpt-5", "gpt-4"]


@pytest.mark.slow
def test_many_lines_of_many_models_take_seconds(run_here: Run) -> None:
    models = ("gpt-5", "claude-opus-4-7", "gemini-2.5-pro", "qwen3", "glm-5", "mistral-large-latest")
    lines = "".join(
        json.dumps({"id": index, "text": f"line {index % 97} of {TEXT}", "model": models[index % len(models)]}) + "\n"
        for index in range(6_000)
    )
    done = run_here("count", "--jsonl", stdin=lines)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(range(6_000))


def test_a_missing_file_is_named_and_the_others_are_counted(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    done = run_here("count", "--json", "-m", "gpt-5", str(tmp_path / "gone.txt"), str(tmp_path / "a.txt"))
    assert len(json.loads(done.stdout)) == 1
    assert "gone.txt: No such file" in done.stderr
    assert done.returncode == 1


@pytest.mark.slow
def test_a_device_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tui.cli.subcommands.count.MAX_FILE_BYTES", 1_000_000)
    endless = Path("/dev/zero")
    assert run_count(Settings(), files=[endless], models=["gpt-5"], as_json=True, as_lines=False, exact=False) == FAILED
    assert capsys.readouterr().err == "chatctx: /dev/zero: larger than 1.0 MB\n"
    with endless.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with pytest.raises(UsageError, match=r"standard input: larger than 1\.0 MB"):
            run_count(Settings(), files=[], models=["gpt-5"], as_json=True, as_lines=False, exact=False)


def test_what_cannot_be_meant_is_refused(run_here: Run, tmp_path: Path) -> None:
    assert run_here("count", "--jsonl", "--exact").returncode == 2
    assert "-m" in run_here("count", str(tmp_path), CHATCTX_MODEL="").stderr
    for model in ("nobody/gpt-5", "gpt-5", "demo", "demo/"):
        done = run_here("count", "--exact", "-m", model, stdin="x")
        assert "provider/model" in done.stderr
        assert done.returncode == 2


def test_exact_is_the_providers_count_without_the_frame(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Counting(DemoProvider):
        async def count_tokens(self, request: Request) -> int:
            (message,) = request.messages
            return 7 + len(message.text)

    monkeypatch.setattr(registry, "make_provider", lambda name, config: Counting(config))
    file = tmp_path / "a.txt"
    file.write_text("abcde")
    run_count(Settings(), files=[file], models=["demo/demo"], as_json=True, as_lines=False, exact=True)
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["tokens"], entry["upper_bound"], entry["how"]) == (5, 5, "provider")
