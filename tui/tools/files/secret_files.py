"""Files that probably hold keys or passwords: a call that would show one asks first, and says which.

Judged by name and folder, by the names that hard links give the same file, and by content. The lists are our own, held
against those of gitrob, gitleaks and TruffleHog, and the manuals of the programs that write such files. Code that deals
with secrets (`secrets.py`) is not meant.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from tui.tools.base import ToolError
from tui.tools.files.confine import Confinement, Place
from tui.tools.files.texts import printable

_NAMES = frozenset(
    {
        ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", "pip.conf", "pip.ini", ".condarc", "nuget.config",
        ".git-credentials", ".gitconfig", ".hgrc", ".htpasswd", ".dockercfg", ".terraformrc", "terraform.rc",
        ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".vault-token", ".vault_pass", ".s3cfg", ".boto",
        ".passwd-s3fs", "rclone.conf", ".rclone.conf", ".databrickscfg", ".fetchmailrc", ".msmtprc", ".esmtprc",
        ".muttrc", ".ftpconfig", "sftp-config.json", "filezilla.xml", "sitemanager.xml", "recentservers.xml",
        "auth.json", "master.key", "kubeconfig", "rootkey.csv", "accesskeys.csv", "wp-config.php", "localsettings.php",
        "logins.json", "key3.db", "key4.db", "cookies.sqlite", "login data", "cookies", "wallet.dat",
        "mcp.json", ".mcp.json", "claude_desktop_config.json", ".claude.json",
        ".authinfo", ".cdsapirc", "kaggle.json", "oauth_creds.json", "token.json", ".token", "local.settings.json",
        "google-services.json", "googleservice-info.plist", "ngrok.yml", "tailscaled.state", "wpa_supplicant.conf",
        "sec.conf", "credentials.tfrc.json", "msal_token_cache.json", "msal_token_cache.bin", "auth.toml", ".mailrc",
        "shadow", "gshadow", "master.passwd", ".envrc", ".flaskenv", ".histfile", "consolehost_history.txt", ".viminfo",
    }
)  # fmt: skip
_ENDINGS = frozenset(
    {
        ".pem", ".key", ".p8", ".pk8", ".p12", ".pfx", ".pkcs12", ".jks", ".bks", ".keystore", ".ppk", ".jwk",
        ".keytab", ".kdb", ".kdbx", ".psafe3", ".agilekeychain", ".keychain", ".keychain-db", ".kwallet", ".asc",
        ".gpg", ".pgp", ".nmconnection", ".age", ".ccache", ".publishsettings", ".mobileprovision",
        ".tfvars", ".tfstate", ".kubeconfig", ".ovpn", ".rdp", ".cscfg", ".secret", ".secrets",
    }
)  # fmt: skip
_FOLDERS = frozenset(
    {
        ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".subversion", ".mozilla", ".fly",
        ".railway", ".netlify", ".doctl", ".wrangler", ".twilio-cli", ".ngrok2", "mcp-sign-in",
    }
)  # fmt: skip
"""Everything in them, except public keys."""
_WAYS = (
    "/.config/gcloud/", "/roaming/gcloud/", "/share/keyrings/", "/.config/rclone/", "/.config/op/",
    "/.config/sops/age/", "/.config/doctl/", "/.config/hcloud/", "/.config/stripe/", "/.config/github-copilot/",
    "/.config/wireguard/", "/etc/wireguard/", "/.config/configstore/", "/share/uv/credentials/",
)  # fmt: skip
"""Likewise, for folders whose own name is too general."""
_FILES = (
    "/git/config", "/.hg/hgrc", "/.docker/config.json", "/containers/auth.json", "/.m2/settings.xml",
    "/.m2/settings-security.xml", "/.gradle/gradle.properties", "/.bundle/config", "/.snowsql/config",
    "/gh/hosts.yml", "/glab-cli/config.yml", "/.config/hub", "/.cargo/credentials.toml", "/age/keys.txt",
    "/huggingface/token", "/huggingface/stored_tokens", "/.huggingface/token", "/chatctx/config.toml",
)  # fmt: skip
"""Files that hold secrets just there."""
_HARMLESS = frozenset({"example", "sample", "template", "tmpl", "dist", "defaults", "schema"})  # .env.example
_DATA = frozenset({"", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".csv", ".xml", ".db"})
_WORDS = frozenset({"secret", "secrets", "credential", "credentials", "password", "passwords", "passwd"})
_ACCOUNTS = ("service-account", "service_account", "serviceaccount", "client_secret", "firebase-adminsdk")
_FORMS = re.compile(
    r"\.(env|dev\.vars)([._-].*)?|env[._-](local|dev|development|test|staging|prod|production)"
    r"|id_(rsa|dsa|ecdsa|ed25519|xmss)([._-].*)?|[^.]+_(rsa|dsa|ecdsa|ed25519)|ssh_host_\w+_key"
    r"|(.*[._-])?kubeconfig([_-].*)?(\.ya?ml|\.json)?"
    r"|wg[\w-]*\.conf"  # WireGuard
    r"|\.?\w*_history"  # of shells and database clients
)
_COPY = re.compile(
    r"#?(.*?[^.\s#])"
    r"(?:[~#]| (?:- )?copy(?: \d+)?| \(\d+\)|\.(?:bak|backup|old|orig|save|sw[op]|un|kate-swp|tmp|~?\d+)){1,4}"
    r"(\.[a-z]+)?"
)
"""Names of copies left by editors, file managers and people."""
_API_KEY = re.compile(r"(.*[._-])?api[._-]?(keys?|tokens?)")
MAX_ENTRIES = 5_000  # of a folder that are looked at for another name of the same file


def may_hold_secrets(name: str) -> bool:
    """Whether a file's name, or a folder on the path to it, says that keys or passwords are in it."""
    path = PurePosixPath(name.lower().replace("\\", "/"))
    paths = [path]
    if copy := _COPY.fullmatch(path.name):
        original = copy[1] + (copy[2] or "")
        paths += map(path.with_name, (original, original.removeprefix(".")))  # editors put a dot before it
    return any(map(_holds_secrets, paths))


