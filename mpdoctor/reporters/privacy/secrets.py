"""Secrets in a text: tokens by their own form, and whatever is given to a name that secrets have.

A table, each row of which takes a time that grows with the length of the text and no faster: no pattern begins a search
anew within what it has searched, and what is given to a name is read when its name was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from mpdoctor.facts.frozen import dataclass
from mpdoctor.reporters.privacy.secret_words import ALONE, Name, kind_of_name, looks_random, words_of_name

HIDDEN = "***"
ENOUGH = 300  # characters of a value decide whether it is a secret
# A "token" may be a word of a text, and a "key" that of a dict.
SHORTEST_TOKEN, SHORTEST_KEY = 12, 20


@dataclass(frozen=True)
class SecretKind:
    """`places`: where in a text the secrets of this kind begin and end, in their order."""

    name: str
    places: Callable[[str], Iterable[tuple[int, int]]]

    def hide(self, text: str, found: set[str] | None = None) -> str:
        """The text with every secret of this kind replaced; `found` gains them."""
        parts, behind = [], 0
        for start, end in self.places(text):
            parts += [text[behind:start], HIDDEN]
            behind = end
            if found is not None:
                found.add(text[start:end])
        return "".join([*parts, text[behind:]]) if parts else text


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


# --- by their own form ------------------------------------------------------------------------------------------------
def _kind_by_form(name: str, pattern: str, is_secret: Callable[[str], bool] = bool) -> SecretKind:
    """What its group "secret" matches is hidden."""
    compiled = re.compile(pattern, re.VERBOSE)

    def places(text: str) -> Iterator[tuple[int, int]]:
        return (match.span("secret") for match in compiled.finditer(text) if is_secret(match["secret"]))

    return SecretKind(name, places)


_IN_URL = r"[^\s\"'<>`\\]"
_FORMS = (
    _kind_by_form(
        "token with a prefix",
        r"""(?<![A-Za-z0-9]) (?P<secret> (?: hf_ | api_org_ | gh[pousr]_ | github_pat_ | gl(?:pat|dt|rt|ft|ptt|cbt)-
        | npm_ | pypi- | dckr_[po]at_ | [sr]k_(?:live|test)_ | whsec_ | xox[abceprs]- | xapp- | do[op]_v1_ | nvapi-
        | lin_api_ | figd_ | shpat_ | ya29\. | SG\. | ATATT3 | AGE-SECRET-KEY- ) [\w.-]{16,} )""",
    ),
    _kind_by_form(
        "token with a short prefix",
        r"(?<![\w-]) (?P<secret> (?: r8_ | gsk_ | xai- | pplx- | dapi ) [\w-]{24,} )",
        lambda text: looks_random(re.split("[_-]|dapi", text, maxsplit=1)[1], SHORTEST_TOKEN),
    ),
    _kind_by_form("token of a Telegram bot", r"(?<![\w.-]) (?P<secret> \d{8,10}:AA[\w-]{30,} )"),
    _kind_by_form(
        "password behind a user",
        r"""\b (?: auth \s{0,2} = \s{0,2} \( | login\( | (?:HTTP)?(?:Basic|Digest)?Auth\( ) \s{0,3}
        (?: "[^"\n]{1,100}" | '[^'\n]{1,100}' )
        \s{0,3} , \s{0,3} (?P<quote> ["'] ) (?P<secret> (?: (?!(?P=quote))[^\n] )+ ) (?P=quote)""",
        lambda text: not _is_placeholder(text),
    ),
    _kind_by_form(
        "password of a command",
        r"""\b (?: curl [^\n]{0,200}? \s (?:-u|--user) [\s=]{1,3} ["']? [^\s:"']{1,100} :
        | (?: sshpass | docker\ login ) [^\n]{0,200}? \s -p [\s=]{0,3} ["']?
        | mysql(?:dump|admin)? \s [^\n]{0,200}? (?<=\s) -p ["']? ) (?P<secret> [^\s"',]+ )""",
        lambda text: not _is_placeholder(text),
    ),
    _kind_by_form(
        "key of an API that begins with sk-",
        r"(?<![\w-]) (?P<secret> sk-[\w-]{16,} )",
        lambda text: any(character.isdigit() or character.isupper() for character in text),
    ),
    _kind_by_form("key of AWS", r"\b (?P<secret> (?:AKIA|ASIA)[0-9A-Z]{16} ) \b"),
    _kind_by_form("key of Google", r"(?<![\w-]) (?P<secret> AIza[\w-]{30,} )"),
    _kind_by_form(
        "JSON web token",
        r"(?<![\w-]) (?P<secret> eyJ[\w+/=-]{38,} (?:\.[\w=-]+){0,4} | eyJ[\w=-]{8,37} (?:\.[\w=-]{4,}){1,4} )",
    ),
    _kind_by_form(
        "private key",
        r"""(?P<secret> -----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY-----
        (?: (?!-----END)[\s\S] )* (?: -----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY----- )? )""",
    ),
    _kind_by_form("credentials in an address", rf"(?<=://) (?P<secret> (?:(?!/){_IN_URL})+ ) (?=@)"),
    _kind_by_form(
        "webhook",
        rf"""\b (?: hooks\.slack\.com/[a-z]{{1,20}}/ | discord(?:app)?\.com/api/webhooks/
        | api\.telegram\.org/(?:file/)?bot | webhook\.office\.com/ | outlook\.office\.com/webhook/
        | chat\.googleapis\.com/v1/spaces/
        | hooks\.zapier\.com/hooks/catch/ | open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/ )
        (?P<secret> {_IN_URL}+ )""",
    ),
    _kind_by_form(
        "webhook of a host of one's own",
        rf"""https?:// (?:(?!/){_IN_URL}){{1,253}} / (?: (?:(?!/){_IN_URL}){{1,64}} / ){{0,4}}? (?:web)?hooks?/
        (?P<secret> {_IN_URL}{{1,300}} )""",
        lambda text: any(looks_random(part, SHORTEST_TOKEN) for part in text.split("/")),
    ),
    _kind_by_form(
        "signature or token in an address",
        rf"""[?&] (?: (?i: sig | signature | token | access_token | auth_token | api_?key | secret | client_secret
        | password | pwd | sas | jwt | x-(?:amz|goog)-(?:signature|credential|security-token) ) = )
        (?P<secret> (?: (?![&\#=]){_IN_URL} )+ )""",
    ),
    _kind_by_form(
        "key or code in an address",
        rf"[?&] (?i: key | code | auth | session ) = (?P<secret> (?: (?![&\#=]){_IN_URL} ){{1,300}} )",
        lambda text: looks_random(text, SHORTEST_TOKEN),
    ),
    _kind_by_form(
        "authorization",
        r"""(?i: \b (?:proxy-)?authorization [\\"']{0,3} \s{0,3} [:=] \s{0,3} (?:[rbfu]{1,2}(?=["']))? \\?["']?
        (?: (?:bearer|basic|token|apikey|digest|negotiate) \s{1,3} )? ) (?P<secret> [^\s"',\\]+ )""",
        lambda text: not _is_placeholder(text),
    ),
    _kind_by_form(
        "bearer",
        r"(?i: \b bearer \s{1,3} ) (?P<secret> [^\s\"',\\]{1,300} )",
        lambda text: looks_random(text, SHORTEST_TOKEN),
    ),
    _kind_by_form(
        "cookie", r"(?i: \b (?:set-)?cookie [\\\"']{0,3} :\s{0,3} \\?[\"']? ) (?P<secret> [^\n\"']{1,4000} )"
    ),
    _kind_by_form("e-mail address", r"(?<![\w.+-]) (?P<secret> [\w.+-]+ @ [\w-]+ (?:\.[\w-]+)* \.[a-z]{2,} ) \b"),
)

# --- by the name that they are given to -------------------------------------------------------------------------------
# api_key = , "token": , os.environ["HF_TOKEN"] = , password: str = , login( , "WANDB_API_KEY",
_ASSIGNED = re.compile(
    r"""(?<![\w.-]) (?P<name> [\w.-]+ ) (?: (?P<comma> [\\]{0,2}["'] \s{0,2} , \s{0,3} ) | (?P<call> \( \s{0,3} )
    | [\\"'\])]{0,4} (?P<sign> \s{0,4} (?: ={1,2}>? | := | :
        (?: \s? [A-Za-z_][\w.]{0,30} (?: \[ [\w.,\ |]{0,30} \] )? (?: \s?\|\s?\w{1,20} )? \s{0,2} = (?!=) )?
    ) \s{0,4} ) )""",
    re.VERBOSE,
)
# --api-key X, --api-key=X, "--api-key", "X"
_OPTION = re.compile(
    r"(?<![\w.-])--(?P<name>[A-Za-z][\w.-]*)(?:=|\s{1,4}|[\\]{0,2}[\"']\s{0,2},\s{0,3}(?=[\\]{0,2}[\"']))(?!-)"
)
_VALUE = re.compile(
    rf"""\(? [rbfuRBFU]{{0,2}} \\?" (?:"")? (?P<double> [^"\n]{{1,{ENOUGH}}} )
    | \(? [rbfuRBFU]{{0,2}} \\?' (?:'')? (?P<single> [^'\n]{{1,{ENOUGH}}} )
    | (?P<bare> [^\s"'`,;&|)\]}}<>]{{1,{ENOUGH}}} )""",
    re.VERBOSE,
)
_REST = {
    "double": re.compile(r'[^"\n]*'),
    "single": re.compile(r"[^'\n]*"),
    "bare": re.compile(r"[^\s\"'`,;&|)\]}<>]*"),
}
_CODE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|.*[(\[{].*|lambda", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d]+")  # a name of somebody's variable, or a word
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]")
_CONSTANTS = frozenset((
    "none", "true", "false", "null", "nil", "str", "bytes", "int", "float", "bool", "any", "optional", "self",
))  # fmt: skip
_NO_VALUE = ")]},;: \t"  # getpass("Password: ") ends there


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


def _is_placeholder(value: str) -> bool:
    """Whether a value is of no use to anybody: f"{token}", $TOKEN, <your token>, or hidden already."""
    return value[0] in "{$<%" or value[0] in _NO_VALUE or not value.strip("*.") or value.lower().startswith("xxx")


def _is_assigned_secret(match: re.Match[str], value: str, way: str) -> bool:
    name = match["name"]
    kind = kind_of_name(name)
    if kind is Name.OTHER or _is_placeholder(value):
        return False
    shortest = SHORTEST_KEY if words_of_name(name)[-1] == "key" else SHORTEST_TOKEN
    if kind is Name.PERHAPS or match["sign"] is None:  # the next argument may be anything
        return (way != "bare" or match["sign"] is not None) and looks_random(value, shortest)
    return way != "bare" or _is_bare_secret(name, match["sign"], value)


def _is_bare_secret(name: str, sign: str, value: str) -> bool:
    """Whether a value without quotes is a secret. It may as well be code or a sentence: password=os.environ["X"],
    password: str."""
    if looks_random(value, SHORTEST_TOKEN):
        return True
    words = {word.lower() for word in (value, value.rpartition(".")[2])}
    if _CODE.fullmatch(value) or _PATH.match(value) or words & {*_CONSTANTS, name.lower(), words_of_name(name)[-1]}:
        return False
    in_shell = sign == "="
    return in_shell or name.isupper() or not _IDENTIFIER.fullmatch(value.rstrip("."))


def _is_option_secret(match: re.Match[str], value: str, way: str) -> bool:
    kind = kind_of_name(match["name"])
    if kind is Name.OTHER or _is_placeholder(value):
        return False
    return kind is Name.SECRET or match["name"].lower() in ALONE or looks_random(value, SHORTEST_TOKEN)


KINDS = (
    *_FORMS,
    _kind_by_name("option of a command", _OPTION, _is_option_secret),
    _kind_by_name("what is given to a name", _ASSIGNED, _is_assigned_secret),
)
