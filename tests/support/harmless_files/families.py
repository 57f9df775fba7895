"""Every common family of layers."""

from harmless_files.registry import KERAS2, NEWER, harmless


@harmless()
def dense_and_activations(k):
    kinds = (
        "relu",
        "tanh",
        "sigmoid",
        "softmax",
        "elu",
        "selu",
        "softplus",
        "softsign",
        "swish",
        "gelu",
        "exponential",
        "hard_sigmoid",
        "linear",
    )
    return k.sequential((4,), *[k.layers.Dense(4, activation=kind) for kind in kinds], k.layers.Activation("relu"))


@harmless()
def advanced_activations(k):
    more = [k.layers.LeakyReLU(), k.layers.PReLU(), k.layers.ELU(), k.layers.Softmax(), k.layers.ReLU(max_value=6.0)]
    return k.sequential((4,), k.layers.Dense(4), *more)


@harmless()
def convolutions(k):
    y = k.layers
    return k.sequential(
        (16, 16, 3),
        y.Conv2D(4, 3, padding="same"),
        y.SeparableConv2D(4, 3),
        y.DepthwiseConv2D(3),
        y.Conv2DTranspose(4, 3),
        y.MaxPooling2D(),
        y.ZeroPadding2D(1),
        y.UpSampling2D(),
        y.Cropping2D(1),
        y.AveragePooling2D(2),
        y.GlobalAveragePooling2D(),
        y.Dense(1),
    )


@harmless()
def one_and_three_dimensions(k):
    y = k.layers
    return k.sequential((8, 8, 8, 1), y.Conv3D(2, 3), y.MaxPooling3D(), y.Reshape((27, 2)), y.Conv1D(4, 3),
                        y.MaxPooling1D(), y.GlobalMaxPooling1D(), y.Dense(1))  # fmt: skip


@harmless()
def normalizations(k):
    return k.sequential((4,), k.layers.Dense(4), k.layers.BatchNormalization(), k.layers.LayerNormalization())


@harmless(NEWER)
def group_normalization(k):
    return k.sequential((8,), k.layers.Dense(8), k.layers.GroupNormalization(4), k.layers.UnitNormalization())


@harmless()
def dropouts_and_noise(k):
    y = k.layers
    return k.sequential((4, 4), y.Dropout(0.1), y.GaussianNoise(0.1), y.GaussianDropout(0.1), y.AlphaDropout(0.1),
                        y.SpatialDropout1D(0.1), y.ActivityRegularization(0.01), y.Flatten(), y.Dense(1))  # fmt: skip


@harmless()
def recurrent(k):
    y = k.layers
    return k.sequential(
        (5, 3), y.LSTM(4, return_sequences=True), y.GRU(4, return_sequences=True), y.SimpleRNN(4), y.Dense(1)
    )


@harmless()
def stacked_cells(k):
    y = k.layers
    return k.sequential((5, 3), y.RNN([y.LSTMCell(3), y.GRUCell(4), y.SimpleRNNCell(2)]), y.Dense(1))


@harmless()
def bidirectional(k):
    y = k.layers
    return k.sequential((5, 3), y.Bidirectional(y.LSTM(4, return_sequences=True), merge_mode="sum"),
                        y.Bidirectional(y.GRU(3)), y.Dense(1))  # fmt: skip


@harmless()
def bidirectional_of_two(k):
    y = k.layers
    return k.sequential((5, 3), y.Bidirectional(y.LSTM(4), backward_layer=y.GRU(4, go_backwards=True)), y.Dense(1))


@harmless()
def time_distributed(k):
    y = k.layers
    return k.sequential((5, 3), y.TimeDistributed(y.Dense(4, activation="relu")), y.Flatten(), y.Dense(1))


@harmless()
def convolutional_recurrent(k):
    y = k.layers
    return k.sequential((3, 8, 8, 1), y.ConvLSTM2D(2, 3), y.Flatten(), y.Dense(1))


@harmless()
def masking_and_embedding(k):
    y = k.layers
    return k.sequential((6,), y.Embedding(10, 4, mask_zero=True), y.LSTM(4), y.Dense(1), dtype="int32")