def _holds_secrets(path: PurePosixPath) -> bool:
    if path.suffix == ".pub":
        return False
    whole = f"/{path}"
    if not _FOLDERS.isdisjoint(path.parts[:-1]) or any(way in whole for way in _WAYS) or whole.endswith(_FILES):
        return True
    if "/.git/" in whole and path.name in ("config", "config.worktree"):  # remotes, often with a token in them
        return True
    if path.name in _NAMES or path.suffix in _ENDINGS:
        return True
    if not _HARMLESS.isdisjoint(re.split(r"[._-]", path.name)):
        return False
    if path.suffix == ".env" or _FORMS.fullmatch(path.name):
        return True
    if path.suffix not in _DATA:
        return False
    if path.name.startswith(_ACCOUNTS) or _API_KEY.fullmatch(path.stem):
        return True
    return not _WORDS.isdisjoint(re.split(r"[._\s-]", path.name))


# -- by content --------------------------------------------------------------------------------------------------------

SCANNED = 5_000_000  # bytes searched of a file
CHUNK = 64_000  # bytes searched at once: an expression blocks every thread while it runs
OVERLAP = 4_000  # bytes by which chunks overlap

_KEY_BLOCK = (
    rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\\nr\"'+,]{1,60}"
    rb"(?:[\w-]{1,40}: [^\n]{0,99}\s{1,9}){0,4}[\w+/=]{32}"  # headers, then the key
)

