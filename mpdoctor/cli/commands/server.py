"""`mpdoctor server`: diagnostics and fixes in an editor."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from mpdoctor.cli.streams import fail


def server(
    stdio: Annotated[
        bool,
        typer.Option(
            "--stdio", help="Accepted because many editors add it; standard input and output are always used."
        ),
    ] = False,
) -> None:
    """Speak the language server protocol on standard input and output: findings while you type, pages of rules, fixes.

    An editor starts it: docs/editor.md says how VS Code and Neovim do. It needs the extra mpdoctor[editor].
    """
    missing = [name for name in ("pygls", "lsprotocol") if find_spec(name) is None]
    if missing:
        fail(f"a language server needs {' and '.join(missing)}: pip install 'mpdoctor[editor]'.")
    from mpdoctor.server.language_server import language_server

    language_server().start_io()
