"""Saved files that try what no saved file may (tests/support/hostile_files): with either wall alone nothing happens
outside, and with the first each is refused in one sentence before anything of it is loaded."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import walls
from checking import check, needs_keras, needs_tensorflow
from environments import ENVIRONMENTS, needs_environment
from hostile_files import Attack, attacks
from hostile_files.forms import dense, hdf5_bytes, sequential
from hostile_files.sites import Site
from hostile_files.watching import Examination, Range, examine, load_plainly
from sampling import Sample

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.process import confinement
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.saved import archives, judged_copies
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.examiner.targets.saved_model import judge

LONGEST = 20.0  # seconds until a file is refused
LONGEST_LOAD = 120.0  # seconds until Keras itself gives one up, on a machine that is busy
LARGEST = 2 * 2**30  # bytes
LIMITED = re.compile(
    r"the operation `[^`]+` of the model would compute a tensor of [\d,]+ numbers for 32 samples, and "
    r"|one sample of made-up data would hold [\d,]+ numbers, and "
)
SAMPLED = 6  # files of each table that are examined in a process of their own; each takes two seconds
ATTACKS = attacks()
LIVE_FILES = [attack for attack in ATTACKS if attack.runs_in and attack.form != "saved-model"]
# their bytecode cannot be made here
MISSING = [environment.keras for environment in ENVIRONMENTS if environment.missing]
needs_h5py = pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")
every_keras = pytest.mark.parametrize(
    "keras",
    [
        pytest.param(environment.keras, id=environment.keras, marks=[
            needs_environment(environment), pytest.mark.environments if environment.python else pytest.mark.slow
        ])
        for environment in ENVIRONMENTS
    ],
)  # fmt: skip


@pytest.fixture
def range_(tmp_path: Path) -> Iterator[Range]:
    with Range(tmp_path) as made:
        yield made


def judged(site: Site) -> str:
    """What mpdoctor says of a file before it is loaded; "" where it would hand it to Keras. Nothing is registered with
    this Keras, and the user gave no module."""
    keras = SimpleNamespace(module=SimpleNamespace(utils=SimpleNamespace(get_registered_object=lambda *_, **__: None)))
    own = site.scratch / "judged-alone"
    request = Request("", str(site.path), None, None, (), str(own / "events"))
    for folder in (request.scratch, request.judged):
        Path(folder).mkdir(parents=True)
    session: Any = SimpleNamespace(hooked_keras=keras, request=request)
    try:
        judge(session, saved_file_from_path(str(site.path)), {})
    except Unusable as told:
        return str(told)
    return ""


def test_the_table_holds_what_was_promised() -> None:
    assert len(ATTACKS) >= 60
    assert {attack.form for attack in ATTACKS} == {"hdf5", "keras", "saved-model"}
    assert {keras for attack in ATTACKS for keras in attack.runs_in} == {
        environment.keras for environment in ENVIRONMENTS
    }


@needs_h5py
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_works_in_a_keras_is_refused_before_it_is_loaded(range_: Range) -> None:
    passed, happened = [], []
    cases = [(attack, keras) for attack in LIVE_FILES for keras in attack.runs_in if keras not in MISSING]
    assert cases
    for attack, keras in cases:
        site = range_.make(attack, keras)
        said = judged(site)
        if not said or "\n" in said or not said.startswith(site.path.name):
            passed.append(f"{attack} in {keras}: {said!r}")
        happened += [f"{attack} in {keras}: {effect}" for effect in range_.came_to(site)]
    assert not passed and not happened


@needs_h5py
@pytest.mark.parametrize("error", [KeyError("bad object header"), TypeError("no such type"), OSError("truncated")])
@pytest.mark.parametrize("where", ["attributes", "members"])
def test_whatever_h5py_raises_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    """Seen with bytes of a file turned over: where a group's header was hit, h5py said KeyError. (A file of which HDF5
    itself dies with a signal is behind the second wall.)"""
    site = Site.in_directory(tmp_path, "2.10", "hdf5", ".h5")
    site.path.write_bytes(hdf5_bytes(site, sequential(site, dense(site)), dense=1))

    def fails(*_: object) -> None:
        raise error

    place, name = {
        "attributes": (archives, "attributes_of_model"),
        "members": (judged_copies, "problems_of_storage"),
    }[where]
    monkeypatch.setattr(place, name, fails)
    said = judged(site)
    assert said.startswith("model.h5 is damaged: HDF5 says ") and "\n" not in said


# --- every file -------------------------------------------------------------------------------------------------------
@every_keras
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_files_are_no_duds(range_: Range, keras: str, sample: Sample) -> None:
    """What `runs_in` says of the plain loader, so that the walls are tested with what works."""
    rows = sample([attack for attack in ATTACKS if keras in attack.runs_in], SAMPLED)
    live = [(attack, range_.make(attack, keras)) for attack in rows]
    told = load_plainly(keras, [site for _, site in live])
    duds = [f"{attack}: {told[site]}" for attack, site in live if not range_.came_to(site)]
    assert live and not duds


def misbehaved(range_: Range, made: list[tuple[Attack, Site]], told: Any) -> list[str]:
    found = []
    for attack, site in made:
        examination: Examination = told[site]
        happened = range_.came_to(site)
        longest = LONGEST if examination.kind == "unusable" else LONGEST_LOAD
        happened += [f"it took {examination.seconds} s"] * (examination.seconds > longest)
        happened += [f"it took {examination.memory >> 20} MiB"] * (examination.memory > LARGEST)
        happened += ["the examiner failed: " + examination.broken] * bool(examination.broken)
        if happened:
            found.append(f"{attack} in {site.keras}: {', '.join(happened)}; {examination.said}")
    return found


@every_keras
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_with_the_allow_list_alone(range_: Range, keras: str, sample: Sample) -> None:
    """Nothing happens; what works elsewhere ends in one sentence."""
    rows = sample([attack for attack in ATTACKS if keras in attack.kerases], SAMPLED)
    made = [(attack, range_.make(attack, keras)) for attack in rows]
    told = examine(keras, [site for _, site in made], walls.CONFINEMENT)
    found = misbehaved(range_, made, told)
    for attack, site in made:
        examination = told[site]
        if keras in attack.runs_in and (examination.kind != "unusable" or "\n" in examination.said):
            found.append(f"{attack} in {keras} was not refused: {examination.kind} {examination.said}")
    assert not found, "\n".join(found)


@every_keras
def test_what_a_small_file_computes_is_limited(range_: Range, keras: str, sample: Sample) -> None:
    """Layers that make a billion numbers of four, and configurations that have them made while they are loaded."""
    computing = [attack for attack in ATTACKS if attack.name.startswith("computes-") and keras in attack.kerases]
    loading = [attack for attack in ATTACKS if attack.name.startswith("loads-") and keras in attack.kerases]
    rows = sample(computing, SAMPLED) + [row for row in loading if row.form == "keras" or row.name != "loads-classes"]
    made = [(attack, range_.make(attack, keras)) for attack in rows]
    told = examine(keras, [site for _, site in made])
    found = misbehaved(range_, made, told)
    for attack, site in made:
        examination = told[site]
        is_limited = examination.kind == "unusable" if attack in loading else LIMITED.match(examination.skipped)
        if not is_limited:
            found.append(f"{attack} in {keras}: {examination.said} {examination.skipped}")
    assert made and not found, "\n".join(found)


@every_keras
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_with_the_confinement_alone(range_: Range, keras: str, sample: Sample) -> None:
    """All that a file may hold is allowed, and Keras' safe mode is off; what it reads is not this wall's."""
    if confinement.protection().startswith("not"):
        pytest.skip(confinement.protection())
    rows = sample([attack for attack in ATTACKS if keras in attack.runs_in and attack.tries != "read"], SAMPLED)
    made = [(attack, range_.make(attack, keras)) for attack in rows]
    examine(keras, [site for _, site in made], walls.ALLOW_LIST, trusting=True)
    assert made
    happened = [
        (attack, effect)
        for attack, site in made
        for effect in range_.came_to(site)
        if effect != "the canary was opened"
    ]
    assert not happened, "\n".join(f"{attack} in {keras}: {effect}" for attack, effect in happened)


# --- as a user meets it -----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keras"),
    [
        pytest.param("op-lambda-io.write_file-hdf5", "tf_keras", marks=needs_keras("tf_keras")),
        pytest.param("function-keras.saving.KerasFileEditor-keras", "3", marks=needs_tensorflow),
        pytest.param("graph-writes-saved-model", "tf_keras", marks=needs_keras("tf_keras")),
    ],
)
def test_a_user_reads_one_sentence(range_: Range, name: str, keras: str) -> None:
    (attack,) = [attack for attack in ATTACKS if str(attack) == name]
    site = range_.make(attack, keras)
    done = check(site.path.name, directory=site.folder, keras=keras)
    assert (done.exit_code, done.codes()) == (2, ["MP002"]), str(done)
    assert not range_.came_to(site)
    (finding,) = done.report["findings"]
    assert "\n" not in finding["message"]
