"""What the Keras at hand does of what `mpdoctor/knowledge` says, measured and printed as JSON.

`tests/live/test_knowledge.py` compares the tables with it; TF_USE_LEGACY_KERAS=1 is tf_keras. It needs TensorFlow, and
no other file of this project.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

import numpy

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# How a layer is made that wants arguments, and what it is called on where a tensor of some rank will not do.
ARGUMENTS = {
    **{f"{kind}{dims}D": "1" for kind in ("AveragePooling", "AvgPool", "MaxPooling", "MaxPool") for dims in (1, 2, 3)},
    "AlphaDropout": "0.1", "Activation": "'relu'", "CategoryEncoding": "num_tokens=4", "CenterCrop": "2, 2",
    "Conv1D": "2, 1", "Conv1DTranspose": "2, 1", "Conv2D": "2, 1", "Conv2DTranspose": "2, 1", "Conv3D": "2, 1",
    "Conv3DTranspose": "2, 1", "Convolution1D": "2, 1", "Convolution2D": "2, 1", "Convolution2DTranspose": "2, 1",
    "Convolution3D": "2, 1", "Convolution3DTranspose": "2, 1",
    "ConvLSTM1D": "2, 1", "ConvLSTM2D": "2, 1", "GroupNormalization": "1",
    "Cropping1D": "0", "Cropping2D": "0", "Cropping3D": "0", "Dense": "2",
    "DepthwiseConv1D": "1", "DepthwiseConv2D": "1", "Discretization": "bin_boundaries=[0.5]", "Dot": "axes=1",
    "Dropout": "0.1", "EinsumDense": "'ab,bc->ac', 2", "GRU": "2", "GaussianDropout": "0.1", "GaussianNoise": "0.1",
    "HashedCrossing": "4", "Hashing": "4", "InputLayer": "(4,)", "Input": "(4,)", "LSTM": "2", "Lambda": "lambda x: x",
    "LocallyConnected1D": "2, 1", "LocallyConnected2D": "2, 1", "MelSpectrogram": "", "Permute": "(1,)",
    "Normalization": "mean=3.0, variance=4.0",
    "RandomBrightness": "0.1", "RandomContrast": "0.1", "RandomCrop": "2, 2", "RandomFlip": "", "RandomHeight": "0.1",
    "RandomRotation": "0.1", "RandomTranslation": "0.1, 0.1", "RandomWidth": "0.1", "RandomZoom": "0.1",
    "RepeatVector": "2", "Rescaling": "0.5", "Reshape": "(4, 1)", "Resizing": "2, 2", "SeparableConv1D": "2, 1",
    "SeparableConv2D": "2, 1", "SeparableConvolution2D": "2, 1", "SimpleRNN": "2", "SpatialDropout1D": "0.1",
    "SpatialDropout2D": "0.1", "SpatialDropout3D": "0.1",
}  # fmt: skip
MERGING = ("Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract")

# A call of each function without 16-bit kernels, `x` a well-conditioned matrix and `v` a vector, both between 0 and 1.
CALLS = {
    "tensorflow.signal": {
        "rfft": "(v)", "rfft2d": "(x)", "rfft3d": "(c)", "dct": "(v)", "idct": "(v)", "stft": "(v, 2, 1)",
        "mfccs_from_log_mel_spectrograms": "(x)",
    },
    "tensorflow.linalg": {
        "svd": "(x)", "eigh": "(x)", "eigvalsh": "(x)", "det": "(x)", "slogdet": "(x)", "cholesky": "(x)",
        "pinv": "(x)", "logdet": "(x)", "expm": "(x)", "sqrtm": "(x)", "matrix_rank": "(x)", "lu": "(x)",
        "solve": "(x, x)", "lstsq": "(x, x)", "triangular_solve": "(x, x)", "eig": "(x)", "qr": "(x)", "inv": "(x)",
    },
    "tensorflow.math": {
        "betainc": "(v, v, v)", "zeta": "(v + 2, v)", "polygamma": "(v + 1, v)", "igamma": "(v, v)",
        "igammac": "(v, v)", "ndtri": "(v)", "erfinv": "(v)",
    },
    "tensorflow": {"complex": "(v, v)", "histogram_fixed_width": "(v, v[:2] * 0 + [0, 1], 4)"},
    "tensorflow.nn": {
        "fractional_max_pool": "(p, [1, 1.5, 1.5, 1], seed=1)", "fractional_avg_pool": "(p, [1, 1.5, 1.5, 1], seed=1)",
    },
    "tensorflow.image": {"combined_non_max_suppression": "(b, s, 1, 1)"},
    "keras.ops": {
        "fft": "((x, x))", "fft2": "((x, x))", "ifft2": "((x, x))", "rfft": "(v)", "irfft": "((v, v))",
        "stft": "(v, 2, 1, 2)", "eig": "(x)", "svd": "(x)", "eigh": "(x)", "det": "(x)", "slogdet": "(x)",
        "cholesky": "(x)", "solve": "(x, x)", "solve_triangular": "(x, x)", "lstsq": "(x, x)", "lu_factor": "(x)",
        "qr": "(x)", "inv": "(x)",
    },
}  # fmt: skip


def layer_of(keras, name):
    """A new layer under the policy that is set. Raises whatever its constructor does."""
    return eval(f"make({ARGUMENTS.get(name, '')})", {"make": getattr(keras.layers, name)})  # of the table above


def called(keras, tf, name):
    """(the layer, what it gave) for the first rank of input that it takes; None where it takes none."""
    for shape in ((2, 4), (2, 4, 4), (2, 4, 4, 3), (2, 4, 4, 4, 3)):
        layer = layer_of(keras, name)
        tensor = tf.ones(shape)
        try:
            return layer, layer([tensor, tensor] if name in MERGING else tensor)
        except Exception:  # of this rank
            continue
    return None


def measured_layers(keras, tf, names):
    """{name: [how many numbers it learns, dtype of its output under mixed_float16]}, None where it takes no tensor."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    found = {}
    for name in names:
        if not hasattr(keras.layers, name):
            continue
        done = called(keras, tf, name)
        if done is not None:
            layer, output = done
            weights = getattr(layer, "trainable_weights", [])
            found[name] = [sum(int(tf.size(weight)) for weight in weights), str(getattr(output, "dtype", ""))]
    keras.mixed_precision.set_global_policy("float32")
    return found


