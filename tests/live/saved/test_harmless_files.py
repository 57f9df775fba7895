"""Harmless saved files of every Keras (tests/support/harmless_files): what Keras alone loads passes both walls, and
mpdoctor loads and trains it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_tensorflow
from environments import ENVIRONMENTS, Environment, needs_environment
from harmless_files import models
from hostile_files.sites import Site
from hostile_files.watching import examine, load_plainly, surroundings
from sampling import Sample
from test_hostile_files import judged

HERE = Path(__file__).parents[2] / "support" / "harmless_files"
FORMS = {".keras": "keras", ".h5": "hdf5"}
every_keras = pytest.mark.parametrize(
    "environment",
    [
        pytest.param(environment, id=environment.keras, marks=[
            needs_environment(environment), pytest.mark.environments if environment.python else pytest.mark.slow
        ])
        for environment in ENVIRONMENTS
    ],
)  # fmt: skip
MODELS = models()
SAMPLED = 15  # the default takes one of so many models
LOADED = 12  # files of each Keras that are loaded in a process of their own; each takes two seconds
TRAINED = 3  # one of so many files is trained; the others are only loaded


def written(environment: Environment, directory: Path, *names: str) -> list[Site]:
    """The models of the table, or those named, as this Keras wrote them: each file in a folder of its own."""
    files = directory / "written"
    files.mkdir()
    done = subprocess.run(
        [environment.python or sys.executable, HERE / "writing.py", environment.keras, files, *names],
        env=surroundings(environment.keras), capture_output=True, check=False,
    )  # fmt: skip
    assert not done.returncode and not done.stdout, done.stdout.decode() + done.stderr.decode()[-2000:]
    return [_placed(path, directory, environment.keras) for path in sorted(files.iterdir())]


def _placed(path: Path, directory: Path, keras: str) -> Site:
    site = Site.in_directory(directory / f"{path.name}-{keras}", keras, FORMS[path.suffix], path.suffix)
    path.rename(site.path)
    return site


def objects_of(site: Site) -> str | None:
    """The user's module that --custom-objects must name."""
    name = site.folder.parent.name.partition(".")[0]
    return str(HERE / f"{MODELS[name].objects}.py") if MODELS[name].objects else None


def test_the_table_holds_what_was_promised() -> None:
    assert len(MODELS) >= 50


@pytest.mark.slow
@needs_tensorflow
def test_a_sample_is_handed_to_keras(tmp_path: Path) -> None:
    (environment,) = [known for known in ENVIRONMENTS if known.keras == "3"]
    names = [name for name in sorted(MODELS) if "3" in MODELS[name].kerases and not MODELS[name].objects][::SAMPLED]
    sites = written(environment, tmp_path, *names)
    assert len(sites) >= len(names)
    assert [f"{site.folder.parent.name}: {judged(site)}" for site in sites if judged(site)] == []


@every_keras
def test_what_keras_loads_is_loaded(environment: Environment, tmp_path: Path, sample: Sample) -> None:
    """And trained, some of it: what fails must fail in Keras alone, too."""
    sites = sample(written(environment, tmp_path), LOADED)
    trained = set(sites[::TRAINED])
    told = examine(
        environment.keras, sites, more=lambda site: {"custom_objects": objects_of(site), "probe": site in trained}
    )
    refused = [site for site in sites if told[site].kind == "unusable" or told[site].broken or not told[site].ended]
    failed = [site for site in sites if told[site].said and site not in refused]
    plainly = load_plainly(environment.keras, [site for site in failed if not objects_of(site)])
    refused += [site for site in failed if "trained" in plainly.get(site, "trained")]
    assert not refused, "\n".join(
        f"{site.folder.parent.name}: {told[site].said} {told[site].broken}" for site in refused
    )