_CONTENT: tuple[tuple[str, bytes, bytes], ...] = (
    ("a private key", b"PRIVATE KEY", _KEY_BLOCK),
    ("a private key", b"PuTTY-User-Key-File", rb"PuTTY-User-Key-File-\d"),
    ("a private key", b"AGE-SECRET-KEY-", rb"AGE-SECRET-KEY-1[A-Z0-9]{50}"),
    ("a private key", b"PrivateKey", rb"PrivateKey\s{0,9}=\s{0,9}[\w+/]{43}="),
    ("an AWS key", b"AKIA", rb"AKIA[A-Z2-7]{16}\b"),
    ("an AWS key", b"ASIA", rb"ASIA[A-Z2-7]{16}\b"),
    ("a GitHub token", b"gh", rb"gh[pousr]_[A-Za-z0-9]{36}"),
    ("a GitHub token", b"github_pat_", rb"github_pat_[A-Za-z0-9_]{60}"),
    ("a GitLab token", b"glpat-", rb"glpat-[\w-]{20}"),
    ("a Google key", b"AIza", rb"AIza[\w-]{35}"),
    ("a Google key", b"GOCSPX-", rb"GOCSPX-[\w-]{28}"),
    ("a Google token", b"ya29.", rb"ya29\.[\w-]{40}"),
    ("an API key", b"sk-", rb"sk-(?:ant-|proj-|or-v1-|svcacct-)?[\w-]{32}"),
    ("an API key", b"gsk_", rb"gsk_[A-Za-z0-9]{30}"),
    ("an API key", b"xai-", rb"xai-[\w-]{30}"),
    ("an API key", b"nvapi-", rb"nvapi-[\w-]{30}"),
    ("an API key", b"pplx-", rb"pplx-[\w-]{30}"),
    ("a Hugging Face token", b"hf_", rb"hf_[A-Za-z0-9]{34}"),
    ("a Replicate token", b"r8_", rb"r8_[A-Za-z0-9]{36}"),
    ("a Slack token", b"xox", rb"xox[abeoprs]-[\w-]{20}"),
    ("a Slack address", b"hooks.slack.com", rb"hooks\.slack\.com/services/T\w{8,12}/B\w{8,12}/\w{20}"),
    ("a Stripe key", b"k_live_", rb"k_live_[A-Za-z0-9]{20}"),
    ("a token of npm", b"npm_", rb"npm_[A-Za-z0-9]{36}"),
    ("a token of PyPI", b"pypi-AgE", rb"pypi-AgE[\w-]{50}"),
    ("a token of Docker Hub", b"dckr_pat_", rb"dckr_pat_[\w-]{20}"),
    ("a DigitalOcean token", b"dop_v1_", rb"dop_v1_[a-f0-9]{64}"),
    ("an Azure key", b"AccountKey=", rb"AccountKey=[\w+/]{60}"),
    ("a SendGrid key", b"SG.", rb"SG\.[\w-]{22}\.[\w-]{43}"),
    ("a Vault token", b"hvs.", rb"hvs\.[\w-]{24}"),
    ("a Shopify token", b"shp", rb"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("an Atlassian token", b"ATATT3", rb"ATATT3[\w=-]{60}"),
    ("a Databricks token", b"dapi", rb"dapi[a-f0-9]{32}"),
    ("a Grafana token", b"glsa_", rb"glsa_[A-Za-z0-9]{32}"),
    ("a Linear key", b"lin_api_", rb"lin_api_[A-Za-z0-9]{40}"),
    ("a Sentry token", b"sntrys_", rb"sntrys_[\w=/+]{40}"),
    ("a token of a Telegram bot", b":AA", rb"\d{8,10}:AA[\w-]{33}"),
    ("a token (JWT)", b"eyJ", rb"eyJ[\w-]{10,300}+\.eyJ[\w-]{27}"),
    ("a password in an address", b"://", rb"://[^\s:/@\"'<>${}]{1,60}:[^\s:/@\"'<>${}]{8,80}@[\w.-]{3}"),
)
"""A kind of secret, bytes that all of its kind contain, and its pattern, as documented by the issuers.

A pattern has no unbounded part, so that searching takes linear time.
"""

_MADE_UP = re.compile(rb"example|sample|placeholder|dummy|fake|redacted|x{6}|0{6}|1234567|abcdef", re.IGNORECASE)


def secret_in(data: bytes) -> str:
    """The kind of secret in there, "" for none. Obvious placeholders, as in documentation, don't count."""
    if b"\0" in data[:CHUNK]:  # UTF-16 and UTF-32: secrets are ASCII, and are found without the zeros
        data = data.replace(b"\0", b"")
    for start in range(0, len(data), CHUNK):
        chunk = data[max(0, start - OVERLAP) : start + CHUNK]
        for kind, hint, shape in _CONTENT:
            if hint in chunk and any(map(_is_real, re.findall(shape, chunk))):
                return kind
    return ""


def _is_real(secret: bytes) -> bool:
    return len(set(secret)) > 10 and re.search(rb"\d", secret) is not None and not _MADE_UP.search(secret)


# -- asking ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SensitiveFile:
    """A file that a call asks about first: why, and which file (device and inode)."""

    reason: str
    identity: tuple[int, int]


def sensitive_file(arguments: Mapping[str, Any], confinement: Confinement) -> SensitiveFile | None:
    """The question for a call that shows the file `path`; None if it need not ask, and for a folder."""
    path = str(arguments.get("path", "."))
    try:
        place = confinement.place(path)
        with confinement.opened(place, "file") as descriptor:
            return examine(descriptor, path, place)
    except ToolError:
        return None  # a folder, or refused anyway


def examine(descriptor: int, path: str, place: Place) -> SensitiveFile | None:
    """Why the open file asks, if it does: by its requested name, by where that leads, and by its content.

    If it has further names (hard links), those of the usual secret files count too.
    """
    status = os.fstat(descriptor)
    identity = (status.st_dev, status.st_ino)
    named = PurePath(path.strip()).name
    if may_hold_secrets(place.path.as_posix()):
        reason = f"{place.shown} probably holds keys or passwords"
    elif may_hold_secrets(named):
        reason = f"{place.shown} (asked for as {printable(named)}) probably holds keys or passwords"
    elif status.st_nlink > 1 and (other := _known_as(identity, place)):
        reason = f"{place.shown} is the same file as {other}, which probably holds keys or passwords"
    elif kind := secret_in(_beginning(descriptor)):
        reason = f"{place.shown} holds {kind}"
    else:
        return None
    return SensitiveFile(f"{reason}; its content would be sent to the model", identity)


def check_approved(descriptor: int, path: str, place: Place, approved: SensitiveFile | None) -> None:
    """Raise `ToolError` if the opened file must be asked about and is not the `approved` one.

    So a file that was replaced after the question shows nothing.
    """
    if examine(descriptor, path, place) not in (None, approved):
        raise ToolError(f"{place.shown} changed after the question: refused. Call again to be asked again.")


def _beginning(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        data = file.read(SCANNED)
        file.seek(0)
    return data


def _known_as(identity: tuple[int, int], place: Place) -> str:
    """The name under which this is a usual secret file: beside it, in a folder above it, or in the home folder."""
    home = Path.home()
    folders = [*(place.base.joinpath(*place.parts[:n]) for n in range(len(place.parts))), home]
    folders += [folder / name for folder in (place.base, home) for name in sorted(_FOLDERS)]
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for entry in itertools.islice(entries, MAX_ENTRIES):
                    path = f"{folder.as_posix()}/{entry.name}"
                    if entry.inode() == identity[1] and may_hold_secrets(path):
                        status = entry.stat(follow_symlinks=False)
                        if (status.st_dev, status.st_ino) == identity:
                            return path
        except OSError:
            continue  # missing or inaccessible
    return ""
