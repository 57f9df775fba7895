"""The classes and functions of Keras that a saved model may name: an explicit list, by public module.

Collected from the public modules of TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21 and Keras 3.0 to 3.15, and read one by
one. What runs code that a file holds, reads a file that a configuration names, or takes a Python function is left out:
Lambda, TFSMLayer, TorchModuleWrapper, JaxLayer, FlaxLayer, DenseFeatures and SequenceFeatures (vocabulary files), the
wrappers of RNN cells (functions), `keras.ops.map`, `scan`, `cond` and their like (functions).
"""

from __future__ import annotations

_LAYERS = """
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention AugMix
    AutoContrast Average AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D
    BatchNormalization BatchNormalizationV1 BatchNormalizationV2 Bidirectional CategoryCrossing CategoryEncoding
    CenterCrop Concatenate ContrastLimitedAdaptiveHistogramEqualization Conv1D Conv1DTranspose Conv2D Conv2DTranspose
    Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Convolution1D Convolution1DTranspose Convolution2D
    Convolution2DTranspose Convolution3D Convolution3DTranspose Cropping1D Cropping2D Cropping3D CuDNNGRU CuDNNLSTM
    CutMix Deconv2D Deconv3D Deconvolution2D Deconvolution3D Dense DepthwiseConv1D DepthwiseConv2D Discretization Dot
    Dropout ELU EinsumDense Embedding Equalization Flatten GRU GRUCell GRUCellV1 GRUCellV2 GRUV1 GRUV2 GaussianDropout
    GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D
    GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity InputLayer InputSpec
    IntegerLookup
    LSTM LSTMCell LSTMCellV1 LSTMCellV2 LSTMV1 LSTMV2 Layer LayerNormalization LeakyReLU LocallyConnected1D
    LocallyConnected2D Masking MaxNumBoundingBoxes MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D
    Maximum MelSpectrogram Minimum MixUp MultiHeadAttention Multiply Normalization PReLU Permute Pipeline
    RMSNormalization RNN RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast
    RandomCrop RandomElasticTransform RandomErasing RandomFlip RandomFourierFeatures RandomGaussianBlur RandomGrayscale
    RandomHeight RandomHue RandomInvert RandomPerspective RandomPosterization RandomRotation RandomSaturation
    RandomSharpness RandomShear RandomTranslation RandomWidth RandomZoom ReLU RepeatVector Rescaling Reshape Resizing
    ReversibleEmbedding STFTSpectrogram SeparableConv1D SeparableConv2D SeparableConvolution1D SeparableConvolution2D
    SimpleRNN SimpleRNNCell Softmax Solarization SpatialDropout1D SpatialDropout2D SpatialDropout3D
    SpectralNormalization StackedRNNCells StringLookup Subtract SyncBatchNormalization TextVectorization
    ThresholdedReLU TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D
    ZeroPadding2D ZeroPadding3D
"""
_MODELS = "Functional Model Sequential"
_LOSSES = """
    BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
    CategoricalGeneralizedCrossEntropy CategoricalHinge Circle CosineSimilarity Dice Hinge Huber KLDivergence LogCosh
    LossFunctionWrapper MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError
    Poisson SparseCategoricalCrossentropy SquaredHinge Tversky
"""
_METRICS = """
    AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy CategoricalCrossentropy
    CategoricalHinge ConcordanceCorrelation CosineSimilarity F1Score FBetaScore FalseNegatives FalsePositives Hinge IoU
    KLDivergence LogCoshError Mean MeanAbsoluteError MeanAbsolutePercentageError MeanIoU MeanMetricWrapper
    MeanRelativeError MeanSquaredError MeanSquaredLogarithmicError MeanTensor OneHotIoU OneHotMeanIoU
    PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall RecallAtPrecision RootMeanSquaredError
    SensitivityAtSpecificity SparseCategoricalAccuracy SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy
    SpecificityAtSensitivity SquaredHinge Sum SumOverBatchSize SumOverBatchSizeMetricWrapper TopKCategoricalAccuracy
    TrueNegatives TruePositives
"""
_INITIALIZERS = """
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity IdentityInitializer LecunNormal LecunUniform Ones
    Orthogonal OrthogonalInitializer RandomNormal RandomUniform STFT STFTInitializer TruncatedNormal VarianceScaling
    Zeros constant glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal lecun_uniform normal one
    ones orthogonal random_normal random_uniform stft truncated_normal uniform variance_scaling zero zeros
"""
_REGULARIZERS = "L1 L1L2 L2 OrthogonalRegularizer l1 l1_l2 l1l2 l2 orthogonal_regularizer"
_CONSTRAINTS = """
    MaxNorm MinMaxNorm NonNeg RadialConstraint UnitNorm max_norm maxnorm min_max_norm non_neg nonneg radial_constraint
    unit_norm unitnorm
"""
_OPTIMIZERS = """
    Adadelta Adafactor Adagrad Adam AdamW Adamax Ftrl Lamb Lion LossScaleOptimizer LossScaleOptimizerV1
    LossScaleOptimizerV3 MultiOptimizer Muon Nadam OptimizerMap RMSprop SGD ScheduleFreeAdamW
"""
_SCHEDULES = """
    CosineDecay CosineDecayRestarts ExponentialDecay InverseTimeDecay LinearCosineDecay NoisyLinearCosineDecay
    PiecewiseConstantDecay PolynomialDecay
"""
_POLICIES = """
    AWQDTypePolicy DTypePolicy DTypePolicyMap FloatDTypePolicy GPTQDTypePolicy Int4DTypePolicy Policy PolicyV1
    QuantizedDTypePolicy QuantizedFloat8DTypePolicy
"""
_LOSS_SCALES = "DynamicLossScale FixedLossScale"
_QUANTIZERS = """
    AWQConfig AbsMaxQuantizer Float8QuantizationConfig GPTQConfig Int4QuantizationConfig Int8QuantizationConfig
    QuantizationConfig
"""
_EXPERIMENTAL = "LinearModel PeepholeLSTMCell WideDeepModel"

