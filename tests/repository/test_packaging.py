"""What a release is made of: both packages, what an index is told and can show, the workflow that hands it on."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tarfile
import zipfile
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import mpdoctor

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://host.example/owner/mpdoctor"
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
ON = True  # YAML 1.1 reads the key `on` so
STEPS = [pytest.param(step, id=f"{name}-{number}") for name, job in WORKFLOW["jobs"].items()
         for number, step in enumerate(job["steps"])]  # fmt: skip


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPDOCTOR_REPOSITORY", f"{REPOSITORY}/")
        patch.setenv("MPDOCTOR_TAG", "v0.1.0")
        (path,) = builder.build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> EmailMessage:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name), policy=policy.compat32)  # type: ignore[return-value]


# --- the packages -----------------------------------------------------------------------------------------------------
def kept_files() -> set[str]:
    """What git knows below mpdoctor/."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "mpdoctor"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("there is no git repository to compare with")
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def test_the_wheel_is_the_package_and_says_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == kept_files()
    assert "mpdoctor/py.typed" in files


def test_the_source_package_builds_and_brings_no_fixtures(tmp_path: Path) -> None:
    builder = pytest.importorskip("hatchling.builders.sdist").SdistBuilder(str(ROOT))
    (path,) = builder.build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers()}
    own = {"pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "PKG-INFO"}
    assert files - {".gitignore"} == own | kept_files()


def test_the_package_for_old_pythons_is_the_training_room_of_the_same_version(tmp_path: Path) -> None:
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT / "packages" / "training"))
    (path,) = builder.build(directory=str(tmp_path), versions=["standard"])
    files = {name for name in zipfile.ZipFile(path).namelist() if ".dist-info/" not in name}
    training = {name for name in kept_files() if name.startswith("mpdoctor/training/")}
    assert files == training | {"mpdoctor/__init__.py", "mpdoctor/py.typed", "mpdoctor/loss_scale.py"}
    assert Path(path).name.startswith(f"mpdoctor_training-{mpdoctor.__version__}-")


# --- what an index is told --------------------------------------------------------------------------------------------
def test_who_where_and_for_which_python(metadata: EmailMessage) -> None:
    assert metadata["Author"] == "mpdoctor maintainers"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert f"Source, {REPOSITORY}" in metadata.get_all("Project-URL", [])
    minors = [f"Programming Language :: Python :: 3.{minor}" for minor in (10, 11, 12, 13)]
    assert [
        classifier for classifier in metadata.get_all("Classifier", []) if re.search(r":: 3\.", classifier)
    ] == minors


def test_the_index_can_show_every_picture_and_follow_every_link(metadata: EmailMessage) -> None:
    text = str(metadata.get_payload())
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    links = re.findall(r"(?<!!)\[[^\]]+\]\(([^)]+)\)", text)
    assert len(pictures) == 3 and all(
        picture.startswith(f"{REPOSITORY}/raw/v0.1.0/docs/images/") for picture in pictures
    )
    assert links and all(link.startswith(("https://", "#")) for link in links)
    for url in (*pictures, *links):
        if url.startswith(REPOSITORY):
            file = url.removeprefix(REPOSITORY).split("/", 3)[3].partition("#")[0]
            assert (ROOT / file).exists(), url


@pytest.mark.parametrize(
    ("readme", "shown"),
    [
        ("![A curve](a/b.svg)", "*A curve*"),
        ("see [the page](docs/a.md#part).", "see the page."),
        ("[here](#below) and [there](https://a.example/b)", "[here](#below) and [there](https://a.example/b)"),
        ("```python\nlosses[0](x)\n```\n[a](b.md)", "```python\nlosses[0](x)\n```\na"),
    ],
)
def test_nothing_is_broken_where_no_repository_is_known(hatch_build: ModuleType, readme: str, shown: str) -> None:
    assert hatch_build.readme_for_index(readme, "", "HEAD") == shown
    assert hatch_build.urls_of("", "HEAD") == {}


# --- the workflow -----------------------------------------------------------------------------------------------------
def test_a_tag_is_checked_and_built_before_it_is_handed_over() -> None:
    assert WORKFLOW[ON] == {"push": {"tags": ["v*"]}}
    jobs = WORKFLOW["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert [step["run"] for step in jobs["check"]["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").exists()
    made = next(step for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", ""))
    taken = next(step for step in jobs["publish"]["steps"] if "download-artifact" in step.get("uses", ""))
    assert (made["with"]["name"], made["with"]["path"]) == (taken["with"]["name"], taken["with"]["path"])


def test_only_the_job_that_publishes_may_do_more_than_read() -> None:
    assert WORKFLOW["permissions"] == {}
    rights = {name: job["permissions"] for name, job in WORKFLOW["jobs"].items()}
    assert rights.pop("publish") == {"id-token": "write"}
    assert all(right == {"contents": "read"} for right in rights.values())
    assert "secrets." not in str(WORKFLOW)


@pytest.mark.parametrize("job", WORKFLOW["jobs"])
def test_a_job_has_a_machine_an_end_and_steps(job: str) -> None:
    described = WORKFLOW["jobs"][job]
    known = {"name", "needs", "runs-on", "timeout-minutes", "environment", "permissions", "steps"}
    assert {"runs-on", "timeout-minutes", "steps"} <= set(described) <= known
    assert set(described.get("needs", [])) <= set(WORKFLOW["jobs"])


@pytest.mark.parametrize("step", STEPS)
def test_a_step_uses_a_version_or_runs_a_script(step: dict[str, Any]) -> None:
    assert ("uses" in step) != ("run" in step)
    if "uses" in step:
        assert set(step) <= {"name", "uses", "with"}
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step["uses"])
    else:
        assert set(step) <= {"name", "run", "env"}
        assert "${{" not in step["run"], "what GitHub writes there may hold anything: by way of env"
        done = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_release_workflow_looks_where_the_version_and_the_changes_stand() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'^version = "\d+\.\d+\.\d+"$', project, re.MULTILINE)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \d+\.\d+\.\d+ \((\d{4}-\d{2}-\d{2}|not released yet)\)$", changes, re.MULTILINE)
