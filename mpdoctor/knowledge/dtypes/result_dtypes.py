"""Which dtype TensorFlow's and Keras' functions give their results, as data.

Positions are those of the `dtype` argument in the signature, so that `tf.zeros(shape, tf.float16)` is
understood. Taken from `inspect.signature` in TensorFlow 2.21 and Keras 3.15; a test compares them where
TensorFlow is installed.
"""

from __future__ import annotations

from mpdoctor.knowledge import words

# Function: (position of `dtype`, default). Defaults in angle brackets depend on the values given: see BY_VALUE.
DEFAULTS: dict[str, tuple[int | None, str]] = {
    "tensorflow.constant": (1, "<first>"),
    "tensorflow.convert_to_tensor": (1, "<first>"),
    "tensorflow.Variable": (None, "<first>"),
    "tensorflow.fill": (None, "<second>"),
    "tensorflow.range": (3, "<all>"),
    "tensorflow.linspace": (None, "<first>"),
    "tensorflow.zeros": (1, "float32"),
    "tensorflow.ones": (1, "float32"),
    "tensorflow.eye": (3, "float32"),
    "tensorflow.one_hot": (5, "float32"),
    "tensorflow.sequence_mask": (2, "bool"),
    "tensorflow.SparseTensor": (None, "<second>"),
    "tensorflow.sparse.SparseTensor": (None, "<second>"),
    "tensorflow.sparse.eye": (2, "float32"),
    "tensorflow.confusion_matrix": (4, "int32"),
    "tensorflow.random.normal": (3, "float32"),
    "tensorflow.random.truncated_normal": (3, "float32"),
    "tensorflow.random.uniform": (3, "float32"),
    "tensorflow.random.gamma": (3, "float32"),
    "tensorflow.random.poisson": (2, "float32"),
    "tensorflow.random.stateless_normal": (4, "float32"),
    "tensorflow.random.stateless_uniform": (4, "float32"),
    "tensorflow.random.stateless_truncated_normal": (4, "float32"),
    "tensorflow.random_normal": (3, "float32"),
    "tensorflow.random_uniform": (3, "float32"),
    "tensorflow.signal.hann_window": (2, "float32"),
    "tensorflow.signal.hamming_window": (2, "float32"),
    "tensorflow.signal.linear_to_mel_weight_matrix": (5, "float32"),
    "keras.ops.zeros": (1, "float32"),
    "keras.ops.ones": (1, "float32"),
    "keras.ops.eye": (3, "float32"),
    "keras.ops.one_hot": (3, "float32"),
    "keras.ops.normal": (3, "float32"),
    "keras.ops.truncated_normal": (3, "float32"),
    "keras.ops.uniform": (3, "float32"),
    "keras.ops.convert_to_tensor": (1, "<first>"),
    "keras.ops.arange": (3, "<all>"),
    "keras.ops.array": (1, "<first>"),
    "keras.ops.full": (2, "float32"),
    "keras.ops.empty": (1, "float32"),
    "keras.ops.identity": (1, "float32"),
    "keras.ops.gamma": (2, "float32"),
    "keras.ops.beta": (3, "float32"),
    "keras.ops.binomial": (3, "float32"),
    "keras.ops.linspace": (5, "float32"),
    "keras.ops.tri": (3, "float32"),
    "keras.backend.variable": (1, "float32"),
    "keras.backend.constant": (1, "float32"),
    "keras.backend.zeros": (1, "float32"),
    "keras.backend.ones": (1, "float32"),
    "keras.backend.eye": (1, "float32"),
    "keras.backend.random_normal": (3, "float32"),
    "keras.backend.random_uniform": (3, "float32"),
    "keras.backend.truncated_normal": (3, "float32"),
    "keras.backend.random_bernoulli": (2, "float32"),
}
# Of these the numbers made in float16 and bfloat16 are those of a cast of float32's, or are drawn alike (measured in
# TensorFlow 2.4, 2.10, 2.15 and 2.21, and in Keras 3.15).
MADE_IN_16_BITS = words(
    """
    constant zeros ones eye one_hot sequence_mask full normal truncated_normal uniform stateless_normal
    stateless_uniform stateless_truncated_normal
    """
)
BY_VALUE: dict[str, tuple[int, int]] = {"<first>": (0, 1), "<second>": (1, 2), "<all>": (0, 3)}
# What these values are called where they are given by name.
VALUE_NAMES = ("value", "initial_value", "fill_value", "x", "object")
# Calling what these make (`tf.random_normal_initializer()(shape)`) gives float32, unless a dtype is given.
INITIALIZERS = ("keras.initializers.", "tensorflow.compat.v1.keras.initializers.")

