"""Remedies for errors that no rule explains: missing parts, mismatched versions, too little memory."""

from __future__ import annotations

import re

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.semantics.live.errors.dtype_errors import (
    NUMPY_NAMES,
    float32_given_for_half,
    half_given_for_float32,
    mismatch_from_failure,
    mismatch_of_precisions,
)
from mpdoctor.semantics.live.errors.missing_modules import (
    OTHER_PYTHON,
    package_of_project,
    remedy_of_missing_module,
    remedy_of_missing_name,
)

# (class of the exception, words in its text, what to do; an empty pattern fits whatever stands there)
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"",
        r"URL fetch failure on (?P<what>[^\s:]+://[^\s:]+)|Max retries exceeded with url|[Nn]ame or service not known"
        r"|Temporary failure in name resolution|getaddrinfo failed|Connection refused|Network is unreachable"
        r"|Error executing an HTTP request|Could not resolve host",
        "The program downloads something, but this machine cannot reach the network. Download it on a machine that "
        "can, and give the program the file.",
    ),
    (
        r"",
        r"OOM when allocating tensor|Unable to allocate .+ for an array|CUDA_ERROR_OUT_OF_MEMORY|[Oo]ut of memory",
        "There is not enough memory: use a smaller batch or a smaller model, or --device cpu if the GPU is full.",
    ),
    (
        r"^(?:ResourceExhaustedError|MemoryError)$",
        r"",
        "There is not enough memory: use a smaller batch or a smaller model.",
    ),
    (
        r"",
        r"Trying to access resource .+ located in device .+ from device"
        r"|merge_call called while defining a new graph or a tf\.function",
        "Replicas cannot wait for each other inside a tf.function of their own, nor inside a step that XLA compiles: "
        "remove `@tf.function` from the function passed to `strategy.run`, write `jit_compile=False` in compile(), or "
        "train on one device.",
    ),
    (
        r"^AttributeError$",
        r"'LossScaleOptimizer\w*' object has no attribute '_model_variables_moving_average'",
        "The LossScaleOptimizer of Keras 2.10 cannot end a fit() with `use_ema=True`: leave it out, or train with "
        "TensorFlow 2.15, where it can.",
    ),
    (
        r"",
        r"not (?:yet )?supported in Keras 3|is Keras 3, but this is not yet supported|install the backwards-compatible "
        r"`?tf[-_]keras|requires? `?tf[-_]keras",
        "The program is written for Keras 2: install tf_keras and set TF_USE_LEGACY_KERAS=1 before TensorFlow is "
        "imported.",
    ),
    (
        r"^ImportError$",
        r"attempted relative import",
        "A relative import works only inside a package: the file has to be in a folder whose name is a valid Python "
        "name, and the packages that it imports have to be there as well.",
    ),
    (
        r"^ImportError$",
        r"cannot open shared object file|DLL load failed|undefined symbol|[Ss]ymbol not found|not built"
        r"|incompatible architecture|wrong ELF class|multiarray failed to import|compiled (?:using|against)",
        "A compiled module cannot be loaded: install its package anew, in a release for this Python and for the other "
        "packages here, or name another Python with --python.",
    ),
    (
        r"^ValueError$",
        r"Could not interpret optimizer identifier: <(?:keras|tf_keras)\.",
        "The model is made by one Keras and the optimizer by another: tf.keras (or keras) and tf_keras. Some packages "
        "make their models with tf_keras where it is installed: then take the optimizer and the dtype policy from "
        "`import tf_keras`, too.",
    ),
    (
        r"^ImportError$",
        r"^Keras cannot be imported\. Check that it is installed",
        "Install the Keras that TensorFlow looks for: tf_keras, in TensorFlow's version, if TF_USE_LEGACY_KERAS=1 is "
        "set (some packages set it when they are imported), else keras.",
    ),
    (
        r"^(?:ModuleNotFoundError|ImportError)$",
        r"",
        f"Install the missing module {OTHER_PYTHON}.",
    ),
    (
        r"",
        r"array type float16 is unsupported in linalg",
        'NumPy\'s linear algebra does not take float16: give it float32, `np.asarray(…, "float32")`.',
    ),
    (
        r"",
        r"data type <class 'ml_dtypes\.bfloat16'> not inexact",
        "`np.finfo` does not know bfloat16: ask `ml_dtypes.finfo(…)`, which knows float16 and float32, too.",
    ),
    (
        r"",
        r"Unsupported dtype dtype\('float16'\) for ",
        'NumPy draws no float16 numbers: draw float32 and cast, `….astype("float16")`.',
    ),
    (
        r"^FileNotFoundError$",
        r"",
        "Run the check from the folder that the script is run from, or give it the path after `--`.",
    ),
    (
        r"^NotImplementedError$",
        r"override `?get_config",
        "Give the class a `get_config` that returns `**super().get_config()` and the arguments of its `__init__`, or "
        "save only the weights: `save_weights_only=True`.",
    ),
    (
        r"",
        r"No such file or directory|No file or directory found at|^File not found: filepath=|SavedModel file does not "
        r"exist|errno = 2",
        "Run the check from the folder that the script is run from, or give it the path after `--`.",
    ),
)


