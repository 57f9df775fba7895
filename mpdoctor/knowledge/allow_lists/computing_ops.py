"""Operations of TensorFlow that compute, and do nothing else: what the graph of a saved model may hold.

How the list was made: all operations of TensorFlow 2.4.4, 2.10.1, 2.15.1 and 2.21.0 (`tf.raw_ops`), taken by family and
looked through name by name; then compared with what 74 models of Keras 2 hold in these four, of all layers, optimizers
and preprocessing layers, when they are saved as a SavedModel. `is_stateful` says nothing here: ReadFile is stateless,
RandomUniform and HashTableV2 are not.

Left out on purpose:

- whatever reaches a file, a network, another process, Python, a plugin or a device by name. Less plain ones:
  ImmutableConst and FixedUnigramCandidateSampler read a file that an attribute names, EncodeProto and DecodeProtoV2 one
  with a description of the message, PrintV2 and the DebugIdentity family write to a URL
- data sets, queues, stages and barriers: a layer needs none (IteratorGetNext takes from what its caller hands over, as
  the `adapt_step` of preprocessing layers does, and no operation here makes an iterator)
- forests, except for BoostedTreesBucketize, which is Discretization in TensorFlow 2.4
- what unpacks or decodes bytes in the format of images, sound, archives and tensors: large parsers of foreign bytes
- operations on references of TensorFlow 1, TPUs, distributed ones, Abort
"""

from __future__ import annotations

from mpdoctor.knowledge import words