def measured_calls(keras, tf):
    """{name: {dtype: None, or the error's name and text}} of functions on this machine's CPU."""
    found = {}
    for place, calls in CALLS.items():
        root, _, path = place.partition(".")
        module = {"tensorflow": tf, "keras": keras}[root]
        for attribute in path.split(".") if path else ():
            module = getattr(module, attribute, None)
        for name, arguments in calls.items():
            if hasattr(module, name):
                found[f"{place}.{name}"] = {dtype: error_of(tf, getattr(module, name), arguments, dtype)
                                            for dtype in ("float32", "float16", "bfloat16")}  # fmt: skip
    return found


def error_of(tf, function, arguments, dtype):
    x = tf.cast([[2.0, 0.5], [0.5, 2.0]], dtype)
    given = {"x": x, "v": tf.cast([0.25, 0.5, 0.75, 0.5], dtype), "c": tf.ones((2, 2, 2), dtype)}
    given.update(p=tf.ones((1, 4, 4, 1), dtype), b=tf.ones((1, 2, 1, 4), dtype), s=tf.ones((1, 2, 1), dtype))
    try:
        with tf.device("CPU"):
            eval(f"function{arguments}", {"function": function, **given})  # of the table above
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def measured_wrapper(keras):
    wrapper = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    names = ("get_scaled_loss", "get_unscaled_gradients", "minimize", "apply_gradients", "apply", "scale_loss")
    try:
        _ = wrapper.no_such_name
    except AttributeError as error:
        lacks = str(error)
    return {"has": [name for name in names if hasattr(wrapper, name)], "lacks": lacks}


def measured_policies(keras, names):
    def is_policy(name):
        try:
            keras.mixed_precision.Policy(name)
        except Exception:
            return False
        return True

    return [name for name in names if is_policy(name)]


def measured_names(keras, tf, names):
    """{name: identities of the object and of the classes that it is made of}, of the names that there are."""
    found = {}
    for name in names:
        root, *parts = name.split(".")
        value = {"tensorflow": tf, "keras": keras, "numpy": numpy}[root]
        for attribute in parts:
            value = getattr(value, attribute, None)
        if value is not None:
            found[name] = [id(kind) for kind in getattr(value, "__mro__", (value,))]
    return found


def measured_private(paths):
    """Those of these paths that there are below `tensorflow.python`."""
    return [path for path in paths if is_there("tensorflow.python." + path.rstrip("."))]


def is_there(path):
    place, _, name = path.rpartition(".")
    try:
        importlib.import_module(path)
    except ImportError:
        return place != "tensorflow" and is_there(place) and hasattr(importlib.import_module(place), name)
    return True


def measured_metrics(keras, tf, names):
    """{name: the error's name and text where it is given 16-bit predictions, or None}."""
    found = {}
    for name in names:
        metric = getattr(keras.metrics, name)
        true = tf.constant([1, 0]) if "parse" in name else tf.constant([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        predicted = tf.cast([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]], "float16")
        try:
            metric(k=1)(true, predicted) if isinstance(metric, type) else metric(true, predicted, k=1)
            found[name] = None
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def main():
    import tensorflow as tf

    asked = json.load(sys.stdin)
    keras = tf.keras
    json.dump(
        {
            "layers": measured_layers(keras, tf, asked["layers"]),
            "calls": measured_calls(keras, tf),
            "wrapper": measured_wrapper(keras),
            "policies": measured_policies(keras, asked["policies"]),
            "names": measured_names(keras, tf, asked["names"]),
            "private": measured_private(asked["private"]),
            "metrics": measured_metrics(keras, tf, asked["metrics"]),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
