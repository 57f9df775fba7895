"""Makes up data for a model without any: features from its input specs, labels from its loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.keras.private_state import input_structure, layers_inside, output_structure, specs_of_calls

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel
    from mpdoctor.examiner.keras.compiled_losses import LossNames


SAMPLES = 256
MOST_NUMBERS = 2**28  # that all samples hold together, features and labels: 1 GiB of float32
UNKNOWN_LENGTH = 16  # of a dimension that the model leaves open: a sequence, an image's side
MADE_UP_LOSS = "mse"


def data_from_specs(
    keras: KerasAdapter, model: KerasModel, loss: LossNames, most_samples: int = SAMPLES
) -> tuple[object, object]:
    """(features, labels) of SAMPLES samples, fewer of very large ones: integers within the smallest Embedding, floats
    standard normal. `loss`: its name, or those of the outputs' losses, in order or by the output.

    Raises Unusable where the model has no input specs (subclassed and never built), wants strings, or numbers beyond
    MOST_NUMBERS for a single sample."""
    inputs, outputs = _specs(model, "inputs"), _specs(model, "outputs")
    called_with = specs_of_calls(model)
    if not inputs and called_with is not None:
        return _data_from_calls(model, called_with, loss, most_samples)
    if not inputs or not outputs:
        raise Unusable(
            "the model has no input shapes to make data from: build it with keras.Input, or examine the script that "
            "trains it"
        )
    generator, samples = tf.random.Generator.from_seed(0), min(most_samples, _samples([*inputs, *outputs]))
    features = [_feature(generator, spec, samples, _smallest_vocabulary(model)) for spec in inputs]
    named = _names_of_outputs(model, outputs)
    losses = _losses_of_outputs(loss, named or list(getattr(model, "output_names", ())), len(outputs))
    labels = [_label(generator, spec, samples, name) for spec, name in zip(outputs, losses)]
    given_labels = dict(zip(named, labels)) if named else _single(labels)
    return _as_given(model, inputs, features), given_labels


def specs_of_features(model: KerasModel, samples: int) -> Any:
    """The features of a batch as TensorSpecs; None where none can be made."""
    inputs, called_with = _specs(model, "inputs"), specs_of_calls(model)
    if inputs:
        return _as_given(model, inputs, [_spec_of(spec, samples) for spec in inputs])
    if called_with is None:
        return None
    return tf.nest.map_structure(lambda spec: _spec_of(_before_autocast(spec), samples), called_with)


def _spec_of(spec: tf.TensorSpec, samples: int) -> tf.TensorSpec:
    return tf.TensorSpec(_shape(spec, samples), tf.as_dtype(spec.dtype))


def _as_given(model: KerasModel, inputs: list[tf.TensorSpec], features: list[Any]) -> Any:
    """One for each input, in the structure in which the model takes them."""
    names = getattr(model, "input_names", None) or [spec.name for spec in inputs]
    if isinstance(input_structure(model), dict):
        return dict(zip(names, features))
    return _single(features)


def _names_of_outputs(model: KerasModel, outputs: list[tf.TensorSpec]) -> list[str]:
    """The names of the outputs, in their order, if the model puts out a dictionary; else []."""
    structure = output_structure(model)
    if not isinstance(structure, dict):
        return []
    names = [name for spec in outputs for name, tensor in structure.items() if tensor is spec]
    return names if len(names) == len(outputs) else []


def _losses_of_outputs(loss: LossNames, names: list[str], count: int) -> list[str]:
    """The name of the loss of each output; "" for an output without one."""
    if isinstance(loss, str):
        return [loss] * count
    losses = [loss.get(name, "") for name in names] if isinstance(loss, dict) else loss
    return losses if len(losses) == count else [""] * count


def _data_from_calls(model: KerasModel, specs: object, loss: LossNames, most_samples: int) -> tuple[object, object]:
    """Like `data_from_specs`, for a subclassed model of Keras 2: it remembers the inputs of its calls, and is called
    for its outputs."""
    generator, samples = tf.random.Generator.from_seed(0), min(most_samples, _samples(tf.nest.flatten(specs)))
    vocabulary = _smallest_vocabulary(model)
    features = tf.nest.map_structure(
        lambda spec: _feature(generator, _before_autocast(spec), samples, vocabulary), specs
    )
    outputs = model(tf.nest.map_structure(lambda tensor: tensor[:2], features), training=False)
    if isinstance(loss, dict) and isinstance(outputs, dict):
        return features, {
            name: _label(generator, tensor, samples, loss.get(name, "")) for name, tensor in outputs.items()
        }
    if isinstance(loss, list) and isinstance(outputs, (list, tuple)) and len(loss) == len(outputs):
        return features, [_label(generator, tensor, samples, name) for tensor, name in zip(outputs, loss)]
    name = loss if isinstance(loss, str) else ""
    return features, tf.nest.map_structure(lambda tensor: _label(generator, tensor, samples, name), outputs)


def _before_autocast(spec: tf.TensorSpec) -> tf.TensorSpec:
    """The spec of what a program hands over: float32, where the model remembers the autocast inputs of its layers."""
    return tf.TensorSpec(spec.shape, tf.float32) if spec.dtype in (tf.float16, tf.bfloat16) else spec


def _specs(model: KerasModel, name: str) -> list[tf.TensorSpec]:
    try:
        specs = getattr(model, name, None)
    except (AttributeError, ValueError):  # Keras refuses where a model was never built
        return []
    if isinstance(specs, dict):
        specs = list(specs.values())
    return list(specs) if isinstance(specs, (list, tuple)) else [] if specs is None else [specs]


def _feature(generator: tf.random.Generator, spec: tf.TensorSpec, samples: int, vocabulary: int | None) -> tf.Tensor:
    dtype, shape = tf.as_dtype(spec.dtype), _shape(spec, samples)
    if dtype == tf.string:
        raise Unusable("the model takes strings, and mpdoctor makes up numbers only: examine the script that trains it")
    if dtype.is_integer or (vocabulary and len(shape) == 2 and dtype.is_floating and vocabulary > 1):
        ids = generator.uniform(shape, 0, vocabulary or 2, dtype=tf.int32)
        return tf.cast(ids, dtype)
    if dtype == tf.bool:
        return generator.uniform(shape, 0, 2, dtype=tf.int32) > 0
    return tf.cast(generator.normal(shape), dtype if dtype.is_floating else tf.float32)


def _label(generator: tf.random.Generator, spec: tf.TensorSpec, samples: int, loss: str) -> tf.Tensor:
    shape = _shape(spec, samples)
    name = loss.lower()
    if "sparse" in name:
        return generator.uniform(shape[:-1], 0, max(shape[-1], 1), dtype=tf.int32)
    if "categorical" in name or "kl" in name:
        return tf.one_hot(generator.uniform(shape[:-1], 0, max(shape[-1], 1), dtype=tf.int32), shape[-1])
    if "binary" in name or "hinge" in name or "focal" in name:
        return tf.cast(generator.uniform(shape, 0, 2, dtype=tf.int32), tf.float32)
    return generator.normal(shape)


def _samples(specs: list[tf.TensorSpec]) -> int:
    """How many samples are made. Raises Unusable where a single one is too large."""
    numbers = sum(math.prod(_shape(spec, 1)) for spec in specs)
    if numbers > MOST_NUMBERS:
        raise Unusable(
            f"one sample of made-up data would hold {numbers:,} numbers, and mpdoctor makes up at most "
            f"{MOST_NUMBERS:,}: examine the script that trains the model"
        )
    return min(SAMPLES, MOST_NUMBERS // max(numbers, 1))


def _shape(spec: tf.TensorSpec, samples: int) -> list[int]:
    return [samples] + [UNKNOWN_LENGTH if size is None else int(size) for size in list(spec.shape)[1:]]


def _smallest_vocabulary(model: KerasModel) -> int | None:
    """The rows of the smallest Embedding, within which ids are drawn, so that they fit whichever layer they reach; None
    where the model has none."""
    sizes = [int(layer.input_dim) for layer in layers_inside(model) if type(layer).__name__ == "Embedding"]
    return min(sizes) if sizes else None


def _single(items: list[tf.Tensor]) -> object:
    return items[0] if len(items) == 1 else items
