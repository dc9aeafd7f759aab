"""`mcpServers` as people have them: what is read, what is wrong with it, and what is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.config.settings import load_settings
from tui.tools.mcp.config import McpConfigError, ServerConfig, hidden_args, read_env_file, read_servers, servers_of_json
from tui.tools.mcp.config_files import find_servers
from tui.tools.mcp.status import log_name


def one(entry: object, name: str = "x") -> ServerConfig:
    (server,) = read_servers({name: entry}, "f.json")
    return server


def test_the_forms_of_other_clients_are_read() -> None:
    servers = servers_of_json(
        json.dumps(
            {
                "mcpServers": {
                    "files": {
                        "command": "npx",
                        "args": ["-y", "server", "/tmp"],
                        "env": {"A": "1", "N": 5},
                        "cwd": "~",
                    },
                    "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"X": "y"}, "timeout": 30_000},
                    "gemini": {"httpUrl": "https://x.example/mcp", "timeout": 5},
                    "windsurf": {"serverUrl": "https://x.example/mcp", "type": "streamable-http"},
                    "old": {"type": "sse", "url": "http://localhost:1/sse", "disabled": True},
                    "codex": {"command": "x", "enabled": False, "autoApprove": ["everything"]},
                }
            }
        ),
        "f.json",
    )
    assert [server.error for server in servers] == [""] * 6
    assert [server.transport for server in servers] == ["stdio", "http", "http", "http", "sse", "stdio"]
    assert [server.disabled for server in servers] == [False, False, False, False, True, True]
    assert servers[0].env == {"A": "1", "N": "5"}
    assert (servers[1].timeout, servers[2].timeout, servers[0].timeout) == (30.0, 5.0, 60.0)
    assert not any(server.trust_read_only for server in servers)
    assert servers_of_json('{"servers": {"a": {"command": "b"}}}', "vscode.json")[0].command == "b"


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"comand": "x"}, "f.json: mcpServers.x has neither command nor url; did you mean command?"),
        ({}, "f.json: mcpServers.x has neither command nor url; a program needs command, a server on the network url"),
        ({"command": "x", "url": "http://y"}, "f.json: mcpServers.x has both command and url; leave one out"),
        ({"command": 5}, "f.json: mcpServers.x.command has to be text"),
        ({"command": "x", "args": "-y"}, 'f.json: mcpServers.x.args has to be a list of texts, like ["-y", "name"]'),
        ({"command": "x", "args": ["-y", 5]}, "f.json: mcpServers.x.args[1] has to be text"),
        ({"command": "x", "env": {"K": ["geheim"]}}, "f.json: mcpServers.x.env.K has to be text"),
        ({"command": "x", "env": "K=1"}, "f.json: mcpServers.x.env has to be a table of texts"),
        ({"command": "x", "disabled": "no"}, "f.json: mcpServers.x.disabled has to be true or false"),
        ({"command": "x", "timeout": -1}, "f.json: mcpServers.x.timeout has to be a number of seconds"),
        (
            {"command": "x", "type": "carrier pigeon"},
            "f.json: mcpServers.x.type is 'carrier pigeon'; use stdio, http or sse",
        ),
        ({"command": "x", "type": "http"}, "f.json: mcpServers.x.type is 'http', which needs a url"),
        ({"url": "http://x", "type": "stdio"}, "f.json: mcpServers.x.type is 'stdio', which has no url"),
        ({"url": "ftp://x"}, "f.json: mcpServers.x.url is not an address; write it like https://mcp.example.com/mcp"),
        ({"url": "http://["}, "f.json: mcpServers.x.url is not an address; write it like https://mcp.example.com/mcp"),
        (
            {"url": "http://x:99999/"},
            "f.json: mcpServers.x.url is not an address; write it like https://mcp.example.com/mcp",
        ),
        ("npx", "f.json: mcpServers.x is a table: with command and args, or with url"),
        ({"command": "a\0b"}, "f.json: mcpServers.x.command has a zero byte in it"),
    ],
)
def test_what_is_wrong_with_one_server_is_one_line_with_file_and_key(entry: object, complaint: str) -> None:
    assert one(entry).error == complaint


def test_one_wrong_server_leaves_the_others_alone() -> None:
    good, bad, odd = read_servers({"good": {"command": "x"}, "bad": 5, "a:b": {"command": "x"}}, "f")
    assert (good.error, bool(bad.error)) == ("", True)
    assert odd.error == "f: 'a:b' can't be a server's name; leave out quotes, colons and backslashes"


@pytest.mark.parametrize("name", ["My Server", "io.github.x/y-z", "@scope/name", "a b/../c", "Größe", "x"])
def test_names_are_as_readmes_have_them(name: str) -> None:
    assert one({"command": "x"}, name).error == ""
    assert Path(log_name(name)).name == log_name(name)


@pytest.mark.parametrize("name", ["", " ", " x", "x ", "a:b", 'a"b', "a\\b", "a\nb", "\u202ea", "x" * 101])
def test_names_that_could_not_be_written_in_a_command_are_refused(name: str) -> None:
    assert "can't be a server's name" in one({"command": "x"}, name).error


FORMS = {
    "vscode": """{
        // asked for once
        "inputs": [{"type": "promptString", "id": "token", "password": true},],
        "servers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "pkg",], /* no */ "env": {"URL": "http://x"}}}
    }""",
    "vscode settings": '{"editor.x": 1, "mcp": {"servers": {"a": {"command": "npx", "args": ["-y", "pkg"]}}}}',
    "opencode": """{"$schema": "https://opencode.ai/config.json", "mcp": {"a": {
        "type": "local", "command": ["npx", "-y", "pkg"], "enabled": true, "environment": {"URL": "http://x"}}}}""",
    "crush": """{"mcp": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "pkg"], "timeout": 120,
        "disabled": false, "disabled_tools": ["one"], "env": {}}}}""",
    "zed": '{"context_servers": {"a": {"source": "custom", "command": "npx", "args": ["-y", "pkg"], "env": null}}}',
    "zed, at first": '{"context_servers": {"a": {"command": {"path": "npx", "args": ["-y", "pkg"], "env": null}}}}',
    "written by PHP": '{"mcpServers": {"a": {"command": "npx", "args": ["-y", "pkg"], "env": []}}}',
    "alone": '{"a": {"command": "npx", "args": ["-y", "pkg"]}}',
    "cline": '{"mcpServers": {"a": {"transportType": "stdio", "command": "npx", "args": ["-y", "pkg"]}}}',
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_read_in_the_form_of_each_client(form: str) -> None:
    (server,) = servers_of_json(FORMS[form], "f.json")
    assert (server.error, server.name, server.command, server.args) == ("", "a", "npx", ("-y", "pkg"))
    assert server.env in ({}, {"URL": "http://x"})
    assert server.disabled_tools == (("one",) if form == "crush" else ())


def test_variables_of_other_clients_are_variables_and_nothing_of_theirs_is_run() -> None:
    text = """{"mcp": {
        "crush": {"type": "http", "url": "https://x.example", "headers": {"Authorization": "Bearer $TOKEN"}},
        "opencode": {"type": "remote", "url": "https://x.example", "headers": {"Authorization": "Bearer {env:TOKEN}"}},
        "runs": {"command": "x", "env": {"A": "$(rm -rf /)"}},
        "reads": {"command": "x", "env": {"A": "{file:~/.ssh/id_rsa}"}}
    }}"""
    crush, opencode, runs, reads = servers_of_json(text, "f.json")
    for server in (crush, opencode):
        assert server.filled({"TOKEN": "abc"}).headers == {"Authorization": "Bearer abc"}
    assert runs.error == ("f.json: mcp.runs.env.A runs a command or reads a file; write ${NAME} and set that variable")
    assert reads.error.startswith("f.json: mcp.reads.env.A runs a command")


def test_what_vs_code_asks_for_is_a_variable_that_is_not_set() -> None:
    (server,) = servers_of_json('{"servers": {"a": {"command": "x", "env": {"T": "${input:my token}"}}}}', "f.json")
    with pytest.raises(McpConfigError) as caught:
        server.filled({"my token": "abc"})
    assert str(caught.value) == (
        "f.json: servers.a.env.T: ${input:my token} is something that VS Code asks for;"
        " write ${NAME} and set that variable"
    )
    assert server.variables == ()


@pytest.mark.parametrize("name", ["built-in", "Built-In"])
def test_no_server_passes_for_the_built_in_tools(name: str) -> None:
    (server,) = read_servers({name: {"command": "x"}}, "f")
    assert server.error == f"f: mcpServers.{name}: the tools that come with chatctx are called that; use another name"


def test_a_name_that_is_none_reaches_no_terminal_as_it_is() -> None:
    (server,) = read_servers({"a\x1b]0;x\x07b": {"command": "x"}}, "f")
    assert server.name == "a␛]0;x␇b"
    assert "\x1b" not in server.error


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"mcpServers": 5}'])
def test_a_file_that_is_no_list_of_servers_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(McpConfigError, match=r"^f\.json"):
        servers_of_json(text, "f.json")


def test_variables_are_filled_in_when_a_server_starts_and_only_then() -> None:
    server = one(
        {
            "command": "${HOME}/bin/x",
            "args": ["--dir=${DIR:-/tmp}", "$NOT_ONE", "${env:WHO}"],
            "env": {"TOKEN": "${SECRET}"},
        }
    )
    assert server.variables == ("HOME", "DIR", "WHO", "SECRET")
    remote = one({"url": "https://${HOST}/", "oauth": {"clientId": "me", "clientSecret": "${MY_KEY}"}})
    assert remote.variables == ("HOST", "MY_KEY")
    filled = server.filled({"HOME": "/home/u", "SECRET": "s3cret-s3cret", "WHO": "me"})
    assert filled.command == "/home/u/bin/x"
    assert filled.args == ("--dir=/tmp", "$NOT_ONE", "me")
    assert filled.env == {"TOKEN": "s3cret-s3cret"}
    assert "s3cret" not in repr(server) + repr(filled) + server.shown
    assert filled.secrets == ("s3cret-s3cret",)
    with pytest.raises(McpConfigError, match=r"f\.json: mcpServers\.x\.env\.TOKEN: the variable SECRET is not set"):
        server.filled({"HOME": "/home/u", "WHO": "me"})


def test_what_may_be_secret_is_not_shown() -> None:
    args = ("--api-key", "abc", "--token=xyz", "-v", "sk-abcdefghijklmnop", "--auth", "${KEY}", "plain")
    assert hidden_args(args) == ("--api-key", "***", "--token=***", "-v", "[key]", "--auth", "${KEY}", "plain")
    args = ("--pass", "abc", "--db-pwd=a;b", "-p", "Server=h;Password=abc;Port=1", "--bypass", "x", "https://auth.x:1/")
    hidden = ("--pass", "***", "--db-pwd=***", "-p", "Server=h;Password=***;Port=1", *args[-3:])
    assert hidden_args(args) == hidden
    harmless = ("--dir=${HOME_DIR:-/tmp}", "key" * 30_000)
    assert hidden_args(harmless) == harmless
    assert one({"command": "x", "env": {"DB_PASS": "hunter", "PASSIVE": "yes"}}).secrets == ("hunter",)
    web = one({"url": "https://me:word@x.example:8443/mcp?key=abc", "headers": {"Authorization": "Bearer abcdefgh"}})
    assert web.shown == "https://x.example:8443/mcp?…"
    assert set(web.filled({}).secrets) == {"word", "key=abc", "Bearer abcdefgh", "abcdefgh"}
    plain = one(
        {"command": "x", "env": {"MODE": "production", "PORT": "8080", "ROOT": "/srv/data", "API_KEY": "plain"}}
    )
    assert plain.filled({}).secrets == ("plain",)  # not every word: each is struck out wherever it stands


def test_the_config_file_holds_servers_too(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[mcpServers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n')
    settings = load_settings({"CHATCTX_CONFIG": str(config)})
    configured = find_servers(settings.mcp_servers, settings.config_file, tmp_path / "nowhere", {})
    assert [(s.name, s.command, s.where) for s in configured.servers] == [("time", "uvx", str(config))]


def folder_with(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (folder / ".mcp.json").write_text(text)
    return folder


def test_a_projects_file_starts_nothing_until_the_person_agrees_to_this_very_content(tmp_path: Path) -> None:
    text = '{"mcpServers": {"p": {"command": "evil", "trustReadOnly": true}, "own": {"command": "theirs"}}}'
    folder = folder_with(tmp_path, text)
    config = tmp_path / "config.toml"
    table = {"own": {"command": "mine"}}
    configured = find_servers(table, config, folder, {})
    assert [server.name for server in configured.servers] == ["own"]
    assert configured.project is not None
    assert (configured.project.agreed, [s.name for s in configured.project.servers]) == (None, ["p", "own"])
    answers = {str(configured.project.path): (configured.project.sha256, True)}
    agreed = find_servers(table, config, folder, answers)
    assert [(server.name, server.command) for server in agreed.servers] == [("own", "mine"), ("p", "evil")]
    assert not any(server.trust_read_only for server in agreed.servers)  # a file that comes along is no approval
    assert len(agreed.problems) == 1
    assert "own is in" in agreed.problems[0]
    folder_with(tmp_path, text.replace("evil", "worse"))
    changed = find_servers(table, config, folder, answers)
    assert changed.project is not None
    assert changed.project.agreed is None
    assert [server.name for server in changed.servers] == ["own"]
    refused = find_servers(table, config, folder, {str(configured.project.path): (changed.project.sha256, False)})
    assert refused.project is not None
    assert refused.project.agreed is False


def test_a_projects_file_is_that_of_its_repository(tmp_path: Path) -> None:
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    places = {"a": {}, "b": {"cwd": "sub"}, "c": {"cwd": "/else"}, "d": {"cwd": "${HOME}/d"}}
    text = json.dumps({"mcpServers": {name: {"command": "x", **place} for name, place in places.items()}})
    file = folder_with(tmp_path, text) / ".mcp.json"
    assert find_servers({}, tmp_path / "config.toml", below, {}).project is None  # no repository: only this folder
    (tmp_path / "project" / ".git").mkdir()
    configured = find_servers({}, tmp_path / "config.toml", below, {})
    assert configured.project is not None
    assert configured.project.path == file
    here = file.parent
    assert [s.cwd for s in configured.project.servers] == [str(here), str(here / "sub"), "/else", "${HOME}/d"]
    (tmp_path / "project" / "src" / ".git").mkdir()
    assert find_servers({}, tmp_path / "config.toml", below, {}).project is None  # one above it is another's


def test_the_persons_own_file_in_the_working_directory_is_no_projects_file(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "b"}}}')
    configured = find_servers({}, tmp_path / "config.toml", tmp_path, {})
    assert configured.project is None
    assert [server.name for server in configured.servers] == ["a"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe\x00", b" " * 1_000_001], ids=["broken", "binary", "huge"])
def test_a_file_that_can_not_be_read_is_a_problem_and_no_end(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mcp.json").write_bytes(content)
    configured = find_servers({"a": {"command": "b"}}, tmp_path / "config.toml", tmp_path / "nowhere", {})
    assert [server.name for server in configured.servers] == ["a"]
    assert str(tmp_path / "mcp.json") in configured.problems[0]


def test_any_part_of_an_address_may_be_a_variable() -> None:
    server = one({"url": "http://${HOST}:${PORT}/mcp?key=${KEY}"})
    assert server.shown == "http://${HOST}:${PORT}/mcp?…"
    assert server.filled({"HOST": "h", "PORT": "8000", "KEY": "k"}).url == "http://h:8000/mcp?key=k"
    assert one({"url": "${URL}"}).shown == "${URL}"
    for url in ("ftp://x", "http://[", "http://x:99999"):
        with pytest.raises(McpConfigError, match=r"mcpServers\.x\.url"):
            one({"url": "${URL}"}).filled({"URL": url})


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'x y' # z", "x y"),
        ('"a\'b"', "a'b"),
        ("''", ""),
        ("it's", "it's"),
        ('"open', '"open'),
        ("'", "'"),
        ('"a"b', '"a"b'),
    ],
)
def test_only_quotes_around_a_whole_value_are_taken_off(tmp_path: Path, written: str, value: str) -> None:
    file = tmp_path / "keys.env"
    file.write_text(f"KEY={written}\n", encoding="utf-8")
    assert read_env_file(str(file), "k") == {"KEY": value}


def test_variables_come_from_a_file_too_and_are_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("# ours\nexport TOKEN=geheim-123456\n\nQUOTED = 'a # b' # c\nPLAIN=x y # z\nEMPTY=\nnot a line\n")
    entry = {"command": "x", "envFile": "${workspaceFolder}/keys.env", "env": {"PLAIN": "wins"}}
    server = one(entry)
    filled = server.filled({"workspaceFolder": str(tmp_path)})
    assert filled.env == {"TOKEN": "geheim-123456", "QUOTED": "a # b", "PLAIN": "wins", "EMPTY": ""}
    assert "geheim-123456" in filled.secrets
    assert "geheim" not in repr(filled) + repr(server) + server.shown
    file.unlink()
    with pytest.raises(McpConfigError, match=r"mcpServers\.x\.envFile: .*keys\.env can't be read \(No such file"):
        server.filled({"workspaceFolder": str(tmp_path)})
    assert one({"url": "https://x.example/mcp", "envFile": "nowhere"}).filled({}).env == {}