COMPUTING = words(
    """
    Abs AccumulateNV2 Acos Acosh Add AddN AddV2 AdjustContrast AdjustContrastv2 AdjustHue AdjustSaturation All
    AllCandidateSampler Angle AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable
    AnonymousMutableHashTableOfTensors Any ApproxTopK ApproximateEqual ArgMax ArgMin AsString Asin Asinh Assert
    AssignAddVariableOp AssignSubVariableOp AssignVariableOp Atan Atan2 Atanh AudioSpectrogram AvgPool AvgPool3D
    AvgPool3DGrad AvgPoolGrad BandedTriangularSolve BatchMatMul BatchMatMulV2 BatchMatMulV3
    BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad BatchToSpace BatchToSpaceND BesselI0
    BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc
    BiasAdd BiasAddGrad BiasAddV1 Bincount Bitcast BitwiseAnd BitwiseOr BitwiseXor BlockLSTM BlockLSTMGrad
    BlockLSTMGradV2 BlockLSTMV2 BoostedTreesBucketize BroadcastArgs BroadcastGradientArgs BroadcastTo Bucketize
    CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss CTCLossV2 Case Cast Ceil CheckNumerics CheckNumericsV2 Cholesky
    CholeskyGrad ClipByValue CombinedNonMaxSuppression CompareAndBitpack Complex ComplexAbs ComputeAccidentalHits
    Concat ConcatOffset ConcatV2 Conj ConjugateTranspose Const ControlTrigger Conv Conv2D Conv2DBackpropFilter
    Conv2DBackpropFilterV2 Conv2DBackpropInput Conv2DBackpropInputV2 Conv3D Conv3DBackpropFilter
    Conv3DBackpropFilterV2 Conv3DBackpropInput Conv3DBackpropInputV2 Cos Cosh CropAndResize CropAndResizeGradBoxes
    CropAndResizeGradImage Cross CudnnRNN CudnnRNNBackprop CudnnRNNBackpropV2 CudnnRNNBackpropV3
    CudnnRNNCanonicalToParams CudnnRNNCanonicalToParamsV2 CudnnRNNParamsSize CudnnRNNParamsToCanonical
    CudnnRNNParamsToCanonicalV2 CudnnRNNV2 CudnnRNNV3 Cumprod Cumsum CumulativeLogsumexp DataFormatDimMap
    DataFormatVecPermute Dawsn DecodeBase64 DecodeCSV DecodePaddedRaw DecodeRaw DenseBincount DenseCountSparseOutput
    DenseToDenseSetOperation DenseToSparseSetOperation DepthToSpace DepthwiseConv2dNative
    DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Dequantize DeserializeManySparse
    DeserializeSparse DeviceIndex Diag DiagPart Digamma Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput
    DisableCopyOnRead Div DivNoNan DrawBoundingBoxes DrawBoundingBoxesV2 DynamicPartition DynamicStitch EditDistance
    Eig Einsum Elu EluGrad Empty EmptyTensorList EmptyTensorMap EncodeBase64 EnsureShape Enter Equal Erf Erfc Erfinv
    EuclideanNorm Exit Exp ExpandDims Expint Expm1 ExtractGlimpse ExtractGlimpseV2 ExtractImagePatches
    ExtractVolumePatches FFT FFT2D FFT3D FFTND FakeParam FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient
    FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel
    FakeQuantWithMinMaxVarsPerChannelGradient Fill Fingerprint Floor FloorDiv FloorMod For FractionalAvgPool
    FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad FresnelCos FresnelSin FusedBatchNorm
    FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 FusedPadConv2D
    FusedResizeAndPadConv2D GRUBlockCell GRUBlockCellGrad Gather GatherNd GatherV2 GenerateBoundingBoxProposals
    Greater GreaterEqual GuaranteeConst HSVToRGB HashTableV2 HistogramFixedWidth IFFT IFFT2D IFFT3D IFFTND IRFFT
    IRFFT2D IRFFT3D IRFFTND Identity IdentityN If Igamma IgammaGradA Igammac Imag ImageProjectiveTransformV2
    ImageProjectiveTransformV3 InTopK InTopKV2 InitializeTableV2 InplaceAdd InplaceSub InplaceUpdate Inv InvGrad
    Invert InvertPermutation IsFinite IsInf IsNan IsotonicRegression IteratorGetNext L2Loss LRN LRNGrad
    LSTMBlockCell LSTMBlockCellGrad LeakyRelu LeakyReluGrad LearnedUnigramCandidateSampler LeftShift Less LessEqual
    Lgamma LinSpace ListDiff Log Log1p LogMatrixDeterminant LogSoftmax LogUniformCandidateSampler LogicalAnd
    LogicalNot LogicalOr LookupTableExportV2 LookupTableFindV2 LookupTableImportV2 LookupTableInsertV2
    LookupTableRemoveV2 LookupTableSizeV2 LoopCond LowerBound Lu MatMul MatrixBandPart MatrixDeterminant MatrixDiag
    MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixExponential MatrixInverse
    MatrixLogarithm MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MatrixSolve MatrixSolveLs MatrixSquareRoot
    MatrixTriangularSolve Max MaxPool MaxPool3D MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad
    MaxPoolGradGradV2 MaxPoolGradGradWithArgmax MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolV2 MaxPoolWithArgmax
    Maximum Mean Merge Mfcc Min Minimum MirrorPad MirrorPadGrad Mod Mul MulNoNan Multinomial MutableDenseHashTableV2
    MutableHashTableOfTensorsV2 MutableHashTableV2 Ndtri Neg NextAfter NextIteration NoOp NonDeterministicInts
    NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5
    NonMaxSuppressionWithOverlaps NotEqual NthElement OneHot OnesLike OptionalFromValue OptionalGetValue
    OptionalHasValue OptionalNone Pack Pad PadV2 ParallelDynamicStitch ParameterizedTruncatedNormal ParseExample
    ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample ParseSingleSequenceExample
    PartitionedCall Placeholder PlaceholderV2 PlaceholderWithDefault Polygamma PopulationCount Pow PreventGradient
    Prod Qr QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4
    QuantizeAndDequantizeV4Grad QuantizeV2 RFFT RFFT2D RFFT3D RFFTND RGBToHSV RaggedBincount RaggedCountSparseOutput
    RaggedCross RaggedFillEmptyRows RaggedFillEmptyRowsGrad RaggedGather RaggedRange RaggedTensorFromVariant
    RaggedTensorToSparse RaggedTensorToTensor RaggedTensorToVariant RaggedTensorToVariantGradient RandomCrop
    RandomGamma RandomGammaGrad RandomIndexShuffle RandomPoisson RandomPoissonV2 RandomShuffle RandomStandardNormal
    RandomUniform RandomUniformInt Range Rank ReadVariableOp Real RealDiv Reciprocal ReciprocalGrad ReduceJoin
    RegexFullMatch RegexReplace Relu Relu6 Relu6Grad ReluGrad Reshape ResizeArea ResizeBicubic ResizeBicubicGrad
    ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor ResizeNearestNeighborGrad ResourceApplyAdaMax
    ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam
    ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl
    ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum
    ResourceApplyPowerSign ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
    ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin
    ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub
    ResourceScatterNdUpdate ResourceScatterSub ResourceScatterUpdate ResourceSparseApplyAdadelta
    ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2
    ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl ResourceSparseApplyFtrlV2
    ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyProximalAdagrad
    ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp ResourceStridedSliceAssign Reverse
    ReverseSequence ReverseV2 RightShift Rint RngReadAndSkip RngSkip Roll Round Rsqrt RsqrtGrad
    SampleDistortedBoundingBox SampleDistortedBoundingBoxV2 ScaleAndTranslate ScaleAndTranslateGrad ScatterNd
    ScatterNdNonAliasingAdd SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd SegmentProdV2
    SegmentSum SegmentSumV2 Select SelectV2 SelfAdjointEig SelfAdjointEigV2 Selu SeluGrad SerializeManySparse
    SerializeSparse SetSize Shape ShapeN Sigmoid SigmoidGrad Sign Sin Sinh Size Slice Snapshot SobolSample Softmax
    SoftmaxCrossEntropyWithLogits Softplus SoftplusGrad Softsign SoftsignGrad SpaceToBatch SpaceToBatchND
    SpaceToDepth SparseAdd SparseAddGrad SparseBincount SparseConcat SparseCountSparseOutput SparseCross
    SparseCrossHashed SparseCrossV2 SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseFillEmptyRows
    SparseFillEmptyRowsGrad SparseMatMul SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse
    SparseReorder SparseReshape SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanGradV2
    SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNGradV2
    SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2
    SparseSegmentSumWithNumSegments SparseSlice SparseSliceGrad SparseSoftmax SparseSoftmaxCrossEntropyWithLogits
    SparseSparseMaximum SparseSparseMinimum SparseSplit SparseTensorDenseAdd SparseTensorDenseMatMul SparseToDense
    SparseToSparseSetOperation Spence Split SplitV Sqrt SqrtGrad Square SquaredDifference Squeeze
    StatefulPartitionedCall StatefulRandomBinomial StatefulStandardNormal StatefulStandardNormalV2
    StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt StatelessCase StatelessIf
    StatelessMultinomial StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2
    StatelessRandomGammaV3 StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg
    StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomPoisson StatelessRandomUniform
    StatelessRandomUniformFullInt StatelessRandomUniformFullIntV2 StatelessRandomUniformInt
    StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessSampleDistortedBoundingBox StatelessShuffle
    StatelessTruncatedNormal StatelessTruncatedNormalV2 StatelessWhile StaticRegexFullMatch StaticRegexReplace
    StopGradient StridedSlice StridedSliceAssign StridedSliceGrad StringFormat StringJoin StringLength StringLower
    StringNGrams StringSplit StringSplitV2 StringStrip StringToHashBucket StringToHashBucketFast
    StringToHashBucketStrong StringToNumber StringUpper Sub Substr Sum Svd Switch SymbolicGradient Tan Tanh TanhGrad
    TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3 TensorArrayGradWithShape
    TensorArrayReadV3 TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3 TensorArrayV3 TensorArrayWriteV3
    TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor
    TensorListGather TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch
    TensorListReserve TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2
    TensorListSetItem TensorListSplit TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert TensorMapLookup
    TensorMapSize TensorMapStackKeys TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
    TensorScatterUpdate TensorStridedSliceUpdate ThreadUnsafeUnigramCandidateSampler Tile TileGrad ToBool TopK
    TopKV2 Transpose TridiagonalMatMul TridiagonalSolve TruncateDiv TruncateMod TruncatedNormal UnicodeDecode
    UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode UniformCandidateSampler Unique UniqueV2
    UniqueWithCounts UniqueWithCountsV2 Unpack UnravelIndex UnsortedSegmentJoin UnsortedSegmentMax
    UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum UpperBound VarHandleOp VarIsInitializedOp
    VariableShape Where While Xdivy Xlog1py Xlogy ZerosLike Zeta
    """
)
# What saves and restores the variables. It stands in functions of its own that only the saver calls.
SAVING: frozenset[str] = frozenset(["MergeV2Checkpoints", "RestoreV2", "SaveV2", "ShardedFilename"])
# Reads a vocabulary: from a file of the model's own.
READS_VOCABULARY = "InitializeTableFromTextFileV2"
# Prints: to a stream, or to a file whose URL stands in its attribute `output_stream`.
PRINTS = "PrintV2"
STREAMS = frozenset(["stdout", "stderr", "log(info)", "log(warning)", "log(error)"])

