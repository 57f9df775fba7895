"""What the LossScaleOptimizer of mpdoctor.training does in the Keras at hand, beside Keras' own: a check each.

`python tests/support/live_loss_scaling.py [name ...] [--sequences 200 --seed 1]` prints {check: what went wrong, ""}
as JSON; `same_as_own_in_graphs=500` runs so many sequences of that one. It needs TensorFlow and, of this project,
mpdoctor.training alone; TF_USE_LEGACY_KERAS=1 takes tf_keras.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import json
import os
import random
import sys
import tempfile
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from mpdoctor.training import LossScaleOptimizer

keras = tf.keras
IS_KERAS3 = getattr(keras, "__version__", "2").startswith("3")
RELEASE = tuple(int(number) for number in tf.__version__.split(".")[:2])
KerasOwn = keras.mixed_precision.LossScaleOptimizer
lost = object()
XLA = {"jit_compile" if RELEASE >= (2, 5) else "experimental_compile": True}
UNCHANGED = ("name", "built", "loss_scale_factor", "iterations", "inner_optimizer")
BETWEEN = ((LossScaleOptimizer,) * 2, (KerasOwn, LossScaleOptimizer), (LossScaleOptimizer, KerasOwn))  # saved, loaded
INF = float("inf")
NAN = float("nan")


def families():
    """Each kind of optimizers that this Keras has: their base classes differ."""
    places = [keras.optimizers]
    if not IS_KERAS3:
        places += [
            getattr(keras.optimizers, name) for name in ("legacy", "experimental") if hasattr(keras.optimizers, name)
        ]
    return list({place.SGD: place for place in reversed(places)}.values())[::-1]


def newest():
    """Optimizers without slots and hyperparameters: those of 2.9 and later."""
    return getattr(keras.optimizers, "experimental", keras.optimizers) if not IS_KERAS3 else keras.optimizers


def state(optimizer):
    """(scale, counter), of ours and of Keras' own."""
    if IS_KERAS3:
        return tuple(float(tf.identity(v.value)) for v in (optimizer.dynamic_scale, optimizer.step_counter))
    return float(optimizer.loss_scale), int(tf.identity(optimizer.dynamic_counter))


def give(optimizer, gradient, variable):
    """A gradient as the optimizer's own Keras wants it: here scaled, there unscaled."""
    optimizer.apply_gradients([(gradient, variable)])


def scaled(optimizer, value):
    return tf.constant(value, tf.float32) * (optimizer.loss_scale if IS_KERAS3 else 1.0)


def made(optimizer_class, *args, **kwargs):
    return LossScaleOptimizer(optimizer_class(*args), **kwargs)


def steps(optimizer, variable, values):
    for value in values:
        give(optimizer, scaled(optimizer, value), variable)


def compiled(function, how):
    if how == "eager":
        return function
    return tf.function(function, **({} if how == "graph" else XLA))


# --- beside Keras' own --------------------------------------------------------------------------------------------
LENGTH = 50  # steps of a sequence
SCALES = (28, 60)  # powers of 2 that one begins with: after so many steps it is between 1 and inf still


class Compared:
    """Keras' own wrapper or ours, a variable for it to train, and the values that both begin a sequence with."""

    def __init__(self, wrapper, make_inner, settings):
        self.variable = tf.Variable([1.5, -2.25])
        self.optimizer = wrapper(make_inner(), **settings)
        build(self.optimizer, self.variable)
        self.variables = variables_of(self.optimizer, self.variable)
        self.values = [tf.identity(v) for v in self.variables]
        self.scale, self.counter = scale_and_counter(self.optimizer)

    def begin(self, scale):
        self.variable.assign([1.5, -2.25])
        for variable, value in zip(self.variables, self.values):
            variable.assign(value)
        self.scale.assign(scale)
        self.counter.assign(0)

    def step(self, gradient):
        give(self.optimizer, gradient * self.scale if IS_KERAS3 else gradient, self.variable)

    def now(self):
        """Scale, counter, iterations and weights, of each replica, in float64."""
        numbers = [tf.convert_to_tensor(v) for v in (self.scale, self.counter, self.optimizer.iterations)]
        parts = [tf.convert_to_tensor(replica) for replica in local_parts(self.variable)]
        return tf.concat([[tf.cast(n, tf.float64)] for n in numbers] + [tf.cast(p, tf.float64) for p in parts], 0)

    def now_eagerly(self):
        """The same without an operation of TensorFlow, of which an eager step has thirty."""
        numbers = [float(v.numpy()) for v in (self.scale, self.counter, self.optimizer.iterations)]
        return numbers + [float(weight) for weight in self.variable.numpy()]

    def compile_inner_optimizer(self):
        """An eager step of an Adam takes three times as long as what the wrapper does around it."""
        inner, name = self.optimizer.inner_optimizer, "apply" if IS_KERAS3 else "apply_gradients"
        update = getattr(inner, name)

        @tf.function
        def step(gradient):
            if IS_KERAS3:
                update([gradient], [self.variable])
            else:
                update([(gradient, self.variable)])

        if IS_KERAS3:
            vars(inner)[name] = lambda gradients, trainable_variables: step(*gradients)
        else:
            vars(inner)[name] = lambda pairs, *_, **__: step(pairs[0][0])


def variables_of(optimizer, trained):
    """Of a wrapper. Keras' own for the new optimizers of 2.10 has none to give, and builds what is inside when it first
    applies gradients."""
    try:
        variables = optimizer.variables
        return list(variables() if callable(variables) else variables)
    except AttributeError:
        optimizer.inner_optimizer.build([trained])
        return list(optimizer.inner_optimizer.variables())