# The result is float32, whatever is given (measured in TensorFlow 2.4 and 2.21; accuracies in 2.4, 2.10, 2.15, tf_keras
# 2.21 and Keras 3.15, where they are Keras' floatx): the position of the `method`, of which
# "nearest" alone keeps the dtype of what it is given, None where there is none.
ALWAYS_FLOAT32: dict[str, int | None] = {
    "tensorflow.image.resize": 2,
    "tensorflow.image.resize_with_pad": 3,
    "tensorflow.image.crop_and_resize": None,
    "tensorflow.image.psnr": None,
    "tensorflow.image.ssim": None,
    "tensorflow.image.ssim_multiscale": None,
    "tensorflow.compat.v1.image.resize_bilinear": None,
    "tensorflow.compat.v1.image.resize_bicubic": None,
    "tensorflow.compat.v1.image.crop_and_resize": None,
    "keras.metrics.binary_accuracy": None,
    "keras.metrics.categorical_accuracy": None,
    "keras.metrics.sparse_categorical_accuracy": None,
}
# einops' functions move, copy or join elements: of one tensor, or of a list of tensors. Keras' resize keeps the dtype
# in every interpolation, other than TensorFlow's (measured in Keras 3.15).
REARRANGING = frozenset(("einops.rearrange", "einops.repeat", "einops.reduce", "keras.ops.image.resize"))
KEEPS_DTYPE = ("nearest", "NEAREST_NEIGHBOR")

COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!=", "not", "in", "not in", "is", "is not"))
BOOLEAN = words(
    """
    equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not is_nan is_inf
    is_finite isnan isinf isfinite isclose reduce_all reduce_any all any
    """
)
SHAPES: dict[str, str] = {"shape": "int32", "size": "int32", "rank": "int32"}

# Of complex numbers these are real ones (measured in TensorFlow 2.21, with Keras 3.15 and tf_keras 2.21).
PARTS_OF_COMPLEX = ("real", "imag", "abs", "angle")
REAL_OF = {"complex64": "float32", "complex128": "float64"}
# What functions of `tf.signal` give, by what they are given.
_COMPLEX_OF = {real: name for name, real in REAL_OF.items()}
_COMPLEX = {name: name for name in REAL_OF}
FOURIER: dict[str, dict[str, str]] = {
    **dict.fromkeys(("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"), _COMPLEX),
    **dict.fromkeys(("irfft", "irfft2d", "irfft3d", "inverse_stft"), REAL_OF),
    **dict.fromkeys(("rfft", "rfft2d", "rfft3d", "stft"), _COMPLEX_OF),
}

# What functions of Python give is cast to the dtype that is declared (measured in TensorFlow 2.4, 2.10 and 2.21).
DECLARING = ("tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.compat.v1.py_func")

