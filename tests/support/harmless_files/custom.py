"""Models that hold a user's own classes and functions (own_objects.py)."""

from harmless_files.registry import NEWER, harmless

OWN = "own_objects"
IN_ARCHIVES = ("keras",)  # Keras 2 cannot find a function again that it has written into HDF5 (2.15, tf_keras 2.21)


def own():
    import own_objects

    return own_objects


@harmless(objects=OWN)
def own_layer(k):
    return k.sequential((4,), own().Scaled(3.0), k.layers.Dense(1))


@harmless(objects=OWN)
def own_registered_layer(k):
    return k.compiled(k.sequential((4,), own().Shifted(4), k.layers.Dense(1)))


@harmless(NEWER, objects=OWN)
def own_layer_with_another(k):
    return k.sequential((4,), own().Twice(k.layers.Dense(4)), k.layers.Dense(1))


@harmless(objects=OWN, forms=IN_ARCHIVES)
def own_activation(k):
    return k.sequential((4,), k.layers.Dense(4, activation=own().squared), k.layers.Dense(1))


@harmless(objects=OWN, forms=IN_ARCHIVES)
def own_registered_activation(k):
    return k.sequential((4,), k.layers.Dense(4, activation=own().registered_activation), k.layers.Dense(1))


@harmless(objects=OWN)
def own_loss(k):
    return k.compiled(k.sequential((4,), k.layers.Dense(1)), own().own_loss, metrics=[own().own_loss])


@harmless(objects=OWN)
def own_initializer(k):
    return k.sequential((4,), k.layers.Dense(4, kernel_initializer=own().OwnInitializer()), k.layers.Dense(1))


@harmless(NEWER, objects=OWN, forms=("keras",))
def own_model(k):
    model = own().Network(6)
    model(k.np.zeros((1, 4), "float32"))
    return k.compiled(model)
