"""Where MCP servers are configured: the person's own files, and a project's file, which needs consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.config.files import FileTooLargeError, is_file, is_there, read_all
from tui.context.counting.digests import text_digest

if TYPE_CHECKING:
    from tui.tools.mcp.config import ServerConfig

FILES = ("mcp.json", ".mcp.json")
"""Files beside the config file; a project's file has the second name."""

PROJECT_FILE = ".mcp.json"
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file in the working directory, or its repository, that would start programs, in its own folder.

    `agreed` is the person's answer for this content, None if they have not answered.
    """

    path: Path
    sha256: str
    servers: tuple[ServerConfig, ...]
    agreed: bool | None = None


@dataclass(frozen=True, slots=True)
class Configured:
    """The configured servers. `problems` are lines for a person."""

    servers: tuple[ServerConfig, ...] = ()
    project: ProjectFile | None = None
    problems: tuple[str, ...] = ()


def find_servers(
    table: Mapping[str, object], config_file: Path, folder: Path, answers: Mapping[str, tuple[str, bool]]
) -> Configured:
    """The servers of the config file's `table`, of the files beside it, and of the project in `folder`.

    `answers` are the person's: a project file's path -> (hash of its content, yes or no). The first server of a name is
    used. Reads files: not on the event loop.
    """
    config_files = [config_file.absolute().parent / name for name in FILES] if config_file.name else []
    place = _project_folder(folder.absolute())
    project_file = place / PROJECT_FILE
    if not table and not any(map(_may_be_there, (*config_files, project_file))):
        return Configured()
    from tui.tools.mcp.config import McpConfigError, read_servers, servers_of_json

    servers_by_name: dict[str, ServerConfig] = {}
    problems: list[str] = []

    def add(servers: tuple[ServerConfig, ...]) -> None:
        for server in servers:
            if first := servers_by_name.get(server.name):
                problems.append(f"{server.where}: {server.name} is in {first.where} already; that one is used")
            else:
                servers_by_name[server.name] = server

    def read(path: Path) -> tuple[str, tuple[ServerConfig, ...]] | None:
        try:
            if not path.is_file():
                return None
            text = read_all(path, MAX_BYTES).decode("utf-8-sig")
            return text, servers_of_json(text, str(path))
        except McpConfigError as error:
            problems.append(str(error))
        except FileTooLargeError:
            problems.append(f"{path} is larger than {MAX_BYTES:,} bytes: no list of servers is")
        except UnicodeDecodeError:
            problems.append(f"{path} is not UTF-8 text; save it as that")
        except OSError as error:
            problems.append(f"{path} can't be read ({error.strerror})")
        return None

    try:
        add(read_servers(dict(table), str(config_file)))
    except McpConfigError as error:
        problems.append(str(error))
    for path in config_files:
        if (file := read(path)) is not None:
            add(file[1])
    project = None
    if project_file not in config_files and (file := read(project_file)) is not None:
        text, servers = file
        # A project's file can't decide what may run without asking.
        servers = tuple(replace(s, trust_read_only=False, cwd=_own_folder(s.cwd, place)) for s in servers)
        sha256 = text_digest(text)
        answered, agreed = answers.get(str(project_file), ("", False))
        project = ProjectFile(project_file, sha256, servers, agreed if answered == sha256 else None)
        if project.agreed:
            add(servers)
    return Configured(tuple(servers_by_name.values()), project, tuple(problems))


def _may_be_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # reported when it is read
        return True


def _own_folder(cwd: str | None, place: Path) -> str:
    """The working directory of a project's server: that of the file, unless it names another."""
    return cwd if cwd and cwd.startswith(("~", "${")) else str(place / (cwd or ""))


def _project_folder(folder: Path) -> Path:
    """The nearest folder with a project's file, from `folder` up to its repository's root; `folder` if none."""
    places = []
    for place in (folder, *folder.parents):
        places.append(place)
        if is_there(place / ".git"):
            break
    else:
        places = [folder]
    return next((place for place in places if is_file(place / PROJECT_FILE)), folder)
