"""Commands that install TensorFlow or Keras, with pip, conda, uv, poetry or pipenv: which releases they allow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.project.declared_versions.pins import Pin, pins_from_conda_requirement, pins_from_requirement

_COMMAND = re.compile(
    r"\b(?P<tool>pip3?(?:\.\d+)?|conda|mamba|micromamba|uv|poetry|pipenv)\s+(?:install|create|add)\b(?P<words>[^;&|`]*)"
)
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_CONDAS = ("conda", "mamba", "micromamba")
_OF_CHANNEL = re.compile(r"(?:[\w./-]{1,99}::)?([\w.-]+)(.*)")
_END = re.compile(r"(?:\*\*|[.,:)])+$")  # of a sentence, or of what stands out
_LONGEST = 200


def pins_from_commands(line: str, path: Path, verb: str = "installs") -> Iterator[Pin]:
    """The pins of all install commands in one line. A package without a release is among them."""
    for command in _COMMAND.finditer(line) if "tensorflow" in line or "keras" in line else ():
        for quoted in _WORD.finditer(command["words"]):
            if quoted[0].startswith("#"):
                break
            word = next(filter(None, quoted.groups()), "").partition("</")[0].strip()
            if len(word) <= _LONGEST:
                yield from _pins_from_word(_END.sub("", word), command["tool"] in _CONDAS, path, verb)


def _pins_from_word(word: str, is_condas: bool, path: Path, verb: str) -> Iterator[Pin]:
    of_channel = _OF_CHANNEL.fullmatch(word) if is_condas else None
    if of_channel is not None:
        yield from pins_from_conda_requirement(of_channel[1], of_channel[2].strip(), path, verb)
    else:
        yield from pins_from_requirement(word, path, verb)
