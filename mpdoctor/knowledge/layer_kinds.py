"""Kinds of Keras' built-in layers, as data."""

from __future__ import annotations

from mpdoctor.knowledge import words

# They hold no weights, so a 16-bit dtype costs them no updates.
WEIGHTLESS = words(
    """
    Input InputLayer Activation Softmax ReLU LeakyReLU ELU ThresholdedReLU Dropout SpatialDropout1D SpatialDropout2D
    SpatialDropout3D GaussianDropout GaussianNoise AlphaDropout ActivityRegularization Flatten Reshape Permute
    RepeatVector Masking Lambda Identity Add Subtract Multiply Average Maximum Minimum Concatenate Dot Cropping1D
    Cropping2D Cropping3D ZeroPadding1D ZeroPadding2D ZeroPadding3D UpSampling1D UpSampling2D UpSampling3D
    MaxPooling1D MaxPooling2D MaxPooling3D MaxPool1D MaxPool2D MaxPool3D AveragePooling1D AveragePooling2D
    AveragePooling3D AvgPool1D AvgPool2D AvgPool3D GlobalAveragePooling1D GlobalAveragePooling2D
    GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GlobalAvgPool1D GlobalAvgPool2D
    GlobalMaxPool1D GlobalMaxPool2D Rescaling Resizing CenterCrop RandomCrop RandomFlip RandomTranslation
    RandomRotation RandomZoom RandomContrast RandomBrightness RandomHeight RandomWidth Discretization
    CategoryEncoding Hashing HashedCrossing StringLookup IntegerLookup TextVectorization UnitNormalization
    """
)

# Those of `keras.layers` from which others derive (in 2.4, 2.10, 2.15 or Keras 3.15).
BASES = words("Layer Wrapper RNN Attention Conv1D Conv2D Conv3D Dropout Embedding JaxLayer")

# What `super().get_config()` gives a layer of one's own, in every Keras, as long as it is given no shape of a batch.
OF_BASE_CONFIG = words("name trainable dtype")

# Layers that hand on the numbers that they are given, in their compute dtype. UpSampling2D does, unless bilinear.
HANDING_ON = words(
    """
    Flatten Reshape Permute RepeatVector Dropout SpatialDropout1D SpatialDropout2D SpatialDropout3D Cropping1D
    Cropping2D Cropping3D ZeroPadding1D ZeroPadding2D ZeroPadding3D UpSampling1D UpSampling3D MaxPooling1D MaxPooling2D
    MaxPooling3D MaxPool1D MaxPool2D MaxPool3D AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D
    AvgPool3D Concatenate ActivityRegularization
    """
)
# Layers whose output has the layer's compute dtype for certain, in every Keras.
OUTPUT_IN_COMPUTE_DTYPE = HANDING_ON | words(
    """
    Dense EinsumDense Conv1D Conv2D Conv3D Convolution1D Convolution2D Convolution3D Conv1DTranspose Conv2DTranspose
    Conv3DTranspose Convolution2DTranspose DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D
    SeparableConvolution2D LocallyConnected1D LocallyConnected2D Activation Softmax ReLU LeakyReLU PReLU ELU
    LSTM GRU SimpleRNN BatchNormalization LayerNormalization GlobalAveragePooling1D
    GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D
    GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D
    Convolution3DTranspose ConvLSTM1D ConvLSTM2D ThresholdedReLU GaussianNoise GaussianDropout AlphaDropout
    Add Subtract Multiply Average Maximum Minimum Dot
    UnitNormalization GroupNormalization RMSNormalization Identity Masking Rescaling Normalization
    """
)

# Normalization is often kept in float32 on purpose, and costs little there.
NORMALIZATION = words(
    """
    BatchNormalization SyncBatchNormalization LayerNormalization GroupNormalization UnitNormalization
    RMSNormalization SpectralNormalization Normalization
    """
)
# Preprocessing belongs into float32.
PREPROCESSING = words(
    """
    Normalization Rescaling Resizing CenterCrop RandomCrop RandomFlip RandomTranslation RandomRotation RandomZoom
    RandomContrast RandomBrightness RandomHeight RandomWidth Discretization CategoryEncoding Hashing HashedCrossing
    StringLookup IntegerLookup TextVectorization MelSpectrogram STFTSpectrogram
    """
)
# They read strings.
TEXT = words("StringLookup TextVectorization Hashing HashedCrossing KerasLayer DynamicLookup")
# They take strings; an embedding of words hands on floating-point numbers.
TAKING_TEXT = TEXT | {"DynamicEmbedding"}
# They handle no floating-point numbers, or are no layers that compute.
NOT_FLOATING = TEXT | words("Input InputLayer IntegerLookup Discretization CategoryEncoding")
# Attributes of a layer that list its weights.
WEIGHT_LISTS = ("trainable_weights", "trainable_variables", "weights", "variables", "non_trainable_weights")
