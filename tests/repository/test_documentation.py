"""The documentation: pages made from the code, the links between them, and what their examples say and do.

.ci/run builds it with warnings as errors.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from checking import needs_tensorflow

from mpdoctor import __version__
from mpdoctor.cli import main
from mpdoctor.cli.app import app_for
from mpdoctor.cli.output import OutputFormat
from mpdoctor.cli.texts.rule_texts import markdown_from_rule
from mpdoctor.diagnosis import diagnose
from mpdoctor.finding import Finding, Verdict
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.reporters import terminal
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.rules import registry
from mpdoctor.rules.registry import all_rules
from mpdoctor.semantics.live.verdict_meanings import MEANINGS, table_of_meanings
from mpdoctor.settings.options import Settings
from mpdoctor.settings.pyproject import configuration_from_file

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
BLOCK = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.S | re.M)


@functools.cache
def generated() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generated_pages", DOCS / "generated_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pages: dict[str, str] = module.pages()
    return pages


@dataclass
class Block:
    """A fenced block of a page: `title` is the name of the file that it is, or changes."""

    language: str
    title: str | None
    text: str


def blocks(text: str) -> Iterator[Block]:
    for match in BLOCK.finditer(text):
        yield Block(match["language"], match["title"], match["text"])


def block_of(page: str, title: str) -> str:
    (found,) = [block.text for block in blocks(WRITTEN[page]) if block.title == title]
    return found


def findings_in(path: Path) -> list[Finding]:
    return list(diagnose(Settings((target_from_text(str(path)),), static=True), SilentProgress()).findings)


# --- pages made from the code ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_rule_has_the_page_that_explain_shows(rule: registry.Rule, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", rule.code])
    page = generated()[f"rules/{rule.name}.md"]
    assert re.sub(r"\[(MP\d{3}|[^\]\s]+#\d+)\]\([^)]+\)", r"\1", page) == capsys.readouterr().out
    assert f"[{rule.name}]({rule.name}.md)" in generated()["rules/index.md"]


def test_no_generated_page_is_kept() -> None:
    assert set(generated()).isdisjoint(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*"))


def test_codes_are_linked_in_prose_and_nowhere_else() -> None:
    page = generated()["rules/loss-scale-collapses.md"]
    assert "[MP902](loss-scale-stuck.md)" in page
    assert "[keras-team/keras#16100](https://github.com/keras-team/keras/issues/16100)" in page
    for rule in all_rules():
        page, shown = generated()[f"rules/{rule.name}.md"], markdown_from_rule(rule)
        assert [block.text for block in blocks(page)] == [block.text for block in blocks(shown)]
        assert re.findall(r"^#.*|`[^`\n]+`", page, re.M) == re.findall(r"^#.*|`[^`\n]+`", shown, re.M)


@pytest.mark.parametrize("name", sorted(typer.main.get_command(app_for(())).commands))  # type: ignore[attr-defined]
def test_the_options_are_those_of_the_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    shown = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.M)) - {"--help"}
    told = generated()["options.md"].partition(f"## mpdoctor {name}\n")[2].partition("\n## ")[0]
    assert shown and shown <= set(re.findall(r"^\| .*?`(--[\w-]+)`", told, re.M)) | {"--no-assume-mixed"}


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_a_stranger_can_follow_where_users_met_it(rule: registry.Rule) -> None:
    """An issue is named with its repository, and nothing by a number of ours."""
    met = re.sub(r"`[^`]*`", "", rule.docs.partition("## Where users met it")[2])
    assert not re.findall(r"(?<![\w/.-])(?:#\d+|[A-J]\d{2}\b)", met)


@pytest.mark.parametrize("name", ["compared-1.json", "diagnosis-1.json", "mended-1.json", "mended-file-1.json"])
def test_the_published_schemas_are_those_of_the_package(name: str) -> None:
    schema = ROOT / "mpdoctor" / "reporters" / "json" / "schema" / name
    assert generated()[f"schema/{name}"] == schema.read_text(encoding="utf-8")


def anchors(text: str) -> set[str]:
    return {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.M)
    }


def test_every_link_leads_somewhere() -> None:
    pages = {**WRITTEN, **generated()}
    for name, text in pages.items():
        prose = BLOCK.sub("", text) if name.endswith(".md") else ""
        for link in re.findall(r"(?<!`)\[[^\]]+\]\(([^)\s]+)\)", prose):
            if re.match(r"https?://", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(Path(name).parent / path) if path else name
            is_picture = target.startswith("images/") and (DOCS / target).is_file()
            assert target in pages or is_picture, (name, link)
            assert not anchor or anchor in anchors(pages[target]), (name, link)


def test_the_readme_and_its_neighbours_lead_to_files_that_there_are() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        prose = re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8"))  # `BLOCKS[kind](…)` is code
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            path, _, anchor = link.partition("#")
            assert re.match(r"https?://", link) or (ROOT / path).exists(), (name, link)
            if anchor and path.endswith(".md"):
                assert anchor in anchors((ROOT / path).read_text(encoding="utf-8")), (name, link)


def test_a_published_rule_has_its_page_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address stands in two files: where rules say it, and where mkdocs does."""
    configured = re.search(r"^site_url: (\S+)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert (configured[1] if configured else "") == registry.PUBLISHED_AT
    rule = all_rules()[0]
    monkeypatch.setattr(registry, "PUBLISHED_AT", "")
    assert rule.url == ""
    monkeypatch.setattr(registry, "PUBLISHED_AT", "https://docs.example/")
    assert f"{rule.url.removeprefix('https://docs.example/').rstrip('/')}.md" in generated()


# --- what is written ------------------------------------------------------------------------------------------------
def test_every_verdict_is_told_by_the_numbers_that_are_in_the_code() -> None:
    """To be pasted there: `for line in table_of_meanings(): print(line)`."""
    told = [line for line in WRITTEN["verdicts.md"].splitlines() if line.startswith("|")]
    assert told == table_of_meanings()
    assert set(MEANINGS) == set(Verdict)


def test_every_format_is_told() -> None:
    told = re.findall(r"^\| `([a-z]+)` \|", WRITTEN["reports.md"], re.M)
    assert {form.value for form in OutputFormat} <= set(told)
    assert set(re.findall(r"--output-format ([a-z]+)", "".join(WRITTEN.values()))) <= set(told)


OTHERS = {"--strict", "--foreground", "--stdin", "--version", "--install-completion", "--show-completion", "--help"}


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *sorted(f"docs/{n}" for n in WRITTEN)]
)
def test_every_option_that_is_named_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    commands: dict[str, Any] = typer.main.get_command(app_for(())).commands  # type: ignore[attr-defined]
    known = {name for command in commands.values() for option in command.params
             for name in (*option.opts, *option.secondary_opts)}  # fmt: skip
    mpdoctor = [line for line in text.splitlines() if "mpdoctor" in line or "`--" in line]
    named = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", "\n".join(mpdoctor).partition(" -- ")[0]))
    assert named <= known | OTHERS


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/{n}" for n in WRITTEN)])
def test_every_rule_that_is_named_exists(page: str) -> None:
    codes = {rule.code for rule in all_rules()}
    assert set(re.findall(r"\bMP\d{3}\b", (ROOT / page).read_text(encoding="utf-8"))) <= codes


