"""What broke first in one eager step: the layer, the operation, the gradient; in both Kerases, in one process."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from checking import needs_keras

Case = Callable[["Step"], Any]


class Step:
    """A step of plain gradients without an optimizer's update, under the mixed_float16 policy of one Keras."""

    def __init__(self, name: str) -> None:
        # Imported here and not above, so that the file can be collected, and skipped, without TensorFlow.
        self.tf = importlib.import_module("tensorflow")
        self.np = importlib.import_module("numpy")
        self.keras = importlib.import_module("keras" if name == "3" else "tf_keras")
        self.layers = self.keras.layers
        self.adapter = importlib.import_module("mpdoctor.examiner.keras.adapter_choice").adapter_for(self.keras)
        self.layer_hooks = importlib.import_module("mpdoctor.examiner.capture.layer_hooks").LayerHooks()
        self.is_keras3 = name == "3"

    def layer(self, call: Callable[..., Any], **given: Any) -> Any:
        """A layer of the user's, with this call()."""
        return type("Mine", (self.layers.Layer,), {"call": lambda self, x: call(x)})(**given)

    def half(self, *shape: int, value: float = 1.0) -> Any:
        return self.tf.fill(shape, self.tf.constant(value, self.tf.float16))

    def culprits(
        self,
        model: Callable[[Any], Any],
        x: Any,
        loss: Callable[[Any], Any] | None = None,
        trained: Any = None,
        treated: Callable[[list[Any]], Any] = lambda gradients: gradients,
        batch: Any = None,
    ) -> Any:
        """Of a step with SGD whose loss is the mean of the model's output, if no other. `treated`: what is done to
        the gradients that the tape gave, in the order of the variables."""
        tf, replaying = self.tf, importlib.import_module("mpdoctor.examiner.replay.step_observer")
        finding = importlib.import_module("mpdoctor.examiner.replay.culprits")
        model(x)  # builds it
        optimizer = self.keras.optimizers.SGD(0.0)
        variables = self.adapter.trainable_variables(trained or model)
        with replaying.StepObserver(self.adapter, self.layer_hooks, optimizer) as observer:
            with tf.GradientTape() as tape:
                outputs = model(x)
                value = tf.reduce_mean(tf.cast(outputs, tf.float32)) if loss is None else loss(outputs)
            gradients = treated(tape.gradient(value, variables))
            optimizer.apply_gradients(list(zip(gradients, variables, strict=True)))
        return finding.culprits_from_step(observer, 3, 1024.0, batch)

    def chain(self, *layers: Any) -> Any:
        return self.keras.Sequential(list(layers))


@pytest.fixture(scope="module", params=[pytest.param(k, marks=needs_keras(k)) for k in ("3", "tf_keras")])
def kept(request: pytest.FixtureRequest) -> Iterator[Step]:
    """Layer calls are watched while this module's tests run."""
    step = Step(request.param)
    layer = step.adapter.Layer
    before = layer.__call__, layer.__new__
    step.layer_hooks.install(layer, step.adapter.global_policy)
    yield step
    layer.__call__, layer.__new__ = before


@pytest.fixture
def step(kept: Step) -> Iterator[Step]:
    before = kept.adapter.global_policy()
    kept.adapter.set_policy("mixed_float16")
    yield kept
    kept.adapter.set_policy(before)


def test_a_step_without_a_fault_has_no_culprit(step: Step) -> None:
    model = step.chain(step.layers.Dense(3, "relu"), step.layers.Dense(1, dtype="float32"))
    assert step.culprits(model, step.tf.ones((4, 8))) is None


