"""One TensorFlow model of transformers 4, made from a small configuration, on tf_keras:
`python transformers_models.py bert`."""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import transformers

tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

ROWS, LENGTH = 64, 16
SMALL = {
    "vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32
}  # fmt: skip
tokens = rng.integers(1, 100, (ROWS, LENGTH))
classes = rng.integers(0, 2, ROWS)
TEXT = {"input_ids": tokens, "attention_mask": np.ones((ROWS, LENGTH), "int32")}
PICTURES = {"pixel_values": rng.normal(size=(ROWS, 3, 32, 32)).astype("float32")}


def bert():
    return transformers.TFBertForSequenceClassification(transformers.BertConfig(**SMALL)), {**TEXT, "labels": classes}


def distilbert():
    config = transformers.DistilBertConfig(vocab_size=100, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
    return transformers.TFDistilBertForSequenceClassification(config), {**TEXT, "labels": classes}


def gpt2():
    config = transformers.GPT2Config(vocab_size=100, n_embd=16, n_layer=2, n_head=2, n_positions=LENGTH)
    return transformers.TFGPT2LMHeadModel(config), {**TEXT, "labels": tokens}


def t5():
    config = transformers.T5Config(
        vocab_size=100, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    return transformers.TFT5ForConditionalGeneration(config), {**TEXT, "labels": tokens}


def vit():
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    return transformers.TFViTForImageClassification(config), {**PICTURES, "labels": classes}


model, data = globals()[sys.argv[1]]()
model.compile(tf.keras.optimizers.Adam(1e-4))
model.fit(data, batch_size=16)