_OF_ANOTHER_TENSORFLOW = (
    r"has no attribute '_register_wrapper_optimizer_cls'|has no attribute 'register_loss_scale_wrapper'"
)


def _keras_that_fits(keras: Keras) -> str | None:
    """A sentence on which keras to install; None where the releases of keras and TensorFlow fit."""
    release, wanted = (".".join(version.split(".")[:2]) for version in (keras.version, keras.tensorflow))
    if not release or not wanted:
        return "The installed keras is made for another TensorFlow: install the keras with TensorFlow's version number."
    if release == wanted or keras.is_keras3:
        return None
    return f"keras {release} is made for another TensorFlow than {wanted}: `pip install keras=={wanted}.*`."


# What only a LossScaleOptimizer has: in Keras 2, and in both.
_BARE = re.compile(
    r"(?:^|AttributeError: )'(?:Ada\w+|Nadam|SGD|RMSprop|Ftrl|Lion|Lamb|Muon)' object has no attribute '"
    r"(?:(?P<keras2>get_scaled_loss|get_unscaled_gradients|loss_scale)|dynamic_scale|inner_optimizer|initial_scale)'"
)


def _remedy_of_bare_optimizer(failure: FailureFacts) -> str | None:
    """The remedy where an optimizer that nothing wraps is asked for what a LossScaleOptimizer has."""
    asked = _BARE.search(failure.said_by_library)
    if asked is None or (asked["keras2"] and failure.keras is not None and failure.keras.is_keras3):
        return None
    return (
        "Only a LossScaleOptimizer has this, and compile() makes one only for fit(), and only for a model whose own "
        "policy is mixed_float16. Wrap the optimizer where it is made, `LossScaleOptimizer(optimizer)`, or ask "
        "`isinstance(optimizer, LossScaleOptimizer)` first if the program is to run in float32 as well."
    )


def _remedy_of_numpy_function(said: str) -> str | None:
    """The remedy for a function in NumPy whose values have another dtype than the tf.numpy_function around it
    announces."""
    match = re.search(r"value returned by pyfunc_\d+ is (\w+), but expects (\w+)", said)
    if match is None:
        return None
    given, announced = (NUMPY_NAMES.get(name, name) for name in match.groups())
    return (
        f"A function that `tf.numpy_function` or `tf.py_function` calls returns {given}, where its `Tout` says "
        f"{announced}: return `….astype(np.{announced})`, or write `tf.{given}` in `Tout` and cast behind it."
    )


def _remedy_of_float32_for_half(failure: FailureFacts) -> str | None:
    """The remedy for a float32 value that was to become a 16-bit one: in a variable that the program made, as a
    rule."""
    half = float32_given_for_half(failure)
    if half is None:
        return None
    if ".assign" not in failure.failing_line:
        return f"A float32 tensor stands where {half} is wanted: cast it, `tf.cast(value, tf.{half})`."
    return (
        f"The variable is {half}, and what is assigned to it float32: make it a float32 variable, "
        "`tf.Variable(tf.zeros(shape, tf.float32))`. Weights and their gradients are float32 under a mixed policy, and "
        f"what is kept over many steps loses digits in {half}."
    )


# What a `tf.DType` has, and its name, a text, has not.
_OF_A_DTYPE = (
    "as_numpy_dtype|base_dtype|is_(?:bool|compatible_with|complex|floating|integer)|limits|max|min|name|real_dtype|size"
)


