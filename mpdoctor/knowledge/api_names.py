"""Names of TensorFlow and Keras: which are the same thing, what kind of thing a class is, and what goes together.

`Api.name` keeps what the user wrote as far as it matters to a reader
("keras.mixed_precision.experimental.Policy"); `public_name` goes on to the one name that rules compare.
"""

from __future__ import annotations

from functools import lru_cache

POLICY = "keras.mixed_precision.Policy"
TAPE = "tensorflow.GradientTape"
LIBRARIES = ("tensorflow", "keras", "tf_keras")  # the packages of TensorFlow and Keras
FITTING = ("fit", "fit_generator", "train_on_batch")  # a model's methods that train it
ADDING_WEIGHTS = ("add_weight", "add_variable")  # a layer's methods
CLIPPING = ("global_clipnorm", "clipnorm", "clipvalue")  # arguments of an optimizer, which takes one of them
PROBABILITIES = ("softmax", "sigmoid")  # activations that put them out
CROSS_ENTROPIES = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
    "binary_focal_crossentropy",
    "categorical_focal_crossentropy",
)

SYNONYMS = {
    "keras.optimizers.LossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "keras.optimizers.loss_scale_optimizer.LossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "keras.mixed_precision.LossScaleOptimizerV1": "keras.mixed_precision.LossScaleOptimizer",
    "keras.mixed_precision.LossScaleOptimizerV3": "keras.mixed_precision.LossScaleOptimizer",
    "keras.mixed_precision.BaseLossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "keras.mixed_precision.set_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.set_dtype_policy": "keras.mixed_precision.set_global_policy",
    "keras.mixed_precision.set_dtype_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.dtype_policy": "keras.mixed_precision.global_policy",
    "keras.mixed_precision.dtype_policy": "keras.mixed_precision.global_policy",
    "keras.DTypePolicy": POLICY,
    "keras.mixed_precision.DTypePolicy": POLICY,
    "keras.dtype_policies.DTypePolicy": POLICY,
    "keras.dtype_policies.FloatDTypePolicy": POLICY,
    "keras.FloatDTypePolicy": POLICY,
    "keras.config.set_floatx": "keras.backend.set_floatx",
    "keras.config.floatx": "keras.backend.floatx",
    "keras.config.set_epsilon": "keras.backend.set_epsilon",
    "keras.config.epsilon": "keras.backend.epsilon",
    "keras.Layer": "keras.layers.Layer",
    "keras.layers.Input": "keras.Input",
    "keras.models.Model": "keras.Model",
    "keras.models.Sequential": "keras.Sequential",
    "keras.Functional": "keras.Model",
    "keras.models.Functional": "keras.Model",
    "keras.Optimizer": "keras.optimizers.Optimizer",
    "keras.Loss": "keras.losses.Loss",
    "keras.Metric": "keras.metrics.Metric",
    "keras.saving.load_model": "keras.models.load_model",
    "keras.saving.save_model": "keras.models.save_model",
    **{
        f"keras.{place}.{name}": f"keras.{place}.{name.lower()}"  # functions, though their names begin as a class's do
        for place in ("losses", "metrics")
        for name in ("KLD", "MAE", "MAPE", "MSE", "MSLE")
    },
    "tensorflow.half": "tensorflow.float16",
    "tensorflow.double": "tensorflow.float64",
    "numpy.half": "numpy.float16",
    "numpy.single": "numpy.float32",
    "numpy.double": "numpy.float64",
    "numpy.float_": "numpy.float64",
}

# Functions of keras.ops by TensorFlow's name for the same one, with the same arguments in the same order.
KERAS_OPS = {
    **{name: name for name in ("cast", "square", "sqrt", "abs", "maximum", "minimum", "where", "one_hot", "exp")},
    **{f"reduce_{name}": name for name in ("sum", "mean", "max", "min", "logsumexp")},
    **{f"nn.{name}": name for name in ("softmax", "log_softmax", "softplus", "sigmoid")},
    **{f"math.{name}": name for name in ("log", "log1p", "divide_no_nan", "rsqrt")},
    "clip_by_value": "clip",
}