def build(optimizer, *variables):
    if hasattr(optimizer, "build"):
        optimizer.build(list(variables))
    else:  # of a legacy optimizer
        optimizer.inner_optimizer._create_all_weights(list(variables))


def scale_and_counter(optimizer):
    """Their variables, of ours and of Keras' own."""
    if IS_KERAS3:
        return optimizer.dynamic_scale.value, optimizer.step_counter.value
    return optimizer._loss_scale.current_loss_scale, optimizer.dynamic_counter


def local_parts(variable):
    return tf.distribute.get_strategy().experimental_local_results(variable)


def sequence(rng, replicas):
    """Gradients of two weights on each replica; those of the second weight are not finite in a fifth of the steps."""
    return [
        [[rng.uniform(-3, 3), bad or rng.uniform(-1e4, 1e4)] for bad in not_finite(rng, replicas)]
        for _ in range(LENGTH)
    ]


def not_finite(rng, replicas):
    """For each replica None, inf or NaN. Keras 3's own wrapper asks the first replica alone, so the others are
    finite there whenever the first one is."""
    if rng.random() >= 0.2:
        return [None] * replicas
    bad = [rng.choice([INF, -INF, NAN, None]) for _ in range(replicas)]
    if all(value is None for value in bad) or (IS_KERAS3 and bad[0] is None):
        bad[0] = rng.choice([INF, -INF, NAN])
    return bad


def same_as_own(seed, count, how, strategy=None):
    """`count` sequences, all with the same optimizers, which begin anew with each."""
    rng = random.Random(seed)
    family, kind, growth_steps = rng.choice(families()), rng.choice(["Adam", "SGD"]), rng.randint(1, 8)
    arguments = {"learning_rate": 0.25} if kind == "Adam" else {"learning_rate": 0.5, "momentum": 0.5}
    make = functools.partial(getattr(family, kind), **arguments)
    settings = {"dynamic_growth_steps": growth_steps}
    with strategy.scope() if strategy else contextlib.nullcontext():
        pair = [Compared(wrapper, make, settings) for wrapper in (KerasOwn, LossScaleOptimizer)]
        if how == "eager around a compiled optimizer":
            for compared in pair:
                compared.compile_inner_optimizer()
        scales = tf.constant([2.0 ** rng.randint(*SCALES) for _ in range(count)])
        replicas = len(local_parts(pair[0].variable))
        gradients = tf.constant([sequence(rng, replicas) for _ in range(count)], tf.float32)
        own, ours = [trajectories_of(compared, how, strategy)(scales, gradients).numpy() for compared in pair]
    assert own.shape == ours.shape and own.shape[:2] == (count, LENGTH), (own.shape, ours.shape)
    same = (own.view(np.int64) == ours.view(np.int64)).all(axis=2)
    assert same.all(), differing(same, own, ours, (seed, family, kind, settings))


def differing(same, own, ours, case):
    number, step = np.argwhere(~same)[0].tolist()
    return case, number, step, own[number, step].tolist(), ours[number, step].tolist()


def trajectories_of(compared, how, strategy):
    """Scales and gradients of sequences -> what `now` says after each step of each, in rows. In a graph the sequences
    are a loop of its own, so that one call takes all of them; XLA, given the same, puts the arithmetic of the two
    wrappers together differently (in TensorFlow 2.10 a weight differs in its last digit)."""

    def one_sequence(gradients):
        rows = tf.TensorArray(tf.float64, size=LENGTH)
        for number in tf.range(LENGTH):
            if strategy is None:
                compared.step(gradients[number, 0])
            else:
                strategy.run(step_of_replica, args=(gradients[number],))
            rows = rows.write(number, compared.now())
        return rows.stack()

    def step_of_replica(gradients):
        compared.step(tf.gather(gradients, tf.distribute.get_replica_context().replica_id_in_sync_group))

    def in_one_call(scales, gradients):
        rows = tf.TensorArray(tf.float64, size=gradients.shape[0])
        for number in tf.range(gradients.shape[0]):
            compared.begin(scales[number])
            rows = rows.write(number, one_sequence(gradients[number]))
        return rows.stack()

    def one_by_one(scales, gradients):
        rows = []
        for scale, given in zip(scales, gradients):
            compared.begin(scale)
            rows.append(run(given))
        return tf.stack(rows)

    def eagerly(scales, gradients):
        rows = []
        for scale, given in zip(scales.numpy(), gradients.numpy()[:, :, 0]):
            compared.begin(scale)
            for gradient in given:
                compared.step(tf.constant(gradient))
                rows.append(compared.now_eagerly())
        return tf.reshape(tf.constant(rows, tf.float64), [len(scales), LENGTH, -1])

    if how.startswith("eager"):
        return eagerly
    run = compiled(one_sequence, how)
    return tf.function(in_one_call) if how == "graph" else one_by_one


