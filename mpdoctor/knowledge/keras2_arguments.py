"""Arguments that Keras 2 takes and Keras 3 refuses.

Each measured: 2.10 and 2.15 take them, and 3.15 raises TypeError or ValueError."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.knowledge.api_names import kind_of_class, public_name

OF_METHODS = {
    "apply_gradients": ("experimental_aggregate_gradients", "skip_gradients_aggregation"),
    "fit": ("use_multiprocessing", "max_queue_size"),
    "evaluate": ("use_multiprocessing", "max_queue_size"),
    "predict": ("use_multiprocessing", "max_queue_size"),
    "compile": ("sample_weight_mode", "experimental_run_tf_function", "target_tensors", "distribute"),
    "train_on_batch": ("reset_metrics",),
}
_OF_KINDS = {"optimizer": ("lr", "jit_compile")}
_OF_NAMES = {
    "keras.callbacks.ModelCheckpoint": ("period",),
    "keras.callbacks.TensorBoard": ("batch_size", "write_grads"),
    "keras.layers.BatchNormalization": ("fused", "virtual_batch_size"),
    "keras.layers.GRU": ("time_major",),
    "keras.layers.LSTM": ("time_major",),
    "keras.regularizers.l1": ("l",),
    "keras.regularizers.l2": ("l",),
}


@lru_cache(maxsize=None)
def of_keras2_alone(name: str) -> tuple[str, ...]:
    """The arguments of a function or class, given by its dotted name, that only Keras 2 takes."""
    return (*_OF_NAMES.get(public_name(name), ()), *_OF_KINDS.get(kind_of_class(name) or "", ()))