# Below these, middle parts are only a place (a private module, or a folder that a class has moved out of).
_PLACES = (
    "keras.mixed_precision.",
    "keras.layers.",
    "keras.optimizers.",
    "keras.losses.",
    "keras.metrics.",
    "keras.callbacks.",
    "keras.models.",
)
_TENSORFLOW_PLACES = ("math", "dtypes", "linalg", "compat.v1")
_MOVED_TO_KERAS = {
    "tensorflow.initializers": "keras.initializers",
    "tensorflow.losses": "keras.losses",
    "tensorflow.metrics": "keras.metrics",
    "tensorflow.optimizers": "keras.optimizers",
}

_KINDS: dict[str, str | None] = {
    "keras.Model": "model",
    "keras.Sequential": "model",
    "keras.mixed_precision.LossScaleOptimizer": "optimizer",
    "keras.layers.InputSpec": None,
}
_KIND_BY_PLACE = {
    "layers": "layer",
    "models": "model",
    "optimizers": "optimizer",
    "losses": "loss",
    "metrics": "metric",
    "callbacks": "callback",
}
_PACKAGES = ("keras", "keras_cv", "keras_nlp", "keras_hub", "tensorflow_addons")


@lru_cache(maxsize=None)  # rules ask millions of times, about a few thousand names
def public_name(name: str) -> str:
    """The one name under which rules know this thing.

    "keras.mixed_precision.experimental.set_policy" and "keras.config.set_dtype_policy" are both
    "keras.mixed_precision.set_global_policy"; "keras.layers.core.Dense" is "keras.layers.Dense";
    "tensorflow.math.add" is "tensorflow.add". A name that is no synonym stays as it is.
    """
    name = SYNONYMS.get(name, name)
    if name.startswith("tensorflow."):
        name = _public_tensorflow_name(name)
    if name.startswith(("keras.engine.", "keras.trainers.")):
        last = name.rpartition(".")[2]
        name = {"Layer": "keras.layers.Layer", "Model": "keras.Model", "Sequential": "keras.Sequential"}.get(last, name)
    for place in _PLACES:
        if name.startswith(place):
            *middle, last = name[len(place) :].split(".")
            is_thing = place == "keras.mixed_precision." or last[:1].isupper()
            if is_thing and all(part.islower() and part != "schedules" for part in middle):
                name = place + last
    return SYNONYMS.get(name, name)


@lru_cache(maxsize=None)
def kind_of_class(name: str) -> str | None:
    """What a library class is to Keras: "layer", "model", "optimizer", "metric", "loss", "callback", or
    None."""
    name = public_name(name)
    if name in _KINDS:
        return _KINDS[name]
    *places, last = name.split(".")  # of a module itself only `last`
    is_class = len(places) == 2 and places[0] in _PACKAGES and last[:1].isupper()
    return _KIND_BY_PLACE.get(places[1]) if is_class else None


def is_layer_class(name: str) -> bool:
    """Whether it is a library's class of layers or models, which are layers to Keras."""
    return kind_of_class(name) in ("layer", "model")


def is_network(name: str) -> bool:
    """Whether it makes a whole network of keras.applications: `keras.applications.VGG19`."""
    return name.startswith("keras.applications.") and name.rpartition(".")[2][:1].isupper()


def _public_tensorflow_name(name: str) -> str:
    rest = name[len("tensorflow.") :]
    for place in _TENSORFLOW_PLACES:
        if rest.startswith(place + ".") and rest.count(".") == place.count(".") + 1:
            return "tensorflow." + rest.rpartition(".")[2]
    place, _, last = name.rpartition(".")
    return f"{_MOVED_TO_KERAS[place]}.{last}" if place in _MOVED_TO_KERAS else name
