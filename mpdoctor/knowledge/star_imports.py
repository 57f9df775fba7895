"""What `from keras.layers import *` and the like bring into a program: the public names of these modules.

Read from the modules of TensorFlow 2.10 and 2.15 and of Keras 3.15, all that one of them has; without `get`,
`serialize` and `deserialize`, which several modules have.
"""

from __future__ import annotations

NAMES = {
    module: frozenset(names.split())
    for module, names in {
        "keras.layers": """
            AbstractRNNCell Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D
            AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add add
            AdditiveAttention AlphaDropout Attention AugMix AutoContrast Average average AveragePooling1D
            AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D BatchNormalization Bidirectional
            CategoryEncoding CenterCrop Concatenate concatenate ContrastLimitedAdaptiveHistogramEqualization Conv1D
            Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D
            Convolution1D Convolution1DTranspose Convolution2D Convolution2DTranspose Convolution3D
            Convolution3DTranspose Cropping1D Cropping2D Cropping3D CutMix Dense DenseFeatures DepthwiseConv1D
            DepthwiseConv2D Discretization Dot dot Dropout EinsumDense ELU Embedding Equalization Flatten FlaxLayer
            GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
            GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D
            GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GroupNormalization GroupQueryAttention GRU
            GRUCell HashedCrossing Hashing Identity Input InputLayer InputSpec IntegerLookup JaxLayer Lambda Layer
            LayerNormalization LeakyReLU LocallyConnected1D LocallyConnected2D LSTM LSTMCell Masking Maximum maximum
            MaxNumBoundingBoxes MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D MelSpectrogram
            Minimum minimum MixUp MultiHeadAttention Multiply multiply Normalization Permute Pipeline PReLU
            RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast RandomCrop
            RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHeight
            RandomHue RandomInvert RandomPerspective RandomPosterization RandomRotation RandomSaturation
            RandomSharpness RandomShear RandomTranslation RandomWidth RandomZoom ReLU RepeatVector Rescaling Reshape
            Resizing ReversibleEmbedding RMSNormalization RNN SeparableConv1D SeparableConv2D SeparableConvolution1D
            SeparableConvolution2D SimpleRNN SimpleRNNCell Softmax Solarization SpatialDropout1D SpatialDropout2D
            SpatialDropout3D SpectralNormalization StackedRNNCells STFTSpectrogram StringLookup Subtract subtract
            TextVectorization TFSMLayer ThresholdedReLU TimeDistributed TorchModuleWrapper UnitNormalization
            UpSampling1D UpSampling2D UpSampling3D Wrapper ZeroPadding1D ZeroPadding2D ZeroPadding3D
        """,
        "keras.models": """
            clone_model load_model Model model_from_config model_from_json model_from_yaml save_model Sequential
        """,
        "keras.optimizers": """
            Adadelta Adafactor Adagrad Adam Adamax AdamW Ftrl Lamb Lion LossScaleOptimizer MultiOptimizer Muon Nadam
            Optimizer OptimizerMap RMSprop ScheduleFreeAdamW SGD
        """,
        "keras.losses": """
            binary_crossentropy binary_focal_crossentropy BinaryCrossentropy BinaryFocalCrossentropy
            categorical_crossentropy categorical_focal_crossentropy categorical_generalized_cross_entropy
            categorical_hinge CategoricalCrossentropy CategoricalFocalCrossentropy
            CategoricalGeneralizedCrossEntropy CategoricalHinge Circle circle cosine_similarity CosineSimilarity CTC
            ctc Dice dice Hinge hinge Huber huber kl_divergence KLD kld KLDivergence kullback_leibler_divergence
            log_cosh LogCosh logcosh Loss MAE mae MAPE mape mean_absolute_error mean_absolute_percentage_error
            mean_squared_error mean_squared_logarithmic_error MeanAbsoluteError MeanAbsolutePercentageError
            MeanSquaredError MeanSquaredLogarithmicError MSE mse MSLE msle Poisson poisson Reduction
            sparse_categorical_crossentropy SparseCategoricalCrossentropy squared_hinge SquaredHinge Tversky tversky
        """,
        "keras.metrics": """
            Accuracy AUC binary_accuracy binary_crossentropy binary_focal_crossentropy BinaryAccuracy
            BinaryCrossentropy BinaryIoU categorical_accuracy categorical_crossentropy
            categorical_focal_crossentropy categorical_hinge CategoricalAccuracy CategoricalCrossentropy
            CategoricalHinge concordance_correlation ConcordanceCorrelation CosineSimilarity F1Score FalseNegatives
            FalsePositives FBetaScore Hinge hinge huber IoU kl_divergence KLD kld KLDivergence
            kullback_leibler_divergence log_cosh logcosh LogCoshError MAE mae MAPE mape Mean mean_absolute_error
            mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error MeanAbsoluteError
            MeanAbsolutePercentageError MeanIoU MeanMetricWrapper MeanRelativeError MeanSquaredError
            MeanSquaredLogarithmicError MeanTensor Metric MSE mse MSLE msle OneHotIoU OneHotMeanIoU
            pearson_correlation PearsonCorrelation Poisson poisson Precision PrecisionAtRecall R2Score Recall
            RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity sparse_categorical_accuracy
            sparse_categorical_crossentropy sparse_top_k_categorical_accuracy SparseCategoricalAccuracy
            SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity squared_hinge
            SquaredHinge Sum top_k_categorical_accuracy TopKCategoricalAccuracy TrueNegatives TruePositives
        """,
        "keras.callbacks": """
            BackupAndRestore BaseLogger Callback CallbackList CSVLogger EarlyStopping History LambdaCallback
            LearningRateScheduler ModelCheckpoint OrbaxCheckpoint ProgbarLogger ReduceLROnPlateau RemoteMonitor
            SidecarEvaluatorModelExport SwapEMAWeights TensorBoard TerminateOnNaN
        """,
        "keras.regularizers": """
            L1 l1 l1_l2 L1L2 L2 l2 orthogonal_regularizer OrthogonalRegularizer Regularizer
        """,
        "keras.initializers": """
            Constant constant glorot_normal glorot_uniform GlorotNormal GlorotUniform he_normal he_uniform HeNormal
            HeUniform Identity identity IdentityInitializer Initializer lecun_normal lecun_uniform LecunNormal
            LecunUniform Ones ones Orthogonal orthogonal OrthogonalInitializer random_normal random_uniform
            RandomNormal RandomUniform STFT stft STFTInitializer truncated_normal TruncatedNormal variance_scaling
            VarianceScaling Zeros zeros
        """,
        "keras.activations": """
            celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear
            log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign
            sparse_plus sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold
        """,
        "keras.constraints": """
            Constraint max_norm MaxNorm min_max_norm MinMaxNorm non_neg NonNeg radial_constraint RadialConstraint
            unit_norm UnitNorm
        """,
    }.items()
}
