"""Operations without 16-bit kernels, as data. Tried on a CPU in TensorFlow 2.10, 2.15 and 2.21, with Keras 3.15."""

from __future__ import annotations

import re
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import HALF


def _names_below(place: str, text: str) -> frozenset[str]:
    return frozenset(f"{place}.{name}" for name in text.split())


# They take float32 or complex numbers by their definition, on every device.
WITHOUT_HALF: dict[str, frozenset[str]] = dict.fromkeys(
    _names_below(
        "tensorflow.signal",
        # (fft and ifft take complex numbers, which Keras does not cast.)
        "rfft rfft2d rfft3d dct idct mdct inverse_mdct stft mfccs_from_log_mel_spectrograms",
    )
    | _names_below("tensorflow", "complex histogram_fixed_width betainc zeta polygamma nextafter")
    | _names_below("tensorflow.math.special", "dawsn expint spence fresnel_cos fresnel_sin")
    | _names_below(
        "tensorflow.nn",
        # (the last two subtract the logarithm of float32 counts: 2.4, 2.15 and 2.21)
        "fractional_max_pool fractional_avg_pool ctc_greedy_decoder ctc_beam_search_decoder sampled_softmax_loss "
        "nce_loss",
    )
    | _names_below("tensorflow.compat.v1.nn", "ctc_greedy_decoder ctc_beam_search_decoder ctc_beam_search_decoder_v2")
    | _names_below("keras.backend", "ctc_decode")  # (`keras.ops.ctc_decode` casts to float32 itself)
    | _names_below("tensorflow.image", "combined_non_max_suppression extract_glimpse")
    | _names_below(
        "tensorflow.image", "non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores"
    )
    | _names_below("tensorflow.quantization", "fake_quant_with_min_max_args fake_quant_with_min_max_vars")
    | _names_below("tensorflow", "eig eigvals tridiagonal_solve tridiagonal_matmul")
    | _names_below("tensorflow.audio", "encode_wav")
    | _names_below("keras.ops", "fft fft2 ifft2 rfft irfft stft eig polar"),
    frozenset(HALF),
)
# No kernel for float16 on a CPU, and bfloat16 is refused everywhere. (svd and eigh have none on a GPU either.)
WITHOUT_HALF.update(
    dict.fromkeys(
        _names_below(
            "tensorflow",
            "svd eigh eigvalsh det slogdet cholesky pinv logdet expm sqrtm matrix_rank lu solve lstsq triangular_solve "
            "banded_triangular_solve cholesky_solve lu_solve lu_matrix_inverse igamma igammac ndtri erfinv erfcinv "
            "rint",
        )
        | _names_below(
            "keras.ops",
            "svd eigh det slogdet cholesky cholesky_inverse pinv solve solve_triangular lstsq lu_factor",
        ),
        frozenset(HALF),
    )
)
WITHOUT_HALF.update(
    dict.fromkeys(_names_below("tensorflow", "qr inv") | _names_below("keras.ops", "qr inv"), frozenset(("bfloat16",)))
)
# No device has a kernel for them (those that TensorFlow 2.21 registers).
WITHOUT_HALF.update(
    dict.fromkeys(
        _names_below("tensorflow", "lgamma digamma lbeta eigh_tridiagonal bessel_i0 bessel_i0e bessel_i1 bessel_i1e")
        | _names_below("tensorflow.nn", "local_response_normalization lrn")
        | _names_below("tensorflow.image", "crop_and_resize draw_bounding_boxes non_max_suppression"),
        frozenset(("bfloat16",)),
    )
)
# They compute in float16, but what TensorFlow differentiates them with does not, on any device: a
# triangular solve, polygamma.
GRADIENT_WITHOUT_HALF: dict[str, frozenset[str]] = dict.fromkeys(
    _names_below("tensorflow", "qr digamma") | _names_below("keras.ops", "qr"), frozenset(("float16",))
)

# Of sparse tensors alone, on every device (2.4, 2.15 and 2.21); a sparse tensor and a dense one are added in 16 bits.
SPARSE_WITHOUT_HALF = ("tensorflow.sparse.add",)
SPARSE_MAKERS = ("tensorflow.SparseTensor",)
_DENSE_OF_SPARSE = _names_below(
    "tensorflow.sparse",
    "to_dense sparse_dense_matmul reduce_sum reduce_max segment_sum segment_mean segment_sqrt_n to_indicator",
)


