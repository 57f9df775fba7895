"""pytest's hooks and fixtures for all tests: samples of long tables, two tests at a time, saved models,
environments."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import fuzzing
import pytest
import sampling
import two_at_once
from checking import PACKAGES, keras_is_missing
from fuzzing import fuzz
from hypothesis import HealthCheck, settings
from sampling import sample
from truth import options as truth_options

__all__ = ["fuzz", "sample"]  # pytest finds fixtures here

# No property is judged by the clock: on a busy machine any example is slow. What a test may cost, its examples' number
# says.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    fuzzing.add_options(parser)
    sampling.add_options(parser)
    truth_options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    sampling.choose_seed_and_shares(config)


pytest_cmdline_main = two_at_once.pytest_cmdline_main
pytest_sessionfinish = two_at_once.pytest_sessionfinish
pytest_testnodedown = two_at_once.pytest_testnodedown
pytest_terminal_summary = two_at_once.pytest_terminal_summary


@pytest.hookimpl(trylast=True)  # after -m and -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    sampling.take_samples(config, items)
    two_at_once.long_ones_first(items)


SAVED_MODELS = Path(__file__).parent / "support" / "saved_models.py"
SAVED = Path(__file__).parents[1] / "fixtures" / "saved"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m fast` does not even import the other files: that would take longer than the tests."""
    if config.option.markexpr == "fast" and collection_path.suffix == ".py":
        return "\npytestmark = pytest.mark.fast\n" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.fixture(autouse=True)
def needs_neither_process_nor_tensorflow(request: pytest.FixtureRequest) -> None:
    """Holds for what is marked fast."""
    if request.node.get_closest_marker("fast"):
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(subprocess.Popen, "__init__", _starts_a_process)
        monkeypatch.setattr(os, "fork", _starts_a_process)
        if "tensorflow" not in sys.modules:
            monkeypatch.setitem(sys.modules, "tensorflow", None)


def _starts_a_process(*_: object, **__: object) -> None:
    raise AssertionError("a test that is marked fast starts no process")


@pytest.fixture(scope="session", autouse=True)
def cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of mpdoctor keep what they remember here, not where the user's own do."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name)))
        yield


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A directory of saved models as this Keras writes them, made when it is first asked for and kept for the next
    run, until Keras or what writes them changes."""

    def directory_of(keras: str) -> Path:
        reason = keras_is_missing(keras)
        if reason:
            pytest.skip(reason)
        versions = "-".join(metadata.version(package) for package in (PACKAGES[keras], "tensorflow"))
        written_by = hashlib.sha256(SAVED_MODELS.read_bytes()).hexdigest()[:8]
        kept = SAVED / f"{PACKAGES[keras]}-{versions}-{written_by}"
        if not kept.exists():
            made = tmp_path_factory.mktemp(f"saved_{keras}")
            environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"}
            subprocess.run([sys.executable, SAVED_MODELS, made], env=environment, check=True)
            fresh = kept.with_name(f"{kept.name}.new-{os.getpid()}")
            shutil.copytree(made, fresh)
            try:
                fresh.rename(kept)
            except OSError:  # a process beside this one was first
                if not kept.exists():
                    raise
                shutil.rmtree(fresh)
        return kept

    return directory_of


@pytest.fixture(scope="session")
def environment_of() -> Callable[[Path, bool], Path]:
    """Makes a virtual environment in a folder, with or without a package called tensorflow; gives its interpreter."""

    def make(folder: Path, claims: bool) -> Path:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        if claims:
            (packages,) = folder.glob("lib/python*/site-packages")
            (packages / "tensorflow").mkdir()
            (packages / "tensorflow" / "__init__.py").write_text("raise ImportError('nobody is to import this')\n")
        return folder / "bin" / "python"

    return make


@pytest.fixture(scope="session")
def claiming(environment_of: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_of(tmp_path_factory.mktemp("claiming") / "env", True)


@pytest.fixture(scope="session")
def bare(environment_of: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_of(tmp_path_factory.mktemp("bare") / "env", False)
