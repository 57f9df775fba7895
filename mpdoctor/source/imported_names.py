"""Names that the import statements of an unparsed text may mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STATEMENT = rb"(?:from[ \t]*(\.*[\w.\x80-\xff]*)[ \t]*import[ \t]*(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]+))"
_IMPORT = re.compile(rb"^[ \t]*" + _STATEMENT, re.M)
_FURTHER_IMPORT = re.compile(rb"[;:][ \t]*" + _STATEMENT)  # slow, and seldom: it stands behind something in its line
_NAMED_IN_PART = re.compile(rb"""(?:import_module|__import__)\(\s*[fFrR]*(["'])([.\w]*\.)(?:\1\s*[+%]|\{|%)""")
_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"
_SHOWS_FURTHER = (b"; import ", b": import ", b"; from ", b": from ")


def imported_names(text: bytes, package: str) -> Iterator[str]:
    """Every dotted name that an import statement may mean, with the packages that contain it. A package ends in a dot
    if `import_module("models." + name)` may mean any of its modules."""
    if b"import_module(" in text or b"__import__(" in text:
        yield from _chosen_when_run(text, package)
    text = (_imports_of_notebook(text) if text.lstrip(_BEFORE_JSON)[:1] == b"{" else text).replace(b"\\\n", b" ")
    further = _FURTHER_IMPORT.findall(text) if any(sign in text for sign in _SHOWS_FURTHER) else ()
    for source, names, modules in (*_IMPORT.findall(text), *further):
        if modules:
            for module in modules.decode(errors="replace").split(","):
                yield from _with_packages(module.split()[0] if module.split() else "")
            continue
        of = _absolute(source.decode(errors="replace"), package)
        if of is None:
            continue
        yield from _with_packages(of)
        for name in names.decode(errors="replace").strip("()").replace("\\", " ").split(","):
            if name.split():
                yield f"{of}.{name.split()[0]}" if of else name.split()[0]


def _chosen_when_run(text: bytes, package: str) -> Iterator[str]:
    for _, before in _NAMED_IN_PART.findall(text):
        of = _absolute(before.decode(errors="replace")[:-1] or ".", package)
        if of:
            yield from _with_packages(of)
            yield f"{of}."


def _imports_of_notebook(text: bytes) -> bytes:
    """The lines of a notebook's JSON that hold an import statement, without their quotes: nothing here needs to know
    which strings are code, and pictures are long."""
    kept, is_open = [], False
    for line in text.split(b"\n"):
        if is_open or b"import" in line:
            kept.append(line)
            is_open = (is_open or b"(" in line) and b")" not in line
    return b"\n".join(kept).replace(b"\\n", b"\n").replace(b'"', b"\n")


def _with_packages(dotted: str) -> Iterator[str]:
    """A dotted name, and before it the packages that hold it, whose `__init__` Python runs first."""
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


def _absolute(module: str, package: str) -> str | None:
    """The absolute name of a relative import; None where it leaves the package."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    if not level:
        return name
    parts = package.split(".") if package else []
    if level - 1 > len(parts):
        return None
    return ".".join((*parts[: len(parts) - (level - 1)], *([name] if name else [])))
