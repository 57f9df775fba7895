"""Which dtype a value names and a tensor has: what the source stage says, and what TensorFlow does."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from checking import needs_tensorflow
from described import PRELUDE, facts_of, shown

from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.dtypes.result_dtypes import DEFAULTS
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named, dtype_of, dtypes_with, policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.values import Value

KERAS2, KERAS3 = Keras("tf_keras"), Keras("keras")
TENSORFLOW_1 = Keras("tf.keras", "1.15", "1.15")

NAMED = [
    ("'float16'", "float16"),
    ("tf.float16", "float16"),
    ("tf.half", "float16"),
    ("tf.dtypes.float16", "float16"),
    ("np.float16", "float16"),
    ("np.half", "float16"),
    ("float", "float32"),
    ("np.dtype('float16')", "float16"),
    ("tf.as_dtype('bfloat16')", "bfloat16"),
    ("tf.float16.name", "float16"),
    ("tf.zeros(3).dtype", "float32"),
    ("keras.backend.floatx()", "float32"),
    ("'mixed_float16'", None),
    ("tf.float16 if amp() else tf.float32", None),
    ("'float16' if amp() else tf.half", "float16"),
    ("args.dtype", None),
    ("tf.zeros", None),
]


@pytest.mark.parametrize(("expression", "name"), NAMED)
def test_dtype_that_a_value_names(expression: str, name: str | None) -> None:
    assert dtype_named(shown(f"print({expression})")) == name


POLICIES = [
    ("'mixed_float16'", ("mixed_float16",)),
    ("mp.Policy('mixed_float16')", ("mixed_float16",)),
    ("mp.experimental.Policy('mixed_float16', loss_scale=8)", ("mixed_float16",)),
    ("keras.DTypePolicy('mixed_bfloat16')", ("mixed_bfloat16",)),
    ("mp.Policy(name='mixed_float16').name", ("mixed_float16",)),
    ("'mixed_float16' if amp() else 'float32'", ("mixed_float16", "float32")),
    ("mp.Policy('mixed_float16' if amp() else 'float32')", ()),
    ("tf.float16", ("float16",)),
    ("'mixed_fp16'", ("mixed_fp16",)),
    ("args.policy", ()),
    ("args.policy or 'mixed_float16'", ()),
    ("None", ()),
]


@pytest.mark.parametrize(("expression", "names"), POLICIES)
def test_policies_that_a_value_names(expression: str, names: tuple[str, ...]) -> None:
    assert sorted(policies_named(shown(f"print({expression})"))) == sorted(names)


# Expressions whose dtype TensorFlow is asked too, with a float16, a float32 and an int32 tensor.
SETUP = "h = tf.cast([[1., 2.]], tf.float16)\nf = tf.zeros((1, 2))\ni = tf.constant([[1, 2]])\n"
MEASURED = [
    ("h", "float16"),
    ("tf.cast(f, 'float16')", "float16"),
    ("tf.cast(f, h.dtype)", "float16"),
    ("tf.cast(x=f, dtype=tf.float16)", "float16"),
    ("tf.cast(f, tf.float16 if True else tf.float32)", "float16"),
    ("tf.saturate_cast(f, tf.float16)", "float16"),
    ("tf.constant(1.0)", "float32"),
    ("tf.constant(1)", "int32"),
    ("tf.constant(True)", "bool"),
    ("tf.constant('a')", "string"),
    ("tf.constant([1, 2.5])", "float32"),
    ("tf.constant([[1, 2], [3, 4]])", "int32"),
    ("tf.constant([0.5] * f.shape[-1])", "float32"),
    ("tf.constant([[0.0] * 2, [1] * 2])", "float32"),
    ("tf.constant([1] * f.shape[-1])", "int32"),
    ("tf.constant(1, tf.float16)", "float16"),
    ("tf.constant(1, dtype='float64')", "float64"),
    ("tf.cast([True], float)", "float32"),
    ("tf.constant(np.zeros(3, float))", "float64"),
    ("tf.constant(h)", "float16"),
    ("tf.image.resize(h[..., None, None], (2, 2))", "float32"),
    ("tf.image.resize(h[..., None, None], (2, 2), 'bicubic')", "float32"),
    ("tf.image.resize(h[..., None, None], (2, 2), method=tf.image.ResizeMethod.AREA)", "float32"),
    ("tf.image.resize(h[..., None, None], (2, 2), method='nearest')", "float16"),
    ("tf.image.resize(h[..., None, None], (2, 2), tf.image.ResizeMethod.NEAREST_NEIGHBOR)", "float16"),
    ("tf.image.resize_with_pad(h[..., None, None], 2, 2)", "float32"),
    ("tf.image.crop_and_resize(h[..., None, None], [[0.0, 0.0, 1.0, 1.0]], [0], (2, 2))", "float32"),
    ("tf.compat.v1.image.resize_bilinear(h[..., None, None], (2, 2))", "float32"),
    ("tf.signal.hann_window(8)", "float32"),
    ("tf.signal.hann_window(8, dtype=tf.float16)", "float16"),
    ("tf.keras.backend.variable([1, 2])", "float32"),
    ("tf.keras.backend.constant(1, dtype='float16')", "float16"),
    ("tf.sin(2.0 * np.pi * f)", "float32"),
    ("tf.convert_to_tensor(2.0)", "float32"),
    ("tf.convert_to_tensor([1, 2], tf.float16)", "float16"),
    ("tf.Variable(1.0)", "float32"),
    ("tf.Variable(1.0, dtype=tf.float16)", "float16"),
    ("tf.Variable(tf.zeros(3))", "float32"),
    ("tf.zeros(3)", "float32"),
    ("tf.zeros((1, 2), tf.float16)", "float16"),
    ("tf.ones(3)", "float32"),
    ("tf.ones(shape=3, dtype=tf.int32)", "int32"),
    ("tf.zeros_like(h)", "float16"),
    ("tf.ones_like(h, dtype=tf.float32)", "float32"),
    ("tf.ones_like(h, tf.float32)", "float32"),
    ("tf.fill((2, 2), 1.0)", "float32"),
    ("tf.fill((2, 2), 1)", "int32"),
    ("tf.eye(3)", "float32"),
    ("tf.eye(3, dtype=tf.float16)", "float16"),
    ("tf.one_hot([1], 4)", "float32"),
    ("tf.one_hot([1], 4, dtype=tf.float16)", "float16"),
    ("tf.sequence_mask([1], 4)", "bool"),
    ("tf.sequence_mask([1], 4, tf.float32)", "float32"),
    ("tf.range(4)", "int32"),
    ("tf.range(4.0)", "float32"),
    ("tf.range(0, 4, dtype=tf.float16)", "float16"),
    ("tf.random.normal((2,))", "float32"),
    ("tf.random.normal((2,), 0.0, 1.0, tf.float16)", "float16"),
    ("tf.random.uniform((2,))", "float32"),
    ("tf.random.uniform((2,), 0, 9, dtype=tf.int32)", "int32"),
    ("tf.random.truncated_normal((2,))", "float32"),
    ("tf.random.stateless_uniform((2,), seed=(1, 2))", "float32"),
    ("tf.shape(h)", "int32"),
    ("h + h", "float16"),
    ("h * 2.0", "float16"),
    ("2.0 - h", "float16"),
    ("-h", "float16"),
    ("h / np.float32(2)", "float16"),
    ("h * np.ones(2, 'float32')", "float16"),
    ("h > 0", "bool"),
    ("i * 2", "int32"),
    ("h[:, 0]", "float16"),
    ("h @ tf.transpose(h)", "float16"),
    ("tf.nn.softmax(h)", "float16"),
    ("tf.math.sqrt(h)", "float16"),
    ("tf.reduce_sum(h, axis=-1)", "float16"),
    ("tf.reduce_mean(input_tensor=h)", "float16"),
    ("tf.square(h) + tf.abs(h)", "float16"),
    ("tf.reshape(h, (-1,))", "float16"),
    ("tf.concat([h, h], axis=0)", "float16"),
    ("tf.stack([h, h])", "float16"),
    ("tf.where(h > 0, h, h)", "float16"),
    ("tf.maximum(h, 0.0)", "float16"),
    ("tf.matmul(h, h, transpose_b=True)", "float16"),
    ("tf.einsum('ij,ij->i', h, h)", "float16"),
    ("tf.clip_by_value(h, 0.0, 1.0)", "float16"),
    ("tf.nn.l2_normalize(h)", "float16"),
    ("tf.math.is_nan(h)", "bool"),
    ("tf.stop_gradient(h)", "float16"),
    ("tf.linalg.band_part(h, -1, 0)", "float16"),
    ("tf.nn.l2_loss(h)", "float16"),
    ("tf.math.log_sigmoid(h)", "float16"),
    ("tf.math.reduce_euclidean_norm(h)", "float16"),
    ("tf.math.xlogy(h, h)", "float16"),
    ("tf.math.multiply_no_nan(h, h)", "float16"),
    ("tf.math.scalar_mul(2.0, h)", "float16"),
    ("tf.signal.frame(h, 2, 1)", "float16"),
    ("tf.signal.overlap_and_add(tf.signal.frame(h, 2, 1), 1)", "float16"),
    ("tf.signal.fftshift(h)", "float16"),
    ("tf.linalg.adjoint(h)", "float16"),
    ("tf.linalg.trace(h)", "float16"),
    ("tf.linalg.normalize(h)[0]", "float16"),
    ("tf.nn.crelu(h)", "float16"),
    ("tf.math.reciprocal_no_nan(h)", "float16"),
    ("tf.math.truediv(h, h)", "float16"),
    ("tf.math.floordiv(h, 2.0)", "float16"),
    ("tf.math.xlog1py(h, h)", "float16"),
    ("tf.math.accumulate_n([h, h])", "float16"),
    ("tf.image.adjust_brightness(h[..., None], 0.1)", "float16"),
    ("tf.image.sobel_edges(tf.zeros((1, 4, 4, 1), h.dtype))", "float16"),
    ("tf.image.random_flip_up_down(h[..., None])", "float16"),
    ("tf.nn.convolution(h[..., None], tf.zeros((1, 1, 1), h.dtype))", "float16"),
    ("keras.ops.amax(h)", "float16"),
    ("keras.ops.log2(h)", "float16"),
    ("keras.ops.arctan(h)", "float16"),
    ("keras.ops.take_along_axis(h, i - 1, 1)", "float16"),
    ("keras.ops.layer_normalization(h)", "float16"),
    ("keras.ops.average_pool(h[..., None], 2)", "float16"),
    ("keras.ops.conv(h[..., None], tf.zeros((1, 1, 1), h.dtype))", "float16"),
    ("keras.ops.true_divide(h, h)", "float16"),
    ("keras.ops.hstack([h, h])", "float16"),
    ("keras.activations.mish(h)", "float16"),
    ("keras.activations.exponential(h)", "float16"),
    ("np.zeros(2).astype('float16')", "float16"),
    ("tf.constant(np.ones(3))", "float64"),
    ("tf.constant(np.tile(np.ones(3, 'float32') / 3, (2, len([1]))))", "float32"),
    ("tf.convert_to_tensor(np.array([0.5, 1], np.float32).reshape(1, 2))", "float32"),
    ("f * f.shape[1]", "float32"),
    ("tf.meshgrid(f, f, indexing='ij')[0]", "float32"),
    ("tf.zeros(2, keras.ops.dtype(h))", "float16"),
    ("keras.Input((2,))", "float32"),
    ("keras.Input((2,), dtype='float16')", "float16"),
    ("tf.sqrt(4.0)", "float32"),
    ("tf.linspace(0.0, 1.0, 4)", "float32"),
    ("tf.pow(2.0, h)", "float16"),
    ("tf.Variable(initial_value=1.0)", "float32"),
    ("tf.random_normal_initializer()((2, 2))", "float32"),
    ("keras.initializers.Zeros()(shape=(2,), dtype='float16')", "float16"),
    ("tf.Variable(initial_value=tf.zeros_initializer()(shape=(2,), dtype='float32'), trainable=True)", "float32"),
    ("keras.ops.sqrt(4.0)", "float32"),
    ("keras.ops.full((2,), 1.0)", "float32"),
    ("keras.ops.linspace(0.0, 1.0, 4)", "float32"),
    ("keras.ops.array([1.0, 2.0])", "float32"),
    ("keras.ops.tri(3)", "float32"),
    ("keras.ops.multiply(h, f)", "float32"),
    ("keras.ops.add(f, h)", "float32"),
    ("keras.ops.maximum(h, [1.0, 2.0])", "float32"),
    ("keras.ops.maximum(h, 2.0)", "float16"),
    ("keras.ops.mod(h, 2.0)", "float32"),
    ("keras.ops.logaddexp(h, 0.0)", "float32"),
    ("keras.ops.mod(h, 2)", "float16"),
    ("keras.ops.multiply(h, i)", "float16"),
    ("keras.ops.multiply(h, np.float32(2.0))", "float32"),
    ("keras.ops.multiply(np.ones(2, 'float32'), h)", "float32"),
    ("keras.ops.multiply(i, 0.5)", "float32"),
    ("keras.ops.where(h > 0, h, 0.0)", "float16"),
    ("keras.ops.where(h > 0, h, f)", "float32"),
    ("keras.ops.concatenate([h, f])", "float32"),
    ("keras.ops.stack([h, h])", "float16"),
    ("keras.ops.einsum('ij,ij->ij', h, f)", "float32"),
    ("keras.ops.matmul(h, keras.ops.transpose(f))", "float32"),
    ("keras.ops.full((2,), 1)", "float32"),
    ("keras.ops.identity(2)", "float32"),
    ("keras.random.gamma((2,), 2.0)", "float32"),
    ("keras.ops.sqrt(4)", "float32"),
    ("keras.ops.mean(i)", "float32"),
    ("keras.ops.sqrt(i)", "float32"),
    ("keras.ops.square(i)", "int32"),
    ("keras.ops.convert_to_tensor(np.ones(2, 'float32'))", "float32"),
    ("keras.ops.reshape(np.ones(2, 'float32'), (2, 1))", "float32"),
    ("tf.reshape(np.ones(2, 'float32'), (2, 1))", "float32"),
    ("tf.gather(np.ones(2, 'float32'), [0])", "float32"),
    ("tf.exp(np.ones(2))", "float64"),
    ("tf.linalg.band_part(tf.ones((4, 4)), -1, 0)", "float32"),
    ("layers.Dense(1, dtype='float16')(h)", "float16"),
    ("layers.Dense(1, dtype='mixed_float16')(f)", "float16"),
    ("layers.Dense(1, dtype=mp.Policy('mixed_float16'))(f)", "float16"),
    ("layers.Activation('relu', dtype='float32')(h)", "float32"),
]


@pytest.mark.parametrize(("expression", "dtype"), MEASURED)
def test_dtype_of_a_tensor(expression: str, dtype: str) -> None:
    assert dtype_of(shown(f"{SETUP}print({expression})")) == dtype


@needs_tensorflow
def test_tensorflow_says_the_same() -> None:
    names: dict[str, Any] = {}
    exec(PRELUDE + SETUP, names)
    said = []
    for expression, _ in MEASURED:
        dtype = eval(expression, names).dtype
        said.append((expression, getattr(dtype, "name", str(dtype))))
    assert said == MEASURED


@needs_tensorflow
def test_signatures_are_as_written_down() -> None:
    import keras
    import tensorflow as tf

    places = {"tensorflow": tf, "tensorflow.signal": tf.signal, "tensorflow.sparse": tf.sparse, "keras.ops": keras.ops}
    places["keras.backend"] = tf.keras.backend
    for name, (position, _) in DEFAULTS.items():
        place, _, function = name.rpartition(".")
        if function in ("random_normal", "random_uniform"):  # TensorFlow 1
            continue
        owner = tf.random if place == "tensorflow.random" else places[place]
        if not hasattr(owner, function):
            owner = tf.math if hasattr(tf.math, function) else keras.random
        parameters = list(inspect.signature(getattr(owner, function)).parameters)
        if position is not None:
            assert parameters[position] == "dtype", name
        elif "dtype" in parameters:
            assert parameters.index("dtype") > 2, name


UNCERTAIN = [
    "tf.image.resize(h, (2, 2), method=given)",
    "tf.image.resize(h, *given)",
    "tf.constant([0.5] * given)",
    "unknown(1.0)",
    "tf.constant(x)",
    "tf.constant(np.ones(3, dtype))",
    "tf.constant(np.outer(np.ones(3, 'float32'), [1.0]) / 2)",
    "tf.constant(np.ones(3, int))",
    "tf.constant(np.array([1, 2]))",
    "tf.zeros(3, dtype)",
    "tf.zeros(3, **options)",
    "tf.cast(f, args.dtype)",
    "h + f",
    "h if unknown() else f",
    "h + unknown()",
    "tf.concat([h, f], 0)",
    "tf.unheard_of(h)",
    "layers.Lambda(lambda t: t)(h)",
    "layers.StringLookup()(h)",
    "layers.Dense(1, dtype=args.dtype)(h)",
    "tf.shape",
    "h.shape",
    "[h]",
    "i / 2",
]


@pytest.mark.parametrize("expression", UNCERTAIN)
def test_a_dtype_that_is_not_certain_is_none(expression: str) -> None:
    assert dtype_of(shown(f"{SETUP}print({expression})")) is None


LAYER = """
class Gate(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(%s**kwargs)
        self.dense = layers.Dense(4)
        self.head = layers.Dense(4, dtype="float32")
    def build(self, shape):
        self.w = self.add_weight(shape=(4,))
        self.n = self.add_weight(shape=(), dtype="int32")
        self.v = tf.Variable(tf.ones(4))
    def call(self, x, y, mask=None, training=None):
        print(%s)
"""
IN_CALL = [
    ("x", "autocast", "autocast"),
    ("y", "autocast", None),
    ("mask", None, None),
    ("training", None, None),
    ("x[:, 0]", "autocast", "autocast"),
    ("x * 2.0", "autocast", "autocast"),
    ("tf.reduce_mean(x, -1)", "autocast", "autocast"),
    ("tf.cast(x, tf.float32)", "float32", "float32"),
    ("tf.cast(mask, x.dtype)", "autocast", "autocast"),
    ("tf.cast(mask, self.compute_dtype)", "autocast", "autocast"),
    ("tf.cast(mask, self.dtype_policy.compute_dtype)", "autocast", "autocast"),
    ("tf.cast(mask, self.dtype)", "variable", "variable"),
    ("tf.cast(mask, self.variable_dtype)", "variable", "variable"),
    ("tf.zeros_like(x)", "autocast", "autocast"),
    ("self.dense(x)", "autocast", "autocast"),
    ("self.head(x)", "float32", "float32"),
    ("self.w", "autocast", "autocast"),
    ("self.n", "int32", "int32"),
    ("self.v", "float32", "float32"),
    ("x * self.w", "autocast", "autocast"),
    ("x * self.v", None, None),
]


@pytest.mark.parametrize(("expression", "in_keras3", "in_keras2"), IN_CALL)
def test_dtypes_inside_a_layers_call(expression: str, in_keras3: str | None, in_keras2: str | None) -> None:
    value = shown(LAYER % ("", expression))
    assert (dtype_of(value, KERAS3), dtype_of(value, KERAS2)) == (in_keras3, in_keras2)


@pytest.mark.parametrize("given", ["dtype='float32', ", "autocast=False, ", "dtype=DTYPE, "])
def test_a_layer_with_its_own_dtype_casts_otherwise(given: str) -> None:
    assert dtype_of(shown(LAYER % (given, "x"))) is None


def test_layers_of_tensorflow_1_cast_nothing() -> None:
    assert dtype_of(shown(LAYER % ("", "x")), TENSORFLOW_1) is None


def test_a_function_that_is_no_layer_casts_nothing() -> None:
    assert dtype_of(shown("def call(self, x): print(x)")) is None
    assert dtype_of(shown("class A:\n  def call(self, x): print(x)")) is None


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("np.ones(3)", True),
        ("np.ones(3).astype('float32') * 2", True),
        ("np.ones(3)[0]", True),
        ("np.ones(3) + tf.ones(3)", False),
        ("tf.ones(3)", False),
        ("2.0", False),
    ],
)
def test_numpy_arrays_adapt_to_tensors(expression: str, answer: bool) -> None:
    assert is_array(shown(f"print({expression})")) is answer


def test_a_value_that_doubles_is_judged_in_time() -> None:
    facts = facts_of("x = tf.zeros(3)\n" + "x = x + x\n" * 40 + "print(x)")
    assert facts.dtype_of(facts.operations[-1]) == "float32"


def test_a_caller_who_knows_more_is_asked_on_the_way() -> None:
    value = shown(f"{SETUP}model = keras.Sequential()\nprint(tf.square(model(f)) * 2 + tf.cast(i, model(f).dtype))")
    assert dtype_of(value, KERAS3) is None
    of = dtypes_with(KERAS3, lambda asked, found: found or ("float16" if is_call_of_model(asked) else None))
    assert of(value) == "float16"


def is_call_of_model(value: Value) -> bool:
    return isinstance(value, Call) and isinstance(value.callee, Call)


DEEP = """
def block(x, size):
    y = keras.layers.Dense(size, dtype=x.dtype)(x)
    return x + y

x = keras.Input((8,))
for size in (8, 8):
    for _ in range(size):
        x = block(x, size)
    x = keras.layers.Dense(8, dtype=x.dtype)(x)
    x = keras.layers.Dense(8, dtype=x.dtype)(x)
print(keras.layers.Dense(8, dtype=x.dtype))
"""


def test_layers_that_take_the_dtype_of_those_before_them_end() -> None:
    """Each of them asked anew, and the loops asked for each other until the stack was full."""
    layer = shown(DEEP)
    assert isinstance(layer, Call)
    assert policies_named(layer.keyword("dtype")) == ("float32",)