def test_licence_and_changes() -> None:
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence and "END OF TERMS AND CONDITIONS" in licence and len(licence) > 11_000
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_the_rule_that_contributors_are_shown_is_a_real_one() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = [block for block in blocks(text) if block.title]
    assert len(shown) >= 3
    for block in shown:
        kept = (ROOT / str(block.title)).read_text(encoding="utf-8")
        for part in block.text.split("…\n"):
            assert part.strip("\n") in kept, block.title


def test_the_commands_of_contributors_find_tests() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    commands = [line for block in blocks(text) if block.language == "sh" for line in block.text.splitlines()]
    tests = [line.partition("#")[0].strip() for line in commands if line.startswith("pytest tests/")]
    assert tests
    for command in tests:
        collected = subprocess.run(
            [sys.executable, "-m", *shlex.split(command), "--collect-only"], cwd=ROOT, capture_output=True, text=True
        )
        assert collected.returncode == 0, collected.stdout


# --- in CI ----------------------------------------------------------------------------------------------------------
WRONG = "import tensorflow as tf\n\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With an `mpdoctor` on PATH, and the one finding MP101."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(WRONG)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "mpdoctor"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mpdoctor "$@"\n')
    command.chmod(0o755)
    return tmp_path


def in_bash(script: str, project: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{project / 'bin'}{os.pathsep}{os.environ['PATH']}"
    inherited = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=project, env={**inherited, **environment}, capture_output=True, text=True,
    )  # fmt: skip