# Module below `keras` or `tf_keras` -> the classes in it. "" is the package itself.
CLASSES = {
    module: frozenset(" ".join(names).split())
    for module, names in {
        "": (_MODELS, _POLICIES),
        "models": (_MODELS,),
        "layers": (_LAYERS,),
        "layers.experimental": (_LAYERS,),
        "layers.experimental.preprocessing": (_LAYERS,),
        "losses": (_LOSSES,),
        "metrics": (_METRICS,),
        "initializers": (_INITIALIZERS,),
        "regularizers": (_REGULARIZERS,),
        "constraints": (_CONSTRAINTS,),
        "optimizers": (_OPTIMIZERS,),
        "optimizers.experimental": (_OPTIMIZERS,),
        "optimizers.legacy": (_OPTIMIZERS,),
        "optimizers.schedules": (_SCHEDULES,),
        "mixed_precision": (_POLICIES, _OPTIMIZERS, _LOSS_SCALES),
        "mixed_precision.experimental": (_POLICIES, _OPTIMIZERS, _LOSS_SCALES),
        "dtype_policies": (_POLICIES,),
        "quantizers": (_QUANTIZERS,),
        "experimental": (_EXPERIMENTAL, _SCHEDULES),
        "random": ("SeedGenerator",),
    }.items()
}
# What stands in no public module is named by where it is written: module below the package -> classes.
INNER_CLASSES = {
    # what `tf.keras.layers` has beside `keras.layers` where it is Keras 3 (TensorFlow 2.21, Keras 3.15)
    "_legacy.layers": frozenset({"AlphaDropout", "RandomHeight", "RandomWidth", "ThresholdedReLU"}),
    "models.functional": frozenset({"Functional"}),
    "models.sequential": frozenset({"Sequential"}),
    "models.model": frozenset({"Model"}),
    "engine.functional": frozenset({"Functional"}),
    "engine.sequential": frozenset({"Sequential"}),
    "engine.training": frozenset({"Model"}),
    "engine.base_layer": frozenset({"AddLoss", "AddMetric"}),
    "layers.convolutional_recurrent": frozenset({"ConvLSTM2DCell"}),  # a SavedModel of 2.4 names it beside its layer
    "layers.core.tf_op_layer": frozenset(
        {"ClassMethod", "InstanceMethod", "InstanceProperty", "SlicingOpLambda", "TFOpLambda"}
    ),
    "layers.preprocessing.feature_space": frozenset({"TFDConcat", "TFDIdentity"}),  # of a FeatureSpace's model
    "losses": frozenset({"LossFunctionWrapper"}),
    "losses.losses": frozenset({"LossFunctionWrapper"}),
    "metrics.base_metric": frozenset({"MeanMetricWrapper", "SumOverBatchSizeMetricWrapper"}),
    "metrics.reduction_metrics": frozenset({"MeanMetricWrapper"}),
    "mixed_precision.loss_scale_optimizer": frozenset({"LossScaleOptimizer", "LossScaleOptimizerV3"}),
    "random.seed_generator": frozenset({"SeedGenerator"}),
}
# Keras 3 writes each operation on a symbolic tensor as the class that carries it out.
OPERATIONS = {
    module: frozenset(names.split())
    for module, names in {
        "numpy": """
            Abs Absolute Add All AllClose Amax Amin Angle Any Append Arange Arccos Arccosh Arcsin Arcsinh Arctan Arctan2
            Arctanh Argmax Argmin Argpartition Argsort Array ArraySplit Average Bartlett Bincount BitwiseAnd
            BitwiseInvert BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Blackman BroadcastTo Cbrt
            Ceil Clip Concatenate Conj Conjugate Copy Corrcoef Correlate Cos Cosh CountNonzero Cross Cumprod Cumsum
            Deg2rad Diag Diagflat Diagonal Diff Digitize Divide DivideNoNan Dot Dsplit Dstack Einsum Empty EmptyLike
            Equal Exp Exp2 ExpandDims Expm1 Eye Fabs Flip Fliplr Flipud Floor FloorDivide Fmax Fmin Fmod Full FullLike
            Gcd Geomspace GetItem Greater GreaterEqual Hamming Hanning Heaviside Histogram Hsplit Hstack Hypot I0
            Identity Imag Inner IsIn Isclose Isfinite Isinf Isnan Isneginf Isposinf Isreal Kaiser Kron Lcm Ldexp
            LeftShift Less LessEqual Linspace Log Log10 Log1p Log2 Logaddexp Logaddexp2 LogicalAnd LogicalNot LogicalOr
            LogicalXor Logspace Matmul Max Maximum Mean Median Meshgrid Min Minimum Mod Moveaxis Multiply NanToNum
            Nanargmax Nanargmin Nancumprod Nancumsum Nanmax Nanmean Nanmedian Nanmin Nanpercentile Nanprod Nanquantile
            Nanstd Nansum Nanvar Ndim Negative Nextafter Nonzero NotEqual Ones OnesLike Outer Pad Percentile Power Prod
            Ptp Quantile Rad2deg Ravel Real Reciprocal Repeat Reshape RightShift Roll Rot90 Round SearchSorted Select
            Sign Signbit Sin Sinc Sinh Size Slogdet Sort Split Sqrt Square Squeeze Stack Std Subtract Sum Swapaxes Take
            TakeAlongAxis Tan Tanh Tensordot Tile Trace Transpose Trapezoid Tri Tril Triu TrueDivide Trunc Unique
            UnravelIndex Vander Var Vdot View Vsplit Vstack Where Zeros ZerosLike
        """,
        "nn": """
            AdaptiveAveragePool AdaptiveMaxPool AveragePool BatchNorm BinaryCrossentropy CTCDecode CTCLoss
            CategoricalCrossentropy Celu Conv ConvTranspose DepthToSpace DepthwiseConv DotProductAttention Elu Fold Gelu
            Glu HardShrink HardSigmoid HardSilu HardTanh LayerNorm LeakyRelu LogSigmoid LogSoftmax MaxPool Moments
            MultiHot Normalize OneHot PSNR Polar RMSNorm Relu Relu6 Selu SeparableConv Sigmoid Silu SoftShrink Softmax
            Softplus Softsign SpaceToDepth SparseCategoricalCrossentropy SparsePlus SparseSigmoid Sparsemax Squareplus
            TanhShrink Threshold Unfold
        """,
        "math": """
            CDist Erf Erfc Erfinv ExtractSequences FFT FFT2 IFFT2 IRFFT ISTFT InTopK Logdet Logsumexp RFFT Rsqrt STFT
            SegmentMax SegmentMin SegmentProd SegmentSum TopK ViewAsComplex ViewAsReal
        """,
        "core": "Cast ConvertToTensor SaturateCast Scatter ScatterUpdate Slice SliceUpdate StopGradient Unstack",
        "image": """
            AffineTransform CropImages ElasticTransform ExtractPatches ExtractPatches3D GaussianBlur HSVToRGB
            MapCoordinates PadImages PerspectiveTransform RGBToGrayscale RGBToHSV Resize SSIM ScaleAndTranslate
            SobelEdges
        """,
        "linalg": """
            Cholesky CholeskyInverse Det Eig Eigh Inv Lstsq LuFactor MatrixRank Norm Pinv Qr SVD Solve SolveTriangular
        """,
        "einops": "Rearrange",
    }.items()
}
# What a configuration names by a text alone: functions, and the classes that Keras also finds in lower case.
_FUNCTIONS = """
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid
    log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus sparse_sigmoid
    sparsemax squareplus swish tanh tanh_shrink threshold
    BCE KLD MAE MAPE MSE MSLE bce binary_crossentropy binary_focal_crossentropy categorical_crossentropy
    categorical_focal_crossentropy categorical_generalized_cross_entropy categorical_hinge circle cosine_proximity
    cosine_similarity ctc dice hinge huber huber_loss kl_divergence kld kullback_leibler_divergence log_cosh logcosh mae
    mape mean_absolute_error mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error mse msle
    poisson sparse_categorical_crossentropy squared_hinge tversky
    acc accuracy binary_accuracy categorical_accuracy ce concordance_correlation crossentropy pearson_correlation
    sparse_categorical_accuracy sparse_top_k_categorical_accuracy top_k_categorical_accuracy
    adadelta adafactor adagrad adam adamax adamw ftrl lamb lion lossscaleoptimizer muon nadam rmsprop sgd
    auc binary_io_u f1_score f_beta_score false_negatives false_positives io_u log_cosh_error mean mean_io_u
    one_hot_io_u one_hot_mean_io_u precision precision_at_recall r2_score recall recall_at_precision
    root_mean_squared_error sensitivity_at_specificity specificity_at_sensitivity sum true_negatives true_positives
"""
# Python values that JSON cannot hold, and tensors that are written out.
_VALUES = """
    TensorShape CompositeTensor __bytes__ __ellipsis__ __keras_tensor__ __numpy__ __slice__ __tensor__ __tuple__
"""
_TYPE_SPECS = """
    TensorSpec RaggedTensorSpec SparseTensorSpec tf.TensorSpec tf.RaggedTensorSpec tf.SparseTensorSpec
"""
# Of the arrays of NumPy: numbers, and Python's own objects. Of a text, and of a dtype with a shape, each takes what the
# dtype says.
_DTYPES_OF_ARRAYS = """
    bool int4 int8 int16 int32 int64 uint4 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 float8_e4m3fn
    float8_e5m2 complex64 complex128 object
"""
DTYPES_OF_ARRAYS = frozenset(_DTYPES_OF_ARRAYS.split())
FUNCTIONS = frozenset(_FUNCTIONS.split())
VALUES = frozenset(_VALUES.split())
TYPE_SPECS = frozenset(_TYPE_SPECS.split())
TYPE_SPEC_MODULES = frozenset(
    [
        "tensorflow.python.framework.sparse_tensor",
        "tensorflow.python.framework.tensor",
        "tensorflow.python.framework.tensor_spec",
        "tensorflow.python.ops.ragged.ragged_tensor",
    ]
)
# Packages that Keras' own classes are registered under.
PACKAGES = frozenset({"Custom", "Keras", "keras"})
ANYWHERE = frozenset().union(*CLASSES.values(), *INNER_CLASSES.values())
BY_TEXT = FUNCTIONS | ANYWHERE


