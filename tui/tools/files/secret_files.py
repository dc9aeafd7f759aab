"""Files that probably hold keys or passwords: a call that would show one asks first, and says which.

Judged by name and folder only. The lists are our own, held against those of gitrob, gitleaks and TruffleHog, and the
manuals of the programs that write such files. Code that deals with secrets (`secrets.py`) is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath, PurePosixPath
from typing import Any

from tui.tools.base import ToolError
from tui.tools.files.confine import Confinement, Place

_NAMES = frozenset(
    {".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", "pip.conf", "pip.ini", ".condarc", "nuget.config"}
    | {".git-credentials", ".gitconfig", ".hgrc", ".htpasswd", ".dockercfg", ".terraformrc", "terraform.rc"}
    | {".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".vault-token", ".vault_pass", ".s3cfg", ".boto"}
    | {".passwd-s3fs", "rclone.conf", ".rclone.conf", ".databrickscfg", ".fetchmailrc", ".msmtprc", ".esmtprc"}
    | {".muttrc", ".ftpconfig", "sftp-config.json", "filezilla.xml", "sitemanager.xml", "recentservers.xml"}
    | {"auth.json", "master.key", "kubeconfig", "rootkey.csv", "accesskeys.csv", "wp-config.php", "localsettings.php"}
    | {"logins.json", "key3.db", "key4.db", "cookies.sqlite", "login data", "cookies", "wallet.dat"}
    | {"mcp.json", ".mcp.json", "claude_desktop_config.json", ".claude.json"}
    | {"shadow", "gshadow", "master.passwd", ".envrc", ".flaskenv", ".histfile", "consolehost_history.txt"}
)
_ENDINGS = frozenset(
    {".pem", ".key", ".p8", ".pk8", ".p12", ".pfx", ".pkcs12", ".jks", ".bks", ".keystore", ".ppk", ".jwk", ".keytab"}
    | {".kdb", ".kdbx", ".psafe3", ".agilekeychain", ".keychain", ".keychain-db", ".kwallet", ".asc", ".gpg", ".pgp"}
    | {".tfvars", ".tfstate", ".kubeconfig", ".ovpn", ".rdp", ".cscfg", ".secret", ".secrets"}
)
_FOLDERS = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".subversion", ".mozilla"}
)
"""Whatever is below them, but for public keys."""
_WAYS = ("/.config/gcloud/", "/roaming/gcloud/", "/share/keyrings/", "/.config/rclone/", "/.config/op/")
"""Likewise, where the folder's own name says too little."""
_IN_FOLDER: Mapping[str, frozenset[str]] = {
    ".git": frozenset({"config", "config.worktree"}),  # addresses of remotes, often with a token in them
    "git": frozenset({"config"}),
    ".hg": frozenset({"hgrc"}),
    ".docker": frozenset({"config.json"}),
    "containers": frozenset({"auth.json"}),
    ".m2": frozenset({"settings.xml", "settings-security.xml"}),
    ".gradle": frozenset({"gradle.properties"}),
    ".bundle": frozenset({"config"}),
    ".snowsql": frozenset({"config"}),
    "gh": frozenset({"hosts.yml"}),
    "glab-cli": frozenset({"config.yml"}),
    ".config": frozenset({"hub"}),
}
_HARMLESS = frozenset({"example", "sample", "template", "tmpl", "dist", "defaults", "schema"})  # .env.example
_DATA = frozenset({"", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt", ".csv", ".xml", ".db"})
_WORDS = frozenset({"secret", "secrets", "credential", "credentials", "password", "passwords", "passwd"})
_ACCOUNTS = ("service-account", "service_account", "serviceaccount", "client_secret", "firebase-adminsdk")
_ENV = re.compile(r"\.(env|dev\.vars)([._-].*)?")
_PRIVATE_KEY = re.compile(r"id_(rsa|dsa|ecdsa|ed25519|xmss)([._-].*)?|[^.]+_(rsa|dsa|ecdsa|ed25519)")
_COPY = re.compile(r"(.*?[^.])(?:~|\.(?:bak|backup|old|orig|save|sw[op]|tmp|\d+)){1,4}")
"""What editors and people leave beside a file, and what that is called."""
_HISTORY = re.compile(r"\.?\w*_history")  # of shells and database clients


def may_hold_secrets(name: str) -> bool:
    """Whether a file's name, or a folder on the path to it, says that keys or passwords are in it."""
    path = PurePosixPath(name.lower().replace("\\", "/"))
    paths = [path]
    if copy := _COPY.fullmatch(path.name):  # an editor puts a dot before the name, too
        paths += [path.with_name(original) for original in (copy[1], copy[1].removeprefix("."))]
    return any(map(_holds_secrets, paths))


def _holds_secrets(path: PurePosixPath) -> bool:
    if path.suffix == ".pub":
        return False
    if not _FOLDERS.isdisjoint(path.parts[:-1]) or any(way in f"/{path}" for way in _WAYS) or _in_its_folder(path):
        return True
    if path.name in _NAMES or path.suffix in _ENDINGS:
        return True
    return _says_so(path.name, path.suffix) and _HARMLESS.isdisjoint(re.split(r"[._-]", path.name))


def _in_its_folder(path: PurePosixPath) -> bool:
    """Whether it is a file that holds secrets just there; a submodule's git folder lies below ".git"."""
    folders = path.parts[:-1]
    if not folders:
        return False
    if path.name in _IN_FOLDER[".git"] and ".git" in folders:
        return True
    return path.name in _IN_FOLDER.get(folders[-1], ())


def _says_so(name: str, suffix: str) -> bool:
    if suffix == ".env" or any(form.fullmatch(name) for form in (_ENV, _PRIVATE_KEY, _HISTORY)):
        return True
    if suffix not in _DATA:
        return False
    return name.startswith(_ACCOUNTS) or not _WORDS.isdisjoint(re.split(r"[._\s-]", name))


def secret_reason(arguments: Mapping[str, Any], confinement: Confinement) -> str:
    """Why a call that shows what is in this file asks first; "" if it does not, and for a folder."""
    path = str(arguments.get("path", "."))
    try:
        place = confinement.place(path)
    except ToolError:
        return ""  # it is refused anyway
    return "" if place.path.is_dir() else _why(path, place)


def check_agreed(path: str, place: Place, agreed: str) -> None:
    """Raise `ToolError` where the file that was opened is one to ask about, and `agreed`, what was asked, is not that.

    So a file that became a link to a secret after the question shows nothing.
    """
    if _why(path, place) not in ("", agreed):
        raise ToolError(f"{place.shown} was another file when it was asked about: refused. Call again to ask anew.")


def _why(path: str, place: Place) -> str:
    """A link is judged by its own name and by what it leads to."""
    named = PurePath(path.strip()).name
    shown = place.shown if may_hold_secrets(place.path.as_posix()) else named if may_hold_secrets(named) else ""
    return f"{shown} probably holds keys or passwords; its content would be sent to the model" if shown else ""
