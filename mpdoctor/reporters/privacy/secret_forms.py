"""Secrets that a text shows by their own form. Each pattern takes a time that grows with the length of the text and no
faster: none begins a search anew within what it has searched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from mpdoctor.facts.frozen import dataclass
from mpdoctor.reporters.privacy.secret_words import looks_random

HIDDEN = "***"
SHORTEST_TOKEN = 12  # characters: a "token" may be a word of a text
CONSTANTS = frozenset((
    "none", "true", "false", "null", "nil", "str", "bytes", "int", "float", "bool", "any", "optional", "self",
))  # fmt: skip
_SCHEMES = frozenset(("basic", "bearer", "token"))
_NO_VALUE = ")]},;: \t"  # getpass("Password: ") ends there


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


def is_placeholder(value: str) -> bool:
    """Whether a value is of no use to anybody: f"{token}", $TOKEN, <your token>, or hidden already."""
    return value[0] in "{$<%" or value[0] in _NO_VALUE or not value.strip("*.") or value.lower().startswith("xxx")


def _kind_by_form(name: str, pattern: str, is_secret: Callable[[str], bool] = bool) -> SecretKind:
    """What its group "secret" matches is hidden."""
    compiled = re.compile(pattern, re.VERBOSE)

    def places(text: str) -> Iterator[tuple[int, int]]:
        return (match.span("secret") for match in compiled.finditer(text) if is_secret(match["secret"]))

    return SecretKind(name, places)


_IN_URL = r"[^\s\"'<>`\\]"
FORMS = (
    _kind_by_form(
        "token with a prefix",
        r"""(?<![A-Za-z0-9]) (?P<secret> hf_[A-Za-z0-9]{16,}(?![\w(]|\.\w)
        | (?: api_org_ | gh[pousr]_ | github_pat_ | gl(?:pat|dt|rt|ft|ptt|cbt)- | npm_ | pypi- | dckr_[po]at_
        | [sr]k_(?:live|test)_ | whsec_ | xox[abceprs]- | xapp- | do[op]_v1_ | nvapi- | lin_api_ | figd_ | shpat_
        | ya29\. | SG\. | ATATT3 | AGE-SECRET-KEY- | GOCSPX- | hv[sbr]\. | sntry[su]_ | glsa_ | NRAK- | PMAK- | tskey-
        | sq0[a-z]{3}- | EAACEdEose0cBA | 1//0 | lsv2_ | sbp_ | pul- | rnd_ ) [\w.-]{16,} )""",
    ),
    _kind_by_form(
        "token with a short prefix",
        r"(?<![\w-]) (?P<secret> (?: r8_ | gsk_ | xai- | pplx- | dapi ) [\w-]{24,} )",
        lambda text: looks_random(re.split("[_-]|dapi", text, maxsplit=1)[1], SHORTEST_TOKEN),
    ),
    _kind_by_form("token of a Telegram bot", r"(?<![\w.-]) (?P<secret> \d{8,10}:AA[\w-]{30,} )"),
    _kind_by_form(
        "password behind a user",
        r"""\b (?: (?: auth | creds? | credentials ) \s{0,2} = \s{0,2} \( | login\(
        | (?:HTTP)?(?:Basic|Digest)?Auth\( ) \s{0,3} (?: "[^"\n]{1,100}" | '[^'\n]{1,100}' )
        \s{0,3} , \s{0,3} (?P<quote> ["'] ) (?P<secret> (?: (?!(?P=quote))[^\n] )+ ) (?P=quote)""",
        lambda text: not is_placeholder(text),
    ),
    _kind_by_form(
        "password of a command",
        r"""\b (?: curl [^\n]{0,200}? \s (?:-u|--user) [\s=]{1,3} ["']? [^\s:"']{1,100} :
        | (?: sshpass | docker\ login | az\ login ) [^\n]{0,200}? \s -p [\s=]{0,3} ["']?
        | \s -pass(?:in|out)? [\s=]{1,3} pass: | \b login \s{1,9} \S{1,100} \s{1,9} password \s{1,9}
        | mysql(?:dump|admin)? \s [^\n]{0,200}? (?<=\s) -p ["']? ) (?P<secret> [^\s"',]+ )""",
        lambda text: not is_placeholder(text),
    ),
    _kind_by_form(
        "password beside a user",
        r"""["'] (?: user(?:_?name)? | login ) ["'] \s{0,2} : \s{0,2} ["'] [^"'\n]{1,100} ["'] \s{0,2} , \s{0,3}
        ["'] pass ["'] \s{0,2} : \s{0,2} (?P<quote> ["'] ) (?P<secret> (?: (?!(?P=quote))[^\n] )+ ) (?P=quote)""",
        lambda text: not is_placeholder(text),
    ),
    _kind_by_form(
        "password in a sentence",
        r"""\b (?i: pass(?:word|phrase|code|wd)? | passwort ) (?:
        \s{1,2} (?: is | was ) | \s for \s [\w.@'-]{1,60} \s? : ) \s{1,2} (?P<secret> [^\s"',;]{6,100} )""",
        lambda text: any(map(str.isdigit, text)) and any(map(str.isalpha, text)),
    ),
    _kind_by_form(
        "key in a sentence",
        r"\b (?i: (?:api|access|secret)[\ _-]?key | (?:access|auth)[\ _-]?token ) \s{1,2} (?P<secret> [\w-]{16,300} )",
        lambda text: looks_random(text, SHORTEST_TOKEN),
    ),
    _kind_by_form(
        "what is kept in an object",
        r"""\b (?: Fernet | [TH]OTP | hmac\.new | Secret(?:Str|Bytes) ) \( \s{0,3} b?
        (?P<quote> ["'] ) (?P<secret> [^"'\s]{8,300} ) (?P=quote)""",
        lambda text: not is_placeholder(text),
    ),
    _kind_by_form(
        "what a password is compared with",
        r"""(?P<quote> ["'] ) (?P<secret> [^"'\n]{4,300} ) (?P=quote) \s{0,2} [!=]= \s{0,2} [\w.]{0,60}?
        (?i: password | passwd | passphrase | secret | api_?key ) \b""",
        lambda text: not is_placeholder(text),
    ),
    _kind_by_form(
        "credentials before a host and its port",
        r"""(?<![\w/:.@-]) [\w.-]{1,60} : (?P<secret> [^\s@:/"']{6,100} ) @ (?= [\w.-]{1,253} : \d{2,5} \b )""",
        lambda text: any(map(str.isdigit, text)) and any(map(str.isalpha, text)),
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
    _kind_by_form(
        "private key of PuTTY", r"Private-Lines: \s{1,3} \d{1,3} (?P<secret> (?: \s{1,2} [A-Za-z0-9+/]{20,}={0,2} )+ )"
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
        lambda text: not is_placeholder(text) and text.lower() not in {*CONSTANTS, *_SCHEMES},
    ),
    _kind_by_form(
        "bearer",
        r"(?i: \b bearer \s{1,3} ) (?P<secret> [^\s\"',\\]{1,300} )",
        lambda text: looks_random(text, SHORTEST_TOKEN),
    ),
    _kind_by_form(
        "cookie",
        r"(?i: \b (?:set-)?cookie [\\\"']{0,3} :\s{0,3} \\?[\"']? ) (?P<secret> [^\n\"'=]{1,200} = [^\n\"']{1,4000} )",
    ),
    _kind_by_form(
        "e-mail address",
        r"(?<![\w.+-]) (?P<secret> [\w.+-]+ @ [\w-]+ (?:\.[\w-]+)* \. (?!png\b|jpe?g\b|gif\b)[a-z]{2,} ) \b",
    ),
)
