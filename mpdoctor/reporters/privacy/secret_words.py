"""Which names are given to secrets, and which texts look like one."""

from __future__ import annotations

import re
from enum import Enum

# Words that end the name of a secret, whatever stands before them.
_SECRET = frozenset((
    "accesskey", "accesstoken", "accountkey", "apikey", "apisecret", "apitoken", "authtoken", "clientsecret",
    "credential", "credentials", "passcode", "passphrase", "passwd", "password", "passwords", "passwort", "privatekey",
    "pgpassword", "pwd", "secret", "secretkey", "secrets",
))  # fmt: skip
# "key", "token" and "pass" are more often those of a dict, of a text and of a network: they are secrets after these.
_BEFORE_KEY = frozenset((
    "access", "account", "admin", "api", "auth", "aws", "azure", "comet", "deploy", "encryption", "gcp", "hmac",
    "huggingface", "license", "master", "neptune", "openai", "private", "secret", "service", "shared",
    "signing", "ssh", "storage", "subscription", "wandb", "webhook",
))  # fmt: skip
_BEFORE_TOKEN = frozenset((
    "access", "api", "auth", "bearer", "bot", "client", "comet", "deploy", "discord", "gh", "github", "gitlab",
    "hf", "hub", "huggingface", "id", "jwt", "neptune", "npm", "oauth", "personal", "private", "pypi",
    "refresh", "sas", "secret", "security", "service", "session", "slack", "telegram", "user", "vault", "wandb",
))  # fmt: skip
_BEFORE_PASS = frozenset((
    "admin", "database", "db", "ftp", "http", "ldap", "login", "mail", "mongo", "mysql", "pg", "postgres",
    "proxy", "redis", "root", "service", "smtp", "ssh", "sudo", "user",
))  # fmt: skip
_AFTER = {"key": _BEFORE_KEY, "token": _BEFORE_TOKEN, "pass": _BEFORE_PASS}
_PERHAPS = frozenset((
    "auth", "cookie", "jwt", "key", "keys", "login", "pass", "pat", "pw", "sas", "sessionid", "sig", "signature",
    "token", "tokens",
))  # fmt: skip
_IN_OTHER_LANGUAGES = (
    "contraseña", "contrasena", "kennwort", "mot_de_passe", "motdepasse", "senha", "wachtwoord", "пароль", "密码",
    "密碼", "パスワード", "비밀번호",
)  # fmt: skip
# Alone, and given on a command line, these are secrets: nobody sorts there.
ALONE = frozenset(("auth", "key", "pass", "token"))

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TOKEN = re.compile(r"[\w+/=.~:%-]+", re.ASCII)
_SPELT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SEPARATORS = re.compile(r"[_/.]")
LONGEST_NAME = 120


class Name(Enum):
    """What is given to a name: a secret, a secret if it looks like one, or none."""

    SECRET = 1
    PERHAPS = 2
    OTHER = 3


def kind_of_name(name: str) -> Name:
    """What a name says of its value: `WANDB_API_KEY`, `self.dbPassword` and `--hf-token` are names of secrets;
    `key_dim`, `num_tokens` and `monkey` are not."""
    if name.lower().endswith(_IN_OTHER_LANGUAGES):
        return Name.SECRET
    words = words_of_name(name)
    if not words:
        return Name.OTHER
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _SECRET or before in _AFTER.get(last, ()) or words[-3:] == ["access", "key", "id"]:
        return Name.SECRET
    return Name.PERHAPS if last in _PERHAPS else Name.OTHER


def words_of_name(name: str) -> list[str]:
    """The words in the last part of a dotted name, in lower case."""
    return [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:].rpartition(".")[2])]


def looks_random(text: str, shortest: int) -> bool:
    """Whether digits stand among letters in no order that words have. Those in the layers `block1_conv2` and
    `ResNet50V2` have one."""
    if len(text) < shortest or not _TOKEN.fullmatch(text) or sum(map(str.isdigit, text)) < 2:
        return False
    if len(text) < 40 and len(_SEPARATORS.findall(text)) > 2:
        return False
    spelt = _SPELT.findall(text)
    return bool(spelt) and sum(map(len, spelt)) <= 3 * len(spelt)
