"""Marks of fixtures: a header of settings, and the expected findings as comments on their lines.

    # keras: 3, tf_keras                     where the fixture applies (default: both)
    # exit: 1                                exit status; `exit[3]`, `exit[tf_keras]` where the two differ
    # verdict: healthy                       of the short training; "healthy, stuck" of two; none where there is none
    # steps: 24                              how long that training is
    # model: net = Sequential(Dense, Dense)  name, class and layers of the model that was captured, inputs left out
    # optimizer: LossScaleOptimizer > Adam   the chain from the outermost to the innermost
    # culprit: encoder                       the layer that a failing batch broke in
    # exponent: -1                           how gradients go with the loss scale; "none" where there is no loss scale
    # args: --epochs 2                       arguments for the script
    # options: --reference                   options of `mpdoctor check`
    # target: build_model                    examine this factory of the file; "pkg.mod:factory" as it stands
    # directory: library                     run from this directory below the fixtures
    # environment: as it is                  the fixture chooses its Keras by itself
    x = bad()  # expect: MP201, MP302        these findings on this line, in every Keras
    x = bad()  # expect[3]: MP407            in Keras 3 alone; `expect[tf_keras]`, `expect[2.4]` likewise
    x = bad()  # expect[2]: MP902            in every Keras 2
    x = bad()  # expect[what_if]: MP201      only if the program were trained under mixed_float16
    # expect-anywhere: MP904                 a finding without a line

Several marks may stand on one line. What cannot be understood is an error: a mark nobody reads tests nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KERAS = ("3", "tf_keras")
OLDER = ("2.15", "2.10", "2.4")  # TensorFlow releases that fixtures of single rules are judged by as well
KERAS2 = "2"  # all but Keras 3
WHERES = (KERAS2, *KERAS, *OLDER)
_MARK = re.compile(
    r"#\s*expect(?P<anywhere>-anywhere)?(?:\[(?P<where>[\w.]+)\])?:\s*(?P<codes>MP\d{3}(?:,\s*MP\d{3})*)"
)
_LOOKS_LIKE_A_MARK = re.compile(r"#\s*expect\b")
_SETTING = re.compile(r"#\s*(?P<name>[a-z]+)(?:\[(?P<where>[\w.]+)\])?:\s*(?P<value>.+?)\s*$")
_SETTINGS = {
    *(
        "keras",
        "exit",
        "verdict",
        "seed",
        "steps",
        "model",
        "optimizer",
        "culprit",
        "exponent",
        "args",
        "options",
        "target",
    ),
    *("directory", "environment"),
}


@dataclass(frozen=True)
class Expected:
    """One finding that a fixture expects; `line` is None where it has none."""

    code: str
    line: int | None
    what_if: bool = False


@dataclass(frozen=True)
class Marks:
    """All that one fixture says about itself, by where it holds: "" (always), "3", "tf_keras", "what_if"."""

    expected: dict[str, frozenset[Expected]]
    settings: dict[tuple[str, str], str]

    @property
    def keras(self) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.setting("keras", default=", ".join(KERAS)).split(","))

    @property
    def differ(self) -> bool:
        """Whether anything of it holds in one Keras only."""
        return any(where in WHERES for where in (*self.expected, *(where for _, where in self.settings)))

    def setting(self, name: str, keras: str = "", default: str = "") -> str:
        """The nearest one: of this Keras, of every Keras 2, of all."""
        found = (self.settings.get((name, where)) for where in (keras, *_families(keras), ""))
        return next((value for value in found if value is not None), default)

    def findings(self, keras: str) -> frozenset[Expected]:
        """What is expected in this Keras, what-if findings included."""
        wheres = ("", keras, *_families(keras), "what_if")
        return frozenset().union(*(self.expected.get(where, frozenset()) for where in wheres))


def _families(keras: str) -> tuple[str, ...]:
    return (KERAS2,) if keras in ("tf_keras", *OLDER) else ()


def marks_from_source(text: str) -> Marks:
    """Raises ValueError for a mark or a header that cannot be understood."""
    expected: dict[str, set[Expected]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = list(_MARK.finditer(line))
        if len(found) != len(_LOOKS_LIKE_A_MARK.findall(line)):
            raise ValueError(f"line {number}: not a mark: {line.strip()}")
        for mark in found:
            where = mark["where"] or ""
            if where not in ("", "what_if", *WHERES):
                raise ValueError(f"line {number}: no such Keras: {where}")
            for code in re.split(r"\s*,\s*", mark["codes"]):
                place = None if mark["anywhere"] else number
                expected.setdefault(where, set()).add(Expected(code, place, where == "what_if"))
    return Marks({where: frozenset(marks) for where, marks in expected.items()}, _settings_from_header(text))


def _settings_from_header(text: str) -> dict[tuple[str, str], str]:
    """The header is the comment that the file begins with; other comment lines in it are for readers."""
    settings: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        setting = _SETTING.match(line)
        if setting and setting["name"] in _SETTINGS:
            if setting["where"] not in (None, *WHERES):
                raise ValueError(f"no such Keras: {setting['where']}")
            settings[setting["name"], setting["where"] or ""] = setting["value"]
    keras = settings.get(("keras", ""), "3").replace(" ", "").split(",")
    if not set(keras) <= {*KERAS, *OLDER}:
        raise ValueError(f"no such Keras: {keras}")
    return settings
