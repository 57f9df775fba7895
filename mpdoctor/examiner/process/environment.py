"""Describes the user's interpreter: version, installed packages, devices."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import replace
from typing import Any

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.process import confinement
from mpdoctor.examiner.protocol.event_kinds import Environment
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.machine.environment import PACKAGES, TENSORFLOWS, VARIABLES, EnvironmentFacts, keras_of_tensorflow


def environment_of_interpreter() -> EnvironmentFacts:
    """What is known without importing TensorFlow."""
    return EnvironmentFacts(
        python=platform.python_version(),
        executable=sys.executable,
        platform=_platform(),
        packages=_packages(),
        variables=_variables(),
        saved_files=confinement.protection(),
    )


def with_tensorflow(environment: EnvironmentFacts, tensorflow: Any) -> EnvironmentFacts:
    """The environment with the imported TensorFlow in it. Its devices are not asked for yet."""
    version = str(tensorflow.__version__)
    built = tensorflow.sysconfig.get_build_info()
    return replace(
        environment,
        tensorflow=version,
        cuda=str(built.get("cuda_version", "")),
        cudnn=str(built.get("cudnn_version", "")),
        keras=keras_of_tensorflow(version, environment.packages, environment.variables),
    )


def as_of_now(environment: EnvironmentFacts, devices: tuple[DeviceFacts, ...]) -> EnvironmentFacts:
    """Variables count that were set when TensorFlow was imported, and those that the program has set since."""
    variables = {**environment.variables, **_variables()}
    keras = keras_of_tensorflow(environment.tensorflow, environment.packages, variables)
    return replace(environment, variables=variables, keras=keras, devices=devices)


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def _packages() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in (*TENSORFLOWS, *PACKAGES):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def _platform() -> str:
    """ "Ubuntu 22.04.4 LTS, Linux 6.1.0 x86_64": the distribution where the system names it."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    try:
        with open("/etc/os-release", encoding="utf-8", errors="replace") as file:
            named = re.search(r'^PRETTY_NAME="?([^"\n]+)', file.read(10000), re.MULTILINE)
    except OSError:
        return system
    return f"{named.group(1)}, {system}" if named else system


def tell_environment(events: Events) -> None:
    """Send everything about an interpreter that runs nothing else. Each part is sent before the next step, since a
    TensorFlow built for another processor dies while it is imported."""
    known = environment_of_interpreter()
    events.send(Environment(known))
    events.stage("importing TensorFlow")
    try:
        import tensorflow

        known = with_tensorflow(known, tensorflow)
        events.send(Environment(known))
        from mpdoctor.examiner.process.devices import devices_from_tensorflow

        known = replace(known, devices=devices_from_tensorflow(program_has_computed=False))
        version = str(tensorflow.keras.__version__)
        if known.keras is not None:
            known = replace(known, keras=replace(known.keras, version=version))
    except (Exception, SystemExit) as error:  # an installation breaks in as many ways as there are packages
        known = replace(known, problem=first_line(error))
    events.send(Environment(known))
