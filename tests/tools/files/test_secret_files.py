"""Files that probably hold secrets: which ones, and that what was asked about is what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.tools.base import Tool, ToolError
from tui.tools.files.builtin import BuiltInTools
from tui.tools.files.confine import Confinement
from tui.tools.files.secret_files import may_hold_secrets, secret_reason

SECRET = """
.env .env.local .env-prod .env_old prod.env .envrc .dev.vars .flaskenv
id_rsa id_rsa_work id_rsa.old id_ed25519 id_ecdsa_sk deploy_rsa server.pem SERVER.KEY app.p12 a.jks vault.kdbx
.netrc _netrc .npmrc .yarnrc.yml .pypirc pip.conf .git-credentials .gitconfig .htpasswd .pgpass .my.cnf .s3cfg
.git/config sub/.git/config .git/modules/lib/config .git/config.worktree home/.config/git/config .hg/hgrc
.aws/credentials .aws/config .aws/sso/cache/x.json .kube/config kubeconfig prod.kubeconfig .azure/accessTokens.json
home/.config/gcloud/application_default_credentials.json home/.config/gcloud/access_tokens.db .docker/config.json
home/.config/gh/hosts.yml home/.config/rclone/rclone.conf .m2/settings.xml .gradle/gradle.properties auth.json
terraform.tfstate terraform.tfstate.backup prod.tfvars prod.auto.tfvars .terraformrc .vault-token
.ssh/config .ssh/known_hosts
.bash_history .zsh_history .psql_history .python_history .node_repl_history .histfile
fish_history ConsoleHost_history.txt
secrets.toml app-secrets.yaml secrets.prod.json aws_credentials.csv credentials passwords.txt secret
.env~ .env.swp .netrc.bak .secrets.toml.swp .credentials.json.swp credentials.json.1 id_rsa.bak
.env.bak.1~ .git/config.old
service-account.json client_secret_1.json firebase-adminsdk-1.json wp-config.php logins.json key4.db client.ovpn
"""
NOT_SECRET = """
.env.example sample.env .env.dist id_ed25519.pub id_card.txt keys.py environment.ts environment.json config config.json
secrets.py secret_files.py credentials.go password.tsx history history.md user_history.py notes.txt git.md .gitignore
.gitmodules .docker/Dockerfile gradle.properties settings.xml src/gh/api.yml secrets.example.yaml .ssh/work.pub
terraform.tf main.tfvars.example tokens.css cookies.ts monkey.json .gitattributes auth.py
notes.txt~ .main.py.swp keys.py.bak .env.example.bak release.1 .hidden.old
"""


@pytest.mark.parametrize(
    ("name", "secret"), [*((name, True) for name in SECRET.split()), *((name, False) for name in NOT_SECRET.split())]
)
def test_files_that_hold_secrets_ask(tmp_path: Path, name: str, secret: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    (tmp_path / "link.txt").symlink_to(name)
    assert may_hold_secrets(name) is secret
    assert bool(secret_reason({"path": name}, Confinement(tmp_path))) is secret
    assert bool(secret_reason({"path": "link.txt"}, Confinement(tmp_path))) is secret


async def test_a_search_in_a_file_that_holds_secrets_asks_as_reading_it_does(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "secret.d").mkdir()
    for path in (".env", ".ssh/work", ".ssh/work.pub", "a.txt"):
        (tmp_path / path).write_text("needle")
    (tmp_path / "link.txt").symlink_to(".env")
    for tool in BuiltInTools(tmp_path).tools():
        if tool.ask_reason is not None:
            asks = [path for path in (".env", "link.txt", ".ssh/work", ".ssh/work.pub", ".ssh", "a.txt", "secret.d")
                    if tool.ask_reason({"path": path})]  # fmt: skip
            assert asks == [".env", "link.txt", ".ssh/work"]
            assert not tool.ask_reason({})
    asking = [tool.schema.name for tool in BuiltInTools(tmp_path).tools() if tool.ask_reason]
    assert asking == ["read_file", "search_files"]
    text = (await by_name(tmp_path, "search_files").run({"pattern": "needle", "path": ".ssh"})).text
    assert text.splitlines() == [".ssh/work.pub:1: needle", "[not searched: 1 file that probably holds secrets]"]


def by_name(root: Path, name: str) -> Tool:
    return next(tool for tool in BuiltInTools(root).tools() if tool.schema.name == name)


@pytest.mark.parametrize("name", ["read_file", "search_files"])
async def test_a_file_that_became_a_link_to_a_secret_since_it_was_asked_about_shows_nothing(
    tmp_path: Path, name: str
) -> None:
    for path in (".env", "notes.txt", ".netrc"):
        (tmp_path / path).write_text("needle")
    tool = by_name(tmp_path, name)
    assert tool.ask_reason is not None and tool.run_agreed is not None
    arguments = {"path": "notes.txt", "pattern": "needle"}
    assert tool.ask_reason(arguments) == ""
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "notes.txt").symlink_to(".env")
    with pytest.raises(ToolError, match="another file when it was asked about"):
        await tool.run(arguments)

    agreed = tool.ask_reason(arguments)
    assert agreed.startswith(".env probably holds")
    assert "needle" in (await tool.run_agreed(arguments, agreed)).text
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "notes.txt").symlink_to(".netrc")
    with pytest.raises(ToolError, match="another file when it was asked about"):
        await tool.run_agreed(arguments, agreed)