# The result has the dtype of the first argument.
KEEPING = words(
    """
    abs exp expm1 log log1p sqrt rsqrt square sin cos tan tanh sigmoid erf negative sign floor ceil round
    cumsum cumprod softmax log_softmax relu relu6 elu selu gelu silu swish softplus softsign
    leaky_relu dropout moments reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_std reduce_variance
    reduce_logsumexp sum mean max min prod std var logsumexp norm l2_normalize reshape transpose
    expand_dims squeeze tile pad reverse roll repeat gather gather_nd take boolean_mask split unstack
    broadcast_to stop_gradient identity slice clip_by_value clip_by_norm clip matrix_transpose flip sort
    avg_pool2d max_pool2d avg_pool max_pool ensure_shape strided_slice diag diag_part cumulative_logsumexp
    l2_loss log_sigmoid logsigmoid hard_sigmoid reduce_euclidean_norm batch_flatten
    depth_to_space space_to_depth
    median average ptp quantile percentile nanmedian nanmean nansum nanmax nanmin nanstd diff flipud fliplr rint
    fix nan_to_num
    flip_left_right flip_up_down rot90 reciprocal tan sinh cosh asin acos atan asinh acosh atanh erfc erfinv lgamma
    compute_average_loss scale_regularization_loss
    band_part set_diag tril triu tensor_diag flatten ravel moveaxis swapaxes tensor_scatter_nd_update
    tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_max tensor_scatter_nd_min
    segment_sum segment_mean segment_max segment_min unsorted_segment_sum unsorted_segment_mean unsorted_segment_max
    embedding_lookup extract_patches reverse_sequence avg_pool1d max_pool1d local_response_normalization
    central_crop crop_to_bounding_box pad_to_bounding_box resize_with_crop_or_pad random_flip_left_right random_crop
    rgb_to_grayscale grayscale_to_rgb pad_images crop_images
    adjoint trace diagonal normalize conj frame overlap_and_add fftshift ifftshift
    crelu celu glu mish exponential linear hard_shrink hard_silu hard_swish hard_tanh soft_shrink tanh_shrink threshold
    sparse_plus sparse_sigmoid sparsemax squareplus
    adjust_brightness adjust_gamma random_brightness random_flip_up_down stateless_random_flip_left_right
    stateless_random_flip_up_down adjust_contrast adjust_hue adjust_saturation adjust_jpeg_quality random_contrast
    random_hue random_saturation random_jpeg_quality stateless_random_brightness stateless_random_contrast
    stateless_random_hue stateless_random_saturation stateless_random_jpeg_quality rgb_to_hsv hsv_to_rgb rgb_to_yiq
    yiq_to_rgb rgb_to_yuv yuv_to_rgb image_gradients sobel_edges total_variation
    reciprocal_no_nan segment_prod guarantee_const
    absolute fabs amax amin arccos arccosh arcsin arcsinh arctan arctanh cbrt conjugate copy deg2rad rad2deg exp2 log2
    log10 sinc trunc nancumprod nancumsum nanpercentile nanprod nanquantile nanvar
    array_split hsplit vsplit dsplit diagflat take_along_axis get_item extract_sequences fold unfold
    adaptive_average_pool adaptive_max_pool average_pool batch_normalization layer_normalization rms_normalization
    top_k permute_dimensions repeat_elements spatial_2d_padding spatial_3d_padding temporal_padding pool2d pool3d
    from_dense to_dense reorder retain
    pool bessel_i0 bessel_i0e bessel_i1 bessel_i1e shuffle stateless_shuffle check_numerics
    random_shuffle
    """
)
# Which values one of is given, or what one of these functions returns: the positions of those.
CHOOSING = {
    "tensorflow.cond": slice(1, 3),
    "keras.ops.cond": slice(1, 3),
    "keras.backend.switch": slice(1, 3),
    "keras.backend.in_train_phase": slice(0, 2),
    "keras.backend.in_test_phase": slice(0, 2),
}
# Functions that make a layer which joins what they are given, and call it (`keras.layers.add([a, b])`).
MERGING = words("add subtract multiply average maximum minimum concatenate dot")
# These give two tensors: the values, and their places, which are int32.
TOP_K = ("tensorflow.math.top_k", "tensorflow.nn.top_k", "keras.ops.top_k", "keras.ops.math.top_k")