def test_the_layer_and_the_operation_that_overflow(step: Step) -> None:
    tf = step.tf
    energy = step.layer(lambda x: tf.reduce_sum(tf.square(x), -1, keepdims=True), name="energy")
    model = step.chain(
        step.layers.Dense(8, kernel_initializer="ones", name="wide"), energy, step.layers.Dense(1, dtype="float32")
    )
    found = step.culprits(model, tf.fill((4, 8), 40.0)).layer
    assert (found.overflow.layer, found.overflow.dtype, found.step, found.inputs_finite) == (
        "energy",
        "float16",
        3,
        True,
    )
    assert (found.operation.name, found.operation.largest, found.operation.in_float32) == ("Square", 320.0, 102400.0)
    assert (found.operation.where, found.operation.result) == ("layer", "inf")
    assert found.operation.location.path.endswith("test_culprits.py")
    assert [(operand.name, operand.largest) for operand in found.operation.operands] == [("x", 320.0)]
    assert [(frame.layer, frame.largest) for frame in found.frames] == [("wide", 320.0)]


FACTOR = 2e5


@pytest.mark.parametrize("name", ["FACTOR", "factor", "-3e6", "65_600"])
def test_the_number_that_float16_does_not_hold(step: Step, name: str) -> None:
    factor = step.np.float64(7e4)
    calls: dict[str, Callable[[Any], Any]] = {
        "FACTOR": lambda x: x * FACTOR,  # a comment, 1e9
        "factor": lambda x: x * 3.0 * factor,
        "-3e6": lambda x: step.tf.nn.relu(x) + -3e6,
        "65_600": lambda x: x * 65_600,
    }
    model = step.chain(step.layers.Dense(8), step.layer(calls[name]), step.layers.Dense(1, dtype="float32"))
    found = step.culprits(model, step.tf.ones((4, 8))).layer.operation
    value = {"FACTOR": FACTOR, "factor": 7e4}.get(name) or float(name.replace("_", ""))
    assert (found.given, found.constant.name, found.constant.largest) == ("constant", name, value)


def test_which_call_of_a_shared_layer(step: Step) -> None:
    growing = step.layers.Dense(8, kernel_initializer=step.keras.initializers.Constant(10.0), name="growing")
    model = step.chain(step.layer(lambda x: growing(growing(growing(x))), name="outer"), step.layers.Dense(1))
    found = step.culprits(model, step.tf.fill((4, 8), 4.0)).layer
    assert (found.overflow.layer, found.overflow.call, found.calls) == ("outer/growing", 3, 3)
    assert found.operation.name in ("MatMul", "BatchMatMulV2")


def test_the_gradient_of_a_root_at_zero(step: Step) -> None:
    tf = step.tf
    norm = step.layer(lambda x: tf.sqrt(tf.reduce_sum(x * x, -1, keepdims=True)), name="norm")
    model = step.chain(step.layers.Dense(3, name="before"), norm, step.layers.Dense(1, dtype="float32"))
    found = step.culprits(model, tf.zeros((4, 8))).gradient
    assert (found.layer, found.where, found.operation.name) == ("norm", "layer", "SqrtGrad")
    assert found.operation.holds_zero
    assert found.operation.location.path.endswith("test_culprits.py")
    assert found.variable.split("/")[-2:-1] == ["before"]


def test_a_gradient_that_float16_cannot_hold(step: Step) -> None:
    tf = step.tf
    model = step.chain(step.layers.Dense(3, name="hidden"), step.layers.Dense(1, dtype="float32", name="head"))
    found = step.culprits(model, tf.ones((4, 8)), lambda y: 1e8 * tf.reduce_sum(y)).gradient
    assert (found.layer, found.operation.name) == ("hidden", "Cast")
    assert found.operation.in_float32 > 65504
    assert found.frames[-1].layer == "head"


def test_the_sum_over_the_batch_that_makes_a_weights_gradient(step: Step) -> None:
    tf = step.tf
    model = step.chain(step.layers.Dense(3, name="only"), step.layers.Activation("linear", dtype="float32"))
    found = step.culprits(model, tf.fill((64, 8), 100.0), lambda y: 1e4 * tf.reduce_sum(y)).gradient
    assert (found.layer, found.where) == ("only", "variable")
    assert "only/" in found.variable


def test_a_logarithm_of_nothing_in_the_loss(step: Step) -> None:
    tf = step.tf
    model = step.chain(step.layers.Dense(1))
    found = step.culprits(model, tf.zeros((4, 8)), lambda y: -tf.reduce_mean(tf.math.log(tf.nn.relu(y)))).loss
    assert (found.name, found.where, found.dtype, found.result) == ("Log", "loss", "float16", "-inf")
    assert found.holds_zero


