"""The table of harmless models: name, maker, the Kerases that know what is in it, and how it is checked."""

MODELS = {}


class Keras:
    """What a maker needs: `name` is "3", "tf_keras", "2.15", "2.10" or "2.4"."""

    def __init__(self, name):
        import numpy
        import tensorflow

        if name == "3":
            import keras
        elif name == "tf_keras":
            import tf_keras as keras
        else:
            from tensorflow import keras
        self.name, self.keras, self.tf, self.np = name, keras, tensorflow, numpy
        self.layers, self.Model = keras.layers, keras.Model
        self.is_keras3 = name == "3"

    def given(self, *shape, **more):
        return self.keras.Input(shape=shape, **more)

    def sequential(self, shape, *layers, **more):
        return self.keras.Sequential([self.given(*shape, **more), *layers])

    def compiled(self, model, loss="mse", optimizer="sgd", **more):
        model.compile(optimizer=optimizer, loss=loss, **more)
        return model

    def applied(self, shape, function, **more):
        """A functional model of one input."""
        start = self.given(*shape, **more)
        return self.Model(start, function(start))


class Harmless:
    def __init__(self, name, make, kerases, objects, forms):
        self.name, self.make, self.kerases, self.objects, self.forms = name, make, kerases, objects, forms


EVERY = ("3", "tf_keras", "2.15", "2.10", "2.4")


def harmless(kerases=EVERY, objects=None, forms=("keras", "hdf5")):
    """`objects` is the module that --custom-objects names."""

    def register(make):
        name = make.__name__.strip("_").replace("_", "-")
        assert name not in MODELS, name
        MODELS[name] = Harmless(name, make, kerases, objects, forms)
        return make

    return register


KERAS2 = EVERY[1:]
NEWER = ("3", "tf_keras", "2.15")
