"""Names that a LossScaleOptimizer, or an optimizer of the kind that it wraps, has in some Keras: `dir()` of both in
Keras 3.15, tf_keras 2.21, TensorFlow 2.15, 2.10 and 2.4. What else a user's optimizer has, no wrapper passes on."""

from __future__ import annotations

from mpdoctor.knowledge import words

ON_WRAPPERS = words(
    """
    _HAS_AGGREGATE_GRAD _abc_impl _add_trackable_child _add_variable_with_custom_getter
    _aggregate_gradients _all_reduce_sum_gradients _api_export_path _api_export_symbol_id
    _apply_gradients _apply_gradients_cross_replica _apply_weight_decay _assert_valid_dtypes
    _backend_apply_gradients _backend_increment_gradient_accumulators
    _backend_reset_gradient_accumulators _backend_update_step _build_index_dict _build_learning_rate
    _call_if_callable _check_super_called _check_variables_are_known _checkpoint_adapter
    _checkpoint_dependencies _clip_by_norm _clip_gradients _common_apply _compute_current_learning_rate
    _compute_gradients _copy_trackable_to_cpu _create_all_weights _create_hypers
    _create_iteration_variable _create_or_restore_slot_variable _create_slots
    _create_slots_for_sharded_variables _decayed_lr _deduplicate_sparse_grad _deferred_dependencies
    _delete_tracking _dense_apply_args _deserialization_dependencies _deserialize_from_proto
    _distributed_apply _distributed_apply_gradients_fn _distributed_tf_update_step
    _distribution_strategy _distribution_strategy_scope _export_to_saved_model_graph
    _fallback_apply_state _filter_empty_gradients _gather_saveables_for_checkpoint
    _get_current_learning_rate _get_gradients _get_hyper _get_variable_index
    _gradients_have_been_unscaled _handle_deferred_dependencies _init_set_name _internal_apply_gradients
    _iterations _keras_api_names _keras_api_names_v1 _learning_rate
    _list_extra_dependencies_for_serialization _list_functions_for_serialization _lock
    _lookup_dependency _loss_has_been_scaled _loss_scale _map_resources _maybe_initialize_trackable
    _name_based_attribute_restore _name_based_restores _no_dependency _obj_type _object_identifier
    _optimizer _overwrite_model_variables_with_average_value _overwrite_variable_with_gradient
    _overwrite_variables_directly_with_gradients _preload_simple_restoration _prepare _prepare_local
    _process_kwargs _raise_if_strategy_unsupported _resource_apply_dense _resource_apply_sparse
    _resource_apply_sparse_duplicate_indices _resource_scatter_add _resource_scatter_update
    _restore_from_checkpoint_position _restore_from_tensors _restore_slot_variable
    _self_name_based_restores _self_saveable_object_factories _self_setattr_tracking
    _self_unconditional_checkpoint_dependencies _self_unconditional_deferred_dependencies
    _self_unconditional_dependency_names _self_update_uid _serialize_hyperparameter _serialize_to_proto
    _serialize_to_tensors _set_hyper _setattr_tracking _single_restoration_from_checkpoint_position
    _sparse_apply_args _stateful_handle_finite_grads _stateful_handle_non_finite_grads
    _stateless_handle_finite_grads _stateless_handle_non_finite_grads _tf_api_names _tf_api_names_v1
    _tf_apply _track_trackable _track_variable _trackable _trackable_children _tracker
    _tracking_metadata _trainable_variables _trainable_variables_indices _transform_gradients
    _transform_loss _transform_unaggregated_gradients _unconditional_checkpoint_dependencies
    _unconditional_dependency_names _unpickle_model _untrack_variable
    _update_model_variables_moving_average _update_step _update_step_xla _update_uid _use_weight_decay
    _valid_dtypes _var_key _variables add_optimizer_variables add_slot add_variable
    add_variable_from_reference add_weight aggregate_gradients apply apply_gradients assign assign_add
    assign_sub beta_1 beta_2 build built check_finite clipnorm clipvalue compute_gradients decay dynamic
    dynamic_counter dynamic_growth_steps ema_momentum ema_overwrite_frequency exclude_from_weight_decay
    finalize_variable_values from_config get_config get_gradients get_scaled_loss get_slot
    get_slot_names get_unscaled_gradients get_updates get_weights global_clipnorm
    gradient_accumulation_steps initial_scale inner_optimizer iterations learning_rate
    load_own_variables loss_scale loss_scale_factor lr minimize name save_own_variables scale_loss
    set_weights stateless_apply update_step use_ema variables weight_decay weights
    """
)
