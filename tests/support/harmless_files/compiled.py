"""How models are compiled, started and computed: losses, metrics, optimizers, schedules, initializers, policies."""

from harmless_files.registry import NEWER, harmless


def small(k, *more):
    return k.sequential((4,), k.layers.Dense(4, activation="relu"), *more, k.layers.Dense(1))


@harmless()
def losses_by_class(k):
    losses = k.keras.losses
    return k.compiled(small(k), losses.Huber(delta=2.0), metrics=[k.keras.metrics.MeanAbsoluteError(name="error")])


@harmless()
def losses_by_name(k):
    return k.compiled(
        small(k), "mean_squared_error", "rmsprop", metrics=["mae", "mse", "mape"], weighted_metrics=["mae"]
    )


@harmless()
def losses_by_function(k):
    return k.compiled(small(k), k.keras.losses.mean_absolute_error, metrics=[k.keras.metrics.mean_squared_error])


@harmless()
def losses_in_a_dictionary(k):
    start = k.given(4)
    model = k.Model(start, {"a": k.layers.Dense(1, name="a")(start), "b": k.layers.Dense(1, name="b")(start)})
    return k.compiled(model, {"a": "mse", "b": k.keras.losses.LogCosh()}, "adam", metrics={"a": ["mae"], "b": ["mse"]})


@harmless()
def metrics_of_classes(k):
    m = k.keras.metrics
    model = k.sequential((4,), k.layers.Dense(1, activation="sigmoid"))
    return k.compiled(
        model, "binary_crossentropy", metrics=["accuracy", m.AUC(), m.Precision(), m.Recall(thresholds=0.4)]
    )


@harmless()
def metrics_of_many_classes(k):
    model = k.sequential((4,), k.layers.Dense(3, activation="softmax"))
    metrics = ["accuracy", k.keras.metrics.SparseTopKCategoricalAccuracy(k=2)]
    return k.compiled(model, k.keras.losses.SparseCategoricalCrossentropy(), metrics=metrics)


def _with_optimizer(name, **config):
    def make(k):
        return k.compiled(small(k), "mse", getattr(k.keras.optimizers, name)(**config))

    make.__name__ = "optimizer_" + name.lower()
    return make


for _name, _config in [
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {"amsgrad": True, "clipnorm": 1.0}),
    ("RMSprop", {"centered": True}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("Adamax", {}),
    ("Nadam", {}),
    ("Ftrl", {}),
]:
    harmless()(_with_optimizer(_name, **_config))
for _name in ("AdamW", "Adafactor", "Lion"):
    harmless(NEWER)(_with_optimizer(_name))


@harmless()
def schedules(k):
    s = k.keras.optimizers.schedules
    return k.compiled(small(k), "mse", k.keras.optimizers.Adam(s.ExponentialDecay(0.01, 100, 0.9, staircase=True)))


@harmless()
def schedule_of_pieces(k):
    s = k.keras.optimizers.schedules
    return k.compiled(small(k), "mse", k.keras.optimizers.SGD(s.PiecewiseConstantDecay([10, 20], [0.1, 0.01, 0.001])))


@harmless(("3", "tf_keras", "2.15", "2.10"))
def schedule_of_cosines(k):
    s = k.keras.optimizers.schedules
    return k.compiled(small(k), "mse", k.keras.optimizers.Adam(s.CosineDecay(0.01, 100)))


@harmless()
def initializers(k):
    i = k.keras.initializers
    kinds = [
        i.GlorotNormal(1),
        i.HeUniform(2),
        i.LecunNormal(3),
        i.RandomNormal(0.0, 0.1),
        i.TruncatedNormal(),
        i.Identity(),
        i.Orthogonal(),
        i.VarianceScaling(2.0, "fan_out"),
        i.Constant(0.1),
        "ones",
        "he_normal",
        "random_uniform",
    ]
    return k.sequential((4,), *[k.layers.Dense(4, kernel_initializer=kind, bias_initializer="zeros") for kind in kinds])


@harmless()
def regularizers_and_constraints(k):
    r, c = k.keras.regularizers, k.keras.constraints
    return k.sequential(
        (4,),
        k.layers.Dense(4, kernel_regularizer=r.L1L2(0.01, 0.02), bias_regularizer="l2", activity_regularizer=r.L1(0.1)),
        k.layers.Dense(4, kernel_constraint=c.MaxNorm(2), bias_constraint=c.NonNeg()),
        k.layers.Dense(1, kernel_constraint=c.UnitNorm(), kernel_regularizer=r.l2(0.1)),
    )


def _policy(k, name):
    module = (
        k.keras.mixed_precision if hasattr(k.keras.mixed_precision, "Policy") else k.keras.mixed_precision.experimental
    )
    return module.Policy(name) if not k.is_keras3 else k.keras.DTypePolicy(name)


@harmless()
def mixed_float16(k):
    policy = _policy(k, "mixed_float16")
    y = k.layers
    model = k.sequential(
        (4,), y.Dense(8, dtype=policy), y.BatchNormalization(dtype=policy), y.Dense(1, dtype="float32")
    )
    mixed = k.keras.mixed_precision
    return k.compiled(model, "mse", mixed.LossScaleOptimizer(k.keras.optimizers.Adam()))


@harmless()
def mixed_bfloat16(k):
    policy = _policy(k, "mixed_bfloat16")
    return k.compiled(k.sequential((4,), k.layers.Dense(8, dtype=policy), k.layers.Dense(1, dtype="float32")))


@harmless(("3",))
def policy_map(k):
    policies = k.keras.dtype_policies.DTypePolicyMap(default_policy="float32")
    policies["mha/query"] = k.keras.DTypePolicy("bfloat16")

    def build(x):
        y = k.layers.MultiHeadAttention(2, 4, name="mha", dtype=policies)(x, x)
        return k.layers.Dense(1)(k.layers.Flatten()(y))

    return k.applied((4, 8), build)


@harmless(("3",), forms=("keras",))
def quantized(k):
    model = k.sequential((8,), k.layers.Dense(8), k.layers.Dense(1))
    model.quantize("int8")
    return model


@harmless(("3",), forms=("keras",))
def low_rank_adaptation(k):
    model = k.sequential((8,), k.layers.Dense(8, name="wide"), k.layers.Dense(1))
    model.get_layer("wide").enable_lora(2)
    return model


@harmless(NEWER)
def eager_and_compiled_many_times(k):
    return k.compiled(small(k), run_eagerly=True, steps_per_execution=1)


@harmless(("3",))
def optimizer_with_everything(k):
    optimizer = k.keras.optimizers.AdamW(0.01, use_ema=True, gradient_accumulation_steps=2, global_clipnorm=1.0)
    return k.compiled(small(k), "mse", optimizer, jit_compile=False)