@harmless()
def masking(k):
    return k.sequential((6, 2), k.layers.Masking(0.0), k.layers.LSTM(4), k.layers.Dense(1))


@harmless()
def multi_head_attention(k):
    def build(x):
        y = k.layers
        a = y.MultiHeadAttention(num_heads=2, key_dim=4, name="mha")(x, x)
        return y.Dense(1)(y.Flatten()(y.LayerNormalization()(y.Add()([x, a]))))

    return k.applied((6, 8), build)


@harmless()
def attention(k):
    def build(x):
        y = k.layers
        return y.Dense(1)(y.Flatten()(y.Concatenate()([y.Attention()([x, x]), y.AdditiveAttention()([x, x])])))

    return k.applied((6, 8), build)


@harmless()
def merging(k):
    def build(x):
        y = k.layers
        a, b = y.Dense(4)(x), y.Dense(4)(x)
        pairs = [y.Add(), y.Subtract(), y.Multiply(), y.Average(), y.Maximum(), y.Minimum(), y.Concatenate()]
        return y.Dense(1)(y.Concatenate()([merge([a, b]) for merge in pairs] + [y.Dot(axes=1)([a, b])]))

    return k.applied((4,), build)


@harmless()
def reshaping(k):
    y = k.layers
    return k.sequential(
        (4, 6), y.Permute((2, 1)), y.Reshape((8, 3)), y.Flatten(), y.RepeatVector(2), y.Flatten(), y.Dense(1)
    )


@harmless()
def einsum_dense(k):
    layers = k.layers if hasattr(k.layers, "EinsumDense") else k.layers.experimental
    return k.sequential(
        (4, 6),
        layers.EinsumDense("abc,cd->abd", output_shape=(4, 3), bias_axes="d"),
        k.layers.Flatten(),
        k.layers.Dense(1),
    )


@harmless(NEWER)
def spectral_and_identity(k):
    return k.sequential((4,), k.layers.SpectralNormalization(k.layers.Dense(4)), k.layers.Identity(), k.layers.Dense(1))


@harmless()
def nested_models(k):
    inner = k.sequential((4,), k.layers.Dense(4), k.layers.Dense(3))
    outer = k.applied((4,), lambda x: k.layers.Dense(2)(inner(x)))
    return k.applied((4,), lambda x: k.layers.Dense(1)(outer(x)))


@harmless()
def shared_layers(k):
    shared, second = k.layers.Dense(4, name="shared"), k.given(4)
    first = k.given(4)
    return k.Model([first, second], k.layers.Dense(1)(k.layers.Add()([shared(first), shared(second)])))


@harmless()
def many_inputs_and_outputs(k):
    a, b = k.given(3, name="a"), k.given(4, name="b")
    both = k.layers.Concatenate()([a, b])
    outputs = [k.layers.Dense(1, name="x")(both), k.layers.Dense(3, activation="softmax", name="y")(both)]
    return k.compiled(k.Model([a, b], outputs), ["mse", "sparse_categorical_crossentropy"], loss_weights=[1.0, 0.5])


@harmless(("3",))
def names_of_all_kinds(k):
    names = ("größe", "层", "Lambda", "__lambda__", "os.system", "module", "with space", "class_name")
    return k.sequential((4,), *[k.layers.Dense(4, name=name) for name in names])


@harmless(KERAS2)
def names_with_slashes(k):
    names = ("block/dense", "Lambda", "os.system", "module", "class_name", "head/out")
    return k.sequential((4,), *[k.layers.Dense(4, name=name) for name in names])


@harmless()
def a_residual_network(k):
    def build(x):
        y = k.layers
        for number in range(6):
            z = y.ReLU()(y.BatchNormalization()(y.Conv2D(4, 3, padding="same", use_bias=False)(x)))
            x = y.Add()([x, z]) if number else z
        return y.Dense(3, activation="softmax")(y.GlobalAveragePooling2D()(x))

    return k.compiled(k.applied((16, 16, 3), build), "sparse_categorical_crossentropy", "adam", metrics=["accuracy"])


@harmless(forms=("keras",))
def mobilenet(k):
    return k.keras.applications.MobileNetV2(input_shape=(32, 32, 3), alpha=0.35, weights=None, classes=3)