def compare(sequences, seed, how, group, strategy=None):
    """Groups of so many sequences have one optimizer of each kind, and one compiled graph; of long runs it is a
    fortieth."""
    group = max(group, sequences // 40)
    for first in range(0, sequences, group):
        same_as_own(seed + first, min(group, sequences - first), how, strategy)


def check_same_as_own_eagerly(sequences, seed):
    """In one of ten groups the optimizer inside is run eagerly, too: it is the same in both wrappers, and takes most of
    the time."""
    group = max(10, sequences // 100)
    for number, first in enumerate(range(0, sequences, group)):
        how = "eager around a compiled optimizer" if number % 10 else "eager"
        same_as_own(seed + first, min(group, sequences - first), how)


def check_same_as_own_in_graphs(sequences, seed):
    compare(sequences, seed, "graph", 25)


def check_same_as_own_under_xla(sequences, seed):
    compare(sequences, seed, "xla", 25)


def check_same_as_own_on_two_replicas(sequences, seed):
    compare(sequences, seed, "graph", 25, two_replicas())


@functools.lru_cache(maxsize=None)
def two_replicas():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


# --- where Keras goes wrong ---------------------------------------------------------------------------------------
# Each case takes a wrapper's class and a kind of optimizers, and says what came out and what is right.
# None: this Keras has no such thing.
FIRST_SCALE = 2.0**15 if IS_KERAS3 else 1.0  # of gradients, as an optimizer is given them at first
LOST_IN_EVERY_KERAS = {"epsilon_set_on_the_wrapper", "amsgrad_set_on_the_wrapper"}
LOST_SINCE_2_9 = LOST_IN_EVERY_KERAS | {"clipnorm_set_on_the_wrapper", "exclusion_from_weight_decay"}
WRONG_IN_KERAS_3 = {
    "a_finite_step_after_170_bad_ones",
    "a_step_after_the_scale_grew_past_float32",
    "nan_on_the_second_replica",
}


def wrong_in_own(kind):
    """The cases that Keras' own wrapper gets wrong, as measured."""
    if IS_KERAS3:
        return WRONG_IN_KERAS_3 | LOST_SINCE_2_9
    if kind == "legacy" or (kind == "optimizers" and RELEASE < (2, 11)):
        return LOST_IN_EVERY_KERAS
    return LOST_SINCE_2_9 | ({"averages_are_taken_at_the_end_of_fit"} if RELEASE < (2, 11) else set())


def weight_after(wrapper, family, values, **settings):
    """Of an SGD with a learning rate of 0.5, from 1.0; the steps run in a graph."""
    optimizer, variable = wrapper(family.SGD(0.5), **settings), tf.Variable([1.0])
    build(optimizer, variable)
    scale, _ = scale_and_counter(optimizer)

    @tf.function
    def step(value):
        give(optimizer, value * scale if IS_KERAS3 else value, variable)

    for value in values:
        step(tf.constant([value]))
    return variable.numpy().tolist()


def case_a_finite_step_after_170_bad_ones(wrapper, family):
    return weight_after(wrapper, family, [INF] * 170 + [1.0]), [0.5]


def case_a_step_after_the_scale_grew_past_float32(wrapper, family):
    settings = {"initial_scale": 2.0**124, "dynamic_growth_steps": 1}
    return weight_after(wrapper, family, [0.0] * 6 + [1.0], **settings), [0.5]


def case_nan_on_the_second_replica(wrapper, family):
    strategy = two_replicas()
    with strategy.scope():
        variable = tf.Variable([1.0])
        optimizer = wrapper(family.SGD(0.5), initial_scale=16.0)
        build(optimizer, variable)
    replicated([[1.0], [NAN]], optimizer, variable, strategy, True)
    parts = [replica.numpy().tolist() for replica in strategy.experimental_local_results(variable)]
    return parts, [[1.0], [1.0]]


def set_through(wrapper, optimizer_class, name, value):
    """The weights after a step: with the setting made on a wrapper, and on the optimizer itself."""
    moved = []
    for wrapped in (True, False):
        inner = optimizer_class(0.5)
        optimizer, variable = (wrapper(inner) if wrapped else inner), tf.Variable([0.0, 0.0])
        with contextlib.suppress(AttributeError):  # where the wrapper refuses it, the step is one without
            setattr(optimizer, name, value)
        give(optimizer, tf.constant([3.0, 4.0]) * (FIRST_SCALE if wrapped else 1.0), variable)
        moved.append([round(weight, 4) for weight in variable.numpy().tolist()])
    return tuple(moved)


def case_epsilon_set_on_the_wrapper(wrapper, family):
    return set_through(wrapper, family.Adam, "epsilon", 1.0)


def case_amsgrad_set_on_the_wrapper(wrapper, family):
    optimizer = wrapper(family.Adam(0.5))
    with contextlib.suppress(AttributeError):
        optimizer.amsgrad = True
    return optimizer.inner_optimizer.amsgrad, True


def case_clipnorm_set_on_the_wrapper(wrapper, family):
    return set_through(wrapper, family.SGD, "clipnorm", 1.0)


def case_exclusion_from_weight_decay(wrapper, family):
    if not hasattr(family, "AdamW"):
        return None
    moved = []
    for wrapped in (True, False):
        inner = family.AdamW(0.1, weight_decay=0.5)
        optimizer = wrapper(inner) if wrapped else inner
        variables = [tf.Variable([4.0], name="kernel"), tf.Variable([4.0], name="bias")]
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        optimizer.build(variables)
        scale = FIRST_SCALE if wrapped else 1.0
        optimizer.apply_gradients([(tf.constant([1.0]) * scale, v) for v in variables])
        moved.append([v.numpy().tolist() for v in variables])
    return tuple(moved)


def case_averages_are_taken_at_the_end_of_fit(wrapper, family):
    if not hasattr(family.SGD, "finalize_variable_values"):
        return None
    ended = []
    for wrapped in (True, False):
        model, inner = dense_model(), family.SGD(0.1, use_ema=True, ema_momentum=0.5)
        model.compile(wrapper(inner, initial_scale=1.0) if wrapped else inner, "mse")
        fit(model)
        ended.append([weight.tolist() for weight in model.get_weights()])
    return tuple(ended)


def cases():
    """{case: function}"""
    return {name[5:]: value for name, value in globals().items() if name.startswith("case_")}


def outcome(case, wrapper, family):
    """ "" where it comes out right."""
    try:
        seen = case(wrapper, family)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if seen is None or seen[0] == seen[1] else f"{seen[0]} instead of {seen[1]}"


def kind_of(family):
    """ "optimizers", "legacy" or "experimental"."""
    return family.__name__.rpartition(".")[2].replace("_v2", "")


def wrong(wrapper):
    """{kind of optimizers: {case: what the wrapper makes of it}}, of what it gets wrong."""
    table = {}
    for family in families():
        seen = {name: outcome(case, wrapper, family) for name, case in cases().items()}
        table[kind_of(family)] = {name: said for name, said in seen.items() if said}
    return table


def check_what_keras_own_gets_wrong_is_right_here():
    seen = wrong(LossScaleOptimizer)
    assert not any(seen.values()), seen


def check_keras_own_gets_wrong_what_is_said_of_it():
    seen = wrong(KerasOwn)
    assert {kind: set(found) for kind, found in seen.items()} == {kind: wrong_in_own(kind) for kind in seen}, seen


# --- bounds -------------------------------------------------------------------------------------------------------
def check_170_bad_steps_leave_scale_at_floor():
    for family in families():
        optimizer, variable = made(family.SGD, 0.5), tf.Variable([1.0])
        steps(optimizer, variable, [[INF]] * 170)
        assert (state(optimizer), variable.numpy().tolist()) == ((1.0, 0), [1.0])
        steps(optimizer, variable, [[1.0]])
        assert variable.numpy().tolist() == [0.5]


def check_growth_ends_at_cap():
    for family in families():
        for start, cap, largest in ((120, {}, 2.0**127), (15, {"cap": 2.0**20}, 2.0**20), (15, {"cap": 3e6}, 2.0**21)):
            optimizer = made(family.SGD, 0.5, initial_scale=2.0**start, dynamic_growth_steps=1, **cap)
            steps(optimizer, tf.Variable([1.0]), [[0.0]] * 10)
            assert state(optimizer)[0] == largest, (cap, state(optimizer))


def check_floor_is_the_initial_scale_where_that_is_smaller():
    optimizer = made(keras.optimizers.SGD, 0.5, initial_scale=0.25)
    steps(optimizer, tf.Variable([1.0]), [[INF]])
    assert state(optimizer)[0] == 0.25


def check_growth_interval_and_initial_scale_may_be_set_as_on_keras_own():
    """In Keras 2 both are read-only, and these refuse it as Keras' own does."""
    for family in families():
        seen = []
        for wrapper in (KerasOwn, LossScaleOptimizer):
            optimizer, variable = wrapper(family.SGD(0.5)), tf.Variable([1.0])
            try:
                optimizer.initial_scale, optimizer.dynamic_growth_steps = 0.25, 3
                steps_of_own(optimizer, variable, 4)
                optimizer.dynamic_growth_steps = 2
                steps_of_own(optimizer, variable, 3)
            except AttributeError:
                seen.append("refused")
            else:
                seen.append((state(optimizer), optimizer.initial_scale, optimizer.dynamic_growth_steps))
        assert seen[0] == seen[1], seen


def steps_of_own(optimizer, variable, count):
    """Finite ones, with any wrapper."""
    for _ in range(count):
        give(optimizer, tf.constant([0.0]), variable)


def check_hysteresis_waits():
    for family in families():
        optimizer = made(family.SGD, 0.5, initial_scale=16.0, hysteresis=3)
        variable = tf.Variable([1.0])
        seen = []
        for value in (INF, INF, 0.0, INF, INF, INF, INF, 0.0):
            steps(optimizer, variable, [[value]])
            seen.append(state(optimizer)[0])
        assert seen == [16.0] * 5 + [8.0] * 3, seen
        assert variable.numpy().tolist() == [1.0]


def check_fixed_scale_stays_and_skips():
    for family in families():
        optimizer, variable = made(family.SGD, 0.5, dynamic=False, initial_scale=128.0), tf.Variable([1.0])
        assert float(optimizer.get_scaled_loss(tf.constant(2.0))) == 256.0
        steps(optimizer, variable, [[1.0], [NAN], [1.0]])
        assert variable.numpy().tolist() == [0.0]
        assert (float(optimizer.loss_scale), optimizer.dynamic, optimizer.dynamic_counter) == (128.0, False, None)


def check_restored_scale_outside_is_brought_inside():
    if not IS_KERAS3:
        return
    for value, first in ((0.0, 1.0), (INF, np.float32(3.4028234663852886e38))):
        optimizer, variable = made(keras.optimizers.SGD, 0.5), tf.Variable([1.0])
        optimizer.build([variable])
        optimizer.dynamic_scale.assign(value)
        assert float(optimizer.scale_loss(tf.constant(1.0))) == first
        optimizer.apply([tf.constant([float(first)])], [variable])
        assert variable.numpy().tolist() == [0.5]


# --- what a step costs --------------------------------------------------------------------------------------------
NO_WORK = ("Const", "Placeholder", "Identity", "IdentityN", "NoOp")


def operations_of_step(wrapper, family):
    """How many of each kind the graph of a step has, with its branches."""
    variables = [tf.Variable([1.0, 2.0]) for _ in range(3)]
    optimizer = wrapper(family.Adam(0.1))
    build(optimizer, *variables)

    @tf.function
    def step(gradients):
        optimizer.apply_gradients(list(zip(gradients, variables)))

    graph = step.get_concrete_function([tf.TensorSpec([2])] * 3).graph.as_graph_def()
    nodes = list(graph.node) + [node for function in graph.library.function for node in function.node_def]
    return collections.Counter(node.op for node in nodes if node.op not in NO_WORK)


def check_a_step_has_no_more_operations_and_branches_than_with_keras_own():
    """A branch waits for its condition: with each the host looks at a number that the device has computed."""
    for family in families():
        own, ours = [operations_of_step(wrapper, family) for wrapper in (KerasOwn, LossScaleOptimizer)]
        assert sum(ours.values()) <= sum(own.values()), (kind_of(family), ours - own, own - ours)
        assert ours["If"] == 1 <= own["If"], (kind_of(family), ours["If"], own["If"])
        assert not set(ours) - set(own) - STATE_MACHINE, set(ours) - set(own)


STATE_MACHINE = {
    "AddV2", "AssignVariableOp", "GreaterEqual", "Less", "LessEqual", "Maximum", "Minimum", "Mul", "ReadVariableOp",
    "SelectV2",
}  # fmt: skip


# --- two replicas -------------------------------------------------------------------------------------------------
def replicated(gradients, optimizer, variable, strategy, in_graph):
    """A step with a gradient for each replica."""

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        give(optimizer, tf.gather(tf.constant(gradients), number), variable)

    def run():
        strategy.run(step)

    (tf.function(run) if in_graph else run)()


def check_a_nan_on_any_replica_is_seen_by_all():
    strategy = two_replicas()
    for family in families():
        for in_graph in (True, False) if RELEASE >= (2, 10) else (True,):
            with strategy.scope():
                variable = tf.Variable([1.0])
                optimizer = made(family.SGD, 0.5, initial_scale=16.0)
                if IS_KERAS3:
                    optimizer.build([variable])
            scale = 16.0 if IS_KERAS3 else 1.0
            moved = []
            for gradients in ([[1.0], [1.0]], [[1.0], [NAN]], [[INF], [1.0]], [[1.0], [3.0]]):
                replicated(
                    [[g * scale for g in replica] for replica in gradients], optimizer, variable, strategy, in_graph
                )
                scale = state(optimizer)[0] if IS_KERAS3 else 1.0
                moved.append((state(optimizer), variable.numpy().tolist()))
            parts = [of_replica.numpy().tolist() for of_replica in strategy.experimental_local_results(variable)]
            assert [scale for (scale, _), _ in moved] == [16.0, 8.0, 4.0, 4.0], moved
            assert moved[0][1] == moved[1][1] == moved[2][1] == [0.0], moved
            assert parts == [[-2.0], [-2.0]], parts


# --- the inner optimizer's attributes -----------------------------------------------------------------------------
def check_attributes_are_those_of_the_inner_optimizer():
    for family in families():
        inner = family.Adam(0.25)
        optimizer = LossScaleOptimizer(inner)
        for name, value in (
            ("epsilon", 1e-4),
            ("amsgrad", True),
            ("clipnorm", 2.0),
            ("beta_1", 0.5),
            ("learning_rate", 0.125),
        ):
            setattr(optimizer, name, value)
            assert float(getattr(optimizer, name)) == float(getattr(inner, name)) == float(value), name
        if hasattr(inner, "weight_decay"):
            optimizer.weight_decay = 0.5
            assert inner.weight_decay == optimizer.weight_decay == 0.5
        optimizer.mine = 3
        assert not hasattr(inner, "mine") and optimizer.mine == 3
        try:
            optimizer.nothing_of_the_kind  # noqa: B018
        except AttributeError as error:
            assert "nor has the Adam inside it" in str(error)
        else:
            raise AssertionError("no AttributeError")


def check_what_the_inner_optimizer_says_of_its_own_attributes_is_heard():
    for family in families():

        class Mine(family.SGD):
            later = None

            @property
            def moments(self):
                raise AttributeError("no moments before the first step")

        inner = Mine(0.5)
        optimizer = LossScaleOptimizer(inner)
        try:
            optimizer.moments  # noqa: B018
        except AttributeError as error:
            assert "no moments before the first step" in str(error), str(error)
        else:
            raise AssertionError("no AttributeError")
        optimizer.later = 3
        assert inner.later == 3
        del optimizer.later
        assert inner.later is None


def check_averages_are_made_and_taken_at_the_end_of_training():
    if RELEASE < (2, 9):
        return
    ended = {}
    for wrapped in (True, False):
        inner = newest().SGD(0.5, use_ema=True, ema_momentum=0.5)
        optimizer = LossScaleOptimizer(inner, initial_scale=1.0) if wrapped else inner
        variable = (keras.Variable if IS_KERAS3 else tf.Variable)([8.0])
        if hasattr(optimizer, "build"):
            optimizer.build([variable])
        for _ in range(3):
            optimizer.apply_gradients([(tf.constant([1.0]), variable)])
        before = variable.numpy().tolist()
        optimizer.finalize_variable_values([variable])
        ended[wrapped] = before, variable.numpy().tolist()
    assert ended[True] == ended[False] and ended[True][0] != ended[True][1], ended


def check_schedules_go_on():
    for family in families():
        schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [1.0, 0.25])
        optimizer, variable = made(family.SGD, schedule, initial_scale=4.0), tf.Variable([0.0])
        steps(optimizer, variable, [[1.0], [1.0], [1.0]])
        assert variable.numpy().tolist() == [-2.25], variable.numpy()


# --- loops --------------------------------------------------------------------------------------------------------
def check_loops_under_both_generations_names():
    for family in families():
        for names in ("keras 2", "keras 3", "keras 2, clipped", "keras 3, norms logged"):
            for in_graph in (False, True):
                optimizer, variable = made(family.SGD, 0.5, initial_scale=64.0), tf.Variable([1.0, 3.0])
                if IS_KERAS3:
                    optimizer.build([variable])

                def step(optimizer=optimizer, variable=variable, names=names):
                    with tf.GradientTape() as tape:
                        loss = tf.reduce_sum(variable * variable)
                        loss = optimizer.get_scaled_loss(loss) if "keras 2" in names else optimizer.scale_loss(loss)
                    gradients = tape.gradient(loss, [variable])
                    if "keras 2" in names:
                        gradients = optimizer.get_unscaled_gradients(gradients)
                    if "logged" in names:
                        tf.linalg.global_norm(optimizer.get_unscaled_gradients(gradients))
                    if "clipped" in names:
                        gradients, _ = tf.clip_by_global_norm(gradients, 1e6)
                    optimizer.apply_gradients(zip(gradients, [variable]))

                run = tf.function(step) if in_graph else step
                run()
                assert np.allclose(variable.numpy(), [0.0, 0.0]), (names, in_graph, variable.numpy())


def check_fit_trains():
    for family in families():
        for in_xla in (False, True) if RELEASE >= (2, 10) else (False,):
            model = dense_model()
            optimizer = made(family.Adam, 0.1, initial_scale=16.0, dynamic_growth_steps=4)
            model.compile(optimizer, "mse", **({"jit_compile": True} if in_xla else {}))
            before = [w.copy() for w in model.get_weights()]
            model.fit(*data(), batch_size=2, epochs=2, verbose=0, shuffle=False)
            assert model.optimizer is optimizer and state(optimizer) == (64.0, 0), state(optimizer)
            assert all((w != b).any() for w, b in zip(model.get_weights(), before))


def apply_one(optimizer, variables, gradient):
    optimizer.apply([gradient], variables)


def check_accumulated_group_is_applied_or_left_out_as_a_whole():
    if not IS_KERAS3:
        return
    for how in ("eager", "graph"):
        optimizer = LossScaleOptimizer(keras.optimizers.SGD(1.0, gradient_accumulation_steps=2), initial_scale=8.0)
        variable = keras.Variable([0.0])
        optimizer.build([variable])
        step = compiled(functools.partial(apply_one, optimizer, [variable]), how)
        seen = []
        for value in (1.0, 3.0, 1.0, INF, 5.0, 7.0, NAN, 100.0, 1.0, 1.0):
            step(tf.constant([value]) * optimizer.loss_scale)
            seen.append((float(variable.value[0]), state(optimizer)[0], int(optimizer.iterations)))
        weights = [weight for weight, _, _ in seen]
        assert weights == [0.0, -2.0, -2.0, -2.0, -2.0, -8.0, -8.0, -8.0, -8.0, -9.0], seen
        assert [seen[i][1] for i in (2, 3, 6, 9)] == [8.0, 4.0, 2.0, 2.0], seen
        assert [seen[i][2] for i in (1, 3, 5, 7, 9)] == [1, 1, 2, 2, 3], seen


# --- saving -------------------------------------------------------------------------------------------------------
def dense_model(optimizer=None):
    keras.backend.clear_session()
    tf.random.set_seed(3)
    model = keras.Sequential([keras.layers.Dense(3, name="a"), keras.layers.Dense(1, name="b")])
    model.build((None, 4))
    model.set_weights([np.arange(w.size, dtype="float32").reshape(w.shape) / 10 for w in model.get_weights()])
    if optimizer is not None:
        model.compile(optimizer, keras.losses.MeanSquaredError())
    return model


def data():
    x = np.random.RandomState(5).normal(size=(8, 4)).astype("float32")
    return x, x[:, :1]


def trained(wrapper, family, epochs=1, **settings):
    model = dense_model(wrapper(family.Adam(0.1), initial_scale=2.0**10, dynamic_growth_steps=3, **settings))
    fit(model, epochs)
    return model


def fit(model, epochs=1):
    model.fit(*data(), batch_size=2, epochs=epochs, verbose=0, shuffle=False)
    return model


def everything(model):
    return state(model.optimizer), int(model.optimizer.iterations), [w.tobytes() for w in model.get_weights()]


def check_checkpoint_resumes_bit_for_bit_and_between_wrappers():
    for family in families():
        expected = everything(trained(LossScaleOptimizer, family, 2))
        for before, after in BETWEEN:
            with tempfile.TemporaryDirectory() as directory:
                model = trained(before, family)
                path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(os.path.join(directory, "c"))
                other = trained(after, family, 3)  # from other weights and another scale
                status = tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
                status.assert_existing_objects_matched()
                assert everything(other) == everything(model)
                assert everything(fit(other)) == expected, (family.__name__, before, after)


def check_hysteresis_is_saved_in_checkpoints():
    for family in families():
        optimizers, variable = [], tf.Variable([1.0])
        for _ in range(2):
            optimizers.append(made(family.SGD, 0.5, initial_scale=16.0, hysteresis=3))
        steps(optimizers[0], variable, [[INF], [INF]])
        steps(optimizers[1], variable, [[1.0]])
        with tempfile.TemporaryDirectory() as directory:
            path = tf.train.Checkpoint(optimizer=optimizers[0]).save(os.path.join(directory, "c"))
            tf.train.Checkpoint(optimizer=optimizers[1]).restore(path)
        steps(optimizers[1], variable, [[INF]])
        assert state(optimizers[1])[0] == 8.0


def file_formats():
    return [".h5"] + ([".keras"] if IS_KERAS3 or RELEASE >= (2, 13) else [])


def check_saved_models_resume_bit_for_bit():
    for family in families():
        for suffix in file_formats():
            for settings in ({}, {"hysteresis": 2, "cap": 2.0**30}):
                if suffix == ".h5" and IS_KERAS3 and settings:
                    continue
                expected = everything(trained(LossScaleOptimizer, family, 2, **settings))
                with tempfile.TemporaryDirectory() as directory:
                    path = os.path.join(directory, "model" + suffix)
                    model = trained(LossScaleOptimizer, family, **settings)
                    model.save(path)
                    other = keras.models.load_model(path)
                assert isinstance(other.optimizer, LossScaleOptimizer), type(other.optimizer)
                assert type(other.optimizer) is type(model.optimizer), type(other.optimizer)
                if IS_KERAS3 and suffix == ".h5":  # it is built when training begins
                    assert everything(fit(other)) == expected
                    continue
                assert state(other.optimizer) == state(model.optimizer), (family.__name__, suffix)
                if suffix == ".keras" and hasattr(other.optimizer, "get_slot_names"):
                    continue  # Keras saves no variables of a legacy optimizer there
                if suffix == ".h5" and RELEASE == (2, 10) and not hasattr(other.optimizer, "get_slot_names"):
                    continue  # nor of an experimental one here
                assert everything(other) == everything(model), (family.__name__, suffix)
                assert everything(fit(other)) == expected, (family.__name__, suffix)


@contextlib.contextmanager
def without_registration(names):
    """As where mpdoctor.training has not been imported."""
    registered = keras.utils.get_custom_objects()
    taken = {name: registered.pop(name) for name in names if name in registered}
    try:
        yield
    finally:
        registered.update(taken)


def check_saved_models_load_into_keras_own_wrapper_and_from_it():
    names = ("LossScaleOptimizer", "LegacyLossScaleOptimizer")
    for family in families():
        for suffix in file_formats():
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "model" + suffix)
                model = trained(LossScaleOptimizer, family)
                model.save(path)
                objects = {"mpdoctor>" + name: type(trained(KerasOwn, family).optimizer) for name in names}
                with without_registration(objects):
                    other = keras.models.load_model(path, custom_objects=objects)
                assert not isinstance(other.optimizer, LossScaleOptimizer), type(other.optimizer)
                assert [w.tobytes() for w in other.get_weights()] == everything(model)[2]
                trained(KerasOwn, family).save(path)
                own = keras.models.load_model(path)
                ours = LossScaleOptimizer.from_config(own.optimizer.get_config())
                assert isinstance(ours, LossScaleOptimizer) and ours.initial_scale == own.optimizer.initial_scale