def test_the_example_for_gitlab_runs(project: Path) -> None:
    import json

    from junitparser import JUnitXml

    job = yaml.safe_load(block_of("ci.md", ".gitlab-ci.yml"))["mixed-precision"]
    commands = [line for line in job["script"] if not line.startswith("pip install")]
    assert in_bash("\n".join(commands), project).returncode == 1
    reports = job["artifacts"]["reports"]
    (entry,) = json.loads((project / reports["codequality"]).read_text())
    assert entry["location"] == {"path": "src/train.py", "lines": {"begin": 3}}
    assert JUnitXml.fromfile(str(project / reports["junit"])).failures == 1
    assert job["artifacts"]["when"] == "always"


def test_the_example_for_any_ci_runs(project: Path) -> None:
    script = block_of("ci.md", "ci.sh").replace('"$tools/bin/mpdoctor"', "mpdoctor")
    commands = [line for line in script.splitlines() if not line.startswith(("tools=", "python -I -m venv", '"$tools'))]
    done = in_bash("\n".join(commands), project)
    assert (done.returncode, (project / "mpdoctor.xml").exists()) == (1, True)
    assert "MP101" in done.stdout


def test_the_other_examples_are_understood(tmp_path: Path) -> None:
    workflow = yaml.safe_load(block_of("ci.md", ".github/workflows/mixed-precision.yml"))
    (_, action) = workflow["jobs"]["mixed-precision"]["steps"]
    assert set(action["with"]) <= set(ACTION["inputs"])
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    (repository,) = yaml.safe_load(block_of("ci.md", ".pre-commit-config.yaml"))["repos"]
    assert {hook["id"] for hook in repository["hooks"]} <= hooks
    (tmp_path / "pyproject.toml").write_text(block_of("ci.md", "pyproject.toml"))
    configured = configuration_from_file(tmp_path / "pyproject.toml")
    assert configured.ignore == ("MP210",)
    left_out = [
        field.name for field in dataclasses.fields(configured) if getattr(configured, field.name) in (None, (), "")
    ]
    assert left_out == []
    names = [word for rule in all_rules() for word in (rule.code, rule.name)]
    assert not list(configured.unknown_rules(lambda text: any(name.startswith(text) for name in names)))


# --- the action -----------------------------------------------------------------------------------------------------
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


class Job:
    """Runs the steps of the action as GitHub does; of other actions only that they are used."""

    def __init__(self, project: Path, **inputs: str) -> None:
        self.project = project
        self.values = {f"inputs.{name}": str(declared["default"]) for name, declared in ACTION["inputs"].items()}
        self.values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        self.values["steps.python.outputs.python-path"] = sys.executable
        self.used: list[str] = []
        self.log = ""
        self.status = 0

    def resolved(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: self.values.get(match[1], ""), text)

    def wanted(self, step: dict[str, Any]) -> bool:
        """`a == 'b' && c != ''`, which is all that the action asks."""
        for condition in step.get("if", "").split(" && ") if "if" in step else []:
            name, sign, value = condition.split(" ", 2)
            if (self.values.get(name, "") == value.strip("'")) is not (sign == "=="):
                return False
        return True

    def run(self) -> None:
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                self.used += [step["uses"]] if self.wanted(step) else []
            elif "pip install" not in step["run"]:
                self.run_step(step)

    def run_step(self, step: dict[str, Any]) -> None:
        output = self.project / "output"
        output.write_text("")
        environment = {name: self.resolved(text) for name, text in step["env"].items()}
        directory = self.project / self.resolved(step.get("working-directory", "."))
        done = in_bash(
            f"cd {shlex.quote(str(directory))}\n{step['run']}", self.project, **environment,
            GITHUB_OUTPUT=str(output), RUNNER_TEMP=str(self.project / "temporary"),
        )  # fmt: skip
        self.log += done.stdout + done.stderr
        self.status = self.status or done.returncode
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value


@pytest.mark.parametrize(
    ("inputs", "status", "report"),
    [
        ({}, 1, "./mpdoctor.sarif"),
        ({"targets": "src/train.py\nsrc/", "sarif_file": "a b.sarif"}, 1, "./a b.sarif"),
        ({"options": "--ignore MP101"}, 0, "./mpdoctor.sarif"),
        ({"working_directory": "src"}, 1, "src/mpdoctor.sarif"),
        ({"targets": "nowhere"}, 2, ""),
        ({"options": "--nonsense"}, 2, ""),
        ({"targets": "src; touch injected $(touch injected)"}, 2, ""),
    ],
)
def test_the_action_checks_uploads_and_fails(project: Path, inputs: dict[str, str], status: int, report: str) -> None:
    job = Job(project, **inputs)
    (project / "temporary").mkdir()
    (project / "temporary" / "mpdoctor").symlink_to(ROOT)
    job.run()
    assert job.status == status, job.log
    assert job.values["steps.check.outputs.exit-status"] == str(status)
    assert job.values.get("steps.check.outputs.sarif-file", "") == report
    assert (project / report).is_file() or not report
    assert any(action.startswith("github/codeql-action/upload-sarif@") for action in job.used) is bool(report)
    assert not (project / "injected").exists()