def _remedy_of_dtype_in_text(failure: FailureFacts) -> str | None:
    """The remedy where the dtype of a layer, or in Keras 3 of its weight or its symbolic output, is taken for a
    `tf.DType` (measured in 2.4, 2.10, 2.15, tf_keras 2.21 and Keras 3.15)."""
    refused = re.search(rf"^'str' object has no attribute '({_OF_A_DTYPE})'", failure.said_by_library)
    written = refused and re.search(rf"([\w.\[\]]+\.(?:\w+_)?dtype)\.{refused[1]}\b", failure.failing_line)
    if refused is None or not written:
        return None
    return f'`{written[1]}` is a text here, such as "float16": write `tf.as_dtype({written[1]}).{refused[1]}`.'


def _remedy_of_no_gradients(failure: FailureFacts) -> str | None:
    """The remedy where the LossScaleOptimizer of tf_keras and of TensorFlow 2.15 takes apart the pairs of gradients and
    weights, and there are none; a bare optimizer does nothing then (measured there; 2.4, 2.10 and Keras 3 pass)."""
    unpacked = re.search(r"not enough values to unpack \(expected 2, got 0\)\s*$", failure.said_by_library)
    if unpacked is None or failure.inside not in ("optimizer", "loss scaling"):
        return None
    return (
        "The LossScaleOptimizer is given no gradients: no weight of the model is trainable. Set `trainable = True` for "
        "the layers that are to learn, before compile()."
    )


def _remedy_of_refused_result(failure: FailureFacts) -> str | None:
    """The remedy where the result of a constraint cannot be assigned to its weight: it is 16-bit, and that float32."""
    is_half = half_given_for_float32(failure) is not None
    return "Return it in the weight's own dtype: `tf.cast(…, w.dtype)`." if is_half else None


def _is_of_optimizer(failure: FailureFacts) -> bool:
    """Whether a library's optimizer raised the error, on a line of the program that only asks for the update."""
    asks = re.search(rf"\.(?:{'|'.join((*APPLYING, 'minimize', *FITTING))})\(", failure.failing_line)
    return failure.inside == "optimizer" and not failure.raised_by_program and asks is not None


def _remedy_of_mismatch(failure: FailureFacts) -> str | None:
    """The remedy for an operation that is given two dtypes."""
    mismatch = mismatch_from_failure(failure)
    if mismatch is None:
        return None
    if _is_of_optimizer(failure) and mismatch_of_precisions(failure) is not None:
        return (
            f"The optimizer combines two dtypes itself: {mismatch.words}. Keep all weights in float32, as `add_weight` "
            "makes them without a `dtype`, and give it each gradient in the dtype of its weight."
        )
    return f"Two dtypes are combined: {mismatch.words}. Cast one to the other's: `tf.cast(value, other.dtype)`."


def _known_remedy(failure: FailureFacts) -> str | None:
    """The remedy that the table has for such an error. None for an error that the program raises itself, which says in
    its own words what is wrong; unless it lacks a module or a file, as any program may."""
    if failure.raised_by_program and failure.exception not in ("ImportError", "FileNotFoundError"):
        return None
    said = failure.said_by_library
    known = (entry for entry in _KNOWN if re.search(entry[0], failure.exception) and re.search(entry[1], said))
    return next((remedy for _, _, remedy in known), None)


def remedy_from_failure(failure: FailureFacts) -> str | None:
    """The remedy for the error; None for an error of no known kind."""
    if failure.part is not None and failure.part.result_refused:
        return _remedy_of_refused_result(failure)
    of_dtypes = _remedy_of_float32_for_half(failure) or _remedy_of_mismatch(failure)
    if of_dtypes is not None:
        return of_dtypes
    if re.search(_OF_ANOTHER_TENSORFLOW, failure.said_by_library):
        return _keras_that_fits(failure.keras or Keras())
    certain = (
        package_of_project(failure)
        or remedy_of_missing_module(failure)
        or remedy_of_missing_name(failure)
        or _remedy_of_bare_optimizer(failure)
        or _remedy_of_numpy_function(failure.said_by_library)
        or _remedy_of_dtype_in_text(failure)
        or _remedy_of_no_gradients(failure)
    )
    if certain is not None:
        return certain
    if failure.is_of_notebook and failure.exception == "FileNotFoundError":
        return "Put the file where the notebook looks for it: its cells run in its own folder."
    return _known_remedy(failure)
