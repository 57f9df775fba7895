"""`mpdoctor server`, asked by a client over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

lsp = pytest.importorskip("lsprotocol.types", reason="the extra mpdoctor[editor] is not installed")
clients = pytest.importorskip("pygls.lsp.client", reason="the extra mpdoctor[editor] is not installed")

ROOT = Path(__file__).parents[2]
PATIENCE = 20.0  # seconds; a busy machine
WRONG = """import tensorflow as tf

opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
print("🎉🎉", opt.lr)
"""
RIGHT = WRONG.replace("opt.lr", "opt.inner_optimizer.learning_rate")


MADE = WRONG.partition("print")[0]
USED = "from model import opt\n\nprint(opt.lr)\n"


class Editor:
    """What an editor does with one text."""

    def __init__(self, client: Any, uri: str) -> None:
        self.client, self.uri, self.version = client, uri, 0
        self.shown: asyncio.Queue[Any] = asyncio.Queue()

    def open(self, text: str) -> None:
        document = lsp.TextDocumentItem(self.uri, "python", self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))

    def change(self, text: str) -> None:
        self.version += 1
        document = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
        changes = [lsp.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, changes))

    def close(self) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(self.document))

    async def diagnostics(self) -> Any:
        return await asyncio.wait_for(self.shown.get(), PATIENCE)

    async def codes(self) -> list[str]:
        return [found.code for found in (await self.diagnostics()).diagnostics]

    async def actions(self, line: int, only: list[str] | None = None) -> Any:
        place = lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0))
        given = lsp.CodeActionParams(self.document, place, lsp.CodeActionContext([], only))
        return await asyncio.wait_for(self.client.text_document_code_action_async(given), PATIENCE)

    @property
    def document(self) -> Any:
        return lsp.TextDocumentIdentifier(self.uri)


@asynccontextmanager
async def editor(directory: Path, encodings: list[str], *names: str) -> AsyncIterator[list[Editor]]:
    client = clients.LanguageClient("editor", "1")
    editors = [Editor(client, name if ":" in name else (directory / name).as_uri()) for name in names]

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(given: Any) -> None:
        for open_editor in editors:
            if open_editor.uri == given.uri:
                open_editor.shown.put_nowait(given)

    @client.feature(lsp.WINDOW_SHOW_MESSAGE)
    def told(given: Any) -> None:
        client.told = [*getattr(client, "told", []), given.message]

    @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def registered(given: Any) -> None:
        client.watched = [watcher.glob_pattern for watcher in _watchers(given)]

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    await client.start_io(sys.executable, "-m", "mpdoctor", "server", "--stdio", cwd=directory, env=environment)
    watching = lsp.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
    capable = lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(position_encodings=encodings),
        workspace=lsp.WorkspaceClientCapabilities(did_change_watched_files=watching),
    )
    begun = await client.initialize_async(lsp.InitializeParams(capable, root_uri=directory.as_uri()))
    assert begun.capabilities.position_encoding == encodings[0]
    client.initialized(lsp.InitializedParams())
    try:
        yield editors
    finally:
        await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
        client.exit(None)
        await client.stop()


def _watchers(given: Any) -> list[Any]:
    return [
        lsp.FileSystemWatcher(watcher["globPattern"])
        for registration in given.registrations
        for watcher in registration.register_options["watchers"]
    ]


def with_editor(
    directory: Path, use: Callable[..., Awaitable[None]], *names: str, encodings: tuple[str, ...] = ("utf-16",)
) -> None:
    async def session() -> None:
        async with editor(directory, list(encodings), *names or ("train.py",)) as editors:
            await use(*editors)

    asyncio.run(session())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.mpdoctor]\nkeras = "3"\n')
    return tmp_path


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 18), ("utf-16", 14)])
def test_the_unsaved_text_is_told_of(encoding: str, column: int, project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        (found,) = (given := await train.diagnostics()).diagnostics
        assert (found.code, found.source, found.severity, given.version) == ("MP301", "mpdoctor", 1, 0)
        assert (found.range.start.line, found.range.start.character) == (3, column)
        train.change(RIGHT)
        assert not (await train.diagnostics()).diagnostics
        for half in ("print(", "print(op", RIGHT, WRONG):  # typed quickly: the last one counts
            train.change(half)
        assert [shown.code for shown in (await train.diagnostics()).diagnostics] == ["MP301"]
        assert train.shown.empty()

    with_editor(project, use, encodings=(encoding,))


def test_fixes_and_ignore_comments_are_offered(project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        fix, ignore, everything = await train.actions(3)
        (edit,) = fix.edit.changes[train.uri]
        assert fix.is_preferred and fix.kind == "quickfix" and edit.new_text == "learning_rate"
        (comment,) = ignore.edit.changes[train.uri]
        assert (comment.range.start.line, comment.range.start.character) == (3, len('print("🎉🎉", opt.lr)') + 2)
        assert "mpdoctor: ignore[MP301]" in comment.new_text and not ignore.is_preferred
        assert (everything.kind, everything.edit) == ("source.fixAll.mpdoctor", None)
        asked = await train.client.code_action_resolve_async(everything)
        (whole,) = asked.edit.changes[train.uri]
        assert "opt.lr" not in whole.new_text and whole.range.end.line == 4
        assert [action.kind for action in await train.actions(0)] == ["source.fixAll.mpdoctor"]

    with_editor(project, use)


def test_an_editor_can_fix_all_when_it_saves(project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        assert not await train.actions(0, ["source.organizeImports"])
        for only in ("source", "source.fixAll", "source.fixAll.mpdoctor"):
            (action,) = await train.actions(0, [only])
            (edit,) = action.edit.changes[train.uri]
        train.change(edit.new_text)
        assert not await train.actions(0, [only])

    with_editor(project, use)


def test_a_text_is_looked_at_again_when_what_it_imports_changes(project: Path) -> None:
    async def use(train: Editor, model: Editor) -> None:
        model.open("opt = None\n")
        assert not (await model.diagnostics()).diagnostics
        train.open("import tensorflow as tf\nfrom model import opt\n\nprint(opt.lr)\n")
        assert not (await train.diagnostics()).diagnostics
        model.change(WRONG.partition("print")[0])
        assert [shown.code for shown in (await train.diagnostics()).diagnostics] == ["MP301"]

    (project / "model.py").write_text("opt = None\n")
    with_editor(project, use, "train.py", "model.py")


@pytest.mark.parametrize("name", ["ein Ä #1.py", "untitled:Untitled-1"])
def test_a_text_of_any_name_is_looked_at(name: str, project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        assert await train.codes() == ["MP301"]
        train.change(RIGHT)
        assert not await train.codes()

    with_editor(project, use, name)


def test_what_is_no_program_of_its_own_is_left_alone(project: Path) -> None:
    async def use(*texts: Editor) -> None:
        for text in texts:
            text.open(WRONG)
        assert not any([await text.actions(3) for text in texts[:-1]])
        assert await texts[-1].codes() == ["MP301"]
        assert all(text.shown.empty() for text in texts)

    with_editor(project, use, "git:/train.py?%7B%7D", "vscode-notebook-cell:/a.ipynb#W0", "a.ipynb", "train.py")


def test_a_text_that_is_half_typed_or_nowhere_on_the_disk_is_found_by_those_that_import_it(project: Path) -> None:
    async def use(train: Editor, model: Editor) -> None:
        train.open(USED)
        assert not await train.codes()
        model.open(MADE)
        assert await train.codes() == ["MP301"]
        for text, found in ((f"{MADE}def (", []), (MADE, ["MP301"])):
            model.change(text)
            assert await train.codes() == found
        model.close()
        assert not await train.codes()

    with_editor(project, use, "train.py", "model.py")


def test_what_changes_on_the_disk_is_looked_at(project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(USED)
        assert not await train.codes()
        assert "**/*.py" in train.client.watched and "**/pyproject.toml" in train.client.watched
        for name, text, found in (
            ("model.py", MADE, ["MP301"]),
            ("pyproject.toml", '[tool.mpdoctor]\nignore = ["MP301"]\n', []),
            ("pyproject.toml", "[tool.mpdoctor]\n", ["MP301"]),
            ("pyproject.toml", "[tool.mpdoctor\n", []),  # nothing is left standing of what was found before
        ):
            (project / name).write_text(text)
            event = lsp.FileEvent((project / name).as_uri(), lsp.FileChangeType.Changed)
            train.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
            assert await train.codes() == found, text

    with_editor(project, use)


def test_settings_that_nobody_understands_are_told_once(project: Path) -> None:
    async def use(train: Editor) -> None:
        (project / "pyproject.toml").write_text("[tool.mpdoctor]\nselct = []\n")
        train.open(WRONG)
        assert not await train.actions(3)
        assert [("selct" in told) for told in train.client.told] == [True]
        (project / "pyproject.toml").write_text("[tool.mpdoctor]\n")
        assert not await train.codes()
        train.change(WRONG + "\n")
        assert [shown.code for shown in (await train.diagnostics()).diagnostics] == ["MP301"]

    with_editor(project, use)


def test_the_page_of_the_rule_is_shown_and_a_closed_text_has_no_diagnostics(project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        assert len((await train.diagnostics()).diagnostics) == 1
        for line, column, shown in ((3, 16, True), (0, 0, False)):
            asked = lsp.HoverParams(train.document, lsp.Position(line, column))
            hover = await train.client.text_document_hover_async(asked)
            assert (hover is not None) is shown
            assert not shown or hover.contents.value.startswith("# MP301 attribute-missing-on-wrapper")
        train.close()
        assert not (await train.diagnostics()).diagnostics

    with_editor(project, use)


def test_a_second_initialize_is_refused_and_what_is_open_stays_open(project: Path) -> None:
    async def use(train: Editor) -> None:
        train.open(WRONG)
        assert await train.codes() == ["MP301"]
        with pytest.raises(Exception, match="sent before") as refused:
            await train.client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
        assert refused.value.code == -32600  # type: ignore[attr-defined]
        train.change(WRONG + "\n")
        assert await train.codes() == ["MP301"]
        assert await train.actions(3)

    with_editor(project, use)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys, importlib.util as util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name in ('pygls', 'lsprotocol') else find(name, *rest)\n"
        "import mpdoctor.cli; mpdoctor.cli.main(['server'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("mpdoctor: a language server needs pygls and lsprotocol: pip install 'mpdoctor[editor]'.\n")
