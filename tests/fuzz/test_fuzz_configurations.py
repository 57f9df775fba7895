"""Random configurations (pyproject.toml, .gitignore, ignore comments, options): none breaks a check."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from random import Random

import pytest
from fuzzing import Fuzz
from mutations import with_other_bytes, with_other_tokens

from mpdoctor.cli import main

KEYS = (
    "select",
    "ignore",
    "per-file-ignores",
    "exclude",
    "fail-on",
    "keras",
    "assume-mixed",
    "assume_mixed",
    "é",
    "a.b",
)
RULES = ("MP", "MP1", "MP101", "nonexistent-api", "mp302", "MP005", "MP999", "", " ", "ALL", "é", "MP101,MP302", "*")
SIGNS = (*"ab*?/[]!-^\\ #.", "**", "*a" * 30, "[z-a]", "[[:upper:]]", "[" * 50, "a/" * 50, "é", "\x00", ".py", "train")
KERASES = ("3", "tf_keras", "2.15", "2.10", "2.4", "keras", "", "99", "2.", "v3", "-1", "é", "3.15.1rc1", "2.15.1.1.1")
OTHERS = (
    "true",
    "1",
    "1e400",
    "nan",
    "''",
    "[]",
    "{}",
    "[[]]",
    "1979-05-27",
    '"""\n"""',
    "[" * 300 + "]" * 300,
    "=",
    "'",
)
LINE = "opt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())"
COMMENTS = (
    *("# mpdoctor: ignore[{}] {}", "# mpdoctor: ignore[{}", "# mpdoctor:ignore {}", "#mpdoctor: ignore-file[{}] {}"),
    *(
        "# mpdoctor: ignore[]",
        "# mpdoctor: ignore[[{}]]",
        "# mpdoctor : ignore-file",
        "# x # mpdoctor: ignore[{},{}]",
        "{}",
    ),
)
OPTIONS = ("--select", "--ignore", "--keras", "--fail-on", "--stdin-filename", "--output-format", "--report", "--color")
FORMATS = ("terminal", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html", "svg", "xml")


def a_pattern(random: Random) -> str:
    return "".join(random.choice(SIGNS) for _ in range(random.randint(0, 6)))


def quoted(text: str) -> str:
    """As TOML has it, mostly."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\0", "\\u0000") + '"'


def several(random: Random, values: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(quoted(random.choice(values)) for _ in range(random.randrange(4))) + "]"


def a_value(random: Random, key: str) -> str:
    patterns = [a_pattern(random) for _ in range(4)]
    if random.random() < 0.15:
        return random.choice(OTHERS)
    if key in ("select", "ignore"):
        return several(random, RULES[:6] if random.random() < 0.8 else RULES)
    if key == "per-file-ignores":
        return (
            "{ "
            + ", ".join(f"{quoted(pattern)} = {several(random, RULES[:6])}" for pattern in dict.fromkeys(patterns))
            + " }"
        )
    if key == "exclude":
        return several(random, patterns)
    if key == "keras":
        return quoted(random.choice(KERASES))
    return random.choice(('"error"', '"warning"', '"info"', '"none"')) if key == "fail-on" else "false"


def a_pyproject(random: Random) -> bytes:
    keys = random.sample(KEYS[:7] if random.random() < 0.8 else KEYS, random.randrange(5))
    text = random.choice(
        ("[tool.mpdoctor]\n",) * 8 + ("", "[tool]\nmpdoctor = 3\n", "[[tool.mpdoctor]]\n", "tool = 1\n")
    )
    text += "".join(f"{key if key.isascii() else quoted(key)} = {a_value(random, key)}\n" for key in keys)
    text += random.choice(
        ("", "", "", f"[project]\nrequires-python = '>=3.9'\ndependencies = [{quoted(a_pattern(random))}]\n")
    )
    text = with_other_tokens(random, text) if random.random() < 0.2 else text
    data = text.encode(errors="surrogatepass")
    return with_other_bytes(random, data) if random.random() < 0.1 else data


def a_program(random: Random) -> str:
    lines = ["import tensorflow as tf", LINE, "x = [", "    1,", "]", "'''", "'''", LINE, "def f():", "    return 0"]
    for _ in range(random.randrange(5)):
        at = random.randrange(len(lines))
        rules = [random.choice((*RULES, a_pattern(random))) for _ in range(2)]
        lines[at] += "  " + random.choice(COMMENTS).format(*rules)
    text = "\n".join(lines)
    return with_other_tokens(random, text) if random.random() < 0.2 else text


def options(random: Random) -> list[str]:
    given = []
    for option in random.sample(OPTIONS, random.choice((0, 0, 1, 2))):
        named = {"--keras": KERASES, "--fail-on": ("error", "warning", "x"), "--output-format": FORMATS}.get(
            option, RULES
        )
        given += [option, random.choice(("-", "/dev/null/x.json")) if option == "--report" else random.choice(named)]
    return given


def a_check(folder: Path, random: Random) -> None:
    (folder / "pyproject.toml").write_bytes(a_pyproject(random))
    for name in (".gitignore", "sub/.gitignore", ".git/info/exclude"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        lines = [a_pattern(random) for _ in range(random.randrange(4))]
        (folder / name).write_text(random.choice(("\n", "\r\n")).join(lines), errors="surrogateescape")
    for name in ("train.py", "sub/a b.py"):
        (folder / name).write_bytes(a_program(random).encode(errors="surrogatepass"))
    target = random.choice((folder, folder, folder / "sub", folder / "train.py"))
    printed = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(printed), pytest.raises(SystemExit) as ended:
        main(["check", "--static", "--no-cache", str(target), *options(random)])
    assert ended.value.code in (0, 1, 2), printed.getvalue()


@pytest.mark.fuzz
def test_no_configuration_breaks_a_check(fuzz: Fuzz, tmp_path: Path) -> None:
    fuzz("configurations", partial(a_check, tmp_path))