# In words, what some of the others do, by how their names begin or end; the first that fits.
_EFFECTS = (
    ("WriteFile", "it writes a file"),
    ("ReadFile", "it reads a file"),
    ("PrintV2", "it prints to a file"),
    ("Print", "it prints"),
    ("InitializeTableFromTextFile", "it reads a file that is none of the model's assets"),
    ("MatchingFiles", "it lists files"),
    ("PyFunc", "it calls Python"),
    ("EagerPyFunc", "it calls Python"),
    ("Save", "it writes files"),
    ("Restore", "it reads files"),
    ("MergeV2Checkpoints", "it moves files"),
    ("LoadAndRemapMatrix", "it reads a checkpoint"),
    ("GenerateVocabRemapping", "it reads a file"),
    ("ImmutableConst", "it reads a file"),
    ("FixedUnigramCandidateSampler", "it can read a file"),
    ("DecodeProtoV2", "it can read a file"),
    ("EncodeProto", "it can read a file"),
    ("DebugIdentity", "it writes to a file or a server"),
    ("FileSystem", "it changes how files are reached"),
    ("Rpc", "it calls a server"),
    ("DataService", "it calls a server"),
    ("RemoteCall", "it computes on another machine"),
    ("Decode", "it decodes bytes"),
    ("Abort", "it ends the process"),
)
_EFFECTS_OF_ENDINGS = (
    ("Writer", "it writes files"),
    ("Summary", "it writes what TensorBoard reads"),
    ("DatasetV2", "it makes a data set, and those can read files"),
    ("Dataset", "it makes a data set, and those can read files"),
    ("Reader", "it reads files"),
    ("ReaderV2", "it reads files"),
)


def effect_of_operation(op: str) -> str:
    """What an operation does beside computing: "it writes a file"; "" where that is not known."""
    effects = [words for beginning, words in _EFFECTS if op.startswith(beginning)]
    effects += [words for ending, words in _EFFECTS_OF_ENDINGS if op.endswith(ending)]
    return effects[0] if effects else ""
