"""What is nobody's business, taken out of a diagnosis before it is pasted where others read it: home directories, user
names, tokens, passwords, and what the environment keeps secret.

One pass over every string that the diagnosis holds, whatever field it stands in, so that no reporter can forget one.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from mpdoctor.finding import Diagnosis, Finding

Held = TypeVar("Held")

HOME, USER, SECRET = "~", "<user>", "***"
SHORTEST_SECRET = 6
# Accounts that tell nothing about anybody, and words that are more often a layer, an optimizer or a folder than a name.
NO_NAMES = frozenset(
    (
        "root",
        "user",
        "users",
        "admin",
        "administrator",
        "ubuntu",
        "debian",
        "ec2-user",
        "centos",
        "runner",
        "jovyan",
        "vscode",
        "docker",
        "nobody",
        "app",
        "test",
        "home",
        "public",
        "default",
        "build",
        "builder",
        "jenkins",
        "gitlab-runner",
        "worker",
        "train",
        "training",
        "model",
        "models",
        "data",
        "keras",
        "tf",
        "tensorflow",
        "python",
        "adam",
        "nadam",
        "dense",
        "ray",
        "dask",
        "spark",
        "shared",
        "all",
        "name",
        "names",
        "local",
        "opt",
        "src",
        "work",
        "workspace",
        "circleci",
        "travis",
        "gitpod",
        "codespace",
        "azureuser",
        "opc",
        "pi",
        "sagemaker-user",
    )
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|KEY|APIKEY|CREDENTIALS?|COOKIE|DSN)(?:_|$)", re.IGNORECASE
)
_END = r"[^/\\\s'\"`,;:|<>()\[\]{}]+"
# /home/ann, /Users/ann, /var/home/ann, /mnt/c/Users/ann, C:\Users\Ann Lee\, ~ann/
_HOMES = (
    re.compile(rf"(?<![\w.~/\\-])(?:/[\w.-]+){{0,3}}?/(?:home|Users)/(?P<name>{_END})"),
    re.compile(r"(?<!\w)[A-Za-z]:[\\/]+Users[\\/]+(?P<name>[^\\/:*?\"<>|\n]+?)(?=[\\/'\"`:]|$)"),
    re.compile(r"(?<![\w/.~])~(?P<name>[a-z_][\w-]*)(?=/)"),
    re.compile(r"(?<![\w.~/\\-])/root(?=/|\b)(?P<name>)"),
)
_TOKENS = re.compile(
    r"""
      \b(?:hf_|gh[pousr]_|github_pat_|glpat-|npm_|pypi-|dckr_pat_|sk-|sk_live_|rk_live_|xox[abeprs]-)[\w-]{16,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?:.|\n)*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^/\s:@]+(?::[^/\s@]+)?(?=@)
    | \b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b
    """,
    re.VERBOSE,
)
_NAMES = (
    r"(?:[\w-]*[_-])?(?:api[_-]?key|access[_-]?key(?:[_-]id)?|secret(?:[_-](?:access[_-])?key)?|private[_-]?key"
    r"|token|password|passwd|passphrase)"
)
_QUOTED = r"[rbfu]{0,2}(?P<quote>[\"'])(?P<quoted>[^\"'\n]+)"
# --password hunter2, Authorization: Bearer …
_GIVEN = re.compile(rf"(?P<before>--{_NAMES}[=\s]\s*|\bbearer\s+)(?:{_QUOTED}|(?P<bare>[^\s'\"]+))", re.IGNORECASE)
# api_key = "…", {"token": "…"}, os.environ["HF_TOKEN"] = "…"
_WRITTEN = re.compile(rf"(?P<before>(?<![A-Za-z]){_NAMES}[\"']?\]?\s*[=:]\s*){_QUOTED}", re.IGNORECASE)
# WANDB_API_KEY=…
_EXPORTED = re.compile(
    r"(?P<before>\b[A-Z0-9_]*(?:API_?KEY|ACCESS_KEY(?:_ID)?|TOKEN|SECRET|PASSWORD|PASSWD)=)(?P<bare>[^\s'\"]+)"
)
# What is a secret whatever it looks like; a "token" may be a word of a text.
_SECRET_WORD = re.compile(r"pass|secret|private|bearer|key|^--", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Surroundings:
    """What the machine that renders knows to be private. Reporters are pure: it is handed to them.

    home
        The home directory, "" where there is none.
    users
        Names of the account.
    secrets
        (name, value) of environment variables that hold tokens, keys and passwords.
    """

    home: str = ""
    users: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()


def surroundings_from_environment(variables: Mapping[str, str]) -> Surroundings:
    home = variables.get("HOME") or variables.get("USERPROFILE") or ""
    users = [variables.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER")]
    secrets = {
        name: value
        for name, value in variables.items()
        if _SECRET_NAME.search(name) and len(value) >= SHORTEST_SECRET and not Path(value).exists()
    }
    return Surroundings(home, tuple(dict.fromkeys(filter(None, users))), tuple(sorted(secrets.items())))


def without_private(diagnosis: Diagnosis, surroundings: Surroundings) -> Diagnosis:
    """The same diagnosis, fit to be read by anybody."""
    named = {name for text in set(_strings(diagnosis)) for home in _HOMES for name in home.findall(text)}
    users = sorted({*surroundings.users, *named} - {""}, key=len, reverse=True)
    cleaned = _cleaner(surroundings, [user for user in users if user.lower() not in NO_NAMES and len(user) > 1])
    return every_string(diagnosis, cleaned)


def _cleaner(surroundings: Surroundings, users: list[str]) -> Callable[[str], str]:
    secrets = sorted(surroundings.secrets, key=lambda secret: -len(secret[1]))
    homes = _literal_homes(surroundings.home)
    names = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, users))})(?![A-Za-z0-9])") if users else None

    @functools.cache  # the same names stand in many places
    def clean(text: str) -> str:
        for name, value in secrets:
            text = text.replace(value, f"${name}")
        text = _TOKENS.sub(SECRET, text)
        for assigned in (_GIVEN, _WRITTEN, _EXPORTED):
            text = assigned.sub(_hidden, text)
        for home in homes:
            text = home.sub(HOME, text)
        for pattern in _HOMES:
            text = pattern.sub(HOME, text)
        return names.sub(USER, text) if names else text

    return clean


def _literal_homes(home: str) -> list[re.Pattern[str]]:
    if len(Path(home).parts) < 2:  # "", "/"
        return []
    ways = {home.rstrip("/\\"), str(Path(home).resolve())}
    return [re.compile(rf"{re.escape(way)}(?![\w.-])") for way in sorted(ways, key=len, reverse=True)]


def _hidden(found: re.Match[str]) -> str:
    given = found.groupdict()
    value = given.get("quoted") or given["bare"]
    if not _SECRET_WORD.search(given["before"]) and not _looks_random(value):
        return found.group()
    quote = given.get("quote") or ""
    return f"{given['before']}{quote}{SECRET}"


def _looks_random(value: str) -> bool:
    return len(value) >= 12 and not value.isalpha() and any(character.isalpha() for character in value)


# --- every string of it ----------------------------------------------------------------------------------------------
def _strings(held: Any) -> Iterator[str]:
    if isinstance(held, str):
        yield held
    elif dataclasses.is_dataclass(held) and not isinstance(held, type):
        for field in dataclasses.fields(held):
            yield from _strings(getattr(held, field.name))
    elif isinstance(held, Mapping):
        for key, value in held.items():
            yield from _strings(key)
            yield from _strings(value)
    elif isinstance(held, tuple | list | set | frozenset):
        for one in held:
            yield from _strings(one)


def every_string(held: Held, clean: Callable[[str], str]) -> Held:
    """The same, with every string in it cleaned."""
    changed: Any = held
    if isinstance(held, Enum):
        return held
    if isinstance(held, str):
        changed = clean(held)
    elif isinstance(held, Finding):
        changed = _whole_line_where_it_changed(held, _mapped_fields(held, clean))
    elif dataclasses.is_dataclass(held) and not isinstance(held, type):
        changed = _mapped_fields(held, clean)
    elif isinstance(held, Mapping):
        changed = {every_string(key, clean): every_string(value, clean) for key, value in held.items()}
    elif isinstance(held, tuple | list | set | frozenset):
        changed = type(held)(every_string(one, clean) for one in held)
    return changed  # type: ignore[no-any-return]


def _mapped_fields(held: Any, clean: Callable[[str], str]) -> Any:
    fields = (field.name for field in dataclasses.fields(held))
    return dataclasses.replace(held, **{name: every_string(getattr(held, name), clean) for name in fields})


def _whole_line_where_it_changed(before: Finding, after: Finding) -> Finding:
    """Columns count in the line as it was."""
    if after.location is None or before.excerpt == after.excerpt:
        return after
    whole = dataclasses.replace(after.location, column=0, end_line=0, end_column=0)
    return dataclasses.replace(after, location=whole)
