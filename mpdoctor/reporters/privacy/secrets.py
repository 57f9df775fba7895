"""Secrets in a text: tokens by their own form, and whatever is given to a name that secrets have.

A table, each row of which takes a time that grows with the length of the text and no faster: no pattern begins a search
anew within what it has searched, and what is given to a name is read when its name was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from mpdoctor.reporters.privacy.secret_forms import CONSTANTS, FORMS, SHORTEST_TOKEN, SecretKind, is_placeholder
from mpdoctor.reporters.privacy.secret_words import ALONE, Name, kind_of_name, looks_random, words_of_name

ENOUGH = 300  # characters of a value decide whether it is a secret
# A "key" may be that of a dict.
SHORTEST_KEY = 20


def without_secrets(text: str, found: set[str] | None = None) -> str:
    for kind in KINDS:
        text = kind.hide(text, found)
    return text


def hidden_anywhere(found: Iterable[str]) -> list[str]:
    """Those among hidden texts that are secrets wherever they stand, too, the longest first. Of credentials in an
    address, "user:password", it is the password."""
    values = {text.rpartition(":")[2] for text in found}
    return sorted(
        (value for value in values if looks_random(value, SHORTEST_TOKEN)), key=lambda value: (-len(value), value)
    )


# --- by the name that they are given to -------------------------------------------------------------------------------
# api_key = , "token": , os.environ["HF_TOKEN"] = , password: str = , login( , "WANDB_API_KEY",
_ASSIGNED = re.compile(
    r"""(?<![\w.-]) (?P<name> [\w.-]+ ) (?: (?P<comma> [\\]{0,2}["'] \s{0,2} , \s{0,3} ) | (?P<call> \( \s{0,3} )
    | [\\"'\])]{0,4} (?P<sign> \s{0,4} (?: [!=]?=>? | := | or (?=\s) | :
        (?: \s? [A-Za-z_][\w.]{0,30} (?: \[ [\w.,\ |]{0,30} \] )? (?: \s?\|\s?\w{1,20} )? \s{0,2} = (?!=) )?
    ) \s{0,4} ) )""",
    re.VERBOSE,
)
# --api-key X, --api-key=X, "--api-key", "X"
_OPTION = re.compile(
    r"(?<![\w.-])--(?P<name>[A-Za-z][\w.-]*)(?:=|\s{1,4}|[\\]{0,2}[\"']\s{0,2},\s{0,3}(?=[\\]{0,2}[\"']))(?!-)"
)
# "--password", default="X"
_DEFAULT = re.compile(
    r"[\"']-{1,2}(?P<name>[A-Za-z][\w.-]*)[\"'][^\n()]{0,200}?\bdefault\s{0,3}=\s{0,3}(?=[rbfuRBFU]{0,2}[\"'])"
)
_ELEMENT = re.compile(r"<(?P<name>[\w.-]{1,60})>(?=[^<>\s]{1,300}</)")
_VALUE = re.compile(
    rf"""(?: [(\[{{] \s{{0,20}} )? [rbfuRBFU]{{0,2}} \\?" (?:"")? (?P<double> [^"\n]{{1,{ENOUGH}}} )
    | (?: [(\[{{] \s{{0,20}} )? [rbfuRBFU]{{0,2}} \\?' (?:'')? (?P<single> [^'\n]{{1,{ENOUGH}}} )
    | (?P<bare> [^\s"'`,;&|)\]}}<>]{{1,{ENOUGH}}} )""",
    re.VERBOSE,
)
_REST = {
    "double": re.compile(r'[^"\n]*'),
    "single": re.compile(r"[^'\n]*"),
    "bare": re.compile(r"[^\s\"'`,;&|)\]}<>]*"),
}
# `--token is not set` is a sentence
_SENTENCE = frozenset(("and", "flag", "for", "if", "in", "is", "must", "not", "option", "or", "to", "was", "with"))
_WORDS = re.compile(r"[a-z]+(?:_[a-z]+)+")  # current_api_key, the name of somebody's variable
_NUMBER = re.compile(r"[\d.,_]+")
_CODE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|.*[(\[{].*|lambda", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d]+")  # a name of somebody's variable, or a word
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")


def _kind_by_name(name: str, head: re.Pattern[str], is_secret: Callable[[re.Match[str], str, str], bool]) -> SecretKind:
    """A kind of secret that is recognized by the name it is given to. `is_secret` is asked with the match of the head,
    the value's beginning, and its quoting: "double", "single" or "bare".

    A head within what is hidden already does not count. A head whose value is no secret may contain another one: in
    `X-Note: password=…` the name before the colon is not the secret's."""

    def places(text: str) -> Iterator[tuple[int, int]]:
        at = 0
        while match := head.search(text, at):
            value = _VALUE.match(text, match.end())
            way = value.lastgroup if value else None
            at = match.end("name")
            if value is not None and way is not None and is_secret(match, value[way], way):
                rest = _REST[way].match(text, value.start(way))
                at = rest.end() if rest else value.end()
                yield value.start(way), at

    return SecretKind(name, places)


def _is_assigned_secret(match: re.Match[str], value: str, way: str) -> bool:
    name = match["name"]
    kind = kind_of_name(name)
    if kind is Name.OTHER or is_placeholder(value):
        return False
    words = words_of_name(name)
    if match["call"] and kind is Name.SECRET and words[:1] in (["set"], ["with"]):
        return way != "bare"
    shortest = SHORTEST_KEY if words[-1:] in (["key"], ["keys"]) else SHORTEST_TOKEN
    if kind is Name.PERHAPS or match["sign"] is None:  # the next argument may be anything
        return (way != "bare" or match["sign"] is not None) and looks_random(value, shortest)
    sign = match["sign"].strip()
    return way != "bare" or (sign not in ("or", "!=") and _is_bare_secret(name, match["sign"], value))


def _is_bare_secret(name: str, sign: str, value: str) -> bool:
    """Whether a value without quotes is a secret. It may as well be code or a sentence: password=os.environ["X"],
    password: str."""
    if looks_random(value, SHORTEST_TOKEN):
        return True
    words = {word.lower() for word in (value, value.rpartition(".")[2])}
    if (
        _CODE.fullmatch(value)
        or _PATH.match(value)
        or words & {*CONSTANTS, name.lower(), *words_of_name(name)[-1:]}
        or (_WORDS.fullmatch(value) and words_of_name(value)[-1:] == words_of_name(name)[-1:])
    ):
        return False
    in_shell = sign == "="
    if (_NUMBER.fullmatch(value) or _WORDS.fullmatch(value)) and not in_shell:
        return False
    return in_shell or name.isupper() or not _IDENTIFIER.fullmatch(value.rstrip("."))


def _is_option_secret(match: re.Match[str], value: str, way: str) -> bool:
    kind = kind_of_name(match["name"])
    if kind is Name.OTHER or is_placeholder(value) or value in _SENTENCE:
        return False
    return kind is Name.SECRET or match["name"].lower() in ALONE or looks_random(value, SHORTEST_TOKEN)


def _is_named_secret(match: re.Match[str], value: str, way: str) -> bool:
    kind = kind_of_name(match["name"])
    if kind is Name.OTHER or is_placeholder(value):
        return False
    return kind is Name.SECRET or looks_random(value, SHORTEST_TOKEN)


KINDS = (
    *FORMS,
    _kind_by_name("default of an option", _DEFAULT, _is_named_secret),
    _kind_by_name("element of XML", _ELEMENT, _is_named_secret),
    _kind_by_name("option of a command", _OPTION, _is_option_secret),
    _kind_by_name("what is given to a name", _ASSIGNED, _is_assigned_secret),
)
