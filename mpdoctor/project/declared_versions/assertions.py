"""Which TensorFlow or Keras a program asserts to run with: `assert tf.__version__.startswith("2.10")`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpdoctor.project.declared_versions.pins import Pin, pins_from_requirement

_VERSION = ".__version__"
_PACKAGES = {"tf": "tensorflow", "tensorflow": "tensorflow", "keras": "keras", "tf.keras": "keras"}
_ASSERTION = re.compile(
    r"^assert\s+(?P<name>tf(?:\.keras)?|tensorflow|keras)\.__version__"
    r"(?:\.startswith\(\s*|\s*==\s*)[\"'](?P<release>\d{1,3}(?:\.\d{1,3}){0,2})\.?[\"']",
    re.MULTILINE,
)


def pins_from_assertions(text: str, path: Path) -> Iterator[Pin]:
    """What the text of a program says at its top level."""
    for match in _ASSERTION.finditer(text) if _VERSION in text else ():
        package, release = _PACKAGES[match["name"]], match["release"]
        exactly = release if release.count(".") == 2 else f"{release}.*"
        yield from pins_from_requirement(f"{package}=={exactly}", path, "asserts", f"{package} {release}")
