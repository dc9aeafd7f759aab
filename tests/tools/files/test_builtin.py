from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tui.tools.arguments import read_arguments
from tui.tools.base import ToolError, ToolOutput
from tui.tools.files.builtin import BuiltInTools
from tui.tools.files.confine import Confinement
from tui.tools.files.list_files import MAX_LISTED, list_files
from tui.tools.files.read_file import read_file
from tui.tools.files.search_files import MAX_MATCHES, WORKER, search_files
from tui.tools.files.walk import ignore_verdict, parse_ignore

RIPGREP = shutil.which("rg")
ENGINES = [pytest.param(None, id="python")] + [pytest.param(RIPGREP, id="ripgrep")] * (RIPGREP is not None)


def read(root: Path, path: str, **arguments: object) -> ToolOutput:
    return read_file({"path": path, **arguments}, Confinement(root))


def listed(root: Path, **arguments: object) -> str:
    return list_files(arguments, Confinement(root)).text


async def search(root: Path, pattern: str, engine: str | None = None, **arguments: object) -> str:
    return (await search_files({"pattern": pattern, **arguments}, Confinement(root), None, engine)).text


# -- read_file -----------------------------------------------------------------------------------------------------


def test_lines_come_with_numbers_and_ranges(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 31)))
    assert read(tmp_path, "a.py", offset=29).text == "    29\tline 29\n    30\tline 30"
    part = read(tmp_path, "a.py", offset=3, limit=2).text
    assert part == "     3\tline 3\n     4\tline 4\n[more lines follow: read on with offset=5]"
    with pytest.raises(ToolError, match="has 30 lines: there is no line 31"):
        read(tmp_path, "a.py", offset=31)
    with pytest.raises(ToolError, match="begin at 1"):
        read(tmp_path, "a.py", offset=0)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("größer\r\nnext".encode(), "größer\n     2\tnext"),
        (b"\xef\xbb\xbfmark", "1\tmark"),
        ("mark ü".encode("utf-16"), "mark ü"),
        ("no mark, long enough".encode("utf-16-le"), "no mark, long enough"),
        ("größer".encode("cp1252"), "größer"),
        (b"", "is empty"),
        (b"\x7fELF\x02\x01\x00\x00" + bytes(range(256)) * 4, "an ELF program of 1,032 bytes, not text"),
        (b"%PDF-1.7\n\x00\x01", "a PDF"),
        (b"x" * 50_000, "[… 40,000 more characters in this line]"),
    ],
)
def test_encodings_and_binary_content_are_recognised(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "f").write_bytes(data)
    assert expected in read(tmp_path, "f").text


def test_a_picture_is_given_as_one(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x08\0\0\0\x04" + bytes(100)
    (tmp_path / "plot.png").write_bytes(data)
    output = read(tmp_path, "plot.png")
    assert [(image.media_type, image.data) for image in output.images] == [("image/png", data)]


def test_a_huge_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"first\n")
        file.truncate(8_000_000_000)  # sparse
    assert "binary data of 8,000,000,000 bytes" in read(tmp_path, "huge").text
    monkeypatch.setattr("tui.tools.files.read_file.MAX_SCANNED", 100_000)
    (tmp_path / "long").write_text("word\n" * 100_000)
    assert "offset=2001" in read(tmp_path, "long").text
    with pytest.raises(ToolError, match="too large: line 90000 was not reached"):
        read(tmp_path, "long", offset=90_000)
    (tmp_path / "one-line").write_text("x" * 1_000_000)
    assert "more characters in this line" in read(tmp_path, "one-line").text


# -- list_files ----------------------------------------------------------------------------------------------------


def test_a_folder_is_listed_without_what_git_ignores(tmp_path: Path) -> None:
    for path in ("src/a.py", "src/b.txt", "node_modules/x.js", ".git/config", "out.log", "keep.log"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("12345")
    (tmp_path / ".gitignore").write_text("node_modules/\n*.log\n!keep.log\n")
    text = listed(tmp_path)
    assert text.splitlines() == [".gitignore  30 B", "keep.log  5 B", "src/", "[2 ignored by git are not listed]"]
    assert listed(tmp_path, glob="*.py") == "src/a.py  5 B\n[2 ignored by git are not listed]"
    assert "src/b.txt" in listed(tmp_path, glob="src/**/*.{txt,md}")
    assert listed(tmp_path, path="src") == "a.py  5 B\nb.txt  5 B"
    assert "[no file fits]" in listed(tmp_path, glob="*.rs")
    with pytest.raises(ToolError, match="is a file, not a folder"):
        listed(tmp_path, path="src/a.py")


@pytest.mark.slow
def test_ten_thousand_files_are_bounded(tmp_path: Path) -> None:
    for number in range(10_000):
        os.close(os.open(tmp_path / f"{number:05}", os.O_CREAT))
    lines = listed(tmp_path).splitlines()
    assert len(lines) == MAX_LISTED + 1
    assert lines[-1] == "[and 9,500 more; a glob shows some of them]"


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "evil\x1b[2J\n.txt").write_text("x")
    assert "\x1b" not in listed(tmp_path)
    assert len(listed(tmp_path).splitlines()) == 1


