"""Settings that a program reads from a file beside it: what the file says is known, as far as the file is."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_cache import cache_in, found_in

CODES = frozenset(("MP104", "MP107", "MP201", "MP310"))
FILES = {
    "conf/run.yaml": "train:\n  precision: mixed_fp16  # a typing error\n  scale: 0\n",
    "conf/run.json": '{"train": {"precision": "mixed_fp16"}}',
    "conf/run.toml": '[train]\nprecision = "mixed_fp16"\n',
    "right.yaml": "precision: mixed_float16\nscale: 1024.0\n",
    "twice.yaml": "precision: mixed_fp16\n",
    "package/twice.yaml": "precision: mixed_float16\n",
}
SET = 'keras.config.set_dtype_policy(settings["train"]["precision"])'
READ = {
    "opened": 'with open("conf/run.yaml") as file:\n    settings = yaml.safe_load(file)',
    "opened_inline": 'settings = yaml.load(open("conf/run.yaml"), Loader=yaml.FullLoader)',
    "text": 'settings = yaml.safe_load(Path("conf/run.yaml").read_text())',
    "json": 'settings = json.load(open("conf/run.json"))',
    "json_text": 'settings = json.loads(Path("conf", "run.json").read_text())',
    "toml": 'with Path("conf/run.toml").open("rb") as file:\n    settings = tomllib.load(file)',
    "omegaconf": 'settings = OmegaConf.load("conf/run.yaml")',
    "beside": 'settings = yaml.safe_load(open(os.path.join(os.path.dirname(__file__), "conf", "run.yaml")))',
    "beside_by_path": 'settings = yaml.safe_load((Path(__file__).resolve().parent / "conf/run.yaml").open())',
    "with_name": 'settings = yaml.safe_load(Path(__file__).with_name("conf").joinpath("run.yaml").read_text())',
    "with_suffix": 'settings = json.loads(Path("conf", "run").with_suffix(".json").read_text())',
    "decoded": 'with open("conf/run.json", "rb") as file:\n    settings = json.loads(file.read().decode("utf-8"))',
    "kept_in_an_object": (
        "class Settings:\n    def __init__(self):\n        for n, v in json.load(open('conf/run.json')).items():\n"
        "            setattr(self, n, v)\nsettings = vars(Settings())"
    ),
    "f_string": (
        'HERE = os.path.abspath(os.path.dirname(__file__))\nsettings = yaml.safe_load(open(f"{HERE}/conf/run.yaml"))'
    ),
    "function": (
        "def load(path):\n    with open(path) as file:\n        return yaml.safe_load(file)\n"
        'settings = load("conf/run.yaml")'
    ),
    "command_line": (
        'parser = argparse.ArgumentParser()\nparser.add_argument("--config", default="conf/run.yaml")\n'
        "settings = yaml.safe_load(open(parser.parse_args().config))"
    ),
    "in_a_function": 'def main():\n    settings = yaml.safe_load(open("conf/run.yaml"))\n    SET\nmain()',
}
IMPORTS = """
import argparse, json, os, tomllib
from pathlib import Path
import keras, yaml
from omegaconf import OmegaConf
"""
MODEL = """
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(3, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def codes(project: Path, **texts: str) -> list[str]:
    files = {}
    for name, text in texts.items():
        path = project / f"{name}.py"
        path.write_text(IMPORTS + text)
        files[path] = path.name
    return [found.code for found in found_in(files, cache_in(project / "cache"), codes=CODES)]


@pytest.mark.parametrize("how", READ)
def test_a_wrong_name_in_the_file_is_found(project: Path, how: str) -> None:
    text = READ[how].replace("SET", SET) if "SET" in READ[how] else f"{READ[how]}\n{SET}"
    assert codes(project, main=text) == ["MP104"]


@pytest.mark.parametrize(
    "passed_on",
    [
        "SimpleNamespace(**settings).precision",
        "Settings(**settings).precision",
        'settings.get("precision", "float32")',
        'vars(SimpleNamespace(**settings))["precision"]',
    ],
)
def test_settings_that_are_passed_on(project: Path, passed_on: str) -> None:
    made = "from dataclasses import dataclass\nfrom types import SimpleNamespace\n"
    made += '@dataclass\nclass Settings:\n    precision: str = "float32"\n    scale: float = 1.0\n'
    text = f'{made}settings = yaml.safe_load(open("right.yaml"))\nkeras.config.set_dtype_policy({passed_on})\n{MODEL}'
    assert codes(project, main=text) == ["MP201"]


def test_settings_of_a_module_that_is_imported(project: Path) -> None:
    settings = 'settings = yaml.safe_load((Path(__file__).parent / "right.yaml").read_text())\n'
    text = f'from own_settings import settings\nkeras.config.set_dtype_policy(settings["precision"])\n{MODEL}'
    assert codes(project, own_settings=settings, main=text) == ["MP201"]


@pytest.mark.parametrize(
    "text",
    [
        'settings = yaml.safe_load(open("missing.yaml"))',
        'settings = yaml.safe_load(open("../run.yaml"))',
        'settings = yaml.safe_load(open(sys.argv[1]))\nprint("conf/run.yaml")',
        'settings = yaml.safe_load(open("conf/run.yaml"))[name]',
        'settings = {"train": yaml.safe_load(open("right.yaml"))}',
    ],
)
def test_silent_where_the_setting_is_right_or_unknown(project: Path, text: str) -> None:
    assert codes(project, main=f"import sys\n{text}\n{SET}") == []


@pytest.mark.parametrize("place", ["../outside.yaml", "{above}/outside.yaml", "linked.yaml", ".git/inside.yaml"])
def test_what_lies_outside_of_the_project_is_not_read(project: Path, place: str) -> None:
    """The name of a policy is quoted: a script may not have a check quote from any file of the machine."""
    inner = project / "project"
    for directory in (inner, inner / ".git"):
        directory.mkdir()
        (directory / "inside.yaml").write_text("precision: mixed_fp16\n")
    (project / "outside.yaml").write_text("precision: mixed_fp16\n")
    (inner / "linked.yaml").symlink_to(project / "outside.yaml")
    text = 'settings = yaml.safe_load(open("{}"))\nkeras.config.set_dtype_policy(settings["precision"])\n'
    assert codes(inner, main=text.format("inside.yaml")) == ["MP104"]
    assert codes(inner, main=text.format(place.format(above=project))) == []


def test_of_two_files_that_may_be_meant_none_is_believed(project: Path) -> None:
    (project / "package" / "__init__.py").write_text("")
    text = 'settings = yaml.safe_load(open("twice.yaml"))\nkeras.config.set_dtype_policy(settings["precision"])\n'
    assert codes(project, **{"package/main": text}) == []


def test_both_arms_run_where_the_file_decides(project: Path) -> None:
    """It may say something else tomorrow."""
    (project / "amp.yaml").write_text("amp: false\nprecision: float32\n")
    text = 'settings = yaml.safe_load(open("amp.yaml"))\n'
    text += 'if settings["amp"]:\n    keras.config.set_dtype_policy("mixed_fp16")\n'
    assert codes(project, main=text) == ["MP104"]


def test_what_is_remembered_hangs_on_the_file(project: Path) -> None:
    text = f"{READ['opened']}\n{SET}"
    assert codes(project, main=text) == ["MP104"]
    (project / "conf" / "run.yaml").write_text("train:\n  precision: mixed_float16\n")
    assert codes(project, main=text) == []
    (project / "conf" / "run.yaml").unlink()
    assert codes(project, main=text) == []
    (project / "conf" / "run.yaml").write_text("train:\n  precision: half_precision\n")
    assert codes(project, main=text) == ["MP104"]


def test_what_is_remembered_hangs_on_files_of_imported_modules(project: Path) -> None:
    settings = 'settings = yaml.safe_load((Path(__file__).parent / "right.yaml").read_text())\n'
    text = f'from own_settings import settings\nkeras.config.set_dtype_policy(settings["precision"])\n{MODEL}'
    assert codes(project, own_settings=settings, main=text) == ["MP201"]
    (project / "right.yaml").write_text("precision: float32\n")
    assert codes(project, own_settings=settings, main=text) == []


HYDRA = """
import hydra
from omegaconf import DictConfig
@hydra.main(version_base=None, config_path="hydra", config_name="{name}")
def main(cfg: DictConfig):
    keras.config.set_dtype_policy({policy})
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("name", "policy", "found"),
    [
        ("plain", "cfg.precision", ["MP104"]),
        ("plain", 'cfg["precision"]', ["MP104"]),
        ("plain", "cfg.amp.precision", []),
        ("groups", "cfg.train.precision", ["MP104"]),
        ("groups", "cfg.train.eval_precision", []),
        ("groups", 'OmegaConf.to_container(cfg)["train"]["precision"]', ["MP104"]),
        ("groups", "cfg.other.precision", []),
        ("missing", "cfg.precision", []),
        ("global_package", "cfg.precision", []),
    ],
)
def test_what_hydra_gives_the_main_function(project: Path, name: str, policy: str, found: list[str]) -> None:
    held = {
        "plain.yaml": "precision: mixed_fp16\namp:\n  precision: mixed_float16\n",
        "groups.yaml": "defaults:\n  - train: small\n  - other: unknown\n  - _self_\n",
        "train/small.yaml": "precision: mixed_fp16\neval_precision: ${train.precision}\n",
        "other/unknown.yaml": "# @package _global_\nprecision: mixed_fp16\n",
        "global_package.yaml": "defaults:\n  - other@_global_: unknown\nprecision: float32\n",
    }
    for file, text in held.items():
        (project / "hydra" / file).parent.mkdir(exist_ok=True, parents=True)
        (project / "hydra" / file).write_text(text)
    assert codes(project, main=HYDRA.format(name=name, policy=policy)) == found


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("odd.yaml", "precision: !!bool maybe\n"),
        ("odd.yaml", "precision: 2001-01-01\n2001-01-02: {a: ~}\n"),
        ("odd.yaml", "precision: 1" + ":1" * 3000),  # base 60: a number of more digits than Python writes
        ("odd.toml", "precision = 0x" + "f" * 90_000),
        ("odd.json", '{"precision": 1e999}'),
        ("\\0.yaml", ""),
        ("\\ud800.yaml", ""),
    ],
)
def test_no_setting_and_no_name_of_a_file_ends_a_check(project: Path, file: str, content: str) -> None:
    if content:
        (project / file).write_text(content)
    reader = {"yaml": "yaml.safe_load", "toml": "tomllib.load", "json": "json.load"}[file.rpartition(".")[2]]
    text = f'settings = {reader}(open("{file}"))\nkeras.config.set_dtype_policy(settings["precision"])\n'
    text += 'keras.layers.Dense(settings["precision"], activation=str(settings["precision"]))\n'
    assert set(codes(project, main=f'{text}keras.config.set_dtype_policy("mixed_fp16")')) == {"MP104"}
