"""The protocol with one `initialize`, as it is specified: pygls takes a second one, and forgets all open texts."""

from __future__ import annotations

from collections.abc import Generator

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method


class InitializedOnce(LanguageServerProtocol):
    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[object, object, lsp.InitializeResult]:
        """What the server can do. Raises JsonRpcInvalidRequest the second time."""
        if self._workspace is not None:
            raise JsonRpcInvalidRequest("initialize was sent before")
        return (yield from super().lsp_initialize(params))