@pytest.mark.parametrize("nested", [False, True])
def test_ignore_rules_are_git_s(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    """Held against git itself, here and from a folder below the top of the repository."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    ignore = home / ("dotfiles/ignore" if nested else ".config/git/ignore")
    ignore.parent.mkdir(parents=True)
    ignore.write_text("*.own\n!mine\n")
    if nested:
        (home / ".gitconfig").write_text("[user]\n\tname = x\n[Core]\n\teditor = vi\n\texcludesFile = ~/linked\n")
        (home / "linked").symlink_to(ignore)
    lines = ["*.tmp", "/top", "build/", "doc/*.txt", "a/**/z", "!b.tmp", "\\#x", "sp ace ", "[ab]c", "**/deep", "x?",
             "[^k]9", "two//x", "three//"]  # fmt: skip
    paths = ["a.tmp", "b.tmp", "top", "sub/top", "build/x", "sub/build/x", "doc/a.txt", "doc/s/a.txt", "a/z", "a/q/r/z",
             "#x", "sp ace", "ac", "bc", "cc", "q/w/deep", "xy", "x", "sub/xy", "k.py",
             "k9", "z9", "two/x", "three/x", "mine", "sub/mine", "not/mine", "a.own", "b.own.tmp"]  # fmt: skip
    top = tmp_path / "sub" if nested else tmp_path
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("x")
    (tmp_path / ".gitignore").write_text("\ufeff" + "\n".join([*lines, "!/not/mine"]) + "\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", tmp_path], check=True, capture_output=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("mine\n")
    command = ["git", "-C", str(top), "ls-files", "--others", "--exclude-standard", "-z"]
    by_git = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip("\0").split("\0")
    mine = [line.rsplit("  ", 1)[0] for line in listed(top, glob="**").splitlines() if not line.startswith("[")]
    assert sorted(mine) == sorted(by_git)


@pytest.mark.parametrize("common", ["../..\n", None, "a\0b", "not/there"])
def test_a_worktree_and_a_submodule_have_their_rules_elsewhere(tmp_path: Path, common: str | None) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "mine").write_text("x")
    (work / ".git").write_text("gitdir: ../main/.git/worktrees/work\n")
    named = tmp_path / "main/.git/worktrees/work"
    (named / "info").mkdir(parents=True)
    if common is not None:
        (named / "commondir").write_text(common)
    place = named if common is None else tmp_path / "main/.git"
    (place / "info").mkdir(exist_ok=True)
    (place / "info" / "exclude").write_text("mine\n")
    assert ("mine" in listed(work, glob="*")) == (common not in (None, "../..\n"))


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_file_whose_name_is_not_utf_8_is_listed_read_and_searched(tmp_path: Path, engine: str | None) -> None:
    (tmp_path / os.fsdecode(b"d\xe9")).mkdir()
    (tmp_path / os.fsdecode(b"d\xe9/caf\xe9.py")).write_text("needle")
    assert listed(tmp_path, glob="*.py") == r"d\xe9/caf\xe9.py  6 B"
    assert read(tmp_path, r"d\xe9/caf\xe9.py").text == "     1\tneedle"
    assert await search(tmp_path, "needle", engine) == r"d\xe9/caf\xe9.py:1: needle"
    assert await search(tmp_path, "needle", engine, path=r"d\xe9") == r"d\xe9/caf\xe9.py:1: needle"
    (tmp_path / r"as\xe9.py").write_text("it is written")
    assert read(tmp_path, r"as\xe9.py").text == "     1\tit is written"


def test_a_pipe_in_place_of_an_ignore_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.o").write_text("")
    os.mkfifo(tmp_path / ".gitignore")
    assert listed(tmp_path, path="sub") == "a.o  0 B"


def test_a_rule_that_makes_no_sense_is_left_out() -> None:
    rules = parse_ignore("[z-a]\n*.o\n", "")
    assert ignore_verdict("a.o", False, rules) is True


# -- search_files --------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import os\ndef parse():\n    return 'Ärger'\r\n")
    (tmp_path / "b.txt").write_text("parse it\nPARSE\n" + "y" * 1_000 + "parse\n")
    (tmp_path / "bin").write_bytes(b"parse\0parse")
    (tmp_path / ".env").write_text("parse=1")
    (tmp_path / "skip.log").write_text("parse")
    (tmp_path / ".gitignore").write_text("*.log")
    return tmp_path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_lines_have_the_same_numbers_in_both_tools(tmp_path: Path, engine: str | None, encoding: str) -> None:
    text = "one\r\n10 %\r20 %\rdone\x0b\x0c\u2028\n\nneedle\r\n"  # of a progress bar
    (tmp_path / "a.log").write_bytes(text.encode(encoding))
    assert await search(tmp_path, "needle", engine) == "a.log:4: needle"
    assert read(tmp_path, "a.log", offset=4).text.endswith("     4\tneedle")
    assert "     1\tone\n[more" in read(tmp_path, "a.log", limit=1).text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_file_with_carriage_returns_only_is_read_by_lines(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.csv").write_bytes("\r".join(("x" * 9_000, "y" * 9_000, "last")).encode(encoding))
    assert read(tmp_path, "a.csv", offset=3).text.endswith("     3\tlast")


@pytest.mark.parametrize("engine", ENGINES)
async def test_after_the_last_newline_there_is_no_line(tmp_path: Path, engine: str | None) -> None:
    (tmp_path / "a").write_bytes(b"one\n\ntwo\n")
    (tmp_path / "b").write_bytes(b"")
    assert await search(tmp_path, r"^\s*$", engine) == "a:2: "
    assert (await search(tmp_path, "^$", engine, path="b")).startswith("[no line fits")


@pytest.mark.parametrize("engine", ENGINES)
async def test_lines_are_found_by_both_engines_alike(tree: Path, engine: str | None) -> None:
    text = await search(tree, r"parse\b", engine)
    assert text.splitlines() == [
        "b.txt:1: parse it",
        f"b.txt:3: {'y' * 400} […]",
        "src/a.py:2: def parse():",
        "[not searched: 1 file that probably holds secrets]",
    ]
    assert "b.txt:2: PARSE" in await search(tree, "^parse$", engine, ignore_case=True)
    assert (await search(tree, "Ärger'$", engine, path="src")).splitlines()[0] == "src/a.py:3:     return 'Ärger'"
    assert (await search(tree, "parse", engine, glob="*.py")).startswith("src/a.py:2:")
    assert (await search(tree, "parse", engine, path="src/a.py")) == "src/a.py:2: def parse():"
    assert (await search(tree, "nothing like it", engine)).startswith("[no line fits in 4 files]")
    assert "def parse" in await search(tree, r"(?<=def )parse", engine)  # ripgrep has no look-behind
    with pytest.raises(ToolError, match="can't be read"):
        await search(tree, "(", engine)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_name_with_a_line_break_makes_no_line_of_its_own(tmp_path: Path, engine: str | None) -> None:
    (tmp_path / "a\nsetup.py:1: fine").write_text("needle")
    assert len((await search(tmp_path, "needle", engine)).splitlines()) == 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_many_matches_are_bounded(tmp_path: Path, engine: str | None) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("match\n" * 300)
    lines = (await search(tmp_path, "match", engine)).splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1].startswith("[and 700 more lines")


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_search_ends_after_so_many_matches(
    tmp_path: Path, engine: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.tools.files.search_files.MAX_FOUND", 5)
    (tmp_path / "a.txt").write_text("match\n" * 300)
    assert len((await search(tmp_path, "match", engine)).splitlines()) == 5


async def test_a_pattern_that_takes_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.tools.files.search_files.SECONDS", 0.5)
    (tmp_path / "a").write_text("a" * 60 + "b")
    assert "ended after some time" in await search(tmp_path, r"(a+)+$")


async def test_a_search_that_is_cancelled_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def start(*command: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await real(*command, **options))
        task.cancel()
        return started[0]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    (tmp_path / "a").write_text("a" * 60 + "b")
    task = asyncio.create_task(search(tmp_path, r"(a+)+$"))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started[0].returncode is not None


def test_the_process_that_searches_ends_by_itself(tmp_path: Path) -> None:
    """Also when the program that started it was killed."""
    (tmp_path / "a").write_text("a" * 60 + "b")
    task = {"pattern": r"(a+)+$", "ignore_case": False, "files": ["a"], "most": 9, "seconds": 0.2}
    command = [sys.executable, "-I", str(WORKER)]
    done = subprocess.run(
        command, input=json.dumps(task), cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 1
    assert (done.stdout, done.stderr) == ("", "")


async def test_nothing_in_the_searched_folder_is_run(tmp_path: Path) -> None:
    for name in ("json.py", "re.py", "tui.py", "sitecustomize.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n# needle")
    assert "json.py:2: # needle" in await search(tmp_path, "needle")
    assert not (tmp_path / "ran").exists()


# -- as tools ------------------------------------------------------------------------------------------------------


async def test_the_three_tools_take_arguments_as_their_schemas_say(tree: Path) -> None:
    tools = {tool.schema.name: tool for tool in BuiltInTools(tree).tools()}
    assert sorted(tools) == ["list_files", "read_file", "search_files"]
    assert all(tool.read_only and tool.schema.origin == "built-in" for tool in tools.values())
    arguments = read_arguments('{"path": "src/a.py", "limit": null}', tools["read_file"].schema)
    assert "import os" in (await tools["read_file"].run(arguments)).text
    assert "src/" in (await tools["list_files"].run({})).text
    assert "a.py:2" in (await tools["search_files"].run({"pattern": "def"})).text
