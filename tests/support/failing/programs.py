"""Programs that fail, each in one function: `# expect: CODE` stands on the line that the report must name.

`python tests/support/failing/record.py` runs them in the TensorFlow at hand and keeps what the examiner records of
each, so that the table test needs none. `k` is what a program begins with: numpy, TensorFlow, that Keras, data, a way
to train.
A program that does not fail in some Keras is no case there.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, tuple[Callable[[Any], None], str]] = {}  # (program, the global policy that it runs under)


def program(policy: str = "mixed_float16") -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        PROGRAMS[function.__name__] = (function, policy)
        return function

    return register


def kit(np: Any, tf: Any, keras: Any) -> Any:
    """What every program has at hand."""
    layers = keras.layers
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(16, 4)).astype("float32"), rng.normal(size=(16, 1)).astype("float32")
    is_keras3 = hasattr(keras, "ops")

    def model(*made: Any, loss: Any = "mse", metrics: Any = None) -> Any:
        model = keras.Sequential([*made, layers.Dense(1)])
        model.compile("sgd", loss, metrics=metrics)
        return model

    return types.SimpleNamespace(
        np=np, tf=tf, keras=keras, layers=layers, Layer=layers.Layer, x=x, y=y, is_keras3=is_keras3, model=model,
        scaling=keras.mixed_precision.LossScaleOptimizer, mixed_precision=keras.mixed_precision,
    )  # fmt: skip


# --- in call() ----------------------------------------------------------------------------------------------------
@program()
def constant_in_call(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return x + k.tf.constant([1.0, 2.0, 3.0, 4.0])  # expect: MP202

    k.model(Shift()).fit(k.x, k.y, verbose=0)


@program("mixed_bfloat16")
def constant_in_call_under_bfloat16(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return x + k.tf.constant([1.0, 2.0, 3.0, 4.0])  # expect: MP202

    k.model(Shift()).fit(k.x, k.y, verbose=0)


@program()
def constant_comes_first(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return k.tf.constant([1.0, 2.0, 3.0, 4.0]) * x  # expect: MP202

    k.model(Shift()).fit(k.x, k.y, verbose=0)


@program()
def cast_in_call_eagerly(k: Any) -> None:
    class Gate(k.Layer):
        def call(self, x):
            return x * k.tf.cast(x > 0, k.tf.float32)  # expect: MP202

    Gate()(k.tf.constant(k.x))


@program()
def noise_in_a_helper(k: Any) -> None:
    def noisy(x):
        return x + k.tf.random.normal(k.tf.shape(x))  # expect: MP202

    class Noise(k.Layer):
        def call(self, x):
            return noisy(x)

    k.model(Noise()).fit(k.x, k.y, verbose=0)


@program()
def one_hot_in_call(k: Any) -> None:
    class Gate(k.Layer):
        def call(self, x):
            hot = k.tf.one_hot(k.tf.zeros(k.tf.shape(x)[:1], k.tf.int32), 4)
            return x * hot  # expect: MP202

    k.model(Gate()).fit(k.x, k.y, verbose=0)


@program()
def joined_with_zeros(k: Any) -> None:
    class Pad(k.Layer):
        def call(self, x):
            return k.tf.concat([x, k.tf.zeros((16, 2))], axis=1)  # expect: MP202

    k.model(Pad()).fit(k.x, k.y, verbose=0)


@program()
def matrix_of_float32(k: Any) -> None:
    class Project(k.Layer):
        def call(self, x):
            return k.tf.matmul(x, k.tf.ones((4, 3)))  # expect: MP202

    k.model(Project()).fit(k.x, k.y, verbose=0)


@program()
def chosen_among_two(k: Any) -> None:
    class Mask(k.Layer):
        def call(self, x):
            return k.tf.where(x > 0, x, k.tf.zeros((16, 4)))  # expect: MP202

    k.model(Mask()).fit(k.x, k.y, verbose=0)


@program()
def einsum_of_float32(k: Any) -> None:
    class Project(k.Layer):
        def call(self, x):
            return k.tf.einsum("bi,ij->bj", x, k.tf.ones((4, 3)))  # expect: MP202

    k.model(Project()).fit(k.x, k.y, verbose=0)


@program()
def stacked_with_float32(k: Any) -> None:
    class Stack(k.Layer):
        def call(self, x):
            return k.tf.reduce_sum(k.tf.stack([x, k.tf.ones((16, 4))]), 0)  # expect: MP202

    k.model(Stack()).fit(k.x, k.y, verbose=0)


@program()
def divided_by_a_root(k: Any) -> None:
    class Scale(k.Layer):
        def call(self, x):
            return x / k.tf.sqrt(4.0)  # expect: MP202

    k.model(Scale()).fit(k.x, k.y, verbose=0)


@program()
def subclassed_model(k: Any) -> None:
    class Net(k.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.head = k.layers.Dense(8), k.layers.Dense(1)

        def call(self, x):
            h = self.hidden(x)
            return self.head(h + k.tf.ones((8,)))  # expect: MP202

    model = Net()
    model.compile("sgd", "mse")
    model.fit(k.x, k.y, verbose=0)


@program()
def inner_layer_of_a_model(k: Any) -> None:
    class Block(k.Layer):
        def __init__(self):
            super().__init__()
            self.dense = k.layers.Dense(8)

        def call(self, x):
            h = self.dense(x)
            return h - k.tf.random.uniform((8,))  # expect: MP202

    k.model(k.layers.Dense(4), Block()).fit(k.x, k.y, verbose=0)


@program()
def float32_sublayer(k: Any) -> None:
    class Gated(k.Layer):
        def __init__(self):
            super().__init__()
            self.gate = k.layers.Dense(4, activation="sigmoid", dtype="float32")

        def call(self, x):
            gate = self.gate(x)
            return x * gate  # expect: MP202

    k.model(Gated()).fit(k.x, k.y, verbose=0)


@program()
def lambda_layer(k: Any) -> None:
    shift = k.layers.Lambda(lambda x: x - k.tf.constant([1.0, 2.0, 3.0, 4.0]))  # expect: MP202
    k.model(shift).fit(k.x, k.y, verbose=0)


@program()
def variable_dtype_in_call(k: Any) -> None:
    class Gate(k.Layer):
        def call(self, x):
            return x + k.tf.cast(x > 0, self.dtype)  # expect: MP206

    k.model(Gate()).fit(k.x, k.y, verbose=0)


@program()
def variable_dtype_attribute_in_call(k: Any) -> None:
    class Gate(k.Layer):
        def call(self, x):
            return x + k.tf.ones((4,), dtype=self.variable_dtype)  # expect: MP206

    k.model(Gate()).fit(k.x, k.y, verbose=0)


@program()
def raw_variable(k: Any) -> None:
    class Scale(k.Layer):
        def build(self, shape):
            self.gamma = k.tf.Variable(k.tf.ones((4,)))

        def call(self, x):
            return x * self.gamma  # expect: MP203

    k.model(Scale()).fit(k.x, k.y, verbose=0)


@program()
def second_input(k: Any) -> None:
    class Sum(k.Layer):
        def call(self, x, y):
            return x + y  # expect: MP217

    Sum()(k.tf.constant(k.x), k.tf.constant(k.x))


@program()
def second_input_by_name(k: Any) -> None:
    class Weighted(k.Layer):
        def call(self, x, weights=None):
            return x * weights  # expect: MP217

    Weighted()(k.tf.constant(k.x), weights=k.tf.constant(k.x))


@program()
def second_input_and_a_constant(k: Any) -> None:
    class Sum(k.Layer):
        def call(self, x, y):
            mean = k.tf.reduce_mean(y)
            return (x + k.tf.ones((4,))) * k.tf.cast(mean, x.dtype)  # expect: MP202

    Sum()(k.tf.constant(k.x), k.tf.constant(k.x))


@program()
def assigned_average(k: Any) -> None:
    class Average(k.Layer):
        def build(self, shape):
            self.mean = self.add_weight(name="mean", shape=(4,), initializer="zeros", trainable=False)

        def call(self, x):
            self.mean.assign(0.9 * self.mean + 0.1 * k.tf.reduce_mean(x, 0))  # expect: MP205
            return x

    k.model(Average()).fit(k.x, k.y, verbose=0)


@program()
def added_to_a_weight(k: Any) -> None:
    class Count(k.Layer):
        def build(self, shape):
            self.total = self.add_weight(name="total", shape=(4,), initializer="zeros", trainable=False)

        def call(self, x):
            self.total.assign_add(k.tf.reduce_sum(x, 0))  # expect: MP205
            return x

    k.model(Count()).fit(k.x, k.y, verbose=0)


@program()
def spectrum(k: Any) -> None:
    class Spectrum(k.Layer):
        def call(self, x):
            return k.tf.abs(k.tf.signal.rfft(x))  # expect: MP211

    k.model(Spectrum()).fit(k.x, k.y, verbose=0)


@program()
def complex_parts(k: Any) -> None:
    class Spectrum(k.Layer):
        def call(self, x):
            return k.tf.math.real(k.tf.signal.fft(k.tf.complex(x, x)))  # expect: MP211

    k.model(Spectrum()).fit(k.x, k.y, verbose=0)


@program()
def singular_values(k: Any) -> None:
    class Values(k.Layer):
        def call(self, x):
            return x * k.tf.reduce_max(k.tf.linalg.svd(x, compute_uv=False))

    k.model(Values()).fit(k.x, k.y, verbose=0)  # expect: MP211


@program()
def inverse_of_a_matrix(k: Any) -> None:
    class Solve(k.Layer):
        def call(self, x):
            return x @ k.tf.linalg.inv(k.tf.matmul(x, x, transpose_a=True))

    k.model(Solve()).fit(k.x, k.y, verbose=0)  # expect: MP211


@program("mixed_bfloat16")
def qr_in_bfloat16(k: Any) -> None:
    class Basis(k.Layer):
        def call(self, x):
            return k.tf.linalg.qr(x)[0]  # expect: MP211

    k.model(Basis()).fit(k.x, k.y, verbose=0)


@program()
def tensor_array(k: Any) -> None:
    class Loop(k.Layer):
        def call(self, x):
            kept = k.tf.TensorArray(k.tf.float32, 1)
            return kept.write(0, x).stack()  # expect: MP214

    k.model(Loop()).fit(k.x, k.y, verbose=0)  # expect[2.4]: MP214


@program()
def tensor_array_eagerly(k: Any) -> None:
    class Loop(k.Layer):
        def call(self, x):
            kept = k.tf.TensorArray(k.tf.float32, 1)
            return kept.write(0, x).stack()  # expect: MP214

    Loop()(k.tf.constant(k.x))


@program()
def loop_that_turns_float32(k: Any) -> None:
    class Loop(k.Layer):
        def call(self, x):
            total = x
            for _ in k.tf.range(3):  # expect: MP002
                total = k.tf.cast(total, k.tf.float32) * 2.0
            return total

    k.model(Loop()).fit(k.x, k.y, verbose=0)


@program()
def float32_initial_state(k: Any) -> None:
    sequences = k.np.zeros((2, 4, 3), "float32")
    k.layers.LSTM(8)(sequences, initial_state=[k.tf.zeros((2, 8)), k.tf.zeros((2, 8))])  # expect: MP212


@program()
def float32_initial_state_of_gru(k: Any) -> None:
    sequences = k.np.zeros((2, 4, 3), "float32")
    k.layers.GRU(8)(sequences, initial_state=k.tf.zeros((2, 8)))  # expect: MP212


@program()
def stateful_layer(k: Any) -> None:
    k.layers.GRU(8, stateful=True)(k.np.zeros((1, 4, 3), "float32"))  # expect: MP212


@program()
def cell_with_float32_state(k: Any) -> None:
    class Cell(k.Layer):
        state_size = output_size = 4

        def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
            return k.tf.zeros((16, 4))

        def call(self, inputs, states):
            out = inputs + states[0]  # expect: MP212
            return out, [out]

    k.model(k.layers.RNN(Cell())).fit(k.np.zeros((16, 3, 4), "float32"), k.y, verbose=0)


@program()
def cell_that_gives_its_state_back_in_float32(k: Any) -> None:
    class Cell(k.Layer):
        state_size = output_size = 4

        def call(self, inputs, states):
            out = k.tf.cast(inputs + states[0], "float32")
            return out, [out]

    model = k.model(k.layers.RNN(Cell()))
    model.fit(k.np.zeros((16, 3, 4), "float32"), k.y, verbose=0)  # expect: MP212


@program()
def decoder_in_call(k: Any) -> None:
    class Decoder(k.keras.Model):
        def __init__(self):
            super().__init__()
            self.lstm = k.layers.LSTM(8)

        def call(self, x):
            start = k.tf.zeros((2, 8))
            return self.lstm(x, initial_state=[start, start])  # expect: MP212

    Decoder()(k.tf.zeros((2, 4, 3)))


@program()
def functional_sum(k: Any) -> None:
    i = k.keras.Input((4,))
    k.keras.Model(i, i + k.layers.Dense(4)(i))  # expect: MP002


@program()
def built_in_layer_of_two(k: Any) -> None:
    class Attend(k.Layer):
        def __init__(self):
            super().__init__()
            self.attend = k.layers.Attention()

        def call(self, x):
            return self.attend([x[None], k.tf.ones((1, 16, 4))])  # expect: MP002

    Attend()(k.tf.constant(k.x))


@program()
def variable_of_the_program(k: Any) -> None:
    scale = k.tf.Variable(2.0)

    class Scale(k.Layer):
        def call(self, x):
            return x * scale  # expect: MP202

    k.model(Scale()).fit(k.x, k.y, verbose=0)


@program()
def statement_of_several_lines(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return k.tf.reduce_sum(
                x + k.tf.ones((4,)),  # expect: MP202
                keepdims=True,  # expect[tf_keras]: MP202  # expect[2.15]: MP202  # expect[2.10]: MP202
            )

    k.model(Shift()).fit(k.x, k.y, verbose=0)


@program()
def layer_of_float32(k: Any) -> None:
    class Mixed(k.Layer):
        def call(self, x):
            return x + k.tf.ones((4,), k.tf.float16)  # expect: MP002

    k.model(Mixed(dtype="float32")).fit(k.x, k.y, verbose=0)


@program()
def perceptual_loss(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return x + k.tf.ones((1,))  # expect: MP202

    features = k.keras.Sequential([Shift()])

    def loss(y, p):
        return k.tf.reduce_mean(k.tf.square(features(y) - features(p)))

    k.model(loss=loss).fit(k.x, k.y, verbose=0)


@program()
def loss_of_the_library(k: Any) -> None:
    def loss(y, p):
        return k.tf.reduce_mean(k.keras.losses.get("mse")(y, p) * k.tf.ones((16,)))  # expect: MP505

    k.model(loss=loss).fit(k.x, k.y, verbose=0, batch_size=16)


@program()
def error_while_another_is_handled(k: Any) -> None:
    class Shift(k.Layer):
        def call(self, x):
            return x + k.tf.ones((4,))

    try:
        Shift()(k.tf.constant(k.x))
    except Exception:  # whatever it is
        k.tf.constant([1, 2]) + k.tf.constant([1.0, 2.0])  # expect: MP002


# --- losses -------------------------------------------------------------------------------------------------------
@program()
def constant_in_loss(k: Any) -> None:
    def loss(y, p):
        return k.tf.reduce_mean(k.tf.constant(2.0) * k.tf.square(k.tf.cast(y, k.tf.float32) - p))  # expect: MP505

    k.model(loss=loss).fit(k.x, k.y, verbose=0)


@program()
def constant_in_loss_class(k: Any) -> None:
    class Weighted(k.keras.losses.Loss):
        def call(self, y_true, y_pred):
            error = k.tf.square(y_true - y_pred)
            return k.tf.constant([[2.0]]) * error  # expect: MP505

    k.model(loss=Weighted()).fit(k.x, k.y, verbose=0)


@program()
def labels_meet_predictions_in_train_step(k: Any) -> None:
    class Net(k.keras.Model):
        def __init__(self):
            super().__init__()
            self.head = k.layers.Dense(1)

        def call(self, x):
            return self.head(x)

        def train_step(self, data):
            x, y = data
            with k.tf.GradientTape() as tape:
                loss = k.tf.reduce_mean(k.tf.square(y - self(x, training=True)))  # expect: MP505
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients([*zip(gradients, self.trainable_variables)])  # noqa: B905 - Python 3.8
            return {"loss": loss}

    model = Net()
    model.compile("sgd")
    model.fit(k.x, k.y, verbose=0)


@program()
def labels_meet_predictions_in_a_loop(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(8), k.layers.Dense(1)])
    with k.tf.GradientTape() as tape:
        loss = k.tf.reduce_mean((model(k.tf.constant(k.x)) - k.tf.constant(k.y)) ** 2)  # expect: MP505
    tape.gradient(loss, model.trainable_variables)


@program()
def labels_meet_predictions_in_a_function(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(8), k.layers.Dense(1)])

    @k.tf.function
    def step(x, y):
        with k.tf.GradientTape() as tape:
            error = model(x) - y  # expect: MP505
            loss = k.tf.reduce_mean(error**2)
        return tape.gradient(loss, model.trainable_variables)

    step(k.tf.constant(k.x), k.tf.constant(k.y))


@program("float32")
def whole_labels_in_loss(k: Any) -> None:
    def loss(y, p):
        return k.tf.reduce_mean(k.tf.square(k.tf.cast(y, k.tf.int32) - p))  # expect: MP002

    k.model(loss=loss).fit(k.x, k.y, verbose=0)


@program()
def whole_labels_in_loss_under_mixed(k: Any) -> None:
    def loss(y, p):
        return k.tf.reduce_mean(k.tf.square(k.tf.cast(y, k.tf.int32) - p))  # expect: MP002

    k.model(loss=loss).fit(k.x, k.y, verbose=0)


@program("float32")
def double_labels_in_a_loop(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(1)])
    with k.tf.GradientTape():
        k.tf.reduce_mean((model(k.tf.constant(k.x)) - k.tf.constant(k.y, "float64")) ** 2)  # expect: MP002


@program("float32")
def half_by_hand_under_float32(k: Any) -> None:
    class Half(k.Layer):
        def call(self, x):
            return k.tf.cast(x, k.tf.float16) + x  # expect: MP002

    k.model(Half()).fit(k.x, k.y, verbose=0)


@program("float32")
def whole_numbers_in_call(k: Any) -> None:
    class Count(k.Layer):
        def call(self, x):
            return x * k.tf.shape(x)[0]  # expect: MP002

    k.model(Count()).fit(k.x, k.y, verbose=0)


@program()
def whole_numbers_in_call_under_mixed(k: Any) -> None:
    class Count(k.Layer):
        def call(self, x):
            return x * k.tf.shape(x)[0]  # expect: MP002

    k.model(Count()).fit(k.x, k.y, verbose=0)


@program()
def raised_by_hand(k: Any) -> None:
    class Strict(k.Layer):
        def call(self, x):
            text = "Input 'y' of 'AddV2' Op has type float32 that does not match type float16 of argument 'x'."
            raise ValueError(text)  # expect: MP002

    k.model(Strict()).fit(k.x, k.y, verbose=0)


@program()
def shapes_raised_by_hand(k: Any) -> None:
    def check(x):
        if x.shape[1] != 5:
            raise ValueError("Shapes (16, 4) and (16, 5) are incompatible")  # expect: MP002

    check(k.x)


# --- metrics ------------------------------------------------------------------------------------------------------
@program()
def metric_function(k: Any) -> None:
    def error(y, p):
        return k.tf.reduce_mean(k.tf.abs(y - p))  # expect: MP508

    k.model(metrics=[error]).fit(k.x, k.y, verbose=0)


@program()
def metric_class(k: Any) -> None:
    class Total(k.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="total")
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(k.tf.reduce_sum(y_pred))  # expect: MP508

        def result(self):
            return self.total

    k.model(metrics=[Total()]).fit(k.x, k.y, verbose=0)


@program()
def metric_class_of_differences(k: Any) -> None:
    class Error(k.keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="error")
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            difference = k.tf.constant(1.0) * y_pred  # expect: MP508
            self.total.assign_add(k.tf.reduce_sum(difference))

        def result(self):
            return self.total

    k.model(metrics=[Error()]).fit(k.x, k.y, verbose=0)


@program()
def metric_with_constant(k: Any) -> None:
    def above(y, p):
        return k.tf.reduce_mean(p * k.tf.constant([[2.0]]))  # expect: MP508

    k.model(metrics=[above]).fit(k.x, k.y, verbose=0)


# --- added losses -------------------------------------------------------------------------------------------------
@program()
def activity_regularizer(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(8, activity_regularizer="l2"), k.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(k.x, k.y, verbose=0)  # expect: MP509


@program()
def added_loss(k: Any) -> None:
    class Penalty(k.Layer):
        def call(self, x):
            self.add_loss(k.tf.reduce_mean(x))
            return x

    model = k.keras.Sequential([Penalty(), k.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(k.x, k.y, verbose=0)  # expect: MP509


@program()
def added_loss_in_a_train_step(k: Any) -> None:
    class Net(k.keras.Model):
        def __init__(self):
            super().__init__()
            self.head = k.layers.Dense(1, activity_regularizer="l2")

        def call(self, x):
            return self.head(x)

        def train_step(self, data):
            x, y = data
            with k.tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))  # expect: MP509  # expect[2.4]: MP002
            self.optimizer.apply_gradients([(tape.gradient(loss, self.head.kernel), self.head.kernel)])
            return {"loss": loss}

    model = Net()
    model.compile("sgd", "mse")
    model.fit(k.x, k.y, verbose=0)


@program()
def mixed_terms_of_added_loss(k: Any) -> None:
    class Penalty(k.Layer):
        def build(self, shape):
            self.w = self.add_weight(name="w", shape=(4,), initializer="ones")

        def call(self, x):
            self.add_loss(k.tf.reduce_mean(x) + k.tf.reduce_sum(k.tf.constant([1.0, 2.0])))  # expect: MP202
            return x

    k.model(Penalty()).fit(k.x, k.y, verbose=0)


# --- optimizers ---------------------------------------------------------------------------------------------------
@program()
def attribute_read(k: Any) -> None:
    print(k.scaling(k.keras.optimizers.Adam()).epsilon)  # expect: MP301


@program()
def slot_read(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.Adam())
    print(optimizer.get_weights())  # expect: MP301


@program()
def scaled_loss_of_keras2(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
    with k.tf.GradientTape():
        optimizer.get_scaled_loss(k.tf.constant(1.0))  # expect: MP407


@program()
def minimize_of_keras2(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
    weight = k.tf.Variable(1.0)
    optimizer.minimize(lambda: weight**2, [weight])  # expect: MP407


@program()
def scale_loss_of_keras3(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
    optimizer.scale_loss(k.tf.constant(1.0))  # expect: MP301


@program()
def scale_called(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1)).loss_scale()  # expect: MP411  # expect[3]: MP301


@program()
def scale_read_before_build(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1)).dynamic_scale.numpy()  # expect: MP301  # expect[3]: MP411


@program()
def losses_scaled_together(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
    scale = optimizer.scale_loss if k.is_keras3 else optimizer.get_scaled_loss
    scale((k.tf.constant(1.0), k.tf.constant(2.0)))  # expect: MP411


@program()
def losses_scaled_in_a_function(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
    scale = optimizer.scale_loss if k.is_keras3 else optimizer.get_scaled_loss

    @k.tf.function
    def step(one, other):
        return scale((one, other))  # expect: MP411  # expect[2.4]: MP002

    step(k.tf.constant(1.0), k.tf.constant(2.0))


@program()
def wrapped_string(k: Any) -> None:
    k.scaling("adam")  # expect: MP304


@program()
def wrapped_optimizer_of_tensorflow1(k: Any) -> None:
    k.scaling(k.tf.compat.v1.train.AdamOptimizer())  # expect: MP304


@program()
def wrapped_class(k: Any) -> None:
    k.scaling(k.keras.optimizers.Adam)  # expect: MP304


@program()
def wrapped_class_trained(k: Any) -> None:
    optimizer = k.scaling(k.keras.optimizers.Adam)  # expect: MP304
    model = k.keras.Sequential([k.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(k.x, k.y, verbose=0)  # expect[3]: MP002


@program()
def optimizer_of_tensorflow1_trained(k: Any) -> None:
    optimizer = k.scaling(k.tf.compat.v1.train.AdamOptimizer())  # expect: MP304
    model = k.keras.Sequential([k.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(k.x, k.y, verbose=0)  # expect[3]: MP304


@program()
def optimizer_without_a_step(k: Any) -> None:
    class Mine(k.keras.optimizers.Optimizer):
        def __init__(self):
            super().__init__(**({"learning_rate": 0.1} if k.is_keras3 else {"name": "mine"}))

        def get_config(self):
            return {}

    model = k.keras.Sequential([k.layers.Dense(1)])
    model.compile(Mine(), "mse")
    model.fit(k.x, k.y, verbose=0)  # expect: MP304  # expect[2.4]: MP002


@program()
def optimizer_without_learning_rate(k: Any) -> None:
    class Mine(k.keras.optimizers.Optimizer):
        pass

    Mine()  # expect: MP304  # expect[2.4]: MP002


@program()
def experimental_optimizer(k: Any) -> None:
    k.scaling(k.keras.optimizers.experimental.Adam())  # expect: MP002


@program()
def wrapped_twice(k: Any) -> None:
    inner = k.keras.optimizers.SGD(0.1)
    k.scaling(inner)
    k.scaling(inner)  # expect: MP307


@program()
def compiled_twice(k: Any) -> None:
    inner = k.keras.optimizers.SGD(0.1)
    k.keras.Sequential([k.layers.Dense(1)]).compile(inner, "mse")
    k.keras.Sequential([k.layers.Dense(1)]).compile(inner, "mse")  # expect: MP307


@program()
def wrapper_in_wrapper(k: Any) -> None:
    k.scaling(k.scaling(k.keras.optimizers.SGD(0.1)))  # expect: MP306


@program()
def fixed_scale(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), dynamic=False, initial_scale=1024.0)  # expect: MP310


@program()
def fixed_scale_without_a_scale(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), dynamic=False)  # expect: MP310


@program()
def growth_of_a_fixed_scale(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), dynamic=False, initial_scale=2.0, dynamic_growth_steps=3)  # expect: MP310


@program()
def scale_by_a_string(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), "dynamic")  # expect: MP310


@program()
def scale_by_a_string_trained(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(1)])
    optimizer = k.scaling(k.keras.optimizers.SGD(0.1), initial_scale="dynamic")  # expect: MP310
    model.compile(optimizer, "mse")
    model.fit(k.x, k.y, verbose=0)  # expect[3]: MP310


@program()
def argument_of_old(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), loss_scale="dynamic")  # expect: MP310  # expect[2.4]: MP002


@program()
def clipping_given_to_the_wrapper(k: Any) -> None:
    k.scaling(k.keras.optimizers.SGD(0.1), clipnorm=1.0)  # expect: MP310  # expect[2.4]: MP002


@program()
def applied_outside_a_replica(k: Any) -> None:
    strategy = k.tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        weight = k.tf.Variable(1.0)
        optimizer = k.scaling(k.keras.optimizers.SGD(0.1))
        optimizer.apply_gradients([(k.tf.constant(1.0), weight)])  # expect: MP415


@program()
def jit_under_a_mirrored_strategy(k: Any) -> None:
    strategy = k.tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = k.keras.Sequential([k.keras.Input((4,)), k.layers.Dense(1)])
        model.compile("adam", "mse", jit_compile=True)  # expect[2.4]: MP002
    model.fit(k.x, k.y, verbose=0, batch_size=4)  # expect: MP002


# --- policies -----------------------------------------------------------------------------------------------------
@program()
def misspelt_policy(k: Any) -> None:
    k.mixed_precision.set_global_policy("mixed_fp16")  # expect: MP104


@program()
def misspelt_dtype_of_a_layer(k: Any) -> None:
    k.layers.Dense(1, dtype="mixed_half")  # expect: MP104


@program()
def half_as_a_policy(k: Any) -> None:
    k.mixed_precision.set_global_policy("half")  # expect: MP104


@program()
def policy_by_a_dtype(k: Any) -> None:
    k.mixed_precision.set_global_policy(k.tf.float16)  # expect: MP104


@program()
def policy_written(k: Any) -> None:
    model = k.keras.Sequential([k.keras.Input((4,)), k.layers.Dense(1)])
    model.dtype_policy = "mixed_float16"  # expect: MP112


@program()
def policy_of_a_layer_written(k: Any) -> None:
    layer = k.layers.Dense(1)
    layer.dtype_policy = "float32"  # expect: MP112


@program("float32")
def experimental_policy(k: Any) -> None:
    k.mixed_precision.experimental.set_policy("mixed_float16")  # expect: MP102


@program("float32")
def graph_rewrite(k: Any) -> None:
    k.tf.train.experimental.enable_mixed_precision_graph_rewrite(k.keras.optimizers.SGD(0.1))  # expect: MP102
    k.tf.train.experimental.disable_mixed_precision_graph_rewrite()


@program("float32")
def legacy_optimizer(k: Any) -> None:
    k.keras.optimizers.legacy.Adam(0.1)  # expect: MP002


@program()
def wrapper_derived_from(k: Any) -> None:
    class Gentle(k.keras.mixed_precision.LossScaleOptimizer):
        def get_scaled_loss(self, loss):
            return super().get_scaled_loss(loss) / 64

    k.model().compile(Gentle(k.keras.optimizers.SGD(0.1)), "mse")  # expect: MP316


@program()
def wrapper_with_arguments_of_its_own(k: Any) -> None:
    class Static(k.keras.mixed_precision.LossScaleOptimizer):
        def __init__(self, inner_optimizer, scale):
            super().__init__(inner_optimizer, initial_scale=scale)  # expect: MP316

    k.model().compile(Static(k.keras.optimizers.SGD(0.1), 128.0), "mse")


@program("float32")
def name_that_never_was(k: Any) -> None:
    k.tf.mixed_precision.LossScaleOptimizer(k.keras.optimizers.SGD(0.1))  # expect: MP002


@program("float32")
def policy_with_a_loss_scale(k: Any) -> None:
    k.mixed_precision.Policy("mixed_float16", loss_scale="dynamic")  # expect: MP102  # expect[2.4]: MP002


# --- data ---------------------------------------------------------------------------------------------------------
@program("float32")
def object_array(k: Any) -> None:
    rows = k.np.array([[1.0, "a"]] * 16, dtype=object)
    k.model().fit(rows, k.y, verbose=0)  # expect: MP602


@program("float32")
def object_array_of_numbers(k: Any) -> None:
    rows = k.np.array([[1.0, 2.0]] * 16, dtype=object)
    k.model().fit(rows, k.y, verbose=0)  # expect: MP602


@program("float32")
def string_array(k: Any) -> None:
    rows = k.np.array([["1", "a"]] * 16)
    k.model().fit(rows, k.y, verbose=0)  # expect: MP602


@program("float32")
def string_labels(k: Any) -> None:
    k.model().fit(k.x, k.np.array(["cat", "dog"] * 8), verbose=0)  # expect: MP602


@program("float32")
def dates(k: Any) -> None:
    days = k.np.arange("2020-01-01", "2020-01-17", dtype="datetime64[D]").reshape(16, 1)
    k.model().fit(days, k.y, verbose=0)  # expect: MP602


@program("float32")
def string_dataset(k: Any) -> None:
    data = k.tf.data.Dataset.from_tensor_slices((k.np.array([["1", "a"]] * 16), k.y)).batch(4)
    model = k.keras.Sequential([k.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(data, verbose=0)  # expect: MP602


@program("float32")
def rows_of_two_lengths(k: Any) -> None:
    k.tf.constant([[1.0, 2.0], [3.0]])  # expect: MP002


@program()
def clash_in_a_pipeline(k: Any) -> None:
    data = k.tf.data.Dataset.from_tensor_slices(k.x)
    data.map(lambda x: k.tf.cast(x, k.tf.float16) + x)  # expect: MP002


@program("float32")
def too_wide(k: Any) -> None:
    model = k.keras.Sequential([k.keras.Input((5,)), k.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(k.x, k.y, verbose=0)  # expect: MP605


@program()
def reshaped(k: Any) -> None:
    class Picture(k.Layer):
        def call(self, x):
            return k.tf.reshape(x, (-1, 3, 3))  # expect: MP605

    k.model(Picture()).fit(k.x, k.y, verbose=0)  # expect[2.4]: MP605


@program()
def shapes_in_loss(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(3)])
    model.compile("sgd", "mse")
    model.fit(k.x, k.np.zeros((16, 2), "float32"), verbose=0)  # expect: MP605


@program()
def matrices_in_call(k: Any) -> None:
    class Project(k.Layer):
        def build(self, shape):
            self.w = self.add_weight(name="w", shape=(5, 3), initializer="ones")

        def call(self, x):
            return k.tf.matmul(x, self.w)  # expect: MP605

    k.model(Project()).fit(k.x, k.y, verbose=0)


# --- something else -----------------------------------------------------------------------------------------------
@program()
def missing_file(k: Any) -> None:
    k.np.load("features.npy")  # expect: MP002


@program()
def missing_model_file(k: Any) -> None:
    k.keras.models.load_model("nowhere.keras")  # expect: MP002


@program()
def missing_weights(k: Any) -> None:
    k.keras.Sequential([k.keras.Input((4,)), k.layers.Dense(1)]).load_weights("nowhere.weights.h5")  # expect: MP002


@program()
def missing_records(k: Any) -> None:
    list(k.tf.data.TFRecordDataset("nowhere.tfrecord"))  # expect: MP002


@program()
def no_name_server(k: Any) -> None:
    import urllib.request

    urllib.request.urlopen("http://nowhere.invalid/weights")  # expect: MP002


@program()
def missing_package(k: Any) -> None:
    import tensorflow_nowhere  # noqa: F401  # expect: MP002


@program()
def no_network(k: Any) -> None:
    k.keras.utils.get_file("weights.h5", "http://localhost:9/weights.h5", cache_dir="nowhere")  # expect: MP002


@program()
def too_much_memory(k: Any) -> None:
    k.tf.zeros((1 << 22, 1 << 22))  # expect: MP002


@program()
def too_much_memory_of_numpy(k: Any) -> None:
    k.np.ones((1 << 23, 1 << 23))  # expect: MP002


@program()
def label_out_of_range(k: Any) -> None:
    model = k.keras.Sequential([k.layers.Dense(3)])
    model.compile("sgd", k.keras.losses.SparseCategoricalCrossentropy(from_logits=True), run_eagerly=True)
    model.fit(k.x, k.np.full((16,), 7), verbose=0)  # expect: MP002


@program()
def different_lengths(k: Any) -> None:
    k.model().fit(k.x, k.y[:5], verbose=0)  # expect: MP605


@program()
def array_of_a_tensor(k: Any) -> None:
    class Convert(k.Layer):
        def call(self, x):
            return x + k.np.array(x)  # expect: MP002

    k.model(Convert()).fit(k.x, k.y, verbose=0)


@program()
def not_compiled(k: Any) -> None:
    k.keras.Sequential([k.layers.Dense(1)]).fit(k.x, k.y, verbose=0)  # expect: MP002


@program()
def missing_attribute_of_a_tensor(k: Any) -> None:
    class Convert(k.Layer):
        def call(self, x):
            return k.np.asarray(x.numpy())  # expect: MP002

    k.model(Convert()).fit(k.x, k.y, verbose=0)


@program()
def loaded_without_training(k: Any) -> None:
    model = k.keras.Sequential([k.keras.Input((4,)), k.layers.Dense(1)])
    model.compile("adam", "mse")
    model.save("untrained.keras")
    k.keras.models.load_model("untrained.keras")  # expect: MP002