def check_weights_files_hold_the_scale_where_keras_saves_optimizers_in_them():
    """`.weights.h5` of Keras 3, TensorFlow's format of Keras 2: also into Keras' own wrapper, and from it."""
    for family in families():
        expected = everything(trained(LossScaleOptimizer, family, 2))
        for before, after in BETWEEN:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "w.weights.h5" if IS_KERAS3 else "w")
                model = trained(before, family)
                model.save_weights(path)
                other = trained(after, family, 3)
                other.load_weights(path)
                assert everything(other) == everything(model), (kind_of(family), before, after)
                assert everything(fit(other)) == expected, (kind_of(family), before, after)


def check_weights_saved_with_a_hysteresis_load_into_keras_own_wrapper():
    if not IS_KERAS3:
        return
    family = families()[0]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "w.weights.h5")
        model = trained(LossScaleOptimizer, family, hysteresis=3)
        model.save_weights(path)
        other = trained(KerasOwn, family, 3)
        other.load_weights(path)
        assert everything(other) == everything(model)


# --- refused ------------------------------------------------------------------------------------------------------
def check_what_cannot_work_is_refused():
    class Bypassed(keras.optimizers.SGD):
        pass

    bypassed, called = ("apply_gradients", "apply") if IS_KERAS3 else ("minimize", "apply_gradients")
    setattr(Bypassed, bypassed, lambda self, *args, **kwargs: None)
    wrapped = made(keras.optimizers.SGD, 0.5)
    own = KerasOwn(keras.optimizers.SGD(0.5))
    for given, said in (
        (("adam",), "keras.optimizers.get('adam')"),
        (({"class_name": "Adam", "config": {}},), "keras.optimizers.get({"),
        ((keras.optimizers.Adam,), "LossScaleOptimizer(Adam())"),
        ((tf.compat.v1.train.GradientDescentOptimizer(0.1),), "tf.compat.v1"),
        ((wrapped,), "cannot wrap another LossScaleOptimizer"),
        ((own,), "LossScaleOptimizer(optimizer.inner_optimizer)"),
        ((Bypassed(0.1),), f"override `{called}` instead of `{bypassed}`"),
    ):
        refused(TypeError, said, *given)
    new = lambda: keras.optimizers.SGD(0.5)  # noqa: E731
    refused(ValueError, '"initial_scale" must be specified', new(), dynamic=False)
    refused(TypeError, "must be a bool", new(), dynamic="dynamic")
    for settings in ({"initial_scale": 0.0}, {"initial_scale": NAN}, {"cap": INF}, {"floor": -1.0}, {"floor": "1"}):
        refused(ValueError, "must be a positive, finite number", new(), **settings)
    refused(ValueError, "larger cap", new(), cap=2.0)
    for hysteresis in (0, 1.5, True):
        refused(ValueError, "at least 1", new(), hysteresis=hysteresis)
    for steps in ("100", 1.5, True):
        refused(ValueError, '"dynamic_growth_steps" must be a whole number', new(), dynamic_growth_steps=steps)
    settings = {"clipnorm": 1.0, "beta_1": 0.9}
    said = "arguments: `beta_1`" if IS_KERAS3 else "`clipnorm` and `beta_1` are no arguments"
    refused((TypeError, ValueError), said, new(), **dict(list(settings.items())[IS_KERAS3:]))
    if IS_KERAS3:
        try:
            wrapped.loss_scale_factor = 8.0
        except ValueError as error:
            assert "twice" in str(error)
        else:
            raise AssertionError("accepted")