def is_class_of_keras(name: str, module: str, registered: str) -> bool:
    """Whether a class that a saved model names is on the list. `module`: "" where the file names none, as files of
    Keras before 2.12 do; `registered`: the name that it is registered under, "" for none."""
    package, separator, plain = name.rpartition(">")
    if registered not in ("", name, plain) and registered not in {f"{known}>{plain}" for known in PACKAGES}:
        return False
    if separator and package not in PACKAGES:
        return False
    if not module:
        return plain in ANYWHERE or any(plain in names for names in OPERATIONS.values())
    root, _, below = module.partition(".")
    if root not in ("keras", "tf_keras"):
        return False
    inner = below[len("src.") :] if below.startswith("src.") else below
    if inner.startswith("ops.") and below != inner:
        return plain in OPERATIONS.get(inner[len("ops.") :], ())
    return plain in CLASSES.get(below, ()) or plain in INNER_CLASSES.get(inner, ())


def is_function_of_keras(name: str, module: str, registered: str) -> bool:
    """Whether a function that a saved model names is on the list."""
    public = module in ("", "builtins") or module.partition(".")[::2] in {
        (root, below) for root in ("keras", "tf_keras") for below in ("activations", "losses", "metrics", "ops", "nn")
    }
    return public and name in FUNCTIONS and registered in ("", "function", name)
