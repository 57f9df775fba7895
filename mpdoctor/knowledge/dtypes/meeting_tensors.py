"""Functions whose tensors must have one dtype, as data: which arguments meet, by their positions."""

from __future__ import annotations

# Positions of the arguments that meet. Measured in TensorFlow 2.10, 2.15 and 2.21, eagerly and in a graph: all raise.
# Most of keras.ops promote instead (MP218); those below do not (Keras 3.15).
_OF_TENSORFLOW = {
    "tensorflow." + name: places
    for places, names in (
        (
            slice(0, 2),
            "add subtract multiply divide truediv matmul maximum minimum pow floordiv floormod mod tensordot atan2 "
            "squared_difference divide_no_nan multiply_no_nan equal not_equal greater greater_equal less less_equal "
            "scalar_mul nn.bias_add nn.conv1d nn.conv2d nn.conv3d nn.depthwise_conv2d nn.convolution matvec cross "
            "xlogy xdivy set_diag nn.conv1d_transpose nn.conv2d_transpose nn.sigmoid_cross_entropy_with_logits "
            "nn.weighted_cross_entropy_with_logits nn.log_poisson_loss searchsorted sparse.sparse_dense_matmul "
            "sparse.add nn.dropout nn.leaky_relu linspace debugging.assert_near debugging.assert_equal "
            "debugging.assert_none_equal debugging.assert_less debugging.assert_less_equal debugging.assert_greater "
            "debugging.assert_greater_equal",
        ),
        (slice(0, 3, 2), "l2_normalize nn.l2_normalize"),
        (slice(0, 4, 3), "pad"),
        (slice(1, 3), "where"),
        (slice(0, 3), "clip_by_value nn.separable_conv2d"),
        (slice(1, 5), "nn.batch_normalization"),  # what they give is cast to the first argument's dtype
        (slice(0, None), "meshgrid"),
        (slice(1, None), "einsum"),
        (
            slice(0, 3, 2),
            "tensor_scatter_nd_update tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_max "
            "tensor_scatter_nd_min",
        ),
    )
    for name in names.split()
}
MEETING: dict[str, slice] = {
    **_OF_TENSORFLOW,
    **dict.fromkeys(("tensorflow.image.ssim", "tensorflow.image.ssim_multiscale"), slice(0, 2)),
    **{
        f"keras.backend.{name}": places
        for places, names in (
            (
                slice(0, 2),
                "dot batch_dot pow maximum minimum equal not_equal greater greater_equal less less_equal bias_add "
                "conv1d conv2d conv3d depthwise_conv2d conv2d_transpose binary_crossentropy categorical_crossentropy",
            ),
            (slice(0, 3), "clip separable_conv2d"),
        )
        for name in names.split()
    },
    **{
        f"keras.ops.{name}": slice(0, 2)
        for name in ["binary_crossentropy", "categorical_crossentropy", "conv", "depthwise_conv", "conv_transpose"]
    },
    **dict.fromkeys(("keras.ops.clip", "keras.ops.separable_conv"), slice(0, 3)),
    **dict.fromkeys(("keras.ops.slice_update", "keras.ops.scatter_update"), slice(0, 3, 2)),
}
# Of Keras 2's losses this one alone does not cast the labels (TensorFlow 2.4, 2.10 and 2.15).
MEETING_IN_KERAS2 = {**MEETING, "keras.losses.cosine_similarity": slice(0, 2)}
# Functions that join the tensors of a list, and where the list stands.
JOINING: dict[str, tuple[int, str]] = {
    "tensorflow.concat": (0, "values"),
    "tensorflow.stack": (0, "values"),
    "tensorflow.add_n": (0, "inputs"),
    "tensorflow.accumulate_n": (0, "inputs"),
    "tensorflow.dynamic_stitch": (1, "data"),
    "tensorflow.convert_to_tensor": (0, "value"),
    **{
        f"tensorflow.reduce_{name}": (0, "input_tensor")
        for name in ("sum", "mean", "max", "min", "prod", "logsumexp", "variance", "std")
    },
    "keras.backend.concatenate": (0, "tensors"),
    "keras.backend.stack": (0, "x"),
    "builtins.sum": (0, "iterable"),
}