# The result has the dtype that these arguments agree on.
JOINING: dict[str, slice] = {
    "add": slice(0, 2),
    "subtract": slice(0, 2),
    "multiply": slice(0, 2),
    "divide": slice(0, 2),
    "divide_no_nan": slice(0, 2),
    "maximum": slice(0, 2),
    "minimum": slice(0, 2),
    "squared_difference": slice(0, 2),
    "matmul": slice(0, 2),
    "sparse_dense_matmul": slice(0, 2),
    "pow": slice(0, 2),
    "power": slice(0, 2),
    "tensordot": slice(0, 2),
    "dot": slice(0, 2),
    "batch_dot": slice(0, 2),
    "xlogy": slice(0, 2),
    "xdivy": slice(0, 2),
    "multiply_no_nan": slice(0, 2),
    "scalar_mul": slice(1, 2),
    "bias_add": slice(0, 2),
    "where": slice(1, 3),
    "scatter_nd": slice(1, 2),
    "conv1d_transpose": slice(0, 2),
    "conv2d_transpose": slice(0, 2),
    "separable_conv2d": slice(0, 3),
    "concat": slice(0, 1),
    "concatenate": slice(0, 1),
    "stack": slice(0, 1),
    "add_n": slice(0, 1),
    "einsum": slice(1, None),
    "meshgrid": slice(0, None),
    "atan2": slice(0, 2),
    "arctan2": slice(0, 2),
    "logaddexp": slice(0, 2),
    "outer": slice(0, 2),
    "cross": slice(0, 2),
    "mod": slice(0, 2),
    "floormod": slice(0, 2),
    "matvec": slice(0, 2),
    "conv1d": slice(0, 2),
    "conv2d": slice(0, 2),
    "conv3d": slice(0, 2),
    "depthwise_conv2d": slice(0, 2),
    "convolution": slice(0, 2),
    "truediv": slice(0, 2),
    "realdiv": slice(0, 2),
    "truncatediv": slice(0, 2),
    "floordiv": slice(0, 2),
    "xlog1py": slice(0, 2),
    "accumulate_n": slice(0, 1),
    "true_divide": slice(0, 2),
    "floor_divide": slice(0, 2),
    "fmax": slice(0, 2),
    "fmin": slice(0, 2),
    "vdot": slice(0, 2),
    "conv": slice(0, 2),
    "conv_transpose": slice(0, 2),
    "depthwise_conv": slice(0, 2),
    "hstack": slice(0, 1),
    "vstack": slice(0, 1),
    "dstack": slice(0, 1),
}

# Functions of keras.ops that promote: of a 16-bit tensor and a float32 one, an array or a list of floats they give
# float32, of one and integers or a Python number 16 bits (measured in Keras 3.15, eagerly and in a graph).
PROMOTING = words(
    """
    add subtract multiply divide divide_no_nan maximum minimum matmul power tensordot dot arctan2 logaddexp outer cross
    mod true_divide floor_divide vdot fmax fmin where concatenate stack hstack vstack dstack einsum
    """
)
# Of these a Python float beside a 16-bit tensor is float32 as well.
TAKING_FLOATS_FOR_FLOAT32 = frozenset(("arctan2", "logaddexp", "mod"))
KEEPING_INTEGERS = words("add subtract multiply maximum minimum where concatenate stack hstack vstack dstack")
# Of integers these functions of keras.ops give float32 (Keras 3.15).
FLOATS_OF_INTEGERS = words(
    """
    sqrt exp expm1 log log1p log2 log10 sin cos tan tanh sinh cosh arctan arcsin mean var std median average floor ceil
    """
)

INTEGER_LAYERS = words(
    """
    StringLookup IntegerLookup TextVectorization Hashing HashedCrossing Discretization
    """
)
# Layers whose output dtype is decided elsewhere: inside a function, or by a layer that they hold.
UNCERTAIN_LAYERS = words(
    """
    Lambda InputLayer Layer TFSMLayer TorchModuleWrapper JaxLayer FlaxLayer Wrapper RNN CategoryEncoding
    Bidirectional TimeDistributed UpSampling2D Resizing
    """
)

_ATTENTION = ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")
# Methods that the `call()` of Keras' layers calls with 16-bit tensors, for a class to override: how many come first,
# and of which layers (Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10). Their masks have other dtypes.
OVERRIDDEN_METHODS = {
    "_compute_attention": (3, _ATTENTION),
    "_masked_softmax": (1, _ATTENTION),
    "_calculate_scores": (2, ("Attention", "AdditiveAttention")),
    "convolution_op": (1, ("Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D", "Convolution3D")),
}