def test_an_input_beyond_float16(step: Step) -> None:
    model = step.chain(step.layers.Dense(1, name="first"))
    found = step.culprits(model, step.tf.fill((4, 8), 1e6)).layer
    assert (found.operation.name, found.operation.from_data, found.operation.largest) == ("Cast", True, 1e6)


def test_an_input_that_is_an_array(step: Step) -> None:
    model = step.chain(step.layers.Dense(1, name="first"))
    found = step.culprits(model, step.np.full((4, 8), 1e6)).layer
    assert (found.operation.name, found.operation.from_data) == ("Cast", True)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])  # a logarithm of counts is -inf at 0, and no mask
def test_data_that_is_not_finite(step: Step, value: str) -> None:
    x = step.np.ones((4, 8), "float32")
    x[2, 3] = float(value)
    assert step.culprits(step.chain(step.layers.Dense(1)), step.tf.constant(x)).loss.given == "data"


def test_a_mask_of_a_constant_that_float16_has_not(step: Step) -> None:
    masked = step.layer(lambda x: x + (1 - step.tf.cast(x > 0.5, x.dtype)) * -1e9, name="masked")
    found = step.culprits(
        step.chain(step.layers.Dense(8, kernel_initializer="ones"), masked, step.layers.Softmax()), step.tf.ones((4, 8))
    ).layer
    assert (found.overflow.layer, found.inputs_finite) == ("masked", True)
    assert found.operation.given == "constant" or found.operation.name == "Cast"


def test_a_row_that_a_mask_leaves_nothing_of(step: Step) -> None:
    tf = step.tf
    weigh = step.layer(lambda x: tf.nn.softmax(tf.where(x > 9, x, tf.cast(-float("inf"), x.dtype))), name="weigh")
    found = step.culprits(step.chain(step.layers.Dense(8), weigh), tf.ones((4, 8))).layer
    assert (found.overflow.layer, found.operation.name, found.operation.masked) == ("weigh", "Softmax", True)
    assert found.operation.result == "nan"


def test_a_mask_that_leaves_something_is_no_fault(step: Step) -> None:
    tf = step.tf

    def attend(x: Any) -> Any:
        first = tf.range(8) == 0
        return tf.nn.softmax(tf.where(first, x, tf.cast(-float("inf"), x.dtype)))

    assert step.culprits(step.chain(step.layers.Dense(8), step.layer(attend)), tf.ones((4, 8))) is None


@pytest.mark.parametrize(("side", "only_here", "has_no_gradient"), [(255, True, False), (256, False, True)])
def test_a_mean_that_a_cpu_loses(step: Step, side: int, only_here: bool, has_no_gradient: bool) -> None:
    """The gradient of a mean is divided by the count, cast to float16: 256 squared is inf there."""
    tf = step.tf
    if tf.config.list_logical_devices("GPU"):
        pytest.skip("a GPU averages in float32")
    model = step.chain(step.layer(lambda x: x), step.layers.Dense(1))
    many = step.half(side, side, value=2.0)
    with tf.GradientTape() as tape:
        tape.watch(many)
        mean = tf.cast(tf.reduce_mean(many), tf.float32) * 2.0**15
    assert (float(tf.reduce_max(tape.gradient(mean, many))) == 0.0) == has_no_gradient
    found = step.culprits(model, tf.ones((8, 8)), lambda y: tf.reduce_mean(many) * y[0, 0]).loss
    assert (found.name, found.in_float32, found.averaged) == ("Mean", 2.0, side * side)
    assert (found.only_on_this_device, found.has_no_gradient) == (only_here, has_no_gradient)


