"""The environment in the order in which TensorFlow's bug template asks for it, and then the rest.

https://github.com/tensorflow/tensorflow/blob/master/.github/ISSUE_TEMPLATE/tensorflow_issue_template.yaml
"""

from __future__ import annotations

from collections.abc import Mapping

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.text.style import Style
from mpdoctor.reporters.text.targets import judged_by

# What the template asks for, and the labels under which the environment has it.
ASKED = {
    "TensorFlow version": ("TensorFlow", "tensorflow"),
    "Custom code": (),
    "OS platform and distribution": ("System",),
    "Python version": ("Python",),
    "CUDA/cuDNN version": ("CUDA", "cuDNN"),
}
NO_GPU = "GPU"  # GPUs that are there are numbered
KERAS = ("tf.keras", "Keras", "keras", "tf_keras")


def rows_from_environment(diagnosis: Diagnosis, look: Style) -> list[tuple[str, str]]:
    left = dict(diagnosis.environment)
    pythons = dict.fromkeys(target.python for target in diagnosis.targets if target.python)
    answers = {question: _take_values(left, labels) for question, labels in ASKED.items()}
    answers["Custom code"] = "yes"  # that is what mpdoctor examines
    answers["Python version"] = answers["Python version"] or ", ".join(pythons)
    answers["GPU model"] = left.pop(NO_GPU, "") or _gpus(left)
    judged = ", ".join(dict.fromkeys(judged_by(diagnosis.targets)))
    answers["Keras in use"] = next((left.pop(label) for label in KERAS if label in left), judged)
    rows = [("mpdoctor", diagnosis.version), *answers.items(), *sorted(left.items())]
    return [(look.name(label, 60), look.name(text, 300)) for label, text in rows if text]


def _take_values(left: dict[str, str], labels: tuple[str, ...]) -> str:
    return " / ".join(filter(None, (left.pop(label, "") for label in labels)))


def _gpus(environment: Mapping[str, str]) -> str:
    """The names of the GPUs. Their capabilities are listed with the rest."""
    named = [text for label, text in environment.items() if label.startswith("GPU") and label[3:].strip().isdigit()]
    return ", ".join(named)
