"""How programs name the backend on which Keras 3 runs."""

from __future__ import annotations

import re
from functools import lru_cache

VARIABLE = "KERAS_BACKEND"
TENSORFLOW = "tensorflow"
_NAMED = rf"""["']{VARIABLE}["']"""
# `os.environ[…] = "jax"`, `os.environ.setdefault(…, "jax")`, `{…: "jax"}`, `update(KERAS_BACKEND="jax")`
_IN_PROGRAM = re.compile(
    rf"""(?:environ\s*\[\s*{_NAMED}\s*\]\s*=|(?:setdefault|putenv)\(\s*{_NAMED}\s*,|{_NAMED}\s*:"""
    rf"""|(?<![\w.]){VARIABLE}\s*=|\bconfig\.set_backend\()\s*["'](?P<name>\w+)["']"""
)
_IN_NOTEBOOK = re.compile(rf"^(?:#|[^\S\n])*%(?:set_)?env\s+{VARIABLE}\s*=?\s*(?P<name>\w+)", re.MULTILINE)
_IMPORTS = re.compile(r"^(?:import|from)\s+(?P<name>jax|tensorflow)\b", re.MULTILINE)


@lru_cache(maxsize=256)
def backends_in_program(text: str) -> frozenset[str]:
    """The backends that a Python program names for Keras, in its environment or by `set_backend`."""
    if VARIABLE not in text and "set_backend" not in text:
        return frozenset()
    code = "\n".join(line.partition("#")[0] for line in text.splitlines())
    matches = (*_IN_PROGRAM.finditer(code), *_IN_NOTEBOOK.finditer(text))
    return frozenset(match["name"] for match in matches)


@lru_cache(maxsize=256)
def backend_of_imports(text: str) -> str:
    """ "jax" for a file that imports that, whatever may be, and no TensorFlow; else "". It says nothing of other files:
    a library has one for each backend."""
    imported = {match["name"] for match in _IMPORTS.finditer(text)} if "jax" in text else set()
    return "jax" if imported == {"jax"} else ""


def other_than_tensorflow(names: frozenset[str]) -> str:
    """The backend that these name; "" where TensorFlow is among them."""
    return "" if TENSORFLOW in names else min(names, default="")