def test_layers_of_many_shapes_pass_unharmed(step: Step) -> None:
    """Recurrent layers, embeddings, masks, lists and dicts in and out."""
    layers, tf = step.layers, step.tf
    ids = step.keras.Input((6,), dtype="int32")
    words = layers.Embedding(20, 8, mask_zero=True)(ids)
    seen = layers.LSTM(8, return_sequences=True)(words)
    attended = layers.MultiHeadAttention(2, 4)(seen, seen)
    pooled = layers.GlobalAveragePooling1D()(layers.Add()([seen, attended]))
    outputs = layers.Dense(1, dtype="float32")(layers.Dropout(0.1)(layers.LayerNormalization()(pooled)))
    model = step.keras.Model(ids, outputs)
    assert step.culprits(model, tf.constant([[1, 2, 3, 0, 0, 0], [4, 5, 6, 7, 8, 9]])) is None
    pair = step.layer(lambda x: {"a": x["a"] + x["b"], "b": [x["a"]]})
    dense = layers.Dense(1)

    def call(x: Any) -> Any:
        both = pair({"a": x, "b": x})
        return dense(both["a"] + both["b"][0])

    assert step.culprits(call, tf.ones((4, 8)), trained=dense) is None


GRADIENTS_OF_FORWARD_TENSORS: dict[str, tuple[Callable[[Step, Any], Any], float, str]] = {
    "a division": (lambda step, x: step.tf.reduce_mean(x / (step.tf.abs(x[:, :1]) * 1e-3), -1, True), 1e-3, "RealDiv"),
    "a power": (lambda step, x: step.tf.pow(step.tf.nn.relu(x), 0.5), 0.0, "Pow"),
    "a power of a power": (lambda step, x: step.tf.pow(step.tf.square(x), 0.5), 0.0, "Pow"),
    "a logarithm": (lambda step, x: step.tf.math.log(x * 1e-2), 1e-4, "Reciprocal"),
    "an arc": (lambda step, x: step.tf.acos(1.0 - step.tf.abs(x)), 0.0, "Reciprocal"),
}


@pytest.mark.parametrize("case", GRADIENTS_OF_FORWARD_TENSORS)
def test_a_gradient_that_is_made_of_forward_tensors_alone(step: Step, case: str) -> None:
    """None of what its operation takes is a gradient: the layer is the one whose operation it is the gradient of."""
    call, value, name = GRADIENTS_OF_FORWARD_TENSORS[case]
    ones = {"kernel_initializer": "ones", "use_bias": False}
    broken = step.layer(lambda x: call(step, x), name="broken")
    model = step.chain(
        step.layers.Dense(4, name="before", **ones),
        broken,
        step.layers.Dense(4, name="after", **ones),
        step.layers.Dense(1, dtype="float32"),
    )
    found = step.culprits(model, step.tf.fill((4, 8), value)).gradient
    assert (found.layer, found.where, found.operation.name) == ("broken", "layer", name)
    assert found.operation.location.path.endswith("test_culprits.py")
    assert found.variable.split("/")[-2:-1] == ["before"]


def test_a_gradient_of_forward_tensors_in_the_loss_is_in_no_layer(step: Step) -> None:
    tf = step.tf
    model = step.chain(step.layers.Dense(4, name="only", kernel_initializer="zeros"))
    found = step.culprits(model, tf.ones((4, 8)), lambda y: tf.reduce_sum(tf.pow(tf.nn.relu(y), 0.5))).gradient
    assert (found.layer, found.where, found.operation.name) == ("", "loss", "Pow")


def test_which_of_two_layers_that_share_a_tensor(step: Step) -> None:
    """Both read it; the gradient that breaks is the root's."""
    tf = step.tf
    first = step.layer(lambda x: tf.pow(x, 0.5), name="root")
    second = step.layer(lambda x: tf.pow(x, 2.0), name="square")
    dense = step.layers.Dense(4, name="before", use_bias=False)

    def call(x: Any) -> Any:
        y = tf.nn.relu(dense(x))
        return first(y) + second(y)

    found = step.culprits(call, tf.zeros((4, 8)), trained=dense).gradient
    assert (found.layer, found.operation.name) == ("root", "Pow")