def makes_sparse(name: str) -> bool:
    """Whether a function gives a sparse tensor, whatever it is given. `name`: its public name."""
    return name in SPARSE_MAKERS or (
        name.startswith("tensorflow.sparse.") and name not in _DENSE_OF_SPARSE and name not in SPARSE_WITHOUT_HALF
    )


# They take no 16 bits in this argument (its place and its name), whatever the dtype of the others.
FLOAT32_ARGUMENTS: dict[str, tuple[int, str]] = {
    "tensorflow.image.crop_and_resize": (1, "boxes"),
    "tensorflow.image.draw_bounding_boxes": (1, "boxes"),
    "tensorflow.image.extract_glimpse": (2, "offsets"),
    "tensorflow.in_top_k": (1, "predictions"),
    "tensorflow.nn.in_top_k": (1, "predictions"),
    "keras.ops.in_top_k": (1, "predictions"),
    "keras.backend.in_top_k": (0, "predictions"),
    "tensorflow.bincount": (1, "weights"),
}
# The places of the elements that are not 0 are found in float16 on a GPU alone (bfloat16 has a kernel on both).
BOOLEANS_ON_A_CPU: dict[str, tuple[int, str]] = {
    "tensorflow.where": (0, "condition"),
    "tensorflow.boolean_mask": (1, "mask"),
}

# A GPU has these for float16; a CPU has not.
ON_GPU_ONLY = _names_below(
    "tensorflow.image",
    "adjust_contrast adjust_saturation adjust_hue random_contrast random_saturation random_hue "
    "stateless_random_contrast stateless_random_saturation stateless_random_hue",
)
# Counting in 16 bits: in a graph none of TensorFlow 2.10 to 2.21 has it for float16 where the length is known; 2.21 has
# it for other lengths, and for bfloat16.
RANGES = ("tensorflow.range", "keras.ops.arange")

# What TensorFlow says where an operation has no 16-bit kernel; the group is the operation.
_WORDS = (
    r"Could not find device for node: \{\{node ([A-Za-z]\w*).*DT_(?:HALF|BFLOAT16)",
    r"No OpKernel was registered to support Op '(\w+)'.*DT_(?:HALF|BFLOAT16)",
    r"(I?RFFT) requires tf\.float32 or tf\.float64 inputs.*(?:float16)",
    r"(tf\.linalg\.\w+) does not support matrices of type <dtype: 'b?float16'>",
    r"Invalid input type\. Expected `float32` or `float64`\. Received: input type=<dtype: 'b?float16'>",
    r"`?real`? and `?imag`? (?:components )?have incorrect types: b?float16",
    r"Value passed to parameter '\w+' has DataType b?float16 not in list of allowed values: [^\n]*float32",
    # (where whole numbers alone are allowed, it is an index: MP506, and no matter of kernels)
    r"Value for attr '\w+' of (?:half|bfloat16) is not in the list of allowed values: [^\n]*(?:float|double).*"
    r"Op<name=(\w+)",
    r"Value for attr '\w+' of (?:half|bfloat16) is not in the list of allowed values: [^\n]*(?:float|double)",
    r"Unsupported dtype(?:19|14) for '\{\{node (\w+)",
)


# The first of these speak of the kernels of one device, and the last of a graph on it; the others of what the operation
# is defined for, anywhere.
_OF_A_DEVICE = (_WORDS[0], _WORDS[1], _WORDS[-1])


class MissingKernel(NamedTuple):
    """An operation, "An operation" where it is not named, and whether it is defined for no 16-bit numbers at all."""

    operation: str
    anywhere: bool


def operation_without_kernel(message: str) -> MissingKernel | None:
    """What an error is about; None for other errors."""
    for words in _WORDS:
        match = re.search(words, message, re.DOTALL)
        if match is not None:
            operation = f"`{match[1]}`" if match.groups() and match[1] else "An operation"
            return MissingKernel(operation, words not in _OF_A_DEVICE)
    return None
