"""Preprocessing layers whose state and vocabularies lie in the file."""

from harmless_files.registry import NEWER, harmless

TABLES = ("3", "tf_keras", "2.15")


@harmless(("3", "tf_keras", "2.15", "2.10"))
def normalization(k):
    layer = k.layers.Normalization()
    layer.adapt(k.np.arange(40.0).reshape(10, 4))
    return k.sequential((4,), layer, k.layers.Dense(1))


@harmless(NEWER)
def normalization_of_given_mean(k):
    return k.sequential((4,), k.layers.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0] * 4), k.layers.Dense(1))


@harmless(TABLES)
def string_lookup(k):
    layer = k.layers.StringLookup(vocabulary=["a", "b", "/etc/hostname", "c.txt"], output_mode="multi_hot")
    return k.sequential((2,), layer, k.layers.Dense(1), dtype="string")


@harmless(TABLES)
def integer_lookup(k):
    layer = k.layers.IntegerLookup(vocabulary=[3, 5, 7], output_mode="multi_hot")
    return k.sequential((2,), layer, k.layers.Dense(1), dtype="int64")


@harmless(TABLES, forms=("keras",))
def string_lookup_adapted(k):
    layer = k.layers.StringLookup(output_mode="multi_hot")
    layer.adapt(k.np.array(["x", "y", "z", "x"]))
    return k.sequential((2,), layer, k.layers.Dense(1), dtype="string")


@harmless(TABLES, forms=("keras",))
def text_vectorization(k):
    layer = k.layers.TextVectorization(max_tokens=20, output_mode="int", output_sequence_length=4)
    layer.adapt(["one two three", "two three four"])
    return k.sequential(
        (1,), layer, k.layers.Embedding(20, 4), k.layers.GlobalAveragePooling1D(), k.layers.Dense(1), dtype="string"
    )


@harmless(TABLES, forms=("keras",))
def text_vectorization_of_a_list(k):
    layer = k.layers.TextVectorization(vocabulary=["one", "two"], output_mode="multi_hot")
    return k.sequential((1,), layer, k.layers.Dense(1), dtype="string")


@harmless(TABLES, forms=("keras",))
def text_vectorization_tf_idf(k):
    layer = k.layers.TextVectorization(max_tokens=20, output_mode="tf_idf")
    layer.adapt(["one two three", "two three four"])
    return k.sequential((1,), layer, k.layers.Dense(1), dtype="string")


@harmless(NEWER)
def discretization(k):
    layer = k.layers.Discretization(bin_boundaries=[0.0, 1.0, 2.0])
    return k.sequential(
        (2,), layer, k.layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot"), k.layers.Dense(1)
    )


@harmless(TABLES)
def hashing(k):
    return k.sequential(
        (1,),
        k.layers.Hashing(num_bins=5),
        k.layers.Embedding(5, 3),
        k.layers.Flatten(),
        k.layers.Dense(1),
        dtype="string",
    )


@harmless(NEWER)
def hashed_crossing(k):
    a, b = k.given(1, dtype="int64"), k.given(1, dtype="int64")
    crossed = k.layers.HashedCrossing(num_bins=5, output_mode="one_hot")((a, b))
    return k.Model([a, b], k.layers.Dense(1)(crossed))


@harmless(("3", "tf_keras", "2.15", "2.10"))
def image_augmentation(k):
    y = k.layers
    return k.sequential((12, 12, 3), y.Rescaling(1 / 255.0), y.RandomFlip("horizontal"), y.RandomRotation(0.1),
                        y.RandomZoom(0.1), y.RandomTranslation(0.1, 0.1), y.RandomContrast(0.1), y.Resizing(8, 8),
                        y.CenterCrop(6, 6), y.Flatten(), y.Dense(1))  # fmt: skip