def refused(kind, said, *args, **kwargs):
    try:
        LossScaleOptimizer(*args, **kwargs)
    except kind as error:
        assert said in str(error), str(error)
    else:
        raise AssertionError(f"accepted: {args} {kwargs}")


def check_numbers_of_numpy_and_tensors_are_taken():
    for scale, steps, hysteresis in ((np.float32(4), np.int64(3), np.int32(2)), (tf.constant(4.0), 3.0, 2)):
        optimizer = made(
            keras.optimizers.SGD, 0.5, initial_scale=scale, dynamic_growth_steps=steps, hysteresis=hysteresis
        )
        config = json.loads(json.dumps(optimizer.get_config()))
        found = [config["initial_scale"], config["dynamic_growth_steps"], config["hysteresis"]]
        assert found == [4.0, 3, 2] and type(config["dynamic_growth_steps"]) is int, config


def check_attributes_of_the_inner_optimizer_are_listed():
    """Keras' own wrapper of legacy optimizers lists the hyperparameters, and is left as it is."""
    for family in families():
        optimizer = made(family.Adam)
        public = {name for name in dir(optimizer.inner_optimizer) if not name.startswith("_")}
        wanted = {"beta_1", "learning_rate"} if hasattr(optimizer, "get_slot_names") else public
        assert (wanted | {"loss_scale", "inner_optimizer"}) <= set(dir(optimizer)), kind_of(family)