def test_the_first_gradient_on_the_way_back_though_it_was_unscaled_later(step: Step) -> None:
    """What arrives at a loss scale's optimizer was divided in the order of the variables."""
    tf = step.tf
    model = step.chain(
        step.layers.Dense(4, name="early"), step.layers.Dense(4, name="late"), step.layers.Dense(1, dtype="float32")
    )
    x, loss = tf.ones((64, 8)), lambda y: 1e7 * tf.reduce_sum(y)
    found = step.culprits(model, x, loss, treated=lambda all: [gradient / 1024.0 for gradient in all]).gradient
    assert (found.layer, found.variable.split("/")[-2]) == ("late", "late")


def test_the_first_gradient_before_all_were_clipped_together(step: Step) -> None:
    """A norm over all is NaN for one, and all are NaN then, the first of the list first."""
    tf = step.tf
    small = step.keras.initializers.Constant(1e-4)
    early = step.layers.Dense(4, name="early", kernel_initializer="ones", dtype="float32")
    late = step.layers.Dense(3, name="late", kernel_initializer=small)
    model = step.chain(early, late, step.layers.Activation("linear", dtype="float32"))
    x, loss = tf.fill((64, 8), 100.0), lambda y: 1e4 * tf.reduce_sum(y)
    found = step.culprits(model, x, loss, treated=lambda all: tf.clip_by_global_norm(all, 1.0)[0]).gradient
    assert found.variable.split("/")[-2] == "late"


def test_an_overflow_before_a_fused_normalization(step: Step) -> None:
    """Its kernel writes the new averages where the old ones were read: they are no data that was not finite."""
    layers = step.layers
    huge = step.keras.initializers.Constant(3000.0)
    model = step.chain(
        layers.Conv2D(8, 3, kernel_initializer=huge, name="wide"),
        layers.BatchNormalization(name="norm"),
        layers.Conv2D(2, 3),
        layers.GlobalAveragePooling2D(),
        layers.Dense(1, dtype="float32"),
    )
    model.build((None, 8, 8, 3))
    found = step.culprits(lambda x: model(x, training=True), step.tf.fill((4, 8, 8, 3), 100.0), trained=model).layer
    assert (found.overflow.layer, found.operation.name, found.inputs_finite) == ("wide", "Conv2D", True)


def test_a_weight_of_the_users_that_is_not_finite_is_no_data(step: Step) -> None:
    """TensorFlow reads a variable that is handed to an operation unseen."""
    tf = step.tf
    weight = tf.Variable(tf.fill((8, 8), tf.constant(float("nan"), tf.float16)))
    broken = step.layer(lambda x: tf.matmul(x, weight), name="broken")
    found = step.culprits(step.chain(step.layers.Dense(8), broken, step.layers.Dense(1)), tf.ones((4, 8)))
    assert found.loss is None and found.layer.overflow.layer == "broken"


@pytest.mark.parametrize(
    ("x", "y", "given"),
    [(1.0, float("inf"), "labels"), (1.0, float("nan"), "labels"), (float("inf"), 1.0, "data"), (2.0, -1e38, "")],
)
def test_labels_that_are_not_finite(step: Step, x: float, y: float, given: str) -> None:
    tf = step.tf
    model = step.chain(step.layers.Dense(1, dtype="float32", kernel_initializer="ones"))
    batch = tf.fill((4, 8), x), tf.tensor_scatter_nd_update(tf.ones((4, 1)), [[2, 0]], [y])
    found = step.culprits(model, batch[0], lambda out: tf.reduce_mean(tf.square(out - batch[1])), batch=batch)
    assert found.loss.given == given
    assert found.loss.where == "loss"


def test_functions_between_the_layers_of_a_functional_model(step: Step) -> None:
    inputs = step.keras.Input((8,))
    hidden = step.layers.Dense(4, name="hidden", kernel_initializer="ones")(inputs)
    large = hidden * 60000.0
    model = step.keras.Model(inputs, step.layers.Dense(1, dtype="float32")(large))
    found = step.culprits(model, step.tf.ones((4, 8))).layer
    name = "multiply" if step.is_keras3 else "tf.math.multiply"
    assert (found.overflow.layer.rstrip("_0123456789"), found.is_function) == (name, True)
    assert [(frame.layer, frame.largest) for frame in found.frames] == [("hidden", 8.0)]
    assert found.inputs_finite and found.calls == 1
