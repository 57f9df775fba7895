"""The optimizer in the configuration of a saved model: the wrapper that scales the loss, taken off where no layer
computes in float16.

What it costs (measured): tf_keras 2.21 restores the optimizer's state as before, from .keras and HDF5; Keras 3.15 keeps
it in another order under the wrapper, and starts anew.
"""

from __future__ import annotations

from typing import Any

WRAPPERS = frozenset(["LossScaleOptimizer", "LossScaleOptimizerV3"])


def has_loss_scaling(configuration: Any, training: Any) -> bool:
    """Whether the model was compiled with a wrapper; where Keras puts one around it by itself the file names none."""
    return _optimizers(configuration, training) != _inner_optimizers(configuration, training)


def without_loss_scaling(configuration: Any, training: Any) -> tuple[Any, Any]:
    """Both with what the wrapper holds in its place; what was given stays as it was."""
    in_configuration, in_training = _inner_optimizers(configuration, training)
    if in_configuration is not None:
        compiled = {**configuration["compile_config"], "optimizer": in_configuration}
        configuration = {**configuration, "compile_config": compiled}
    if in_training is not None:
        training = {**training, "optimizer_config": in_training}
    return configuration, training


def is_compiled(configuration: Any, training: Any) -> bool:
    """Whether the file names an optimizer."""
    return _optimizers(configuration, training) != (None, None)


def _optimizers(configuration: Any, training: Any) -> tuple[Any, Any]:
    """The optimizer's configuration as a .keras archive holds it, and as an HDF5 file does; None where there is
    none."""
    compiled = configuration.get("compile_config") if isinstance(configuration, dict) else None
    return (
        compiled.get("optimizer") if isinstance(compiled, dict) else None,
        training.get("optimizer_config") if isinstance(training, dict) else None,
    )


def _inner_optimizers(configuration: Any, training: Any) -> tuple[Any, Any]:
    in_archive, in_hdf5 = _optimizers(configuration, training)
    return _innermost(in_archive), _innermost(in_hdf5)


def _innermost(optimizer: Any) -> Any:
    while isinstance(optimizer, dict) and str(optimizer.get("class_name")).rpartition(">")[2] in WRAPPERS:
        config = optimizer.get("config")
        inner = config.get("inner_optimizer") if isinstance(config, dict) else None
        if not isinstance(inner, dict):
            break
        optimizer = inner
    return optimizer
