"""Files that probably hold secrets: which ones, and that what was asked about is what is shown."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tui.tools.base import Tool, ToolError
from tui.tools.files import read_file, secret_files
from tui.tools.files.builtin import BuiltInTools
from tui.tools.files.confine import Confinement
from tui.tools.files.secret_files import may_hold_secrets, secret_in, sensitive_file

SECRET = """
.env .env.local .env-prod .env_old prod.env env.production env_local .envrc .dev.vars .flaskenv
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
ssh_host_ed25519_key wg0.conf wg-home.conf .authinfo kubeconfig.yaml prod-kubeconfig.yml token.json kaggle.json .token
.cargo/credentials.toml home/.cache/huggingface/token home/.config/sops/age/keys.txt home/.config/hcloud/cli.toml
.railway/config.json api_key.txt openai-api-key apikeys.json home.nmconnection local.settings.json .fly/config.yml
home/.config/github-copilot/apps.json .terraform.d/credentials.tfrc.json wpa_supplicant.conf
home/.gemini/oauth_creds.json
service-account.json client_secret_1.json firebase-adminsdk-1.json wp-config.php logins.json key4.db client.ovpn
#.env# .env.~1~ .prod.env.un~ .npmrc.kate-swp auth.old.json .viminfo
home/.local/share/chatctx/mcp-sign-in/1a2b.json home/.config/chatctx/config.toml
"""
COPIES = (".env copy", ".npmrc copy 2", "id_rsa (1)", "auth (1).json", "auth - Copy.json", ".netrc copy.bak")
NOT_SECRET = """
.env.example sample.env .env.dist id_ed25519.pub id_card.txt keys.py environment.ts environment.json config config.json
secrets.py secret_files.py credentials.go password.tsx history history.md user_history.py notes.txt git.md .gitignore
.gitmodules .docker/Dockerfile gradle.properties settings.xml src/gh/api.yml secrets.example.yaml .ssh/work.pub
terraform.tf main.tfvars.example tokens.css cookies.ts monkey.json .gitattributes auth.py
ssh_host_key.md wgpu.toml tokens.json api_keys.py kubeconfig.go huggingface/tokens.py age/readme.txt
notes.txt~ .main.py.swp keys.py.bak .env.example.bak release.1 .hidden.old #notes.md# secrets.old.py # ## .# ~
"""


@pytest.mark.parametrize(
    ("name", "secret"),
    [*((name, True) for name in (*SECRET.split(), *COPIES)), *((name, False) for name in NOT_SECRET.split())],
)
def test_files_that_hold_secrets_ask(tmp_path: Path, name: str, secret: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    (tmp_path / "link.txt").symlink_to(name)
    assert may_hold_secrets(name) is secret
    assert bool(sensitive_file({"path": name}, Confinement(tmp_path))) is secret
    assert bool(sensitive_file({"path": "link.txt"}, Confinement(tmp_path))) is secret


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
    assert [tool.schema.name for tool in BuiltInTools(tmp_path).tools() if tool.ask_reason] == [
        "read_file",
        "search_files",
    ]
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
    assert tool.ask_reason is not None and tool.run_approved is not None
    arguments = {"path": "notes.txt", "pattern": "needle"}
    assert tool.ask_reason(arguments) == ""
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "notes.txt").symlink_to(".env")
    with pytest.raises(ToolError, match="changed after the question"):
        await tool.run(arguments)

    approved = tool.ask_reason(arguments)
    assert approved.startswith(".env probably holds")
    assert "needle" in (await tool.run_approved(arguments, approved)).text
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "notes.txt").symlink_to(".netrc")
    with pytest.raises(ToolError, match="changed after the question"):
        await tool.run_approved(arguments, approved)


async def test_two_links_of_one_name_are_two_questions(tmp_path: Path) -> None:
    tool = by_name(tmp_path, "read_file")
    assert tool.ask_reason is not None and tool.run_approved is not None
    reasons = {}
    for place in ("a", "b"):
        (tmp_path / f"{place}.txt").write_text(f"content of {place}")
        (tmp_path / place).mkdir()
        (tmp_path / place / "server.pem").symlink_to(tmp_path / f"{place}.txt")
        reasons[place] = tool.ask_reason({"path": f"{place}/server.pem"})
    assert reasons["a"].startswith("a.txt (asked for as server.pem) probably holds keys")
    for place, reason in reasons.items():
        assert f"content of {place}" in (await tool.run_approved({"path": f"{place}/server.pem"}, reason)).text


KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
CONTENT = {
    "PEM": f"-----BEGIN RSA PRIVATE KEY-----\n{KEY}\n-----END RSA PRIVATE KEY-----\n",
    "PEM with headers": f"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n{KEY}\n",
    "PEM in YAML": f"tls:\n  key: |\n    -----BEGIN PRIVATE KEY-----\n    {KEY}\n",
    "PEM in JSON": '{"private_key": "-----BEGIN PRIVATE KEY-----\\n' + KEY + '"}',
    "PEM in Python": f'KEY = ("-----BEGIN PRIVATE KEY-----\\n"\n       "{KEY}")',
    "WireGuard": "[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n",
    "AWS": "aws_access_key_id = AKIAQYLPMN5HFIQR7XYA\n",
    "GitHub": "token: ghp_R4nd0mW0rdsThatN0b0dyW1llEverGuess9Qz\n",
    "OpenAI": 'client = Client("sk-proj-9fKq3LmZtR7vWx2YbN8cD4eHj6pS1uAo")\n',
    "GitLab": "glpat-Kj8sQ2nLz4xWvB7mTr9c\n",
    "Slack": "xoxb-731904582216-KqPzLmNwRtYvXs8\n",
    "Shopify": "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\n",
    "Telegram": "TOKEN=7301945826:AAHk9sQ2nLz4xWvB7mTr9cYpKd3fGh5jUiE\n",
    "JWT": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJrYXRlIiwiaWF0IjoxN30.Kq8sQ2nLz4xWvB7mTr9cYpKd3fGh5jUiEo1\n",
    "JWT, long": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJrYXRlIiwiaWF0IjoxN30{'Kq8sQ2nLz4xWvB7m' * 100}.Kq8sQ2nLz4xW",
    "address": "DATABASE_URL=postgres://app:tr0ub4dor-and-3@db.internal:5432/app\n",
    "Azure": "AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFzZGZnaGprbHF3ZXJ0eXVpb3B6eGN2Ym5tUVdFUlRZ==\n",
}
NO_SECRETS = {
    "documentation": "aws_access_key_id = AKIAIOSFODNN7EXAMPLE\n",
    "a placeholder": 'key = "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"\n',
    "a header alone": 'if text.startswith("-----BEGIN PRIVATE KEY-----"):\n    raise ValueError\n',
    "a public key": f"-----BEGIN PUBLIC KEY-----\n{KEY}\n",
    "an address with a made-up password": "postgres://user:password@localhost/db and http://user:${PW1}@host\n",
    "an address with a port": "http://127.0.0.1:8080/x?mail=a1b2c3d4e5@example.org\n",
    "a class of CSS": ".sk-loading-spinner-container-of-a-very-long-name { color: red }\n",
    "an expression": r're.compile(r"ghp_[A-Za-z0-9]{36}")',
}


@pytest.mark.parametrize("text", CONTENT.values(), ids=CONTENT)
async def test_a_file_with_a_secret_in_it_asks_whatever_it_is_called(tmp_path: Path, text: str) -> None:
    (tmp_path / "notes.txt").write_text(f"needle\n{text}")
    for name in ("read_file", "search_files"):
        tool = by_name(tmp_path, name)
        arguments = {"path": "notes.txt", "pattern": "needle"}
        assert tool.ask_reason is not None and tool.run_approved is not None
        assert tool.ask_reason(arguments).startswith("notes.txt holds a")
        with pytest.raises(ToolError, match="changed after the question"):
            await tool.run(arguments)
        assert "needle" in (await tool.run_approved(arguments, tool.ask_reason(arguments))).text


@pytest.mark.parametrize("text", NO_SECRETS.values(), ids=NO_SECRETS)
def test_what_only_looks_like_a_secret_does_not_ask(text: str) -> None:
    assert secret_in(text.encode()) == ""


async def test_a_search_does_not_show_lines_of_files_with_secrets_in_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("needle\n")
    (tmp_path / "b.txt").write_text(f"needle\n{CONTENT['PEM']}needle\n")
    text = (await by_name(tmp_path, "search_files").run({"pattern": "needle"})).text
    assert text.splitlines() == [
        "a.txt:1: needle",
        "[not shown: 2 lines of files that hold secrets; read_file asks about them]",
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_a_secret_is_seen_in_any_encoding_that_is_shown(encoding: str) -> None:
    assert secret_in(CONTENT["PEM"].encode(encoding)) == "a private key"


def test_a_secret_over_the_end_of_a_chunk_is_seen() -> None:
    for before in range(63_900, 64_100, 7):
        assert secret_in(b"x " * (before // 2) + CONTENT["PEM"].encode()) == "a private key"


async def test_lines_beyond_what_is_looked_through_are_not_shown_with_a_secret_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (secret_files, read_file):
        monkeypatch.setattr(module, "SCANNED", 50_000)
    (tmp_path / "big.log").write_text("x" * 99 + "\n")
    with (tmp_path / "big.log").open("a") as file:
        file.write(("y" * 9_999 + "\n") * 6 + CONTENT["AWS"])
    tool = by_name(tmp_path, "read_file")
    assert tool.ask_reason is not None and not tool.ask_reason({"path": "big.log"})
    with pytest.raises(ToolError, match="hold an AWS key"):
        await tool.run({"path": "big.log", "offset": 5})


@pytest.mark.parametrize("secret", [".env", "sub/.env", ".ssh/work", "~/.netrc", "~/.ssh/id_work"])
async def test_a_hard_link_to_a_secret_file_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    monkeypatch.setenv("HOME", str(home))
    file = home / secret[2:] if secret.startswith("~") else root / secret
    for folder in (file.parent, root / "sub"):
        folder.mkdir(parents=True, exist_ok=True)
    file.write_text("PASSWORD=needle\n")
    (root / "sub" / "notes.txt").hardlink_to(file)
    (root / "sub" / "twice.txt").write_text("harmless")
    (root / "twice.txt").hardlink_to(root / "sub" / "twice.txt")
    tool = by_name(root, "read_file")
    assert tool.ask_reason is not None
    assert "notes.txt is the same file as" in tool.ask_reason({"path": "sub/notes.txt"})
    assert tool.ask_reason({"path": "twice.txt"}) == ""
    with pytest.raises(ToolError, match="changed after the question"):
        await tool.run({"path": "sub/notes.txt"})


async def test_another_file_under_the_approved_name_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    (tmp_path / "other").write_text("B=needle\n")
    tool = by_name(tmp_path, "read_file")
    assert tool.ask_reason is not None and tool.run_approved is not None
    reason = tool.ask_reason({"path": ".env"})
    (tmp_path / "other").rename(tmp_path / ".env")
    with pytest.raises(ToolError, match="changed after the question"):
        await tool.run_approved({"path": ".env"}, reason)


@pytest.mark.parametrize(
    "path", ["locked/a.txt", "n" * 300, "sub/" + "n" * 300, "locked", "../" + "n" * 300, "/" + "é" * 200]
)
@pytest.mark.parametrize("name", ["read_file", "search_files", "list_files"])
async def test_a_path_that_can_not_be_looked_at_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, path: str
) -> None:
    """Root may look everywhere: that a look is refused is played here."""
    (tmp_path / "locked").mkdir()
    (tmp_path / "sub").mkdir()
    real_stat, real_open = os.stat, os.open

    def locked(call: Any) -> Any:
        def look(file: Any, *args: Any, **kwargs: Any) -> Any:
            if "locked" in str(file) and not str(file).endswith("root"):
                raise PermissionError(errno.EACCES, "Permission denied", str(file))
            return call(file, *args, **kwargs)

        return look

    monkeypatch.setattr(os, "stat", locked(real_stat))
    monkeypatch.setattr(os, "open", locked(real_open))
    tool = by_name(tmp_path, name)
    arguments = {"path": path, "pattern": "x"}
    if tool.ask_reason is not None:
        assert tool.ask_reason(arguments) == ""
    with pytest.raises(ToolError, match=r"can't be|too long|denied|outside"):
        await tool.run(arguments)
