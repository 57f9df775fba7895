"""One backbone of keras-hub, made from a small configuration: `python keras_hub_backbones.py Bert`."""

import sys

import keras
import keras_hub.models as hub
import numpy as np

keras.mixed_precision.set_dtype_policy("mixed_float16")
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

WORDS, LENGTH, ROWS = 100, 16, 64
tokens = rng.integers(1, WORDS, (ROWS, LENGTH))
ones, zeros = np.ones((ROWS, LENGTH), "int32"), np.zeros((ROWS, LENGTH), "int32")
TEXT = {"token_ids": tokens, "padding_mask": ones}
SEGMENTED = {**TEXT, "segment_ids": zeros}
SMALL = {"vocabulary_size": WORDS, "num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
GROUPED = {
    "vocabulary_size": WORDS, "num_layers": 2, "num_query_heads": 2, "num_key_value_heads": 1, "hidden_dim": 16,
    "intermediate_dim": 32,
}  # fmt: skip
pictures = rng.normal(size=(ROWS, 32, 32, 3)).astype("float32")

BACKBONES = {
    "Bert": (lambda: hub.BertBackbone(**SMALL, max_sequence_length=LENGTH), SEGMENTED, "pooled_output"),
    "DistilBert": (lambda: hub.DistilBertBackbone(**SMALL, max_sequence_length=LENGTH), TEXT, None),
    "Roberta": (lambda: hub.RobertaBackbone(**SMALL, max_sequence_length=LENGTH), TEXT, None),
    "Albert": (
        lambda: hub.AlbertBackbone(**SMALL, embedding_dim=8, max_sequence_length=LENGTH),
        SEGMENTED,
        "pooled_output",
    ),
    "DebertaV3": (lambda: hub.DebertaV3Backbone(**SMALL, max_sequence_length=LENGTH), TEXT, None),
    "GPT2": (lambda: hub.GPT2Backbone(**SMALL, max_sequence_length=LENGTH), TEXT, None),
    "OPT": (lambda: hub.OPTBackbone(**SMALL, max_sequence_length=LENGTH), TEXT, None),
    "Llama": (lambda: hub.LlamaBackbone(**GROUPED), TEXT, None),
    "Gemma": (lambda: hub.GemmaBackbone(**GROUPED, head_dim=8), TEXT, None),
    "T5": (
        lambda: hub.T5Backbone(**SMALL, key_value_dim=8),
        {
            "encoder_token_ids": tokens,
            "encoder_padding_mask": ones,
            "decoder_token_ids": tokens,
            "decoder_padding_mask": ones,
        },
        "decoder_sequence_output",
    ),
    "ResNet": (
        lambda: hub.ResNetBackbone(
            input_conv_filters=[64],
            input_conv_kernel_sizes=[7],
            stackwise_num_filters=[64, 64],
            stackwise_num_blocks=[1, 1],
            stackwise_num_strides=[1, 2],
            block_type="basic_block",
            image_shape=(32, 32, 3),
        ),
        pictures,
        None,
    ),
    "ViT": (
        lambda: hub.ViTBackbone(
            image_shape=(32, 32, 3), patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
        ),
        pictures,
        None,
    ),
}

make, data, output = BACKBONES[sys.argv[1]]
backbone = make()
features = backbone.output if output is None else backbone.output[output]
pooling = {3: keras.layers.GlobalAveragePooling1D, 4: keras.layers.GlobalAveragePooling2D}.get(len(features.shape))
if pooling is not None:
    features = pooling(dtype="float32")(features)
head = keras.layers.Dense(10, activation="softmax", dtype="float32")(features)
model = keras.Model(backbone.input, head)
model.compile(keras.optimizers.Adam(1e-4), "sparse_categorical_crossentropy")
model.fit(data, rng.integers(0, 10, ROWS), batch_size=16)