def check_it_is_a_class_of_this_keras():
    assert issubclass(LossScaleOptimizer, keras.optimizers.Optimizer) or RELEASE < (2, 11)
    for family in families():
        optimizer = made(family.SGD, 0.5)
        assert isinstance(optimizer, LossScaleOptimizer) and isinstance(optimizer, KerasOwn)
        again = type(optimizer).from_config(optimizer.get_config())
        assert type(again) is type(optimizer) and again.get_config() == optimizer.get_config()
        bounded = made(family.SGD, 0.5, floor=4.0, cap=2.0**20, hysteresis=2)
        again = LossScaleOptimizer.from_config(bounded.get_config())
        assert again.get_config() == bounded.get_config(), again.get_config()


def check_a_class_may_derive_from_it():
    class Mine(LossScaleOptimizer):
        def get_scaled_loss(self, loss):
            return super().get_scaled_loss(loss) * 1.0

    optimizer = Mine(keras.optimizers.SGD(0.5), initial_scale=4.0)
    assert type(optimizer) is Mine and float(optimizer.get_scaled_loss(tf.constant(2.0))) == 8.0


PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "training.md")


def check_its_page_has_what_is_delegated():
    with open(PAGE, encoding="utf-8") as page:
        assert delegation_table() in page.read(), delegation_table()


