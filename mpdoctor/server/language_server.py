"""The language server on pygls: texts from the editor are checked, and diagnostics, pages and fixes are sent back."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path, uri_scheme

from mpdoctor import __version__
from mpdoctor.finding import Finding
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.server.actions import fixes, ignores, text_with_all_safe_fixes
from mpdoctor.server.checking import Checked, bytes_from_text, checked
from mpdoctor.server.initialized_once import InitializedOnce
from mpdoctor.server.pages import page_of_findings, text_without_links
from mpdoctor.server.positions import UTF32, Place, Span, whole
from mpdoctor.server.sent import NAME, diagnostic, quick_fix, range_of, span_of
from mpdoctor.server.waiting import QUIET, Waiting
from mpdoctor.settings.pyproject import ConfigurationError
from mpdoctor.source.kept_sources import KeptSources
from mpdoctor.source.modules import NOTEBOOK

FIX_ALL = "source.fixAll.mpdoctor"
KINDS = [lsp.CodeActionKind.QuickFix, FIX_ALL]
WATCHED = ("*.py", "pyproject.toml", "requirements*.txt")
PAUSE = 0.1  # seconds without a change before a text is looked at
MOST_WALKS = 20  # whose garbage may lie while somebody types without a pause
STACK = 64 * 2**20  # bytes; a thread has 512 KiB on macOS, and the source is walked by recursion


class Server(LanguageServer):
    """Texts are looked at one after the other, in a thread of their own, so that the editor is answered meanwhile."""

    def __init__(self) -> None:
        # whole texts: pygls counts a form feed and Unicode's separators as ends of lines, the protocol does not
        full = lsp.TextDocumentSyncKind.Full
        super().__init__(NAME, __version__, text_document_sync_kind=full, protocol_cls=InitializedOnce)
        self.waiting = Waiting()
        self._checks: dict[str, tuple[int, Checked]] = {}  # with the number of the question that was answered
        self._published: dict[str, Checked] = {}
        self._last_message = ""
        self._walks = 0  # since the last collection of garbage
        self._kept = KeptSources()
        threading.stack_size(STACK)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=NAME)

    @property
    def encoding(self) -> str:
        return str(self.workspace.position_encoding or lsp.PositionEncodingKind.Utf16)

    async def look_at(self, uri: str, pause: float = 0.0) -> None:
        """Publish the findings of a text as it stands after a pause, unless it has changed again by then; and, when
        the editor has been quiet for a while, those of the other open texts that hang on it."""
        asked = self.waiting.ask(uri)
        await asyncio.sleep(pause)
        if self.waiting.asked(uri) == asked:
            self.waiting.put_first(uri)
            await self._look()

    async def look_again(self, uris: Iterable[str]) -> None:
        """At texts that are as they were, for what they hang on has changed."""
        self.waiting.put_last(uris)
        await self._look()

    def importers_of(self, uri: str) -> list[str]:
        path = _path(uri)
        return [other for other, (_, check) in self._checks.items() if other != uri and path in check.imported]

    def forget(self, uri: str) -> None:
        """A closed text; what was asked of it is not answered any more."""
        self.waiting.forget(uri)
        self._checks.pop(uri, None)
        self._published.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def check_of(self, uri: str) -> Checked | None:
        """Of the text as it stands now; None where it is none of ours, or its project's settings can't be read."""
        if uri not in self.waiting.texts:
            return None
        text, asked = self.workspace.get_text_document(uri).source, self.waiting.asked(uri)
        known = self._checks.get(uri)
        if known is not None and known[0] == asked and known[1].text == text:
            return known[1]
        others = {_path(other): self.workspace.get_text_document(other).source for other in self._other_texts(uri)}
        check = await self._checked(_path(uri), text, others)
        if uri in self.waiting.texts:
            if check is not None:
                self._checks[uri] = asked, check
            else:
                self._checks.pop(uri, None)
        return check

    async def in_thread(self, function: object, *given: object) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *given)  # type: ignore[arg-type]

    async def _look(self) -> None:
        async for uri in self.waiting.each():
            before = self._published.get(uri)
            check = await self._publish(uri)
            if check is not None and uri in self.waiting.texts:
                self._published[uri] = check
                self.waiting.put_last(self._hanging_on(uri, before, check))
        await self._give_garbage_back()

    def _hanging_on(self, uri: str, before: Checked | None, check: Checked) -> list[str]:
        """The other open texts that have to be checked again because this one has changed."""
        if not (_is_new(check) if before is None else before.text != check.text):
            return []
        # nobody knows who imports what could not be read before
        return self._other_texts(uri) if before is None or before.is_unreadable else self.importers_of(uri)

    async def _give_garbage_back(self) -> None:
        """A walk lets its garbage lie (`without_garbage_collection`)."""
        if self._walks < MOST_WALKS:
            await asyncio.sleep(QUIET)
        if self._walks >= MOST_WALKS or (self._walks and self.waiting.is_quiet):
            self._walks = 0
            await self.in_thread(gc.collect)

    async def _publish(self, uri: str) -> Checked | None:
        check = await self.check_of(uri)
        if uri not in self.waiting.texts:
            return None
        document = self.workspace.get_text_document(uri)
        if check is None:  # what was found by other settings is not left standing at places that move
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, [], document.version))
        elif document.source == check.text:  # what has changed since is looked at again
            diagnostics = [diagnostic(finding, check.text, self.encoding) for finding in check.findings]
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, document.version))
        return check

    def _other_texts(self, uri: str) -> list[str]:
        return [other for other in self.waiting.texts if other != uri]

    async def _checked(self, path: Path, text: str, others: Mapping[Path, str]) -> Checked | None:
        try:
            check = await self.in_thread(checked, path, text, others, self._kept)
        except ConfigurationError as error:
            self._tell(str(error))
            return None
        assert isinstance(check, Checked)
        self._last_message = ""
        self._walks += 1
        for crash in check.diagnosis.crashed if check.diagnosis is not None else ():
            self._log(f"{crash.code} broke in {crash.where}: {crash.error}")
        return check

    def _tell(self, message: str) -> None:
        """Show a message in the editor, once and not at each key press."""
        if message != self._last_message:
            self._last_message = message
            told = text_without_links(f"mpdoctor: {message}")
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, told))

    def _log(self, message: str) -> None:
        self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, f"mpdoctor: {message}"))


def language_server() -> Server:
    server = Server()
    server.feature(lsp.INITIALIZED)(_watch_files)
    server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_changed_on_disk)
    server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)(_opened)
    server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)(_saved)
    server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    server.feature(lsp.TEXT_DOCUMENT_HOVER)(_hovered)
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(KINDS, resolve_provider=True))(
        _asked_for_actions
    )
    server.feature(lsp.CODE_ACTION_RESOLVE)(_with_edit)
    return server


def _watch_files(server: Server, given: lsp.InitializedParams) -> None:
    """Files change on the disk as well: by a checkout, a formatter, another program."""
    wanted = server.client_capabilities.workspace
    if wanted and wanted.did_change_watched_files and wanted.did_change_watched_files.dynamic_registration:
        watchers = [lsp.FileSystemWatcher(f"**/{name}") for name in WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = lsp.Registration(f"{NAME}-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(lsp.RegistrationParams([registration]))


async def _changed_on_disk(server: Server, given: lsp.DidChangeWatchedFilesParams) -> None:
    """Of a text that is open the file does not count. Nobody knows what a new file or other settings bring to whom."""
    if any(change.uri not in server.waiting.texts for change in given.changes):
        await server.look_again(list(server.waiting.texts))


async def _opened(server: Server, given: lsp.DidOpenTextDocumentParams) -> None:
    uri = given.text_document.uri
    if _is_ours(uri):
        server.waiting.texts[uri] = None
        await server.look_at(uri)


async def _changed(server: Server, given: lsp.DidChangeTextDocumentParams) -> None:
    await server.look_at(given.text_document.uri, PAUSE)


async def _saved(server: Server, given: lsp.DidSaveTextDocumentParams) -> None:
    await server.look_at(given.text_document.uri)


async def _closed(server: Server, given: lsp.DidCloseTextDocumentParams) -> None:
    importers = server.importers_of(given.text_document.uri)  # which read the file from now on
    server.forget(given.text_document.uri)
    await server.look_again(importers)


async def _hovered(server: Server, given: lsp.HoverParams) -> lsp.Hover | None:
    check = await server.check_of(given.text_document.uri)
    if check is None:
        return None
    here = Place(given.position.line, given.position.character)
    met = list(_findings_at(check, Span(here, here), server.encoding))
    page = page_of_findings(check, met)
    shown = lsp.MarkupContent(lsp.MarkupKind.Markdown, page)
    return lsp.Hover(shown, range_of(span_of(met[0], check.text, server.encoding))) if page else None


async def _asked_for_actions(server: Server, given: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    uri = given.text_document.uri
    check = await server.check_of(uri)
    if check is None:
        return []
    actions = []
    if _asks_for(lsp.CodeActionKind.QuickFix, given.context.only):
        lines = range(given.range.start.line, given.range.end.line + 1)
        offered = (action for offer in (fixes(check), ignores(check)) for action in offer)
        near = [action for action in offered if _is_on(action.finding, check, lines)]
        actions += [quick_fix(action, check, uri, server.encoding) for action in near]
    if _asks_for(FIX_ALL, given.context.only) and any(action.is_safe for action in fixes(check)):
        all_of_them = lsp.CodeAction("mpdoctor: fix all that is safe to fix", FIX_ALL, data=uri)
        actions.append(await _with_edit(server, all_of_them) if given.context.only else all_of_them)
    return actions


async def _with_edit(server: Server, action: lsp.CodeAction) -> lsp.CodeAction:
    """To make all fixes takes several looks: it is done when somebody wants them."""
    uri = str(action.data)
    check = await server.check_of(uri)
    if check is not None and action.kind == FIX_ALL:
        text = str(await server.in_thread(text_with_all_safe_fixes, check))
        change = lsp.TextEdit(range_of(whole(check.text, server.encoding)), text)
        action.edit = lsp.WorkspaceEdit({uri: [change] if text != check.text else []})
    return action


def _is_on(finding: Finding, check: Checked, lines: range) -> bool:
    """Whether the finding begins on one of these lines, wherever in them the cursor stands."""
    return span_of(finding, check.text, UTF32).start.line in lines


def _findings_at(check: Checked, span: Span, encoding: str) -> Iterator[Finding]:
    return (finding for finding in check.findings if span_of(finding, check.text, encoding).meets(span))


def _asks_for(kind: str, only: Sequence[str] | None) -> bool:
    """Whether the editor asks for this kind: for itself, for all that begin like it, or for any."""
    return not only or any(f"{kind}.".startswith(f"{asked}.") for asked in only)


def _is_ours(uri: str) -> bool:
    """Whether it is a program: not a cell of a notebook, nor a notebook as text, whose lines are not those of its
    cells, nor another state of a file (`git:`)."""
    return uri_scheme(uri) in ("file", "untitled") and _path(uri).suffix != NOTEBOOK


def _is_new(check: Checked) -> bool:
    """Whether a text that was just opened differs from its file, which other texts may have imported."""
    try:
        return bytes_from_file(check.path) != bytes_from_text(check.text)
    except OSError:
        return True


def _path(uri: str) -> Path:
    """The path of a text; a text that was never saved gets a name in the working directory."""
    path = to_fs_path(uri) if uri_scheme(uri) == "file" else None
    return Path(path) if path else Path.cwd() / "untitled.py"
