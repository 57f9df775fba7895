"""The public functions of TensorFlow and Keras that an op layer of a saved model may call: an explicit list.

An op layer (TFOpLambda and its kin in Keras 2) keeps the name of a function and calls it, while the model is loaded
already. On the list is what computes tensors from tensors and does nothing else. Collected from the functions that
TensorFlow 2.4, 2.10, 2.15 and 2.21 let symbolic tensors dispatch to, and read one by one. Left out is what reads or
writes files (`io`, a candidate sampler's `vocab_file`), prints, decodes media, talks to other processes, or takes a
Python function (`map_fn`, `cond`, `py_function`).
"""

from __future__ import annotations

# Module below `tf` -> the functions in it. "" is `tf` itself. Those of `tf.compat.v1` go by the same names.
FUNCTIONS = {
    module: frozenset(names.split())
    for module, names in {
        "": """
            abs acos acosh add add_n argmax argmin argsort as_string asin asinh atan atan2 atanh batch_to_space
            bitcast boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to cast
            clip_by_global_norm clip_by_norm clip_by_value complex concat convert_to_tensor cos cosh cumsum
            divide dynamic_partition dynamic_stitch edit_distance eig eigvals einsum ensure_shape equal exp
            expand_dims extract_volume_patches eye fftnd fill fingerprint floor gather gather_nd greater
            greater_equal histogram_fixed_width histogram_fixed_width_bins identity identity_n ifftnd irfftnd
            less less_equal linspace logical_and logical_not logical_or matmul maximum meshgrid minimum multiply
            negative norm not_equal one_hot ones ones_like pad pow range rank realdiv reduce_all reduce_any
            reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum repeat reshape reverse
            reverse_sequence rfftnd roll round saturate_cast scalar_mul scatter_nd searchsorted sequence_mask
            shape shape_n sigmoid sign sin sinh size slice sort space_to_batch space_to_batch_nd split sqrt
            square squeeze stack stop_gradient strided_slice subtract tan tanh tensor_scatter_nd_add
            tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tensordot
            tile transpose truediv truncatediv truncatemod unique unique_with_counts unravel_index unstack where
            zeros zeros_like
        """,
        "__operators__": """
            add eq getitem ne ragged_getitem
        """,
        "bitwise": """
            bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
        """,
        "debugging": """
            assert_all_finite check_numerics
        """,
        "dtypes": """
            cast complex saturate_cast
        """,
        "image": """
            adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_saturation central_crop
            combined_non_max_suppression convert_image_dtype crop_and_resize crop_to_bounding_box
            draw_bounding_boxes extract_glimpse extract_patches flip_left_right flip_up_down grayscale_to_rgb
            hsv_to_rgb image_gradients non_max_suppression non_max_suppression_overlaps
            non_max_suppression_padded non_max_suppression_with_scores pad_to_bounding_box
            per_image_standardization psnr random_brightness random_contrast random_crop random_flip_left_right
            random_flip_up_down random_hue random_saturation resize resize_with_crop_or_pad resize_with_pad
            rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90 sobel_edges ssim ssim_multiscale
            stateless_random_brightness stateless_random_contrast stateless_random_crop
            stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
            stateless_random_saturation total_variation transpose yiq_to_rgb yuv_to_rgb
        """,
        "keras.activations": """
            elu exponential gelu hard_sigmoid linear mish relu selu sigmoid softmax softplus softsign swish tanh
        """,
        "keras.backend": """
            abs all any arange argmax argmin batch_dot batch_flatten batch_normalization bias_add
            binary_crossentropy binary_focal_crossentropy cast cast_to_floatx categorical_crossentropy
            categorical_focal_crossentropy clip concatenate constant conv1d conv2d conv2d_transpose conv3d cos
            cumprod cumsum depthwise_conv2d dot dropout dtype elu equal exp expand_dims eye flatten gather
            greater greater_equal hard_sigmoid in_top_k l2_normalize less less_equal local_conv1d local_conv2d
            log max maximum mean min minimum not_equal one_hot ones ones_like permute_dimensions pool2d pool3d
            pow prod random_bernoulli random_binomial random_normal random_uniform relu repeat repeat_elements
            reshape resize_images resize_volumes reverse round separable_conv2d shape sigmoid sign sin softmax
            softplus softsign sparse_categorical_crossentropy spatial_2d_padding spatial_3d_padding sqrt square
            squeeze stack std stop_gradient sum tanh temporal_padding tile to_dense transpose truncated_normal
        """,
        "keras.losses": """
            KLD MAE MAPE MSE MSLE binary_crossentropy binary_focal_crossentropy categorical_crossentropy
            categorical_focal_crossentropy categorical_hinge cosine_similarity hinge huber kl_divergence kld
            kullback_leibler_divergence log_cosh logcosh mae mape mean_absolute_error
            mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error mse msle poisson
            sparse_categorical_crossentropy squared_hinge
        """,
        "keras.metrics": """
            KLD MAE MAPE MSE MSLE binary_accuracy binary_crossentropy binary_focal_crossentropy
            categorical_accuracy categorical_crossentropy categorical_focal_crossentropy hinge kl_divergence kld
            kullback_leibler_divergence log_cosh logcosh mae mape mean_absolute_error
            mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error mse msle poisson
            sparse_categorical_accuracy sparse_categorical_crossentropy sparse_top_k_categorical_accuracy
            squared_hinge top_k_categorical_accuracy
        """,
        "linalg": """
            adjoint band_part cholesky cholesky_solve cross det diag diag_part eig eigh eigh_tridiagonal eigvals
            eigvalsh einsum expm eye global_norm inv l2_normalize logdet logm lstsq lu lu_matrix_inverse
            lu_reconstruct lu_solve matmul matrix_rank matrix_transpose matvec norm normalize pinv qr set_diag
            slogdet solve sqrtm svd tensor_diag tensor_diag_part tensordot trace triangular_solve
            tridiagonal_matmul tridiagonal_solve
        """,
        "math": """
            abs accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin asin asinh atan
            atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil confusion_matrix conj
            cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma divide divide_no_nan equal erf
            erfc erfcinv erfinv exp expm1 floor floordiv floormod greater greater_equal igamma igammac imag
            in_top_k invert_permutation is_finite is_inf is_nan is_non_decreasing is_strictly_increasing
            l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid log_softmax logical_and logical_not
            logical_or logical_xor maximum minimum mod multiply multiply_no_nan ndtri negative nextafter
            not_equal polygamma polyval pow real reciprocal reciprocal_no_nan reduce_all reduce_any
            reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std
            reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min
            segment_prod segment_sum sigmoid sign sin sinh sobol_sample softmax softplus softsign sqrt square
            squared_difference subtract tan tanh top_k truediv unsorted_segment_max unsorted_segment_mean
            unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy
            xlog1py xlogy zero_fraction zeta
        """,
        "math.special": """
            bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1
            bessel_k1e bessel_y0 bessel_y1 dawsn expint fresnel_cos fresnel_sin spence
        """,
        "nn": """
            approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d
            avg_pool3d batch_norm_with_global_normalization batch_normalization bias_add collapse_repeated
            compute_average_loss conv1d conv1d_transpose conv2d conv2d_transpose conv3d conv3d_transpose
            conv_transpose convolution crelu ctc_beam_search_decoder ctc_greedy_decoder ctc_loss
            ctc_unique_labels depth_to_space depthwise_conv2d depthwise_conv2d_backprop_filter
            depthwise_conv2d_backprop_input dilation2d dropout elu embedding_lookup embedding_lookup_sparse
            erosion2d fractional_avg_pool fractional_max_pool gelu in_top_k isotonic_regression l2_loss
            l2_normalize leaky_relu local_response_normalization log_poisson_loss log_softmax lrn max_pool
            max_pool1d max_pool2d max_pool3d max_pool_with_argmax moments normalize_moments pool relu relu6
            safe_embedding_lookup_sparse scale_regularization_loss selu separable_conv2d sigmoid
            sigmoid_cross_entropy_with_logits silu softmax softmax_cross_entropy_with_logits softplus softsign
            space_to_batch space_to_depth sparse_softmax_cross_entropy_with_logits sufficient_statistics swish
            tanh top_k weighted_cross_entropy_with_logits weighted_moments zero_fraction
        """,
        "quantization": """
            dequantize fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient
            fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient
            fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient quantize
            quantize_and_dequantize quantize_and_dequantize_v2 quantized_concat
        """,
        "ragged": """
            boolean_mask constant cross cross_hashed range row_splits_to_segment_ids segment_ids_to_row_splits
            stack stack_dynamic_partitions
        """,
        "random": """
            categorical fold_in gamma normal poisson shuffle split stateless_binomial stateless_categorical
            stateless_gamma stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform
            truncated_normal uniform
        """,
        "random.experimental": """
            index_shuffle stateless_fold_in stateless_shuffle stateless_split
        """,
        "sets": """
            difference intersection size union
        """,
        "signal": """
            dct fft fft2d fft3d fftnd fftshift frame hamming_window hann_window idct ifft ifft2d ifft3d ifftnd
            ifftshift inverse_mdct inverse_stft inverse_stft_window_fn irfft irfft2d irfft3d irfftnd
            kaiser_bessel_derived_window kaiser_window linear_to_mel_weight_matrix mdct
            mfccs_from_log_mel_spectrograms overlap_and_add rfft rfft2d rfft3d rfftnd stft vorbis_window
        """,
        "sparse": """
            add bincount concat cross cross_hashed expand_dims eye fill_empty_rows from_dense mask maximum
            minimum reduce_max reduce_sum reorder reset_shape reshape retain segment_mean segment_sqrt_n
            segment_sum slice softmax sparse_dense_matmul split to_dense to_indicator transpose
        """,
        "strings": """
            as_string bytes_split format join length lower ngrams reduce_join regex_full_match regex_replace
            split strip substr to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong to_number unicode_decode
            unicode_decode_with_offsets unicode_encode unicode_script unicode_split unicode_split_with_offsets
            unicode_transcode unsorted_segment_join upper
        """,
    }.items()
}
# What Keras 2 calls and reads of ragged and sparse tensors.
_CLASS_METHODS = """
    from_nested_row_lengths from_nested_row_splits from_nested_value_rowids from_row_lengths from_row_limits
    from_row_splits from_row_starts from_tensor from_uniform_row_length from_value_rowids
"""
_METHODS = """
    bounding_shape merge_dims nested_row_lengths nested_value_rowids nrows row_lengths row_limits row_starts to_sparse
    to_tensor value_rowids with_flat_values with_row_splits_dtype with_values
"""
_PROPERTIES = "dense_shape flat_values indices nested_row_splits row_splits values"
CLASS_METHODS = {"RaggedTensor": frozenset(_CLASS_METHODS.split())}
METHODS = frozenset(_METHODS.split())
PROPERTIES = frozenset(_PROPERTIES.split())


def computes(symbol: str) -> bool:
    """Whether `symbol`, the public name of a function without its leading `tf.`, is on the list."""
    plain = symbol[len("compat.v1.") :] if symbol.startswith("compat.v1.") else symbol
    module, separator, name = plain.rpartition(".")
    return bool(module) == bool(separator) and name in FUNCTIONS.get(module, ())