def delegation_table():
    """Of this Keras, in Markdown, between the marks that tools/delegation_tables.py looks for."""
    name = "Keras 3" if IS_KERAS3 else "tf_keras" if keras.__name__.startswith("tf_keras") else "TensorFlow {}.{}"
    name = name.format(*RELEASE)
    rows = [f"| {name} | Keras' own | here |", "|---|---|---|"]
    for kind, settings in delegated().items():
        by_outcome = {}
        for setting, outcomes in sorted(settings.items()):
            by_outcome.setdefault(tuple(outcomes), []).append(f"`{setting}`")
        for outcomes, names in sorted(by_outcome.items()):
            rows.append(f"| `{kind}`: {', '.join(names)} | {' | '.join(outcomes)} |")
    return "\n".join([f"<!-- delegated: {name} -->", "", *rows, "", "<!-- end -->"])


def delegated():
    """{kind of optimizers: {setting of an Adam: what Keras' own wrapper, and ours, does with it}}"""
    table = {}
    for family in families():
        for name in [name for name in dir(family.Adam()) if not name.startswith("_")]:
            if isinstance(getattr(family.Adam(), name), (bool, float, int, type(None))) and name not in UNCHANGED:
                outcomes = [how_delegated(family, wrapper, name) for wrapper in BETWEEN[1]]
                table.setdefault(kind_of(family), {})[name] = outcomes
    return table


def how_delegated(family, wrapper, name):
    """ "read and set", "read", or "lost": of an attribute of the inner optimizer."""
    inner = family.Adam()
    optimizer = wrapper(inner)
    value = getattr(inner, name)
    new = (not value) if isinstance(value, bool) else 0.75 if value is None else value / 2
    setattr(inner, name, new)
    is_read = getattr(optimizer, name, lost) == new
    try:
        setattr(optimizer, name, value)
    except (AttributeError, ValueError):
        return "read" if is_read else "lost"
    is_set = getattr(inner, name) == value
    return "read and set" if is_read and is_set else "read" if is_read else "lost"


def main():
    checks = {name[6:]: value for name, value in globals().items() if name.startswith("check_")}
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--sequences", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delegated", action="store_true")
    given = parser.parse_args()
    if given.delegated:
        print("\n" + delegation_table())
        return
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    found = {}
    for asked in given.names or checks:
        name, _, sequences = asked.partition("=")
        began = time.process_time()
        try:
            compares = name.startswith("same_as_own")
            checks[name](*((int(sequences or given.sequences), given.seed) if compares else ()))
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
        print(f"{time.process_time() - began:6.2f} s  {name}", file=sys.stderr)
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
