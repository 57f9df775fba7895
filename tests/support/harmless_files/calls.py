"""Functions that compute: as layers of Keras 2 that call them by name, and as operations of Keras 3."""

from harmless_files.registry import KERAS2, harmless


@harmless(KERAS2)
def operators(k):
    return k.applied((4,), lambda x: k.layers.Dense(1)((-(x * 2.0 + 1.0) / 3.0 - x**2.0) % 5.0))


@harmless(KERAS2)
def math(k):
    t = k.tf
    return k.applied((4,), lambda x: t.math.tanh(t.math.exp(t.math.sin(x))) + t.math.sqrt(t.math.abs(x)) + t.nn.relu(x))


@harmless(KERAS2)
def reductions(k):
    t = k.tf

    def build(x):
        parts = [t.reduce_sum(x, axis=-1), t.reduce_mean(x, axis=-1), t.reduce_max(x, axis=-1), t.norm(x, axis=-1)]
        return k.layers.Dense(1)(t.stack(parts, axis=-1))

    return k.applied((4,), build)


@harmless(KERAS2)
def shapes(k):
    t = k.tf

    def build(x):
        y = t.reshape(x, (t.shape(x)[0], 2, 6))
        y = t.transpose(t.concat([y, y], axis=-1), (0, 2, 1))
        y = t.squeeze(t.expand_dims(y, 1), 1)
        return k.layers.Dense(1)(t.reshape(t.tile(y, (1, 1, 2)), (-1, 48)))

    return k.applied((12,), build)


@harmless(KERAS2)
def slicing(k):
    return k.applied((6, 4), lambda x: k.layers.Dense(1)(x[:, 1:5, ::2][:, -1] + x[:, 0, :2] + x[:, 2, 2:]))


@harmless(KERAS2)
def selecting(k):
    t = k.tf

    def build(x):
        chosen = t.where(x > 0.0, x, t.zeros_like(x))
        return k.layers.Dense(1)(t.gather(chosen, [0, 2, 3], axis=1) * t.cast(x[:, :3] < 1.0, "float32"))

    return k.applied((4,), build)


@harmless(KERAS2)
def products(k):
    t = k.tf
    return k.applied((3, 4), lambda x: t.einsum("bij,bkj->bik", x, x) + t.matmul(x, x, transpose_b=True))


@harmless(KERAS2)
def one_hot(k):
    return k.applied((3,), lambda x: k.layers.Dense(1)(k.tf.reshape(k.tf.one_hot(x, 5), (-1, 15))), dtype="int32")


@harmless(KERAS2)
def images(k):
    t = k.tf

    def build(x):
        y = t.image.resize(x, (4, 4))
        return k.layers.Dense(1)(t.reshape(t.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]]), (-1, 108)))

    return k.applied((8, 8, 3), build)


@harmless(KERAS2)
def networks(k):
    t = k.tf

    def build(x):
        y = t.nn.softmax(t.nn.l2_normalize(t.nn.leaky_relu(x), axis=-1))
        return t.clip_by_value(y + t.nn.sigmoid(x) + t.nn.gelu(x) + t.stop_gradient(x), -10.0, 10.0)

    return k.applied((4,), build)


@harmless(KERAS2)
def splitting(k):
    def build(x):
        first, second = k.tf.split(x, 2, axis=-1)
        return k.layers.Dense(1)(first * second)

    return k.applied((4,), build)


@harmless(("3",))
def operators_of_tensors(k):
    return k.applied((4,), lambda x: k.layers.Dense(1)((-(x * 2.0 + 1.0) / 3.0 - x**2.0)[:, 1:]))


@harmless(("3",))
def ops_math(k):
    o = k.keras.ops
    return k.applied((4,), lambda x: o.tanh(o.exp(o.sin(x))) + o.sqrt(o.abs(x)) + o.relu(x) + o.where(x > 0, x, 0.0))


@harmless(("3",))
def ops_shapes(k):
    o = k.keras.ops

    def build(x):
        y = o.transpose(o.concatenate([o.reshape(x, (-1, 2, 6))] * 2, axis=-1), (0, 2, 1))
        return k.layers.Dense(1)(o.reshape(o.stack([y, y], axis=1), (-1, 48)))

    return k.applied((12,), build)


@harmless(("3",))
def ops_products(k):
    o = k.keras.ops
    return k.applied(
        (3, 4), lambda x: o.einsum("bij,bkj->bik", x, x) + o.softmax(o.matmul(x, o.transpose(x, (0, 2, 1))))
    )


@harmless(("3",))
def ops_images(k):
    o = k.keras.ops
    return k.applied((8, 8, 3), lambda x: k.layers.Dense(1)(o.mean(o.image.resize(x, (4, 4)), axis=(1, 2))))


@harmless(("3",))
def ops_one_hot(k):
    o = k.keras.ops
    return k.applied((3,), lambda x: k.layers.Dense(1)(o.cast(o.one_hot(x, 5), "float32")), dtype="int32")
