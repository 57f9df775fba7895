"""What all pages share: their templates, sentences with code in them, and the hash by which a browser knows a style or
script as the page's own."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mpdoctor.reporters.printable import visible
from mpdoctor.reporters.text.style import parts_from_prose

TEMPLATES = Path(__file__).parent / "templates"


def templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible_value,
    )


def source(name: str) -> str:
    """The text of a style or script beside the templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def prose(text: str) -> Markup:
    """A sentence in which what stands between backticks is code."""
    parts = parts_from_prose(visible(text))
    return Markup("").join(Markup("<code>{}</code>").format(part) if is_code else part for is_code, part in parts)


def hash_of(text: str) -> str:
    """The hash of a style or script, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _visible_value(value: Any) -> Any:
    """A value as the page shows it: nothing hidden in it stays hidden."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