def test_a_report_that_the_checkout_links_elsewhere_is_not_written_there(project: Path) -> None:
    """A pull request may bring a link by the report's name."""
    elsewhere = project.parent / "elsewhere"
    elsewhere.write_text("kept")
    (project / "mpdoctor.sarif").symlink_to(elsewhere)
    Job(project).run()
    assert elsewhere.read_text() == "kept"
    assert (project / "mpdoctor.sarif").is_file() and not (project / "mpdoctor.sarif").is_symlink()


def test_the_action_uploads_only_what_it_may(project: Path) -> None:
    job = Job(project, upload="false")
    (project / "temporary").mkdir()
    (project / "temporary" / "mpdoctor").symlink_to(ROOT)
    job.run()
    assert not any("upload" in action for action in job.used)


def test_the_inputs_of_the_action_are_documented() -> None:
    table = WRITTEN["ci.md"].partition("| Input |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.M) == list(ACTION["inputs"])
    assert all(declared["description"] for declared in ACTION["inputs"].values())


# --- the tutorial ---------------------------------------------------------------------------------------------------
def changed(text: str, difference: str) -> str:
    """A file after the lines of a diff block, which must stand in it once."""
    lines = difference.splitlines()
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
    after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
    assert text.count(before) == 1
    return text.replace(before, after)


def scripts() -> list[str]:
    """The script of the tutorial as it goes along."""
    texts: list[str] = []
    for block in blocks(WRITTEN["tutorial.md"]):
        if block.title == "train.py":
            texts.append(changed(texts[-1], block.text) if block.language == "diff" else block.text)
    return texts


def test_the_tutorial_mends_what_is_found(tmp_path: Path) -> None:
    codes = []
    for text in scripts():
        (tmp_path / "train.py").write_text(text)
        codes.append([finding.code for finding in findings_in(tmp_path / "train.py")])
    assert codes == [[], ["MP501", "MP201"], ["MP201"], []]


def gist(output: str) -> list[str]:
    """What is the same on every machine: what is found and where, the verdict, and no number that was measured."""
    if output.startswith("Epoch"):
        return re.sub(r"\d+(\.\d+)?", "#", output).splitlines()
    told = re.findall(
        r"^(?:(?:error|warning|info) MP\d{3} .*|  train\.py:\d+.*|Training  [a-z-]+|[✓✗▲] [^:]*)", output, re.M
    )
    return [line.split(";")[0] for line in told]


def test_the_front_page_shows_a_report_as_it_is() -> None:
    saved = diagnosis_from_json((DOCS / "images" / "one_defect" / "diagnosis.json").read_bytes())
    assert block_of("index.md", "A report") == "$ mpdoctor check train.py\n" + terminal.render(saved)
    assert WRITTEN["index.md"].startswith("# mpdoctor\n\n```sh\nmpdoctor check train.py\n```\n\n![")


@needs_tensorflow
@pytest.mark.slow
def test_the_tutorial_shows_what_happens(tmp_path: Path) -> None:
    """Look at the difference; if it is what you want, run once with MPDOCTOR_UPDATE_SNAPSHOTS=1."""
    page, updating = WRITTEN["tutorial.md"], os.environ.get("MPDOCTOR_UPDATE_SNAPSHOTS") == "1"
    script = tmp_path / "train.py"
    for block in blocks(WRITTEN["tutorial.md"]):
        if block.title == "train.py":
            script.write_text(changed(script.read_text(), block.text) if block.language == "diff" else block.text)
        elif block.language == "console":
            prompt, _, shown = block.text.partition("\n")
            command = prompt.removeprefix("$ ").split()
            program = [sys.executable, *command[1:]] if command[0] == "python" else [sys.executable, "-m", *command]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
            done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
            if updating:
                page = page.replace(f"```console\n{block.text}```", f"```console\n{prompt}\n{done.stdout}```", 1)
            else:
                assert gist(done.stdout) == gist(shown), done.stdout + done.stderr
    if updating:
        (DOCS / "tutorial.md").write_text(page, encoding="utf-8")
