"""Which operations TensorFlow's own mixed-precision rewrite always, and which it never, computes in 16 bits.

Source: TensorFlow 2.21.0, `tensorflow/include/tensorflow/core/grappler/optimizers/auto_mixed_precision_lists.h` in its
wheel, classes AutoMixedPrecisionListsFp16 and AutoMixedPrecisionListsMkl (names of operations only).
"""

from __future__ import annotations

from mpdoctor.knowledge import words

# They put out a weight, or rows of it.
READING_WEIGHTS = words("ReadVariableOp ResourceGather ResourceGatherNd")

# Numerically safe, and where 16 bits gain the most.
ALLOW: dict[str, frozenset[str]] = {
    "float16": words(
        """
        BatchMatMul BatchMatMulV2 BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 Conv2D Conv2DBackpropFilter
        Conv2DBackpropInput Conv3D Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput
        Conv3DBackpropInputV2 CudnnRNN CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3 CudnnRNNV2 CudnnRNNV3
        DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Einsum
        FastUnsortedSegmentMax FusedConv2DBiasActivation FusedSparseConvGpuV2 GRUBlockCell GRUBlockCellGrad
        LSTMBlockCell LSTMBlockCellGrad MatMul Mha MhaV2 Pmlp Tmlp TmlpV2 TmlpV3 VoxelMax
        """
    ),
    "bfloat16": words(
        """
        BatchMatMul BatchMatMulV2 Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2
        Conv3DBackpropInputV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter
        DepthwiseConv2dNativeBackpropInput Einsum FusedPadConv2D MatMul
        """
    ),
}
# Numerically dangerous: kept in float32.
DENY: dict[str, frozenset[str]] = {
    "float16": words(
        """
        Exp Expm1 L2Loss Mean Pow SaveV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits Sum
        """
    ),
    "bfloat16": words(
        """
        Exp Expm1 L2Loss Pow SaveV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits
        """
    ),
}
EVER_ALLOWED = ALLOW["float16"] | ALLOW["bfloat16"]
EVER_DENIED = DENY["float16"] | DENY["bfloat16"]
