"""What is said of a project's file before it is allowed to start programs."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from tui.tools.mcp.config import OAuthConfig, ServerConfig
from tui.tools.mcp.config_files import ProjectFile
from tui.views.tools_mcp import project_text

SHOWN = {"name", "command", "args", "env", "env_file", "cwd", "url", "headers", "oauth", "error"}
HARMLESS = {"where", "transport", "disabled", "timeout", "max_response", "trust_read_only", "disabled_tools"}
HARMLESS |= {"instructions", "roots", "sampling", "key"}


def test_everything_that_a_project_s_server_would_do_is_said() -> None:
    local = ServerConfig(
        "mail", "", command="python", args=("-m", "mail"), env={"DEBUG": "${LEVEL}"}, env_file="secrets.env", cwd="/srv"
    )
    remote = ServerConfig(
        "far", "", "http", url="https://a@b.example/mcp", headers={"X-Key": "${KEY}"}, oauth=OAuthConfig("me", "pw")
    )
    broken = ServerConfig("bad", "", error="its URL has no host")
    assert project_text(ProjectFile(Path("/p/.mcp.json"), "00", (local, remote, broken))).splitlines() == [
        "/p/.mcp.json",
        "comes with this folder and would start these programs here, as you:",
        "",
        "mail: python '-m' 'mail'",
        "    in /srv",
        "    gets from your environment: LEVEL",
        "    sets the variables in secrets.env",
        "    sets DEBUG=${LEVEL}",
        "far: https://a@b.example/mcp",
        "    on the host b.example",
        "    gets from your environment: KEY",
        "    sends X-Key: ${KEY}",
        "    signs in as me, with the secret 'pw'",
        "bad: its URL has no host",
        "",
        "Your answer is for this content of the file: a changed file asks again.",
    ]


def test_no_setting_of_a_server_is_forgotten() -> None:
    assert {field.name for field in fields(ServerConfig)} == SHOWN | HARMLESS
