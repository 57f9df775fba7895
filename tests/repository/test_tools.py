"""The tools for whoever changes mpdoctor: a new rule's files, tables made from the code, the maps of rooms."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from mpdoctor.examiner.protocol.event_kinds import Event

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools import room_map  # noqa: E402
from tools.delegation_tables import with_table as with_delegation_table  # noqa: E402
from tools.new_rule import families, files_of_rule, next_code  # noqa: E402
from tools.readme import ARCHITECTURE, README, with_tables  # noqa: E402


@pytest.mark.parametrize("page", [README, ARCHITECTURE], ids=lambda page: page.name)
def test_a_page_has_the_tables_that_the_tool_writes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text
    with pytest.raises(ValueError, match="end"):
        with_tables(text.replace("<!-- end -->", ""))


def test_a_delegation_table_replaces_the_one_of_the_same_keras() -> None:
    """That the page has the measured ones is seen in each Keras: tests/live/test_loss_scale_optimizer.py."""
    page = "a\n<!-- delegated: tf_keras -->\nold\n<!-- end -->\n<!-- delegated: Keras 3 -->\nkept\n<!-- end -->\n"
    table = "<!-- delegated: tf_keras -->\n\n| new |\n\n<!-- end -->"
    assert with_delegation_table(page, table) == page.replace("\nold\n", "\n\n| new |\n\n")
    with pytest.raises(ValueError, match="2\\.15"):
        with_delegation_table(page, table.replace("tf_keras", "TensorFlow 2.15"))


@pytest.mark.parametrize("family", families())
def test_a_new_rule_is_found_and_fails_its_contract_until_it_is_written(family: str, tmp_path: Path) -> None:
    """In a copy of the package: the registry loads what was made, with the code that was free."""
    shutil.copytree(ROOT / "mpdoctor" / "rules", tmp_path / "mpdoctor" / "rules")
    code = next_code(family, tmp_path)
    files = files_of_rule(family, "stray-cast", "A layer casts its output twice.", tmp_path)
    assert [path.name for path in files][:2] == [f"{code}_stray_cast.py", "flagged_todo_1.py"]
    assert {path.parent.name for path in files} == {family, code}
    assert not any(path.exists() for path in files)
    rule, text = next(iter(files.items()))
    compile(text, str(rule), "exec")
    assert text.count("TODO") >= 6 and text.startswith('"""A layer casts its output twice.\n\n## Why it matters')
    rule.write_text(text, encoding="utf-8")
    assert next_code(family, tmp_path) == f"mp{int(code[2:]) + 1:03}"


@pytest.mark.parametrize(
    ("name", "summary"), [("StrayCast", "A layer."), ("stray_cast", "A layer."), ("stray-cast", "Two. Of them.")]
)
def test_what_the_contract_would_refuse_is_not_made(name: str, summary: str) -> None:
    with pytest.raises(ValueError):
        files_of_rule("layers", name, summary)


def test_the_tool_says_what_it_wants() -> None:
    asked = [sys.executable, "-m", "tools.new_rule", "no-family", "stray-cast", "A layer."]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "invalid choice: 'no-family'" in done.stderr


@pytest.mark.parametrize("package", ["mpdoctor", "mpdoctor.examiner"])
def test_the_map_shows_every_room_and_no_more_arrows_than_there_are_imports(package: str) -> None:
    folder = room_map.folder_of(package)
    imports = room_map.imports_between_rooms(folder)
    rooms = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(imports) == rooms - {"__init__", "__main__"}
    picture, table = room_map.map_of_rooms(package), room_map.table_of_rooms(package)
    assert all(f">{room}</text>" in picture and f"| `{room}` |" in table for room in imports)
    arrows = room_map.arrows_from_imports(imports)
    assert arrows and all(imported in imports[room] for room, imported in arrows)
    reached = {room: room_map._reached(room, imports) for room in imports}
    assert reached == {room: room_map._reached(room, of_arrows(imports, arrows)) for room in imports}


def of_arrows(imports: dict[str, frozenset[str]], arrows: list[tuple[str, str]]) -> dict[str, frozenset[str]]:
    return {room: frozenset(imported for start, imported in arrows if start == room) for room in imports}


def test_the_architecture_page_names_files_that_there_are_and_every_event() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", page)
    assert len(named) > 8 and [name for name in named if not (ROOT / "mpdoctor" / name).exists()] == []
    spec = importlib.util.spec_from_file_location("generated_pages", ROOT / "docs" / "generated_pages.py")
    assert spec is not None and spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    table = pages.table_of_events()
    assert "| `Model` | `number`, `facts`" in table and table.count("\n") == 1 + len(get_args(Event))
    assert all(f"<!-- {block} -->" in page for block in ("events", "map of mpdoctor", "map of mpdoctor.examiner"))
