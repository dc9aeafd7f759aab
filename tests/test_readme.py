"""What README.md, CONTRIBUTING.md and the packages' own pages name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui.commands import SECTIONS, all_commands

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "tui").rglob("*.md"), *(REPOSITORY / "tests").rglob("*.md")])


def test_the_readme_lists_every_slash_command_in_its_section() -> None:
    section = (REPOSITORY / "README.md").read_text("utf-8").split("## In the chat")[1].split("\n## ")[0]
    listed = {part: re.findall(r"`/([a-z-]+)`", row) for part, row in re.findall(r"^\| (\w+) \| (`/.*)", section, re.M)}
    assert listed == {part: [c.name for c in all_commands() if c.section == part] for part in SECTIONS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_links_to_what_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(#[^)\s]+)?\)", page.read_text("utf-8"))
    for link, anchor in ((link, anchor) for link, anchor in links if "://" not in link):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor[1:] in anchors(target), link + anchor


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_names_modules_that_are_there(page: Path) -> None:
    named = re.findall(r"`([a-z_/]+\.py)\b", page.read_text("utf-8"))
    missing = [
        name for name in named if not any((folder / name).exists() for folder in (REPOSITORY / "tui", REPOSITORY))
    ]
    assert [name for name in missing if not any(page.parent.rglob(name))] == []


def test_the_table_of_numbers_has_every_function_there_is() -> None:
    section = (REPOSITORY / "tui/text/README.md").read_text("utf-8").split("## How a number is written")[1]
    named = re.findall(r"`([a-z_]+)[`(]", "".join(row.split("|")[2] for row in re.findall(r"^\| .*", section, re.M)))
    source = (REPOSITORY / "tui/text/numbers.py").read_text("utf-8")
    assert set(named) - {"source"} == set(re.findall(r"^def ([a-z]\w*)", source, re.M))


def test_contributing_lists_the_modules_of_every_folder() -> None:
    section = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8").split("The modules of each folder:\n\n```\n")[1]
    listed: dict[str, str] = {}
    folders: list[str] = []
    for line in section.split("\n```")[0].splitlines():
        indent = len(line) - len(line.lstrip())
        if match := re.match(r" *([a-z_]+)/ *", line):
            folders = [*folders[: indent // 2], match[1]]
            line = line[match.end() :]
        name = "/".join(folders)
        listed[name] = listed.get(name, "") + " " + line
    modules: dict[str, set[str]] = {}
    for path in (REPOSITORY / "tui").rglob("*.py"):
        if path.name != "__init__.py" and path.parent.name != "tui":
            modules.setdefault(str(path.parent.relative_to(REPOSITORY / "tui")), set()).add(path.stem)
    assert modules.keys() == listed.keys() - {"context"}
    for folder, text in listed.items():
        words = re.sub(r"\([^)]*\)", "", text).replace(" and ", ", ")
        names = {name for part in re.split("[,;:]", words) if (name := part.strip()) and " " not in name}
        assert names <= modules.get(folder, set()), folder
        assert " one a " in words or names == modules.get(folder, set()), folder
