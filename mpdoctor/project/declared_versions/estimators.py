"""The TensorFlow with which a cloud trains other programs of a project: estimators of SageMaker and Azure ML name the
release and the folder of those programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mpdoctor.project.declared_versions.pins import Pin, pins_from_requirement

_CLOUDS = ("sagemaker", "azureml")
_ESTIMATOR = re.compile(r"\b(?P<name>HuggingFace|TensorFlow)\((?P<arguments>(?:[^()]|\([^()]*\)){0,3000})\)")
_RELEASE = {"HuggingFace": "tensorflow_version", "TensorFlow": "framework_version"}
_FOLDER = re.compile(r"\b(?:source_dir|source_directory)\s*=\s*[\"']([^\"'\n]{1,200})[\"']")


class Trained(NamedTuple):
    """A folder whose programs are trained in a cloud, and the TensorFlow there."""

    folder: Path
    pin: Pin


def trained_in_cloud(text: str, path: Path) -> Iterator[Trained]:
    """What the text of a program says. The folder is the program's own where the estimator names no other."""
    if not any(cloud in text for cloud in _CLOUDS):
        return
    for estimator in _ESTIMATOR.finditer(text):
        release = re.search(
            rf"\b{_RELEASE[estimator['name']]}\s*=\s*[\"'](\d{{1,3}}\.\d{{1,3}})(\.\d{{1,3}})?[\"']",
            estimator["arguments"],
        )
        folder = _FOLDER.search(estimator["arguments"])
        if release is not None:
            own = os.path.join(path.parent, folder[1] if folder else "")  # noqa: PTH118 - the other half is a text
            wanted = f"tensorflow=={release[1]}{release[2] or '.*'}"
            said = f"TensorFlow {release[1]}{release[2] or ''}"
            for pin in pins_from_requirement(wanted, path, "trains with", said):
                yield Trained(Path(os.path.abspath(own)), pin)  # noqa: PTH100 - links stay as they are written
