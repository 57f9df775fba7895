"""Modules that Keras 2 has and Keras 3 has not: whoever imports one of them needs Keras 2.

All that import in Keras 2.10 or 2.15, and of which none does in Keras 3.15. `keras.api` is left out, which the first
releases of Keras 3 had."""

from __future__ import annotations

import re
from collections.abc import Iterator

_OF_KERAS_2 = {
    "keras": (
        "__internal__ backend_config callbacks_v1 distribute dtensor engine estimator experimental "
        "feature_column integration_test legacy_tf_layers premade_models protobuf testing_infra tests"
    ),
    "keras.applications": "regnet resnet_rs",
    "keras.backend": "experimental",
    "keras.callbacks": "experimental",
    "keras.datasets": "cifar",
    "keras.initializers": "initializers_v1 initializers_v2",
    "keras.layers": (
        "activation attention convolutional core experimental kernelized locally_connected merging noise "
        "normalization pooling preprocessing regularization reshaping rnn serialization"
    ),
    "keras.metrics": "base_metric experimental metrics",
    "keras.mixed_precision": "autocast_variable device_compatibility_check loss_scale_optimizer policy test_util",
    "keras.models": "cloning experimental sharpness_aware_minimization",
    "keras.optimizers": "experimental legacy_learning_rate_decay optimizer_experimental optimizer_v1 optimizer_v2",
    "keras.optimizers.legacy": "adadelta adagrad adam adamax ftrl nadam optimizer rmsprop sgd",
    "keras.optimizers.schedules": "learning_rate_schedule",
    "keras.preprocessing": "text",
    "keras.saving": (
        "experimental hdf5_format model_config pickle_utils save saved_model saved_model_experimental "
        "saving_utils utils_v1"
    ),
    "keras.utils": (
        "audio_dataset control_flow_util conv_utils data_utils dataset_creator dataset_utils experimental "
        "generic_utils image_dataset image_utils io_utils keras_logging kernelized_utils kpl_test_utils "
        "layer_utils losses_utils metrics_utils mode_keys np_utils object_identity text_dataset tf_contextlib "
        "tf_inspect tf_utils timeseries_dataset traceback_utils version_utils vis_utils"
    ),
    "keras.src": (
        "backend_config callbacks_v1 distribute dtensor engine estimator feature_column legacy_tf_layers "
        "mixed_precision premade_models preprocessing testing_infra"
    ),
    "keras.wrappers": "scikit_learn",
}
_OF_KERAS_2_IN_TENSORFLOW = {
    "tensorflow.keras": "dtensor estimator experimental wrappers",
    "tensorflow.keras.backend": "experimental",
    "tensorflow.keras.callbacks": "experimental",
    "tensorflow.keras.layers": "experimental",
    "tensorflow.keras.metrics": "experimental",
    "tensorflow.keras.models": "experimental",
    "tensorflow.keras.optimizers": "experimental",
    "tensorflow.keras.utils": "experimental",
}
_PACKAGES = ("tensorflow_addons", "tensorflow_ranking")  # neither can be imported beside Keras 3 (0.23, 0.5)
_MODULES = frozenset(
    f"{package}.{name}"
    for table in (_OF_KERAS_2, _OF_KERAS_2_IN_TENSORFLOW)
    for package, names in table.items()
    for name in names.split()
)
_IMPORTS = re.compile(
    r"^[^\S\n]*(?:import\s+(?P<module>(?:keras|tensorflow)[\w.]+)"
    r"|from\s+(?P<package>(?:keras|tensorflow)[\w.]*)\s+import\s+(?P<names>.+))",
    re.MULTILINE,
)


def may_import_keras_2(text: str) -> bool:
    """Whether a line of this text imports one of them, perhaps under a condition."""
    return any(is_of_keras_2(name) for match in _IMPORTS.finditer(text) for name in _imported_names(match))


def _imported_names(match: re.Match[str]) -> Iterator[str]:
    yield match["module"] or match["package"]
    if match["names"]:
        yield from (f"{match['package']}.{name}" for name in re.findall(r"\w+", match["names"].partition("#")[0]))


def is_of_keras_2(name: str) -> bool:
    """Whether a dotted name is one of these modules, or stands in one."""
    parts = name.split(".")
    return parts[0] in _PACKAGES or any(".".join(parts[:count]) in _MODULES for count in range(2, len(parts) + 1))


def last_tensorflow_with(module: str) -> tuple[int, ...]:
    """Whose Keras has one of these modules: those of mixed precision went to `keras.src` in 2.13."""
    return (2, 12) if module.startswith("keras.mixed_precision.") else (2, 15)
