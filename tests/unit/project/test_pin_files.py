"""In which folders files are looked for that pin a release."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mpdoctor.project.declared_versions import may_hold_pins
from mpdoctor.project.keras_of_project import keras_from_project

PINNED = {
    "uv.lock": '[[package]]\nname = "tensorflow"\nversion = "2.10.0"\n',
    "Pipfile.lock": '{"default": {"tensorflow": {"version": "==2.10.0"}}}',
    "Pipfile": '[packages]\ntensorflow = "==2.10.0"\n',
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["tensorflow==2.10.0"]\n',
    "setup.cfg": "[options]\ninstall_requires =\n    tensorflow==2.10.0\n",
    "setup.py": 'setup(install_requires=["tensorflow==2.10.0"])\n',
    "environment-gpu.yaml": "dependencies:\n  - tensorflow=2.10.0\n",
    "requirements-dev.txt": "tensorflow==2.10.0\n",
    "requirements/base.txt": "tensorflow==2.10.0\n",
    "requirements.in": "tensorflow==2.10.0\n",
    "gpu_requirements.txt": "tensorflow==2.10.0\n",
    "constraints.txt": "numpy<2\ntensorflow==2.10.0\n",
    "Dockerfile.gpu": "FROM tensorflow/tensorflow:2.10.0-gpu\n",
    "tools/pip_package/setup.py": 'setup(install_requires=["tensorflow==2.10.0"])\n',
    "pip_package/setup.py": 'setup(install_requires=["tensorflow==2.10.0"])\n',
    "docker/Dockerfile": "FROM tensorflow/tensorflow:2.10.0\n",
    "x-1.0.dist-info/METADATA": "Name: x\nRequires-Dist: tensorflow==2.10.0; extra == 'all'\n\nProse.\n",
    "PKG-INFO": "Name: x\nRequires-Dist: tensorflow (==2.10.0)\n",
    "setup.sh": "if true; then\n  python3 -m pip install tensorflow==2.10.0\nfi\n",
}


PKG_INFO = "Name: x\r\nRequires-Dist: numpy\r\nRequires-Dist: tensorflow !=2.10.0.*,<2.16,>=2.8.4\r\n"


@pytest.mark.parametrize("name", PINNED)
def test_a_folder_with_such_a_file_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "README.md").touch()
    assert not may_hold_pins(tmp_path) and keras_from_project(tmp_path) is None
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_text(PINNED[name])
    found = keras_from_project(tmp_path)
    assert found is not None and found.package == "tf.keras" and found.version.startswith("2.10")


@pytest.mark.parametrize(
    ("files", "release"),
    [
        ({"setup.py": 'setup(install_requires=["tensorflow>=2.0"])', "environment.yml": "- tensorflow=2.1.0"}, "2.1"),
        (
            {"pyproject.toml": '[project]\ndependencies = ["tensorflow>=2.4"]', "requirements.txt": "tensorflow<2.9"},
            "2.8",
        ),
        ({"requirements-old.txt": "tensorflow==2.8.0", "requirements.txt": "tensorflow==2.10.0"}, "2.10.0"),
        ({"requirements.txt": "keras==2.13.1\ntensorflow==2.4.2"}, "2.4.2"),
        ({"requirements.txt": "keras==2.9.0\ntensorflow>=2.4,<2.11"}, "2.10"),
        ({"requirements.txt": "keras==2.13.1"}, "2.13.1"),
        ({"requirements-old.txt": "tensorflow==2.8.0", "requirements.txt": "tensorflow==2.17.0"}, None),
        ({"requirements.txt": "tensorflow==2.8.0; os_name == 'nt'\ntensorflow==2.17.0"}, None),
        ({"PKG-INFO": "Name: x\n\nRequires-Dist: tensorflow==2.8.0\n"}, None),
        ({"x-1.dist-info/METADATA": PKG_INFO, "y-1.dist-info/METADATA": "Name: y\n"}, None),
        ({"x-1.dist-info/METADATA": PKG_INFO, "requirements.txt": "tensorflow<2.15"}, "2.14"),
        ({"setup.sh": "# pip install tensorflow==2.8.0"}, None),
        ({"setup.sh": "pip install tensorflow==$RELEASE"}, None),
        ({"setup.sh": "pip install tensorflow==2.8.0", "requirements.txt": "tensorflow==2.17.0"}, "2.17.0"),
    ],
)
def test_several_files_allow_what_each_allows(files: dict[str, str], release: str | None, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = keras_from_project(tmp_path)
    assert (found and found.tensorflow) == release


def test_scripts_of_no_project_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("pip install tensorflow==2.8.0\n")
    assert keras_from_project(tmp_path) is None


def test_what_cannot_be_listed_is_read(tmp_path: Path) -> None:
    assert may_hold_pins(tmp_path / "none")


def test_capitals_tell_nothing_apart(tmp_path: Path) -> None:
    """As on macOS and Windows."""
    (tmp_path / "SETUP.PY").touch()
    assert may_hold_pins(tmp_path)


@pytest.mark.parametrize(
    ("requirements", "package"),
    [
        ("tensorflow_addons==0.14.0", "tf.keras"),
        ("tensorflow-addons", "tf.keras"),
        ("tensorflow>=2.4\ntensorflow-addons>=0.16,<0.22", "tf.keras"),
        ("tensorflow>=2.16\ntensorflow-addons", "keras"),
        ("keras>=3\ntensorflow-addons", "keras"),
        ("tensorflow-datasets", None),
    ],
)
def test_tensorflow_addons_know_no_keras_3(requirements: str, package: str | None, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / ".git").mkdir()
    found = keras_from_project(tmp_path)
    assert (found and found.package) == package
    assert package != "tf.keras" or (found is not None and "addons" in found.because)


@pytest.mark.parametrize(
    ("requirements", "package"),
    [
        ("tensorflow_probability==0.22.1", "tf.keras"),
        ("tensorflow>=2.9\ntensorflow-probability>=0.17,<0.23", "tf.keras"),
        ("tensorflow-probability[tf]~=0.23.0", "tf.keras"),
        ("tensorflow>=2.16\ntensorflow-probability==0.22.1", "keras"),
        ("tensorflow-probability==0.24.0", None),
        ("tensorflow-probability>=0.20", None),
        ("tensorflow-probability", None),
    ],
)
def test_tensorflow_probability_knows_no_keras_3_before_0_24(
    requirements: str, package: str | None, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / ".git").mkdir()
    found = keras_from_project(tmp_path)
    assert (found and found.package) == package
    assert package != "tf.keras" or (found is not None and "probability" in found.because)


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ("2.0.0-beta1", "2.0.0"),
        ("2.0.0-alpha0", "2.0.0"),
        ("2.10.0rc1", "2.10.0"),
        ("2.10.0.dev20220101", "2.10.0"),
        ("2.12.0+nv23.6", "2.12.0"),
        ("2.15.0.post1", "2.15.0"),
        ("2.16.0rc0", None),
        ("2.10.*", "2.10"),
    ],
)
@pytest.mark.parametrize(
    ("name", "text"), [("requirements.txt", "tensorflow=={}"), ("README.md", "`pip install -q tensorflow-gpu=={}`")]
)
def test_what_comes_before_a_release_is_taken_for_it(
    release: str, found: str | None, name: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text.format(release), encoding="utf-8")
    keras = keras_from_project(tmp_path)
    assert keras is not None and (keras.version if keras.package == "tf.keras" else None) == found
    assert keras.because.endswith(f"=={release}")


def test_a_variable_that_doubles_itself_ends(tmp_path: Path) -> None:
    doubling = "ENV A=$A$A\n" * 60
    (tmp_path / "Dockerfile").write_text(
        f"ARG A=2.10.0\nFROM tensorflow/tensorflow:${{A}}-gpu\n{doubling}RUN echo $A\n"
    )
    found = keras_from_project(tmp_path)
    assert found is not None and found.version == "2.10.0"


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "Pipfile", "pyproject.toml", "Pipfile.lock"])
def test_a_number_that_python_does_not_read_says_nothing(name: str, tmp_path: Path) -> None:
    number = "9" * 5000
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(
        f'{{"tensorflow": {number}}}' if name == "Pipfile.lock" else f"tensorflow = {number}\n"
    )
    assert keras_from_project(tmp_path) is None


RELEASE = 'RELEASE = "2.10.0"\nOLDEST, = ("2.4",)\n'


@pytest.mark.parametrize(
    "text",
    [
        'setup(install_requires=[f"tensorflow=={RELEASE}"])',
        'FLAVOUR = "-gpu"\nsetup(install_requires=[f"tensorflow{FLAVOUR}=={RELEASE}"])',
        'setup(install_requires=["tensorflow==" + RELEASE])',
        'setup(install_requires=["tensorflow==%s" % RELEASE])',
        'setup(install_requires=["tensorflow>=%s,<%s" % (RELEASE, "2.11")])',
        'setup(extras_require={"tf": ["tensorflow=={}".format(RELEASE)]})',
        'NAMES = f"tensorflow~={RELEASE}"\nsetup(install_requires=NAMES)',
    ],
)
def test_setup_py_puts_a_requirement_together(text: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "setup.py").write_text(RELEASE + text)
    found = keras_from_project(tmp_path)
    assert found is not None and found.package == "tf.keras" and found.version.startswith("2.10"), found


@pytest.mark.parametrize(
    "text",
    [
        'setup(install_requires=[f"tensorflow>={OLDEST}"])',  # a name that stands for nothing that is known
        'RELEASE = "2.16.1"\nsetup(install_requires=[f"tensorflow=={RELEASE}"])',  # said twice
        'setup(install_requires=[f"tensorflow=={RELEASE:>6}"])',
        'setup(install_requires=["tensorflow=={0}".format(RELEASE)])',
        'setup(install_requires=["tensorflow"])',
    ],
)
def test_what_is_not_certain_in_setup_py_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "setup.py").write_text(RELEASE + text)
    assert keras_from_project(tmp_path) is None


@pytest.mark.parametrize(
    ("image", "release"),
    [("nvcr.io/nvidia/tensorflow:22.03-tf2-py3", "2.8"), ("tensorflow/tensorflow:2.6.1-gpu", "2.6.1"), ("x:1", "2.15")],
)
def test_an_image_says_more_than_tensorflow_addons(image: str, release: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow-addons>=0.13.0\n", encoding="utf-8")
    (tmp_path / "Dockerfile").write_text(f"ARG BASE={image}\nFROM ${{BASE}}\n", encoding="utf-8")
    found = keras_from_project(tmp_path)
    assert found is not None and (found.package, found.version) == ("tf.keras", release)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "tensorflow" + "[" * 5000),
        ("requirements.txt", "tensorflow>=" + "1,>=" * 20_000 + "1"),
        ("requirements.txt", "tensorflow==" + "9" * 5000),
        ("requirements.txt", "keras" + " " * 100_000 + "=="),
        ("requirements.txt", "".join(f"tensorflow>=0.{number}\n" for number in range(20_000))),
        ("Pipfile.lock", '{"default": {"tensorflow": {"version": "==%s"}}}' % ("9" * 5000)),
        ("Dockerfile", "RUN pip install " + "tensorflow!=2.1 " * 20_000),
        ("uv.lock", '[[package]]\nname = "tensorflow"\nversion = "%s1"\n' % ("1." * 3000)),
    ],
)
def test_a_file_that_nobody_wrote_by_hand_says_nothing_and_takes_no_time(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    started = time.process_time()
    assert keras_from_project(tmp_path) is None
    assert time.process_time() - started < 10
