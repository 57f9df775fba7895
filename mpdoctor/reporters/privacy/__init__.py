"""Redaction: home directories, user names, tokens and passwords are taken out of a diagnosis before it is shared.

One pass over every string of the diagnosis, before any reporter sees it, so that none can forget a field. `secrets.py`
is the table of what secrets look like.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.privacy.secret_forms import HIDDEN
from mpdoctor.reporters.privacy.secret_words import Name, kind_of_name, looks_random
from mpdoctor.reporters.privacy.secrets import hidden_anywhere, without_secrets
from mpdoctor.reporters.string_walk import strings_of, with_every_string

HOME, USER = "~", "<user>"
MOST_USERS = 100  # that a diagnosis names by their home directories: one with more was made up
MOST_SECRETS = 20  # that are looked for where nothing but their value tells them
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
_PASSWORD_IN_ADDRESS = re.compile(
    rf"[a-z][a-z\d+.-]{{0,30}}://[^\s:/@]{{0,100}}:(?P<password>[^\s:/@]{{{SHORTEST_SECRET},200}})@"
)
_SIZES = re.compile(r"\d+(?:[x,.:_-]?\d+)*")  # KEY_DIM=64x64x64, MAX_TOKEN_COUNT=100000
SHORTEST_RANDOM = 12
_END = r"[^/\\\s'\"`,;:|<>()\[\]{}]+"
# /home/ann, /Users/ann, /var/home/ann, /mnt/c/Users/ann, C:\Users\Ann Lee\, ~ann/
_HOMES = (
    re.compile(rf"(?<![\w.~/\\-])(?:/[\w.-]+){{0,3}}?/(?:home|Users)/(?P<name>{_END})"),
    re.compile(r"(?<!\w)[A-Za-z]:[\\/]+Users[\\/]+(?P<name>[^\\/:*?\"<>|\n]+?)(?=[\\/'\"`:]|$)"),
    re.compile(r"(?<![\w/.~])~(?P<name>[a-z_][\w-]*)(?=/)"),
    re.compile(r"(?<![\w.~/\\-])/root(?=/|\b)(?P<name>)"),
)


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
        if _holds_secret(name, value) and len(value) >= SHORTEST_SECRET and not _is_path(value)
    }
    secrets |= {
        name: found["password"]
        for name, value in variables.items()
        if name not in secrets and (found := _PASSWORD_IN_ADDRESS.match(value))
    }
    return Surroundings(home, tuple(dict.fromkeys(filter(None, users))), tuple(sorted(secrets.items())))


def _holds_secret(name: str, value: str) -> bool:
    kind = kind_of_name(name)
    if kind is Name.PERHAPS and looks_random(value, SHORTEST_RANDOM):
        return True
    return kind is Name.SECRET or (bool(_SECRET_NAME.search(name)) and not _SIZES.fullmatch(value))


def _is_path(value: str) -> bool:
    """Whether it is the path of something that is there: SSH_KEY=/home/ann/.ssh/id tells where a secret lies, and is
    none."""
    try:
        return Path(value).exists()
    except (OSError, ValueError):  # a token is longer than any name of a file
        return False


def without_private(diagnosis: Diagnosis, surroundings: Surroundings) -> Diagnosis:
    """The diagnosis without home directories, user names and secrets, so that anybody may read it."""
    named = {name for text in set(strings_of(diagnosis)) for home in _HOMES for name in home.findall(text)}
    users = [user for user in sorted({*surroundings.users, *sorted(named)[:MOST_USERS]}) if _identifies_somebody(user)]
    found: set[str] = set()
    clean = _cleaner(surroundings, sorted(users, key=len, reverse=True), found)
    shown = with_every_string(diagnosis, lambda text, _: clean(text))
    # `password='…'` tells of a word without a sign what it is: in the message of an exception, say
    for value in hidden_anywhere(found)[:MOST_SECRETS]:
        shown = with_every_string(shown, lambda text, _, value=value: text.replace(value, HIDDEN))  # type: ignore[misc]
    findings = tuple(map(_fit_to_what_is_shown, diagnosis.findings, shown.findings))
    return dataclasses.replace(shown, findings=findings, redacted=True)


def _identifies_somebody(user: str) -> bool:
    return len(user) > 1 and user.lower() not in NO_NAMES


def _cleaner(surroundings: Surroundings, users: list[str], found: set[str]) -> Callable[[str], str]:
    """A function that cleans a text; `found` gains the secrets that were in it."""
    secrets = sorted(surroundings.secrets, key=lambda secret: -len(secret[1]))
    homes = _literal_homes(surroundings.home)
    names = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, users))})(?![A-Za-z0-9])") if users else None

    @functools.cache  # the same names stand in many places
    def clean(text: str) -> str:
        for name, value in secrets:
            text = text.replace(value, f"${name}")
        text = without_secrets(text, found)
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


def _fit_to_what_is_shown(before: Finding, after: Finding) -> Finding:
    """Columns count in the line as it was; and an edit with a secret taken out of it would write asterisks."""
    if after.fix != before.fix:
        after = dataclasses.replace(after, fix=None)
    if after.location is None or before.excerpt is None or _marked_lines(before) == _marked_lines(after):
        return after
    line = dataclasses.replace(after.location, column=0, end_line=0, end_column=0)
    return dataclasses.replace(after, location=line)


def _marked_lines(finding: Finding) -> tuple[str, ...]:
    """The lines of its excerpt that a finding is about."""
    place, excerpt = finding.location, finding.excerpt
    if place is None or excerpt is None:
        return ()
    first, last = place.line - excerpt.first_line, max(place.line, place.end_line) - excerpt.first_line
    return excerpt.lines[max(first, 0) : last + 1]
